"""The climb from one start: epochs of blocks, with their history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.engine.bound import Array
from mmpca.engine.moves import bound, refresh
from mmpca.engine.state import State, relabel
from mmpca.engine.sweeps import EXACT_CAUTION, Asking, CvemSweep, ExactSweep, GreedySweep, Question, Sweep
from mmpca.places import Here, Place, Rows

Algorithm = Literal["greedy", "exact", "cvem"]

# Blocks grow with the data so that their overhead stays small, and depend on nothing else: the result of a search may
# not depend on the number of threads.
MIN_BLOCK, BLOCKS_PER_EPOCH = 32, 16
LARGE_BLOCK, MOST_BLOCKS = 4096, 64  # blocks stay at this size until there would be more of them than that
ROUNDING = 1e-12  # of a bound


class Progress(NamedTuple):
    """Where a search stands after a block."""

    epoch: int  # 1 for the first
    n_done: int  # rows visited in this epoch; counted anew where it looks twice before it declares convergence
    n_rows: int
    n_moves: int  # moves made in this epoch
    bound: float  # after the last finished epoch


class Run(NamedTuple):
    """What a search did; its result is the state that it was given."""

    bounds: list[float]  # at the start, then after each epoch
    n_moves: list[int]  # in each epoch
    converged: bool  # the last epoch made no move
    interrupted: bool  # by Ctrl-C or by the callback

    @property
    def n_epochs(self) -> int:
        """Number of epochs, the last one without a move included."""
        return len(self.n_moves)

    def followed_by(self, other: Run) -> Run:
        """Return this run and one that went on where it ended."""
        return Run(
            self.bounds + other.bounds[1:], self.n_moves + other.n_moves, other.converged, other.interrupted
        )  # fmt: skip


Callback = Callable[[Progress], object]


class Limits(NamedTuple):
    """When a climb ends, if not at a maximum."""

    max_epochs: int = 50
    tol: float = 1e-10  # a move must gain more than this share of the bound's magnitude
    few_moves: int = 0  # end after an epoch with at most as many moves


def climb(
    state: State,
    *,
    algorithm: Algorithm = "greedy",
    rng: np.random.Generator,
    limits: Limits | None = None,
    callback: Callback | None = None,
    n_before: int = 0,
    place: Place | None = None,
    on_epoch: Callable[[NDArray[np.int32]], object] | None = None,
) -> Run:
    """Climb from the state's partition to one that no single move improves, in place.

    Parameters
    ----------
    state : State
        Where to start, every cluster fresh.
    algorithm : {"greedy", "exact", "cvem"}
        "exact" is Algorithm 1 of the paper, row by row; "greedy" proposes a block of moves by screened second-order
        gains and applies those that still gain; "cvem" reassigns all rows with the parameters held fixed.
    rng : Generator
        Gives the order in which the rows are visited, a new one in each epoch.
    limits : Limits
    callback : callable, optional
        Called with a `Progress` after each block; a true answer stops the climb there, and so does Ctrl-C.
    n_before : int
        Epochs made before, for the numbers that the callback is told.
    place : Place, optional
        Where the rows are, and the threads that evaluate those of a block; by default at hand, and one. Rows that are
        not at hand are for "greedy" only.
    on_epoch : callable, optional
        Called with the labels after each epoch.

    Returns
    -------
    Run
    """
    limits = limits or Limits()
    bounds, n_moves = [bound(state)], list[int]()
    watch = _Watch(callback, len(state.labels), n_before)
    size = block_size(len(state.labels), algorithm)
    place = Here(state.rows) if place is None else place
    sweep = _sweep(state, algorithm, place)
    while not watch.stopped and len(n_moves) < limits.max_epochs and not _is_quiet(n_moves, limits.few_moves):
        watch.begin_epoch(bounds[-1])
        before = _Point(state.labels.copy(), state.gamma.copy(), bounds[-1])
        order = rng.permutation(len(state.labels))
        blocks = list(_pieces(order, size))
        try:
            end = _epoch(state, before, sweep, blocks, limits.tol * abs(bounds[-1]), watch, place)
        except KeyboardInterrupt:
            watch.stopped = True
            end = _rescue(state, before, place)
        if end is None:
            break
        bounds.append(end)
        n_moves.append(watch.n_moves)
        if on_epoch is not None:
            on_epoch(state.labels)
    return Run(bounds, n_moves, _is_quiet(n_moves, 0) and not watch.stopped, watch.stopped)


def block_size(n_rows: int, algorithm: Algorithm) -> int:
    """Return how many rows are evaluated against one frozen state; a function of the data's size alone."""
    if algorithm == "cvem":
        return n_rows
    # On a cluster the clusters' tables travel once a block: the number of blocks may not grow with the rows forever.
    return int(np.clip(n_rows // BLOCKS_PER_EPOCH, MIN_BLOCK, max(LARGE_BLOCK, n_rows // MOST_BLOCKS)))


class _Point(NamedTuple):
    """A partition that can be returned to."""

    labels: NDArray[np.int32]
    gamma: Array  # (Q, K)
    bound: float

    def is_left(self, state: State) -> bool:
        """Tell whether a row has moved since."""
        return not np.array_equal(state.labels, self.labels)


class _Watch:
    """Tells the callback after each block, and remembers whether to stop."""

    def __init__(self, callback: Callback | None, n_rows: int, epoch: int) -> None:
        self.callback, self.n_rows, self.epoch = callback, n_rows, epoch
        self.n_done, self.n_moves = 0, 0
        self.bound, self.stopped = -np.inf, False

    def begin_epoch(self, bound: float) -> None:
        """Begin an epoch."""
        self.epoch, self.n_moves, self.bound = self.epoch + 1, 0, bound

    def begin_look(self) -> None:
        """Begin a pass over all rows."""
        self.n_done = 0

    def block_done(self, n_rows: int, n_moves: int) -> None:
        """Book a block and tell the callback."""
        self.n_done += n_rows
        self.n_moves += n_moves
        if self.callback is not None:
            progress = Progress(self.epoch, self.n_done, self.n_rows, self.n_moves, self.bound)
            self.stopped |= bool(self.callback(progress))


def _sweep(state: State, algorithm: Algorithm, place: Place) -> Sweep:
    if algorithm == "exact":
        return ExactSweep(state)
    return CvemSweep(state, place.for_rows) if algorithm == "cvem" else GreedySweep(state, place)


def _is_quiet(n_moves: list[int], few: int) -> bool:
    """Tell whether the last epoch made few moves."""
    return bool(n_moves) and n_moves[-1] <= few


def _epoch(
    state: State, before: _Point, sweep: Sweep, blocks: list[Rows], min_gain: float, watch: _Watch, place: Place
) -> float | None:
    """Visit all rows in place; return the bound, not lower than before but for rounding.

    None means that no gain can be trusted any more: VE-steps ended in one maximum or another, and the state is what it
    was before.
    """
    _look(state, sweep, blocks, min_gain, watch)
    fell = before.is_left(state) and bound(state) < before.bound
    if fell:
        watch.n_moves = _repair(state, before, blocks, min_gain, place)
        if bound(state) < before.bound - ROUNDING * abs(before.bound):
            relabel(state, before.labels, before.gamma, place=place)
            return None
    sweep.end_epoch(is_repaired=fell)
    # Without a move, only rounding can tell the bound from the last one.
    return bound(state) if before.is_left(state) else before.bound


def _look(state: State, sweep: Sweep, blocks: list[Rows], min_gain: float, watch: _Watch) -> None:
    """Visit all rows, and once more with wider margins where the sweep has them and no row moved."""
    for caution in sweep.cautions:
        watch.begin_look()
        for block in blocks:
            watch.block_done(len(block), sweep.visit(block, min_gain, caution))
            if watch.stopped:
                return
        if watch.n_moves:
            return
        for q in np.flatnonzero(state.aged).tolist():
            refresh(state, q)


def _repair(state: State, before: _Point, blocks: list[Rows], min_gain: float, place: Place) -> int:
    """Undo an epoch in place and offer its moved rows to the exact evaluator instead; return the number of moves.

    Lazy refreshes can let moves through that do not gain together; evaluated exactly one by one, they cannot. If none
    of these rows gains, the others are asked as well before the epoch counts as one without a move: where they are.
    """
    order = np.concatenate(blocks)
    has_moved = (state.labels != before.labels)[order]
    relabel(state, before.labels, before.gamma, place=place)
    n_moves = 0
    for rows in _pieces(order[has_moved], LARGE_BLOCK):  # in pieces that can be held
        n_moves += _exact_moves(state, rows, place.take(rows), min_gain)
    if n_moves == 0:
        n_moves = _moves_of_others(state, _pieces(order[~has_moved], len(blocks[0])), min_gain, place)
    relabel(state, state.labels, state.gamma, place=place)
    return n_moves


def _moves_of_others(state: State, blocks: Iterator[Rows], min_gain: float, place: Place) -> int:
    """Make all moves of some rows that gain exactly, in place; return their number.

    The rows are asked where they are, and only those that gain against the state before their block come here.
    """
    n_moves, asking = 0, Asking(state, place)
    for block in blocks:
        rows = np.sort(block)
        found = asking.propose(rows, Question(min_gain, EXACT_CAUTION, EXACT_CAUTION))
        n_made = _exact_moves(state, rows[found.target >= 0], found.moving, min_gain)
        if n_made:
            for q in range(state.n_clusters):  # the exact evaluator leaves the tables behind
                refresh(state, q)
        n_moves += n_made
    return n_moves


def _exact_moves(state: State, rows: Rows, counts: Counts, min_gain: float) -> int:
    """Offer rows, of which these are the counts, to the exact evaluator one by one, in place; return the moves."""
    some = state._replace(rows=counts, labels=state.labels[rows])
    n_moves = kernels.sweep_exact(some, min_gain, np.arange(len(rows)))
    state.labels[rows] = some.labels
    return int(n_moves)


def _pieces(rows: Rows, size: int) -> Iterator[Rows]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _rescue(state: State, before: _Point, place: Place) -> float:
    """Make an interrupted epoch a finished one in place; return the bound.

    Kernels are not interrupted, so the labels are sound; all else is made anew from them.
    """
    relabel(state, state.labels, state.gamma, place=place)
    if bound(state) < before.bound:
        relabel(state, before.labels, before.gamma, place=place)
    return bound(state)
