"""Print time and memory of fits of growing size, beside rivals on the same blocks of rows: `make bench-scale`.

Every fit is made in a process of its own, so that its memory is its own; the counts are drawn once and lie in files
that are mapped into memory. The short form has 10,000 and 100,000 rows, `--long` 300,000 and a million as well. Ratios
of times by the clock tell something on a quiet machine only; seconds of the processor are printed beside them: those
of the fit, its workers included.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from measure import Limits, Row, in_fresh_process
from mmpca.io import CountTable, write_counts
from mmpca.simulate import simulate_mmpca, sparse_topics
from problems import FULL
from scale_model import Measured, Overhead, Shape, fitted_lines, measured, table_of_clusters, table_of_lines

RESULTS = Path(__file__).with_name("results")
WIDTH = 160
N_FEATURES, N_GROUPS, LENGTHS = 50_000, 30, (45, 120)  # features, clusters and topics, totals of rows
BLOCK_ROWS = 25_000
MILLION = 1_000_000
SIZES, LONG_SIZES = (
    (10_000, 100_000),
    (300_000, MILLION),
)  # three that make the same steps: lines through two check nothing
GIGABYTES = 16  # that a million rows may take at the most, however they are fitted
LARGE = 100_000  # rows, from which on a fit makes the same steps: fewer have topics by EM on all of them
JUDGED = 100_000  # rows, on which two threads and two processes are required to gain
WAYS = {
    "1 thread": ("threads", 1),
    "2 threads": ("threads", 2),
    "1 process": ("processes", 1),
    "2 processes": ("processes", 2),
}
# What two threads or processes are compared with, and by how much they have to be faster.
ALONE = {"2 threads": ("1 thread", 1.6), "2 processes": ("1 process", 1.4)}
RIVALS = {"online LDA, one pass": "lda", "mini-batch k-means, one pass": "kmeans"}
CORPUS = "corpus"  # the engine's, whose fit is compared with ten iterations of LDA
TASKS = "tasks"  # of a Dask cluster, and what each costs beside its work
CARRIED = "worker processes of one thread"  # to more rows and workers
MODELLED = {"1 thread": ("1 thread",), "2 threads": ("2 threads",), CARRIED: ("1 process", "2 processes")}
SHAPE = Shape(N_FEATURES, N_GROUPS, N_GROUPS)


class Run(NamedTuple):
    """A fit or a rival's pass, and what it took."""

    n_rows: int
    name: str
    numbers: dict[str, Any]


def main() -> None:
    """Run what is asked for, print the tables and store them."""
    options = parse()
    sizes = options.rows or (*SIZES, *(LONG_SIZES if options.long else ()))
    runs = earlier(options.after)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = [name for name in WAYS | RIVALS if not options.only or name in options.only]
        for n_rows in sizes if wanted else ():
            folder = draw((options.data or Path(scratch)) / f"rows-{n_rows}", n_rows)
            for name in wanted:
                Console(stderr=True).print(f"{n_rows:,} rows, {name} ...")
                runs.append(Run(n_rows, name, run(folder, name, options)))
                store(runs)
    if not options.only or CORPUS in options.only:
        runs.append(Run(FULL.n_samples, CORPUS, in_fresh_process("fit-corpus", environment=ONE_THREAD)))
    if not options.only or TASKS in options.only:
        runs.append(Run(0, TASKS, in_fresh_process("task-overhead", "2", environment=ONE_THREAD)))
    show(runs)


def show(runs: list[Run]) -> None:
    """Print the tables, and where the numbers are kept."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table_of_runs(runs))
    console.print(table_of_rows(judged(runs)))
    fitted = {}
    for way, names in MODELLED.items():
        found = large_runs(runs, names)
        if len({one.size.n_rows for one in found}) > 1:
            fitted[way] = fitted_lines(found)
            console.print(table_of_lines(fitted[way], found, SHAPE, way))
    if CARRIED in fitted and (overhead := overhead_of(runs)) is not None:
        console.print(table_of_clusters(fitted[CARRIED], SHAPE, overhead))
    print(f"written to {store(runs).name} in benchmarks/results")


def large_runs(runs: list[Run], names: tuple[str, ...]) -> list[Measured]:
    """Return the runs of some ways that make all the steps of large data, the last of each size and way."""
    last = {
        (one.n_rows, one.name): measured(one.n_rows, one.numbers)
        for one in runs
        if one.name in names and one.n_rows >= LARGE
    }
    return [one for _, one in sorted(last.items()) if one is not None]


def overhead_of(runs: list[Run]) -> Overhead | None:
    """Return what a task was last found to cost."""
    found = [one.numbers for one in runs if one.name == TASKS]
    return Overhead(found[-1]["alone"], found[-1]["each"]) if found else None


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="300,000 and a million rows as well")
    parser.add_argument("--rows", type=int, action="append", help="so many rows instead; may be repeated")
    parser.add_argument(
        "--only", action="append", choices=[*WAYS, *RIVALS, CORPUS, TASKS], help="this alone; may be repeated"
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where drawn counts are kept for the next time")
    parser.add_argument("--after", type=Path, metavar="FILE", help="add to the runs of this file of results")
    parser.add_argument(
        "--rival-rows", type=int, default=100_000, help="rivals make their pass over so many rows at the most"
    )
    parser.add_argument(
        "--client-threads", type=int, default=2, help="threads of the client, the same for any number of processes"
    )
    return parser.parse_args()


def earlier(path: Path | None) -> list[Run]:
    """Return the runs of an earlier time."""
    return [] if path is None else [Run(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def draw(folder: Path, n_rows: int) -> Path:
    """Draw rows of sparse topics into blocks, unless they are there."""
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
    """Return the numbers of a fit or of a rival's pass."""
    groups = str(N_GROUPS)
    if name in WAYS:
        kind, number = WAYS[name]
        threads = (str(options.client_threads),) if kind == "processes" else ()
        return in_fresh_process(f"fit-{kind}", str(folder), str(number), groups, *threads, environment=ONE_THREAD)
    return in_fresh_process(
        f"pass-{RIVALS[name]}", str(folder), str(options.rival_rows), groups, environment=ONE_THREAD
    )


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def table_of_runs(runs: list[Run]) -> Table:
    """Return what each run took."""
    table = Table(title=f"V = {N_FEATURES:,}, Q = K = {N_GROUPS}")
    columns = {"clock": "clock, s", "processor": "processor, s", "topics": "topics, s", "search": "search, s",
               "gigabytes": "peak, GB", "ari": "ARI", "bound": "bound"}  # fmt: skip
    for title in ("rows", "run", *columns.values()):
        table.add_column(title, justify="right" if title != "run" else "left")
    for one in runs:
        if one.name != TASKS:
            cells = [f"{one.numbers[key]:,.6g}" if key in one.numbers else "" for key in columns]
            table.add_row(f"{one.n_rows:,}", heading(one), *cells)
    return table


def heading(run: Run) -> str:
    """Return what was run: of a rival, also over how many rows, which may be fewer than there are."""
    return f"{run.name} over {run.numbers['rows']:,} rows" if run.name in RIVALS else run.name


def judged(runs: list[Run]) -> list[Row]:
    """Return the ratios that something is required of."""
    found = {(one.n_rows, one.name): one.numbers for one in runs}
    rows = []
    for (n_rows, name), numbers in found.items():
        if name == CORPUS:
            ratio, note = (
                numbers["lda"] / numbers["processor"],
                f"{numbers['lda']:.0f} s / {numbers['processor']:.0f} s",
            )
            size = f"{FULL.n_samples:,} x {FULL.n_features:,}, Q = K = {FULL.n_topics}"
            what = f"{size}: ten iterations of LDA / a fit, processor"
            rows.append(Row("scale", what, ratio, Limits(at_least=1), note))
        other, least = ALONE.get(name, ("", np.nan))
        if (n_rows, other) in found:
            alone = found[n_rows, other]["clock"]
            required = Limits(at_least=least) if n_rows == JUDGED else None
            note = f"{alone:.1f} s / {numbers['clock']:.1f} s"
            rows.append(
                Row("scale", f"{n_rows:,} rows: {other} / {name}, clock", alone / numbers["clock"], required, note)
            )
        if len(numbers.get("epochs", [])) > 1:
            ratio = max(numbers["epochs"][1:]) / numbers["product"]
            note = ", ".join(f"{seconds / numbers['product']:.1f}" for seconds in numbers["epochs"][:8])
            required = Limits(at_most=5) if n_rows >= JUDGED else None
            rows.append(
                Row(
                    "scale",
                    f"{n_rows:,} rows, a tenth of the labels disturbed: slowest epoch after the first / X @ D",
                    ratio,
                    required,
                    note,
                )
            )
        if name in WAYS and n_rows >= MILLION:
            what = f"{n_rows:,} rows, {name}: peak memory of all processes, GB"
            rows.append(Row("scale", what, numbers["gigabytes"], Limits(at_most=GIGABYTES)))
    return rows


def table_of_rows(rows: list[Row]) -> Table:
    """Return the ratios as a table."""
    table = Table()
    for title in ("measure", "value", "required", "holds", "note"):
        table.add_column(title, overflow="fold")
    for row in rows:
        holds = {None: "", True: "[green]yes[/]", False: "[bold red]no[/]"}[row.holds]
        table.add_row(
            row.measure, f"{row.value:.3g}", "" if row.required is None else str(row.required), holds, row.note
        )
    return table


def store(runs: list[Run]) -> Path:
    """Write the runs so far; return the path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"scale-{STARTED}.json"
    path.write_text(json.dumps([one._asdict() for one in runs], indent=2) + "\n", encoding="utf-8")
    return path


STARTED = f"{datetime.now():%Y%m%d-%H%M%S}"

if __name__ == "__main__":
    main()
