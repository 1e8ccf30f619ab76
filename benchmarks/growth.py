"""How the time of an epoch near convergence grows with the data: exponents fitted over doublings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from measure import Limits, Row, best_of_each, slope
from mmpca import engine, kernels
from mmpca.engine.bound import size_changes
from mmpca.engine.settle import Proposals
from problems import Problem, Sizes, corpus
from speed import TOL, product

BASE = Sizes(n_samples=10_000, n_features=10_000, n_clusters=10, n_topics=10)


class Axis(NamedTuple):
    """What doubles, all else held fixed."""

    size: str
    symbol: str
    first: int
    required: Limits | None  # of the exponent of an epoch without moves
    is_relative: bool = False  # required of it beyond the exponent of X @ D


AXES = (
    Axis("n_samples", "N", 5_000, Limits(0.8, 1.2)),
    # A table of all features that outgrows the caches slows the epoch as it slows any product with X.
    Axis("n_features", "V at fixed nnz", 10_000, Limits(at_most=0.3), is_relative=True),
    Axis("n_clusters", "Q", 5, None),
    Axis("n_topics", "K", 5, None),
    Axis("length", "nnz of a row", 80, Limits(at_most=1.2)),  # a row has fixed costs too: less than one is fine
)


def growth_rows(quick: bool, repeats: int) -> list[Row]:
    """Fit exponents of an epoch without moves, which refreshes nothing, of its first look at the rows, and of X @ D."""
    rows = []
    for axis in AXES:
        problems = [
            corpus(BASE._replace(**{axis.size: axis.first * 2**doubling})) for doubling in range(3 if quick else 4)
        ]
        states = [converged(problem) for problem in problems]
        timings = {
            "an epoch without moves": [epoch(state) for state in states],
            "its first look at the rows": [first_look(state) for state in states],
            "X @ D": [product(problem) for problem in problems],
        }
        whole, look, plain = (
            exponent(axis, f"exponent of {name} in {axis.symbol}", problems, best_of_each(calls, 5 * repeats))
            for name, calls in timings.items()
        )
        required = None if quick else axis.required
        if axis.is_relative:
            beyond = Row("growth", "the same beyond that of X @ D", whole.value - plain.value, required)
            rows += [whole, beyond, look, plain]
        else:
            rows += [whole._replace(required=required), look, plain]
    return rows


def exponent(axis: Axis, measure: str, problems: list[Problem], seconds: list[float]) -> Row:
    """Return the fitted exponent as a row of the table.

    Rows repeat their features the more the longer they are and the fewer features there are: so the exponent of the
    rows' length is that of the features counted in them, and the exponent of V that of the time for each entry of X.
    """
    entries = [problem.nnz_per_row for problem in problems]
    sizes = entries if axis.size == "length" else [axis.first * 2**doubling for doubling in range(len(problems))]
    note = ", ".join(f"{1e3 * time:.1f} ms at {size:,.0f}" for time, size in zip(seconds, sizes, strict=True))
    if axis.size == "n_features":
        seconds = [time * entries[0] / n for time, n in zip(seconds, entries, strict=True)]
    return Row("growth", measure, slope(sizes, seconds), note=note)


def converged(problem: Problem) -> engine.State:
    """Return the state where a greedy search from the true labels ends."""
    state = problem.build(problem.labels)
    run = engine.search(state, rng=np.random.default_rng(0), tol=TOL)
    if not run.converged:
        raise RuntimeError(f"The search did not converge in {run.n_epochs} epochs: there is no epoch without moves.")
    return state


def epoch(state: engine.State) -> Callable[[], None]:
    """Return a call that makes one epoch from a maximum: two looks at all rows, close calls settled, no move."""

    def call() -> None:
        run = engine.search(state, rng=np.random.default_rng(1), max_epochs=1, tol=TOL)
        if run.n_moves != [0]:
            raise RuntimeError(f"The epoch made {run.n_moves} moves from a maximum.")

    return call


def first_look(state: engine.State) -> Callable[[], None]:
    """Return a call that screens and expands all rows once, close calls left open."""
    order = np.random.default_rng(1).permutation(len(state.labels))
    found, changes = Proposals.empty(len(order), state.n_clusters), size_changes(state.sizes)
    return partial(kernels.propose, state, changes, TOL * abs(engine.bound(state)), 1.0, 1.0, order, found)
