"""What the search knows at a moment: a named tuple of arrays, built, copied and checked here."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca import kernels
from mmpca.counts import Counts, no_rows
from mmpca.engine.bound import Array, cluster_bound, expected_log_theta, ve_step
from mmpca.places import ForRows, Here, Place, Rows, each_of, group_sums, one_thread


class State(NamedTuple):
    """A partition, the variational parameters that belong to it, and the tables that its moves are screened with.

    The arrays are changed in place by the search. Clusters whose ``moved`` is positive are stale: their counts are
    up to date, all that is derived from the counts belongs to the last refresh.
    """

    rows: Counts  # the data, (N, V)
    alpha: float  # Dirichlet prior of the clusters' topic shares
    beta: Array  # topics, (K, V): features contiguous, for passes over a cluster
    beta_rows: Array  # the same transposed, (V, K): topics contiguous, for passes over a row
    labels: NDArray[np.int32]  # cluster of each row, (N,)
    sizes: NDArray[np.int64]  # rows in each cluster n_q, (Q,)
    counts: Array  # meta-observations M_q, (Q, V)
    totals: Array  # their sums, (Q,)
    gamma: Array  # parameters of q(theta_q), (Q, K)
    weight: Array  # exp(eta_q), (Q, K)
    value: Array  # J(M_q, gamma_q), (Q,)
    curvature: Array  # A_q, (Q, K, K)
    coupling: Array  # A_q - T_q, what overlapping topics add to the curvature, (Q, K, K)
    # What moves are screened with, (V, 2 Q): first C_qv, then U_qv, the root of phi_qv' A_q phi_qv.
    # One array, because a row's pass over its features reads both.
    tables: Array
    drift: Array  # s_q(D) of the rows D moved since the last refresh, (Q, K)
    moved: Array  # counts moved since the last refresh, (Q,)
    aged: Array  # counts moved before that, since coupling and U_qv were last renewed, (Q,)

    @property
    def n_clusters(self) -> int:
        """Number of clusters Q."""
        return len(self.sizes)


def build(rows: Counts, labels: ArrayLike, *, n_clusters: int, beta: Array, alpha: float) -> State:
    """Return the state of a partition, every cluster fresh.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    labels : array-like of int, shape (N,)
        Cluster of each row, 0 to n_clusters - 1, none empty.
    n_clusters : int
    beta : array of shape (K, V)
    alpha : float
    """
    state = _blank(rows, labels, n_clusters, beta, alpha)
    relabel(state, state.labels)
    return state


def of_sums(counts: Array, sizes: ArrayLike, *, beta: Array, alpha: float, gamma: Array | None = None) -> State:
    """Return a state of clusters whose rows are not at hand: it has a bound and merges, but no moves.

    Parameters
    ----------
    counts : array of shape (Q, V)
        Sums of the rows of each cluster.
    sizes : array-like of int, shape (Q,)
        Rows in each cluster.
    beta : array of shape (K, V)
    alpha : float
    gamma : array of shape (Q, K), optional
        Where the VE-steps start; by default from equal topic shares.
    """
    state = _blank(no_rows(counts.shape[1]), np.zeros(0), len(counts), beta, alpha)
    state.counts[:], state.sizes[:], state.totals[:] = counts, sizes, counts.sum(axis=1)
    _renew(state, gamma)
    return state


def _blank(rows: Counts, labels: ArrayLike, n_clusters: int, beta: Array, alpha: float) -> State:
    """Return a state whose clusters are still to be counted and refreshed."""
    n_topics, n_features = beta.shape
    # Kernels are compiled for arrays that can be written to; joblib gives processes large ones that cannot.
    beta = np.require(beta, np.float64, ["C", "A", "W", "E"])
    return State(
        rows=rows,
        alpha=float(alpha),
        beta=beta,
        beta_rows=np.ascontiguousarray(beta.T),
        labels=np.array(labels, dtype=np.int32),
        sizes=np.zeros(n_clusters, dtype=np.int64),
        counts=np.zeros((n_clusters, n_features)),
        totals=np.zeros(n_clusters),
        gamma=np.zeros((n_clusters, n_topics)),
        weight=np.zeros((n_clusters, n_topics)),
        value=np.zeros(n_clusters),
        curvature=np.zeros((n_clusters, n_topics, n_topics)),
        coupling=np.zeros((n_clusters, n_topics, n_topics)),
        tables=np.zeros((n_features, 2 * n_clusters)),
        drift=np.zeros((n_clusters, n_topics)),
        moved=np.zeros(n_clusters),
        aged=np.zeros(n_clusters),
    )


def build_at(
    place: Place, labels: ArrayLike, *, n_clusters: int, beta: Array, alpha: float, gamma: Array | None = None
) -> State:
    """Return the state of a partition of rows that are not at hand; what needs them has to be told the place.

    The VE-steps start from `gamma` (Q, K), or from equal topic shares.
    """
    state = _blank(no_rows(place.n_features), labels, n_clusters, beta, alpha)
    relabel(state, state.labels, gamma, place=place)
    return state


class Topics(NamedTuple):
    """What a search leaves as it is, but for the rows; see `State`."""

    alpha: float
    beta: Array
    beta_rows: Array

    @classmethod
    def of(cls, state: State) -> Self:
        """Return that of a state."""
        return cls(*(getattr(state, name) for name in cls._fields))


class Clusters(NamedTuple):
    """What a search changes, but for the labels; see `State`."""

    sizes: NDArray[np.int64]
    counts: Array
    totals: Array
    gamma: Array
    weight: Array
    value: Array
    curvature: Array
    coupling: Array
    tables: Array
    drift: Array
    moved: Array
    aged: Array

    @classmethod
    def of(cls, state: State) -> Self:
        """Return that of a state: its own arrays."""
        return cls(*(getattr(state, name) for name in cls._fields))


def of_part(part: Counts, rows: Rows, labels: NDArray[np.int32], topics: Topics, clusters: Clusters) -> State:
    """Return a state with a part of the rows at hand, of which the given ones have the given labels."""
    own = np.zeros(part.n_rows, dtype=np.int32)
    own[rows] = labels
    return State(rows=part, labels=own, **topics._asdict(), **clusters._asdict())


def relabel(state: State, labels: ArrayLike, gamma: Array | None = None, *, place: Place | None = None) -> None:
    """Give the state another partition in place, every cluster fresh; `gamma` (Q, K) starts the VE-steps.

    By default they start from equal topic shares, and the rows are at hand.
    """
    state.labels[:] = labels
    place = Here(state.rows) if place is None else place
    _recount(state, place)
    _renew(state, gamma, place.for_rows)


def _renew(state: State, gamma: Array | None, for_rows: ForRows = one_thread) -> None:
    """Make every cluster fresh, in place, from its counts alone."""
    state.weight[:] = 1.0 if gamma is None else np.maximum(np.exp(expected_log_theta(gamma)), kernels.LEAST_WEIGHT)
    state.curvature[:] = np.nan
    state.aged[:] = np.inf
    each_of(lambda q: kernels.refresh_cluster(state, q, True), range(state.n_clusters), for_rows)


def _recount(state: State, place: Place) -> None:
    """Recompute sizes, counts and totals of the clusters from the labels, in place."""
    state.sizes[:] = np.bincount(state.labels, minlength=state.n_clusters)
    every = np.arange(len(state.labels))
    state.counts[:] = place.total(group_sums, every, state.labels, shared=(state.n_clusters,))
    state.totals[:] = state.counts.sum(axis=1)


def pooled_value(state: State, clusters: list[int]) -> float:
    """Return max J of the counts of several clusters taken together."""
    share = state.totals[clusters] / state.totals[clusters].sum()
    names = ("sizes", "totals", "gamma", "value", "curvature", "coupling", "drift", "moved", "aged")
    pooled = state._replace(
        counts=state.counts[clusters].sum(axis=0, keepdims=True),
        weight=share[None] @ state.weight[clusters],
        **{name: np.zeros_like(getattr(state, name)[:1]) for name in names},
    )
    pooled.curvature[:] = np.nan
    kernels.refresh_cluster(pooled, 0, False)
    return float(pooled.value[0])


def copy(state: State) -> State:
    """Return a state that can be searched without changing this one; data and topics are shared."""
    shared = ("rows", "alpha", "beta", "beta_rows")
    own = {name: value.copy() for name, value in state._asdict().items() if name not in shared}
    return state._replace(**own)


def check(state: State, rtol: float = 1e-9) -> None:
    """Raise AssertionError unless the state keeps its invariants; for tests and debugging, it recomputes everything."""
    X = state.rows.to_csr()
    for q in range(state.n_clusters):
        members = state.labels == q
        m = np.asarray(X[members].sum(axis=0), dtype=float).ravel()
        _require(state.sizes[q] == members.sum() > 0, f"cluster {q} has {state.sizes[q]} rows, not {members.sum()}")
        _require(np.array_equal(state.counts[q], m), f"the counts of cluster {q} are not the sum of its rows")
        _require(state.totals[q] == m.sum(), f"the total of cluster {q} is {state.totals[q]}, not {m.sum()}")
        if state.moved[q] == 0:
            # A step from a stationary point gains nothing.
            gamma = ve_step(m, beta=state.beta, alpha=state.alpha, gamma=state.gamma[q], max_iter=1)
            best = cluster_bound(m, gamma, beta=state.beta, alpha=state.alpha)
            close = np.isclose(state.value[q], best, rtol=rtol, atol=rtol)
            _require(bool(close), f"J of cluster {q} is {state.value[q]}, not {best}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
