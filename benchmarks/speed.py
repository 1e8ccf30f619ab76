"""Times of searches and of their epochs, as ratios to rivals on the same data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from measure import Limits, Row, TimedRun, best_of_each, best_seconds, timed_search
from mmpca import MMPCA, MMPCASearch, engine, kernels
from mmpca.model.starts import random_labels
from problems import FULL, QUICK, Problem, Sizes, corpus, paper_problem, start_labels

TOL = 1e-10  # the estimator's default: a move must gain more than this share of the bound
N_EXACT_ROWS = 20  # rows of the corpus that the exact evaluator is timed on
LDA_PASSES = 60
GRID_LDAS = 5  # what a search of the grid has to be faster than
FIT_LDA_PASSES = 30  # what a whole fit has to be faster than
SEARCHES: dict[str, dict[str, Any]] = {
    "exact": {"algorithm": "exact"},
    "greedy": {"algorithm": "greedy"},
    "regrouping": {"algorithm": "greedy", "regroup": True},  # what the estimator does
}


def warm_up() -> None:
    """Compile everything that is timed."""
    problem = paper_problem()
    for name in SEARCHES:
        search_from(problem, 0, name, max_epochs=5)


def search_from(problem: Problem, number: int, name: str, max_epochs: int = 50) -> engine.Run:
    """Build the state of a random partition and search from there, by one of `SEARCHES`."""
    rng = np.random.default_rng(number)
    state = problem.build(random_labels(problem.rows.n_rows, problem.n_clusters, rng))
    return engine.search(state, **SEARCHES[name], rng=rng, max_epochs=max_epochs, tol=TOL)


# --- the paper's design -----------------------------------------------------------------------------------------


@cache
def paper_searches(n_starts: int, repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return mean seconds and mean final bound of all kinds of searches from the same random starts.

    A search counts from its labels on: building the state is part of it for both.
    """
    seconds = {name: np.full(n_starts, np.inf) for name in SEARCHES}
    bounds = {name: np.empty(n_starts) for name in seconds}
    for _ in range(repeats):
        for number in range(n_starts):
            for name in seconds:
                start = process_time()
                run = search_from(paper_problem(), number, name)
                seconds[name][number] = min(seconds[name][number], process_time() - start)
                bounds[name][number] = run.bounds[-1]
    return {name: x.mean() for name, x in seconds.items()}, {name: x.mean() for name, x in bounds.items()}


def _n_starts(quick: bool) -> int:
    return 3 if quick else 10


def exact_against_greedy(quick: bool, repeats: int) -> list[Row]:
    """Time the published algorithm against the screened one."""
    seconds, bounds = paper_searches(_n_starts(quick), repeats)
    rows = []
    for name, measure in (("greedy", "greedy search"), ("regrouping", "greedy search that regroups clusters")):
        note = f"{1e3 * seconds['exact']:.1f} ms / {1e3 * seconds[name]:.1f} ms, mean of {_n_starts(quick)} starts"
        ratio, difference = seconds["exact"] / seconds[name], bounds[name] - bounds["exact"]
        rows.append(Row("exact", f"paper's design: exact search / {measure}", ratio, Limits(4), note))
        rows.append(Row("exact", f"the same: final bound, {name} - exact, nats", difference, note="mean of the starts"))
    return rows


def lda_against_greedy(quick: bool, repeats: int) -> list[Row]:
    """Time scikit-learn's variational LDA against one greedy search."""
    problem = paper_problem()
    seconds, _ = paper_searches(_n_starts(quick), repeats)
    lda = best_seconds(
        lambda model: model.fit(problem.X),
        lambda: LatentDirichletAllocation(len(problem.beta), max_iter=LDA_PASSES, random_state=0),
        repeats,
    )
    rows = []
    for name, measure in (("greedy", "greedy search"), ("regrouping", "greedy search that regroups clusters")):
        note = f"{lda:.2f} s / {1e3 * seconds[name]:.1f} ms"
        measure = f"paper's design: scikit-learn LDA, {LDA_PASSES} passes / {measure}"
        rows.append(Row("lda", measure, lda / seconds[name], Limits(40), note))
    return rows


def lda_against_fit(quick: bool, repeats: int) -> list[Row]:
    """Time scikit-learn's variational LDA against a whole default fit: topics, all starts, refitted topics."""
    problem = paper_problem()
    n_topics = len(problem.beta)
    lda, fit = best_of_each(
        [
            lambda: LatentDirichletAllocation(n_topics, max_iter=FIT_LDA_PASSES, random_state=0).fit(problem.X),
            lambda: MMPCA(problem.n_clusters, n_topics, random_state=0).fit(problem.X),
        ],
        repeats,
    )
    measure = f"paper's design: scikit-learn LDA, {FIT_LDA_PASSES} passes / a whole default fit"
    return [Row("fit", measure, lda / fit, Limits(1), f"{lda:.2f} s / {fit:.2f} s")]


def lda_against_grid(quick: bool, repeats: int) -> list[Row]:
    """Time five of scikit-learn's variational LDAs against a search of the default grid, 28 cells."""
    problem = paper_problem()

    def ldas() -> None:
        for seed in range(GRID_LDAS):
            LatentDirichletAllocation(len(problem.beta), max_iter=LDA_PASSES, random_state=seed).fit(problem.X)

    rival, grid = best_of_each(
        [ldas, lambda: MMPCASearch(random_state=0).fit(problem.X)], 1 if quick else min(repeats, 2)
    )
    measure = f"paper's design: {GRID_LDAS} scikit-learn LDAs, {LDA_PASSES} passes / the default grid of 28 cells"
    return [Row("grid", measure, rival / grid, Limits(1), f"{rival:.1f} s / {grid:.1f} s")]


# --- the corpus -------------------------------------------------------------------------------------------------


def corpus_sizes(quick: bool) -> Sizes:
    """Return the sizes of the corpus."""
    return QUICK if quick else FULL


@cache
def corpus_search(sizes: Sizes, kind: str, repeats: int) -> TimedRun:
    """Time the epochs of a greedy search of the corpus on one thread."""
    state = corpus(sizes).build(start_labels(sizes, kind))
    return timed_search(state, seed=2, repeats=repeats, tol=TOL, regroup=True)


def exact_row_seconds(sizes: Sizes, kind: str, repeats: int) -> float:
    """Return the time of the exact evaluator on one row, the mean of a few rows at the start of a search."""
    problem = corpus(sizes)
    state = problem.build(start_labels(sizes, kind))
    min_gain = TOL * abs(engine.bound(state))
    sample = np.random.default_rng(3).choice(problem.rows.n_rows, N_EXACT_ROWS, replace=False)
    seconds = best_seconds(
        lambda copy: kernels.sweep_exact(copy, min_gain, sample), lambda: engine.copy(state), repeats
    )
    return seconds / N_EXACT_ROWS


def corpus_rows(quick: bool, repeats: int) -> list[Row]:
    """Time the exact evaluator on a row against an epoch of the greedy search, a row."""
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
        measure = f"corpus, start {kind}: a row exact / a row in a mean greedy epoch"
        rows.append(Row("corpus", measure, exact / epochs.mean(), None if quick else required, note))
    return rows


def epochs_against_product(quick: bool, repeats: int) -> list[Row]:
    """Time the epochs after the first against one product of the counts with a dense matrix."""
    sizes, rows = corpus_sizes(quick), []
    kinds = {"k-means, 5 % perturbed": Limits(at_most=8), "truth, 5 % perturbed": None, "random": None}
    unit = best_of_each([product(corpus(sizes))], 5 * repeats)
    searches = {kind: corpus_search(sizes, kind, repeats) for kind in kinds}
    unit += best_of_each([product(corpus(sizes))], 5 * repeats)  # once more, at another moment of the machine
    for kind, timed in searches.items():
        required = None if quick else kinds[kind]
        later = timed.seconds[1:] / min(unit)
        moves = ", ".join(str(n) for n in timed.run.n_moves)
        ratios = ", ".join(f"{x:.1f}" for x in timed.seconds / min(unit))
        measure = f"corpus, start {kind}: {{}} epoch after the first / X @ D"
        rows.append(Row("epochs", measure.format("mean"), later.mean(), required, f"epochs {ratios}"))
        rows.append(Row("epochs", measure.format("largest"), later.max(), required, f"moves {moves}"))
        regrouping = f"corpus, start {kind}: merging and splitting clusters, in all / X @ D"
        rows.append(Row("epochs", regrouping, timed.regrouping / min(unit)))
    rows.append(Row("epochs", "corpus: X @ D with as many columns as clusters, ms", 1e3 * min(unit)))
    return rows


def product(problem: Problem) -> Callable[[], object]:
    """Return a call that computes X @ D in double precision, D dense with a column for each cluster."""
    X = problem.X.astype(np.float64)
    D = np.random.default_rng(4).random((X.shape[1], problem.n_clusters))
    return lambda: X @ D


def two_threads(quick: bool, repeats: int) -> list[Row]:
    """Time the epochs of a search on one thread against two, by the clock."""
    sizes = corpus_sizes(quick)
    state = corpus(sizes).build(start_labels(sizes, "k-means, 5 % perturbed"))
    one, two = (
        timed_search(state, seed=2, repeats=repeats, clock=perf_counter, n_threads=n_threads, tol=TOL, regroup=True)
        for n_threads in (1, 2)
    )
    same = "the same labels" if np.array_equal(one.labels, two.labels) else "OTHER LABELS"
    note = f"{one.seconds.sum():.2f} s / {two.seconds.sum():.2f} s, {same}"
    return [Row("threads", "corpus: all epochs on 1 thread / on 2", one.seconds.sum() / two.seconds.sum(), note=note)]
