"""The verbs between search and model: bound, gain, move and refresh (`state.check` is the fifth)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from mmpca import kernels
from mmpca.engine.bound import size_changes
from mmpca.engine.state import State


def bound(state: State) -> float:
    """Return the bound of the state's partition; stale clusters are refreshed in place first."""
    for q in np.flatnonzero(state.moved).tolist():
        kernels.refresh_cluster(state, q, True)
    return float(state.value.sum() + xlogy(state.sizes, state.sizes / state.sizes.sum()).sum())


def gain(state: State, i: int, q: int) -> float:
    """Return by how much the bound rises when row i moves to cluster q, everything maximised anew.

    Stale clusters are refreshed in place first. A row that is alone in its cluster must stay there: minus infinity.
    """
    old = int(state.labels[i])
    if q == old:
        return 0.0
    if state.sizes[old] == 1:
        return -np.inf
    for stale in (old, q):
        if state.moved[stale] > 0:
            refresh(state, stale)
    row, change = np.array([i]), np.empty((2, 1))
    kernels.exact_changes(state, old, row, change[0])
    kernels.exact_changes(state, q, row, change[1])
    leave, join = size_changes(state.sizes)
    return float(change.sum() + leave[old] + join[q])


def move(state: State, i: int, q: int) -> None:
    """Move row i to cluster q in place; both clusters become stale."""
    if q != state.labels[i]:
        kernels.move_row(state, i, q)


def refresh(state: State, q: int) -> None:
    """Bring all that is derived from the counts of cluster q up to date, in place."""
    state.aged[q] = np.inf
    kernels.refresh_cluster(state, q, True)
