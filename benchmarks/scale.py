"""Measure time and memory of fits of growing size, and of baselines on the same rows: `make bench-scale`.

Every fit runs in its own process, so its memory is its own; the counts are simulated once and memory-mapped from files.
The default is 10,000 and 100,000 rows; `--long` adds 300,000 and a million. Ratios of wall times mean something only on
a quiet machine, so CPU seconds, including those of workers, are printed as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from measure import RESULTS, WIDTH, Limits, Row, in_fresh_process, result_table
from mmpca.io import CountTable, write_counts
from mmpca.simulate import simulate_mmpca, sparse_topics
from problems import FULL
from scale_model import Measured, Overhead, Shape, fit_lines, measured, table_of_lines, table_of_projections

STARTED = f"{datetime.now():%Y%m%d-%H%M%S}"
N_FEATURES, N_GROUPS, LENGTHS = 50_000, 30, (45, 120)  # features, clusters and topics, range of row totals
BLOCK_ROWS = 25_000
MILLION = 1_000_000
SIZES = (10_000, 100_000)
LONG_SIZES = (300_000, MILLION)  # with 100,000, three sizes with the same stages: a line through two checks nothing
MAX_GIGABYTES = 16  # for a million rows
LARGE = 100_000  # rows from which on all fits have the same stages; smaller ones learn topics by EM on all rows
JUDGED = 100_000  # rows for which a speedup on two threads and two processes is required
WAYS = {
    "1 thread": ("threads", 1),
    "2 threads": ("threads", 2),
    "1 process": ("processes", 1),
    "2 processes": ("processes", 2),
}
# What two threads or processes are compared with, and the required speedup.
SPEEDUPS = {"2 threads": ("1 thread", 1.6), "2 processes": ("1 process", 1.4)}
BASELINES = {"online LDA, one pass": "lda", "mini-batch k-means, one pass": "kmeans"}
CORPUS = "corpus"  # of make bench; its fit is compared with ten iterations of LDA
TASKS = "tasks"  # the cost of a Dask task
PROCESSES = "single-threaded worker processes"
MODELED = {"1 thread": ("1 thread",), "2 threads": ("2 threads",), PROCESSES: ("1 process", "2 processes")}
SHAPE = Shape(N_FEATURES, N_GROUPS, N_GROUPS)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Run(NamedTuple):
    """A fit or a pass of a baseline, with its measurements."""

    n_rows: int
    name: str
    numbers: dict[str, Any]


def main() -> None:
    """Make the requested runs, print the tables and save the numbers."""
    options = parse()
    sizes = options.rows or (*SIZES, *(LONG_SIZES if options.long else ()))
    runs = earlier_runs(options.after)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = [name for name in WAYS | BASELINES if not options.only or name in options.only]
        for n_rows in sizes if wanted else ():
            folder = simulate((options.data or Path(scratch)) / f"rows-{n_rows}", n_rows)
            for name in wanted:
                Console(stderr=True).print(f"{n_rows:,} rows, {name} ...")
                runs.append(Run(n_rows, name, run(folder, name, options)))
                save(runs)
    if not options.only or CORPUS in options.only:
        runs.append(Run(FULL.n_samples, CORPUS, in_fresh_process("fit-corpus", environment=ONE_THREAD)))
    if not options.only or TASKS in options.only:
        runs.append(Run(0, TASKS, in_fresh_process("task-overhead", "2", environment=ONE_THREAD)))
    show(runs)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="add 300,000 and a million rows")
    parser.add_argument("--rows", type=int, action="append", help="use this number of rows instead; may be repeated")
    parser.add_argument(
        "--only", action="append", choices=[*WAYS, *BASELINES, CORPUS, TASKS], help="run only this; may be repeated"
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="keep the simulated counts here for the next time")
    parser.add_argument("--after", type=Path, metavar="FILE", help="add to the runs of this file of results")
    parser.add_argument("--baseline-rows", type=int, default=100_000, help="rows of a baseline's pass, at most")
    parser.add_argument("--client-threads", type=int, default=2, help="threads of the client of worker processes")
    return parser.parse_args(arguments)


# --- runs ---------------------------------------------------------------------------------------------------------


def simulate(folder: Path, n_rows: int) -> Path:
    """Simulate rows from sparse topics in blocks, unless the folder already has them."""
    done = folder / "labels.npy"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    topics = sparse_topics(N_GROUPS, N_FEATURES, 0.02, random_state=0)
    shares = rng.dirichlet(np.full(N_GROUPS, 0.1), N_GROUPS)
    labels, blocks = [], []
    for number, first in enumerate(range(0, n_rows, BLOCK_ROWS)):
        size = min(BLOCK_ROWS, n_rows - first)
        lengths = rng.integers(*LENGTHS, size)
        block = simulate_mmpca(
            size, topics=topics, cluster_topics=shares, lengths=lengths, noise=0.1, random_state=1 + number
        )
        write_counts(folder / f"block-{number:04d}.npz", CountTable(block.X, None, None, []), compress=False)
        labels.append(block.labels)
        blocks.append(block.X)
    whole = CountTable(sparse.vstack(blocks, format="csr"), None, None, [])
    write_counts(folder / "X.npz", whole, compress=False)
    np.save(done, np.concatenate(labels))
    return folder


def run(folder: Path, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements of a fit or of a baseline's pass."""
    if name in WAYS:
        kind, number = WAYS[name]
        threads = (str(options.client_threads),) if kind == "processes" else ()
        task, arguments = f"fit-{kind}", (str(number), str(N_GROUPS), *threads)
    else:
        task, arguments = f"pass-{BASELINES[name]}", (str(options.baseline_rows), str(N_GROUPS))
    return in_fresh_process(task, str(folder), *arguments, environment=ONE_THREAD)


def earlier_runs(path: Path | None) -> list[Run]:
    """Return the runs of an earlier file of results."""
    return [] if path is None else [Run(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def save(runs: list[Run]) -> Path:
    """Write the runs so far; return the path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"scale-{STARTED}.json"
    path.write_text(json.dumps([one._asdict() for one in runs], indent=2) + "\n", encoding="utf-8")
    return path


def large_runs(runs: list[Run], names: tuple[str, ...]) -> list[Measured]:
    """Return the runs of some ways that have all the stages of large data, the last of each size and way."""
    last = {
        (one.n_rows, one.name): measured(one.n_rows, one.numbers)
        for one in runs
        if one.name in names and one.n_rows >= LARGE
    }
    return [one for _, one in sorted(last.items()) if one is not None]


def overhead_of(runs: list[Run]) -> Overhead | None:
    """Return the last measured cost of a task."""
    found = [one.numbers for one in runs if one.name == TASKS]
    return Overhead(found[-1]["alone"], found[-1]["each"]) if found else None


# --- tables -------------------------------------------------------------------------------------------------------


def show(runs: list[Run]) -> None:
    """Print all tables, and where the numbers are saved."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table_of_runs(runs))
    console.print(result_table(scale_rows(runs), "scale"))
    fitted = {}
    for way, names in MODELED.items():
        found = large_runs(runs, names)
        if len({one.size.n_rows for one in found}) > 1:
            fitted[way] = fit_lines(found)
            console.print(table_of_lines(fitted[way], found, SHAPE, way))
    if PROCESSES in fitted and (overhead := overhead_of(runs)) is not None:
        console.print(table_of_projections(fitted[PROCESSES], SHAPE, overhead))
    print(f"written to {save(runs).name} in benchmarks/results")


def table_of_runs(runs: list[Run]) -> Table:
    """Return the measurements of each run."""
    table = Table(title=f"V = {N_FEATURES:,}, Q = K = {N_GROUPS}")
    columns = {"clock": "wall time, s", "cpu": "CPU, s", "topics": "topics, s", "search": "search, s",
               "gigabytes": "peak, GB", "ari": "ARI", "bound": "bound"}  # fmt: skip
    for title in ("rows", "run", *columns.values()):
        table.add_column(title, justify="right" if title != "run" else "left")
    for one in runs:
        if one.name != TASKS:
            cells = [f"{one.numbers[key]:,.6g}" if key in one.numbers else "" for key in columns]
            seen = f" over {one.numbers['rows']:,} rows" if one.name in BASELINES else ""
            table.add_row(f"{one.n_rows:,}", one.name + seen, *cells)
    return table


def scale_rows(runs: list[Run]) -> list[Row]:
    """Return speedups, the cost of epochs and the memory, with their requirements."""
    found = {(one.n_rows, one.name): one.numbers for one in runs}
    rows: list[Row] = []
    for (n_rows, name), numbers in found.items():
        if name == CORPUS:
            rows.append(corpus_row(numbers))
        other, speedup = SPEEDUPS.get(name, ("", np.nan))
        if (n_rows, other) in found:
            alone, clock = found[n_rows, other]["clock"], numbers["clock"]
            required = Limits(at_least=speedup) if n_rows == JUDGED else None
            measure = f"{n_rows:,} rows: wall time, {other} / {name}"
            rows.append(Row("speedup", measure, alone / clock, required, f"{alone:.1f} s / {clock:.1f} s"))
        if len(numbers.get("epochs", [])) > 1:
            rows.append(epoch_row(n_rows, numbers))
        if name in WAYS and n_rows >= MILLION:
            measure = f"{n_rows:,} rows, {name}: peak memory of all processes, GB"
            rows.append(Row("memory", measure, numbers["gigabytes"], Limits(at_most=MAX_GIGABYTES)))
    return rows


def corpus_row(numbers: dict[str, Any]) -> Row:
    """Compare a fit of the corpus with ten iterations of LDA."""
    size = f"{FULL.n_samples:,} x {FULL.n_features:,}, Q = K = {FULL.n_topics}"
    measure, note = (
        f"{size}: CPU time, ten iterations of LDA / a fit",
        f"{numbers['lda']:.0f} s / {numbers['cpu']:.0f} s",
    )
    return Row("corpus", measure, numbers["lda"] / numbers["cpu"], Limits(at_least=1), note)


def epoch_row(n_rows: int, numbers: dict[str, Any]) -> Row:
    """Compare the slowest epoch after the first with a product of the counts with a dense matrix."""
    note = ", ".join(f"{seconds / numbers['product']:.1f}" for seconds in numbers["epochs"][:8])
    measure = f"{n_rows:,} rows, a tenth of the labels redrawn: slowest epoch after the first / X @ D"
    required = Limits(at_most=5) if n_rows >= JUDGED else None
    return Row("epochs", measure, max(numbers["epochs"][1:]) / numbers["product"], required, note)


if __name__ == "__main__":
    main()
