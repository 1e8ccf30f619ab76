"""What a model file may say: which arrays and numbers a fitted model has, and what each must satisfy.

A fitted attribute that is missing here cannot be saved; a test of the estimator finds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.errors import ModelFileError
from mmpca.model.constraints import SUM_TOLERANCE
from mmpca.model.starts import StartReport

Sizes = dict[str, int]
# Returns what is wrong with an array, or nothing.
Check = Callable[[NDArray[Any], Sizes], str | None]


def _is_finite(array: NDArray[Any], sizes: Sizes) -> str | None:
    return None if np.isfinite(array).all() else "holds values that are missing or infinite"


def _is_index(array: NDArray[Any], sizes: Sizes) -> str | None:
    inside = (array >= 0).all() and (array < sizes["Q"]).all()
    return None if inside else f"holds labels outside of 0 to {sizes['Q'] - 1}"


def _is_positive(array: NDArray[Any], sizes: Sizes) -> str | None:
    return _is_finite(array, sizes) or (None if (array > 0).all() else "holds values that are not positive")


def _is_distribution(array: NDArray[Any], sizes: Sizes) -> str | None:
    if (wrong := _is_finite(array, sizes)) is not None:
        return wrong
    if (array < 0).any():
        return "holds negative probabilities"
    sums = array.sum(axis=-1)
    return None if (np.abs(sums - 1.0) <= SUM_TOLERANCE).all() else "holds probabilities that do not sum to one"


def _is_sum_of_counts(array: NDArray[Any], sizes: Sizes) -> str | None:
    whole = _is_finite(array, sizes) or (None if (array == np.floor(array)).all() else "holds fractions of counts")
    return whole or (None if (array >= 0).all() else "holds negative counts")


def _is_index_of_variance(array: NDArray[Any], sizes: Sizes) -> str | None:
    """NaN stands for clusters in which there is nothing to compare."""
    return None if (np.isnan(array) | ((array >= 0) & np.isfinite(array))).all() else "holds impossible variances"


class ArrayRule(NamedTuple):
    """Type and dimensions of an array, by letters that stand for the same size everywhere, and what its values are."""

    dtype: str
    dimensions: str
    check: Check


# N rows, Q clusters, K topics, V features, E entries of the history.
ARRAYS = {
    "labels_": ArrayRule("<i4", "N", _is_index),
    "weights_": ArrayRule("<f8", "Q", _is_distribution),
    "cluster_counts_": ArrayRule("<f8", "QV", _is_sum_of_counts),
    "components_": ArrayRule("<f8", "KV", _is_distribution),
    "cluster_topics_": ArrayRule("<f8", "QK", _is_distribution),
    "cluster_topic_params_": ArrayRule("<f8", "QK", _is_positive),
    "bound_history_": ArrayRule("<f8", "E", _is_finite),
    "cluster_overdispersion_": ArrayRule("<f8", "Q", _is_index_of_variance),
}
# Parameters given as arrays. What was given may have been changed after the fit: its sizes are its own.
PARAMETER_ARRAYS = {
    "topics": ArrayRule("<f8", "kv", _is_distribution),
    "start": ArrayRule("<i8", "n", _is_finite),
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


class ScalarRule(NamedTuple):
    """How a number is stored and restored, and what it must satisfy; None in a file is NaN in a model."""

    restore: Callable[[Any], Any]
    holds: Callable[[Any], bool]
    expected: str


_NUMBER = ScalarRule(float, _is_number, "a finite number")
_COUNT = ScalarRule(int, _is_count, "a whole number of at least 0")
_CLAIM = ScalarRule(bool, lambda value: type(value) is bool, "true or false")
SCALARS = {
    "bound_": _NUMBER,
    "icl_": _NUMBER,
    "refit_bound_": _NUMBER,
    "n_epochs_": _COUNT,
    "converged_": _CLAIM,
    "n_features_in_": _COUNT,
    "overdispersion_": ScalarRule(
        lambda value: math.nan if value is None else float(value),
        lambda value: value is None or (_is_number(value) and value >= 0),
        "null or a number of at least 0",
    ),
    "_mean_length": ScalarRule(float, lambda value: _is_number(value) and value > 0, "a positive number"),
}
_START_RULES = {
    "kind": ScalarRule(str, lambda value: isinstance(value, str), "a word"),
    "seed": _COUNT,
    "bound": _NUMBER,
    "n_epochs": _COUNT,
    "converged": _CLAIM,
    "seconds": _NUMBER,
}


def check_arrays(arrays: Mapping[str, NDArray[Any]], rules: Mapping[str, ArrayRule]) -> Sizes:
    """Return the sizes that all arrays agree on, or raise for the first that breaks its rule."""
    sizes: Sizes = {}
    for name, rule in rules.items():
        array = arrays[name]
        if array.dtype != np.dtype(rule.dtype) or array.ndim != len(rule.dimensions) or 0 in array.shape:
            raise ModelFileError(
                f"Array {name} must have {len(rule.dimensions)} dimensions, none of them empty, and type {rule.dtype}, "
                f"but it has shape {array.shape} and type {array.dtype.str}."
            )
        for letter, size in zip(rule.dimensions, array.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ModelFileError(
                    f"Array {name} has shape {array.shape}, but other arrays have {sizes[letter]} in place of {size}."
                )
    for name, rule in rules.items():
        if (wrong := rule.check(arrays[name], sizes)) is not None:
            raise ModelFileError(f"Array {name} {wrong}: the file is damaged or was not written by mmpca.")
    return sizes


def restore_scalars(values: Any, rules: Mapping[str, ScalarRule], where: str) -> dict[str, Any]:
    """Return the numbers of an object that has exactly the given keys."""
    if not isinstance(values, dict) or values.keys() != rules.keys():
        raise ModelFileError(f"{where} must have exactly the entries {', '.join(rules)}.")
    for name, rule in rules.items():
        if not rule.holds(values[name]):
            raise ModelFileError(f"{name} of {where} must be {rule.expected}, but it is not.")
    return {name: rule.restore(values[name]) for name, rule in rules.items()}


def restore_starts(values: Any) -> list[StartReport]:
    """Return the reports of the starts."""
    if not isinstance(values, list) or not values:
        raise ModelFileError("starts must be a list with an entry for each start.")
    return [StartReport(**restore_scalars(value, _START_RULES, "a start")) for value in values]


def plain(value: Any) -> Any:
    """Return a number as JSON knows it: NumPy's become Python's, NaN becomes None."""
    number = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(number, float) and math.isnan(number) else number
