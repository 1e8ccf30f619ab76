"""Sweeps over the rows: how each algorithm visits a block of them.

The greedy sweep *proposes*, for all rows of a block in parallel, the best move against the state frozen at the start of
the block, and then *applies* the proposals one by one, in the order of the block, if they still gain. Close calls, for
which the second-order gain does not decide whether the bound rises, are evaluated exactly.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.backend import RowBackend, Rows, Threads, map_rows, row_totals
from mmpca.counts import Counts, stacked
from mmpca.engine.bound import Array, size_changes
from mmpca.engine.refit import replace_topics
from mmpca.engine.state import ROWS_PER_TASK, Clusters, FixedTopics, State, bound, gain, move

STALE_SHARE = 0.2  # counts moved since a cluster's last refresh, as a share of its total, before the next
ROWS_AT_ONCE = 4096  # rows of a block whose gains in all clusters are in memory at the same time
# Work (rows x clusters x topics x features) up to which convergence is verified exactly, or with very wide margins.
EXACT_CHECK_WORK, WIDE_CHECK_WORK = 2_000_000, 100_000_000
EXACT_FACTOR = 1e100  # trusts no estimate
PRECISION = 0.01  # of an exact evaluation, as a share of the gain that a move must have


# --- one block --------------------------------------------------------------------------------------------------


class Sweep:
    """A way of visiting rows; by default, all of them in a single pass.

    Attributes
    ----------
    error_factors : tuple of float
        Factors of the error bounds: of the screening pass and, if there is one, of the verifying pass.
    is_careful : bool
        Whether the moves of a block are kept only if the bound, recomputed, has risen.
    """

    error_factors: tuple[float, ...] = (1.0,)
    is_careful = False

    def active(self, rows: Rows, min_gain: float, *, is_verifying: bool) -> Rows:
        """Return the rows that may still gain, in their order."""
        return rows

    def visit(self, block: Rows, min_gain: float, error_factor: float) -> int:
        """Move rows of the block, in place; return the number of moves."""
        raise NotImplementedError

    def end_epoch(self) -> None:
        """Update what is known about the rows; every cluster is fresh."""

    def undo_epoch(self) -> bool:
        """Prepare to retry after an epoch that lowered the bound and was undone; return False if no retry is left.

        VE-steps end in different maxima, so gains cannot be trusted.
        """
        return False


class ExactSweep(Sweep):
    """Algorithm 1 of the paper: evaluate every move of a row exactly, and make the best one immediately.

    The topics can be re-estimated after every move, in place; the gain of a move is that under the topics before it.
    """

    def __init__(self, state: State, *, refits_topics: bool = False) -> None:
        self.state, self.refits_topics = state, refits_topics

    def visit(self, block: Rows, min_gain: float, error_factor: float) -> int:
        """Make the best move of each row of the block, in place; return the number of moves."""
        if not self.refits_topics:
            return int(kernels.sweep_exact(self.state, min_gain, block))
        n_moves = 0
        for b in range(len(block)):
            if kernels.sweep_exact(self.state, min_gain, block[b : b + 1]):
                replace_topics(self.state)
                n_moves += 1
        return n_moves


class CvemSweep(Sweep):
    """Classification VEM: reassign all rows with the parameters held fixed."""

    def __init__(self, state: State, threads: Threads) -> None:
        self.state, self.threads = state, threads

    def visit(self, block: Rows, min_gain: float, error_factor: float) -> int:
        """Reassign the rows of the block, in place; return the number of moves."""
        target = np.empty(len(block), dtype=np.int32)
        self.threads.for_rows(partial(kernels.assign, self.state), block, target)
        return int(kernels.reassign(self.state, block, target))


class GainBounds:
    """An upper bound on the gain of any move of each row, kept valid while the clusters change.

    The log mixture of a cluster changes in no feature by more than the largest change of its eta, so the gain of a
    row changes by at most its total times the changes of the two clusters of the move. For a removal, the eta of what
    is left of the cluster changes faster than that of the whole: in inverse proportion to its total or, where topics
    overlap, to its square. Once the cluster has changed, nothing is known about a row that makes up half of it.
    """

    def __init__(self, state: State, backend: RowBackend) -> None:
        self.totals = map_rows(backend, row_totals, np.arange(backend.n_rows)).astype(np.float64)  # (N,)
        self.upper = np.full(len(state.labels), np.inf)  # (N,)
        # The very long rows of a corpus: expansions say little about them, and evaluating them exactly takes long. Once
        # known not to gain, they are visited again only when no other row moves.
        self.is_hard = np.zeros(len(state.labels), dtype=np.bool_)
        self._eta, self._size_changes = np.log(state.clusters.weight), size_changes(state.clusters.sizes)
        # Distance that each cluster has traveled after each block: by eta, and by the terms of its size.
        self._traveled = [np.zeros((2, state.n_clusters))]
        self._since = np.zeros(len(state.labels), dtype=np.int64)  # entry of `_traveled` at which `upper` was exact

    def record(self, rows: NDArray[np.int64], upper: Array, is_hard: NDArray[np.bool_]) -> None:
        """Store bounds that hold for some rows in the current state, and which of them required exact evaluation."""
        self.upper[rows], self.is_hard[rows] = upper, is_hard
        self._since[rows] = len(self._traveled) - 1

    def advance(self, state: State) -> None:
        """Add the distance that the clusters have traveled since the last call."""
        eta, changes = np.log(state.clusters.weight), size_changes(state.clusters.sizes)
        by_eta = np.abs(eta - self._eta).max(axis=1)
        by_size = np.abs(changes - self._size_changes).max(axis=0)
        self._eta, self._size_changes = eta, changes
        self._traveled.append(self._traveled[-1] + np.stack([by_eta, by_size]))

    def end_epoch(self, state: State) -> None:
        """Widen all bounds by what has changed during the epoch; every cluster must be fresh."""
        self.advance(state)
        distances = self._traveled[-1] - np.stack(self._traveled)  # (blocks, 2, Q)
        farthest = distances.max(axis=2)[self._since]  # (N, 2)
        own = distances[self._since, :, state.labels]  # (N, 2)
        left = 1.0 - self.totals / state.clusters.totals[state.labels]
        growth = np.where((left < 0.5) & (own[:, 0] > 0.0), np.inf, 1.0 / np.maximum(left, 0.5) ** 2)
        self.upper += self.totals * (growth * own[:, 0] + farthest[:, 0]) + own[:, 1] + farthest[:, 1]
        self._traveled = [self._traveled[-1]]
        self._since[:] = 0

    def reset(self) -> None:
        """Forget all bounds."""
        self.upper[:], self.is_hard[:] = np.inf, False


class Screen(NamedTuple):
    """How moves are screened in one pass over the rows."""

    min_gain: float  # a move must gain more than this
    error_factor: float  # multiplies the error bounds of expansions in this pass
    verify_factor: float  # multiplies them in the pass that verifies convergence
    size_changes: Array  # changes of n log n when a row leaves or joins a cluster, (2, Q)


class Proposals(NamedTuple):
    """Results of `kernels.propose` for each row of a block; see there and `kernels.expand_row`."""

    target: NDArray[np.int32]  # best move, -1 for none, (R,)
    is_open: NDArray[np.bool_]  # whether errors leave the decision open, (R,)
    upper: Array  # upper bound on the gain of any move, under the verifying factor, (R,)
    rest: Array  # the same over clusters without an estimate, (R,)
    estimate: Array  # gains of moving to each cluster; in the row's own, the change of leaving it, (R, Q)
    below: Array  # how far below the true change may be: of joining each cluster, and of leaving the row's own, (R, Q)
    above: Array  # how far above, likewise, (R, Q)

    @classmethod
    def empty(cls, n_rows: int, n_clusters: int) -> Self:
        """Allocate proposals for some rows."""
        upper, rest = np.empty((2, n_rows))
        return cls(
            np.empty(n_rows, dtype=np.int32),
            np.empty(n_rows, dtype=np.bool_),
            upper,
            rest,
            *np.zeros((3, n_rows, n_clusters)),  # errors of clusters without an estimate stay zero
        )


class GreedySweep(Sweep):
    """Screened second-order gains: propose moves against the frozen state, then apply those that still gain.

    Moves are proposed where the rows are, and only rows that may move are collected here. Rows that could gain nothing
    when last visited are skipped while the clusters have hardly changed. Clusters are refreshed lazily until
    an epoch lowers the bound, as happens on real text. From then on the sweep is careful: clusters are fresh at the
    start of each block, and its moves are kept only if they raise the bound, recomputed over the clusters they touch.
    """

    def __init__(self, state: State, backend: RowBackend, factor: float | None = None) -> None:
        self.state, self.backend, self.is_careful = state, backend, False
        self.verify_factor = verify_factor(state) if factor is None else factor
        self.error_factors = (1.0, self.verify_factor)
        self.gain_bounds = GainBounds(state, backend)
        self._topics = backend.broadcast(state.topics)
        self._clusters, self._sent = None, np.empty(0)  # clusters as they were sent last, and their fingerprint

    def active(self, rows: Rows, min_gain: float, *, is_verifying: bool) -> Rows:
        """Return the rows that may still gain, in their order; only the verifying pass returns to hard rows."""
        may_gain = self.gain_bounds.upper[rows] > min_gain
        if self.is_careful and not is_verifying:
            may_gain &= ~self.gain_bounds.is_hard[rows]
        return rows[may_gain]

    def visit(self, block: Rows, min_gain: float, error_factor: float) -> int:
        """Move rows of the block, in place; return the number of moves."""
        clusters = self.state.clusters
        # At least one of these numbers changes with every move, refresh and end of an epoch.
        sent = np.concatenate([clusters.value, clusters.totals, clusters.moved, clusters.aged, clusters.weight.ravel()])
        if not np.array_equal(sent, self._sent):  # tables are large: send them only when changed
            self._clusters, self._sent = self.backend.broadcast(clusters), sent
        screen = Screen(min_gain, error_factor, self.verify_factor, size_changes(clusters.sizes))
        rows = np.sort(block)  # neighbors in memory are read together; moves are made in the order of the block
        shared = (self._topics, self._clusters, screen)
        results = self.backend.map_blocks(propose_moves, rows, self.state.labels[rows], shared=shared)
        target = np.empty(len(rows), np.int32)
        for positions, (found, upper, is_open, _) in results:
            target[positions] = found
            self.gain_bounds.record(rows[positions], upper, is_open & (found < 0))
        is_moving = target >= 0
        movers, target = rows[is_moving], target[is_moving]
        if not len(movers):
            return 0
        at = np.searchsorted(rows, block)
        order = (np.cumsum(is_moving) - 1)[at[is_moving[at]]]  # positions in `movers`, in the order of the block
        counts = stacked([moving for _, (*_, moving) in results])
        some = self.state._replace(rows=counts, labels=self.state.labels[movers])
        make_moves = _make_checked_moves if self.is_careful else _make_moves
        try:
            is_touched = np.zeros(self.state.n_clusters, dtype=np.bool_)
            n_moves = make_moves(some, order, target[order], is_touched, min_gain)
        finally:  # after Ctrl-C between two kernels, the clusters have counted the moves made before it
            self.state.labels[movers] = some.labels
        if n_moves:
            self.gain_bounds.advance(self.state)
        return n_moves

    def end_epoch(self) -> None:
        """Bring the gain bounds up to date with the clusters."""
        self.gain_bounds.end_epoch(self.state)

    def forget_bounds(self) -> None:
        """Visit all rows again, the hard ones last: clusters have been merged and split."""
        self.gain_bounds.upper[:] = np.inf

    def undo_epoch(self) -> bool:
        """Be careful from now on; return False if the sweep already was."""
        was_careful, self.is_careful = self.is_careful, True
        self.gain_bounds.reset()
        return not was_careful


def _make_moves(
    state: State, rows: Rows, target: NDArray[np.int32], is_touched: NDArray[np.bool_], min_gain: float
) -> int:
    """Make the proposed moves that still gain, in order, in place; return their number.

    `is_touched` (Q,) marks clusters that have changed since the moves were proposed.
    """
    next_row, n_moves = 0, 0
    while next_row < len(rows):
        next_row, stale, n_made = kernels.apply(state, rows, target, is_touched, next_row, min_gain, STALE_SHARE)
        n_moves += n_made
        if stale >= 0:
            kernels.refresh_cluster(state, stale, True)
    return n_moves


def _make_checked_moves(
    state: State, rows: Rows, target: NDArray[np.int32], is_touched: NDArray[np.bool_], min_gain: float
) -> int:
    """Make the proposed moves, in place, if they raise the bound together; otherwise try each half of them.

    A single move is made if its exact gain, over the two clusters concerned, is large enough. Clusters are fresh before
    and after. Returns the number of moves.
    """
    if len(rows) == 1 and gain(state, int(rows[0]), int(target[0])) <= min_gain:
        return 0
    labels, before, touched_before = state.labels.copy(), bound(state), is_touched.copy()
    touched = np.union1d(labels[rows], target)
    saved = state.clusters.take(touched)
    if len(rows) == 1:
        move(state, int(rows[0]), int(target[0]))
        n_moves = 1
    else:
        n_moves = _make_moves(state, rows, target, is_touched, min_gain)
    if n_moves == 0 or bound(state) > before + min_gain:
        return n_moves
    state.labels[:], is_touched[:] = labels, touched_before
    state.clusters.restore(touched, saved)
    if len(rows) == 1:  # under a prior below one, VE-steps may end in a lower maximum
        return 0
    half = len(rows) // 2
    halves = (slice(None, half), slice(half, None))
    return sum(_make_checked_moves(state, rows[part], target[part], is_touched, min_gain) for part in halves)


def verify_factor(state: State) -> float:
    """Return how much wider error bounds are in the pass that verifies convergence: the cheaper it is, the wider.

    Under a prior below one, a cluster can switch a topic off, and a single row can switch it on again. No expansion
    sees that, so every move is evaluated exactly there.
    """
    work = len(state.labels) * state.n_clusters * state.topics.beta.size
    if not state.topics.has_one_maximum or work <= EXACT_CHECK_WORK:
        return EXACT_FACTOR
    return 16.0 if work <= WIDE_CHECK_WORK else 2.0


def propose_moves(
    block: Counts,
    rows: Rows,
    labels: NDArray[np.int32],
    topics: FixedTopics,
    clusters: Clusters,
    screen: Screen,
    threads: Threads,
) -> tuple[NDArray[np.int32], Array, NDArray[np.bool_], Counts]:
    """Return the best moves of some rows of a block, upper bounds on gains, close calls, and counts of movers."""
    own = np.zeros(block.n_rows, dtype=np.int32)
    own[rows] = labels
    state = State(block, own, topics, clusters)
    target, upper = np.empty(len(rows), np.int32), np.empty(len(rows))
    is_open = np.empty(len(rows), np.bool_)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        found = Proposals.empty(len(rows[some]), state.n_clusters)
        threads.for_rows(
            lambda piece, *arrays: kernels.propose(state, screen, piece, Proposals._make(arrays)), rows[some], *found
        )
        if found.is_open.any():
            at = np.flatnonzero(found.is_open)
            calls = CloseCalls(state, rows[some][at], Proposals._make(x[at] for x in found), screen)
            found.target[at], found.upper[at] = calls.decide(threads)
        target[some], upper[some], is_open[some] = found.target, found.upper, found.is_open
    return target, upper, is_open, block.take(rows[target >= 0])


def assign(state: State, rows: Rows, backend: RowBackend) -> NDArray[np.int32]:
    """Return the cluster that fits each of some rows best, all parameters held fixed, (n,)."""
    return np.asarray(map_rows(backend, assign_block, rows, shared=(state.topics, state.clusters)))


def assign_block(
    block: Counts, rows: Rows, topics: FixedTopics, clusters: Clusters, threads: Threads
) -> NDArray[np.int32]:
    """Return the cluster that fits each of some rows of a block best, (n,)."""
    target = np.empty(len(rows), dtype=np.int32)
    state = State(block, np.zeros(block.n_rows, dtype=np.int32), topics, clusters)
    threads.for_rows(partial(kernels.assign, state), rows, target)
    return target


# --- close calls ------------------------------------------------------------------------------------------------


class CloseCalls:
    """Moves of some rows, each with an estimated gain and bounds on its error.

    A move has two ends: leaving one cluster and joining another. The ends are evaluated exactly, the more uncertain one
    first, until the move is known to gain or not; all rows that wait for the same cluster are evaluated together.
    """

    def __init__(self, state: State, rows: Rows, found: Proposals, screen: Screen) -> None:
        self.state, self.rows, self.screen = state, rows, screen
        self.widening = screen.verify_factor / screen.error_factor
        self.every, self.old = np.arange(len(rows)), state.labels[rows]
        estimate, self.below, self.above, self.rest = found.estimate, found.below, found.above, found.rest
        is_own = np.arange(state.n_clusters) == self.old[:, None]
        self.has_estimate = (estimate > -np.inf) & ~is_own
        self.below[~self.has_estimate & ~is_own] = self.above[~self.has_estimate & ~is_own] = 0.0
        self.removal = estimate[self.every, self.old]  # (R,)
        self.addition = np.where(is_own, -np.inf, estimate - self.removal[:, None])  # (R, Q)
        # Candidates: moves that may be the best of their rows, (R, Q).
        estimate = np.where(self.has_estimate, estimate, -np.inf)
        best = estimate.argmax(axis=1)
        least = estimate[self.every, best] - self.below[self.every, best] - self.below[self.every, self.old]
        floor = np.maximum(screen.min_gain, least)
        may_win = estimate + self._error(self.above) > floor[:, None]
        may_gain = estimate + self.widening * self._error(self.above) > screen.min_gain
        self.is_candidate = self.has_estimate & (may_win | may_gain)

    def decide(self, threads: Threads) -> tuple[NDArray[np.int32], Array]:
        """Return the best move of each row, -1 for none, and an upper bound on its gain under the verifying factor."""
        leave, join = size_changes(self.state.clusters.sizes)
        precision = max(kernels.VE_DEFICIT, PRECISION * self.screen.min_gain)
        while len(waiting := np.flatnonzero((undecided := self._undecided()).any(axis=1))):
            new = undecided[waiting].argmax(axis=1)  # the first undecided cluster of each row
            error = self.below + self.above
            is_removal = error[waiting, self.old[waiting]] > error[waiting, new]
            end = np.where(is_removal, self.old[waiting], new)
            for q in np.unique(end).tolist():  # all rows that wait for cluster q
                at = waiting[end == q]
                change, is_own = np.empty(len(at)), self.old[at] == q
                error = self._needed(at, q) - np.where(is_own, leave[q], join[q])
                kernel = partial(kernels.exact_changes, self.state, q, tol=precision)
                threads.for_rows(kernel, self.rows[at], change, error, size=ROWS_PER_TASK)
                self.removal[at[is_own]] = change[is_own] + leave[q]
                self.addition[at[~is_own], q] = change[~is_own] + join[q]
                self.below[at, q], self.above[at, q] = 0.0, error / self.widening
        gain = self.removal[:, None] + self.addition
        upper = (gain + self.widening * self._error(self.above)).max(axis=1)
        gain = np.where(self.is_candidate, gain, -np.inf)
        target = np.where(gain.max(axis=1) > self.screen.min_gain, gain.argmax(axis=1), -1)
        return target.astype(np.int32), np.maximum(upper, self.rest)

    def _needed(self, at: Rows, q: int) -> Array:
        """Return the change at cluster q that some rows need for a move that may gain, (n,)."""
        if (
            not self.state.topics.has_one_maximum
        ):  # with several maxima, only the end of a VE-step shows which one it finds
            return np.full(len(at), -np.inf)
        upper = self.removal + self.widening * self.above[self.every, self.old]
        # Minus infinity plus an infinite error would be NaN.
        error = self.widening * np.where(self.is_candidate, self.above, 0.0)
        best = np.where(self.is_candidate, self.addition + error, -np.inf).max(axis=1)
        other: Array = np.where(self.old == q, best, upper)[at]  # the other end of the move
        return self.screen.min_gain - other

    def _error(self, of_end: Array) -> Array:
        """Return the errors of whole moves from those of their ends, (R, Q)."""
        # Without an estimate the gain is minus infinity, which an infinite error would turn into NaN.
        error: Array = np.where(self.has_estimate, of_end + of_end[self.every, self.old, None], 0.0)
        return error

    def _undecided(self) -> NDArray[np.bool_]:
        """Return which candidates may or may not gain, (R, Q).

        A move is known not to gain only under the verifying factor: later epochs then skip the row, where long rows
        that are hard to decide would cost as much again.
        """
        gain = self.removal[:, None] + self.addition - self.screen.min_gain
        may_lose = gain - self._error(self.below) <= 0.0
        may_gain = gain + self.widening * self._error(self.above) > 0.0
        undecided: NDArray[np.bool_] = self.is_candidate & may_gain & may_lose
        return undecided
