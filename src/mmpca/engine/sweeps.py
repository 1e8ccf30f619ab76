"""One pass over a block of rows, by each of the three algorithms."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts, stacked
from mmpca.engine.bound import Array, size_changes
from mmpca.engine.outlook import Outlook
from mmpca.engine.settle import CloseCalls, Proposals
from mmpca.engine.state import Clusters, State, Topics, of_part
from mmpca.places import ForRows, Place, Rows

STALE_SHARE = 0.2  # counts moved since a cluster's last refresh, as a share of its total, before the next
ROWS_AT_ONCE = 4096  # of a block, whose gains in all clusters are held
# Rows x clusters x topics x features up to which the last look at the moves is exact, or has very wide margins.
EXACT_CHECK_WORK, WIDE_CHECK_WORK = 2_000_000, 100_000_000
EXACT_CAUTION = 1e100  # no estimate is trusted


class Sweep(Protocol):
    """A way to visit rows, in as many looks as must find no move before convergence is declared."""

    @property
    def cautions(self) -> tuple[float, ...]:
        """Factors of the errors' bounds, one for each look."""

    def visit(self, block: Rows, min_gain: float, caution: float) -> int:
        """Make moves of the block's rows in place; return their number."""

    def end_epoch(self, is_repaired: bool) -> None:
        """Every cluster is fresh; after a repair, nothing that was known of the rows holds."""


class ExactSweep:
    """Algorithm 1 of the paper: every move of a row evaluated exactly, the best made at once."""

    cautions = (1.0,)

    def __init__(self, state: State) -> None:
        self.state = state

    def visit(self, block: Rows, min_gain: float, caution: float) -> int:
        """Make the best move of each row of the block in place; return the number of moves."""
        return int(kernels.sweep_exact(self.state, min_gain, block))

    def end_epoch(self, is_repaired: bool) -> None:
        """Do nothing: each epoch is like the first."""


class CvemSweep:
    """Classification VEM: all rows reassigned with the parameters held fixed."""

    cautions = (1.0,)

    def __init__(self, state: State, for_rows: ForRows) -> None:
        self.state, self.for_rows = state, for_rows

    def visit(self, block: Rows, min_gain: float, caution: float) -> int:
        """Reassign the rows of the block in place; return the number of moves."""
        target = np.empty(len(block), dtype=np.int32)
        self.for_rows(partial(kernels.assign, self.state), block, target)
        return int(kernels.reassign(self.state, block, target))

    def end_epoch(self, is_repaired: bool) -> None:
        """Do nothing: each epoch is like the first."""


class GreedySweep:
    """Best moves proposed against the frozen state by screened second-order gains, then applied if they still gain.

    Rows propose where they are; those that may move come here. Rows that could gain nothing when they were last looked
    at are passed over while the clusters have hardly changed.
    """

    def __init__(self, state: State, place: Place) -> None:
        self.state, self.place = state, place
        self.cautions = (1.0, last_caution(state))
        self.outlook = Outlook(state, place)
        self.asking = Asking(state, place)

    def visit(self, block: Rows, min_gain: float, caution: float) -> int:
        """Make moves of the block's rows in place, all bounds on errors times `caution`; return their number."""
        block = block[self.outlook.upper[block] > min_gain]
        if not len(block):
            return 0
        rows = np.sort(block)  # what lies together in memory is read together; moves are made in the block's order
        found = self.asking.propose(rows, Question(min_gain, caution, self.cautions[-1]))
        self.outlook.book(rows, found.upper)
        n_moves = self._apply(block, rows, found, min_gain)
        if n_moves:
            self.outlook.advance(self.state)
        return n_moves

    def _apply(self, block: Rows, rows: Rows, found: Found, min_gain: float) -> int:
        """Make the proposed moves that still gain, in the block's order, in place; return their number."""
        is_moving = found.target >= 0
        moving, target = rows[is_moving], found.target[is_moving]
        if not len(moving):
            return 0
        at = np.searchsorted(rows, block)
        order = (np.cumsum(is_moving) - 1)[at[is_moving[at]]]  # the block's rows that move, by their place in `moving`
        some = self.state._replace(rows=found.moving, labels=self.state.labels[moving])
        try:
            return _apply(some, order, target[order], min_gain)
        finally:  # Ctrl-C between two kernels: the clusters have counted the moves before it
            self.state.labels[moving] = some.labels

    def end_epoch(self, is_repaired: bool) -> None:
        """Bring what the rows can gain up to date with the clusters."""
        self.outlook.end_epoch(self.state)
        if is_repaired:
            self.outlook.forget()


def _fingerprint(state: State) -> Array:
    """Return numbers of which one changes with everything that a move, a refresh or the end of an epoch changes."""
    return np.concatenate([state.value, state.totals, state.moved, state.aged, state.weight.ravel()])


class Question(NamedTuple):
    """What rows are asked for."""

    min_gain: float
    caution: float  # a factor of the errors' bounds
    last_caution: float  # the same before convergence is declared


class Found(NamedTuple):
    """What rows answer."""

    target: NDArray[np.int32]  # best move, -1 for none, (R,)
    upper: Array  # what the row can gain at the most under the last caution, (R,)
    moving: Counts  # the rows that have a target


class Asking:
    """Rows asked for their best moves, wherever they are; those that have one come here."""

    def __init__(self, state: State, place: Place) -> None:
        self.state, self.place = state, place
        self._topics = place.keep(Topics.of(state))
        self._clusters, self._seen = place.keep(Clusters.of(state)), _fingerprint(state)

    def propose(self, rows: Rows, asked: Question) -> Found:
        """Return the best move of each row against the frozen state."""
        self._keep_clusters()
        shared = (self._topics, self._clusters, asked)
        answers = self.place.each(propose_rows, rows, self.state.labels[rows], shared=shared)
        target, upper = np.empty(len(rows), dtype=np.int32), np.empty(len(rows))
        for at, found in answers:
            target[at], upper[at] = found.target, found.upper
        return Found(target, upper, stacked([found.moving for _, found in answers]))

    def _keep_clusters(self) -> None:
        """Have the present clusters sent, unless they are those that were sent last: most of what travels."""
        seen = _fingerprint(self.state)
        if not np.array_equal(seen, self._seen):
            self._clusters, self._seen = self.place.keep(Clusters.of(self.state)), seen


def propose_rows(
    part: Counts,
    rows: Rows,
    labels: NDArray[np.int32],
    topics: Topics,
    clusters: Clusters,
    asked: Question,
    for_rows: ForRows,
) -> Found:
    """Return the best moves of some rows of a part against the frozen state."""
    state = of_part(part, rows, labels, topics, clusters)
    target, upper = np.empty(len(rows), dtype=np.int32), np.empty(len(rows))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        target[some], upper[some] = _proposed(state, rows[some], asked, for_rows)
    return Found(target, upper, part.take(rows[target >= 0]))


def _proposed(
    state: State, rows: Rows, asked: Question, for_rows: ForRows
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return targets of some rows, and what they can gain at the most; clusters times rows are held meanwhile."""
    found, changes = Proposals.empty(len(rows), state.n_clusters), size_changes(state.sizes)

    def propose(some: Rows, *arrays: NDArray[np.generic]) -> None:
        kernels.propose(state, changes, *asked, some, Proposals._make(arrays))

    for_rows(propose, rows, *found)
    if found.is_open.any():
        at = np.flatnonzero(found.is_open)
        ratio = asked.last_caution / asked.caution
        calls = CloseCalls(state, rows[at], Proposals._make(x[at] for x in found), min_gain=asked.min_gain, ratio=ratio)
        found.target[at], found.upper[at] = calls.settle(for_rows)
    return found.target, found.upper


def last_caution(state: State) -> float:
    """Return by how much margins are widened before convergence is declared: the more, the cheaper that is.

    Under a prior below one a topic can be switched off in a cluster, and a single row can switch it on: no expansion
    sees that, so every move is evaluated exactly, as it is where this costs next to nothing.
    """
    work = len(state.labels) * state.n_clusters * state.beta.size
    if state.alpha < 1 or work <= EXACT_CHECK_WORK:
        return EXACT_CAUTION
    return 16.0 if work <= WIDE_CHECK_WORK else 2.0


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
