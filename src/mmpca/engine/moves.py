"""The verbs between search and model: bound, gain, joins, move and refresh (`state.check` is the last)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from mmpca import kernels
from mmpca.engine.bound import Array, size_changes, size_terms
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


def joins(state: State) -> tuple[Array, Array]:
    """Return by how much the bound rises when a row joins each cluster, and what the sizes make of that, (N, Q) each.

    Rows come from outside of the partition: those whose label is none of the clusters, -1 say, do so in fact, and are
    not in the state's sums; the others are taken out of their cluster first. A row that is alone in its cluster must
    stay there: infinity. All clusters must be fresh.
    """
    n_rows, every = state.rows.n_rows, np.arange(state.rows.n_rows)
    is_own = state.labels[:, None] == np.arange(state.n_clusters)
    change = np.empty((n_rows, state.n_clusters))
    for q in range(state.n_clusters):
        column = np.empty(n_rows)
        kernels.exact_changes(state, q, every, column)
        change[:, q] = column
    leave, join = size_changes(state.sizes)
    n_others = state.sizes.sum() - is_own.any(axis=1)  # (N,)
    from_sizes = np.where(is_own, -leave, join) - (size_terms(n_others + 1) - size_terms(n_others))[:, None]
    change = np.where(is_own, -change, change) + from_sizes
    return np.where(is_own & (state.sizes == 1), np.inf, change), from_sizes


def move(state: State, i: int, q: int) -> None:
    """Move row i to cluster q in place; both clusters become stale."""
    if q != state.labels[i]:
        kernels.move_row(state, i, q)


def refresh(state: State, q: int) -> None:
    """Bring all that is derived from the counts of cluster q up to date, in place."""
    state.aged[q] = np.inf
    kernels.refresh_cluster(state, q, True)
