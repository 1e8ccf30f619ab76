"""Topics from a latent Dirichlet allocation of the rows, by collapsed variational Bayes of order zero (CVB0)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts

Array = NDArray[np.float64]

ROW_PRIOR = 1.0  # as published
SMOOTHING = 0.05
MAX_PASSES = 200
MAX_SHARES = 20_000_000  # topic shares of tokens held at a time, in single precision: 80 MB
REFINING_PASSES = 3


def learn_topics(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    row_prior: float = ROW_PRIOR,
    smoothing: float = SMOOTHING,
    max_passes: int = MAX_PASSES,
    tol: float = 1e-4,
    callback: Callable[[int], object] | None = None,
) -> Array:
    """Return topics (K, V) that mix to the rows, each row having shares of its own.

    CVB0 keeps shares for every nonzero entry. Where these would be more than `MAX_SHARES`, the topics are learned on as
    many rows, drawn at random, as keep below it, and refined by a few passes of variational EM over all rows.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    rng : Generator
        Draws the starting shares.
    row_prior, smoothing : float
        Symmetric Dirichlet priors of the rows' shares and of the topics.
    max_passes : int
    tol : float
        Stop when the shares change by less than this on average.
    callback : callable, optional
        Called with the number of the pass after each; a true answer stops there.

    Returns
    -------
    beta : array of shape (K, V)
        Rows sum to one. Features that occur nowhere have probability zero in every topic.
    """
    sample = _sample_rows(rows, n_topics, rng)
    counts = _cvb0(rows.take(sample) if len(sample) < rows.n_rows else rows, n_topics, rng, row_prior, smoothing,
                   max_passes, tol, callback)  # fmt: skip
    is_present = rows.column_totals() > 0
    beta = _normalise(counts + smoothing, is_present)
    if len(sample) < rows.n_rows:
        for _ in range(REFINING_PASSES):
            beta = _normalise(_expected_counts(rows, beta, row_prior) + smoothing, is_present)
    return beta


def _sample_rows(rows: Counts, n_topics: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all rows, or as many at random as keep the shares of their tokens within `MAX_SHARES`."""
    if rows.nnz * n_topics <= MAX_SHARES:
        return np.arange(rows.n_rows)
    order = rng.permutation(rows.n_rows)
    shares = np.cumsum(np.diff(rows.indptr)[order]) * n_topics
    return order[: max(1, int(np.searchsorted(shares, MAX_SHARES)))]


def _cvb0(
    rows: Counts,
    n_topics: int,
    rng: np.random.Generator,
    row_prior: float,
    smoothing: float,
    max_passes: int,
    tol: float,
    callback: Callable[[int], object] | None,
) -> Array:
    """Return the expected counts of features in topics, (V, K)."""
    share = rng.random((rows.nnz, n_topics), dtype=np.float32)
    share /= share.sum(axis=1, keepdims=True)
    n_present = int((rows.column_totals() > 0).sum())
    row_counts, feature_counts = _sums(rows, share)
    topic_counts = feature_counts.sum(axis=0)
    for number in range(1, max_passes + 1):
        change = kernels.cvb0_pass(
            rows, share, row_counts, feature_counts, topic_counts, row_prior, smoothing, n_present
        )
        if (callback is not None and callback(number)) or change < tol:
            break
    return np.maximum(feature_counts, 0.0)  # sums of differences may end a rounding error below zero


def _sums(rows: Counts, share: NDArray[np.float32]) -> tuple[Array, Array]:
    """Return the counts of topics in rows (N, K) and in features (V, K)."""
    row_of_entry = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    by_row, by_feature = np.empty((rows.n_rows, share.shape[1])), np.empty((rows.n_features, share.shape[1]))
    for k in range(share.shape[1]):
        weighted = rows.data * share[:, k].astype(np.float64)
        by_row[:, k] = np.bincount(row_of_entry, weighted, rows.n_rows)
        by_feature[:, k] = np.bincount(rows.indices, weighted, rows.n_features)
    return by_row, by_feature


def _expected_counts(rows: Counts, beta: Array, row_prior: float) -> Array:
    """Return the expected counts of features in topics (V, K) under variational posteriors of all rows."""
    every = np.arange(rows.n_rows)
    beta_rows = np.ascontiguousarray(beta.T)
    gamma, counts = np.empty((rows.n_rows, len(beta))), np.zeros_like(beta_rows)
    kernels.fold_in(rows, every, beta_rows, row_prior, 1e-3, 30, gamma)
    kernels.accumulate_topics(rows, every, beta_rows, gamma, counts)
    return counts


def _normalise(counts: Array, is_present: NDArray[np.bool_]) -> Array:
    """Return topics (K, V) from counts (V, K), absent features left out."""
    beta = np.where(is_present[:, None], counts, 0.0).T
    return np.ascontiguousarray(beta / beta.sum(axis=1, keepdims=True))
