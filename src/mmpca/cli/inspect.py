"""``mmpca inspect``: the input's doctor."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mmpca.cli import screen
from mmpca.cli.guard import REFUSED
from mmpca.cli.inputs import Data, read_data
from mmpca.cli.options import InputOptions, TextOptions, usual_sizes
from mmpca.counts import as_counts
from mmpca.io.table import Names
from mmpca.model.inspection import Finding, Inspection, inspect_counts

NAMES_SHOWN, LONGEST_NAME = 5, 24
STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def run(
    path: Path,
    *,
    n_clusters: int | None,
    n_topics: int | None,
    as_json: bool,
    how: InputOptions,
    counting: TextOptions,
) -> None:
    """Read, inspect and tell; leave with code 1 if a fit would be refused."""
    data = read_data(path, how, counting)
    counts = as_counts(data.X, name=str(path), empty_rows="allow")
    n_clusters, n_topics = usual_sizes(n_clusters, n_topics, data.X.shape)
    names = {"row_names": data.table.row_names, "feature_names": data.table.feature_names}
    found = inspect_counts(counts, n_clusters=n_clusters, n_topics=n_topics, **names)
    found = found._replace(findings=found.findings + tuple(_about_names(data)))
    if as_json:
        screen.print_json(_document(path, found, data))
    else:
        _show(screen.out(), path, found, data, n_clusters, n_topics)
    if found.is_refused:
        raise typer.Exit(REFUSED)


def _about_names(data: Data) -> list[Finding]:
    """Return findings on names that occur twice."""
    findings = []
    for names, what, remedy in (
        (data.table.feature_names, "features", "Rename or add them up: predict cannot tell them apart."),
        (data.table.row_names, "rows", "Harmless for a fit; labels go by the order of the rows."),
    ):
        n_doubled = 0 if names is None else len(names) - len({str(name) for name in names})
        if n_doubled:
            level = "warning" if what == "features" else "note"
            message = f"{n_doubled:,} {what} have a name that an earlier one has."
            findings.append(Finding(level, f"doubled names of {what}", message, remedy))  # type: ignore[arg-type]
    return findings


def first_names(names: Names | None) -> list[str] | None:
    """Return the first names, None without any: rows that are called like features show that sides were exchanged."""
    return None if names is None else [str(name) for name in names[:NAMES_SHOWN]]


def _told_names(names: Names | None, n_all: int) -> str:
    """Return the first names on a line."""
    first = first_names(names)
    if first is None:
        return "[dim]have no names[/]"
    told = ", ".join(escape(name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…") for name in first)
    return told + (", …" if n_all > len(first) else "")


def _document(path: Path, found: Inspection, data: Data) -> dict[str, object]:
    """Return all that is known, for machines."""
    smallest, median, largest = found.row_totals
    return {
        "input": str(path),
        "rows": found.n_rows,
        "features": found.n_features,
        "entries": found.n_entries,
        "density": found.density,
        "total": found.total,
        "row_totals": {"smallest": smallest, "median": median, "largest": largest},
        "largest_count": found.largest_count,
        "overdispersion": None if found.overdispersion != found.overdispersion else found.overdispersion,
        "expected": {"seconds": found.seconds, "megabytes": found.megabytes},
        "first_rows": first_names(data.table.row_names),
        "first_features": first_names(data.table.feature_names),
        "notes": data.table.notes,
        "findings": [finding._asdict() for finding in found.findings],
        "refused": found.is_refused,
    }


def _show(console: Console, path: Path, found: Inspection, data: Data, n_clusters: int, n_topics: int) -> None:
    console.print()
    console.print(Text(str(path), style="bold"))
    console.print(_summary(found, data, n_clusters, n_topics))
    for remark in data.table.notes:
        console.print(Text.assemble(("note  ", "cyan"), remark))
    console.print()
    for finding in found.findings:
        console.print(Text.assemble((f"{finding.level}: ", STYLES[finding.level]), finding.message))
        console.print(Padding(Text(f"→ {finding.remedy}", style="green"), (0, 0, 0, 4)))
    if found.is_refused:
        console.print("\nA fit would be refused.", style="bold red")
    elif not found.findings:
        console.print("Nothing speaks against a fit.", style="green")
    else:
        console.print("\nA fit is possible.", style="green")
    console.print()


def _told_dispersion(index: float) -> str:
    if index != index:
        return "cannot be told: that takes two rows with counts, and two features"
    return f"{index:.3g} times a multinomial's variance, before any clusters"


def _summary(found: Inspection, data: Data, n_clusters: int, n_topics: int) -> Table:
    smallest, median, largest = found.row_totals
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("size", f"{screen.counted(found.n_rows, 'row')} x {screen.counted(found.n_features, 'feature')}")
    table.add_row("rows", _told_names(data.table.row_names, found.n_rows))
    table.add_row("features", _told_names(data.table.feature_names, found.n_features))
    table.add_row("counts", f"{found.total:,} in {found.n_entries:,} entries ({found.density:.2%} of the matrix)")
    table.add_row(
        "row totals", f"{smallest:,} to {largest:,}, median {median:,.0f}; largest count {found.largest_count:,}"
    )
    table.add_row("dispersion", _told_dispersion(found.overdispersion))
    cost = f"about {screen.duration(found.seconds)} on one core, {screen.megabytes(found.megabytes)} above the input"
    sizes = f"{screen.counted(n_clusters, 'cluster')} and {screen.counted(n_topics, 'topic')}"
    table.add_row("a fit", f"with {sizes}: {cost}")
    return table
