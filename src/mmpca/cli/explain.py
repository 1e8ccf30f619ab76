"""``mmpca explain``: why rows are in their clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mmpca.cli import screen
from mmpca.cli.inputs import Data, read_for_model
from mmpca.cli.options import InputOptions
from mmpca.cli.quiet import without_name_warnings
from mmpca.model import MMPCA, read_model
from mmpca.model.explanation import Evidence, Explanation

LEAST_SURE = 3
ALTERNATIVES_SHOWN = 4
BAR_WIDTH = 12  # of each side
STYLES = {"clear": "green", "likely": "yellow", "borderline": "red"}


def run(
    model_path: Path, path: Path, *, rows: Sequence[str], n_features: int, as_json: bool, how: InputOptions
) -> None:
    """Load, read, explain and show."""
    file = read_model(model_path)
    data = read_for_model(path, how, file)
    names = data.row_names()
    with without_name_warnings():
        numbers = find_rows(rows, names) if rows else _least_sure(file.model, data)
        explanations = file.model.explain(data.X, numbers, n_features=n_features)
    screen.notes(data.table.notes)
    if as_json:
        screen.print_json([_document(why, names[why.row]) for why in explanations])
        return
    for why in explanations:
        name = f"row {why.row}" if data.table.row_names is None else names[why.row]
        _show(screen.out(), why, name)


def find_rows(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of rows that are called by name or by number; names come first."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        places.setdefault(name, i)
    found = []
    for word in wanted:
        number = places.get(word, int(word) if word.isdecimal() else -1)
        if not 0 <= number < len(names):
            raise ValueError(
                f"There is no row {word!r}: rows go by their names, such as {names[0]!r}, or by numbers from 0 to "
                f"{len(names) - 1}."
            )
        found.append(number)
    return found


def _least_sure(model: MMPCA, data: Data) -> list[int]:
    """Return the rows with the least margins."""
    probabilities = np.sort(model.predict_proba(data.X), axis=1)
    margins = probabilities[:, -1] - probabilities[:, -2] if probabilities.shape[1] > 1 else probabilities[:, -1]
    least: list[int] = np.argsort(margins, kind="stable")[:LEAST_SURE].tolist()
    return least


def _document(why: Explanation, name: str) -> dict[str, Any]:
    """Return an explanation for machines; an infinite margin is null."""
    document = why._asdict() | {"name": name, "margin": why.margin if math.isfinite(why.margin) else None}
    for key in ("alternatives", "evidence_for", "evidence_against"):
        document[key] = [entry._asdict() for entry in getattr(why, key)]
    return document


def _show(console: Console, why: Explanation, name: str) -> None:
    console.print(
        f"\n[bold]{escape(name)}[/] is in cluster [bold]{why.cluster}[/]: [{STYLES[why.verdict]}]{why.verdict}[/], "
        f"probability {why.probability:.3f}",
        highlight=False,
    )
    if why.runner_up is None:
        console.print("There is no other cluster.")
        return
    others = ", ".join(f"{other.cluster} ({other.log_odds:+.1f})" for other in why.alternatives[:ALTERNATIVES_SHOWN])
    console.print(f"other clusters, by their log-odds against it in nats: {others}", highlight=False, style="dim")
    console.print(_evidence_table(why))


def _evidence_table(why: Explanation) -> Table:
    title = f"Cluster {why.cluster} against cluster {why.runner_up}: {why.margin:+.1f} nats"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("feature")
    table.add_column("count", justify="right")
    table.add_column("nats", justify="right")
    table.add_column("")
    listed = why.evidence_for + why.evidence_against
    largest = max((abs(part.nats) for part in listed), default=1.0)
    for part in listed:
        table.add_row(*_cells(part, largest))
    for what, nats in (("all other features", why.from_others), ("sizes of the clusters", why.from_sizes)):
        table.add_row(f"[dim]{what}[/]", "", f"{nats:+.2f}", "")
    return table


def _cells(part: Evidence, largest: float) -> tuple[str, str, str, str]:
    return escape(part.name), str(part.occurrences), f"{part.nats:+.2f}", _bar(part.nats, largest)


def _bar(nats: float, largest: float) -> str:
    """Return a bar to the right for what speaks for the cluster, to the left for what speaks against it."""
    bar = "█" * round(abs(nats) / largest * BAR_WIDTH)
    if nats > 0:
        return f"{'':{BAR_WIDTH}}│[green]{bar}[/]"
    return f"{'':{BAR_WIDTH - len(bar)}}[red]{bar}[/]│"
