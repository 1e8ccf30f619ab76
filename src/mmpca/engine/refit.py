"""The last step of the paper: topics and topic shares re-estimated on the meta-observations of a partition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import xlogy

from mmpca import kernels
from mmpca.backend import SERIAL, Threads
from mmpca.engine.bound import Array, dirichlet_divergence
from mmpca.engine.state import State, bound, copy, topic_weights
from mmpca.monitor import Monitor

FEATURES_AT_ONCE = 2**13


def refit_topics(
    state: State,
    *,
    max_iter: int = 200,
    tol: float = 1e-7,
    threads: Threads = SERIAL,
    monitor: Monitor | None = None,
    features_at_once: int = FEATURES_AT_ONCE,
) -> tuple[Array, Array, float]:
    """Return topics (K, V), gamma (Q, K) and the bound after variational EM with the labels held fixed.

    Topics and gamma are updated from the same responsibilities, all clusters in one matrix product; full VE-steps come
    at the end. The bound never falls below that of the state, which does not change; the iteration stops when the bound
    rises by less than `tol` of its magnitude, or when the monitor asks for it.
    """
    monitor = Monitor() if monitor is None else monitor
    monitor.begin("refit", "refitting the topics", max_iter)
    slices = feature_slices(state, features_at_once)
    start = last = bound(state)
    best = current = copy(state)
    for _ in range(max_iter):
        beta, gamma = em_step(current, slices, threads)
        current = current._replace(
            topics=current.topics._replace(beta=beta),
            clusters=current.clusters._replace(gamma=gamma, weight=topic_weights(gamma)),
        )
        value = _bound_at(current, slices, threads)
        monitor.step()
        if not value > last:  # rounding
            break
        best, gain, last = current, value - last, value
        if gain <= tol * abs(value) or monitor.is_stopped:
            break
    threads.map(lambda q: kernels.refresh_cluster(best, q, False), range(best.n_clusters))
    if bound(best) < start:  # under a prior below one, VE-steps may end in another maximum
        return state.topics.beta, state.clusters.gamma, start
    return best.topics.beta, best.clusters.gamma, bound(best)


def feature_slices(state: State, size: int = FEATURES_AT_ONCE) -> list[slice]:
    """Return slices of the features, which do not depend on the number of threads, so neither do sums over them."""
    return [slice(start, start + size) for start in range(0, state.topics.beta.shape[1], size)]


def em_step(state: State, slices: Sequence[slice], threads: Threads = SERIAL) -> tuple[Array, Array]:
    """Return topics (K, V) and gamma (Q, K) that maximize the bound under the present responsibilities.

    The topics are those of the M-step, beta_kv proportional to sum_q M_qv phi_qvk.
    """
    (alpha, beta, _), weight, counts = state.topics, state.clusters.weight, state.clusters.counts
    expected = np.empty_like(beta)  # (K, V)

    def topic_use(some: slice) -> Array:
        mixture = weight @ beta[:, some]  # (Q, features)
        ratio = np.divide(counts[:, some], mixture, out=np.zeros_like(mixture), where=counts[:, some] > 0)
        expected[:, some] = beta[:, some] * (weight.T @ ratio)
        return np.asarray(ratio @ beta[:, some].T)  # (Q, K)

    gamma: Array = alpha + weight * sum(threads.map(topic_use, slices))
    totals = expected.sum(axis=1, keepdims=True)
    # A topic without any expected count does not change.
    return np.divide(expected, totals, out=beta.copy(), where=totals > 0), gamma


def _bound_at(state: State, slices: Sequence[slice], threads: Threads) -> float:
    """Return the bound at the gamma and topics of the state."""
    (alpha, beta, _), (sizes, counts, *_) = state.topics, state.clusters

    def log_likelihood(some: slice) -> float:
        return float(xlogy(counts[:, some], state.clusters.weight @ beta[:, some]).sum())

    values = sum(threads.map(log_likelihood, slices))
    divergences = sum(dirichlet_divergence(gamma, alpha) for gamma in state.clusters.gamma)
    return float(values - divergences + xlogy(sizes, sizes / sizes.sum()).sum())
