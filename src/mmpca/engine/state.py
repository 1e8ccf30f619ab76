"""A partition with everything the search derives from it, and the functions that change or query it.

Five functions connect the search and the model: :func:`bound`, :func:`gain`, :func:`move`, :func:`refresh` and
:func:`check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from mmpca import kernels
from mmpca.backend import SERIAL, LocalRows, RowBackend, Rows, Threads, group_sums
from mmpca.counts import Counts, no_rows
from mmpca.engine.bound import Array, Prior, cluster_bound, expected_log_theta, size_changes, size_terms, ve_step

ROWS_PER_TASK = 16  # an exact evaluation takes long, so a thread gets few rows at a time


class FixedTopics(NamedTuple):
    """Topics and their prior, which a search does not change."""

    alpha: Array  # Dirichlet prior of the clusters' topic shares, (K,)
    beta: Array  # topics, (K, V): features contiguous, for passes over a cluster
    beta_rows: Array  # the same transposed, (V, K): topics contiguous, for passes over a row

    @classmethod
    def of(cls, alpha: Prior, beta: Array) -> Self:
        """Return topics with both of their layouts; kernels read either, so neither is ever replaced alone."""
        return cls(np.full(len(beta), alpha, dtype=np.float64), beta, np.ascontiguousarray(beta.T))

    @property
    def has_one_maximum(self) -> bool:
        """True if J(m, .) is sure to have a single maximum; under a prior below one, it may have several."""
        return bool(self.alpha.min() >= 1)


class Clusters(NamedTuple):
    """Variational parameters of all clusters, and the tables that screen moves between them.

    The search changes the arrays in place. A cluster with ``moved > 0`` is stale: its counts are up to date, but
    everything derived from them belongs to the last refresh.
    """

    sizes: NDArray[np.int64]  # rows in each cluster n_q, (Q,)
    counts: Array  # meta-observations M_q, (Q, V)
    totals: Array  # their sums, (Q,)
    gamma: Array  # parameters of q(theta_q), (Q, K)
    weight: Array  # exp(eta_q), (Q, K)
    value: Array  # J(M_q, gamma_q), (Q,)
    curvature: Array  # A_q, (Q, K, K)
    coupling: Array  # A_q - T_q, which overlapping topics add to the curvature, (Q, K, K)
    diagonal: Array  # trigamma(gamma_q), the diagonal of T_q without its common part, (Q, K)
    release: Array  # roots of the diagonal of the coupling, (Q, K)
    # First C_qv, then U_qv >= sqrt(phi_qv' A_q phi_qv), (V, 2 Q). One array, because a row's pass over its features
    # reads both.
    tables: Array
    drift: Array  # s_q(D) of the rows D moved since the last refresh, (Q, K)
    moved: Array  # counts moved since the last refresh, (Q,)
    aged: Array  # counts moved before that, since coupling and U_qv were last computed, (Q,)

    def take(self, some: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64] | NDArray[np.int64], ...]:
        """Return copies of the arrays of some clusters, for `restore`."""
        columns = np.concatenate([some, len(self.sizes) + some])
        return tuple(array[:, columns] if array is self.tables else array[some] for array in self)

    def restore(
        self, some: NDArray[np.integer[Any]], taken: tuple[NDArray[np.float64] | NDArray[np.int64], ...]
    ) -> None:
        """Put back, in place, the arrays of some clusters."""
        columns = np.concatenate([some, len(self.sizes) + some])
        for array, values in zip(self, taken, strict=True):
            if array is self.tables:
                array[:, columns] = values
            else:
                array[some] = values


class State(NamedTuple):
    """A partition of the rows, its clusters and the topics they share."""

    rows: Counts  # the data, (N, V); empty if the rows are on workers
    labels: NDArray[np.int32]  # cluster of each row, (N,)
    topics: FixedTopics
    clusters: Clusters

    @property
    def n_clusters(self) -> int:
        """Number of clusters Q."""
        return len(self.clusters.sizes)


# --- building ---------------------------------------------------------------------------------------------------


def build(
    rows: Counts | RowBackend,
    labels: ArrayLike,
    *,
    n_clusters: int,
    beta: Array,
    alpha: Prior,
    gamma: Array | None = None,
) -> State:
    """Return the state of a partition, with every cluster fresh.

    Parameters
    ----------
    rows : Counts of shape (N, V), or RowBackend
    labels : array-like of int, shape (N,)
        Cluster of each row, 0 to n_clusters - 1, none empty.
    n_clusters : int
    beta : array of shape (K, V)
    alpha : float or array of shape (K,)
    gamma : array of shape (Q, K), optional
        Where the VE-steps start; by default at equal topic shares, and always under a prior below one: the VE-steps
        then have several maxima, and the path to them would decide between these.
    """
    backend = LocalRows(rows) if isinstance(rows, Counts) else rows
    local = backend.rows if isinstance(backend, LocalRows) else no_rows(backend.n_features)
    labels = np.array(labels, dtype=np.int32)
    counts = backend.map_reduce(group_sums, np.arange(len(labels)), labels, shared=(n_clusters,))
    sizes, near = np.bincount(labels, minlength=n_clusters), gamma if np.min(alpha) >= 1 else None
    state = from_sums(counts, sizes, beta=beta, alpha=alpha, gamma=near, threads=backend.threads)
    return state._replace(rows=local, labels=labels)


def from_sums(
    counts: Array,
    sizes: ArrayLike,
    *,
    beta: Array,
    alpha: Prior,
    gamma: Array | None = None,
    threads: Threads = SERIAL,
) -> State:
    """Return a state of clusters without their rows: it has a bound and can be merged, but has no moves.

    Parameters
    ----------
    counts : array of shape (Q, V)
        Sums of the rows of each cluster.
    sizes : array-like of int, shape (Q,)
        Rows in each cluster.
    beta : array of shape (K, V)
    alpha : float or array of shape (K,)
    gamma : array of shape (Q, K), optional
        Where the VE-steps start; by default at equal topic shares.
    threads : Threads
        The result does not depend on them.
    """
    n_clusters, (n_topics, n_features) = len(counts), beta.shape
    # Kernels are compiled for writable arrays, but joblib hands large arrays to processes read-only.
    beta = np.require(beta, np.float64, ["C", "A", "W", "E"])
    clusters = Clusters(
        sizes=np.array(sizes, dtype=np.int64),
        counts=np.array(counts, dtype=np.float64, order="C"),
        totals=counts.sum(axis=1, dtype=np.float64),
        gamma=np.zeros((n_clusters, n_topics)),
        weight=np.zeros((n_clusters, n_topics)),
        value=np.zeros(n_clusters),
        curvature=np.zeros((n_clusters, n_topics, n_topics)),
        coupling=np.zeros((n_clusters, n_topics, n_topics)),
        diagonal=np.zeros((n_clusters, n_topics)),
        release=np.zeros((n_clusters, n_topics)),
        tables=np.zeros((n_features, 2 * n_clusters)),
        drift=np.zeros((n_clusters, n_topics)),
        moved=np.zeros(n_clusters),
        aged=np.zeros(n_clusters),
    )
    state = State(no_rows(n_features), np.zeros(0, dtype=np.int32), FixedTopics.of(alpha, beta), clusters)
    _refresh_all(state, gamma, np.arange(n_clusters), threads)
    return state


def relabel(
    state: State,
    labels: ArrayLike,
    gamma: Array | None = None,
    *,
    backend: RowBackend | None = None,
    only: Rows | None = None,
) -> None:
    """Give the state another partition, in place, with every cluster fresh.

    The VE-steps start from `gamma` (Q, K), by default from equal topic shares; without a backend, the state must hold
    the rows. If only some clusters differ, `only` has their numbers, and the others stay as they are.
    """
    backend = LocalRows(state.rows) if backend is None else backend
    clusters = state.clusters
    state.labels[:] = labels
    some = np.arange(state.n_clusters) if only is None else only
    rows = np.arange(len(state.labels)) if only is None else np.flatnonzero(np.isin(state.labels, some))
    clusters.sizes[:] = np.bincount(state.labels, minlength=state.n_clusters)
    groups = np.searchsorted(some, state.labels[rows]).astype(np.int32)
    clusters.counts[some] = backend.map_reduce(group_sums, rows, groups, shared=(len(some),))
    clusters.totals[some] = clusters.counts[some].sum(axis=1)
    _refresh_all(state, gamma, some, backend.threads)


def _refresh_all(state: State, gamma: Array | None, some: Rows, threads: Threads) -> None:
    """Refresh some clusters from their counts alone, in place."""
    clusters = state.clusters
    clusters.weight[some] = 1.0 if gamma is None else topic_weights(gamma[some])
    clusters.curvature[some] = np.nan
    clusters.aged[some] = np.inf
    clusters.drift[some] = 0.0
    clusters.moved[some] = 0.0
    threads.map(lambda q: kernels.refresh_cluster(state, q, True), some.tolist())


def topic_weights(gamma: Array) -> Array:
    """Return exp(eta) of each cluster, (Q, K), kept above zero so that logarithms stay finite."""
    return np.maximum(np.exp(expected_log_theta(gamma)), kernels.LEAST_WEIGHT)


def copy(state: State) -> State:
    """Return a state that can be changed without changing this one; data and topics are shared."""
    clusters = Clusters._make(array.copy() for array in state.clusters)
    return state._replace(labels=state.labels.copy(), clusters=clusters)


# --- the verbs --------------------------------------------------------------------------------------------------


def bound(state: State) -> float:
    """Return the bound of the partition; stale clusters are refreshed first, in place."""
    clusters = state.clusters
    for q in np.flatnonzero(clusters.moved).tolist():
        kernels.refresh_cluster(state, q, True)
    return float(clusters.value.sum() + xlogy(clusters.sizes, clusters.sizes / clusters.sizes.sum()).sum())


def gain(state: State, i: int, q: int) -> float:
    """Return the exact change of the bound when row i moves to cluster q.

    Stale clusters are refreshed first, in place. The only row of a cluster must stay there: minus infinity.
    """
    sizes, old = state.clusters.sizes, int(state.labels[i])
    if q == old:
        return 0.0
    if sizes[old] == 1:
        return -np.inf
    for stale in (old, q):
        if state.clusters.moved[stale] > 0:
            refresh(state, stale)
    change = exact_changes(state, old, np.array([i])) + exact_changes(state, q, np.array([i]))
    leave, join = size_changes(sizes)
    return float(change[0] + leave[old] + join[q])


def exact_changes(state: State, q: int, rows: NDArray[np.int64]) -> Array:
    """Return the exact changes of J when rows join cluster q, or leave it if it is their own, (R,)."""
    changes = np.empty(len(rows))
    kernel = partial(kernels.exact_changes, state, q, tol=kernels.VE_DEFICIT)
    SERIAL.for_rows(kernel, rows, changes, np.full(len(rows), -np.inf), size=ROWS_PER_TASK)  # Ctrl-C between tasks
    return changes


def joins(state: State) -> tuple[Array, Array]:
    """Return the exact change of the bound when each row joins each cluster, and the part due to sizes, (N, Q) each.

    A row whose label is not a cluster, such as -1, is new to the partition; any other row is taken out of its cluster
    first. The only row of a cluster must stay there: infinity. All clusters must be fresh.
    """
    sizes, n_rows = state.clusters.sizes, state.rows.n_rows
    is_own = state.labels[:, None] == np.arange(state.n_clusters)
    change = np.empty((n_rows, state.n_clusters))
    for q in range(state.n_clusters):
        change[:, q] = exact_changes(state, q, np.arange(n_rows))
    leave, join = size_changes(sizes)
    n_others = sizes.sum() - is_own.any(axis=1)  # (N,)
    from_sizes = np.where(is_own, -leave, join) - (size_terms(n_others + 1) - size_terms(n_others))[:, None]
    change = np.where(is_own, -change, change) + from_sizes
    return np.where(is_own & (sizes == 1), np.inf, change), from_sizes


def move(state: State, i: int, q: int) -> None:
    """Move row i to cluster q, in place; both clusters become stale."""
    if q != state.labels[i]:
        kernels.move_row(state, int(i), int(q))  # labels of 32 bits would be another signature to compile


def refresh(state: State, q: int) -> None:
    """Recompute everything derived from the counts of cluster q, in place."""
    state.clusters.aged[q] = np.inf
    kernels.refresh_cluster(state, q, True)


def check(state: State, rtol: float = 1e-9) -> None:
    """Raise AssertionError if an invariant is broken; for tests and debugging, because it recomputes everything."""
    X, clusters, topics = state.rows.to_csr(), state.clusters, state.topics
    for q in range(state.n_clusters):
        members = state.labels == q
        m = np.asarray(X[members].sum(axis=0), dtype=float).ravel()
        _require(clusters.sizes[q] == members.sum() > 0, f"cluster {q}: size {clusters.sizes[q]}, not {members.sum()}")
        _require(np.array_equal(clusters.counts[q], m), f"cluster {q}: counts are not the sum of its rows")
        _require(clusters.totals[q] == m.sum(), f"cluster {q}: total {clusters.totals[q]}, not {m.sum()}")
        if clusters.moved[q] == 0:
            # A step from a stationary point gains nothing.
            gamma = ve_step(m, beta=topics.beta, alpha=topics.alpha, gamma=clusters.gamma[q], max_iter=1)
            best = cluster_bound(m, gamma, beta=topics.beta, alpha=topics.alpha)
            close = np.isclose(clusters.value[q], best, rtol=rtol, atol=rtol)
            _require(bool(close), f"cluster {q}: J is {clusters.value[q]}, not {best}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def pooled_value(state: State, some: Sequence[int]) -> float:
    """Return max J of the summed counts of several clusters."""
    clusters, merged = state.clusters, list(some)
    share = clusters.totals[merged] / clusters.totals[merged].sum()
    pooled = Clusters._make(np.zeros_like(array[:1]) for array in clusters)._replace(
        counts=clusters.counts[merged].sum(axis=0, keepdims=True),
        weight=share[None] @ clusters.weight[merged],
        tables=clusters.tables,  # never written without tables
    )
    pooled.curvature[:] = np.nan
    kernels.refresh_cluster(state._replace(clusters=pooled), 0, False)
    return float(pooled.value[0])
