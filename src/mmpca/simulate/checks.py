"""Checks of the simulator's arguments: what was expected, what came, what to do."""

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# Rows of float32 probabilities still pass; a forgotten normalisation does not.
_SUM_TOLERANCE = 1e-6

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def check_positive_integer(value: Any, *, name: str) -> int:
    """Return `value` as an int of at least one."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {number}.")
    return number


def check_positive_number(value: Any, *, name: str, at_most: float = np.inf) -> float:
    """Return `value` as a finite float above zero and not above `at_most`."""
    number = _as_float(value)
    if not (0 < number <= at_most and number < np.inf):
        bound = "" if at_most == np.inf else f" of at most {at_most:g}"
        raise ValueError(f"{name} must be a positive finite number{bound}, got {value!r}.")
    return number


def check_probability(value: Any, *, name: str) -> float:
    """Return `value` as a float between zero and one."""
    number = _as_float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} is a probability and must be between 0 and 1, got {value!r}.")
    return number


def _as_float(value: Any) -> float:
    """Return `value` as a float; NaN, which passes no comparison, if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def check_distributions(values: npt.ArrayLike, *, name: str, axes: str) -> npt.NDArray[np.float64]:
    """Return a copy of `values` as a matrix whose rows are probability distributions.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
    name : str
        How the caller knows the argument.
    axes : str
        What rows and columns are, for the message: "(n_topics, n_features)".
    """
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"{name} must be a non-empty matrix of shape {axes}, got shape {matrix.shape}. "
            "Write a single distribution as a matrix with one row."
        )
    wrong = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"{name} must hold finite probabilities of at least 0, got {matrix[row, column]} in row {row}, "
            f"column {column}. Replace it, then divide the row by its sum."
        )
    sums = matrix.sum(axis=1)
    row = int(np.abs(sums - 1).argmax())
    if abs(sums[row] - 1) > _SUM_TOLERANCE:
        raise ValueError(
            f"each row of {name} must sum to 1, but row {row} sums to {sums[row]:.6g}. "
            f"Divide by the row sums: {name} / {name}.sum(axis=1, keepdims=True)."
        )
    return matrix


def check_weights(weights: npt.ArrayLike | None, n_clusters: int) -> npt.NDArray[np.float64]:
    """Return the cluster weights, divided by their sum; uniform weights for None."""
    if weights is None:
        return np.full(n_clusters, 1 / n_clusters)
    vector = np.array(weights, dtype=np.float64)
    if vector.shape != (n_clusters,):
        raise ValueError(
            f"weights must have one entry for each of the {n_clusters} rows of cluster_topics, "
            f"got shape {vector.shape}. Pass {n_clusters} numbers, or None for equal weights."
        )
    wrong = np.flatnonzero(~(np.isfinite(vector) & (vector >= 0)))
    if len(wrong):
        raise ValueError(
            f"weights must be finite and at least 0, got {vector[wrong[0]]} for cluster {wrong[0]}. "
            "Use 0 for a cluster without rows."
        )
    if not vector.any():
        raise ValueError("weights must have a positive sum, got zeros only. Pass None for equal weights.")
    return vector / vector.sum()


def check_lengths(lengths: npt.ArrayLike, n_samples: int) -> npt.NDArray[np.int64]:
    """Return the row totals as a vector of `n_samples` positive integers."""
    totals = np.asarray(lengths)
    if totals.dtype.kind not in "iu":
        raise ValueError(
            f"lengths must be integers, got dtype {totals.dtype}. Round them: np.rint(lengths).astype(int)."
        )
    if totals.ndim > 0 and totals.shape != (n_samples,):
        raise ValueError(
            f"lengths must be one integer or one for each of the {n_samples} rows, got shape {totals.shape}. "
            f"Pass an array of shape ({n_samples},), or set n_samples to its length."
        )
    totals = np.broadcast_to(totals, (n_samples,)).astype(np.int64)
    if totals.min() < 1:
        row = int(totals.argmin())
        raise ValueError(
            f"lengths must be at least 1, got {totals[row]} for row {row}: an empty row tells nothing about "
            "its cluster. Leave that row out or make it longer."
        )
    return totals


def check_feature_names(names: npt.ArrayLike | None, n_features: int) -> npt.NDArray[np.str_]:
    """Return one name per feature; "x0", "x1", ... for None, as scikit-learn does."""
    if names is None:
        return np.array([f"x{v}" for v in range(n_features)])
    array = np.array(names, dtype=np.str_)
    if array.shape != (n_features,):
        raise ValueError(
            f"feature_names must have one name for each of the {n_features} columns of topics, "
            f"got shape {array.shape}. Pass {n_features} names, or None for x0, x1, ..."
        )
    return array


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy Generator: the given one, or a new one seeded with `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        # Drawn, not copied: two calls with the same RandomState give different data, as with a Generator.
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a non-negative integer, a numpy.random.Generator or a "
            f"numpy.random.RandomState, got {random_state!r}."
        ) from None
