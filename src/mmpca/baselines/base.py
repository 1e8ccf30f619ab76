"""The interface of all baselines: checks of data and parameters, seeds for restarts, starting partitions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import Tags, check_random_state
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import validate_data

from mmpca.counts import Counts, as_counts, transposition_hint
from mmpca.parameters import Rule, check_parameters, integer

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
RandomState = int | np.random.RandomState | None

SEARCH_RULES: dict[str, Rule] = {"n_clusters": integer(1), "n_init": integer(1), "max_iter": integer(1)}


class CountClusterer(ClusterMixin, BaseEstimator):
    """A clusterer of counts: checks parameters and data, then calls `_fit` of the subclass."""

    n_clusters: Any  # a number; IntegratedMultinomialMixture also takes "auto"
    random_state: RandomState
    labels_: Labels
    n_features_in_: int

    _rules: ClassVar[Mapping[str, Rule]] = SEARCH_RULES

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers; every row has at least one count.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self.get_params(deep=False), self._rules)
        rows = self._counts(X, reset=True)
        self._fit(rows, check_random_state(self.random_state))
        return self

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        """Cluster checked rows and set the fitted attributes."""
        raise NotImplementedError

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts; when fitting, also check that these rows can be fitted."""
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        if reset:
            self._check_rows(rows)
        # Last, so that an error leaves an earlier fit untouched.
        validate_data(self, X, reset=reset, skip_check_array=True)
        return rows

    def _check_rows(self, rows: Counts) -> None:
        """Raise ValueError for rows that cannot be fitted with these parameters; sets no attribute."""
        if isinstance(self.n_clusters, str) or self.n_clusters <= rows.n_rows:
            return
        hint = transposition_hint(rows)
        raise ValueError(
            f"n_clusters={self.n_clusters} clusters need at least as many rows, but n_samples = {rows.n_rows}. "
            "Lower n_clusters or pass more rows." + ("" if hint is None else f" {hint}")
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class MixtureClusterer(CountClusterer):
    """A mixture, whose clusters have a density: it also predicts the clusters of new rows."""

    def predict(self, X: Any) -> Labels:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts; features that never occurred in the fit are ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        labels: Labels = self._joint(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts; features that never occurred in the fit are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        probabilities: Array = softmax(self._joint(X), axis=1)
        return probabilities

    @abstractmethod
    def _joint(self, X: Any) -> Array:
        """Return the log of weight times density of rows, without their constants, (N, Q)."""


def child_seeds(rng: np.random.RandomState, n_seeds: int) -> list[int]:
    """Return seeds for independent runs."""
    seeds: list[int] = rng.randint(np.iinfo(np.int32).max, size=n_seeds).tolist()
    return seeds


def unit_tfidf(rows: Counts) -> sparse.csr_array:
    """Return the rows as tf-idf vectors of unit Euclidean length, shape (n_rows, n_features).

    scikit-learn's smoothed inverse document frequency is at least 1, so no row vanishes.
    """
    return sparse.csr_array(TfidfTransformer().fit_transform(rows.to_csr().astype(float)))


# --- partitions to start from -----------------------------------------------------------------------------------


def random_partition(n_rows: int, n_clusters: int, seed: int) -> Labels:
    """Return random labels of clusters whose sizes differ by at most one."""
    return np.random.RandomState(seed).permutation(np.arange(n_rows) % n_clusters)


def kmeans_partitions(rows: Counts, n_clusters: int, seeds: list[int]) -> Iterator[Labels]:
    """Yield one partition per seed, found by k-means in the space of the leading singular vectors of tf-idf.

    k-means on all features stays near its first centers. In this small space it does not, and mixtures that start from
    its partitions reach far higher likelihoods on simulated data. The number of dimensions alternates between the
    number of clusters and one less, which suffices where clusters share topics, and carries less noise.
    """
    units = unit_tfidf(rows)
    for turn, seed in enumerate(seeds):
        points = _leading_directions(units, max(n_clusters - turn % 2, 2), seed)
        yield _kmeans_labels(points, n_clusters, seed)


def hellinger_partition(rows: Counts, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means on square roots of the rows' shares, whose distance is that of Hellinger."""
    csr = rows.to_csr()
    totals = np.repeat(rows.row_totals(), np.diff(rows.indptr))
    roots = sparse.csr_array((np.sqrt(csr.data / totals), csr.indices, csr.indptr), shape=csr.shape)
    return _kmeans_labels(roots, n_clusters, seed)


def proportions_partition(rows: Counts, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means on the rows' proportions, from random centers.

    This is how HTSCluster starts its EM. k-means on all features stays near its first centers, which is why
    `kmeans_partitions` reduces the features first.
    """
    csr = rows.to_csr()
    totals = np.repeat(rows.row_totals(), np.diff(rows.indptr))
    shares = sparse.csr_array((csr.data / totals, csr.indices, csr.indptr), shape=csr.shape)
    return _kmeans_labels(shares, n_clusters, seed, init="random")


def _kmeans_labels(points: Array | sparse.csr_array, n_clusters: int, seed: int, init: str = "k-means++") -> Labels:
    """Return the labels of a run of k-means, without empty clusters; points: (N, n_dimensions) -> (N,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        labels = KMeans(n_clusters, init=init, n_init=1, random_state=seed).fit_predict(points).astype(np.int64)
    _fill_empty_clusters(labels, n_clusters)
    return labels


def _leading_directions(units: sparse.csr_array, n_dimensions: int, seed: int) -> Array:
    """Return the rows projected on the leading singular vectors, of unit length; (N, V) -> (N, n_dimensions)."""
    left, values, _ = randomized_svd(units, min(n_dimensions, *units.shape), random_state=seed)
    points: Array = left * values
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)


def _fill_empty_clusters(labels: Labels, n_clusters: int) -> None:
    """Give each empty cluster a row of the largest cluster, in place; identical rows leave clusters empty."""
    sizes = np.bincount(labels, minlength=n_clusters)
    for q in np.flatnonzero(sizes == 0):
        largest = sizes.argmax()
        labels[np.flatnonzero(labels == largest)[0]] = q
        sizes[largest], sizes[q] = sizes[largest] - 1, 1
