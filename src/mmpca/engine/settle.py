"""Close calls: moves whose second-order gains leave open whether they raise the bound."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.engine.bound import Array, size_changes
from mmpca.engine.state import State
from mmpca.places import ForRows, Rows

ROWS_PER_TASK = 16  # that a thread evaluates at a time


class Proposals(NamedTuple):
    """What `kernels.propose` finds for each row of a block; see there and in `kernels.expand_row`."""

    target: NDArray[np.int32]  # best move, -1 for none, (R,)
    is_open: NDArray[np.bool_]  # whether errors leave the decision open, (R,)
    upper: Array  # what the row can gain at the most under the last caution, (R,)
    rest: Array  # the same, in clusters without an estimate, (R,)
    estimate: Array  # gains of the moves to each cluster; the removal's change in the row's own, (R, Q)
    below: Array  # how far below the truth may be, for both ends of a move in the same way, (R, Q)
    above: Array  # and how far above, (R, Q)

    @classmethod
    def empty(cls, n_rows: int, n_clusters: int) -> Self:
        """Return room for the proposals of some rows."""
        upper, rest = np.empty((2, n_rows))
        return cls(
            np.empty(n_rows, dtype=np.int32),
            np.empty(n_rows, dtype=np.bool_),
            upper,
            rest,
            *np.empty((3, n_rows, n_clusters)),
        )


class CloseCalls:
    """The moves of some rows, each with an estimated gain and how far below and above it the truth may be.

    One end of a move after the other is evaluated exactly, the more uncertain first, until the move is known to gain
    or not: the ends in one cluster at a time, for all rows that wait for it. `ratio` is the last caution, by which
    errors are multiplied before convergence is declared, over the one with which the moves were proposed.
    """

    def __init__(self, state: State, rows: Rows, found: Proposals, *, min_gain: float, ratio: float) -> None:
        self.state, self.rows, self.min_gain, self.ratio = state, rows, min_gain, ratio
        self.every, self.old = np.arange(len(rows)), state.labels[rows]
        estimate, self.below, self.above, self.rest = found.estimate, found.below, found.above, found.rest
        is_own = np.arange(state.n_clusters) == self.old[:, None]
        self.has_estimate = (estimate > -np.inf) & ~is_own
        self.below[~self.has_estimate & ~is_own] = self.above[~self.has_estimate & ~is_own] = 0.0
        self.removal = self._own(estimate).copy()  # (R,)
        self.addition = np.where(is_own, -np.inf, estimate - self.removal[:, None])  # (R, Q)
        self.is_candidate = self._rivals(np.where(self.has_estimate, estimate, -np.inf))

    def settle(self, for_rows: ForRows) -> tuple[NDArray[np.int32], Array]:
        """Return the best move of each row, -1 for none, and what it can gain at the most under the last caution."""
        while len(waiting := np.flatnonzero((undecided := self._undecided()).any(axis=1))):
            new = undecided[waiting].argmax(axis=1)  # the first of them
            error = self.below + self.above
            is_removal = error[waiting, self.old[waiting]] > error[waiting, new]
            end = np.where(is_removal, self.old[waiting], new)
            for q in np.unique(end).tolist():
                self._evaluate(waiting[end == q], q, for_rows)
        gain = np.where(self.is_candidate, self._gain(), -np.inf)
        target = np.where(gain.max(axis=1) > self.min_gain, gain.argmax(axis=1), -1)
        at_most = (self._gain() + self.ratio * self._error(self.above)).max(axis=1)
        return target.astype(np.int32), np.maximum(at_most, self.rest)

    def _rivals(self, estimate: Array) -> NDArray[np.bool_]:
        """Return which moves may be the best of their rows, (R, Q)."""
        best = estimate.argmax(axis=1)
        least = estimate[self.every, best] - self.below[self.every, best] - self._own(self.below)
        floor = np.maximum(self.min_gain, least)
        rivals: NDArray[np.bool_] = estimate + self._error(self.above) > floor[:, None]
        return rivals & self.has_estimate

    def _own(self, table: Array) -> Array:
        """Return each row's entry for its own cluster, (R,)."""
        own: Array = table[self.every, self.old]
        return own

    def _error(self, of_end: Array) -> Array:
        """Return the errors of whole moves from those of their ends, (R, Q)."""
        # Where there is no estimate, the gain is minus infinity, which an infinite error would turn into NaN.
        error: Array = np.where(self.has_estimate, of_end + self._own(of_end)[:, None], 0.0)
        return error

    def _gain(self) -> Array:
        gain: Array = self.removal[:, None] + self.addition
        return gain

    def _undecided(self) -> NDArray[np.bool_]:
        """Return which candidates may gain or not, (R, Q)."""
        gain = self._gain() - self.min_gain
        may_not = gain - self._error(self.below) <= 0.0
        may = gain + self._error(self.above) > 0.0
        undecided: NDArray[np.bool_] = self.is_candidate & may & may_not
        return undecided

    def _evaluate(self, at: NDArray[np.int64], q: int, for_rows: ForRows) -> None:
        """Evaluate one end of moves, that in cluster q, exactly."""
        change = np.empty(len(at))
        for_rows(partial(kernels.exact_changes, self.state, q), self.rows[at], change, size=ROWS_PER_TASK)
        is_own = self.old[at] == q
        leave, join = size_changes(self.state.sizes)
        self.removal[at[is_own]] = change[is_own] + leave[q]
        self.addition[at[~is_own], q] = change[~is_own] + join[q]
        self.below[at, q] = self.above[at, q] = 0.0
