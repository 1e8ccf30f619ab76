"""Spherical k-means on rows of unit length: one run from one seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from mmpca.baselines.base import Array, Labels


class DirectionsRun(NamedTuple):
    """What a run of spherical k-means ends with.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        Cluster of each row.
    centers : ndarray of shape (n_clusters, n_features)
        Unit mean directions.
    history : list of float
        Sum of the cosines between rows and centres after each assignment, never decreasing.
    converged : bool
        Whether the labels settled.
    """

    labels: Labels
    centers: Array
    history: list[float]
    converged: bool


def run_directions(units: sparse.csr_array, centers: Array, *, max_iter: int) -> DirectionsRun:
    """Assign rows to the nearest direction and re-estimate directions until no label changes.

    Parameters
    ----------
    units : csr_array of shape (n_rows, n_features)
        Rows of unit length.
    centers : ndarray of shape (n_clusters, n_features)
        Unit directions to start from.
    max_iter : int
        Most assignments.

    Returns
    -------
    DirectionsRun
    """
    n_clusters = len(centers)
    labels = np.full(units.shape[0], -1, dtype=np.int64)
    history: list[float] = []
    for _ in range(max_iter):
        cosines = units @ centers.T  # (N, Q)
        new_labels = cosines.argmax(axis=1)
        best = cosines[np.arange(len(new_labels)), new_labels]
        _fill_empty(new_labels, best, n_clusters)
        history.append(float(best.sum()))
        if np.array_equal(new_labels, labels):
            return DirectionsRun(labels, centers, history, True)
        labels = new_labels
        centers = mean_directions(units, labels, n_clusters)
    return DirectionsRun(labels, centers, history, False)


def mean_directions(units: sparse.csr_array, labels: Labels, n_clusters: int) -> Array:
    """Return the normalised sum of the rows of each cluster, shape (n_clusters, n_features)."""
    n_rows = len(labels)
    members = sparse.csr_array((np.ones(n_rows), (labels, np.arange(n_rows))), shape=(n_clusters, n_rows))
    sums: Array = (members @ units).toarray()
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def spread_rows(units: sparse.csr_array, n_clusters: int, seed: int) -> Array:
    """Return rows far from each other (k-means++), dense, shape (n_clusters, n_features)."""
    # kmeans_plusplus divides by the sum of distances, which is zero when all rows are drawn already.
    with np.errstate(invalid="ignore", divide="ignore"):
        _, chosen = kmeans_plusplus(sparse.csr_matrix(units), n_clusters, random_state=seed)
    return units[chosen].toarray()


def _fill_empty(labels: Labels, cosines: Array, n_clusters: int) -> None:
    """Give each empty cluster the row that fits its own worst, in place; a row alone in its cluster stays."""
    sizes = np.bincount(labels, minlength=n_clusters)
    for q in np.flatnonzero(sizes == 0):
        movable = np.flatnonzero(sizes[labels] > 1)
        i = movable[cosines[movable].argmin()]
        sizes[labels[i]] -= 1
        labels[i], cosines[i] = q, 1.0  # its direction will be the row itself
        sizes[q] = 1
