"""``mmpca predict``: new rows into the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mmpca.cli import parts, screen
from mmpca.cli.inputs import read_for_model
from mmpca.cli.options import InputOptions
from mmpca.cli.probabilities import best_clusters
from mmpca.cli.quiet import without_name_warnings
from mmpca.cli.tables import records, write_table
from mmpca.model import ModelFile, read_model
from mmpca.model.prediction import best_of

MOST_ROWS_SHOWN = 40


def run(
    model_path: Path,
    paths: list[Path],
    *,
    labels: Path | None,
    with_probabilities: bool,
    as_json: bool,
    scheduler: str | None,
    how: InputOptions,
) -> None:
    """Load, read, predict, and write or show."""
    file = read_model(model_path)
    if scheduler is None and len(paths) == 1:
        predicted = _predict_here(paths[0], how, file, with_probabilities=with_probabilities)
    else:
        predicted = parts.predicted(paths, how, scheduler, file, with_probabilities=with_probabilities)
    names, best, probabilities, n_empty, remarks = predicted
    table: dict[str, list[Any]] = {
        "row": names,
        "cluster": best["cluster"].tolist(),
        "probability": best["probability"].round(6).tolist(),
    }
    if probabilities is not None:
        table |= {f"cluster_{q}": column.round(6).tolist() for q, column in enumerate(probabilities.T)}
    if n_empty:
        remarks.append(
            f"{n_empty:,} rows have no counts that the model knows: the largest cluster is their best guess."
        )
    screen.notes(remarks)
    if labels is not None:
        write_table(labels, table)
    if as_json:
        screen.print_json({"labels": records(table) if labels is None else str(labels), "notes": remarks})
    elif labels is None:
        _show(screen.out(), table)
    else:
        screen.out().print(f"{len(best):,} labels written to {labels}", highlight=False, markup=False, soft_wrap=True)


def _predict_here(path: Path, how: InputOptions, file: ModelFile, *, with_probabilities: bool) -> parts.Predicted:
    data, found = read_for_model(path, how, file), None
    if with_probabilities:
        with without_name_warnings():
            found = file.model.predict_proba(data.X)  # (N, Q)
    best = best_clusters(file.model, data.X) if found is None else best_of(found)
    n_empty = int((np.diff(data.X.indptr) == 0).sum())
    return parts.Predicted(data.row_names(), best, found, n_empty, list(data.table.notes))


def _show(console: Console, table: dict[str, list[Any]]) -> None:
    """Print the table, its beginning if it is long."""
    shown = Table(box=SIMPLE_HEAD)
    for name in table:
        shown.add_column(name, justify="left" if name == "row" else "right")
    for row in list(zip(*table.values(), strict=True))[:MOST_ROWS_SHOWN]:
        shown.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row))
    console.print(shown)
    n_left = len(table["row"]) - MOST_ROWS_SHOWN
    if n_left > 0:
        console.print(f"and {n_left:,} more rows: --labels FILE writes them all", style="dim")
