"""``mmpca inspect``: check counts before a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mmpca.cli import console, options
from mmpca.cli.inputs import read_data
from mmpca.cli.options import ReadOptions, TextOptions

if TYPE_CHECKING:
    from mmpca.model.inspection import Inspection

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def inspect(
    input: options.Input,
    clusters: options.OptionalClusters = None,
    topics: options.OptionalTopics = None,
    json: options.Json = False,
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Check counts or texts before a fit: their size, what looks wrong, and what to do about it.

    The exit code is 1 if a fit would fail.

    For example:

      mmpca inspect counts.mtx

      mmpca inspect reports/ --stop-words english --min-rows 2

      mmpca inspect otu_table.biom --clusters 12 --topics 6 --json
    """
    from mmpca.counts import as_counts
    from mmpca.model.inspection import inspect_counts

    data = read_data(input, read, text)
    n_clusters, n_topics = options.default_sizes(clusters, topics, data.X.shape)
    found = inspect_counts(
        as_counts(data.X, name=str(input), empty_rows="allow"),
        n_clusters=n_clusters,
        n_topics=n_topics,
        row_names=data.table.row_names,
        feature_names=data.table.feature_names,
        counts_words=data.text is not None,
    )
    if json:
        numbers = {name: number for fact in found.facts for name, number in fact.numbers.items()}
        findings = [finding._asdict() for finding in found.findings]
        document = {"input": input, **numbers, "notes": data.table.notes, "findings": findings}
        console.print_json(document | {"can_fit": found.can_fit})
    else:
        _show(str(input), found, data.table.notes)
    if not found.can_fit:
        raise typer.Exit(console.ERROR)


def _show(name: str, found: Inspection, notes: list[str]) -> None:
    """Print facts, notes and findings."""
    out, facts = console.out(), Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    for fact in found.facts:
        facts.add_row(fact.label, Text(fact.text))
    out.print()
    out.print(Text(name, style="bold"))
    out.print(facts)
    for note in notes:
        out.print(Text.assemble(("note  ", "cyan"), note))
    out.print()
    for finding in found.findings:
        out.print(Text.assemble((f"{finding.level}: ", STYLES[finding.level]), finding.message))
        out.print(Padding(Text(f"→ {finding.remedy}", style="green"), (0, 0, 0, 4)))
    if found.findings:
        out.print()
    if not found.can_fit:
        out.print("A fit would fail.", style="bold red")
    else:
        out.print("A fit is possible." if found.findings else "No problems found.", style="green")
    out.print()
