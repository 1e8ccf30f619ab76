"""What a fit costs by its size, fitted to runs of `scale.py`, and what that makes of more rows and more workers.

A fit goes through parts. Each takes fixed seconds, for tables of clusters and for samples of the rows, and seconds in
proportion to its work: the entries of all rows, of the at most 40 million that main directions are looked for in, or,
on workers, the starts that one of them tries. In the search of all rows, tables are made for each block of rows: its
fixed seconds are those of a block. Workers divide the work; what travels between them, and the tasks that they are
given, are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

from mmpca.engine.loop import block_size
from mmpca.engine.regroup import N_SPLITS, SPLIT_ROWS
from mmpca.model.searching import SAMPLED_ROWS
from mmpca.topics.lda import GROUPED_ENTRIES, GROUPED_PASSES
from mmpca.topics.spectral import GROUPED_ROWS, N_PASSES

GROUPING_PASSES = N_PASSES + 1  # main directions and groups, over some rows of many
PASSES = GROUPING_PASSES + GROUPED_PASSES
LOOKS = 3  # at all rows in the search of all of them: to give them clusters, and two before it has converged
REGROUPINGS = 2  # of all rows: after the first climb, and when no row moves any more
SAMPLINGS = 8  # times that some rows are brought together: to score topics, to fit them, to group rows, to try starts
FIRST_STARTS = 2  # that are tried whatever they find, and so side by side
READING_TASKS = 3  # a part: to read it, to tell its size, to hold its counts
ROW_BYTES = 8 + 4 + 4 + 8  # a look: the row's number and label there, its target and what it can gain back
# A row, at the client: labels twice; total, gain and time; the order of visits and numbers; what an epoch's end needs.
CLIENT_BYTES = 4 * 2 + 8 * 3 + 8 * 3 + 8 * 6
ENTRY_BYTES = 8
BANDWIDTH = 1e9  # bytes a second, assumed, into and out of each machine
ENTRIES_A_ROW = 81
PART_ROWS = 1_000_000  # of a part that a worker reads, if there are as many for each
LEAST_SECONDS = 1e-3  # of a part of a fit, which its line is fitted in proportion to


class Size(NamedTuple):
    """What the work of a fit grows with."""

    n_rows: int
    n_entries: float
    n_workers: int = 1

    @property
    def n_blocks(self) -> int:
        """Blocks of an epoch of the search of all rows."""
        return -(-self.n_rows // block_size(self.n_rows, "greedy"))


TIMES: dict[str, Callable[[Size], float]] = {"fit": lambda size: 1.0, "block": lambda size: float(size.n_blocks)}
WORK: dict[str, Callable[[Size], float]] = {
    "entry": lambda size: size.n_entries / size.n_workers,
    "grouped entry": lambda size: min(size.n_entries, GROUPED_ENTRIES) / size.n_workers,
    "round of starts": lambda size: 1.0 / min(size.n_workers, FIRST_STARTS),
    "nothing": lambda size: 0.0,
}


class Part(NamedTuple):
    """Stages of a fit that grow in the same way."""

    stages: tuple[str, ...]
    unit: str  # of the work beyond what is fixed
    each: str = "fit"  # that the fixed seconds are those of


PARTS = {
    "before": Part(("before",), "entry"),
    "main directions": Part(("directions", "groups"), "grouped entry"),
    "topics of a sample": Part(("scores", "prior", "topics", "sample"), "nothing"),
    "topics of all rows": Part(("refining",), "entry"),
    "starts on a sample": Part(("shares", "starts"), "round of starts"),
    "search of all rows": Part(("carrying", "search"), "entry", "block"),
    "end": Part(("refit", "dispersion"), "entry"),
}


class Line(NamedTuple):
    """Seconds of a part of a fit: fixed ones of a fit or a block, and so many for each unit of its work."""

    fixed: float
    rate: float
    unit: str
    each: str = "fit"

    def __call__(self, size: Size) -> float:
        """Return the seconds of a fit of this size."""
        return self.fixed * TIMES[self.each](size) + self.rate * WORK[self.unit](size)


class Measured(NamedTuple):
    """The seconds of the parts of a fit."""

    size: Size
    seconds: dict[str, float]

    @property
    def label(self) -> str:
        """What tells it from the others."""
        n_rows, n_workers = self.size.n_rows, self.size.n_workers
        return f"{n_rows:,}" if n_workers == 1 else f"{n_rows:,} on {n_workers}"


class Shape(NamedTuple):
    """What does not grow with the rows."""

    n_features: int
    n_clusters: int
    n_topics: int

    @property
    def table_bytes(self) -> float:
        """Bytes of the tables that a block of rows is asked with: counts, and what moves are screened with."""
        return 8.0 * 3 * self.n_clusters * self.n_features

    @property
    def topic_bytes(self) -> float:
        """Bytes of sums of topics, or of the topics."""
        return 8.0 * self.n_topics * self.n_features


class Overhead(NamedTuple):
    """Seconds that Dask takes for a task beside its work."""

    alone: float  # from asking to having the answer, of one at a time
    each: float  # more, of many at a time


# --- fitting ------------------------------------------------------------------------------------------------------


def measured(n_rows: int, numbers: dict[str, Any]) -> Measured | None:
    """Return the seconds of a run by parts, None if it did not note them."""
    if "stages" not in numbers or "entries" not in numbers:
        return None
    stages: dict[str, float] = numbers["stages"]
    seconds = {name: sum(stages.get(stage, 0.0) for stage in part.stages) for name, part in PARTS.items()}
    return Measured(Size(n_rows, numbers["entries"], int(numbers.get("workers", 1))), seconds)


def fitted_lines(runs: Sequence[Measured]) -> dict[str, Line]:
    """Return the lines of all parts that fit runs best, in proportion to their times."""
    return {name: _line(runs, name, part) for name, part in PARTS.items()}


def _line(runs: Sequence[Measured], name: str, part: Part) -> Line:
    times, work = (np.array([count(run.size) for run in runs]) for count in (TIMES[part.each], WORK[part.unit]))
    seconds = np.array([run.seconds[name] for run in runs])
    tolerance = np.maximum(seconds, LEAST_SECONDS)
    if np.ptp(work) == 0:  # nothing tells it from what is fixed
        work = np.zeros_like(work)
    unit_work = max(work.max(), 1.0)  # columns of about the same size
    design = np.stack([times, work / unit_work], axis=1) / tolerance[:, None]
    (fixed, rate), _ = nnls(design, seconds / tolerance)
    return Line(float(fixed), float(rate / unit_work), part.unit, part.each)


def table_of_lines(lines: dict[str, Line], runs: Sequence[Measured], shape: Shape, way: str) -> Table:
    """Return the lines of a way to fit, also in the units of the work, and what they are wrong by in each run."""
    left = f"{len(runs) - 2} left to check them" if len(runs) > 2 else "none left to check them"
    table = Table(title=f"Seconds on {way}, lines of two numbers through {len(runs)} runs, {left}: fitted - measured")
    titles = ("part", "fixed, s", "for each", "ns / (Q K V)", "ns a unit", "unit")
    for title in (*titles, *(run.label for run in runs)):
        table.add_column(title, justify="left" if title in ("part", "for each", "unit") else "right")
    tables = shape.n_clusters * shape.n_topics * shape.n_features
    for name, line in lines.items():
        errors = (_error(line(run.size), run.seconds[name]) for run in runs)
        rates = f"{1e9 * line.fixed / tables:.3g}", f"{1e9 * line.rate:.3g}"
        table.add_row(name, f"{line.fixed:.3g}", line.each, *rates, line.unit, *errors)
    whole = (_error(sum(line(run.size) for line in lines.values()), sum(run.seconds.values())) for run in runs)
    largest = max(run.size for run in runs)
    fixed = sum(line.fixed * TIMES[line.each](largest) for line in lines.values())
    table.add_row("whole", f"{fixed:.1f}", f"fit of {largest.n_rows:,}", "", "", "", *whole)
    return table


def _error(fitted: float, seconds: float) -> str:
    share = (fitted - seconds) / max(seconds, LEAST_SECONDS)
    return f"{fitted - seconds:+.1f} s, {share:+.0%}"


# --- carried on ---------------------------------------------------------------------------------------------------


class Carried(NamedTuple):
    """What the model says of a fit: seconds of its parts one after another, bytes, tasks."""

    fixed: float  # on the client, or on one worker
    rows: float  # work on rows, divided
    tables: float  # of the clusters, to all workers
    topics: float  # topics there, their sums back
    row_by_row: float  # labels, targets and gains
    together: float  # rows that are brought together
    tasks: float
    n_tasks: float
    client_bytes: float
    worker_bytes: float

    @property
    def seconds(self) -> float:
        """Seconds of all parts."""
        return sum(self[: self._fields.index("n_tasks")])


def carried(n_rows: int, n_workers: int, lines: dict[str, Line], shape: Shape, overhead: Overhead) -> Carried:
    """Return what the model says of so many rows on so many workers."""
    size = Size(n_rows, n_rows * ENTRIES_A_ROW, n_workers)
    n_blocks = size.n_blocks
    hops = np.log2(n_workers + 1)  # a value is fetched from those that have it already
    fixed = sum(line(size._replace(n_entries=0)) for line in lines.values())
    n_tasks, n_rounds = _tasks(n_rows, n_workers, n_blocks, shape)
    return Carried(
        fixed,
        sum(line(size) for line in lines.values()) - fixed,
        LOOKS * n_blocks * shape.table_bytes * hops / BANDWIDTH,
        2 * PASSES * shape.topic_bytes * hops / BANDWIDTH,
        LOOKS * n_rows * ROW_BYTES / BANDWIDTH,
        _together_bytes(n_rows, n_workers, shape) / BANDWIDTH,
        n_rounds * overhead.alone + n_tasks * overhead.each,
        n_tasks,
        n_rows * CLIENT_BYTES + 4 * shape.table_bytes,
        ENTRY_BYTES * size.n_entries / n_workers + 4 * shape.table_bytes + 8 * shape.topic_bytes,
    )


def _tasks(n_rows: int, n_workers: int, n_blocks: int, shape: Shape) -> tuple[float, float]:
    """Return how many tasks there are, and how often somebody waits for some: a worker has one task at a time."""
    rounds = LOOKS * n_blocks + PASSES + SAMPLINGS + REGROUPINGS * (shape.n_clusters + N_SPLITS)
    return rounds * n_workers + READING_TASKS * max(n_workers, n_rows / PART_ROWS), rounds


def _together_bytes(n_rows: int, n_workers: int, shape: Shape) -> float:
    """Return the bytes of rows that come to a worker at the most: for trial splits, for samples."""
    of_cluster = min(n_rows / shape.n_clusters, SPLIT_ROWS)
    n_split = REGROUPINGS * (shape.n_clusters + N_SPLITS) * of_cluster / min(n_workers, shape.n_clusters)
    n_sampled = min(n_rows, SAMPLED_ROWS) + min(n_rows, GROUPED_ROWS)
    return ENTRY_BYTES * ENTRIES_A_ROW * (n_split + n_sampled)


def table_of_clusters(lines: dict[str, Line], shape: Shape, overhead: Overhead) -> Table:
    """Return what the model says of many rows on many workers, each as in the runs of these lines."""
    table = Table(
        title=f"Carried on: minutes on workers of one thread, {BANDWIDTH / 1e9:.0f} GB/s into and out of each machine, "
        f"{1e3 * overhead.each:.2f} ms a task and {1e3 * overhead.alone:.1f} ms to wait for one"
    )
    minutes = ("fixed", "rows' work", "tables", "topics", "row by row", "rows together", "tasks", "sum")
    for title in ("rows", "workers", *minutes, "number of tasks", "client, GB", "worker, GB"):
        table.add_column(title, justify="right")
    for n_rows in (10**6, 10**7, 10**8, 10**9):
        for n_workers in (1, 10, 100):
            one = carried(n_rows, n_workers, lines, shape, overhead)
            seconds = (*one[: len(minutes) - 1], one.seconds)
            gigabytes = (one.client_bytes / 1e9, one.worker_bytes / 1e9)
            table.add_row(
                *(f"{number:,}" for number in (n_rows, n_workers)),
                *(f"{each / 60:,.3g}" for each in seconds),
                f"{one.n_tasks:,.0f}",
                *(f"{number:,.3g}" for number in gigabytes),
            )
    return table
