"""Options of ``mmpca simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


def simulate(
    output: Annotated[
        Path,
        typer.Argument(
            help="Counts to write: .mtx, .mtx.gz or .npz.", callback=options.check_counts, show_default=False
        ),
    ],
    labels: options.Labels = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows.")] = 400,
    length: Annotated[int, typer.Option("--length", min=1, help="Counts in each row.")] = 250,
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of counts whose topic is drawn blindly.")] = 0.0,
    balance: Annotated[float, typer.Option(min=0.01, max=1.0, help="1 for clusters of equal size.")] = 1.0,
    clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters", "-q", parser=options.whole, metavar="N", help="Random clusters; by default the paper's six."
        ),
    ] = None,
    topics: Annotated[
        int | None,
        typer.Option(
            "--topics", "-k", parser=options.whole, metavar="N", help="Random topics; by default the paper's four."
        ),
    ] = None,
    features: Annotated[int, typer.Option("--features", min=1, help="Features of random topics.")] = 1000,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> None:
    """Draw counts from the model: the paper's design, or random clusters and topics.

    Random ones need both --clusters and --topics.

    For example:

      mmpca simulate paper.mtx --noise 0.2 --balance 0.7 --labels truth.csv

      mmpca simulate large.npz --rows 20000 --features 20000 -q 20 -k 20 --length 100
    """
    from mmpca.cli.simulate import Design, run

    if (clusters is None) != (topics is None):
        raise typer.BadParameter("random designs need both --clusters and --topics; the paper's design neither.")
    design = Design(rows, length, noise, balance, clusters, topics, features)
    run(output, labels=labels, design=design, seed=seed, as_json=json)
