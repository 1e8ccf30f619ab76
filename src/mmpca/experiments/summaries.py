"""Tables of many results to tables of few."""

from __future__ import annotations

from collections.abc import Sequence
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
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = {}
    for line in zip(*(table[name] for name in (*rows, *across)), table[value], strict=True):
        down, along, number = line[: len(rows)], line[len(rows) : -1], line[-1]
        found.setdefault(down, {}).setdefault(along, []).append(number)
    result: Table = {name: [down[place] for down in found] for place, name in enumerate(rows)}
    for along in dict.fromkeys(key for groups in found.values() for key in groups):
        head = ", ".join(f"{name} {_short(part)}" for name, part in zip(across, along, strict=True))
        result[head] = [float(np.mean(groups[along])) if along in groups else None for groups in found.values()]
    return result


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
