r"""The variational bound in plain NumPy: what the kernels compute, readable, and their test oracle.

Symbols and shapes (the whole dictionary is in ``docs/notation.md``)::

    m      (V,)     counts of one meta-observation M_q, the sum of the rows in cluster q
    beta   (K, V)   topics, rows sum to one
    gamma  (K,)     parameters of q(theta_q) = Dirichlet(gamma)
    alpha  float    symmetric Dirichlet prior of theta_q
    eta    (K,)     E[log theta_q] = digamma(gamma) - digamma(sum gamma)

With the token assignments optimised out, a cluster contributes

.. math:: J(m, \gamma) = \sum_v m_v \log \sum_k \beta_{kv} e^{\eta_k} - KL(Dir(\gamma) \| Dir(\alpha))

and the bound of a partition is the sum of :math:`\max_\gamma J(M_q, \gamma)` plus
:math:`\sum_q n_q \log(n_q / N)`. Multinomial coefficients do not depend on the partition and are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, polygamma, xlogy

Array = NDArray[np.float64]


def expected_log_theta(gamma: Array) -> Array:
    """Return eta = E[log theta] under Dirichlet(gamma); the last axis runs over topics."""
    return digamma(gamma) - digamma(gamma.sum(axis=-1, keepdims=True))


def dirichlet_divergence(gamma: Array, alpha: float) -> float:
    """Return KL( Dirichlet(gamma) || Dirichlet(alpha, ..., alpha) )."""
    n_topics = gamma.size
    return float(
        gammaln(gamma.sum())
        - gammaln(gamma).sum()
        - gammaln(n_topics * alpha)
        + n_topics * gammaln(alpha)
        + (gamma - alpha) @ expected_log_theta(gamma)
    )


def mixture(beta: Array, gamma: Array) -> Array:
    """Return p_v = sum_k beta_kv exp(eta_k), shape (V,)."""
    return np.exp(expected_log_theta(gamma)) @ beta


def responsibilities(beta: Array, gamma: Array) -> Array:
    """Return phi_vk, the share of topic k in feature v, shape (V, K); rows of absent features are zero."""
    joint = beta.T * np.exp(expected_log_theta(gamma))  # (V, K)
    total = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)


def cluster_bound(m: Array, gamma: Array, *, beta: Array, alpha: float) -> float:
    """Return J(m, gamma), the contribution of one cluster to the bound."""
    return float(xlogy(m, mixture(beta, gamma)).sum()) - dirichlet_divergence(gamma, alpha)


def ve_step(
    m: Array,
    *,
    beta: Array,
    alpha: float,
    gamma: Array | None = None,
    tol: float = 1e-13,
    max_iter: int = 100_000,
) -> Array:
    """Maximise J(m, .) by its fixed point gamma_k = alpha + sum_v m_v phi_vk, from `gamma` or from equal shares."""
    n_topics = len(beta)
    gamma = np.full(n_topics, alpha + m.sum() / n_topics) if gamma is None else gamma
    for _ in range(max_iter):
        previous = gamma
        gamma = alpha + m @ responsibilities(beta, gamma)
        if np.abs(gamma - previous).max() <= tol * gamma.max():
            break
    return gamma


def topic_curvature(m: Array, gamma: Array, *, beta: Array, alpha: float) -> Array:
    r"""Return A, (K, K): the second derivative of max J along a change d of the counts is s(d)' A s(d).

    :math:`A = (T^{-1} - diag(\gamma - \alpha) + S)^{-1}` with
    :math:`T = diag(\psi'(\gamma)) - \psi'(\sum \gamma) 1 1'` and :math:`S = \sum_v m_v \phi_v \phi_v'`.
    """
    if gamma.size == 1:
        return np.zeros((1, 1))  # one topic: theta is a constant, max J is linear in m
    information = np.diag(polygamma(1, gamma)) - polygamma(1, gamma.sum())
    phi = responsibilities(beta, gamma)
    overlap = (phi * m[:, None]).T @ phi
    inverse: Array = np.linalg.inv(information) - np.diag(gamma - alpha) + overlap
    return np.linalg.inv(inverse).astype(np.float64)


def second_order_change(d: Array, m: Array, gamma: Array, *, beta: Array, alpha: float, sign: int = 1) -> float:
    """Return the expansion of max J at m + sign * d minus max J at m, to second order in d."""
    present = d > 0
    log_mixture = np.log(mixture(beta, gamma)[present])
    s = d @ responsibilities(beta, gamma)
    curvature = topic_curvature(m, gamma, beta=beta, alpha=alpha)
    return float(sign * d[present] @ log_mixture + 0.5 * s @ curvature @ s)


def partition_bound(counts: Array, sizes: NDArray[np.int64], *, beta: Array, alpha: float) -> float:
    """Return the bound of a partition from its meta-observations M (Q, V) and cluster sizes (Q,)."""
    clusters = sum(cluster_bound(m, ve_step(m, beta=beta, alpha=alpha), beta=beta, alpha=alpha) for m in counts)
    return float(clusters + xlogy(sizes, sizes / sizes.sum()).sum())


def size_terms(sizes: ArrayLike) -> Array:
    """Return n log n of sizes, 0 for a size of 0."""
    n = np.asarray(sizes, dtype=np.float64)
    return np.asarray(xlogy(n, n), dtype=np.float64)


def merge_loss(values: ArrayLike, sizes: ArrayLike, pooled: float) -> float:
    """Return what the bound loses when clusters with these J and sizes become one with J = `pooled`."""
    before = np.sum(values) + size_terms(sizes).sum()
    return float(before - pooled - size_terms(np.sum(sizes)))


def size_changes(sizes: NDArray[np.int64]) -> Array:
    """Return the changes of n log n when a row leaves or joins each cluster, (2, Q)."""
    return np.stack([size_terms(sizes - 1), size_terms(sizes + 1)]) - size_terms(sizes)


def icl(bound: float, *, n_clusters: int, n_topics: int, n_samples: int, n_features: int) -> float:
    """Return the paper's integrated classification likelihood; larger is better.

    The D of the paper's formula is the number of rows.

    Examples
    --------
    >>> round(icl(-1000.0, n_clusters=2, n_topics=3, n_samples=50, n_features=21), 3)
    -1022.75
    """
    topics = 0.5 * n_topics * (n_features - 1) * np.log(n_clusters)
    weights = 0.5 * (n_clusters - 1) * np.log(n_samples)
    return float(bound - topics - weights)
