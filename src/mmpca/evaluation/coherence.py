r"""How well the leading features of a topic belong together, and how much topics differ.

Two features belong together if they occur in the same rows. With D(a) the number of rows with feature a, D(a, b) the
number of rows with both, and N the number of all rows,

.. math::

    NPMI(a, b) = \log \frac{N D(a, b)}{D(a) D(b)} \Big/ \log \frac{N}{D(a, b)}
    \qquad
    UMass(a, b) = \log \frac{D(a, b) + 1}{D(b)}

where b comes before a in the topic.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.counts import Counts, as_counts
from mmpca.parameters import Rule, check_parameters, integer, one_of, real

Array = NDArray[np.float64]

# Mimno et al. (2011): one row is added, so that the logarithm is finite for a pair that never occurs together.
SMOOTHING = 1.0
POSITIVE = Rule(lambda value: real(0).holds(value) and value > 0, "a positive number")


def topic_coherence(
    topics: ArrayLike,
    X: Any,
    *,
    measure: Literal["npmi", "umass"] = "npmi",
    n_words: int = 10,
    smoothing: float = SMOOTHING,
) -> Array:
    """Return the mean coherence of all pairs of each topic's leading features; larger is better.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features)
        Topics, such as ``model.components_``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Counts whose rows are searched for pairs of features; the counts of the fit, or others.
    measure : {"npmi", "umass"}, default="npmi"
        "npmi", normalized pointwise mutual information, is between -1 (never in the same row) and 1 (always), and 0
        for independent features. "umass" is a log probability, at most about 0.
    n_words : int, default=10
        Number of leading features of each topic, at least 2. Features without counts in `X` are skipped.
    smoothing : float, default=1.0
        Rows added to the number of each pair by "umass".

    Returns
    -------
    coherence : ndarray of shape (n_topics,)
        NaN for a topic with fewer than two features.

    Examples
    --------
    >>> from mmpca.evaluation import topic_coherence
    >>> X = [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 2, 0]]
    >>> topic_coherence([[0.6, 0.4, 0, 0], [0.5, 0, 0.5, 0]], X)
    array([ 1., -1.])
    """
    rules = {"measure": one_of(*_MEASURES), "n_words": integer(2), "smoothing": POSITIVE}
    check_parameters({"measure": measure, "n_words": n_words, "smoothing": smoothing}, rules)
    matrix, rows = _check_topics(topics), as_counts(X, empty_rows="allow")
    if matrix.shape[1] != rows.n_features:
        raise ValueError(
            f"topics and X must have the same features, but topics have {matrix.shape[1]} and X has "
            f"{rows.n_features}. Count the features of the model in X."
        )
    leading = _leading(np.where(rows.column_totals() > 0, matrix, 0.0), n_words)
    used = np.unique(np.concatenate(leading))
    together = _rows_together(rows, used)
    return np.array(
        [
            _mean_of_pairs(_MEASURES[measure], together, np.searchsorted(used, features), rows.n_rows, smoothing)
            for features in leading
        ]
    )


def topic_diversity(topics: ArrayLike, *, n_words: int = 25) -> float:
    """Return the share of distinct features among the leading features of all topics: 1 if no two topics share any.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features)
        Topics, such as ``model.components_``.
    n_words : int, default=25
        Number of leading features of each topic.

    Returns
    -------
    diversity : float
        A number from 1 / n_topics to 1.

    Examples
    --------
    >>> from mmpca.evaluation import topic_diversity
    >>> topic_diversity([[0.6, 0.4, 0], [0.6, 0, 0.4]], n_words=2)
    0.75
    """
    check_parameters({"n_words": n_words}, {"n_words": integer(1)})
    leading = np.concatenate(_leading(_check_topics(topics), n_words))
    return len(np.unique(leading)) / len(leading)


def _check_topics(topics: ArrayLike) -> Array:
    """Return topics as a matrix; raise ValueError unless each row can be a distribution."""
    matrix = np.asarray(topics, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or not (matrix >= 0).all() or not matrix.any(axis=1).all():
        raise ValueError(
            "topics must be a matrix of probabilities with one row per topic, but it has shape "
            f"{matrix.shape}, negative or missing values, or a row of zeros. Pass model.components_."
        )
    return matrix


def _leading(topics: Array, n_words: int) -> list[NDArray[np.intp]]:
    """Return the most probable features of each topic, ties in order of the features."""
    ordered = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    return [features[topic[features] > 0] for features, topic in zip(ordered, topics, strict=True)]


def _rows_together(rows: Counts, features: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the number of rows with both features of each pair, (F, F)."""
    has = rows.to_csr()[:, features].astype(np.int64)
    has.data[:] = 1
    return np.asarray((has.T @ has).toarray(), dtype=np.int64)


def _mean_of_pairs(
    pair_value: Any, together: NDArray[np.int64], at: NDArray[np.intp], n_rows: int, smoothing: float
) -> float:
    """Return the mean over all pairs of one topic's features, `at` in descending order of their probability."""
    if len(at) < 2:
        return np.nan
    first, second = np.array(list(combinations(at.tolist(), 2))).T
    alone = np.diag(together)
    return float(np.mean(pair_value(alone[first], alone[second], together[first, second], n_rows, smoothing)))


def _npmi(first: Array, second: Array, both: Array, n_rows: int, _: float) -> Array:
    """Return the normalized pointwise mutual information; 0 for two features that occur in every row."""
    value = np.where(both == 0, -1.0, 0.0)
    at = (both > 0) & (both < n_rows)
    value[at] = np.log(n_rows * both[at] / (first[at] * second[at])) / np.log(n_rows / both[at])
    return value


def _umass(first: Array, second: Array, both: Array, n_rows: int, smoothing: float) -> Array:
    """Return the log probability of the second feature in a row with the first, the more probable one."""
    value: Array = np.log((both + smoothing) / first)
    return value


_MEASURES = {"npmi": _npmi, "umass": _umass}
