"""The search from one start: climbs by single moves, and regroupings of whole clusters between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mmpca.engine.loop import Algorithm, Callback, Limits, Run, climb
from mmpca.engine.moves import bound
from mmpca.engine.regroup import Regrouping
from mmpca.engine.state import State, relabel
from mmpca.places import Here, Place, in_threads, threads

# Clusters are regrouped for the first time when an epoch moves at most this share of the rows: what a regrouping
# changes need not be polished before.
FEW_MOVES_SHARE = 0.01


def search(
    state: State,
    *,
    algorithm: Algorithm = "greedy",
    rng: np.random.Generator,
    max_epochs: int = 50,
    tol: float = 1e-10,
    regroup: bool = False,
    few_moves: int = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
    place: Place | None = None,
    on_epoch: Callable[[NDArray[np.int32]], object] | None = None,
) -> Run:
    """Climb from the state's partition to one that no single move improves, in place.

    Parameters
    ----------
    state : State
        Where to start, every cluster fresh.
    algorithm : {"greedy", "exact", "cvem"}
        See `climb`.
    rng : Generator
        Gives the order in which the rows are visited, a new one in each epoch.
    max_epochs : int
    tol : float
        A move must gain more than this share of the bound's magnitude.
    regroup : bool
        Also merge two clusters and split a third where that raises the bound, and climb on from there.
    few_moves : int
        End already where an epoch makes at most as many moves: what others go on from need not be polished.
    n_threads : int
        The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` after each block; a true answer stops the search there, and so does Ctrl-C.
    place : Place, optional
        Where the rows are, and the threads: `n_threads` is then not used. Rows that are not at hand are for "greedy"
        only.
    on_epoch : callable, optional
        Called with the labels after each epoch.

    Returns
    -------
    Run
        An epoch's bound and moves include those of a regrouping just before it.
    """
    with threads(n_threads) as pool:
        place = Here(state.rows, in_threads(pool)) if place is None else place
        go_on = partial(
            climb, state, algorithm=algorithm, rng=rng, callback=callback, place=place, on_epoch=on_epoch
        )  # fmt: skip
        if not regroup:
            return go_on(limits=Limits(max_epochs, tol, few_moves))
        return _climb_and_regroup(state, go_on, place, Limits(max_epochs, tol, few_moves))


def _climb_and_regroup(state: State, go_on: Callable[..., Run], place: Place, limits: Limits) -> Run:
    """Climb and regroup in turns, in place, until neither gains."""
    max_epochs, tol, few_moves = limits
    run = go_on(limits=limits._replace(few_moves=max(few_moves, int(FEW_MOVES_SHARE * len(state.labels)))))
    regrouping = Regrouping(state, tol=tol, place=place)
    try:
        while not run.interrupted and run.n_epochs < max_epochs:
            has_changed = regrouping.improve()
            if run.n_moves and run.n_moves[-1] <= few_moves and not has_changed:
                break
            rest = go_on(limits=limits._replace(max_epochs=max_epochs - run.n_epochs), n_before=run.n_epochs)
            run = run.followed_by(rest)
            if rest.n_epochs == 0:  # no gain could be trusted
                break
    except KeyboardInterrupt:
        # It came between two climbs. The labels are sound, all else is made anew from them.
        relabel(state, state.labels, state.gamma, place=place)
        last = max(bound(state), run.bounds[-1])  # rounding
        run = Run([*run.bounds[:-1], last], run.n_moves, converged=False, interrupted=True)
    return run
