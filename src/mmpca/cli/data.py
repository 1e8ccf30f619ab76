"""Commands about count data without a model: ``mmpca inspect``, ``convert`` and ``simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mmpca.cli import console, options
from mmpca.cli.inputs import counted, read_data
from mmpca.cli.options import ReadOptions, TextOptions
from mmpca.cli.tables import write_table

if TYPE_CHECKING:
    from mmpca.model.inspection import Inspection
    from mmpca.simulate import Simulation

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
CONCENTRATION = 0.3  # of the Dirichlet distribution of random topic shares: below 1, few topics dominate a cluster


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
        document = {"input": input, **numbers, "notes": data.table.notes, "findings": found.findings}
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


def convert(
    input: options.Input,
    output: options.CountsOutput,
    compress: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="An uncompressed .npz file is larger, but can be memory-mapped instead of read.",
        ),
    ] = True,
    json: options.Json = False,
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Convert counts of any format, or the words of texts, to Matrix Market or npz, with names.

    For example:

      mmpca convert otu_table.biom otus.mtx.gz

      mmpca convert reports/ words.npz --stop-words english

      mmpca convert cells.h5ad cells.npz --no-compress
    """
    from mmpca.io import write_counts

    data = read_data(input, read, text._replace(min_rows=text.min_rows or 1))  # all words
    console.notes(data.table.notes)
    write_counts(output, data.table, compress=compress)
    n_rows, n_features = data.X.shape
    if json:
        sizes = {"rows": n_rows, "features": n_features}
        console.print_json(sizes | {"output": output, "notes": data.table.notes})
    else:
        console.line(f"{counted(n_rows, 'row')} x {counted(n_features, 'feature')} written to {output}")


def simulate(
    output: options.CountsOutput,
    labels: options.TruthOutput = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows.")] = 400,
    length: Annotated[int, typer.Option("--length", min=1, help="Total count of each row.")] = 250,
    noise: options.Noise = 0.0,
    balance: options.Balance = 1.0,
    clusters: Annotated[
        int | None,
        options.number_option(
            "--clusters", "-q", help="Random clusters, with --topics.", show_default="the paper's six"
        ),
    ] = None,
    topics: Annotated[
        int | None,
        options.number_option(
            "--topics", "-k", help="Random topics, with --clusters.", show_default="the paper's four"
        ),
    ] = None,
    features: Annotated[int, typer.Option("--features", min=1, help="Number of features of random topics.")] = 1000,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> None:
    """Draw counts from the model: the paper's design, or random clusters and topics.

    For example:

      mmpca simulate paper.mtx --noise 0.2 --balance 0.7 --labels truth.csv

      mmpca simulate large.npz --rows 20000 --features 20000 -q 20 -k 20 --length 100
    """
    import numpy as np

    from mmpca.io import CountTable, write_counts
    from mmpca.simulate import paper_design

    if (clusters is None) != (topics is None):
        raise typer.BadParameter(
            "a random design needs both --clusters and --topics; the paper's design needs neither."
        )
    if clusters is None or topics is None:
        data = paper_design(rows, length, noise, balance, random_state=seed)
    else:
        data = _random_design(rows, length, noise, balance, clusters, topics, features, seed)
    write_counts(output, CountTable(data.X, None, np.array(data.feature_names, dtype=object), []))
    if labels is not None:
        write_table(labels, {"row": [str(i) for i in range(rows)], "cluster": data.labels.tolist()})
    if json:
        sizes = {"rows": data.X.shape[0], "features": data.X.shape[1], "seed": seed}
        console.print_json(sizes | {"output": output, "labels": labels})
    else:
        n_rows, n_features = data.X.shape
        console.line(f"{counted(n_rows, 'row')} x {counted(n_features, 'feature')} written to {output}")
        console.written({"true clusters": labels})


def _random_design(
    n_rows: int, length: int, noise: float, balance: float, n_clusters: int, n_topics: int, n_features: int, seed: int
) -> Simulation:
    """Draw counts from random topics and random clusters that prefer few of them."""
    import numpy as np

    from mmpca.simulate import simulate_mmpca, sparse_topics

    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_topics, CONCENTRATION), n_clusters)  # (Q, K)
    return simulate_mmpca(
        n_rows,
        topics=sparse_topics(n_topics, n_features, random_state=rng),
        cluster_topics=shares,
        weights=balance ** np.arange(n_clusters - 1, -1, -1),
        lengths=length,
        noise=noise,
        random_state=rng,
    )
