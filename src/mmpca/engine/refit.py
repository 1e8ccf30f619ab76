"""The paper's last step: topics and topic shares re-estimated on the meta-observations of a partition."""

from __future__ import annotations

import numpy as np

from mmpca import kernels
from mmpca.engine.bound import Array
from mmpca.engine.moves import bound
from mmpca.engine.state import State, copy


def refit_topics(state: State, *, max_iter: int = 100, tol: float = 1e-7) -> tuple[Array, Array, float]:
    """Return topics (K, V), gamma (Q, K) and the bound after variational EM with the labels held fixed.

    The bound never falls below that of the state; the iteration stops when it rises by less than `tol` of its
    magnitude. The state is not changed.
    """
    state = copy(state)
    last = bound(state)
    for _ in range(max_iter):
        state = state._replace(beta=update_topics(state))
        state.curvature[:] = np.nan
        for q in range(state.n_clusters):
            kernels.refresh_cluster(state, q, False)
        current = bound(state)
        if current - last <= tol * abs(current):
            break
        last = current
    return state.beta, state.gamma, current if max_iter else last


def update_topics(state: State) -> Array:
    """Return the M-step's topics, beta_kv proportional to sum_q M_qv phi_qvk."""
    expected = np.zeros_like(state.beta)
    for m, weight in zip(state.counts, state.weight, strict=True):
        mixture = weight @ state.beta  # (V,)
        ratio = np.divide(m, mixture, out=np.zeros_like(m), where=m > 0)
        expected += weight[:, None] * ratio  # (K, V), times beta below
    expected *= state.beta
    totals = expected.sum(axis=1, keepdims=True)
    # A topic that no token uses any more stays what it was.
    return np.divide(expected, totals, out=state.beta.copy(), where=totals > 0)
