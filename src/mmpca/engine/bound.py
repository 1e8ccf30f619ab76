r"""The variational bound in plain NumPy: every formula of the search, readable; the test oracle of the kernels.

Symbols and shapes (``docs/notation.md`` has the complete list)::

    m      (V,)     counts of one meta-observation M_q, the sum of the rows in cluster q
    beta   (K, V)   topics, rows sum to one
    gamma  (K,)     parameters of q(theta_q) = Dirichlet(gamma)
    alpha  (K,)     Dirichlet prior of theta_q; a number stands for the same prior of every topic
    eta    (K,)     E[log theta_q] = digamma(gamma) - digamma(sum gamma)

With the topic assignments of tokens optimized out, a cluster contributes

.. math:: J(m, \gamma) = \sum_v m_v \log \sum_k \beta_{kv} e^{\eta_k} - KL(Dir(\gamma) \| Dir(\alpha))

and the bound of a partition is the sum of :math:`\max_\gamma J(M_q, \gamma)` plus
:math:`\sum_q n_q \log(n_q / N)`. Multinomial coefficients do not depend on the partition and are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, polygamma, xlogy

Array = NDArray[np.float64]
Prior = float | Array  # of one topic like the other, or of each topic, (K,)


def expected_log_theta(gamma: Array) -> Array:
    """Return eta = E[log theta] under Dirichlet(gamma); the last axis runs over topics."""
    return digamma(gamma) - digamma(gamma.sum(axis=-1, keepdims=True))


def dirichlet_divergence(gamma: Array, alpha: Prior) -> float:
    """Return KL( Dirichlet(gamma) || Dirichlet(alpha) )."""
    alpha = np.full_like(gamma, alpha)
    return float(
        gammaln(gamma.sum())
        - gammaln(gamma).sum()
        - gammaln(alpha.sum())
        + gammaln(alpha).sum()
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


def cluster_bound(m: Array, gamma: Array, *, beta: Array, alpha: Prior) -> float:
    """Return J(m, gamma), the contribution of one cluster to the bound."""
    return float(xlogy(m, mixture(beta, gamma)).sum()) - dirichlet_divergence(gamma, alpha)


def ve_step(
    m: Array,
    *,
    beta: Array,
    alpha: Prior,
    gamma: Array | None = None,
    tol: float = 1e-13,
    max_iter: int = 100_000,
) -> Array:
    """Maximize J(m, .) by its fixed point gamma_k = alpha + sum_v m_v phi_vk, from `gamma` or from equal shares."""
    n_topics = len(beta)
    gamma = np.full(n_topics, alpha + m.sum() / n_topics) if gamma is None else gamma
    for _ in range(max_iter):
        previous = gamma
        gamma = alpha + m @ responsibilities(beta, gamma)
        if np.abs(gamma - previous).max() <= tol * gamma.max():
            break
    return gamma


def topic_counts(d: Array, gamma: Array, *, beta: Array) -> Array:
    """Return s(d), (K,): the expected counts of topics in the counts d (V,), s_k = sum_v d_v phi_vk."""
    return np.asarray(d @ responsibilities(beta, gamma))


def information(gamma: Array) -> Array:
    r"""Return :math:`T = diag(\psi'(\gamma)) - \psi'(\sum \gamma) 1 1'`, (K, K), the derivative of eta by gamma."""
    return np.diag(polygamma(1, gamma)) - polygamma(1, gamma.sum())


def topic_curvature(m: Array, gamma: Array, *, beta: Array, alpha: Prior) -> Array:
    r"""Return A, (K, K): the second derivative of max J along a change d of the counts is s(d)' A s(d).

    :math:`A = (T^{-1} - diag(\gamma - \alpha) + S)^{-1}` with :math:`S = \sum_v m_v \phi_v \phi_v'`.
    """
    if gamma.size == 1:
        return np.zeros((1, 1))  # one topic: theta is a constant, max J is linear in m
    phi = responsibilities(beta, gamma)
    overlap = (phi * m[:, None]).T @ phi
    inverse: Array = np.linalg.inv(information(gamma)) - np.diag(gamma - alpha) + overlap
    return np.linalg.inv(inverse).astype(np.float64)


def spread(m: Array, gamma: Array, *, beta: Array, alpha: Prior) -> Array:
    r"""Return :math:`U_v = \sqrt{\phi_v' A \phi_v}`, (V,).

    By the triangle inequality in the metric of A, :math:`s(d)' A s(d) \le (\sum_v d_v U_v)^2`: a bound on the
    second-order term of any row that needs no product with A.
    """
    phi = responsibilities(beta, gamma)
    curvature = topic_curvature(m, gamma, beta=beta, alpha=alpha)
    return np.asarray(np.sqrt(np.maximum(np.einsum("vk,kl,vl->v", phi, curvature, phi), 0.0)))


def loose_spread(m: Array, gamma: Array, *, beta: Array, alpha: Prior) -> Array:
    r"""Return an upper bound on :func:`spread` that needs only the diagonal of A, (V,).

    A - T is positive semidefinite, so :math:`\phi' (A - T) \phi \le (\sum_k \phi_k \sqrt{(A - T)_{kk}})^2`.
    """
    phi = responsibilities(beta, gamma)
    coupling = topic_curvature(m, gamma, beta=beta, alpha=alpha) - information(gamma)
    frozen = phi**2 @ polygamma(1, gamma) - polygamma(1, gamma.sum())  # phi' T phi
    released = phi @ np.sqrt(np.maximum(np.diag(coupling), 0.0))
    return np.where(phi.any(axis=1), np.sqrt(np.maximum(frozen + released**2, 0.0)), 0.0)


# --- a row against a cluster ------------------------------------------------------------------------------------


def exact_change(d: Array, m: Array, *, beta: Array, alpha: Prior, sign: int = 1) -> float:
    """Return max J at m + sign d minus max J at m."""
    after, before = (ve_step(counts, beta=beta, alpha=alpha) for counts in (m + sign * d, m))
    bound_after = cluster_bound(m + sign * d, after, beta=beta, alpha=alpha)
    return bound_after - cluster_bound(m, before, beta=beta, alpha=alpha)


def second_order_change(d: Array, m: Array, gamma: Array, *, beta: Array, alpha: Prior, sign: int = 1) -> float:
    """Return the expansion of max J at m + sign d minus max J at m, to second order in d."""
    s = topic_counts(d, gamma, beta=beta)
    curvature = topic_curvature(m, gamma, beta=beta, alpha=alpha)
    return sign * first_order(d, gamma, beta=beta) + float(0.5 * s @ curvature @ s)


def first_order(d: Array, gamma: Array, *, beta: Array) -> float:
    """Return G(d) = sum_v d_v C_v with C_v = log sum_k beta_kv exp(eta_k)."""
    return float(xlogy(d, mixture(beta, gamma)).sum())


def expansion(
    d: Array,
    m: Array,
    gamma: Array,
    *,
    beta: Array,
    alpha: Prior,
    sign: int = 1,
    drift: Array | None = None,
) -> float:
    r"""Return the change of max J at M + sign d, accurate to second order, and exact if topics share no feature.

    With the responsibilities of all tokens held fixed, the change is exactly
    :math:`\pm (G(d) - s' \eta) + \log B(\gamma \pm s) - \log B(\gamma)`, where B is the multivariate beta function.
    Releasing them adds :math:`s' (A - T) s / 2` to second order. So the error is of third order in the overlap of the
    topics alone. Counts D moved since gamma was computed enter through their drift s(D), (K,), in the same way.
    """
    s = topic_counts(d, gamma, beta=beta)
    drift = np.zeros_like(s) if drift is None else drift
    coupling = topic_curvature(m, gamma, beta=beta, alpha=alpha) - information(gamma)
    start = np.maximum(gamma + drift, 0.5 * alpha)  # the floor matters for rows as large as the cluster
    end = np.maximum(start + sign * s, 0.5 * alpha)
    frozen = sign * (first_order(d, gamma, beta=beta) - s @ expected_log_theta(gamma)) + log_beta(end) - log_beta(start)
    return float(frozen + s @ coupling @ (0.5 * s + sign * drift))


def log_beta(gamma: Array) -> float:
    """Return the logarithm of the multivariate beta function."""
    return float(gammaln(gamma).sum() - gammaln(gamma.sum()))


def screened_gain(first_old: float, first_new: float, spread_old: float, spread_new: float) -> float:
    r"""Return an upper bound on the second-order gain of a move, apart from the terms of the sizes.

    The arguments are G(d) and sum_v d_v U_v of the row d in its own and in another cluster. The second-order term of an
    addition falls on the way to M + d, so it is at most :math:`(\sum_v d_v U_v)^2 / 2`; that of a removal grows, at
    most to twice its mean.
    """
    return first_new - first_old + 0.5 * spread_new**2 + 2.0 * 0.5 * spread_old**2


def assignment_scores(d: Array, gamma: Array, sizes: NDArray[np.int64], *, beta: Array) -> Array:
    """Return G_q(d) + log n_q for all clusters with parameters gamma (Q, K), (Q,): C-VEM takes the largest."""
    return np.array([first_order(d, row, beta=beta) for row in gamma]) + np.log(sizes)


# --- partitions -------------------------------------------------------------------------------------------------


def partition_bound(counts: Array, sizes: NDArray[np.int64], *, beta: Array, alpha: Prior) -> float:
    """Return the bound of a partition from its meta-observations M (Q, V) and cluster sizes (Q,)."""
    clusters = sum(cluster_bound(m, ve_step(m, beta=beta, alpha=alpha), beta=beta, alpha=alpha) for m in counts)
    return float(clusters + xlogy(sizes, sizes / sizes.sum()).sum())


def size_terms(sizes: ArrayLike) -> Array:
    """Return n log n of sizes, 0 for a size of 0."""
    n = np.asarray(sizes, dtype=np.float64)
    return np.asarray(xlogy(n, n), dtype=np.float64)


def merge_loss(values: ArrayLike, sizes: ArrayLike, pooled: float) -> float:
    """Return the loss of the bound when clusters with these J and sizes become one with J = `pooled`."""
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
