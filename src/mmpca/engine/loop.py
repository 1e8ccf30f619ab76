"""The search from one start: epochs of blocks, with their history."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.engine.bound import Array
from mmpca.engine.moves import bound, refresh
from mmpca.engine.state import State, relabel

Algorithm = Literal["greedy", "exact", "cvem"]
Rows = NDArray[np.int64]

# Blocks grow with the data so that their overhead stays small, and depend on nothing else: the result of a search may
# not depend on the number of threads.
MIN_BLOCK, MAX_BLOCK, BLOCKS_PER_EPOCH = 32, 4096, 16
STALE_SHARE = 0.2  # counts moved since a cluster's last refresh, as a share of its total, before the next
ROWS_PER_TASK = 256  # rows that a thread evaluates at a time
ROUNDING = 1e-12  # of a bound
# Rows x clusters x topics x features up to which the last look at the moves is exact, or has very wide margins.
EXACT_CHECK_WORK, WIDE_CHECK_WORK = 2_000_000, 100_000_000


class Progress(NamedTuple):
    """Where a search stands after a block."""

    epoch: int  # 1 for the first
    n_done: int  # rows visited in this epoch
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


Callback = Callable[[Progress], object]
Sweep = Callable[[Rows], int]


def search(
    state: State,
    *,
    algorithm: Algorithm = "greedy",
    rng: np.random.Generator,
    max_epochs: int = 50,
    tol: float = 1e-10,
    n_threads: int = 1,
    callback: Callback | None = None,
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
    max_epochs : int
    tol : float
        A move must gain more than this share of the bound's magnitude.
    n_threads : int
        Threads that evaluate the rows of a block; the result does not depend on it.
    callback : callable, optional
        Called with a `Progress` after each block; a true answer stops the search there.

    Returns
    -------
    Run
    """
    history = _History(bound(state))
    watch = _Watch(callback, len(state.labels))
    with ThreadPoolExecutor(n_threads) as pool:
        for_rows = partial(_for_rows, pool if n_threads > 1 else None)
        while not (history.converged or watch.stopped) and len(history.n_moves) < max_epochs:
            before, start = (state.labels.copy(), state.gamma.copy()), history.bounds[-1]
            order = rng.permutation(len(state.labels))
            min_gain = tol * abs(start)
            n_moves = _epoch(state, order, algorithm, min_gain, for_rows, watch.begin(start))
            if _has_moved(state, before) and bound(state) < start:
                n_moves = _repair(state, before, order, min_gain)
                if bound(state) < start - ROUNDING * abs(start):
                    # VE-steps that end in one maximum or another: no gain can be trusted any more.
                    relabel(state, *before)
                    break
            kernels.tighten_spread(state)
            # Without a move, only rounding can tell the bound from the last one.
            history.add(bound(state) if _has_moved(state, before) else start, n_moves)
    return Run(history.bounds, history.n_moves, history.converged and not watch.stopped, watch.stopped)


def block_size(n_rows: int, algorithm: Algorithm) -> int:
    """Return how many rows are evaluated against one frozen state; a function of the data's size alone."""
    if algorithm == "cvem":
        return n_rows
    return int(np.clip(n_rows // BLOCKS_PER_EPOCH, MIN_BLOCK, MAX_BLOCK))


class _History:
    """Bounds and moves so far, and whether the last epoch made none."""

    def __init__(self, start: float) -> None:
        self.bounds, self.n_moves = [start], list[int]()

    def add(self, bound: float, n_moves: int) -> None:
        """Book an epoch."""
        self.bounds.append(bound)
        self.n_moves.append(n_moves)

    @property
    def converged(self) -> bool:
        """Whether the last epoch made no move."""
        return bool(self.n_moves) and self.n_moves[-1] == 0


class _Watch:
    """Tells the callback after each block, and remembers whether to stop."""

    def __init__(self, callback: Callback | None, n_rows: int) -> None:
        self.callback, self.n_rows = callback, n_rows
        self.epoch, self.n_done, self.n_moves = 0, 0, 0
        self.bound, self.stopped = -np.inf, False

    def begin(self, bound: float) -> _Watch:
        """Begin an epoch."""
        self.epoch, self.n_done, self.n_moves, self.bound = self.epoch + 1, 0, 0, bound
        return self

    def block_done(self, n_rows: int, n_moves: int) -> None:
        """Book a block and tell the callback."""
        self.n_done += n_rows
        self.n_moves += n_moves
        if self.callback is not None:
            progress = Progress(self.epoch, self.n_done, self.n_rows, self.n_moves, self.bound)
            self.stopped |= bool(self.callback(progress))


def _epoch(
    state: State,
    order: Rows,
    algorithm: Algorithm,
    min_gain: float,
    for_rows: Callable[..., None],
    watch: _Watch,
) -> int:
    """Visit all rows once, block by block, in place; return the number of moves. Ctrl-C ends it after a block.

    Where the greedy search finds no move, it looks again with wider margins before it is believed.
    """
    sweeps: list[Sweep]
    if algorithm == "exact":
        sweeps = [partial(kernels.sweep_exact, state, min_gain)]
    elif algorithm == "cvem":
        sweeps = [partial(_sweep_cvem, state, for_rows)]
    else:
        sweeps = [
            partial(_sweep_greedy, state, for_rows, min_gain, 1.0),
            partial(_sweep_greedy, state, for_rows, min_gain, _caution(state)),
        ]
    size = block_size(len(order), algorithm)
    n_moves = 0
    try:
        for sweep in sweeps:
            for start in range(0, len(order), size):
                block = order[start : start + size]
                made = sweep(block)
                n_moves += made
                watch.block_done(len(block), made)
                if watch.stopped:
                    return n_moves
            if n_moves:
                break
            for q in np.flatnonzero(state.aged).tolist():
                refresh(state, q)
    except KeyboardInterrupt:
        watch.stopped = True
    return n_moves


def _caution(state: State) -> float:
    """Return by how much margins are widened before convergence is declared: the more, the cheaper that is.

    Under a prior below one a topic can be switched off in a cluster, and a single row can switch it on: no expansion
    sees that, so every move is evaluated exactly, as it is where this costs next to nothing.
    """
    work = len(state.labels) * state.n_clusters * state.beta.size
    if state.alpha < 1 or work <= EXACT_CHECK_WORK:
        return 1e100
    return 16.0 if work <= WIDE_CHECK_WORK else 2.0


def _sweep_greedy(state: State, for_rows: Callable[..., None], min_gain: float, caution: float, block: Rows) -> int:
    """Propose the best move of each row of the block against the frozen state, then apply those that still gain."""
    target, is_open = np.empty(len(block), dtype=np.int32), np.empty(len(block), dtype=np.bool_)
    for_rows(partial(kernels.propose, state, min_gain, caution), block, target, is_open)
    if is_open.any():
        settled = np.empty(is_open.sum(), dtype=np.int32)
        for_rows(partial(_settle, state, min_gain, caution), block[is_open], settled)
        target[is_open] = settled
    return _apply(state, block, target, min_gain)


def _settle(state: State, min_gain: float, caution: float, rows: Rows, target: NDArray[np.int32]) -> None:
    """Write the best move of each open row into `target`, -1 for none, in place.

    One end of a move after the other is evaluated exactly, the more uncertain first, until the move is known to gain
    or not.
    """
    first, estimate, below, above = np.empty((4, state.n_clusters))
    s = np.empty(len(state.beta))
    for b, i in enumerate(rows):
        old = int(state.labels[i])
        best = kernels.expand_row(state, i, min_gain, caution, first, s, estimate, below, above)
        removal, additions = estimate[old], estimate - estimate[old]
        floor = max(min_gain, estimate[best] - below[best] - below[old])
        target[b], best_gain = -1, min_gain
        for q in range(state.n_clusters):
            if q == old or not estimate[q] + above[q] + above[old] > floor:
                continue
            while _is_undecided(removal + additions[q] - min_gain, below[old] + below[q], above[old] + above[q]):
                end = old if below[old] + above[old] > below[q] + above[q] else q
                change = kernels.exact_change(state, i, end)
                if end == old:
                    removal = change
                else:
                    additions[q] = change + kernels.size_change(state.sizes, old, q)
                below[end] = above[end] = 0.0
            if removal + additions[q] > best_gain:
                target[b], best_gain = q, removal + additions[q]


def _is_undecided(gain: float, below: float, above: float) -> bool:
    """Tell whether a gain may be positive or not, given how far below and above it the truth may be."""
    return gain - below <= 0.0 < gain + above


def _apply(state: State, block: Rows, target: NDArray[np.int32], min_gain: float) -> int:
    """Make the proposed moves that still gain, in place; return their number."""
    is_touched = np.zeros(state.n_clusters, dtype=np.bool_)
    start, n_moves = 0, 0
    while start < len(block):
        start, stale, made = kernels.apply(state, block, target, is_touched, start, min_gain, STALE_SHARE)
        n_moves += made
        if stale >= 0:
            kernels.refresh_cluster(state, stale, True)
    return n_moves


def _sweep_cvem(state: State, for_rows: Callable[..., None], block: Rows) -> int:
    """Reassign the rows of the block with all parameters held fixed."""
    target = np.empty(len(block), dtype=np.int32)
    for_rows(partial(kernels.assign, state), block, target)
    return int(kernels.reassign(state, block, target))


def _has_moved(state: State, before: tuple[NDArray[np.int32], Array]) -> bool:
    return not np.array_equal(state.labels, before[0])


def _repair(state: State, before: tuple[NDArray[np.int32], Array], order: Rows, min_gain: float) -> int:
    """Undo an epoch in place and offer its moved rows to the exact evaluator instead; return the number of moves.

    Lazy refreshes can let moves through that do not gain together; evaluated exactly one by one, they cannot. If none
    of these rows gains, the others are asked as well before the epoch counts as one without a move.
    """
    labels, gamma = before
    has_moved = (state.labels != labels)[order]
    relabel(state, labels, gamma)
    n_moves = kernels.sweep_exact(state, min_gain, order[has_moved])
    if n_moves == 0:
        n_moves = kernels.sweep_exact(state, min_gain, order[~has_moved])
    relabel(state, state.labels, state.gamma)
    return int(n_moves)


def _for_rows(pool: ThreadPoolExecutor | None, kernel: Callable[..., None], *arrays: NDArray[np.generic]) -> None:
    """Call a kernel on matching pieces of the arrays, in threads if there are any."""
    if pool is None:
        kernel(*arrays)
        return
    n_rows = len(arrays[0])
    pieces = [slice(start, start + ROWS_PER_TASK) for start in range(0, n_rows, ROWS_PER_TASK)]
    list(pool.map(lambda piece: kernel(*(array[piece] for array in arrays)), pieces))
