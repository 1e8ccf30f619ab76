"""A cost model of large fits, fitted to runs of `scale.py`, and its projection to more rows and workers.

A fit consists of parts. Each part takes fixed seconds, for tables of clusters and samples of rows, and seconds
proportional to its work: the entries of all rows, the entries used for the main directions (at most 40 million) or, on
workers, the starts that one worker tries. The search over all rows builds its tables for each block of rows, so its
fixed seconds are per block. Workers divide the work; transfers between them and the cost of tasks are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

from mmpca.engine.search import LEAST_SPLITS, SPLIT_ROWS, block_size
from mmpca.model.starts import SAMPLED_ROWS
from mmpca.topics.lda import BUDGET, GROUPED_PASSES
from mmpca.topics.spectral import GROUPED_ROWS, N_PASSES

GROUPING_PASSES = N_PASSES + 1  # main directions and groups, on a subset of the rows
PASSES = GROUPING_PASSES + GROUPED_PASSES
SEARCH_PASSES = 3  # passes over all rows: to assign them to clusters, and two before convergence is declared
MERGE_SPLITS = 2  # rounds over all rows: after the first epochs, and when no row moves any more
SAMPLINGS = 8  # times that rows are gathered: to score topics, to fit them, to group rows, to try starts
FIRST_STARTS = 2  # starts that are always tried, and so run in parallel
READING_TASKS = 3  # per part: to read it, to return its size, to hold its counts
ROW_BYTES = 8 + 4 + 4 + 8  # per pass: number and label of a row to the worker, target and possible gain back
# Per row at the client: labels twice; total, gain and time; visiting order and numbers; work space at an epoch's end.
CLIENT_BYTES = 4 * 2 + 8 * 3 + 8 * 3 + 8 * 6
ENTRY_BYTES = 8
BANDWIDTH = 1e9  # bytes per second into and out of each machine, assumed
ENTRIES_PER_ROW = 81
PART_ROWS = 1_000_000  # rows of a part that a worker reads
MIN_SECONDS = 1e-3  # lines are fitted to relative errors, but shorter times count as this


class Size(NamedTuple):
    """The quantities that determine the work of a fit."""

    n_rows: int
    n_entries: float
    n_workers: int = 1

    @property
    def n_blocks(self) -> int:
        """Blocks in an epoch of the search over all rows."""
        return -(-self.n_rows // block_size(self.n_rows, "greedy"))


TIMES: dict[str, Callable[[Size], float]] = {"fit": lambda size: 1.0, "block": lambda size: float(size.n_blocks)}
WORK: dict[str, Callable[[Size], float]] = {
    "entry": lambda size: size.n_entries / size.n_workers,
    "grouped entry": lambda size: min(size.n_entries, BUDGET.grouped_entries) / size.n_workers,
    "round of starts": lambda size: 1.0 / min(size.n_workers, FIRST_STARTS),
    "nothing": lambda size: 0.0,
}


class Part(NamedTuple):
    """Stages of a fit whose time grows in the same way."""

    stages: tuple[str, ...]
    unit: str  # of the work
    per: str = "fit"  # what the fixed seconds refer to: a fit or a block


PARTS = {
    "before": Part(("before",), "entry"),
    "main directions": Part(("topics: main directions", "topics: grouping rows"), "grouped entry"),
    "topics of a sample": Part(
        ("topics: choosing the row prior", "topics: fitting", "topics: fitting a sample"), "nothing"
    ),
    "topics of all rows": Part(("topics: refining on all rows",), "entry"),
    "starts on a sample": Part(("shares", "starts"), "round of starts"),
    "search over all rows": Part(("extension", "search"), "entry", "block"),
    "final step": Part(("refit", "dispersion"), "entry"),
}


class Line(NamedTuple):
    """Seconds of a part: fixed seconds per fit or block, and a rate per unit of work."""

    fixed: float
    rate: float
    unit: str
    per: str = "fit"

    def __call__(self, size: Size) -> float:
        """Return the seconds of a fit of this size."""
        return self.fixed * TIMES[self.per](size) + self.rate * WORK[self.unit](size)


class Measured(NamedTuple):
    """The seconds of the parts of a fit."""

    size: Size
    seconds: dict[str, float]

    @property
    def label(self) -> str:
        """A short name for tables."""
        n_rows, n_workers = self.size.n_rows, self.size.n_workers
        return f"{n_rows:,}" if n_workers == 1 else f"{n_rows:,} on {n_workers}"


class Shape(NamedTuple):
    """The sizes that do not grow with the rows."""

    n_features: int
    n_clusters: int
    n_topics: int

    @property
    def table_bytes(self) -> float:
        """Bytes of the tables that travel with a block: counts, and the tables that screen moves."""
        return 8.0 * 3 * self.n_clusters * self.n_features

    @property
    def topic_bytes(self) -> float:
        """Bytes of the topics, or of sums for them."""
        return 8.0 * self.n_topics * self.n_features


class Overhead(NamedTuple):
    """Seconds that Dask needs for a task besides its work."""

    alone: float  # from submitting a single task to its result
    each: float  # for each of many tasks submitted together


# --- fitting ------------------------------------------------------------------------------------------------------


def measured(n_rows: int, numbers: dict[str, Any]) -> Measured | None:
    """Return the seconds of a run by part, None if its stages were not timed."""
    if "stages" not in numbers or "entries" not in numbers:
        return None
    stages: dict[str, float] = numbers["stages"]
    seconds = {name: sum(stages.get(stage, 0.0) for stage in part.stages) for name, part in PARTS.items()}
    return Measured(Size(n_rows, numbers["entries"], int(numbers.get("workers", 1))), seconds)


def fit_lines(runs: Sequence[Measured]) -> dict[str, Line]:
    """Fit the line of each part to runs, minimizing relative errors."""
    return {name: _line(runs, name, part) for name, part in PARTS.items()}


def _line(runs: Sequence[Measured], name: str, part: Part) -> Line:
    times, work = (np.array([count(run.size) for run in runs]) for count in (TIMES[part.per], WORK[part.unit]))
    seconds = np.array([run.seconds[name] for run in runs])
    tolerance = np.maximum(seconds, MIN_SECONDS)
    if np.ptp(work) == 0:  # cannot be separated from the fixed seconds
        work = np.zeros_like(work)
    unit_work = max(work.max(), 1.0)  # columns of about the same size
    design = np.stack([times, work / unit_work], axis=1) / tolerance[:, None]
    (fixed, rate), _ = nnls(design, seconds / tolerance)
    return Line(float(fixed), float(rate / unit_work), part.unit, part.per)


def table_of_lines(lines: dict[str, Line], runs: Sequence[Measured], shape: Shape, way: str) -> Table:
    """Return the fitted lines of one way to run, with their errors in each run."""
    left = f"{max(len(runs) - 2, 0)} degrees of freedom"
    table = Table(
        title=f"Seconds on {way}: lines with two parameters fitted to {len(runs)} runs, {left}; fitted - measured"
    )
    titles = ("part", "fixed, s", "per", "ns / (Q K V)", "ns per unit", "unit")
    for title in (*titles, *(run.label for run in runs)):
        table.add_column(title, justify="left" if title in ("part", "per", "unit") else "right")
    tables = shape.n_clusters * shape.n_topics * shape.n_features
    for name, line in lines.items():
        errors = (_error(line(run.size), run.seconds[name]) for run in runs)
        rates = f"{1e9 * line.fixed / tables:.3g}", f"{1e9 * line.rate:.3g}"
        table.add_row(name, f"{line.fixed:.3g}", line.per, *rates, line.unit, *errors)
    whole = (_error(sum(line(run.size) for line in lines.values()), sum(run.seconds.values())) for run in runs)
    largest = max(run.size for run in runs)
    fixed = sum(line.fixed * TIMES[line.per](largest) for line in lines.values())
    table.add_row("whole", f"{fixed:.1f}", f"fit of {largest.n_rows:,}", "", "", "", *whole)
    return table


def _error(fitted: float, seconds: float) -> str:
    share = (fitted - seconds) / max(seconds, MIN_SECONDS)
    return f"{fitted - seconds:+.1f} s, {share:+.0%}"


# --- projection ---------------------------------------------------------------------------------------------------


class Projection(NamedTuple):
    """The predicted cost of a fit: seconds of its parts, tasks and bytes."""

    fixed: float  # on the client or on a single worker
    rows: float  # work on rows, divided between workers
    tables: float  # sending the clusters' tables to all workers
    topics: float  # sending topics, returning their sums
    row_by_row: float  # sending labels, returning targets and gains
    gathered: float  # moving rows to one worker
    tasks: float  # overhead of Dask
    n_tasks: float
    client_bytes: float
    worker_bytes: float

    @property
    def seconds(self) -> float:
        """Seconds of all parts."""
        return sum(self[: self._fields.index("n_tasks")])


def project(n_rows: int, n_workers: int, lines: dict[str, Line], shape: Shape, overhead: Overhead) -> Projection:
    """Return the predicted cost of a fit."""
    size = Size(n_rows, n_rows * ENTRIES_PER_ROW, n_workers)
    n_blocks = size.n_blocks
    hops = np.log2(n_workers + 1)  # workers fetch a value from those that already have it
    fixed = sum(line(size._replace(n_entries=0)) for line in lines.values())
    n_tasks, n_rounds = _tasks(n_rows, n_workers, n_blocks, shape)
    return Projection(
        fixed,
        sum(line(size) for line in lines.values()) - fixed,
        SEARCH_PASSES * n_blocks * shape.table_bytes * hops / BANDWIDTH,
        2 * PASSES * shape.topic_bytes * hops / BANDWIDTH,
        SEARCH_PASSES * n_rows * ROW_BYTES / BANDWIDTH,
        _gathered_bytes(n_rows, n_workers, shape) / BANDWIDTH,
        n_rounds * overhead.alone + n_tasks * overhead.each,
        n_tasks,
        n_rows * CLIENT_BYTES + 4 * shape.table_bytes,
        ENTRY_BYTES * size.n_entries / n_workers + 4 * shape.table_bytes + 8 * shape.topic_bytes,
    )


def _tasks(n_rows: int, n_workers: int, n_blocks: int, shape: Shape) -> tuple[float, float]:
    """Return the number of tasks, and the number of rounds that are waited for; a worker has one task per round."""
    rounds = SEARCH_PASSES * n_blocks + PASSES + SAMPLINGS + MERGE_SPLITS * (shape.n_clusters + LEAST_SPLITS)
    return rounds * n_workers + READING_TASKS * max(n_workers, n_rows / PART_ROWS), rounds


def _gathered_bytes(n_rows: int, n_workers: int, shape: Shape) -> float:
    """Return the largest number of bytes of rows that move to one worker, for trial splits and samples."""
    of_cluster = min(n_rows / shape.n_clusters, SPLIT_ROWS)
    n_split = MERGE_SPLITS * (shape.n_clusters + LEAST_SPLITS) * of_cluster / min(n_workers, shape.n_clusters)
    n_sampled = min(n_rows, SAMPLED_ROWS) + min(n_rows, GROUPED_ROWS)
    return ENTRY_BYTES * ENTRIES_PER_ROW * (n_split + n_sampled)


def table_of_projections(lines: dict[str, Line], shape: Shape, overhead: Overhead) -> Table:
    """Return the predicted cost of many rows on many workers."""
    table = Table(
        title=f"Projection: minutes on single-threaded workers, {BANDWIDTH / 1e9:.0f} GB/s per machine, "
        f"{1e3 * overhead.each:.2f} ms per task and {1e3 * overhead.alone:.1f} ms per round"
    )
    minutes = ("fixed", "work on rows", "tables", "topics", "row by row", "gathered rows", "tasks", "total")
    for title in ("rows", "workers", *minutes, "number of tasks", "client, GB", "worker, GB"):
        table.add_column(title, justify="right")
    for n_rows in (10**6, 10**7, 10**8, 10**9):
        for n_workers in (1, 10, 100):
            one = project(n_rows, n_workers, lines, shape, overhead)
            seconds = (*one[: len(minutes) - 1], one.seconds)
            gigabytes = (one.client_bytes / 1e9, one.worker_bytes / 1e9)
            table.add_row(
                *(f"{number:,}" for number in (n_rows, n_workers)),
                *(f"{each / 60:,.3g}" for each in seconds),
                f"{one.n_tasks:,.0f}",
                *(f"{number:,.3g}" for number in gigabytes),
            )
    return table
