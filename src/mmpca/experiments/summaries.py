"""Tables of many results to tables of few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mmpca.experiments.experiment import Table


def group_means(table: Table, value: str, *, rows: Sequence[str], across: Sequence[str]) -> Table:
    """Return mean values with some columns down and some across.

    Parameters
    ----------
    table : dict of list
    value : str
        Column to average.
    rows, across : sequence of str
        Columns that tell the groups apart.

    Returns
    -------
    dict of list
        The columns `rows`, then one for each group across, named by its values.

    Examples
    --------
    >>> table = {"method": ["a", "b", "a", "b"], "noise": [0.0, 0.0, 0.5, 0.5], "ari": [1.0, 0.9, 0.8, 0.7]}
    >>> group_means(table, "ari", rows=("method",), across=("noise",))
    {'method': ['a', 'b'], 'noise 0': [1.0, 0.9], 'noise 0.5': [0.8, 0.7]}
    """
    return _grouped(table, value, rows, across, lambda numbers: float(np.mean(numbers)))


def paired_gaps(
    table: Table, value: str, reference: str, *, rows: Sequence[str], across: Sequence[str], pair: str = "seed"
) -> Table | None:
    """Return how far methods are behind a reference method on the same data: mean difference (its standard error).

    Parameters
    ----------
    table : dict of list
        With a column "method".
    value : str
        Column to compare.
    reference : str
        The method that the others are compared with.
    rows, across : sequence of str
        Columns that tell the groups apart, "method" among `rows`.
    pair : str, default="seed"
        Column that tells the data sets of a group apart.

    Returns
    -------
    dict of list or None
        As `group_means`, with texts; None if the reference is not in the table or no other method is.

    Examples
    --------
    >>> table = {"method": ["a", "b"] * 2, "seed": [1, 1, 2, 2], "noise": [0.5] * 4, "ari": [1.0, 0.9, 0.8, 0.5]}
    >>> paired_gaps(table, "ari", "a", rows=("method",), across=("noise",))
    {'method': ['b'], 'noise 0.5': ['0.200 (0.100)']}
    """
    names = [*(name for name in (*rows, *across) if name != "method"), pair]
    data_sets = list(zip(*(table[name] for name in names), strict=True))
    lines = list(zip(data_sets, table["method"], table[value], strict=True))
    best = {data: number for data, method, number in lines if method == reference}
    kept = [place for place, (data, method, _) in enumerate(lines) if method != reference and data in best]
    if not kept:
        return None
    others = {name: [column[place] for place in kept] for name, column in table.items()}
    others["behind"] = [best[lines[place][0]] - lines[place][2] for place in kept]
    return _grouped(others, "behind", rows, across, _mean_and_error)


def _mean_and_error(numbers: Sequence[float]) -> str:
    error = f" ({np.std(numbers, ddof=1) / np.sqrt(len(numbers)):.3f})" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):.3f}{error}"


def _grouped(
    table: Table, value: str, rows: Sequence[str], across: Sequence[str], told: Callable[[list[float]], Any]
) -> Table:
    """Return what is told of the values of each group, some columns down and some across."""
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = {}
    for line in zip(*(table[name] for name in (*rows, *across)), table[value], strict=True):
        down, along, number = line[: len(rows)], line[len(rows) : -1], line[-1]
        found.setdefault(down, {}).setdefault(along, []).append(number)
    result: Table = {name: [down[place] for down in found] for place, name in enumerate(rows)}
    for along in dict.fromkeys(key for groups in found.values() for key in groups):
        head = ", ".join(f"{name} {_short(part)}" for name, part in zip(across, along, strict=True))
        result[head] = [told(groups[along]) if along in groups else None for groups in found.values()]
    return result


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
