"""Upper bounds on the gain that each row can still make, so that a sweep can skip rows without one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import RowBackend, map_rows, row_totals
from mmpca.engine.bound import Array, size_changes
from mmpca.engine.state import State


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
