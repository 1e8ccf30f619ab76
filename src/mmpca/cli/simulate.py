"""``mmpca simulate``: counts from the model, with the truth."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmpca.cli import screen
from mmpca.cli.tables import write_table
from mmpca.io import CountTable, write_counts
from mmpca.simulate import Simulation, paper_design, simulate_mmpca, sparse_topics

# Random clusters prefer few topics: below 1, the smaller the fewer.
SHARE_CONCENTRATION = 0.3


class Design(NamedTuple):
    """What to draw: the paper's design, or random clusters and topics where their numbers are given."""

    n_rows: int
    length: int
    noise: float
    balance: float
    n_clusters: int | None
    n_topics: int | None
    n_features: int


def run(path: Path, *, labels: Path | None, design: Design, seed: int, as_json: bool) -> None:
    """Draw and write."""
    drawn = draw(design, seed)
    write_counts(path, CountTable(drawn.X, None, np.array(drawn.feature_names, dtype=object), []))
    if labels is not None:
        rows = [str(i) for i in range(len(drawn.labels))]
        write_table(labels, {"row": rows, "cluster": drawn.labels.tolist()})
    if as_json:
        sizes = {"rows": drawn.X.shape[0], "features": drawn.X.shape[1], "seed": seed}
        screen.print_json(sizes | {"output": str(path), "labels": None if labels is None else str(labels)})
        return
    told = f"{drawn.X.shape[0]:,} rows x {drawn.X.shape[1]:,} features written to {path}"
    if labels is not None:
        told += f", true clusters to {labels}"
    screen.out().print(told, highlight=False, markup=False, soft_wrap=True)


def draw(design: Design, seed: int) -> Simulation:
    """Return data of a design."""
    if design.n_clusters is None or design.n_topics is None:
        return paper_design(design.n_rows, design.length, design.noise, design.balance, random_state=seed)
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(design.n_topics, SHARE_CONCENTRATION), design.n_clusters)  # (Q, K)
    return simulate_mmpca(
        design.n_rows,
        topics=sparse_topics(design.n_topics, design.n_features, random_state=rng),
        cluster_topics=shares,
        weights=design.balance ** np.arange(design.n_clusters - 1, -1, -1),
        lengths=design.length,
        noise=design.noise,
        random_state=rng,
    )
