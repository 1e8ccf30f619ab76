"""The paper's last step: topics and topic shares re-estimated on the meta-observations of a partition."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from mmpca import kernels
from mmpca.blas import one_blas_thread
from mmpca.engine.bound import Array, dirichlet_divergence, expected_log_theta
from mmpca.engine.moves import bound
from mmpca.engine.state import State, copy
from mmpca.places import ForRows, each_of, in_threads, one_thread, threads
from mmpca.stages import QUIET, Stages

FEATURES_AT_ONCE = 2**13


def refit_topics(
    state: State, *, max_iter: int = 200, tol: float = 1e-7, n_threads: int = 1, stages: Stages = QUIET
) -> tuple[Array, Array, float]:
    """Return topics (K, V), gamma (Q, K) and the bound after variational EM with the labels held fixed.

    Topics and gamma are updated from the same responsibilities, all clusters in one matrix product; full VE-steps come
    at the end. The bound never falls below that of the state; the iteration stops when it rises by less than `tol` of
    its magnitude. The state is not changed, and the result does not depend on `n_threads`. `stages` are
    told of each iteration as a step.
    """
    # The products are small: several threads of BLAS would mostly wait for each other.
    with one_blas_thread(), threads(n_threads) as pool:
        for_rows = in_threads(pool)
        best, start = _climb(copy(state), max_iter, tol, for_rows, stages)
        each_of(lambda q: kernels.refresh_cluster(best, q, False), range(best.n_clusters), for_rows)
    if bound(best) < start:  # under a prior below one, VE-steps may end in another maximum
        return state.beta, state.gamma, start
    return best.beta, best.gamma, bound(best)


def _climb(state: State, max_iter: int, tol: float, for_rows: ForRows, stages: Stages) -> tuple[State, float]:
    """Return the state after as many steps as gain, and the bound before them."""
    best = state
    last = start = bound(state)
    for _ in range(max_iter):
        beta, gamma = _em_step(state, for_rows)
        state = state._replace(beta=beta, gamma=gamma, weight=_weights(gamma))
        current = _bound_at(state, for_rows)
        stages.step()
        if not current > last:  # rounding
            break
        best, gain, last = state, current - last, current
        if gain <= tol * abs(current):
            break
    return best, start


def update_topics(state: State) -> Array:
    """Return the M-step's topics, beta_kv proportional to sum_q M_qv phi_qvk."""
    return _em_step(state)[0]


def _em_step(state: State, for_rows: ForRows = one_thread) -> tuple[Array, Array]:
    """Return topics (K, V) and gamma (Q, K) that maximise the bound under the present responsibilities."""
    expected = np.empty_like(state.beta)  # (K, V)

    def use(features: slice) -> Array:
        counts, beta = state.counts[:, features], state.beta[:, features]
        mixture = state.weight @ beta  # (Q, features)
        ratio = np.divide(counts, mixture, out=np.zeros_like(mixture), where=counts > 0)
        expected[:, features] = beta * (state.weight.T @ ratio)
        return np.asarray(ratio @ beta.T)  # (Q, K)

    used = sum(each_of(use, _feature_pieces(state), for_rows))
    gamma: Array = state.alpha + state.weight * used
    totals = expected.sum(axis=1, keepdims=True)
    # A topic that no token uses any more stays what it was.
    return np.divide(expected, totals, out=state.beta.copy(), where=totals > 0), gamma


def _feature_pieces(state: State) -> list[slice]:
    """Return the features in pieces that do not depend on the number of threads."""
    return [slice(start, start + FEATURES_AT_ONCE) for start in range(0, state.beta.shape[1], FEATURES_AT_ONCE)]


def _weights(gamma: Array) -> Array:
    return np.maximum(np.exp(np.stack([expected_log_theta(row) for row in gamma])), kernels.LEAST_WEIGHT)


def _bound_at(state: State, for_rows: ForRows) -> float:
    """Return the bound of the state's gamma and topics, as they are."""

    def value(features: slice) -> float:
        return float(xlogy(state.counts[:, features], state.weight @ state.beta[:, features]).sum())

    values = sum(each_of(value, _feature_pieces(state), for_rows))
    divergences = sum(dirichlet_divergence(gamma, state.alpha) for gamma in state.gamma)
    return float(values - divergences + xlogy(state.sizes, state.sizes / state.sizes.sum()).sum())
