"""The cells of a grid: fitted from fresh starts, then from their neighbours' clusters, split or merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.counts import Counts
from mmpca.model import starts
from mmpca.topics import fit_lda, predicted_rows, topic_shares
from mmpca.topics.lda import SEARCH_COVER, SEARCH_EFFORT, SEARCH_WORK, affordable, sample_rows
from mmpca.topics.prior import SEARCH

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

# Neighbours make starts as well, so that a cell needs fewer of its own than a single fit.
AUTO_PLAN = starts.Plan(4, 2)
FOLDED_ENTRIES = SEARCH_WORK // 4  # of the rows whose counts are predicted; the same rows for every K


class Options(NamedTuple):
    """What all cells have in common."""

    seed: int
    alpha: float = 1.0
    n_init: int | None = None  # fresh starts; None: a few, until they are no better
    max_epochs: int = 200
    tol: float = 1e-10
    n_folds: int = 5  # 0: no counts are held out

    @property
    def plan(self) -> starts.Plan:
        """How many fresh starts a cell gets, and when to stop before."""
        return AUTO_PLAN if self.n_init is None else starts.Plan(self.n_init, self.n_init)


class Topics(NamedTuple):
    """Topics for one K, common to all Q."""

    beta: Array  # (K, V)
    row_prior: float
    predicted: Array  # (R,), log-likelihood of each row's held-out counts, for R random rows; none without folds
    n_predicted: int  # counts of these rows
    seconds: float


class Cell(NamedTuple):
    """The best partition found for one (Q, K)."""

    labels: Labels  # (N,)
    bound: float
    n_epochs: int
    converged: bool
    kind: str  # of the start that it came from
    seed: int
    seconds: float  # of all that was tried


def learn(rows: Counts, n_topics: int, options: Options) -> Topics:
    """Learn the topics for one K, and see how they predict counts."""
    began = perf_counter()
    fit = fit_lda(rows, n_topics, rng=np.random.default_rng(options.seed))
    predicted, n_counts = _predicted(rows, n_topics, fit.row_prior, options)
    return Topics(fit.beta, fit.row_prior, predicted, n_counts, perf_counter() - began)


def _predicted(rows: Counts, n_topics: int, row_prior: float, options: Options) -> tuple[Array, int]:
    """Return the log-likelihood of held-out counts by rows, and how many counts these are; all K hold out the same."""
    if not options.n_folds:
        return np.empty(0), 0
    sample_seed, folds_seed, starts_seed = np.random.SeedSequence(options.seed).spawn(3)
    n_entries = max(FOLDED_ENTRIES, SEARCH_COVER * int((rows.column_totals() > 0).sum()))
    sample = sample_rows(rows, n_entries, np.random.default_rng(sample_seed))
    predicted = predicted_rows(
        sample,
        n_topics,
        row_prior,
        n_folds=options.n_folds,
        folds_rng=np.random.default_rng(folds_seed),
        starts_rng=np.random.default_rng(starts_seed),
        limits=affordable(SEARCH, sample.nnz * n_topics, SEARCH_EFFORT),
    )
    return predicted, int(sample.data.sum(dtype=np.int64))


def fresh_cell(rows: Counts, topics: Topics, n_clusters: int, options: Options) -> Cell:
    """Fit a cell from starts of its own."""
    began = perf_counter()
    sequence = np.random.SeedSequence([options.seed, n_clusters, len(topics.beta)])
    kinds = starts.KINDS
    planned = [
        starts.Start(kinds[number % len(kinds)], int(word))
        for number, word in enumerate(sequence.generate_state(options.plan.n_starts))
    ]
    searches = starts.Searches(_task(rows, topics, n_clusters, options), planned, options.plan.patience)
    outcomes = searches.run(1)
    if searches.interrupted:  # half a cell is none: it may not be remembered
        raise KeyboardInterrupt
    return _cell(starts.best_of(outcomes), perf_counter() - began)


def walk(
    rows: Counts,
    topics: Topics,
    fresh: Mapping[int, Cell],
    options: Options,
    remember: Callable[[str, int, Callable[[], Cell]], Cell],
) -> dict[int, Cell]:
    """Return the cells of one K, improved by their neighbours': split on the way up in Q, merged on the way down.

    `remember` is given the way ("up", "down"), Q and what computes the cell; it may know it from an earlier run.
    """
    cells = dict(fresh)
    for way, ordered in (("up", sorted(fresh)), ("down", sorted(fresh, reverse=True))):
        for last, n_clusters in pairwise(ordered):
            improve = partial(_improved, rows, topics, cells[n_clusters], cells[last], n_clusters, options)
            cells[n_clusters] = remember(way, n_clusters, improve)
    return cells


def _improved(rows: Counts, topics: Topics, here: Cell, there: Cell, n_clusters: int, options: Options) -> Cell:
    """Return the cell here, or what a search from a neighbour's clusters finds if that is better."""
    began = perf_counter()
    labels = _with_clusters(rows, topics, there.labels, n_clusters, options)
    kind = "split" if labels.max() > there.labels.max() else "merge"
    start = starts.Start(kind, here.seed, labels)
    task = _task(rows, topics, n_clusters, options, needs_shares=False)
    outcome = starts.search_from(task, start, n_threads=1, callback=lambda _: False)
    if outcome.run.interrupted:
        raise KeyboardInterrupt
    seconds = here.seconds + perf_counter() - began
    is_better = outcome.bound > here.bound + starts.SAME_BOUND * abs(here.bound)
    return _cell(outcome, seconds) if is_better else here._replace(seconds=seconds)


def _with_clusters(rows: Counts, topics: Topics, labels: Labels, n_clusters: int, options: Options) -> Labels:
    """Return labels with another number of clusters, split or merged one at a time."""
    while (n := int(labels.max()) + 1) != n_clusters:
        state = engine.build(rows, labels, n_clusters=n, beta=topics.beta, alpha=options.alpha)
        labels = engine.split_once(state, tol=options.tol) if n < n_clusters else engine.merged_once(state)
    return labels


def _task(rows: Counts, topics: Topics, n_clusters: int, options: Options, *, needs_shares: bool = True) -> starts.Task:
    return starts.Task(
        rows,
        topics.beta,
        alpha=options.alpha,
        n_clusters=n_clusters,
        algorithm="greedy",
        max_epochs=options.max_epochs,
        tol=options.tol,
        shares=topic_shares(rows, topics.beta, prior=options.alpha) if needs_shares else None,
    )


def _cell(outcome: starts.Outcome, seconds: float) -> Cell:
    run, start = outcome.run, outcome.start
    return Cell(outcome.labels, outcome.bound, run.n_epochs, run.converged, start.kind, start.seed, seconds)
