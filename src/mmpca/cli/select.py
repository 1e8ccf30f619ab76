"""``mmpca select``: the grid of clusters and topics, from an input to the best model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mmpca.cli import screen
from mmpca.cli.fit import label_table, named, without_empty_rows
from mmpca.cli.guard import INTERRUPTED
from mmpca.cli.inputs import read_data
from mmpca.cli.lines import Lines
from mmpca.cli.options import InputOptions, TextOptions, usual_sizes
from mmpca.cli.tables import records, write_table
from mmpca.errors import InterruptedSearchWarning
from mmpca.selection import MMPCASearch
from mmpca.selection.grid import GridProgress


class Output(NamedTuple):
    """Where results go."""

    model: Path | None
    labels: Path | None
    results: Path | None
    as_json: bool


def run(
    path: Path,
    *,
    parameters: dict[str, Any],
    output: Output,
    drop_empty: bool,
    how: InputOptions,
    counting: TextOptions,
) -> None:
    """Read, search the grid, write and show; leave with code 130 if Ctrl-C cut the search short."""
    data = read_data(path, how, counting)
    remarks = list(data.table.notes)
    data = without_empty_rows(data, path, remarks, is_wanted=drop_empty)
    search = MMPCASearch(**(parameters | _usual_grid(parameters, data.X.shape)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _watched(search, data.X)
    model = named(search.best_estimator_, data)
    if output.model is not None:
        model.save(output.model, text=data.text)
    labels = label_table(model, data)
    for file, table in ((output.labels, labels), (output.results, _table(search))):
        if file is not None:
            write_table(file, table)
    screen.notes(remarks + list(dict.fromkeys(str(warning.message) for warning in caught)))
    if output.as_json:
        screen.print_json(_document(search, output, labels))
    else:
        _show(screen.out(), search, output)
    if any(issubclass(warning.category, InterruptedSearchWarning) for warning in caught):
        raise typer.Exit(INTERRUPTED)


def _usual_grid(parameters: dict[str, Any], shape: tuple[int, int]) -> dict[str, Any]:
    """Return the numbers to try where none were asked for: the usual ones, as far as the data go."""
    largest = zip(("n_clusters", "n_topics"), usual_sizes(None, None, shape), strict=True)
    return {name: tuple(range(2, most + 1)) or (1,) for name, most in largest if parameters[name] is None}


def _watched(search: MMPCASearch, X: Any) -> None:
    """Fit, with a bar on a terminal and a line every few seconds in a pipe."""
    console = screen.err()
    try:
        with _bar(console) if console.is_terminal else _lines() as tell:
            search.fit(X, callback=tell)
    except KeyboardInterrupt:
        kept = "" if search.store is None else f" but finished parts, to {search.store}: the same command goes on there"
        raise KeyboardInterrupt(f"Nothing was written{kept}.") from None


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[GridProgress], None]]:
    """Show how much of the grid is done."""
    texts = (TextColumn("{task.description}"), TextColumn("{task.completed} of {task.total} parts"))
    columns = (texts[0], BarColumn(bar_width=24), texts[1], TextColumn("{task.fields[left]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("topics", total=None, left="")

        def tell(now: GridProgress) -> None:
            progress.update(
                task,
                description=now.stage,
                total=now.n_parts,
                completed=now.n_done,
                left=screen.time_left(now.seconds_left),
            )

        yield tell


@contextmanager
def _lines() -> Iterator[Callable[[GridProgress], None]]:
    """Say how much of the grid is done, at times."""
    lines = Lines()
    yield lambda now: lines.tell(
        f"{now.stage}: {now.n_done} of {now.n_parts} parts, {screen.time_left(now.seconds_left)}".removesuffix(", ")
    )


def _table(search: MMPCASearch) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in search.results_.items()}


def _document(search: MMPCASearch, output: Output, labels: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        **search.best_params_,
        "criterion": search.criterion,
        "reason": search.reason_,
        "runner_up": search.runner_up_,
        "gap": None if search.runner_up_ is None else search.gap_,
        "cells": records(_table(search)),
        "model": None if output.model is None else str(output.model),
        "labels": records(labels) if output.labels is None else str(output.labels),
    }


def _show(console: Console, search: MMPCASearch, output: Output) -> None:
    results, score = search.results_, search.results_[search.criterion]
    console.print(f"{search.criterion}: nats behind the best cell, clusters across, topics down", highlight=False)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("", justify="right")
    columns = np.unique(results["n_clusters"]).tolist()
    for q in columns:
        table.add_column(str(q), justify="right", no_wrap=True)
    for k in np.unique(results["n_topics"]).tolist():
        at = np.flatnonzero(results["n_topics"] == k)
        row = dict(zip(results["n_clusters"][at].tolist(), (score.max() - score[at]).tolist(), strict=True))
        table.add_row(str(k), *(_nats(row.get(q)) for q in columns))
    console.print(table)
    console.print(search.reason_, highlight=False, soft_wrap=not console.is_terminal)
    for path, what in ((output.model, "model"), (output.labels, "labels"), (output.results, "cells")):
        if path is not None:
            console.print(f"{what} written to {path}", highlight=False, markup=False, soft_wrap=True)
    if output.model is None:
        console.print("The model was not kept: add --model to write it to a file.", style="yellow")


def _nats(behind: float | None) -> str:
    if behind is None:
        return ""
    return "[bold green]best[/]" if behind == 0 else f"{behind:,.1f}" if behind < 10 else f"{behind:,.0f}"
