"""``mmpca simulate``: draw counts from the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mmpca.cli import console, options
from mmpca.cli.tables import write_table

if TYPE_CHECKING:
    from mmpca.simulate import Simulation

CONCENTRATION = 0.3  # of the Dirichlet distribution of random topic shares: below 1, few topics dominate a cluster


def simulate(
    output: options.CountsOutput,
    labels: options.LabelsOutput = None,
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
        console.line(f"{data.X.shape[0]:,} rows x {data.X.shape[1]:,} features written to {output}")
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
