"""The last step of the paper: topics and topic shares re-estimated on the meta-observations of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from mmpca import kernels
from mmpca.backend import SERIAL, Threads
from mmpca.engine.bound import Array, dirichlet_divergence
from mmpca.engine.state import FixedTopics, State, bound, copy, topic_weights
from mmpca.monitor import Monitor

FEATURES_AT_ONCE = 2**13
SPARSE_SHARE = 0.1  # of the features that clusters have, below which products with their counts are sparse


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
    beta, gamma, _ = em_step(current, slices, threads)
    for _ in range(max_iter):
        current = current._replace(
            topics=FixedTopics.of(current.topics.alpha, beta),
            clusters=current.clusters._replace(gamma=gamma, weight=topic_weights(gamma)),
        )
        beta, gamma, value = em_step(current, slices, threads)
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


def em_step(state: State, slices: Sequence[slice], threads: Threads = SERIAL) -> tuple[Array, Array, float]:
    """Return topics (K, V) and gamma (Q, K) that maximize the bound under the present responsibilities.

    The topics are those of the M-step, beta_kv proportional to sum_q M_qv phi_qvk. The third result is the bound at the
    gamma and topics of the state, before the step.
    """
    (alpha, beta, _), weight, (sizes, counts, *_) = state.topics, state.clusters.weight, state.clusters
    expected = np.empty_like(beta)  # (K, V)

    def topic_use(some: slice) -> tuple[Array, float]:
        own, mixture = counts[:, some], weight @ beta[:, some]  # (Q, features)
        at = np.nonzero(own)
        m, p = own[at], mixture[at]
        if len(m) < SPARSE_SHARE * own.size:
            ratio: Any = sparse.csr_array((m / p, at), shape=own.shape)
        else:
            ratio = np.zeros_like(own)
            ratio[at] = m / p
        expected[:, some] = beta[:, some] * (ratio.T @ weight).T
        return ratio @ beta[:, some].T, float((m * np.log(p)).sum())  # (Q, K)

    used, values = zip(*threads.map(topic_use, slices), strict=True)
    gamma: Array = alpha + weight * sum(used)
    totals = expected.sum(axis=1, keepdims=True)
    divergences = sum(dirichlet_divergence(own, alpha) for own in state.clusters.gamma)
    value = float(sum(values) - divergences + xlogy(sizes, sizes / sizes.sum()).sum())
    # A topic without any expected count does not change.
    return np.divide(expected, totals, out=beta.copy(), where=totals > 0), gamma, value
