"""Clustering by non-negative matrix factorisation of tf-idf."""

from __future__ import annotations

import warnings
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.checks import NOT_NEGATIVE, SEARCH_RULES
from mmpca.baselines.weighting import unit_tfidf
from mmpca.counts import Counts


class Factorisation(NamedTuple):
    """Weights (N, Q) and components (Q, V), the norm of the residual, and the iterations it took."""

    weights: Array
    components: Array
    error: float
    n_iter: int


class NMFClustering(CountClusterer):
    """Clusters as the components of a non-negative factorisation: each row goes to its largest weight.

    Rows become tf-idf of unit length, factorised into weights and one component for each cluster under squared
    error. Components are scaled to unit length before the weights are compared, as the authors do.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of components.
    n_init : int, default=5
        Starts, the first by a singular value decomposition where there are no more clusters than rows and features,
        the others random; the one with the smallest error is kept.
    max_iter : int, default=500
        Most iterations of a start.
    tol : float, default=1e-4
        Tolerance of scikit-learn's NMF.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Component with the largest weight; a component may have no row.
    weights_ : ndarray of shape (n_samples, n_clusters)
        Weights of the rows on components of unit length.
    components_ : ndarray of shape (n_clusters, n_features)
        Components of unit length (zero where the factorisation dropped one).
    reconstruction_error_ : float
        Frobenius norm of the residual; smaller is better.
    n_iter_ : int
        Iterations of the best start.
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

    _rules: ClassVar = {**SEARCH_RULES, "tol": NOT_NEGATIVE}

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
        runs = (self._run(units, kind, seed) for kind, seed in zip(kinds, child_seeds(rng, self.n_init), strict=True))
        best = min(runs, key=lambda run: run.error)
        lengths = np.linalg.norm(best.components, axis=1)  # (Q,)
        self.weights_ = best.weights * lengths
        self.components_ = best.components / np.where(lengths > 0, lengths, 1.0)[:, None]
        self.labels_ = self.weights_.argmax(axis=1)
        self.reconstruction_error_, self.n_iter_ = best.error, best.n_iter
        self.converged_ = bool(self.n_iter_ < self.max_iter)

    def _run(self, units: sparse.csr_array, kind: str, seed: int) -> Factorisation:
        """Return the factorisation of unit rows, (N, V), from one start."""
        model = NMF(self.n_clusters, init=kind, max_iter=self.max_iter, tol=self.tol, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says so
            # Without any residual, scikit-learn takes the root of a rounding error.
            with np.errstate(invalid="ignore"):
                weights = model.fit_transform(units)
        error = float(np.nan_to_num(model.reconstruction_err_, nan=0.0))
        return Factorisation(weights, model.components_, error, int(model.n_iter_))
