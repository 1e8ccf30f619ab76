r"""Topic shares that vary from row to row: the evidence of rows for clusters, and the concentration of the shares.

Rows of one cluster mix the topics a little differently: :math:`\theta_i \sim` Dirichlet(:math:`c \theta_q`) and
:math:`x_i \sim` Multinomial(:math:`L_i, \theta_i \beta`). The larger the concentration c, the more alike the rows; as c
goes to infinity, this becomes the multinomial model of the search.

**Evidence.** The likelihood of a row has no closed form. Its variational bound with :math:`a = c \theta_q`,

.. math:: \log p(x | q) \ge \sum_v x_v \log \sum_k \beta_{kv} e^{\eta_k} - KL(Dir(a + s) || Dir(a)),
          \quad \eta_k = \psi(a_k + s_k) - \psi(c + L), \quad s_k = \sum_v x_v \phi_{vk},

is that of latent Dirichlet allocation with one prior for each cluster. Probabilities computed from it are calibrated
when the parameters are the true ones.

**Concentration.** Maximizing this bound over c overestimates it, and so do labels: a row that strays far from its
cluster is labeled as one of another. The estimate is therefore a moment, taken over soft assignments. Let
:math:`p = \theta_q \beta`, :math:`g_k(v) = \beta_{kv} / p_v - 1`, :math:`G = \beta\, diag(1/p)\, \beta'`, and
:math:`z = \sum_v x_v g(v)`. Two different counts of a row are independent given its shares, so

.. math:: u(x) = \frac{z' G^{-1} z - \sum_v x_v g(v)' G^{-1} g(v)}{L (L - 1)}

has the expectation
:math:`E (\theta_i - \theta_q)' G (\theta_i - \theta_q) = (\sum_k \theta_{qk} G_{kk} - 1) / (c + 1)`, whatever the
length of the row. Posterior weights :math:`w_{iq} = P(q | x_i)` keep the moments unbiased, because
:math:`E\, w_{iq} h(x_i) = \pi_q E_q h(x)`. A few EM steps update weights, shares of the clusters and concentration; the
shares of a cluster are those of its weighted sum of rows, each row divided by its variance inflation
:math:`1 + (L - 1) / (c + 1)`.

**Topics.** Latent Dirichlet allocation has one prior for all rows, which pulls their shares toward equality. Its topics
compensate by being purer than the true ones, and in terms of purer topics, shares vary less: a concentration of 5 is
estimated as 6.4 on average, with the topics of a fit. The EM steps therefore re-estimate the topics, starting from
the topic counts from which they were learned, with the prior of each cluster for its rows.

All clusters have the same concentration. With one for each cluster, a cluster that is broader than the others takes
over their rows on real counts: real clusters are not shaped like a single Dirichlet distribution, and a broad one fits
whatever the others leave. For the same reason, every cluster keeps a mode, :math:`c\, \theta_{qk} \ge 1` for some k: a
Dirichlet distribution with all parameters below one has a mode in every corner and would be several clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import digamma, gammaln, softmax

from mmpca import kernels
from mmpca.backend import SERIAL, Threads
from mmpca.counts import Counts
from mmpca.engine.bound import Prior
from mmpca.engine.state import from_sums

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

LARGEST_CONCENTRATION = 1e5  # beyond which a row of any length looks multinomial
LARGEST_VARIANCE = 0.99  # of shares, relative to rows with a single topic
EM_STEPS = 10
MOST_EXPECTED = 2_000_000  # shares of topics, for each row and cluster, in memory at a time
SAME_WEIGHT = 0.005  # mean share of a row that moves between clusters; a step that moves less is the last
LEAST_WEIGHT = 1e-4  # of a row in the moments of a cluster
LEAST_EIGENVALUE = 1e-8  # relative to the largest: topics that can be told apart in a cluster
POOLING_STEPS = 4  # weights of rows and clusters depend on the result, but hardly
LEAST_SHARE = 1e-12  # of a topic: its logarithm must stay finite
ENTRIES_AT_ONCE = 2**21  # times topics, in a temporary array
LEAST_OTHERS = 0.5  # counts of a feature in other rows; the counts computed from topics are approximate
SMALLEST = np.finfo(np.float64).tiny
NEW_ROW = -1  # cluster of a row that has contributed to none
REACH = 12.0  # EM skips clusters estimated to be more nats than this behind a row's best one


# --- evidence ---------------------------------------------------------------------------------------------------


class LeftOut(NamedTuple):
    """Fitted rows, to be judged without their own contribution to their cluster.

    Attributes
    ----------
    labels : array of int, shape (N,)
        Cluster of each row; `NEW_ROW` for rows that were not fitted.
    topic_params : array of shape (Q, K)
        Parameters of the Dirichlet posteriors of the clusters' topic shares (gamma): prior plus topic counts.
    sizes : array of shape (Q,)
        Rows in each cluster.
    prior : float or array of shape (K,)
        The prior (alpha), which remains when the last row has left.
    topic_counts : array of shape (K, V), optional
        Expected counts of the features in topics that were learned from the rows; if given, rows also leave them.
    smoothing : float
        Counts added to each feature of each topic.
    """

    labels: Labels
    topic_params: Array
    sizes: Array
    prior: Prior
    topic_counts: Array | None = None
    smoothing: float = 0.0


def plain_evidence(x: Array, beta: Array, prior: Array, *, tol: float = 1e-10, max_iter: int = 10_000) -> float:
    """Return the bound on log p(x), without the multinomial coefficient; x: (V,), beta: (K, V), prior: (K,)."""
    known = (x > 0) & (beta.max(axis=0) > 0)
    x, beta = x[known], beta[:, known]
    s = np.full_like(prior, x.sum() / len(prior))
    weight = np.exp(digamma(prior + s) - digamma(prior.sum() + x.sum()))
    for _ in range(max_iter):
        last, s = s, weight * (beta @ (x / (weight @ beta)))
        eta = digamma(prior + s) - digamma(prior.sum() + x.sum())
        weight = np.exp(eta)
        if np.abs(s - last).max() < tol:
            break
    divergence = (
        gammaln(prior.sum() + s.sum())
        - gammaln(prior + s).sum()
        - gammaln(prior.sum())
        + gammaln(prior).sum()
        + s @ eta
    )
    return float(x @ np.log(weight @ beta) - divergence)


def row_evidence(
    rows: Counts,
    *,
    topics: Array,
    cluster_topics: Array,
    concentration: Array,
    left_out: LeftOut | None = None,
    reach: float = np.inf,
    expected: Array | None = None,
    threads: Threads = SERIAL,
) -> Array:
    """Return log p(x_i | cluster q), shape (N, Q), without multinomial coefficients and unknown features.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    topics : array of shape (K, V)
    cluster_topics : array of shape (Q, K)
    concentration : array of shape (Q,)
        Of the rows' topic shares in each cluster; the rows of a cluster with an infinite one are multinomial.
    left_out : LeftOut, optional
        Rows to judge without their own contribution.
    reach : float
        To save time, the evidence may be minus infinity for clusters that seem to be more than this many nats behind
        the best one, by the multinomial log-likelihood divided by the inflation of the variance.
    expected : array of shape (N, Q, K), optional
        Overwritten in place with exp(eta) of each row in each cluster; only without `left_out` and if all shares vary.
    threads : Threads
        The result does not depend on them.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> clusters = {"topics": np.eye(2), "cluster_topics": np.array([[0.9, 0.1], [0.1, 0.9]])}
    >>> for c in (np.inf, 10.0, 1.0):
    ...     evidence = row_evidence(as_counts([[6, 2]]), **clusters, concentration=np.full(2, c))
    ...     print(c, (evidence[0, 0] - evidence[0, 1]).round(2))
    inf 8.79
    10.0 4.2
    1.0 0.88
    """
    concentration = np.where(concentration < LARGEST_CONCENTRATION, concentration, np.inf)
    shares = np.maximum(cluster_topics, LEAST_SHARE)
    evidence = np.empty((rows.n_rows, len(shares)))
    own = np.full(rows.n_rows, NEW_ROW, np.int32) if left_out is None else np.asarray(left_out.labels, dtype=np.int32)
    own_shares = shares[own] if left_out is None else shares_without_row(rows, topics, left_out)  # (N, K)
    common: dict[str, Any] = {
        "cluster_topics": shares,
        "concentration": concentration,
        "reach": reach,
        "expected": expected,
        "threads": threads,
    }
    if left_out is None or left_out.topic_counts is None:
        return _evidence(rows, topics, own, own_shares, **common)
    for part, _, own_topics in topics_of_entries(rows, topics, left_out):
        some = rows.take(part)
        entries = Counts(some.indptr, np.arange(some.nnz, dtype=np.int32), some.data, some.nnz)  # a feature for each
        evidence[part] = _evidence(entries, own_topics.T, own[part], own_shares[part], **common)
    return evidence


def _evidence(
    rows: Counts,
    topics: Array,
    own: Labels,
    own_shares: Array,
    *,
    cluster_topics: Array,
    concentration: Array,
    reach: float,
    expected: Array | None,
    threads: Threads,
) -> Array:
    """Return log p(x_i | cluster q), (N, Q), where the shares of the row's own cluster are `own_shares`, (N, K)."""
    evidence = np.empty((rows.n_rows, len(cluster_topics)))
    varies = np.isfinite(concentration)
    if not varies.all():
        fixed = np.flatnonzero(~varies)
        evidence[:, fixed] = _multinomial_evidence(rows, topics, cluster_topics[fixed])
        at = np.flatnonzero(np.isin(own, fixed) & (own != NEW_ROW))
        evidence[at, own[at]] = own_multinomial_evidence(rows.take(at), topics, own_shares[at])
    if varies.any():
        found = np.flatnonzero(varies)
        position = np.full(len(cluster_topics) + 1, NEW_ROW, np.int32)  # the last entry is that of `NEW_ROW`
        position[found] = np.arange(len(found))
        priors = np.ascontiguousarray(concentration[found, None] * cluster_topics[found])
        own_priors = np.where(varies[own], concentration[own], 1.0)[:, None] * own_shares
        some, part = np.arange(rows.n_rows), np.zeros((rows.n_rows, len(found)))
        if np.isfinite(reach):
            logs = _multinomial_evidence(rows, topics, cluster_topics[found])
            inflation = 1.0 + (rows.row_totals()[:, None] - 1.0) / (concentration[found] + 1.0)
            part[logs < logs.max(axis=1, keepdims=True) - reach * inflation] = -np.inf
        kernel = partial(kernels.evidence_of_rows, rows, np.ascontiguousarray(topics.T), topics.max(axis=0), priors)
        weights = np.empty((rows.n_rows, 0, 0)) if expected is None else expected
        threads.for_rows(kernel, some, position[own], own_priors, part, weights)
        evidence[:, found] = part
    return evidence


def _multinomial_evidence(rows: Counts, topics: Array, shares: Array) -> Array:
    """Return sum_v x_iv log (theta_q beta)_v, (N, Q); features that no topic has contribute zero."""
    profiles = shares @ topics  # (Q, V)
    logs = np.log(np.maximum(profiles, SMALLEST), out=np.zeros_like(profiles), where=topics.any(axis=0))
    evidence: Array = rows.to_csr() @ np.ascontiguousarray(logs.T)
    return evidence


def own_multinomial_evidence(rows: Counts, topics: Array, shares: Array) -> Array:
    """Return sum_v x_iv log (theta_i beta)_v, (N,), with shares of their own for all rows, (N, K)."""
    evidence = np.zeros(rows.n_rows)
    for part, row, joint in _entries(rows, topics, shares):
        profile = joint.sum(axis=1)
        logs = np.log(profile, out=np.zeros_like(profile), where=profile > 0)
        evidence[part] = np.bincount(row, rows.take(part).data * logs, len(evidence[part]))
    return evidence


def shares_without_row(rows: Counts, topics: Array, left_out: LeftOut) -> Array:
    r"""Return the topic shares of each row's cluster without the row, (N, K); of any cluster for new rows.

    The row has contributed :math:`s_k = \sum_v x_v \phi_{qvk}` to the parameters of its cluster, where :math:`\phi` is
    the share of topic k in feature v of the cluster. They are subtracted, though no more than there is.
    """
    params = left_out.topic_params[left_out.labels]  # (N, K)
    shares = params / params.sum(axis=1, keepdims=True)
    without = params.copy()
    for part, row, joint in _entries(rows, topics, shares):
        total = joint.sum(axis=1)
        ratio = np.divide(rows.take(part).data, total, out=np.zeros_like(total), where=total > 0)
        for k in range(without.shape[1]):
            without[part, k] -= np.bincount(row, ratio * joint[:, k], len(without[part]))
    without = np.maximum(without, left_out.prior)
    result: Array = np.maximum(without / without.sum(axis=1, keepdims=True), LEAST_SHARE)
    return result


def topics_of_entries(
    rows: Counts, topics: Array, left_out: LeftOut | None = None
) -> Iterator[tuple[slice, NDArray[np.intp], Array]]:
    r"""Yield slices of the rows, with the row of each of their entries, (n,), and its topics without the row, (n, K).

    Of the counts :math:`N_{kv}` of feature v in topic k, row i of cluster q has contributed
    :math:`x_{iv} \phi_{qvk}`. Without the row, with b counts added to each feature, the topic is

    .. math:: \beta^{(-i)}_{kv} \propto \beta_{kv} \frac{N_{kv} - x_{iv} \phi_{qvk} + b}{N_{kv} + b}

    A feature that occurs in no other row is unknown without the row, like unseen features of new rows.
    """
    width = len(topics) if left_out is None else max(left_out.topic_params.shape)
    n_at_once = max(1, ENTRIES_AT_ONCE * rows.n_rows // (rows.nnz * width + 1))
    for start in range(0, rows.n_rows, n_at_once):
        part = slice(start, min(start + n_at_once, rows.n_rows))
        some = rows.take(part)
        row = np.repeat(np.arange(some.n_rows), np.diff(some.indptr))
        found = topics.T[some.indices]  # (n, K)
        if left_out is None or left_out.topic_counts is None:
            yield part, row, found
            continue
        labels, totals = left_out.labels[part], left_out.topic_counts.sum(axis=1)
        counts, added = left_out.topic_counts.T[some.indices], left_out.smoothing * np.count_nonzero(topics.any(axis=0))
        own = left_out.topic_params[labels][row] * found
        total = own.sum(axis=1)
        is_own = (total > 0) & (labels != NEW_ROW)[row]
        own *= np.divide(some.data, total, out=np.zeros_like(total), where=is_own)[:, None]  # x phi
        own = np.minimum(own, counts)
        sums = np.zeros((some.n_rows, len(totals)))
        for k in range(len(totals)):
            sums[:, k] = np.bincount(row, own[:, k], some.n_rows)
        left = np.maximum(totals + added, SMALLEST) / np.maximum(totals - sums + added, SMALLEST)  # (n_rows, K)
        base = np.maximum(counts + left_out.smoothing, SMALLEST)
        found = found * (base - own) / base * left[row]
        found[is_own & (counts.sum(axis=1) - some.data < LEAST_OTHERS)] = 0.0
        yield part, row, found


def _entries(rows: Counts, topics: Array, shares: Array) -> Iterator[tuple[slice, NDArray[np.intp], Array]]:
    """Yield slices of the rows, with the row of each of their entries, (n,), and theta_ik beta_kv, (n, K)."""
    for part, row, found in topics_of_entries(rows, topics):
        yield part, row, shares[part][row] * found


def log_weights_without_row(weights: Array, left_out: LeftOut) -> Array:
    """Return log pi_q for each row, (N, Q), where the row's own cluster has one row less, though at least one half."""
    sizes = np.tile(np.asarray(left_out.sizes, dtype=np.float64), (len(left_out.labels), 1))  # (N, Q)
    fitted = np.flatnonzero(left_out.labels != NEW_ROW)
    own = left_out.labels[fitted]
    change = np.zeros_like(sizes)
    change[fitted, own] = np.log(np.maximum(sizes[fitted, own] - 1.0, 0.5) / sizes[fitted, own])
    logs: Array = np.log(weights) + change
    return logs


# --- concentration ----------------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """Moments of some rows in one cluster."""

    values: Array  # u(x_i), (n,)
    scale: float  # E u(x) = scale / (c + 1)
    rank: int  # topics that can be told apart


def share_moments(rows: Counts, beta: Array, theta: Array) -> Moments:
    """Return u(x_i) of each row, zero for rows of a single count; see above. beta: (K, V), theta: (K,)."""
    profile = theta @ beta  # (V,)
    present = np.unique(rows.indices)
    present = present[profile[present] > 0]
    gram = (beta / np.where(profile > 0, profile, 1.0)) @ beta.T  # G, (K, K)
    values, vectors = np.linalg.eigh(gram)
    kept = values > LEAST_EIGENVALUE * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])  # root root' is the pseudo-inverse of G
    # G theta = 1, so centered features have z' G^-1 z as squared length after this projection.
    features = np.zeros((rows.n_features, int(kept.sum())))
    features[present] = (beta[:, present] / profile[present] - 1.0).T @ root  # (n, rank)
    X = rows.to_csr()
    pairs = ((X @ features) ** 2).sum(axis=1) - X @ (features**2).sum(axis=1)
    lengths = rows.row_totals().astype(np.float64)
    scale = float(theta @ np.diag(gram) - 1.0)
    return Moments(pairs / np.maximum(lengths * (lengths - 1.0), 1.0), scale, int(kept.sum()))


def share_variance(moments: list[Moments], lengths: list[Array], weights: list[Array], *, start: float = 0.0) -> float:
    r"""Return the estimate of 1 / (c + 1) common to some clusters, from moments, lengths and weights of their rows.

    The noise of u(x) is about :math:`2 (v / L + \rho s)^2 / v`, with v = rank - 1, s the scale and :math:`\rho` the
    estimate, so rows are weighted by the inverse of its square root squared, and clusters by the inverse variance of
    their estimates. The shares of a cluster were fitted to the same rows, which makes u smaller by
    :math:`2 \omega_i V_i - \sum_j \omega_j^2 V_j`, where :math:`\omega_i` is the weight of the row in the shares and
    :math:`V_i = v / L_i + \rho s (1 - 1 / L_i)` its variance; this is added back.
    """
    pooled = start
    for _ in range(POOLING_STEPS):
        total = precision = 0.0
        for (values, scale, rank), L, w in zip(moments, lengths, weights, strict=True):
            if rank < 2 or scale <= LEAST_SHARE:
                continue
            inflation = 1.0 + (L - 1.0) * pooled * scale / (rank - 1)
            by_row = w * (L / inflation) ** 2 * (L > 1)
            if by_row.sum() <= 0:
                continue
            omega = w * L / inflation / (w * L / inflation).sum()
            noise, signal = (rank - 1) / L, scale * (1.0 - 1.0 / L)  # V = noise + rho signal
            lost_noise = 2.0 * by_row @ (omega * noise) - by_row.sum() * (omega**2 @ noise)
            kept_signal = by_row.sum() * scale - 2.0 * by_row @ (omega * signal) + by_row.sum() * (omega**2 @ signal)
            if kept_signal <= LEAST_SHARE * by_row.sum() * scale:
                continue
            estimate = (by_row @ values + lost_noise) / kept_signal
            variance = 2.0 / (rank - 1) * (by_row**2 @ (noise + pooled * signal) ** 2) / kept_signal**2
            total, precision = total + estimate / variance, precision + 1.0 / variance
        if precision == 0.0:
            return 0.0
        pooled = float(np.clip(total / precision, 0.0, LARGEST_VARIANCE))
    return pooled


class VaryingShares(NamedTuple):
    """Clusters estimated from soft assignments, and how much the topic shares of their rows vary."""

    concentration: float  # infinity if they do not vary
    topics: Array  # (K, V)
    cluster_topics: Array  # (Q, K)
    weights: Array  # (Q,)


def fit_varying_shares(
    rows: Counts,
    labels: ArrayLike,
    *,
    topics: Array,
    n_clusters: int,
    alpha: Prior,
    topic_counts: Array | None = None,
    smoothing: float = 0.0,
    threads: Threads = SERIAL,
) -> VaryingShares:
    """Estimate the concentration of the rows' topic shares around those of their clusters, and the clusters with it.

    Parameters
    ----------
    rows : Counts of shape (N, V)
        No empty rows.
    labels : array-like of int, shape (N,)
        Clusters of the rows; EM starts from them.
    topics : array of shape (K, V)
    n_clusters : int
    alpha : float or array of shape (K,)
        Prior of the clusters' topic shares.
    topic_counts : array of shape (K, V), optional
        Expected counts of the features in topics that were learned from these rows, and perhaps from others. If given,
        the topics are re-estimated together with the shares.
    smoothing : float
        Pseudocount added to each feature of re-estimated topics.
    threads : Threads
        The result does not depend on them.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> rng = np.random.default_rng(0)
    >>> shares = rng.dirichlet([14, 6], size=300)  # concentration 20
    >>> X = as_counts([rng.multinomial(100, p) for p in shares])
    >>> round(fit_varying_shares(X, np.zeros(300, int), topics=np.eye(2), n_clusters=1, alpha=1.0).concentration)
    20
    """
    X, lengths = rows.to_csr(), rows.row_totals().astype(np.float64)
    weights = np.zeros((rows.n_rows, n_clusters))
    weights[np.arange(rows.n_rows), np.asarray(labels)] = 1.0
    variance, gamma, other_counts, expected, n_at_once = 0.0, None, None, None, rows.n_rows
    if topic_counts is not None:
        share_of_others = max(0.0, 1.0 - lengths.sum() / topic_counts.sum())
        other_counts = share_of_others * topic_counts + smoothing * topics.any(axis=0)
        n_at_once = max(1, MOST_EXPECTED // (n_clusters * len(topics)))
        expected = np.zeros((min(n_at_once, rows.n_rows), n_clusters, len(topics)))
    for step in range(EM_STEPS + 1):
        # M-step: weights and topic shares of the clusters, then the variance of shares around them.
        sizes = weights.sum(axis=0) + 1.0
        inflated = weights / (1.0 + (lengths[:, None] - 1.0) * variance)
        sums = np.ascontiguousarray((X.T @ inflated).T)
        gamma = from_sums(sums, np.ones(n_clusters), beta=topics, alpha=alpha, gamma=gamma).clusters.gamma
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        members = [np.flatnonzero(weights[:, q] > LEAST_WEIGHT) for q in range(n_clusters)]
        at = [q for q in range(n_clusters) if len(members[q])]
        moments = threads.map(
            lambda q: share_moments(rows.take(members[q]), topics, theta[q]),  # noqa: B023 - called at once
            at,
        )
        variance = share_variance(
            moments,
            [lengths[members[q]] for q in at],
            [weights[members[q], q] for q in at],
            start=variance,
        )
        variance = min(variance, 1.0 / (1.0 / theta.max(axis=1).min() + 1.0))  # c theta_qk >= 1 for some k
        found = VaryingShares(_concentration(variance), topics, theta, sizes / sizes.sum())
        if step == EM_STEPS or variance == 0.0:
            break
        # E-step: the probability of each cluster.
        before, weights, counts = weights, np.empty_like(weights), other_counts
        for first in range(0, rows.n_rows, n_at_once):
            part = slice(first, min(first + n_at_once, rows.n_rows))
            some, own = rows.take(part), None if expected is None else expected[: part.stop - first]
            evidence = row_evidence(
                some,
                topics=topics,
                cluster_topics=theta,
                concentration=np.full(n_clusters, found.concentration),
                reach=REACH,
                expected=own,
                threads=threads,
            )
            weights[part] = softmax(evidence + np.log(found.weights), axis=1)
            if own is not None and counts is not None:
                counts = counts + expected_topic_counts(some, topics, weights[part], own)
        if counts is not None and np.isfinite(found.concentration):
            topics = counts / np.maximum(counts.sum(axis=1, keepdims=True), SMALLEST)
        if np.abs(weights - before).sum() < 2.0 * SAME_WEIGHT * rows.n_rows:
            break
    return found


def expected_topic_counts(rows: Counts, topics: Array, weights: Array, expected: Array) -> Array:
    r"""Return the expected counts of features in topics, (K, V), from exp(eta) of each row and cluster, (N, Q, K).

    They are :math:`\sum_{iq} w_{iq} x_{iv} \phi_{iqvk}`, with :math:`\phi_{iqvk}` proportional to
    :math:`\beta_{kv} e^{\eta_{iqk}}`.
    """
    counts = np.zeros_like(topics)
    for q in range(weights.shape[1]):
        members = np.flatnonzero(weights[:, q] > LEAST_WEIGHT)
        own, shares, w = rows.take(members), expected[members, q], weights[members, q]
        for part, row, joint in _entries(own, topics, shares):
            some, total = own.take(part), joint.sum(axis=1)
            ratios = np.divide(w[part][row] * some.data, total, out=np.zeros_like(total), where=total > 0)
            table = sparse.csr_array((ratios, some.indices, some.indptr), shape=(some.n_rows, some.n_features))
            counts += (table.T @ shares[part]).T
    result: Array = counts * topics
    return result


def _concentration(variance: float) -> float:
    """Return c from 1 / (c + 1)."""
    return 1.0 / variance - 1.0 if variance > 1.0 / LARGEST_CONCENTRATION else float("inf")
