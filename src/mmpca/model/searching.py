"""Searches from all starts: of few rows at once, of many from what a part of them finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.counts import Counts, no_rows
from mmpca.engine.bound import Array
from mmpca.model import starts
from mmpca.model.costs import Sizes, search_costs, start_steps, watched
from mmpca.model.starts import Algorithm, Callback, Labels, Outcome, Start
from mmpca.places import ForRows, Here, Place, Rows, joined
from mmpca.stages import QUIET, Stages
from mmpca.topics import topic_shares

# Of more rows than these, starts are tried on as many of them; the best is taken to all rows, and the search goes on
# there. What a start decides, which groups get clusters of their own, so many rows tell as well as all.
SAMPLED_ROWS = 50_000
SAMPLED_MOVES = 0.002  # share of these rows that an epoch moves when a start's search may end
SHARES_TEXT = "topic shares of rows"


class Common(NamedTuple):
    """What all starts have in common, but for the rows."""

    beta: Array  # (K, V)
    alpha: float
    n_clusters: int
    algorithm: Algorithm
    max_epochs: int
    tol: float
    few_moves: int = 0  # of an epoch, at which a search may end


class Watch(NamedTuple):
    """How searches are run in this process, and who is told of them; the result does not depend on any of it."""

    n_threads: int = 1
    callback: Callback | None = None  # as in `MMPCA.fit`
    on_epoch: Callable[[Labels], object] | None = None  # called with the labels after each epoch of all of many rows
    stages: Stages = QUIET  # told how far it is


class Searched(NamedTuple):
    """What the searches found."""

    outcomes: list[Outcome]
    is_interrupted: bool


def search(
    place: Place, common: Common, planned: list[Start], patience: int, *, seed: int, watch: Watch | None = None
) -> Searched:
    """Search from the planned starts; of many rows, the last outcome is that of all of them.

    Parameters
    ----------
    place : Place
    common : Common
    planned : list of Start
    patience : int
        Starts in a row that are no better than the best to stop after.
    seed : int
        Draws the rows that the starts are tried on.
    watch : Watch
        Where rows are in other processes, its callback is told of the search of all rows only, and its stages after
        each round of starts.
    """
    watch = watch or Watch()
    if not _are_many(place.n_rows, common.algorithm):
        return _try(place, np.arange(place.n_rows), common, planned, patience, watch)
    if planned[0].labels is not None:
        return _go_on(place, common, planned[0], [], watch)
    some = np.sort(np.random.default_rng(seed).choice(place.n_rows, SAMPLED_ROWS, replace=False))
    hasty = common._replace(few_moves=int(SAMPLED_MOVES * SAMPLED_ROWS))
    tried = _try(place, some, hasty, planned, patience, watch)
    watch.stages.begin("carrying", "carrying the best start to all rows")
    best = starts.best_of(tried.outcomes)
    labels = _extended(place, common, some, best)
    gamma = common.alpha + (best.gamma - common.alpha) * (place.n_rows / len(some))
    start = Start("sample", planned[0].seed, labels, gamma)
    if watch.on_epoch is not None:
        watch.on_epoch(labels)
    if tried.is_interrupted:  # what the sample has shown so far is not lost
        common = common._replace(max_epochs=0)
    found = _go_on(place, common, start, tried.outcomes, watch)
    return found._replace(is_interrupted=found.is_interrupted or tried.is_interrupted)


def _try(place: Place, some: Rows, common: Common, planned: list[Start], patience: int, watch: Watch) -> Searched:
    """Search some rows from the planned starts: in this process one after another, elsewhere side by side."""
    if place.is_here:
        found: Searched = place.together(search_rows, some, common, planned, patience, None, watch)
        return found
    stages, shares = watch.stages, None
    if _needs_shares(planned):
        stages.begin("shares", SHARES_TEXT)
        shares = place.keep(joined(place, shares_of, some, shared=(common.beta, common.alpha, shares_tol(len(some)))))
    kept, outcomes = place.keep(common), list[Outcome]()
    steps = _begin_starts(stages, planned, patience)
    while (n_next := starts.n_needed([one.bound for one in outcomes], patience, len(planned))) > 0:
        following = planned[len(outcomes) : len(outcomes) + n_next]
        asked = [(some, kept, [start], 1, shares) for start in following]
        try:
            outcomes += [one for found in place.several(search_rows, asked) for one in found.outcomes]
        except KeyboardInterrupt:
            if not outcomes:
                raise
            return Searched(outcomes, is_interrupted=True)
        stages.reach(sum(steps[: len(outcomes)]))
    return Searched(outcomes, is_interrupted=False)


def _needs_shares(planned: list[Start]) -> bool:
    return any(start.kind == "kmeans" for start in planned)


def shares_tol(n_rows: int) -> float:
    """Return how exact the shares are that k-means gets of so many rows: of many, fewer digits are enough to start."""
    return 1e-3 if n_rows >= SAMPLED_ROWS else 1e-6


def shares_of(part: Counts, rows: Rows, beta: Array, prior: float, tol: float, for_rows: ForRows) -> Array:
    """Return the topic shares of some rows of a part."""
    return topic_shares(part.take(rows), beta, prior=prior, tol=tol)


def search_rows(
    rows: Counts,
    common: Common,
    planned: list[Start],
    patience: int,
    shares: Array | None = None,
    watch: Watch | None = None,
) -> Searched:
    """Search rows at hand from the planned starts; `shares` are the topic shares of the rows, if they are known."""
    n_threads, callback, _, stages = watch or Watch()
    if shares is None and _needs_shares(planned):
        stages.begin("shares", SHARES_TEXT, rows.n_rows)
        shares = topic_shares(
            rows, common.beta, prior=common.alpha, tol=shares_tol(rows.n_rows), n_threads=n_threads, stages=stages
        )
    task = starts.Task(rows, *common, shares=shares)
    steps = _begin_starts(stages, planned, patience)
    n_at_once = starts.n_side_by_side(rows.n_rows, len(planned), n_threads)

    def on_start(number: int) -> None:
        stages.reach(sum(steps[: max(0, number + 1 - n_at_once)]), f"start {number + 1}: first labels")

    told = watched(callback, stages, steps, n_at_once=n_at_once)
    searches = starts.Searches(task, planned, patience, told, on_start)
    outcomes = searches.run(n_threads)
    return Searched(outcomes, searches.interrupted)


def _extended(place: Place, common: Common, some: Rows, best: Outcome) -> Labels:
    """Return labels of all rows: those found for some of them, and the clusters that fit the others best."""
    sums = place.together(Counts.group_sums, some, best.labels, common.n_clusters)
    sizes = np.bincount(best.labels, minlength=common.n_clusters)
    state = engine.of_sums(sums, sizes, beta=common.beta, alpha=common.alpha, gamma=best.gamma)
    labels = engine.assigned(state, np.arange(place.n_rows), place)
    labels[some] = best.labels  # no cluster is empty
    return labels


def _go_on(place: Place, common: Common, start: Start, before: list[Outcome], watch: Watch) -> Searched:
    """Search all rows from given labels."""
    number = len(before)
    watch.stages.begin("search", "all rows, clusters")
    callback = watched(watch.callback, watch.stages)

    def tell(progress: engine.Progress) -> bool:
        return callback is not None and bool(callback(number, progress))

    task = starts.Task(no_rows(place.n_features), *common, place=place, on_epoch=watch.on_epoch)
    if isinstance(place, Here):
        task = task._replace(rows=place.rows, place=None)
    outcome = starts.search_from(task, start, n_threads=watch.n_threads, callback=tell)
    return Searched([*before, outcome], outcome.run.interrupted)


# --- how far it is ----------------------------------------------------------------------------------------------


def _are_many(n_rows: int, algorithm: Algorithm) -> bool:
    """Tell whether starts are tried on some of the rows."""
    return n_rows > SAMPLED_ROWS and algorithm == "greedy"


def expect(
    stages: Stages,
    place: Place,
    *,
    n_clusters: int,
    n_topics: int,
    algorithm: Algorithm,
    kinds: Sequence[str],
    patience: int,
    refits: bool,
) -> None:
    """Plan the stages that follow the topics, with their costs; `kinds` are those of the starts that are planned."""
    if stages.is_heard:
        sizes = Sizes(_count_entries(place), place.n_features, n_clusters, n_topics)
        stages.expect(expected_costs(sizes, place.n_rows, kinds, patience, algorithm=algorithm, refits=refits))


def expected_costs(
    sizes: Sizes,
    n_rows: int,
    kinds: Sequence[str],
    patience: int,
    *,
    algorithm: Algorithm = "greedy",
    refits: bool = True,
) -> dict[str, float]:
    """Return the costs of the stages that follow the topics."""
    sampled = SAMPLED_ROWS / n_rows if _are_many(n_rows, algorithm) else None
    n_steps = sum(start_steps(kinds[: _n_likely(len(kinds), patience)]))
    return search_costs(sizes, n_steps, sampled=sampled, is_refitted=refits)


def _begin_starts(stages: Stages, planned: list[Start], patience: int) -> list[float]:
    """Tell that the starts begin, as many as are likely, and return the steps of all that are planned."""
    steps, n_likely = start_steps([start.kind for start in planned]), _n_likely(len(planned), patience)
    stages.begin("starts", "start 1: first labels", sum(steps[:n_likely]), is_sure=n_likely == len(planned))
    return steps


def _n_likely(n_starts: int, patience: int) -> int:
    """Return after how many starts the patience may end: at least as many as it asks for."""
    return min(n_starts, patience + 1)


def _count_entries(place: Place) -> int:
    """Return the number of entries of all rows."""
    return int(place.total(entry_total, np.arange(place.n_rows))[0])


def entry_total(part: Counts, rows: Rows, for_rows: ForRows) -> NDArray[np.int64]:
    """Return the number of entries of all rows of a part."""
    return np.array([part.nnz])
