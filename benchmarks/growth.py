"""How the time of an epoch near convergence grows with the data: exponents fitted over doublings."""

from __future__ import annotations

import numpy as np

from measure import Limits, Row, best_seconds, slope
from mmpca import engine, kernels
from problems import Problem, Sizes, corpus
from speed import TOL

BASE = Sizes(n_samples=5_000, n_features=10_000, n_clusters=10, n_topics=10)
N_DOUBLINGS = 3
ABOUT_ONE, ABOUT_ZERO = Limits(0.8, 1.2), Limits(at_most=0.3)
# What doubles, its symbol, and the exponent that is required of an epoch without moves.
AXES = (
    ("n_samples", "N", ABOUT_ONE),
    ("n_features", "V at fixed nnz", ABOUT_ZERO),
    ("n_clusters", "Q", None),
    ("n_topics", "K", None),
    ("length", "nnz of a row", ABOUT_ONE),
)


def growth_rows(quick: bool, repeats: int) -> list[Row]:
    """Fit the exponents of an epoch without moves, which refreshes nothing, and of its screening alone."""
    rows = []
    for axis, symbol, required in AXES:
        problems = [corpus(sizes) for sizes in doublings(axis, 2 if quick else N_DOUBLINGS)]
        states = [converged(problem) for problem in problems]
        sizes = [size_of(problem, axis) for problem in problems]
        timings = (
            ("an epoch without moves", epoch_seconds, None if quick else required),
            ("its first look at the rows", propose_seconds, None),
        )
        for name, timing, limits in timings:
            seconds = [timing(state, repeats) * scale_of(problems, n, axis) for n, state in enumerate(states)]
            note = ", ".join(f"{1e3 * t:.1f} ms at {size:,.0f}" for t, size in zip(seconds, sizes, strict=True))
            rows.append(Row("growth", f"exponent of {name} in {symbol}", slope(sizes, seconds), limits, note))
    return rows


def doublings(axis: str, n_doublings: int) -> list[Sizes]:
    """Return the base sizes with one of them doubled again and again."""
    return [BASE._replace(**{axis: getattr(BASE, axis) * 2**n}) for n in range(n_doublings + 1)]


def size_of(problem: Problem, axis: str) -> float:
    """Return the size that times are plotted against; longer rows repeat features, so theirs is counted."""
    n_samples, n_features = problem.X.shape
    return {
        "n_samples": n_samples,
        "n_features": n_features,
        "n_clusters": problem.n_clusters,
        "n_topics": len(problem.beta),
        "length": problem.nnz_per_row,
    }[axis]


def scale_of(problems: list[Problem], n: int, axis: str) -> float:
    """Return what a time is multiplied with: rows repeat fewer features among many, so there it is per entry of X."""
    return problems[0].nnz_per_row / problems[n].nnz_per_row if axis == "n_features" else 1.0


def converged(problem: Problem) -> engine.State:
    """Return the state where a greedy search from the true labels ends."""
    state = problem.build(problem.labels)
    run = engine.search(state, rng=np.random.default_rng(0), tol=TOL)
    if not run.converged:
        raise RuntimeError(f"The search did not converge in {run.n_epochs} epochs: there is no epoch without moves.")
    return state


def epoch_seconds(state: engine.State, repeats: int) -> float:
    """Return the time of one epoch from a maximum: two looks at all rows, close calls settled, no move."""

    def epoch(copy: engine.State) -> None:
        run = engine.search(copy, rng=np.random.default_rng(1), max_epochs=1, tol=TOL)
        if run.n_moves != [0]:
            raise RuntimeError(f"The epoch made {run.n_moves} moves from a maximum.")

    return best_seconds(epoch, lambda: engine.copy(state), repeats)


def propose_seconds(state: engine.State, repeats: int) -> float:
    """Return the time in which all rows are screened and expanded once, close calls left open."""
    order = np.random.default_rng(1).permutation(len(state.labels))
    target, is_open = np.empty(len(order), dtype=np.int32), np.empty(len(order), dtype=np.bool_)
    min_gain = TOL * abs(engine.bound(state))
    return best_seconds(
        lambda frozen: kernels.propose(frozen, min_gain, 1.0, order, target, is_open), lambda: state, 3 * repeats
    )
