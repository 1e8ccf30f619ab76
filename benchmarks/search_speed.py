"""Time of searches and epochs, relative to baselines on the same data, and how it grows with the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation

from measure import Array, Limits, Row, best_of_each, best_seconds, slope
from mmpca import MMPCA, MMPCASearch, engine, kernels
from mmpca.backend import LocalRows, open_threads
from mmpca.model.starts import random_labels
from mmpca.monitor import History
from problems import FULL, QUICK, Problem, Sizes, corpus, paper_problem, start_labels

TOL = 1e-10  # the estimator's default: a move must gain more than this share of the bound
N_EXACT_ROWS = 20  # rows of the corpus on which the exact evaluation is timed
LDA_PASSES = 60
GRID_LDAS = 5  # a grid search must be faster than this many LDAs
FIT_LDA_PASSES = 30  # a complete fit must be faster than an LDA with this many passes
SEARCHES: dict[str, tuple[Callable[..., History], engine.Algorithm]] = {
    "exact": (engine.climb, "exact"),
    "greedy": (engine.climb, "greedy"),
    "merge_split": (engine.search, "greedy"),  # as in the estimator
}
NAMES = {"greedy": "greedy search", "merge_split": "greedy search with merges and splits"}


def warm_up() -> None:
    """Compile everything that is timed."""
    problem = paper_problem()
    for name in SEARCHES:
        search_from(problem, 0, name, max_epochs=5)


def search_from(problem: Problem, number: int, name: str, max_epochs: int = 50) -> float:
    """Build the state of a random partition and search from there, by one of `SEARCHES`; return the final bound."""
    rng = np.random.default_rng(number)
    state = problem.build(random_labels(problem.rows.n_rows, problem.n_clusters, rng))
    search, algorithm = SEARCHES[name]
    options = engine.SearchOptions(problem.n_clusters, algorithm=algorithm, max_epochs=max_epochs, tol=TOL)
    return search(state, options, rng=rng).bounds[-1]


class TimedSearch(NamedTuple):
    """A greedy search without merges and splits, with the time of each epoch."""

    labels: NDArray[np.int32]
    n_moves: list[int]
    seconds: Array  # of each epoch, the shortest of several repeats


class TimedHistory(History):
    """A history that records when each epoch ended, with its clusters refreshed."""

    def __init__(self, clock: Callable[[], float], **options: Any) -> None:
        super().__init__(**options)
        self.clock, self.times = clock, [clock()]

    def end_epoch(self, bound: float, labels: Any) -> None:
        """Record the time."""
        super().end_epoch(bound, labels)
        self.times.append(self.clock())


def timed_search(
    state: engine.State,
    repeats: int,
    *,
    clock: Callable[[], float] = process_time,
    n_threads: int = 1,
) -> TimedSearch:
    """Time the same search several times, each from a copy of the state."""
    seconds: Any = np.inf
    options = engine.SearchOptions(state.n_clusters, tol=TOL)
    with open_threads(n_threads) as threads:
        backend = LocalRows(state.rows, threads)
        for _ in range(repeats):
            copy, history = engine.copy(state), TimedHistory(clock)
            engine.climb(copy, options, rng=np.random.default_rng(2), backend=backend, history=history)
            seconds = np.minimum(seconds, np.diff(history.times))
    return TimedSearch(copy.labels, history.n_moves, np.asarray(seconds))


# --- the paper's design -----------------------------------------------------------------------------------------


@cache
def paper_searches(n_starts: int, repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return mean seconds and mean final bounds of all kinds of searches from the same random starts.

    The time includes building the state.
    """
    seconds = {name: np.full(n_starts, np.inf) for name in SEARCHES}
    bounds = {name: np.empty(n_starts) for name in seconds}
    for _ in range(repeats):
        for number in range(n_starts):
            for name in seconds:
                start = process_time()
                bounds[name][number] = search_from(paper_problem(), number, name)
                seconds[name][number] = min(seconds[name][number], process_time() - start)
    return {name: x.mean() for name, x in seconds.items()}, {name: x.mean() for name, x in bounds.items()}


def _n_starts(quick: bool) -> int:
    return 3 if quick else 10


def exact_against_greedy(quick: bool, repeats: int) -> list[Row]:
    """Compare the published search with the greedy one."""
    seconds, bounds = paper_searches(_n_starts(quick), repeats)
    rows = []
    for name, title in NAMES.items():
        note = f"{1e3 * seconds['exact']:.1f} ms / {1e3 * seconds[name]:.1f} ms, mean of {_n_starts(quick)} starts"
        ratio, difference = seconds["exact"] / seconds[name], bounds[name] - bounds["exact"]
        rows.append(Row("exact", f"paper's design: exact search / {title}", ratio, Limits(4), note))
        rows.append(
            Row("exact", f"the same: final bound, {title} - exact, nats", difference, note="mean of the starts")
        )
    return rows


def lda_against_greedy(quick: bool, repeats: int) -> list[Row]:
    """Compare scikit-learn's variational LDA with one greedy search."""
    problem = paper_problem()
    seconds, _ = paper_searches(_n_starts(quick), repeats)
    lda = best_seconds(
        lambda model: model.fit(problem.X),
        lambda: LatentDirichletAllocation(len(problem.beta), max_iter=LDA_PASSES, random_state=0),
        repeats,
    )
    rows = []
    for name, title in NAMES.items():
        note = f"{lda:.2f} s / {1e3 * seconds[name]:.1f} ms"
        measure = f"paper's design: scikit-learn LDA, {LDA_PASSES} passes / {title}"
        rows.append(Row("lda", measure, lda / seconds[name], Limits(40), note))
    return rows


def lda_against_fit(quick: bool, repeats: int) -> list[Row]:
    """Compare scikit-learn's variational LDA with a complete default fit: topics and all starts."""
    problem = paper_problem()
    n_topics = len(problem.beta)
    lda, fit = best_of_each(
        [
            lambda: LatentDirichletAllocation(n_topics, max_iter=FIT_LDA_PASSES, random_state=0).fit(problem.X),
            lambda: MMPCA(problem.n_clusters, n_topics, random_state=0).fit(problem.X),
        ],
        repeats,
    )
    measure = f"paper's design: scikit-learn LDA, {FIT_LDA_PASSES} passes / a complete default fit"
    return [Row("fit", measure, lda / fit, Limits(1), f"{lda:.2f} s / {fit:.2f} s")]


def lda_against_grid(quick: bool, repeats: int) -> list[Row]:
    """Compare five of scikit-learn's variational LDAs with a search of the default grid of 28 cells."""
    problem = paper_problem()

    def ldas() -> None:
        for seed in range(GRID_LDAS):
            LatentDirichletAllocation(len(problem.beta), max_iter=LDA_PASSES, random_state=seed).fit(problem.X)

    lda, grid = best_of_each(
        [ldas, lambda: MMPCASearch(random_state=0).fit(problem.X)], 1 if quick else min(repeats, 2)
    )
    measure = f"paper's design: {GRID_LDAS} scikit-learn LDAs, {LDA_PASSES} passes / the default grid of 28 cells"
    return [Row("grid", measure, lda / grid, Limits(1), f"{lda:.1f} s / {grid:.1f} s")]


# --- the corpus -------------------------------------------------------------------------------------------------


def corpus_sizes(quick: bool) -> Sizes:
    """Return the size of the corpus."""
    return QUICK if quick else FULL


@cache
def corpus_search(sizes: Sizes, kind: str, repeats: int) -> TimedSearch:
    """Time the epochs of a greedy search of the corpus on one thread."""
    return timed_search(corpus(sizes).build(start_labels(sizes, kind)), repeats)


def exact_row_seconds(sizes: Sizes, kind: str, repeats: int) -> float:
    """Return the mean time to evaluate all moves of a row exactly, at the start of a search."""
    problem = corpus(sizes)
    state = problem.build(start_labels(sizes, kind))
    min_gain = TOL * abs(engine.bound(state))
    sample = np.random.default_rng(3).choice(problem.rows.n_rows, N_EXACT_ROWS, replace=False)
    seconds = best_seconds(
        lambda copy: kernels.sweep_exact(copy, min_gain, sample), lambda: engine.copy(state), repeats
    )
    return seconds / N_EXACT_ROWS


def corpus_rows(quick: bool, repeats: int) -> list[Row]:
    """Compare the time per row of the exact evaluation with that of a greedy epoch."""
    sizes, rows = corpus_sizes(quick), []
    problem = corpus(sizes)
    rows.append(Row("corpus", "corpus: mean number of distinct features in a row", problem.nnz_per_row,
                    note=f"{problem.X.shape[0]:,} rows, {problem.X.shape[1]:,} features"))  # fmt: skip
    for kind, required in (("k-means", Limits(100)), ("random", None)):
        exact = exact_row_seconds(sizes, kind, repeats)
        epochs = corpus_search(sizes, kind, repeats).seconds / problem.rows.n_rows
        note = (
            f"{1e3 * exact:.1f} ms / {1e6 * epochs.mean():.1f} us; "
            f"first epoch {exact / epochs[0]:.0f}, slowest {exact / epochs.max():.0f}"
        )
        measure = f"corpus, start {kind}: exact evaluation of a row / a row in an average greedy epoch"
        rows.append(Row("corpus", measure, exact / epochs.mean(), None if quick else required, note))
    return rows


def epochs_against_product(quick: bool, repeats: int) -> list[Row]:
    """Compare the epochs after the first with one product of the counts with a dense matrix."""
    sizes, rows = corpus_sizes(quick), []
    kinds = {"k-means, 5 % perturbed": Limits(at_most=8), "truth, 5 % perturbed": None, "random": None}
    unit = best_of_each([product(corpus(sizes))], 5 * repeats)
    searches = {kind: corpus_search(sizes, kind, repeats) for kind in kinds}
    unit += best_of_each([product(corpus(sizes))], 5 * repeats)  # once more, in case the machine was busy before
    for kind, timed in searches.items():
        required = None if quick else kinds[kind]
        later = timed.seconds[1:] / min(unit)
        moves = ", ".join(str(n) for n in timed.n_moves)
        ratios = ", ".join(f"{x:.1f}" for x in timed.seconds / min(unit))
        measure = f"corpus, start {kind}: {{}} epoch after the first / X @ D"
        rows.append(Row("epochs", measure.format("mean"), later.mean(), required, f"epochs {ratios}"))
        rows.append(Row("epochs", measure.format("slowest"), later.max(), required, f"moves {moves}"))
    rows.append(Row("epochs", "corpus: X @ D with as many columns as clusters, ms", 1e3 * min(unit)))
    return rows


def product(problem: Problem) -> Callable[[], object]:
    """Return a call that computes X @ D in double precision, D dense with a column for each cluster."""
    X = problem.X.astype(np.float64)
    D = np.random.default_rng(4).random((X.shape[1], problem.n_clusters))
    return lambda: X @ D


def two_threads(quick: bool, repeats: int) -> list[Row]:
    """Compare the wall time of a search on one thread and on two."""
    sizes = corpus_sizes(quick)
    state = corpus(sizes).build(start_labels(sizes, "k-means, 5 % perturbed"))
    one, two = (timed_search(state, repeats, clock=perf_counter, n_threads=n_threads) for n_threads in (1, 2))
    same = "same labels" if np.array_equal(one.labels, two.labels) else "DIFFERENT LABELS"
    note = f"{one.seconds.sum():.2f} s / {two.seconds.sum():.2f} s, {same}"
    return [Row("threads", "corpus: all epochs on 1 thread / on 2", one.seconds.sum() / two.seconds.sum(), note=note)]


# --- growth with the data ---------------------------------------------------------------------------------------

BASE = Sizes(n_samples=10_000, n_features=10_000, n_clusters=10, n_topics=10)


class Axis(NamedTuple):
    """A size that is doubled while the others stay fixed."""

    size: str
    symbol: str
    first: int
    required: Limits | None  # for the exponent of an epoch without moves
    is_relative: bool = False  # required for the exponent minus that of X @ D


AXES = (
    Axis("n_samples", "N", 5_000, Limits(0.8, 1.2)),
    # A table of all features that outgrows the caches slows down the epoch as it slows down any product with X.
    Axis("n_features", "V at fixed nnz", 10_000, Limits(at_most=0.3), is_relative=True),
    Axis("n_clusters", "Q", 5, None),
    Axis("n_topics", "K", 5, None),
    Axis("length", "nnz of a row", 80, Limits(at_most=1.2)),  # below one is fine: a row has fixed costs too
)


def growth_rows(quick: bool, repeats: int) -> list[Row]:
    """Fit growth exponents of an epoch without moves, which refreshes nothing, and of X @ D."""
    rows = []
    for axis in AXES:
        problems = [
            corpus(BASE._replace(**{axis.size: axis.first * 2**doubling})) for doubling in range(3 if quick else 4)
        ]
        timings = {
            "an epoch without moves": [epoch(converged(problem)) for problem in problems],
            "X @ D": [product(problem) for problem in problems],
        }
        whole, plain = (
            exponent(axis, f"exponent of {name} in {axis.symbol}", problems, best_of_each(calls, 5 * repeats))
            for name, calls in timings.items()
        )
        required = None if quick else axis.required
        if axis.is_relative:
            rows += [whole, Row("growth", "the same minus that of X @ D", whole.value - plain.value, required), plain]
        else:
            rows += [whole._replace(required=required), plain]
    return rows


def exponent(axis: Axis, measure: str, problems: list[Problem], seconds: list[float]) -> Row:
    """Return a fitted exponent as a row of the table.

    The longer the rows and the fewer the features, the more often a row repeats a feature. So the exponent in the
    length of the rows is that in the number of distinct features, and the exponent in V is that of the time per entry.
    """
    entries = [problem.nnz_per_row for problem in problems]
    sizes = entries if axis.size == "length" else [axis.first * 2**doubling for doubling in range(len(problems))]
    note = ", ".join(f"{1e3 * time:.1f} ms at {size:,.0f}" for time, size in zip(seconds, sizes, strict=True))
    if axis.size == "n_features":
        seconds = [time * entries[0] / n for time, n in zip(seconds, entries, strict=True)]
    return Row("growth", measure, slope(sizes, seconds), note=note)


def converged(problem: Problem) -> engine.State:
    """Return the state at which a greedy search from the true labels ends."""
    state = problem.build(problem.labels)
    history = engine.climb(state, engine.SearchOptions(state.n_clusters, tol=TOL), rng=np.random.default_rng(0))
    if not history.converged:
        raise RuntimeError(f"The search did not converge in {history.n_epochs} epochs, so no epoch is without moves.")
    return state


def epoch(state: engine.State) -> Callable[[], None]:
    """Return a call that makes one epoch from a maximum: two passes over all rows, close calls, no move."""
    options = engine.SearchOptions(state.n_clusters, max_epochs=1, tol=TOL)

    def call() -> None:
        history = engine.climb(state, options, rng=np.random.default_rng(1))
        if history.n_moves != [0]:
            raise RuntimeError(f"The epoch made {history.n_moves} moves from a maximum.")

    return call
