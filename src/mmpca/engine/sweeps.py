"""One pass over a block of rows, by each of the three algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.engine.bound import size_changes
from mmpca.engine.outlook import Outlook
from mmpca.engine.settle import CloseCalls, Proposals
from mmpca.engine.state import State

Rows = NDArray[np.int64]
ForRows = Callable[..., None]  # calls a kernel on matching pieces of arrays, in threads

STALE_SHARE = 0.2  # counts moved since a cluster's last refresh, as a share of its total, before the next
# Rows x clusters x topics x features up to which the last look at the moves is exact, or has very wide margins.
EXACT_CHECK_WORK, WIDE_CHECK_WORK = 2_000_000, 100_000_000


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

    Rows that could gain nothing when they were last looked at are passed over while the clusters have hardly changed.
    """

    def __init__(self, state: State, for_rows: ForRows) -> None:
        self.state, self.for_rows = state, for_rows
        self.cautions = (1.0, last_caution(state))
        self.outlook = Outlook(state)

    def visit(self, block: Rows, min_gain: float, caution: float) -> int:
        """Make moves of the block's rows in place, all bounds on errors times `caution`; return their number."""
        block = block[self.outlook.upper[block] > min_gain]
        if not len(block):
            return 0
        rows = np.sort(block)  # what lies together in memory is read together; moves are made in the block's order
        target = self._propose(rows, min_gain, caution)
        n_moves = _apply(self.state, block, target[np.searchsorted(rows, block)], min_gain)
        if n_moves:
            self.outlook.advance(self.state)
        return n_moves

    def _propose(self, rows: Rows, min_gain: float, caution: float) -> NDArray[np.int32]:
        """Return the best move of each row against the frozen state, -1 for none."""
        state, last = self.state, self.cautions[-1]
        found = Proposals.empty(len(rows), state.n_clusters)
        changes = size_changes(state.sizes)
        self.for_rows(
            lambda some, *arrays: kernels.propose(
                state, changes, min_gain, caution, last, some, Proposals._make(arrays)
            ),
            rows,
            *found,
        )
        if found.is_open.any():
            at = np.flatnonzero(found.is_open)
            calls = CloseCalls(
                state, rows[at], Proposals._make(x[at] for x in found), min_gain=min_gain, ratio=last / caution
            )  # fmt: skip
            found.target[at], found.upper[at] = calls.settle(self.for_rows)
        self.outlook.book(rows, found.upper)
        return found.target

    def end_epoch(self, is_repaired: bool) -> None:
        """Bring what the rows can gain up to date with the clusters."""
        self.outlook.end_epoch(self.state)
        if is_repaired:
            self.outlook.forget()


def last_caution(state: State) -> float:
    """Return by how much margins are widened before convergence is declared: the more, the cheaper that is.

    Under a prior below one a topic can be switched off in a cluster, and a single row can switch it on: no expansion
    sees that, so every move is evaluated exactly, as it is where this costs next to nothing.
    """
    work = len(state.labels) * state.n_clusters * state.beta.size
    if state.alpha < 1 or work <= EXACT_CHECK_WORK:
        return 1e100
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
