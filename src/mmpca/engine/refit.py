"""Topics, topic shares and their prior re-estimated on the meta-observations of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, xlogy

from mmpca import kernels
from mmpca.backend import SERIAL, Threads
from mmpca.engine.bound import Array, dirichlet_divergence, expected_log_theta
from mmpca.engine.state import FixedTopics, State, bound, copy, from_sums, refresh, topic_weights
from mmpca.monitor import Monitor

FEATURES_AT_ONCE = 2**13
PRIOR_LIMITS = 1e-2, 1e4  # beyond which a larger or smaller prior hardly changes the bound
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


def replace_topics(state: State, *, max_iter: int = 5) -> None:
    """Replace the topics of a state by those that `refit_topics` finds, in place; every cluster is fresh afterwards.

    A few iterations are enough after a move, which changes the sums of two clusters by one row.
    """
    beta, gamma, _ = refit_topics(state, max_iter=max_iter)
    state.topics.beta[:], state.topics.beta_rows[:] = beta, beta.T
    state.clusters.weight[:], state.clusters.curvature[:] = topic_weights(gamma), np.nan
    for q in range(state.n_clusters):
        refresh(state, q)


def estimate_prior(state: State, *, max_iter: int = 200, tol: float = 1e-8) -> tuple[Array, Array, float]:
    """Return the prior (K,), gamma (Q, K) and the bound after variational EM with labels and topics held fixed.

    The bound never falls below that of the state, which does not change; the iteration stops when the bound rises by
    less than `tol` of its magnitude.
    """
    best, last = state, bound(state)
    for _ in range(max_iter):
        clusters = best.clusters
        alpha = most_likely_prior(expected_log_theta(clusters.gamma), best.topics.alpha)
        new = from_sums(clusters.counts, clusters.sizes, beta=best.topics.beta, alpha=alpha, gamma=clusters.gamma)
        gain = bound(new) - last
        if gain > 0:
            best, last = new, last + gain
        if gain <= tol * abs(last):
            break
    return best.topics.alpha, best.clusters.gamma, last


def most_likely_prior(eta: Array, start: Array) -> Array:
    """Return the prior within its limits, (K,), that maximizes the sum of E[log Dir(theta_q; alpha)] for eta (Q, K)."""
    mean = eta.mean(axis=0)  # (K,)

    def loss(log_alpha: Array) -> tuple[float, Array]:
        alpha = np.exp(log_alpha)
        value = gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1.0) @ mean
        return -float(value), -alpha * (digamma(alpha.sum()) - digamma(alpha) + mean)

    limits = np.log(PRIOR_LIMITS)
    first, bounds = np.clip(np.log(start), *limits), [(float(limits[0]), float(limits[1]))] * len(mean)
    found: Array = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.exp(found)
