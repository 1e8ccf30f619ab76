"""What the parameters of `LDA` have to be; every message says what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """What a parameter must satisfy, and how to say so."""

    holds: Callable[[Any], bool]
    expected: str


def _is_integer(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_) and int(value) >= least


def _is_real(value: Any, least: float, most: float) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and least <= float(value) <= most


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


AT_LEAST_ONE = Rule(lambda value: _is_integer(value, 1), "a whole number of at least 1")
# Beyond these, a share that no count supports underflows, or the counts are lost in the prior's rounding.
PRIOR = Rule(lambda value: _is_real(value, 1e-6, 1e8), "a number from 1e-6 to 1e8")

RULES: dict[str, Rule] = {
    "n_topics": AT_LEAST_ONE,
    "row_prior": Rule(lambda value: _is_auto(value) or PRIOR.holds(value), f'"auto" or {PRIOR.expected}'),
    "smoothing": PRIOR,
    "n_init": Rule(lambda value: _is_auto(value) or AT_LEAST_ONE.holds(value), f'"auto" or {AT_LEAST_ONE.expected}'),
    "max_passes": AT_LEAST_ONE,
    "tol": Rule(lambda value: _is_real(value, 0.0, 1.0), "a number from 0 to 1"),
    "n_jobs": Rule(
        lambda value: value is None or (_is_integer(value, -(2**31)) and value != 0), "None or a whole number but 0"
    ),
    "verbose": Rule(lambda value: isinstance(value, bool) or _is_integer(value, 0), "a whole number of at least 0"),
}


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise ValueError for the first parameter that breaks its rule."""
    for name, rule in RULES.items():
        if not rule.holds(parameters[name]):
            raise ValueError(f"{name} must be {rule.expected}, but it is {short_repr(parameters[name])}.")
