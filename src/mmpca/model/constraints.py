"""What parameters, topics and labels have to be; every message says what was expected, what came and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts, transposition_hint
from mmpca.places import Place

Array = NDArray[np.float64]

ALGORITHMS = ("greedy", "exact", "cvem", "vbem")
STARTS = ("auto", "random", "kmeans", "anneal")
TOPICS = ("lda", "random")
SUM_TOLERANCE = 1e-6


class Rule(NamedTuple):
    """What a parameter must satisfy, and how to say so."""

    holds: Callable[[Any], bool]
    expected: str


def is_integer(value: Any, least: int) -> bool:
    """Tell whether a value is a whole number, and not below the least."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_real(value: Any, least: float) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and np.isfinite(float(value)) and float(value) >= least


def _is_array(value: Any) -> bool:
    if isinstance(value, str):
        return False
    try:
        return np.ndim(value) > 0
    except ValueError:  # rows of different lengths
        return False


RULES: dict[str, Rule] = {
    "n_clusters": Rule(lambda value: is_integer(value, 1), "a whole number of at least 1"),
    "n_topics": Rule(lambda value: is_integer(value, 1), "a whole number of at least 1"),
    "topics": Rule(
        lambda value: _is_array(value) or value in TOPICS,
        'one of "lda", "random", or an array of shape (n_topics, n_features)',
    ),
    # Beyond these, the divergence from the prior is lost in the rounding of its terms.
    "topic_prior": Rule(lambda value: _is_real(value, 1e-6) and value <= 1e8, "a number from 1e-6 to 1e8"),
    "start": Rule(
        lambda value: _is_array(value) or value in STARTS,
        'one of "auto", "random", "kmeans", "anneal", or an array of labels of shape (n_samples,)',
    ),
    "n_init": Rule(
        lambda value: (isinstance(value, str) and value == "auto") or is_integer(value, 1),
        '"auto" or a whole number of at least 1',
    ),
    "algorithm": Rule(lambda value: isinstance(value, str) and value in ALGORITHMS, f"one of {ALGORITHMS}"),
    "stabilize": Rule(lambda value: value is None or (isinstance(value, str) and value == "sqrt"), 'None or "sqrt"'),
    "max_epochs": Rule(lambda value: is_integer(value, 0), "a whole number of at least 0"),
    "tol": Rule(lambda value: _is_real(value, 0.0), "a finite number of at least 0"),
    "refit_topics": Rule(lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "n_jobs": Rule(
        lambda value: value is None or (is_integer(value, -(2**31)) and value != 0), "None or a whole number but 0"
    ),
    "verbose": Rule(lambda value: isinstance(value, bool) or is_integer(value, 0), "a whole number of at least 0"),
}


def check_parameters(parameters: Mapping[str, Any], rules: Mapping[str, Rule] = RULES) -> None:
    """Raise ValueError for the first parameter that breaks its rule."""
    for name, rule in rules.items():
        value = parameters[name]
        if not rule.holds(value):
            shown = f"an array of shape {np.shape(value)}" if _is_array(value) else short_repr(value)
            raise ValueError(f"{name} must be {rule.expected}, but it is {shown}.")


def check_sizes(rows: Counts | Place, n_clusters: int, n_topics: int) -> None:
    """Raise ValueError unless there are enough rows for the clusters and enough features for the topics."""
    if n_clusters > rows.n_rows:
        raise ValueError(
            f"n_clusters={n_clusters} clusters need as many rows, but n_samples = {rows.n_rows}. "
            "Lower n_clusters or give more rows." + _hint(rows)
        )
    if n_topics > rows.n_features:
        raise ValueError(
            f"n_topics={n_topics} topics need as many features, but n_features = {rows.n_features}. "
            "Lower n_topics or give more features." + _hint(rows)
        )


def _hint(rows: Counts | Place) -> str:
    hint = transposition_hint(rows) if isinstance(rows, Counts) else None
    return "" if hint is None else f" {hint}"


def check_labels(labels: Any, n_samples: int, n_clusters: int) -> NDArray[np.int32]:
    """Return given starting labels as int32; every cluster must have a row."""
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(
            f"start must hold one label for each of the {n_samples} rows, but its shape is {values.shape}. "
            f"Give an array of shape ({n_samples},)."
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"start must hold whole numbers from 0 to {n_clusters - 1}, but its type is {values.dtype}. "
            "Turn names into numbers first, e.g. with numpy.unique(labels, return_inverse=True)[1]."
        )
    outside = np.flatnonzero(~((values >= 0) & (values < n_clusters) & (values == np.floor(values))))
    if outside.size:
        i = outside[0]
        raise ValueError(
            f"start must hold whole numbers from 0 to {n_clusters - 1}, but start[{i}] = {values[i]}. "
            "Renumber the labels or raise n_clusters."
        )
    empty = np.flatnonzero(np.bincount(values.astype(np.int64), minlength=n_clusters) == 0)
    if empty.size:
        raise ValueError(
            f"start must use all {n_clusters} clusters, but cluster {empty[0]} has no row. "
            "Renumber the labels without gaps or lower n_clusters."
        )
    return values.astype(np.int32)


def check_topics(topics: Any, n_topics: int, column_totals: NDArray[Any]) -> Array:
    """Return given topics as float64, (K, V); rows must sum to one and every present feature must be possible."""
    beta = np.asarray(topics)
    if beta.dtype.kind not in "biuf":
        raise ValueError(
            f"topics must be a dense array of numbers, but its type is {getattr(topics, 'dtype', beta.dtype)} in a "
            f"{type(topics).__name__}. Convert it, e.g. with topics.toarray() or topics.astype(float)."
        )
    beta = beta.astype(np.float64)
    expected = (n_topics, len(column_totals))
    if beta.shape != expected:
        remedy = "Pass topics.T." if beta.T.shape == expected else "Give one row a topic and one column a feature."
        raise ValueError(
            f"topics must have shape (n_topics, n_features) = {expected}, but it is {beta.shape}. {remedy}"
        )
    wrong = np.argwhere(~np.isfinite(beta) | (beta < 0))
    if len(wrong):
        k, v = wrong[0]
        raise ValueError(
            f"topics must hold probabilities, but topics[{k}, {v}] = {beta[k, v]}. Replace negative and missing values."
        )
    sums = beta.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if off.size:
        raise ValueError(
            f"each row of topics must sum to one, but row {off[0]} sums to {sums[off[0]]:.6g}. "
            "Divide: topics / topics.sum(axis=1, keepdims=True)."
        )
    impossible = np.flatnonzero((column_totals > 0) & (beta.sum(axis=0) == 0))
    if impossible.size:
        v = impossible[0]
        raise ValueError(
            f"a feature that occurs needs a positive probability in some topic, but feature {v} occurs "
            f"{column_totals[v]} times and has probability zero in all of them ({impossible.size} such features). "
            "Smooth the topics, e.g. add 1e-6 and divide by the sums again, or drop the feature."
        )
    return beta / sums[:, None]
