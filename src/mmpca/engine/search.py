"""The search from one start: climbs by moves of single rows, with merges and splits of clusters between them."""

from __future__ import annotations

import numpy as np

from mmpca.backend import LocalRows, RowBackend
from mmpca.engine.merge_split import MergeSplit
from mmpca.engine.state import State, bound, relabel
from mmpca.engine.sweep import GreedySweep, SearchOptions, climb
from mmpca.monitor import History

# Clusters are merged and split as soon as an epoch moves at most this share of the rows: there is no point in polishing
# a partition that a split will change.
FEW_MOVES_SHARE = 0.01


def search(
    state: State,
    options: SearchOptions,
    *,
    rng: np.random.Generator,
    backend: RowBackend | None = None,
    history: History | None = None,
) -> History:
    """Climb from the partition to one that no single move improves, in place.

    The greedy algorithm also merges two clusters and splits a third where that raises the bound, and climbs on from
    there; the others only climb.

    Parameters
    ----------
    state : State
        Where to start, with every cluster fresh.
    options : SearchOptions
    rng : Generator
        Draws the order in which the rows are visited, a new one in each epoch.
    backend : RowBackend, optional
        The rows, if the state does not hold them, and the threads; only "greedy" can use rows on workers.
    history : History, optional
        Epochs are added to it.

    Returns
    -------
    History
        Bound and moves of an epoch include those of merges and splits just before it.
    """
    backend = LocalRows(state.rows) if backend is None else backend
    history = History() if history is None else history
    first = options._replace(few_moves=max(options.few_moves, int(FEW_MOVES_SHARE * len(state.labels))))
    try:
        if options.algorithm != "greedy" or not options.merge_split:
            return climb(state, options, rng=rng, backend=backend, history=history)
        sweep = GreedySweep(state, backend, options.verify_factor)
        climb(state, first, rng=rng, backend=backend, history=history, sweep=sweep)
        merge_split = MergeSplit(state, tol=options.tol, backend=backend, history=history, known=options.known)
        while not history.interrupted and history.n_epochs < options.max_epochs:
            has_changed = merge_split.improve()
            if not history.report("clusters merged and split"):
                history.converged = False
                break
            if history.n_moves and history.n_moves[-1] <= options.few_moves and not has_changed:
                break
            if has_changed:
                sweep.forget_bounds()
            n_before = history.n_epochs
            rest = (first if has_changed else options)._replace(max_epochs=options.max_epochs - n_before)
            climb(state, rest, rng=rng, backend=backend, history=history, sweep=sweep)
            if history.n_epochs == n_before:  # no gain could be trusted
                break
    except KeyboardInterrupt:
        # It came between two climbs. The labels are valid; everything else is recomputed from them.
        relabel(state, state.labels, state.clusters.gamma, backend=backend)
        history.bounds[-1:] = [max([bound(state), *history.bounds[-1:]])]  # rounding
        history.converged, history.interrupted = False, True
    return history
