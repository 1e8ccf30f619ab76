"""Mixture of multinomials fitted by EM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mmpca.baselines.base import Array, RandomState
from mmpca.baselines.em import EM_RULES, EMClusterer
from mmpca.counts import Counts
from mmpca.parameters import real


class FreeProfiles:
    """M-step for unconstrained profiles: sums of rows plus pseudo-counts (V,), divided by their total."""

    def __init__(self, pseudo_counts: Array) -> None:
        self.pseudo_counts = pseudo_counts

    def estimate(self, sums: Array) -> Array:
        """Return the most probable profiles, sums: (Q, V) -> (Q, V)."""
        raised = sums + self.pseudo_counts
        totals = raised.sum(axis=1, keepdims=True)
        # A cluster that lost all its rows gets the profile of all rows.
        overall = np.tile(sums.sum(axis=0) / sums.sum(), (len(sums), 1))
        return np.divide(raised, totals, out=overall, where=totals > 0)

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        return float((log_profiles @ self.pseudo_counts).sum())


class MultinomialMixture(EMClusterer):
    r"""Mixture of multinomials: a row's counts are drawn from the profile of its cluster, given its total.

    .. math:: x_i \mid y_i = q \sim \mathrm{Multinomial}(L_i, p_q), \qquad P(y_i = q) = \pi_q

    Row totals are not modeled, so they may differ freely.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    smoothing : float, default=0.1
        Pseudo-count for each feature that occurs: EM maximizes the posterior under a Dirichlet(1 + smoothing) prior on
        profiles. 0 is maximum likelihood, where a rare feature can lock a row into the only cluster that has it.
    start : {"kmeans", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf, EM at falling temperatures, or random
        partitions. Annealing reaches higher likelihoods, but on noisy simulated data, where profiles have more
        parameters than the counts can determine, its solutions are farther from the truth.
    n_init : int, default=10
        Number of starts; the one with the best objective is kept.
    max_iter : int, default=500
        Maximum number of iterations per start.
    tol : float, default=1e-5
        A start ends when an iteration raises the objective by less than this per row.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Proportions of the clusters.
    profiles_ : ndarray of shape (n_clusters, n_features)
        Probabilities of the features; rows sum to one.
    log_likelihood_ : float
        Log-likelihood, including multinomial coefficients.
    bic_, icl_ : float
        Log-likelihood minus half the number of parameters times log(n_samples), and that minus the entropy of the
        assignments. Larger is better.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood plus log-prior (up to a constant) after each iteration of the best start, never decreasing.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether it ended before `max_iter`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    K. Nigam, A. McCallum, S. Thrun and T. Mitchell, "Text classification from labeled and unlabeled documents using
    EM", Machine Learning 39, 2000 (its unlabeled part).

    Examples
    --------
    >>> from mmpca.baselines import MultinomialMixture
    >>> X = [[9, 1, 0, 0], [80, 20, 0, 10], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> model = MultinomialMixture(2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    >>> model.predict_proba([[5, 0, 0, 0]]).round(3).max()
    np.float64(1.0)
    """

    _rules: ClassVar = {**EM_RULES, "smoothing": real(0)}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        smoothing: float = 0.1,
        start: str = "kmeans",
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.smoothing = smoothing
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _step(self, rows: Counts, seed: int) -> FreeProfiles:
        return FreeProfiles(np.where(rows.column_totals() > 0, float(self.smoothing), 0.0))

    def _n_parameters(self, rows: Counts) -> int:
        n_present = int(np.count_nonzero(rows.column_totals()))
        return self.n_clusters * (n_present - 1) + self.n_clusters - 1
