"""Spherical k-means on tf-idf."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.directions import mean_directions, run_directions, spread_rows
from mmpca.baselines.starts import kmeans_partitions
from mmpca.baselines.weighting import unit_tfidf
from mmpca.counts import Counts


class SphericalKMeans(CountClusterer):
    """Spherical k-means: rows as tf-idf directions, clusters as mean directions, nearness by the cosine.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=10
        Starts, half of them by k-means in the space of the leading singular vectors of tf-idf, half by k-means++; the
        one with the largest sum of cosines is kept.
    max_iter : int, default=300
        Most assignments in a start.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; every cluster has one.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean directions of the tf-idf rows, of unit length.
    objective_ : float
        Sum of the cosines between rows and their centres; larger is better.
    history_ : ndarray of shape (n_iter_,)
        The objective after each assignment of the best start, never decreasing.
    n_iter_ : int
        Assignments of the best start.
    converged_ : bool
        Whether its labels settled.
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
        seeds = child_seeds(rng, self.n_init)
        runs = (run_directions(units, centers, max_iter=self.max_iter) for centers in self._starts(rows, units, seeds))
        best = max(runs, key=lambda run: run.history[-1])
        self.labels_, self.cluster_centers_, self.converged_ = best.labels, best.centers, best.converged
        self.history_, self.objective_ = np.array(best.history), best.history[-1]
        self.n_iter_ = len(best.history)

    def _starts(self, rows: Counts, units: sparse.csr_array, seeds: list[int]) -> Iterator[Array]:
        """Yield directions to start from: means of partitions, then rows far from each other."""
        n_partitions = (len(seeds) + 1) // 2
        for labels in kmeans_partitions(rows, self.n_clusters, seeds[:n_partitions]):
            yield mean_directions(units, labels, self.n_clusters)
        for seed in seeds[n_partitions:]:
            yield spread_rows(units, self.n_clusters, seed)
