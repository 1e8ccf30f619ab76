"""What rows can still gain, so that a sweep passes over those that cannot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmpca.engine.bound import Array, size_changes
from mmpca.engine.state import State
from mmpca.places import Place, joined, row_totals


class Outlook:
    """What each row can gain at the most, known when it was last looked at and kept valid while its clusters change.

    The log mixture of a cluster changes in no feature by more than the largest change of its eta, so the gain of a row
    changes by no more than its total times those of the two clusters of a move. At the end of a removal, the eta of
    what is left of the cluster changes more than that of the whole, in inverse proportion to its total or, where topics
    overlap, its square: of a row that makes up half of its cluster, nothing is known once that has changed.
    """

    def __init__(self, state: State, place: Place) -> None:
        self.totals = joined(place, row_totals, np.arange(place.n_rows)).astype(np.float64)  # (N,)
        self.upper = np.full(len(state.labels), np.inf)  # (N,)
        self._eta, self._size_changes = np.log(state.weight), size_changes(state.sizes)
        self._travelled = [np.zeros((2, state.n_clusters))]  # after each block: by eta, and by the sizes' terms
        self._since = np.zeros(len(state.labels), dtype=np.int64)  # the place there from which `upper` is counted

    def book(self, rows: NDArray[np.int64], upper: Array) -> None:
        """Note what rows can gain at the most in the present state."""
        self.upper[rows] = upper
        self._since[rows] = len(self._travelled) - 1

    def advance(self, state: State) -> None:
        """Note how far the clusters have come since the last call."""
        eta, by_row = np.log(state.weight), size_changes(state.sizes)
        by_eta = np.abs(eta - self._eta).max(axis=1)
        by_size = np.abs(by_row - self._size_changes).max(axis=0)
        self._eta, self._size_changes = eta, by_row
        self._travelled.append(self._travelled[-1] + np.stack([by_eta, by_size]))

    def end_epoch(self, state: State) -> None:
        """Bring `upper` up to date; every cluster must be fresh."""
        self.advance(state)
        journeys = self._travelled[-1] - np.stack(self._travelled)  # (blocks, 2, Q)
        farthest = journeys.max(axis=2)[self._since]  # (N, 2)
        own = journeys[self._since, :, state.labels]  # (N, 2)
        left = 1.0 - self.totals / state.totals[state.labels]
        growth = np.where((left < 0.5) & (own[:, 0] > 0.0), np.inf, 1.0 / np.maximum(left, 0.5) ** 2)
        self.upper += self.totals * (growth * own[:, 0] + farthest[:, 0]) + own[:, 1] + farthest[:, 1]
        self._travelled = [self._travelled[-1]]
        self._since[:] = 0

    def forget(self) -> None:
        """Know nothing of any row."""
        self.upper[:] = np.inf
