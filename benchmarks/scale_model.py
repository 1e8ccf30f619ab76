"""What a fit costs by its size, fitted to runs of `scale.py`, and what that makes of more rows and more workers.

A fit takes fixed seconds, for tables of clusters and for samples of the rows, and seconds in proportion
to the entries. On workers the second part is divided; tables travel once a block, sums of topics once a pass, and each
look at the rows sends and brings back a few bytes a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

from mmpca.engine.loop import block_size

PASSES = 6 + 1 + 5  # over all rows while topics are learned: main directions, groups, refining
LOOKS = 3  # at all rows in the search of all of them: to give them clusters, and two before it has converged
ROW_BYTES = 8 + 4 + 4 + 8  # a look: the row's number and label there, its target and what it can gain back
# A row, at the client: labels twice; total, gain and time; the order of visits and numbers; what an epoch's end needs.
CLIENT_BYTES = 4 * 2 + 8 * 3 + 8 * 3 + 8 * 6
BANDWIDTH = 1e9  # bytes a second, assumed, into and out of each machine
ENTRIES_A_ROW = 81


class Line(NamedTuple):
    """Seconds: a fixed part, and one for each entry."""

    fixed: float
    by_entry: float

    def __call__(self, entries: float) -> float:
        """Return the seconds for so many entries."""
        return self.fixed + self.by_entry * entries


class Sizes(NamedTuple):
    """What does not grow with the rows."""

    n_features: int
    n_clusters: int
    n_topics: int

    @property
    def table_bytes(self) -> float:
        """Bytes of the tables that a block of rows is asked with."""
        return 8.0 * 3 * self.n_clusters * self.n_features

    @property
    def topic_bytes(self) -> float:
        """Bytes of sums of topics, or of the topics."""
        return 8.0 * self.n_topics * self.n_features


def fitted_lines(numbers: Sequence[dict[str, Any]]) -> dict[str, Line]:
    """Return the lines of topics, search and rest that fit runs best, relative to their times."""
    entries = np.array([one["entries"] for one in numbers], dtype=float)
    rest = [one["clock"] - one["topics"] - one["search"] for one in numbers]
    parts = {"topics": [one["topics"] for one in numbers], "search": [one["search"] for one in numbers], "rest": rest}
    return {name: _line(entries, np.array(seconds)) for name, seconds in parts.items()}


def _line(entries: np.ndarray, seconds: np.ndarray) -> Line:
    design = np.stack([np.ones_like(entries), entries], axis=1) / seconds[:, None]
    found, _ = nnls(design, np.ones_like(seconds))
    return Line(*found.tolist())


def table_of_lines(lines: dict[str, Line], numbers: Sequence[dict[str, Any]], sizes: Sizes, way: str) -> Table:
    """Return the lines of a way to fit, also in the units of the work, and how well they fit."""
    table = Table(title=f"Seconds on {way}: fixed + by entry")
    for title in ("part", "fixed, s", "ns / (Q K V)", "ns / entry", "ns / (entry K)", "fitted / measured"):
        table.add_column(title, justify="left" if title == "part" else "right")
    work = sizes.n_clusters * sizes.n_topics * sizes.n_features
    for name, line in lines.items():
        measured = [one["clock"] - one["topics"] - one["search"] if name == "rest" else one[name] for one in numbers]
        ratios = (f"{line(one['entries']) / seconds:.2f}" for one, seconds in zip(numbers, measured, strict=True))
        rates = (1e9 * line.fixed / work, 1e9 * line.by_entry, 1e9 * line.by_entry / sizes.n_topics)
        table.add_row(name, f"{line.fixed:.1f}", *(f"{rate:.3g}" for rate in rates), ", ".join(ratios))
    return table


def table_of_clusters(lines: dict[str, Line], sizes: Sizes, way: str) -> Table:
    """Return what the model says of many rows on many workers, each with the threads of these lines."""
    bandwidth = f"{BANDWIDTH / 1e9:.0f} GB/s into and out of each machine"
    table = Table(title=f"Carried on: minutes, workers of {way}, {bandwidth}")
    for title in (
        "rows",
        "workers",
        "fixed",
        "rows' work",
        "tables",
        "topics",
        "row by row",
        "client, GB",
        "worker, GB",
    ):
        table.add_column(title, justify="right")
    for n_rows in (10**6, 10**7, 10**8, 10**9):
        for n_workers in (1, 10, 100):
            table.add_row(*(f"{number:,.3g}" for number in _carried(n_rows, n_workers, lines, sizes)))
    return table


def _carried(n_rows: int, n_workers: int, lines: dict[str, Line], sizes: Sizes) -> tuple[float, ...]:
    """Return rows, workers, minutes of each part, and gigabytes at the client and at each worker."""
    entries = n_rows * ENTRIES_A_ROW
    n_blocks = n_rows / block_size(n_rows, "greedy")
    hops = np.log2(n_workers + 1)  # a value is fetched from those that have it already
    seconds = (
        sum(line.fixed for line in lines.values()),
        sum(line.by_entry for line in lines.values()) * entries / n_workers,
        LOOKS * n_blocks * sizes.table_bytes * hops / BANDWIDTH,
        2 * PASSES * sizes.topic_bytes * hops / BANDWIDTH,
        LOOKS * n_rows * ROW_BYTES / BANDWIDTH,
    )
    client = n_rows * CLIENT_BYTES + 4 * sizes.table_bytes
    worker = 8 * entries / n_workers + 4 * sizes.table_bytes + 8 * sizes.topic_bytes
    return n_rows, n_workers, *(one / 60 for one in seconds), client / 1e9, worker / 1e9
