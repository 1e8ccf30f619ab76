"""Close calls: moves for which the second-order gain does not decide whether the bound rises."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.backend import Rows, Threads
from mmpca.engine.bound import Array, size_changes
from mmpca.engine.state import ROWS_PER_TASK, State

PRECISION = 0.01  # of an exact evaluation, as a share of the gain that a move must have


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
