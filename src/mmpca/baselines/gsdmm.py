"""Gibbs sampling for a mixture of multinomials, as a clusterer; the sampler is :mod:`mmpca.gibbs`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import Array, MixtureClusterer, RandomState, child_seeds
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.counts import Counts
from mmpca.gibbs import joint_log_density, run_chain
from mmpca.parameters import integer, real


class GSDMM(MixtureClusterer):
    r"""Dirichlet-multinomial mixture of short texts, by collapsed Gibbs sampling (GSDMM, "movie group process").

    The model is the multinomial mixture with symmetric Dirichlet priors on profiles and weights. Both are integrated
    out, and each pass draws the cluster of every row given those of all other rows. The small prior on weights lets
    clusters run empty, so `n_clusters` is the most that it can find. It is made for rows of a few counts: the labels
    of long rows hardly change after the first passes.

    Parameters
    ----------
    n_clusters : int, default=8
        Maximum number of clusters.
    weight_prior : float, default=0.1
        Parameter of the prior on weights (alpha in the paper).
    profile_prior : float, default=0.1
        Parameter of the prior on profiles (beta in the paper).
    n_iter : int, default=30
        Number of passes over the rows.
    n_init : int, default=5
        Number of chains, each from random labels; the one that ends with the largest joint probability of counts and
        labels is kept. The paper runs a single chain.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row in the last pass; no cluster is empty.
    n_clusters_ : int
        Number of clusters that are not empty.
    weights_ : ndarray of shape (n_clusters_,)
        Posterior mean of the weights, among the clusters that are not empty.
    profiles_ : ndarray of shape (n_clusters_, n_features)
        Posterior mean of the profiles; zero for a feature that never occurs.
    history_ : ndarray of shape (n_iter,)
        Log joint probability of counts and labels after each pass, including multinomial coefficients. A sampler also
        visits less probable labels, so it can decrease.
    n_features_in_ : int
        Number of features.

    References
    ----------
    J. Yin and J. Wang, "A Dirichlet multinomial mixture model-based approach for short text clustering", Proceedings of
    the 20th ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2014.

    Examples
    --------
    >>> from mmpca.baselines import GSDMM
    >>> X = [[2, 1, 0, 0], [1, 2, 0, 0], [2, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]]
    >>> model = GSDMM(4, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> bool(model.predict([[1, 0, 0, 0]])[0] == model.labels_[0])
    True
    """

    weights_: Array
    profiles_: Array
    history_: Array

    _rules: ClassVar = {
        "n_clusters": integer(1),
        "weight_prior": real(1e-6),
        "profile_prior": real(1e-6),
        "n_iter": integer(1),
        "n_init": integer(1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weight_prior: float = 0.1,
        profile_prior: float = 0.1,
        n_iter: int = 30,
        n_init: int = 5,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight_prior = weight_prior
        self.profile_prior = profile_prior
        self.n_iter = n_iter
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        self._is_present = rows.column_totals() > 0
        self._priors = (float(self.profile_prior), float(self.weight_prior))
        starts = (np.random.RandomState(seed) for seed in child_seeds(rng, self.n_init))
        chains = (
            run_chain(rows, self.n_clusters, start, priors=self._priors, n_passes=self.n_iter) for start in starts
        )
        best = max(chains, key=lambda chain: chain.history[-1])

        used, self.labels_ = np.unique(best.labels, return_inverse=True)
        self.n_clusters_ = used.size
        self._sums, self._sizes = best.sums[:, used], best.sizes[used]
        weights = self._sizes + self.weight_prior
        self.weights_ = weights / weights.sum()
        raised = self._sums.T + self.profile_prior  # (Q, V), of the features that occur
        self.profiles_ = np.zeros((self.n_clusters_, rows.n_features))
        self.profiles_[:, self._is_present] = raised / raised.sum(axis=1, keepdims=True)
        self.history_ = np.array(best.history) + float(log_multinomial_coefficients(rows).sum())

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        csr = self._counts(X, reset=False).to_csr()[:, self._is_present].astype(np.float64)
        return joint_log_density(csr, self._sums, self._sizes, self._priors)
