"""Compare labels with the truth and check the requirements on accuracy: `make accuracy`.

Every finished fit is stored, so a second run continues where the first stopped. To start over, delete the folder of
results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy_tasks import (
    CEILING,
    INVARIANCE_NOISE,
    LABELED_METHODS,
    METHODS,
    PERMUTED,
    THREADS,
    InvarianceTask,
    LabeledTask,
    ReferenceTask,
    SimulatedTask,
    invariance_tasks,
    labeled_tasks,
    reference_tasks,
    simulated_tasks,
)
from measure import RESULTS, WIDTH, Array, Limits, Row, result_table
from mmpca.model.dispersion import LARGE_INDEX
from mmpca.store import Store
from tasks import Numbers, Task, run_all

QUICK = {"balances": (1.0, 0.7), "noises": (0.2, 0.5), "n_samples": 200}
QUICK_ROWS = 500  # per labeled data set
# Required share of the ceiling's mean ARI, by noise.
SHARES_OF_CEILING = {0.0: 0.98, 0.2: 0.95, 0.4: 0.88, 0.5: 0.75}
NATS = 1e-6  # bounds that differ by less are equal
OVERDISPERSED, NOT_OVERDISPERSED = ("oaks", "rnamix_top300"), ("acl_venues", "medical_abstracts_test")
STABILIZED = {("oaks", 2): 0.9}  # required ARI of square roots, by data set and topics per cluster


def main() -> int:
    """Run unfinished tasks and print the tables; return 1 if a requirement fails and 2 if a folder is missing."""
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    store = Store(options.results / "quick" if options.quick else options.results, "accuracy")
    try:
        parts = [make(options) for make in (simulated_part, invariance_part, labeled_part, reference_part)]
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    rows: list[Row] = []
    for part in parts:
        if not part.tasks:
            console.print(part.hint)
            continue
        results = run_all(part.tasks, store, n_jobs=options.jobs, console=Console(stderr=True))
        if part.table is not None:
            console.print(part.table(results))
        rows += part.rows(results)
    if options.quick:
        rows = [row._replace(required=None) for row in rows]
    console.print(result_table(rows, "accuracy" + (", quick: requirements not checked" if options.quick else "")))
    return int(any(row.holds is False for row in rows))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="data sets per cell of the grid (default: 5)")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--results", type=Path, default=RESULTS / "accuracy", help="folder of finished results")
    parser.add_argument("--data", type=Path, help="folder with one folder per labeled data set")
    parser.add_argument("--reference", type=Path, help="folder with one folder per reference run")
    parser.add_argument("--quick", action="store_true", help="few small data sets; requirements are not checked")
    return parser.parse_args(arguments)


# --- parts ------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Tasks that are shown and judged together."""

    tasks: Sequence[Task]
    rows: Callable[..., list[Row]]
    table: Callable[..., Table] | None = None
    hint: str = ""  # printed if there are no tasks


def simulated_part(options: argparse.Namespace) -> Part:
    """Return the grid of simulated data sets."""
    tasks = simulated_tasks(1, **QUICK) if options.quick else simulated_tasks(options.seeds)
    return Part(tasks, simulated_rows, simulated_table)


def invariance_part(options: argparse.Namespace) -> Part:
    """Return the pairs of fits that should agree."""
    tasks = invariance_tasks(1, QUICK["n_samples"]) if options.quick else invariance_tasks(options.seeds)
    return Part(tasks, invariance_rows)


def labeled_part(options: argparse.Namespace) -> Part:
    """Return the labeled data sets."""
    tasks = labeled_tasks(options.data, QUICK_ROWS if options.quick else None) if options.data else []
    return Part(tasks, labeled_rows, labeled_table, "labeled data sets are skipped; use --data (make: DATA=path)")


def reference_part(options: argparse.Namespace) -> Part:
    """Return the reference runs."""
    tasks = reference_tasks(options.reference) if options.reference else []
    return Part(tasks, reference_rows, hint="reference runs are skipped; use --reference (make: REFERENCE=path)")


# --- requirements -----------------------------------------------------------------------------------------------


def values(results: Mapping[SimulatedTask, Numbers], method: str, field: str = "ari", **where: float) -> Array:
    """Return a result of a method on all data sets, or on those of some cells, in the order of the tasks."""
    chosen = [
        numbers[field]
        for task, numbers in results.items()
        if task.method == method and all(getattr(task, name) == value for name, value in where.items())
    ]
    return np.array(chosen)


def cells(results: Iterable[SimulatedTask]) -> list[tuple[float, float]]:
    """Return the pairs of balance and noise, in order."""
    return list(dict.fromkeys((task.balance, task.noise) for task in results))


def compare(
    results: Mapping[SimulatedTask, Numbers], method: str, baseline: str, **where: float
) -> tuple[float, float]:
    """Return the mean difference of two methods' ARI on the same data sets, and its standard error.

    The error of a single data set is 0.
    """
    difference = values(results, method, **where) - values(results, baseline, **where)
    n = len(difference)
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def simulated_rows(results: Mapping[SimulatedTask, Numbers]) -> list[Row]:
    """Check the requirements on the grid."""
    noises = dict.fromkeys(task.noise for task in results)
    shares = [share_of_ceiling(results, noise) for noise in noises]
    return [gain_over_published(results), worst_cell(results), *shares, share_above_truth(results)]


def gain_over_published(results: Mapping[SimulatedTask, Numbers]) -> Row:
    """Compare the default with the published recipe over the whole grid."""
    mean, error = compare(results, "default", "published")
    return Row("grid", "mean ARI: default - published", mean, Limits(0.05), f"standard error {error:.3f}")


def worst_cell(results: Mapping[SimulatedTask, Numbers]) -> Row:
    """Compare the default with the published recipe in the cell where it does worst."""
    worst, cell = min(
        (sum(compare(results, "default", "published", balance=balance, noise=noise)), (balance, noise))
        for balance, noise in cells(results)
    )
    measure = "the same in the worst cell, plus one standard error"
    return Row("grid", measure, worst, Limits(0), f"lambda {cell[0]:g}, epsilon {cell[1]:g}")


def share_of_ceiling(results: Mapping[SimulatedTask, Numbers], noise: float) -> Row:
    """Compare the default with the Bayes classifier at one noise level, averaged over the balances."""
    ours, ceiling = (values(results, method, noise=noise).mean() for method in ("default", CEILING))
    required = Limits(SHARES_OF_CEILING[noise]) if noise in SHARES_OF_CEILING else None
    measure = f"epsilon {noise:g}: mean ARI, default / ceiling"
    return Row("grid", measure, ours / ceiling, required, f"{ours:.3f} / {ceiling:.3f}")


def share_above_truth(results: Mapping[SimulatedTask, Numbers]) -> Row:
    """Count how often the bound reaches that of the true labels."""
    above = values(results, "default", "above_truth")
    note = f"mean difference {above.mean():.1f} nats, smallest {above.min():.3g}"
    share = float((above >= -NATS).mean())
    return Row("grid", "share of bounds at or above the bound of the true labels", share, Limits(0.95), note)


def invariance_rows(results: Mapping[InvarianceTask, Numbers]) -> list[Row]:
    """Check that labels depend neither on the order of the rows nor on the number of threads."""
    found = {name: [n["ari"] for task, n in results.items() if task.name == name] for name in (PERMUTED, THREADS)}
    note = f"epsilon {INVARIANCE_NOISE:g}, {len(found[PERMUTED])} data sets"
    return [
        Row("invariance", "rows in another order: smallest ARI of two fits", min(found[PERMUTED]), Limits(0.95), note),
        Row("invariance", "n_jobs 1 and 2: share of identical fits", float(np.mean(found[THREADS])), Limits(1), note),
    ]


def labeled_rows(results: Mapping[LabeledTask, Numbers]) -> list[Row]:
    """Check the labeled data sets that have requirements."""
    rows = []
    for task, numbers in results.items():
        where = f"{task.name}, K = {task.factor} Q"
        required = STABILIZED.get((task.name, task.factor))
        if task.method == "sqrt" and required is not None:
            rows.append(Row("labeled", f"{where}: ARI with square roots", numbers["ari"], Limits(required)))
        if task.method == "default" and task.name in OVERDISPERSED + NOT_OVERDISPERSED:
            limits = Limits(LARGE_INDEX) if task.name in OVERDISPERSED else Limits(at_most=LARGE_INDEX)
            rows.append(Row("labeled", f"{where}: index of overdispersion", numbers["overdispersion"], limits))
    return rows


def reference_rows(results: Mapping[ReferenceTask, Numbers]) -> list[Row]:
    """Check the reference runs: the mean accuracy, and the lowest bound relative to the run's."""
    mean = {field: float(np.mean([n[field] for n in results.values()])) for field in ("ari", "ari_of_run")}
    lowest, name = min((numbers["above_run"], task.name) for task, numbers in results.items())
    note = f"R package: {mean['ari_of_run']:.3f}"
    measure = "best of ten starts from the run's topics: smallest bound - run's"
    return [
        Row("reference", "mean ARI with our own topics", mean["ari"], Limits(0.86), note),
        Row("reference", measure, lowest, Limits(-NATS), name),
    ]


# --- tables -----------------------------------------------------------------------------------------------------


def simulated_table(results: Mapping[SimulatedTask, Numbers]) -> Table:
    """Return the mean results in each cell of the grid, and overall."""
    names = (CEILING, *METHODS)
    n_seeds = len({task.seed for task in results})
    shown = Table(title=f"paper's design, mean of {n_seeds} data sets: adjusted Rand index, bound - bound at the truth")
    for name in ("lambda", "epsilon", *names, "default - published", "above truth", "share >= 0"):
        shown.add_column(name, justify="right")
    for balance, noise in cells(results):
        shown.add_row(f"{balance:g}", f"{noise:g}", *_cells(results, names, balance=balance, noise=noise))
    shown.add_section()
    shown.add_row("all", "", *_cells(results, names))
    seconds = [f"{values(results, name, 'seconds').mean():.2f} s" for name in METHODS]
    shown.add_row("time", "", "", *seconds)
    return shown


def _cells(results: Mapping[SimulatedTask, Numbers], names: tuple[str, ...], **where: float) -> list[str]:
    """Return the entries of one line."""
    mean, error = compare(results, "default", "published", **where)
    above = values(results, "default", "above_truth", **where)
    means = [f"{values(results, name, **where).mean():.3f}" for name in names]
    return [*means, f"{mean:+.3f} ({error:.3f})", f"{above.mean():+.1f}", f"{(above >= -NATS).mean():.0%}"]


def labeled_table(results: Mapping[LabeledTask, Numbers]) -> Table:
    """Return the results on labeled data: a line for each data set and number of topics."""
    shown = Table(title="labeled data: adjusted Rand index / normalized mutual information; index of overdispersion")
    for name in ("data", "Q", "K", *LABELED_METHODS, "index", "index, sqrt", "default, s"):
        shown.add_column(name, justify="left" if name == "data" else "right")
    for folder, factor in dict.fromkeys((task.folder, task.factor) for task in results):
        found = {name: results[LabeledTask(folder, factor, name)] for name in LABELED_METHODS}
        n_clusters = round(found["default"]["n_clusters"])
        scores = [f"{numbers['ari']:.3f} / {numbers['nmi']:.3f}" for numbers in found.values()]
        indices = [f"{found[name]['overdispersion']:.3g}" for name in ("default", "sqrt")]
        shown.add_row(Path(folder).name, str(n_clusters), str(factor * n_clusters), *scores, *indices,
                      f"{found['default']['seconds']:.1f}")  # fmt: skip
    mean = [
        f"{np.mean([n['ari'] for task, n in results.items() if task.method == name]):.3f}" for name in LABELED_METHODS
    ]
    shown.add_section()
    shown.add_row("mean ARI", "", "", *mean)
    return shown


if __name__ == "__main__":
    sys.exit(main())
