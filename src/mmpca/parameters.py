"""Rules for the parameters of all estimators, and the check that applies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """A condition on a parameter, and its description, which completes "... must be"."""

    holds: Callable[[Any], bool]
    expected: str


def is_integer(value: Any, least: int) -> bool:
    """Return True for a whole number of at least `least`; booleans are not numbers here."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_) and int(value) >= least


def is_array(value: Any) -> bool:
    """Return True for arrays and nested sequences, False for strings and ragged lists."""
    if isinstance(value, str):
        return False
    try:
        return np.ndim(value) > 0
    except ValueError:  # rows of different lengths
        return False


def integer(least: int) -> Rule:
    """Return the rule for a whole number of at least `least`."""
    return Rule(lambda value: is_integer(value, least), f"a whole number of at least {least}")


def real(least: float, most: float = np.inf) -> Rule:
    """Return the rule for a finite number between two limits, both included."""

    def holds(value: Any) -> bool:
        is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        return is_number and bool(np.isfinite(float(value))) and least <= float(value) <= most

    limits = f"a finite number of at least {least:g}" if np.isinf(most) else f"a number from {least:g} to {most:g}"
    return Rule(holds, limits)


def one_of(*choices: str) -> Rule:
    """Return the rule for one of some strings."""
    words = ", ".join(f'"{choice}"' for choice in choices)
    expected = words if len(choices) == 1 else f"one of {words}"
    return Rule(lambda value: isinstance(value, str) and value in choices, expected)


def either(first: Rule, second: Rule) -> Rule:
    """Return the rule that one of two rules holds."""
    return Rule(lambda value: first.holds(value) or second.holds(value), f"{first.expected} or {second.expected}")


def array(description: str) -> Rule:
    """Return the rule for an array; its contents are checked where its shape is known."""
    return Rule(is_array, f"an array {description}")


NONE = Rule(lambda value: value is None, "None")
BOOLEAN = Rule(lambda value: isinstance(value, bool | np.bool_), "True or False")
N_JOBS = Rule(
    lambda value: value is None or (is_integer(value, -(2**31)) and value != 0), "None or a whole number other than 0"
)
VERBOSE = Rule(lambda value: isinstance(value, bool) or is_integer(value, 0), "a whole number of at least 0")
PRIOR = real(1e-6, 1e8)  # outside these limits, a prior is lost in rounding


def check_parameters(parameters: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise ValueError for the first parameter that breaks its rule."""
    for name, rule in rules.items():
        value = parameters[name]
        if not rule.holds(value):
            shown = f"an array of shape {np.shape(value)}" if is_array(value) else short_repr(value)
            raise ValueError(f"{name} must be {rule.expected}, but it is {shown}.")
