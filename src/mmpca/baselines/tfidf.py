"""Clustering of tf-idf vectors: spherical k-means, and non-negative matrix factorization."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from mmpca.baselines.base import (
    SEARCH_RULES,
    Array,
    CountClusterer,
    Labels,
    RandomState,
    child_seeds,
    kmeans_partitions,
    unit_tfidf,
)
from mmpca.counts import Counts
from mmpca.parameters import real


class SphericalRun(NamedTuple):
    """The end of a run: labels (N,), unit mean directions (Q, V), the objective after each assignment."""

    labels: Labels
    centers: Array
    history: list[float]
    converged: bool


def run_spherical(units: sparse.csr_array, centers: Array, *, max_iter: int) -> SphericalRun:
    """Assign rows to the nearest direction and recompute directions until no label changes.

    units: (N, V), rows of unit length; centers: (Q, V), unit directions to start from.
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
            return SphericalRun(labels, centers, history, True)
        labels = new_labels
        centers = mean_directions(units, labels, n_clusters)
    return SphericalRun(labels, centers, history, False)


def mean_directions(units: sparse.csr_array, labels: Labels, n_clusters: int) -> Array:
    """Return the normalized sum of the rows of each cluster, shape (n_clusters, n_features)."""
    n_rows = len(labels)
    members = sparse.csr_array((np.ones(n_rows), (labels, np.arange(n_rows))), shape=(n_clusters, n_rows))
    sums: Array = (members @ units).toarray()
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def spread_rows(units: sparse.csr_array, n_clusters: int, seed: int) -> Array:
    """Return rows that are far apart (k-means++), dense, shape (n_clusters, n_features)."""
    # kmeans_plusplus divides by the sum of distances, which is zero once all distinct rows are drawn.
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


class SphericalKMeans(CountClusterer):
    """Spherical k-means: rows are tf-idf directions, clusters mean directions, and similarity is the cosine.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=10
        Number of starts, half of them from k-means in the space of the leading singular vectors of tf-idf, half from
        k-means++; the one with the largest sum of cosines is kept.
    max_iter : int, default=300
        Maximum number of assignments per start.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; no cluster is empty.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean directions of the tf-idf rows, of unit length.
    objective_ : float
        Sum of the cosines between rows and their centers; larger is better.
    history_ : ndarray of shape (n_iter_,)
        The objective after each assignment of the best start, never decreasing.
    n_iter_ : int
        Number of assignments of the best start.
    converged_ : bool
        Whether its labels stopped changing.
    n_features_in_ : int
        Number of features.

    References
    ----------
    I. S. Dhillon and D. S. Modha, "Concept decompositions for large sparse text data using clustering", Machine
    Learning 42, 2001.

    Examples
    --------
    >>> from mmpca.baselines import SphericalKMeans
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = SphericalKMeans(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    cluster_centers_: Array
    history_: Array

    def __init__(
        self, n_clusters: int = 8, *, n_init: int = 10, max_iter: int = 300, random_state: RandomState = None
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        units = unit_tfidf(rows)
        starts = self._starts(rows, units, child_seeds(rng, self.n_init))
        runs = (run_spherical(units, centers, max_iter=self.max_iter) for centers in starts)
        best = max(runs, key=lambda run: run.history[-1])
        self.labels_, self.cluster_centers_, self.converged_ = best.labels, best.centers, best.converged
        self.history_, self.objective_ = np.array(best.history), best.history[-1]
        self.n_iter_ = len(best.history)

    def _starts(self, rows: Counts, units: sparse.csr_array, seeds: list[int]) -> Iterator[Array]:
        """Yield directions to start from: means of k-means partitions, then rows that are far apart."""
        n_partitions = (len(seeds) + 1) // 2
        for labels in kmeans_partitions(rows, self.n_clusters, seeds[:n_partitions]):
            yield mean_directions(units, labels, self.n_clusters)
        for seed in seeds[n_partitions:]:
            yield spread_rows(units, self.n_clusters, seed)


class NMFClustering(CountClusterer):
    """Non-negative matrix factorization of tf-idf; each row belongs to the component with its largest weight.

    Tf-idf rows of unit length are factorized into weights and one component per cluster, under squared error.
    Components are scaled to unit length before the weights are compared, as in the reference.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of components.
    n_init : int, default=5
        Number of starts; the one with the smallest error is kept. The first starts from a singular value decomposition
        unless there are more clusters than rows or features, the others are random.
    max_iter : int, default=500
        Maximum number of iterations per start.
    tol : float, default=1e-4
        Tolerance of scikit-learn's NMF.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Component with the largest weight; a component may have no rows.
    weights_ : ndarray of shape (n_samples, n_clusters)
        Weights of the rows on components of unit length.
    components_ : ndarray of shape (n_clusters, n_features)
        Components of unit length; zero if the factorization dropped one.
    reconstruction_error_ : float
        Frobenius norm of the residual; smaller is better.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether it ended before `max_iter`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    W. Xu, X. Liu and Y. Gong, "Document clustering based on non-negative matrix factorization", SIGIR 2003.

    Examples
    --------
    >>> from mmpca.baselines import NMFClustering
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = NMFClustering(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    weights_: Array
    components_: Array

    _rules: ClassVar = {**SEARCH_RULES, "tol": real(0)}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        units = unit_tfidf(rows)
        has_svd = self.n_clusters <= min(units.shape)
        kinds = ["nndsvda" if has_svd and start == 0 else "random" for start in range(self.n_init)]
        seeds = child_seeds(rng, self.n_init)
        runs = (self._run(units, kind, seed) for kind, seed in zip(kinds, seeds, strict=True))
        self.reconstruction_error_, weights, model = min(runs, key=lambda run: run[0])
        lengths = np.linalg.norm(model.components_, axis=1)  # (Q,)
        self.weights_ = weights * lengths
        self.components_ = model.components_ / np.where(lengths > 0, lengths, 1.0)[:, None]
        self.labels_ = self.weights_.argmax(axis=1)
        self.n_iter_ = int(model.n_iter_)
        self.converged_ = bool(self.n_iter_ < self.max_iter)

    def _run(self, units: sparse.csr_array, kind: str, seed: int) -> tuple[float, Array, NMF]:
        """Return error, weights (N, Q) and model of one start; units: (N, V)."""
        model = NMF(self.n_clusters, init=kind, max_iter=self.max_iter, tol=self.tol, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported as `converged_`
            # With a perfect fit, scikit-learn may take the root of a negative rounding error.
            with np.errstate(invalid="ignore"):
                weights = model.fit_transform(units)
        return float(np.nan_to_num(model.reconstruction_err_, nan=0.0)), weights, model
