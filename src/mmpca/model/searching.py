"""Searches from all starts: of few rows at once, of many from what a part of them finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mmpca import engine
from mmpca.counts import Counts, no_rows
from mmpca.engine.bound import Array
from mmpca.model import starts
from mmpca.model.starts import Algorithm, Callback, Labels, Outcome, Start
from mmpca.places import ForRows, Here, Place, Rows, joined
from mmpca.topics import topic_shares

# Of more rows than these, starts are tried on as many of them; the best is taken to all rows, and the search goes on
# there. What a start decides, which groups get clusters of their own, so many rows tell as well as all.
SAMPLED_ROWS = 50_000
SAMPLED_MOVES = 0.002  # share of these rows that an epoch moves when a start's search may end


class Common(NamedTuple):
    """What all starts have in common, but for the rows."""

    beta: Array  # (K, V)
    alpha: float
    n_clusters: int
    algorithm: Algorithm
    max_epochs: int
    tol: float


class Searched(NamedTuple):
    """What the searches found."""

    outcomes: list[Outcome]
    is_interrupted: bool


def search(
    place: Place,
    common: Common,
    planned: list[Start],
    patience: int,
    *,
    seed: int,
    n_threads: int = 1,
    callback: Callback | None = None,
    on_epoch: Callable[[Labels], object] | None = None,
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
    n_threads : int
        Threads of this process; the result does not depend on it.
    callback : callable, optional
        As in `MMPCA.fit`; where rows are in other processes, it is told of the search of all rows only.
    on_epoch : callable, optional
        Called with the labels after each epoch of a search of all of many rows.
    """
    is_many = place.n_rows > SAMPLED_ROWS and common.algorithm == "greedy"
    if not is_many or planned[0].labels is not None:
        if is_many and not isinstance(place, Here):
            return _go_on(place, common, planned[0], [], n_threads, callback, on_epoch)
        return _try(place, np.arange(place.n_rows), common, planned, patience, n_threads, callback)
    some = np.sort(np.random.default_rng(seed).choice(place.n_rows, SAMPLED_ROWS, replace=False))
    few_moves = int(SAMPLED_MOVES * SAMPLED_ROWS)
    tried = _try(place, some, common, planned, patience, n_threads, callback, few_moves)
    labels = _extended(place, common, some, starts.best_of(tried.outcomes))
    start = Start("sample", planned[0].seed, labels)
    if tried.is_interrupted:  # what the sample has shown so far is not lost
        common = common._replace(max_epochs=0)
    found = _go_on(place, common, start, tried.outcomes, n_threads, callback, on_epoch)
    return found._replace(is_interrupted=found.is_interrupted or tried.is_interrupted)


def _try(
    place: Place,
    some: Rows,
    common: Common,
    planned: list[Start],
    patience: int,
    n_threads: int,
    callback: Callback | None,
    few_moves: int = 0,
) -> Searched:
    """Search some rows from the planned starts: in this process one after another, elsewhere side by side."""
    if place.is_here:
        found: Searched = place.together(
            search_rows, some, common, planned, patience, None, few_moves, n_threads, callback
        )
        return found
    shares = None
    if _needs_shares(planned):
        shares = place.keep(joined(place, shares_of, some, shared=(common.beta, common.alpha)))
    kept, outcomes = place.keep(common), list[Outcome]()
    while (n_next := starts.n_needed([one.bound for one in outcomes], patience, len(planned))) > 0:
        following = planned[len(outcomes) : len(outcomes) + n_next]
        asked = [(some, kept, [start], 1, shares, few_moves) for start in following]
        outcomes += [one for found in place.several(search_rows, asked) for one in found.outcomes]
    return Searched(outcomes, is_interrupted=False)


def _needs_shares(planned: list[Start]) -> bool:
    return any(start.kind == "kmeans" for start in planned)


def shares_of(part: Counts, rows: Rows, beta: Array, prior: float, for_rows: ForRows) -> Array:
    """Return the topic shares of some rows of a part."""
    return topic_shares(part.take(rows), beta, prior=prior)


def search_rows(
    rows: Counts,
    common: Common,
    planned: list[Start],
    patience: int,
    shares: Array | None = None,
    few_moves: int = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
) -> Searched:
    """Search rows at hand from the planned starts; `shares` are the topic shares of the rows, if they are known."""
    if shares is None and _needs_shares(planned):
        shares = topic_shares(rows, common.beta, prior=common.alpha, n_threads=n_threads)
    searches = starts.Searches(starts.Task(rows, *common, shares, few_moves=few_moves), planned, patience, callback)
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


def _go_on(
    place: Place,
    common: Common,
    start: Start,
    before: list[Outcome],
    n_threads: int,
    callback: Callback | None,
    on_epoch: Callable[[Labels], object] | None,
) -> Searched:
    """Search all rows from given labels."""
    number = len(before)

    def watch(progress: engine.Progress) -> bool:
        return callback is not None and bool(callback(number, progress))

    if isinstance(place, Here):
        task = starts.Task(place.rows, *common, on_epoch=on_epoch)
    else:
        task = starts.Task(no_rows(place.n_features), *common, place=place, on_epoch=on_epoch)
    outcome = starts.search_from(task, start, n_threads=n_threads, callback=watch)
    return Searched([*before, outcome], outcome.run.interrupted)
