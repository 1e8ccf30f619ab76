"""What is required of the accuracy, from the results of the tasks to rows of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ledger import Numbers
from measure import Array, Limits, Row
from mmpca.model.dispersion import LARGE_INDEX
from real import Real, Referenced
from simulated import CEILING, PERMUTED, PROMISE_NOISE, THREADS, Promise, Simulated

# Of the ceiling, by noise: means over the balances.
SHARES_OF_CEILING = {0.0: 0.98, 0.2: 0.95, 0.4: 0.88, 0.5: 0.75}
NATS = 1e-6  # a bound below another by less is the same
# Data sets by name: whose index has to be large, whose has to be small, and what square roots have to reach.
OVERDISPERSED, NOT_OVERDISPERSED = ("oaks", "rnamix_top300"), ("acl_venues", "medical_abstracts_test")
STABILIZED = {("oaks", 2): 0.9}


class Comparison(NamedTuple):
    """Mean difference of two methods on the same data sets, with its standard error (0 for a single data set)."""

    mean: float
    error: float


def values(results: Mapping[Simulated, Numbers], method: str, field: str = "ari", **where: float) -> Array:
    """Return a result of a method on every data set, or on those of some cells, in the order of the tasks."""
    chosen = [
        numbers[field]
        for task, numbers in results.items()
        if task.method == method and all(getattr(task, name) == value for name, value in where.items())
    ]
    return np.array(chosen)


def cells(results: Iterable[Simulated]) -> list[tuple[float, float]]:
    """Return the pairs of balance and noise, in order."""
    return list(dict.fromkeys((task.balance, task.noise) for task in results))


def compare(results: Mapping[Simulated, Numbers], method: str, rival: str, **where: float) -> Comparison:
    """Return by how much a method's index exceeds its rival's."""
    difference = values(results, method, **where) - values(results, rival, **where)
    n = len(difference)
    return Comparison(float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0)


def simulated_rows(results: Mapping[Simulated, Numbers]) -> list[Row]:
    """Judge the grid."""
    overall = compare(results, "default", "published")
    worst, cell = min(
        (sum(compare(results, "default", "published", balance=balance, noise=noise)), (balance, noise))
        for balance, noise in cells(results)
    )
    rows = [
        Row("grid", "mean ARI: default - published", overall.mean, Limits(0.05), f"standard error {overall.error:.3f}"),
        Row("grid", "the same in the worst cell, plus its standard error", worst, Limits(0),
            f"lambda {cell[0]:g}, epsilon {cell[1]:g}"),
    ]  # fmt: skip
    for noise in dict.fromkeys(task.noise for task in results):
        ours, ceiling = (values(results, method, noise=noise).mean() for method in ("default", CEILING))
        share = SHARES_OF_CEILING.get(noise)
        rows.append(Row("grid", f"epsilon {noise:g}: mean ARI of default / of the ceiling", ours / ceiling,
                        None if share is None else Limits(share), f"{ours:.3f} / {ceiling:.3f}"))  # fmt: skip
    above = values(results, "default", "above_truth")
    note = f"mean {above.mean():.1f} nats above, lowest {above.min():.3g}"
    share = float((above >= -NATS).mean())
    return rows + [Row("grid", "share of bounds at or above that of the true labels", share, Limits(0.95), note)]


def promise_rows(results: Mapping[Promise, Numbers]) -> list[Row]:
    """Judge what two fits of the same rows have to have in common."""
    found = {name: [n["ari"] for task, n in results.items() if task.name == name] for name in (PERMUTED, THREADS)}
    note = f"epsilon {PROMISE_NOISE:g}, {len(found[PERMUTED])} data sets"
    return [
        Row("promise", "rows in another order: smallest ARI of the two fits", min(found[PERMUTED]), Limits(0.95), note),
        Row("promise", "n_jobs 1 and 2: share of equal labels", float(np.mean(found[THREADS])), Limits(1), note),
    ]


def real_rows(results: Mapping[Real, Numbers]) -> list[Row]:
    """Judge the data sets that something is required of."""
    rows = []
    for task, numbers in results.items():
        where = f"{task.name}, K = {task.factor} Q"
        required = STABILIZED.get((task.name, task.factor))
        if task.method == "sqrt" and required is not None:
            rows.append(Row("real", f"{where}: ARI of square roots", numbers["ari"], Limits(required)))
        if task.method == "default" and task.name in OVERDISPERSED + NOT_OVERDISPERSED:
            limits = Limits(LARGE_INDEX) if task.name in OVERDISPERSED else Limits(at_most=LARGE_INDEX)
            rows.append(Row("real", f"{where}: index of overdispersion", numbers["overdispersion"], limits))
    return rows


def reference_rows(results: Mapping[Referenced, Numbers]) -> list[Row]:
    """Judge the reference runs."""
    mean = {field: float(np.mean([n[field] for n in results.values()])) for field in ("ari", "ari_of_run")}
    lowest, name = min((numbers["above_run"], task.name) for task, numbers in results.items())
    return [
        Row("reference", "mean ARI with own topics", mean["ari"], Limits(0.86), f"the runs: {mean['ari_of_run']:.3f}"),
        Row("reference", "best of ten starts from the run's topics: lowest bound - run's", lowest, Limits(-NATS), name),
    ]
