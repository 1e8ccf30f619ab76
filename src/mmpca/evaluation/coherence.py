r"""How well the leading features of a topic belong together, and how far topics differ.

Two features belong together if the same rows have them. With D(a) the number of rows that have feature a, D(a, b) of
those that have both, and N of all rows,

.. math::

    NPMI(a, b) = \log \frac{N D(a, b)}{D(a) D(b)} \Big/ \log \frac{N}{D(a, b)}
    \qquad
    UMass(a, b) = \log \frac{D(a, b) + 1}{D(b)}

with b before a in the topic. Only the leading features are counted, from sparse columns.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.counts import Counts, as_counts

Array = NDArray[np.float64]
Measure = Literal["npmi", "umass"]

# Mimno et al. (2011): one row more than were seen, so that a pair without any has a logarithm.
SMOOTHING = 1.0


def topic_coherence(
    topics: ArrayLike, X: Any, *, measure: Measure = "npmi", n_words: int = 10, smoothing: float = SMOOTHING
) -> Array:
    """Return the mean over all pairs of each topic's leading features; larger is better.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features)
        ``model.components_``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Counts in which features are looked for; those that were fitted, or others.
    measure : {"npmi", "umass"}, default="npmi"
        "npmi" is between -1 (never in the same row) and 1 (always), 0 for independent features; "umass" is the
        logarithm of a probability, at most about 0.
    n_words : int, default=10
        Leading features of each topic, at least 2. Features that `X` does not have are passed over.
    smoothing : float, default=1.0
        Rows added to each pair's number in "umass".

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
    topics, rows = _checked(topics, X, n_words)
    pair_value = _MEASURES.get(measure)
    if pair_value is None:
        raise ValueError(f"measure must be one of {', '.join(_MEASURES)}, got {measure!r}.")
    if not smoothing > 0:
        raise ValueError(f"smoothing must be a positive number, got {smoothing!r}.")
    leading = _leading(np.where(rows.column_totals() > 0, topics, 0.0), n_words)
    used = np.unique(np.concatenate(leading))
    together = _rows_together(rows, used)
    places = [np.searchsorted(used, features) for features in leading]
    return np.array([_mean_of_pairs(pair_value, together, place, rows.n_rows, smoothing) for place in places])


def topic_diversity(topics: ArrayLike, *, n_words: int = 25) -> float:
    """Return the share of distinct features among the leading ones of all topics: 1 if no two topics share any.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_features)
        ``model.components_``.
    n_words : int, default=25
        Leading features of each topic.

    Returns
    -------
    diversity : float

    Examples
    --------
    >>> from mmpca.evaluation import topic_diversity
    >>> topic_diversity([[0.6, 0.4, 0], [0.6, 0, 0.4]], n_words=2)
    0.75
    """
    leading = np.concatenate(_leading(_checked_topics(topics, n_words, least=1), n_words))
    return len(np.unique(leading)) / len(leading)


def _checked(topics: ArrayLike, X: Any, n_words: int) -> tuple[Array, Counts]:
    """Return topics and counts over the same features."""
    matrix, rows = _checked_topics(topics, n_words, least=2), as_counts(X, empty_rows="allow")
    if matrix.shape[1] != rows.n_features:
        raise ValueError(
            f"topics and X must have the same features, but topics have {matrix.shape[1]} and X has "
            f"{rows.n_features}. Count X with the words of the model."
        )
    return matrix, rows


def _checked_topics(topics: ArrayLike, n_words: int, *, least: int) -> Array:
    matrix = np.asarray(topics, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or not (matrix >= 0).all() or not matrix.any(axis=1).all():
        raise ValueError(
            f"topics must be a matrix of probabilities, a row for each topic, got shape {matrix.shape} or values "
            "below 0. Give model.components_."
        )
    if not isinstance(n_words, int | np.integer) or n_words < least:
        raise ValueError(f"n_words must be a whole number of at least {least}, got {n_words!r}.")
    return matrix


def _leading(topics: Array, n_words: int) -> list[NDArray[np.intp]]:
    """Return the most probable features of each topic, the first of equals first."""
    ordered = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    return [features[topic[features] > 0] for features, topic in zip(ordered, topics, strict=True)]


def _rows_together(rows: Counts, features: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return in how many rows each two of some features occur, (F, F); on the diagonal those that have one."""
    has = rows.to_csr()[:, features].astype(np.int64)
    has.data[:] = 1
    return np.asarray((has.T @ has).toarray(), dtype=np.int64)


def _mean_of_pairs(
    pair_value: Any, together: NDArray[np.int64], place: NDArray[np.intp], n_rows: int, smoothing: float
) -> float:
    """Return the mean over the pairs of one topic's features, which stand in the order of their probability."""
    if len(place) < 2:
        return np.nan
    first, second = np.array(list(combinations(place.tolist(), 2))).T
    alone = np.diag(together)
    return float(np.mean(pair_value(alone[first], alone[second], together[first, second], n_rows, smoothing)))


def _npmi(first: Array, second: Array, both: Array, n_rows: int, _: float) -> Array:
    """Return the normalised pointwise mutual information; 0 for two features that every row has."""
    value = np.where(both == 0, -1.0, 0.0)
    at = (both > 0) & (both < n_rows)
    value[at] = np.log(n_rows * both[at] / (first[at] * second[at])) / np.log(n_rows / both[at])
    return value


def _umass(first: Array, second: Array, both: Array, n_rows: int, smoothing: float) -> Array:
    """Return the log probability of the second feature in a row that has the first, the more probable one."""
    value: Array = np.log((both + smoothing) / first)
    return value


_MEASURES = {"npmi": _npmi, "umass": _umass}
