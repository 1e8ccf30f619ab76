r"""Intervals for the topic shares of clusters, by refits to simulated rows.

The topics are estimated together with the shares, and where every cluster mixes all topics, they come out as mixtures
of the true ones: the error of the shares is mostly bias, several times their standard error. Rows simulated from a fit
and fitted again show it. Each round moves the parameters from which rows are simulated by the difference between the
fit and the mean of the refits, until refits reproduce the fit on average. The parameters are then corrected for bias;
but a correction is no more than an estimate, so the interval allows for a remaining bias as large as the correction
itself. With standard error s and correction d, its half-width is s times the quantile of the absolute value of a normal
variable with mean d / s and variance 1, as in honest confidence intervals (Armstrong and Kolesar, 2018).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.stats import ncx2

from mmpca.backend import LocalRows
from mmpca.counts import as_counts
from mmpca.errors import InterruptedSearchWarning

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]

N_ROUNDS, N_REFITS = 4, 6  # refits in each round


def theta_interval(model: MMPCA, level: float, rng: np.random.RandomState) -> Array:
    """Return the lower and upper limits of the topic shares of clusters, (2, Q, K); see above."""
    found = (model.cluster_topics_, model.components_)
    theta, beta = found
    spreads: list[Array] = []
    for _ in range(N_ROUNDS):
        refits = [_refit(model, theta, beta, rng) for _ in range(N_REFITS)]
        means = [np.mean(parts, axis=0) for parts in zip(*refits, strict=True)]
        spreads.append(np.var([refit[0] for refit in refits], axis=0, ddof=1).mean(axis=1))  # (Q,)
        theta, beta = (_shares(at + fit - mean) for at, fit, mean in zip((theta, beta), found, means, strict=True))
    # Counts that vary more than multinomial ones make sums of rows vary more by the same factor.
    index = model.overdispersion_ if model.overdispersion_ > 1 else 1.0
    error = np.sqrt(index * np.mean(spreads[-2:], axis=0))  # (Q,)
    correction = np.sqrt(((theta - found[0]) ** 2).mean(axis=1))  # (Q,)
    half = error.copy()
    varies = error > 0
    half[varies] *= np.sqrt(ncx2.ppf(level, 1, (correction[varies] / error[varies]) ** 2))
    # For a correction of many standard errors, the noncentral distribution is lost in rounding.
    normal = correction + error * np.sqrt(ncx2.ppf(2 * level - 1, 1, 0)) if level > 0.5 else correction
    half = np.where(np.isfinite(half), half, normal)[:, None]
    return np.clip(np.stack([theta - half, theta + half]), 0.0, 1.0)


def _refit(model: MMPCA, theta: Array, beta: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Simulate the fitted rows under other parameters; return shares (Q, K) and topics (K, V) of a fit to them."""
    sizes, n_clusters = model.cluster_sizes, len(theta)
    labels = model.labels_ if len(model.labels_) == sizes.sum() else np.repeat(np.arange(n_clusters), sizes)
    lengths = np.maximum(np.rint(model.unit_counts.sum(axis=1) / np.maximum(sizes, 1)), 1).astype(np.int64)  # (Q,)
    profiles = _shares(theta @ beta)
    rows = sparse.vstack([sparse.csr_array(rng.multinomial(lengths[q], profiles[q])[None]) for q in labels])
    is_learned = model.topics_source_ in ("lda", "mixture", "tfidf")  # others are as fixed in the refit as in the fit
    refit = type(model)(
        n_clusters,
        len(beta),
        topics=model.topics_source_ if is_learned else model.components_,
        topic_prior=float(np.mean(model.topic_prior_)) if is_learned else model.topic_prior_,
        dispersion="multinomial",
        start=labels,
        temperature=1.0,
        verbose=0,
        random_state=rng.randint(2**31),
    )
    counts = as_counts(sparse.csr_array(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedSearchWarning)
        try:
            refit.fit_rows(LocalRows(counts), attributes={"n_features_in_": counts.n_features})
        except InterruptedSearchWarning:  # Ctrl-C means all refits
            raise KeyboardInterrupt from None
    topics = linear_sum_assignment(-(np.sqrt(beta) @ np.sqrt(refit.components_).T))[1]
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, (labels, refit.labels_), 1)
    clusters = linear_sum_assignment(-table)[1]
    return refit.cluster_topics_[clusters][:, topics], refit.components_[topics]


def _shares(values: Array) -> Array:
    """Return nonnegative values that sum to one in each row."""
    values = np.maximum(values, 0.0)
    shares: Array = values / values.sum(axis=1, keepdims=True)
    return shares
