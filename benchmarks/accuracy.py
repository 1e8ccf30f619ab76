"""Print how near the labels come to the truth, with what is required of them: `make accuracy`.

Every finished fit is safe on disk; a second run goes on where the first was stopped. Remove the folder of results to
begin anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import judge
from bench import WIDTH, revision
from bench import table as required_table
from ledger import Ledger, Numbers, Task, run_all
from measure import Row
from methods import METHODS, REAL_METHODS
from real import Real, real_tasks, reference_tasks
from simulated import CEILING, Simulated, promise_tasks, simulated_tasks

RESULTS = Path(__file__).with_name("results") / "accuracy"
QUICK = {"balances": (1.0, 0.7), "noises": (0.2, 0.5), "n_samples": 200}
QUICK_ROWS = 500  # of a real data set


def main() -> int:
    """Run what is not finished, print the tables; return 1 if a requirement fails and 2 if a folder is missing."""
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    ledger = Ledger(options.results / "quick" if options.quick else options.results, revision())
    try:
        parts = [make(options) for make in (simulated_part, promise_part, real_part, reference_part)]
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    rows: list[Row] = []
    for part in parts:
        if not part.tasks:
            console.print(part.left_out)
            continue
        results = run_all(part.tasks, ledger, n_jobs=options.jobs, console=Console(stderr=True))
        if part.show is not None:
            console.print(part.show(results))
        rows += part.rate(results)
    if options.quick:
        rows = [row._replace(required=None) for row in rows]
    summary = required_table(rows, options.quick)
    summary.title = "required of the accuracy" + (", quick: reported only" if options.quick else "")
    console.print(summary)
    return int(any(row.holds is False for row in rows))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="data sets for each cell of the grid (default: 5)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of finished results")
    parser.add_argument("--data", type=Path, help="folder that holds one folder for each labelled data set")
    parser.add_argument("--reference", type=Path, help="folder that holds one folder for each reference run")
    parser.add_argument("--quick", action="store_true", help="few small data sets, one seed; nothing is judged")
    return parser.parse_args()


# --- the parts ------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Tasks that are shown and judged together."""

    tasks: Sequence[Task]
    rate: Callable[..., list[Row]]
    show: Callable[..., Table] | None = None
    left_out: str = ""  # what to say without tasks


def simulated_part(options: argparse.Namespace) -> Part:
    """Return the grid."""
    tasks = simulated_tasks(1, **QUICK) if options.quick else simulated_tasks(options.seeds)
    return Part(tasks, judge.simulated_rows, simulated_table)


def promise_part(options: argparse.Namespace) -> Part:
    """Return what two fits of the same rows have to have in common."""
    tasks = promise_tasks(1, QUICK["n_samples"]) if options.quick else promise_tasks(options.seeds)
    return Part(tasks, judge.promise_rows)


def real_part(options: argparse.Namespace) -> Part:
    """Return the labelled data sets."""
    tasks = real_tasks(options.data, QUICK_ROWS if options.quick else None) if options.data else []
    left_out = "real data sets are left out: give their folder with --data (make: DATA=path)"
    return Part(tasks, judge.real_rows, real_table, left_out)


def reference_part(options: argparse.Namespace) -> Part:
    """Return the reference runs."""
    tasks = reference_tasks(options.reference) if options.reference else []
    left_out = "reference runs are left out: give their folder with --reference (make: REFERENCE=path)"
    return Part(tasks, judge.reference_rows, left_out=left_out)


# --- tables ---------------------------------------------------------------------------------------------------------


def simulated_table(results: Mapping[Simulated, Numbers]) -> Table:
    """Return the mean results in each cell of the grid, and over all of them."""
    names = (CEILING, *METHODS)
    n_seeds = len({task.seed for task in results})
    shown = Table(title=f"paper's design, mean of {n_seeds} data sets: adjusted Rand index, bound - bound at the truth")
    for name in ("lambda", "epsilon", *names, "default - published", "above truth", "share >= 0"):
        shown.add_column(name, justify="right")
    for balance, noise in judge.cells(results):
        shown.add_row(f"{balance:g}", f"{noise:g}", *_cells(results, names, balance=balance, noise=noise))
    shown.add_section()
    shown.add_row("all", "", *_cells(results, names))
    seconds = [f"{judge.values(results, name, 'seconds').mean():.2f} s" for name in METHODS]
    shown.add_row("time", "", "", *seconds)
    return shown


def _cells(results: Mapping[Simulated, Numbers], names: tuple[str, ...], **where: float) -> list[str]:
    """Return the entries of a line that belong to some data sets."""
    gain = judge.compare(results, "default", "published", **where)
    above = judge.values(results, "default", "above_truth", **where)
    means = [f"{judge.values(results, name, **where).mean():.3f}" for name in names]
    share = f"{(above >= -judge.NATS).mean():.0%}"
    return [*means, f"{gain.mean:+.3f} ({gain.error:.3f})", f"{above.mean():+.1f}", share]


def real_table(results: Mapping[Real, Numbers]) -> Table:
    """Return the results on real data: a line for each data set and number of topics."""
    shown = Table(title="real data: adjusted Rand index / normalised mutual information; index of overdispersion")
    for name in ("data", "Q", "K", *REAL_METHODS, "index", "index, sqrt", "default, s"):
        shown.add_column(name, justify="left" if name == "data" else "right")
    for folder, factor in dict.fromkeys((task.folder, task.factor) for task in results):
        found = {name: results[Real(folder, factor, name)] for name in REAL_METHODS}
        n_clusters = round(found["default"]["n_clusters"])
        scores = [f"{numbers['ari']:.3f} / {numbers['nmi']:.3f}" for numbers in found.values()]
        indices = [f"{found[name]['overdispersion']:.3g}" for name in ("default", "sqrt")]
        shown.add_row(Path(folder).name, str(n_clusters), str(factor * n_clusters), *scores, *indices,
                      f"{found['default']['seconds']:.1f}")  # fmt: skip
    mean = [f"{np.mean([n['ari'] for task, n in results.items() if task.method == name]):.3f}" for name in REAL_METHODS]
    shown.add_section()
    shown.add_row("mean ARI", "", "", *mean)
    return shown


if __name__ == "__main__":
    sys.exit(main())
