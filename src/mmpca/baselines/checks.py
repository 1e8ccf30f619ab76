"""What the parameters of the rivals have to be; every message says what was expected, what came and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np

from mmpca.counts import Counts, transposition_hint

# Either is what a transformer may call its number of topics.
TOPIC_PARAMETERS = ("n_topics", "n_components")


class Rule(NamedTuple):
    """What a parameter must satisfy, and how to say so."""

    holds: Callable[[Any], bool]
    expected: str


def _is_integer(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_) and int(value) >= least


def _is_real(value: Any, least: float) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return is_number and np.isfinite(float(value)) and float(value) >= least


def _is_transformer(value: Any) -> bool:
    # A class instead of an instance is the usual slip.
    needed = ("fit", "transform", "get_params", "set_params")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in needed)


def _is_sized(value: Any) -> bool:
    return _is_transformer(value) and any(name in value.get_params(deep=False) for name in TOPIC_PARAMETERS)


def one_of(*choices: str) -> Rule:
    """Return the rule that a parameter is one of the given words."""
    expected = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    return Rule(lambda value: isinstance(value, str) and value in choices, expected)


AT_LEAST_ONE = Rule(lambda value: _is_integer(value, 1), "a whole number of at least 1")
AT_LEAST_TWO = Rule(lambda value: _is_integer(value, 2), "a whole number of at least 2")
NOT_NEGATIVE = Rule(lambda value: _is_real(value, 0.0), "a finite number of at least 0")
POSITIVE = Rule(lambda value: _is_real(value, 1e-6), "a finite number of at least 1e-6")
LDA_CHOICE = Rule(
    lambda value: (isinstance(value, str) and value == "sklearn") or _is_sized(value),
    '"sklearn" or an unfitted estimator with fit, transform and a parameter n_topics or n_components, e.g. '
    "mmpca.topics.LDA()",
)

SEARCH_RULES: dict[str, Rule] = {"n_clusters": AT_LEAST_ONE, "n_init": AT_LEAST_ONE, "max_iter": AT_LEAST_ONE}


def check_parameters(parameters: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise ValueError for the first parameter that breaks its rule."""
    for name, rule in rules.items():
        if not rule.holds(parameters[name]):
            raise ValueError(f"{name} must be {rule.expected}, but it is {short_repr(parameters[name])}.")


def check_enough_rows(rows: Counts, n_clusters: int) -> None:
    """Raise ValueError unless there are as many rows as clusters."""
    if n_clusters <= rows.n_rows:
        return
    hint = transposition_hint(rows)
    raise ValueError(
        f"n_clusters={n_clusters} clusters need as many rows, but n_samples = {rows.n_rows}. "
        "Lower n_clusters or give more rows." + ("" if hint is None else f" {hint}")
    )
