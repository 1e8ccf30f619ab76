"""``mmpca compare``: all methods on one input."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from mmpca.cli import screen
from mmpca.cli.fit import without_empty_rows
from mmpca.cli.inputs import read_data
from mmpca.cli.labels import fitting, read_labels
from mmpca.cli.options import InputOptions, TextOptions, usual_sizes
from mmpca.cli.tables import records, write_table
from mmpca.counts import as_counts
from mmpca.evaluation import Comparison, all_methods, compare
from mmpca.evaluation.comparison import chosen_methods


class Wanted(NamedTuple):
    """What to compare with, and what to write."""

    labels: Path | None
    output: Path | None
    as_json: bool
    methods: list[str] | None
    memory: bool


def run(
    path: Path,
    *,
    n_clusters: int | None,
    n_topics: int | None,
    seed: int,
    wanted: Wanted,
    drop_empty: bool,
    how: InputOptions,
    counting: TextOptions,
) -> None:
    """Read, fit every method, write and show."""
    data = read_data(path, how, counting)
    remarks = list(data.table.notes)
    names = data.row_names()
    truth = None
    if wanted.labels is not None:
        truth = np.array(fitting(wanted.labels, read_labels(wanted.labels, names), len(names)))
        truth = truth[np.diff(data.X.indptr) > 0] if drop_empty else truth
    data = without_empty_rows(data, path, remarks, is_wanted=drop_empty)
    as_counts(data.X)  # what is wrong with the data is said once, not by every method
    sizes = usual_sizes(n_clusters, n_topics, data.X.shape)
    methods = chosen_methods(wanted.methods, all_methods(*sizes, seed))
    found = _fit_all(data.X, methods, sizes, truth, wanted.memory, remarks)
    if not found:
        raise ValueError(f"no method could be fitted. {remarks[-1]}")
    table = _table(found)
    if wanted.output is not None:
        write_table(wanted.output, table)
    screen.notes(remarks)
    if wanted.as_json:
        screen.print_json(records(table))
    else:
        _show(screen.out(), table, wanted.output)


def _fit_all(
    X: Any, methods: dict[str, Any], sizes: tuple[int, int], truth: Any, memory: bool, remarks: list[str]
) -> list[Comparison]:
    """Fit the methods, with a bar on a terminal; one that refuses the data is remarked, in place, and left out."""
    console, found = screen.err(), []
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(methods))
        for name, estimator in methods.items():
            progress.update(task, description=name)
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    found += compare(X, *sizes, labels=truth, methods={name: estimator}, measure_memory=memory)
                remarks += dict.fromkeys(f"{name}: {warning.message}" for warning in caught)
            except ValueError as error:
                remarks.append(f"{name} was left out: {error}")
            progress.advance(task)
    return found


def _table(found: list[Comparison]) -> dict[str, list[Any]]:
    """Return the results as columns; what was not measured has none."""
    names = [name for name in Comparison._fields if name != "labels" and getattr(found[0], name) is not None]
    return {name: [getattr(row, name) for row in found] for name in names}


def _show(console: Console, table: dict[str, list[Any]], output: Path | None) -> None:
    shown = Table(box=SIMPLE_HEAD)
    heads = {"method": "method", "ari": "ARI", "nmi": "NMI", "seconds": "time, s", "peak_megabytes": "peak memory, MB"}
    for name in table:
        shown.add_column(heads[name], justify="left" if name == "method" else "right", no_wrap=True)
    for method, *numbers in zip(*table.values(), strict=True):
        places = [2 if name == "seconds" else 1 if name == "peak_megabytes" else 3 for name in list(table)[1:]]
        shown.add_row(method, *(f"{number:,.{place}f}" for number, place in zip(numbers, places, strict=True)))
    console.print(shown)
    if "peak_megabytes" in table:
        console.print("Memory as Python and NumPy report it; what compiled code allocates for itself is not seen.")
    if output is not None:
        console.print(f"table written to {output}", highlight=False, markup=False, soft_wrap=True)
