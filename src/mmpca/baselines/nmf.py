"""Clustering by non-negative matrix factorization of tf-idf."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from mmpca.baselines.base import SEARCH_RULES, Array, CountClusterer, RandomState, child_seeds, unit_tfidf
from mmpca.counts import Counts
from mmpca.parameters import real


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
