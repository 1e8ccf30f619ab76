"""NMF-EM: a mixture of multinomials whose profiles share topics, fitted by maximum likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mmpca.baselines.base import Array, RandomState
from mmpca.baselines.em import EM_RULES, TINY, EMClusterer, EMRun
from mmpca.counts import Counts
from mmpca.parameters import integer

# The first M-step starts from random topics and needs this many times as many updates as the others.
_FIRST_UPDATES = 20


class SharedTopics:
    """M-step for profiles that mix common topics, `profiles = theta @ beta`, by multiplicative updates.

    It starts from random theta (Q, K) and beta (K, V); `is_present` (V,) marks the features that occur.
    """

    def __init__(
        self, n_clusters: int, n_topics: int, *, is_present: NDArray[np.bool_], n_updates: int, seed: int
    ) -> None:
        rng = np.random.RandomState(seed)
        self.theta = rng.dirichlet(np.ones(n_topics), size=n_clusters)  # (Q, K)
        self.beta = _normalized(rng.uniform(0.5, 1.5, size=(n_topics, is_present.size)) * is_present)  # (K, V)
        self.n_updates = n_updates
        self.is_first = True

    def estimate(self, sums: Array) -> Array:
        """Improve theta and beta on the sums, in place, and return the profiles; sums: (Q, V) -> (Q, V)."""
        for _ in range(self.n_updates * (_FIRST_UPDATES if self.is_first else 1)):
            self._update(sums)
        self.is_first = False
        return self.theta @ self.beta

    def _update(self, sums: Array) -> None:
        """Apply one multiplicative update for the Kullback-Leibler divergence to theta and beta, in place."""
        ratio = sums / np.maximum(self.theta @ self.beta, TINY)  # (Q, V)
        theta = self.theta * (ratio @ self.beta.T)
        beta = self.beta * (self.theta.T @ ratio)
        self.theta, self.beta = _normalized(theta, otherwise=self.theta), _normalized(beta, otherwise=self.beta)

    def penalty(self, log_profiles: Array) -> float:
        """Return zero: theta and beta have no prior."""
        return 0.0


def _normalized(values: Array, *, otherwise: Array | None = None) -> Array:
    """Return the rows divided by their sums; a row of zeros is replaced by that of the other array."""
    sums = values.sum(axis=1, keepdims=True)
    filling = np.zeros_like(values) if otherwise is None else otherwise.copy()
    return np.divide(values, sums, out=filling, where=sums > 0)


class NMFEM(EMClusterer):
    r"""Mixture of multinomials with low-rank profiles: the frequentist counterpart of MMPCA.

    .. math:: x_i \mid y_i = q \sim \mathrm{Multinomial}\Bigl(L_i, \sum_k \theta_{qk} \beta_k\Bigr)

    The topic proportions of the clusters and the topics are parameters. EM keeps soft assignments; its M-step
    factorizes the weighted sums of the rows by multiplicative updates.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_topics : int, default=5
        Number of topics.
    n_updates : int, default=10
        Multiplicative updates in each M-step; the first one, from random topics, has twenty times as many.
    start : {"kmeans", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf, EM at falling temperatures, or random
        partitions. The first two do equally well on simulated data.
    n_init : int, default=10
        Number of starts; the one with the highest likelihood is kept.
    max_iter : int, default=500
        Maximum number of iterations per start.
    tol : float, default=1e-5
        A start ends when an iteration raises the log-likelihood by less than this per row.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Proportions of the clusters.
    cluster_topics_ : ndarray of shape (n_clusters, n_topics)
        Topic proportions of the clusters; rows sum to one.
    components_ : ndarray of shape (n_topics, n_features)
        Topics; rows sum to one.
    profiles_ : ndarray of shape (n_clusters, n_features)
        The product of the two: probabilities of the features in each cluster.
    log_likelihood_ : float
        Log-likelihood, including multinomial coefficients.
    bic_, icl_ : float
        Log-likelihood minus half the number of parameters times log(n_samples), and that minus the entropy of the
        assignments. Larger is better.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood after each iteration of the best start, never decreasing.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether it ended before `max_iter`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    L. Carel and P. Alquier, "Simultaneous dimension reduction and clustering via the NMF-EM algorithm", Advances in
    Data Analysis and Classification 15, 2021 (first version 2017).

    Examples
    --------
    >>> from mmpca.baselines import NMFEM
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4], [5, 1, 4, 2], [4, 1, 6, 2]]
    >>> model = NMFEM(3, 2, random_state=0).fit(X)
    >>> model.cluster_topics_.shape, model.components_.shape
    ((3, 2), (2, 4))
    """

    cluster_topics_: Array
    components_: Array

    _rules: ClassVar = {**EM_RULES, "n_topics": integer(1), "n_updates": integer(1)}

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        n_updates: int = 10,
        start: str = "kmeans",
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.n_updates = n_updates
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _step(self, rows: Counts, seed: int) -> SharedTopics:
        is_present = rows.column_totals() > 0
        return SharedTopics(
            self.n_clusters, self.n_topics, is_present=is_present, n_updates=self.n_updates, seed=seed
        )  # fmt: skip

    def _keep(self, run: EMRun, rows: Counts) -> None:
        super()._keep(run, rows)
        assert isinstance(run.step, SharedTopics)
        self.cluster_topics_, self.components_ = run.step.theta, run.step.beta

    def _n_parameters(self, rows: Counts) -> int:
        n_present = int(np.count_nonzero(rows.column_totals()))
        return self.n_clusters * (self.n_topics - 1) + self.n_topics * (n_present - 1) + self.n_clusters - 1
