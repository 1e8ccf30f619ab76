"""What a grid and the parameters of its search have to be."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

from mmpca.model import constraints
from mmpca.selection.criteria import CRITERIA

SHARED = ("n_init", "topic_prior", "stabilize", "max_epochs", "tol", "n_jobs", "verbose")  # with the model
RULES = {name: constraints.RULES[name] for name in SHARED} | {
    "criterion": constraints.Rule(lambda value: isinstance(value, str) and value in CRITERIA, f"one of {CRITERIA}"),
    "store": constraints.Rule(lambda value: value is None or isinstance(value, str | os.PathLike), "a folder or None"),
    "n_folds": constraints.Rule(
        lambda value: (isinstance(value, str) and value == "auto") or (constraints.is_integer(value, 0) and value != 1),
        "'auto', 0 or a whole number of at least 2",
    ),
    "n_resamples": constraints.Rule(lambda value: constraints.is_integer(value, 0), "a whole number of at least 0"),
}


def check_search(parameters: dict[str, Any]) -> None:
    """Raise ValueError for the first parameter that breaks its rule."""
    constraints.check_parameters(parameters, RULES)
    if parameters["criterion"] == "predictive" and parameters["n_folds"] == 0:
        raise ValueError(
            "n_folds must be at least 2 for the criterion 'predictive', which predicts held-out counts, but it is 0. "
            "Give 'auto', or criterion='icl'."
        )


def check_grid(values: Any, name: str) -> tuple[int, ...]:
    """Return the numbers of a grid as a tuple; they have to be at least 1 and ascending."""
    try:
        numbers: list[Any] = [values] if constraints.is_integer(values, 0) else list(values)
    except TypeError:
        raise ValueError(
            f"{name} must be numbers to try, such as range(2, 9) or [2, 4, 8], but it is {values!r}."
        ) from None
    if not numbers:
        raise ValueError(f"{name} must hold at least one number to try, but it is empty. Give e.g. range(2, 9).")
    for number in numbers:
        if not constraints.is_integer(number, 1):
            raise ValueError(f"{name} must hold whole numbers of at least 1, but it holds {number!r}.")
    for number, following in pairwise(numbers):
        if following <= number:
            raise ValueError(
                f"{name} must be ascending, each number once, but {following} comes after {number}. "
                f"Give sorted(set({name}))."
            )
    return tuple(int(number) for number in numbers)
