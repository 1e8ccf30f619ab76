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
from mmpca.cli.tables import write_table
from mmpca.model import MMPCA, read_model
from mmpca.model.explanation import BoundMargin, Evidence, Explanation

LEAST_SURE = 3
ALTERNATIVES_SHOWN = 4
LONGEST = 18  # digits of the number of a row
BAR_WIDTH = 12  # of each side
STYLES = {"clear": "green", "likely": "yellow", "borderline": "red"}


def run(
    model_path: Path,
    path: Path,
    *,
    rows: Sequence[str],
    n_features: int,
    output: Path | None,
    as_json: bool,
    how: InputOptions,
) -> None:
    """Load, read, explain, and write or show."""
    file = read_model(model_path)
    data = read_for_model(path, how, file)
    names, has_names = data.row_names(), data.table.row_names is not None
    with without_name_warnings():
        numbers = find_rows(rows, names, has_names=has_names) if rows else _least_sure(file.model, data)
        explanations = file.model.explain(data.X, numbers, n_features=n_features)
    screen.notes(data.table.notes)
    if output is not None:
        write_table(output, evidence_columns(explanations, names))
    if as_json:
        screen.print_json([_document(why, names[why.row]) for why in explanations])
        return
    if output is not None:
        told = f"{len(explanations):,} explanations written to {output}"
        screen.out().print(told, highlight=False, markup=False, soft_wrap=True)
        return
    for why in explanations:
        name = f"row {why.row}" if data.table.row_names is None else names[why.row]
        _show(screen.out(), why, name)


def find_rows(wanted: Sequence[str], names: Sequence[str], *, has_names: bool = True) -> list[int]:
    """Return the numbers of rows that are called by name, or by number unless a name is a number itself."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        places.setdefault(name, i)
    go_by_number = not has_names or not any(name.isdecimal() for name in places)
    known = [f"by their names, {names[0]!r} to {names[-1]!r}"] if has_names else []
    known += [f"by numbers from 0 to {len(names) - 1}"] if go_by_number else []
    found = []
    for word in wanted:
        number = places.get(word, int(word) if go_by_number and word.isdecimal() and len(word) <= LONGEST else -1)
        if not 0 <= number < len(names):
            raise ValueError(f"There is no row {word!r}: rows go {', or '.join(known)}.")
        found.append(number)
    return found


def _least_sure(model: MMPCA, data: Data) -> list[int]:
    """Return the rows with the least margins."""
    probabilities = np.sort(model.predict_proba(data.X), axis=1)
    margins = probabilities[:, -1] - probabilities[:, -2] if probabilities.shape[1] > 1 else probabilities[:, -1]
    least: list[int] = np.argsort(margins, kind="stable")[:LEAST_SURE].tolist()
    return least


def evidence_columns(explanations: Sequence[Explanation], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return a table with a line for each listed feature, the rest of the features and the sizes of each row."""
    lines: list[dict[str, Any]] = []
    for why in explanations:
        gain = next((other.gain for other in why.alternatives if other.cluster == why.runner_up), None)
        head = {
            "row": names[why.row],
            "cluster": why.cluster,
            "verdict": why.verdict,
            "probability": round(why.probability, 6),
            "against": why.runner_up,
            "log_odds": _finite(-why.margin),
            "gain": _finite(gain),
        }
        listed = [(part.name, part.occurrences, part.nats) for part in why.evidence_for + why.evidence_against]
        rest = [("all other features", None, why.from_others), ("sizes of the clusters", None, why.from_sizes)]
        lines += [head | dict(zip(("feature", "count", "nats"), part, strict=True)) for part in listed + rest]
    return {name: [line[name] for line in lines] for name in lines[0]} if lines else {}


def _document(why: Explanation, name: str) -> dict[str, Any]:
    """Return an explanation for machines; infinite numbers are null."""
    document = why._asdict() | {"name": name, "margin": _finite(why.margin)}
    for key in ("alternatives", "evidence_for", "evidence_against"):
        document[key] = [_finite_entries(entry._asdict()) for entry in getattr(why, key)]
    document["bound_margin"] = None if why.bound_margin is None else _finite_entries(why.bound_margin._asdict())
    return _finite_entries(document)


def _finite_entries(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: _finite(value) for key, value in entries.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(console: Console, why: Explanation, name: str) -> None:
    told = "is in" if why.is_fitted else "as a new row would be put into"
    console.print(
        f"\n[bold]{escape(name)}[/] {told} cluster [bold]{why.cluster}[/]: [{STYLES[why.verdict]}]{why.verdict}[/], "
        f"probability {why.probability:.3f}",
        highlight=False,
    )
    if why.runner_up is None:
        console.print("There is no other cluster.")
        return
    console.print("other clusters, in nats: their log-odds, and what the bound gains with the row there", style="dim")
    console.print(_alternative_table(why))
    console.print(_evidence_table(why))
    if why.bound_margin is not None and math.isfinite(why.bound_margin.total):
        console.print(_told_margin(why, why.bound_margin), highlight=False, style="dim")


def _alternative_table(why: Explanation) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in ("cluster", "log-odds", "gain"):
        table.add_column(name, justify="right")
    for other in why.alternatives[:ALTERNATIVES_SHOWN]:
        gain = "" if other.gain is None else f"{other.gain:+.2f}" if math.isfinite(other.gain) else "alone here"
        table.add_row(str(other.cluster), f"{other.log_odds:+.2f}", gain)
    return table


def _told_margin(why: Explanation, margin: BoundMargin) -> str:
    return (
        f"The bound prefers cluster {why.cluster} to cluster {why.runner_up} by {margin.total:+.2f} nats: "
        f"{margin.from_features:+.2f} from the features to first order, {margin.from_sizes:+.2f} from the sizes, "
        f"{margin.remainder:+.2f} because clusters give way to a row."
    )


def _evidence_table(why: Explanation) -> Table:
    title = f"Log-odds of cluster {why.cluster} against cluster {why.runner_up}: {why.margin:+.1f} nats"
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
