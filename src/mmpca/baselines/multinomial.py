"""Mixture of multinomials by EM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mmpca.baselines.base import Array, RandomState
from mmpca.baselines.checks import NOT_NEGATIVE
from mmpca.baselines.mixture import EM_RULES, EMClusterer, log_multinomial_coefficients
from mmpca.counts import Counts


class FreeProfiles:
    """Profiles without structure: sums of rows plus pseudo-counts, divided by their total.

    Parameters
    ----------
    pseudo_counts : ndarray of shape (n_features,)
        Counts that each cluster is taken to have beforehand; zero for a feature that never occurs.
    """

    def __init__(self, pseudo_counts: Array) -> None:
        self.pseudo_counts = pseudo_counts

    def estimate(self, sums: Array) -> Array:
        """Return the most probable profiles, sums: (Q, V) -> (Q, V)."""
        raised = sums + self.pseudo_counts
        totals = raised.sum(axis=1, keepdims=True)
        # A cluster that lost all its rows has nothing to estimate from: it gets the profile of all rows.
        overall = np.tile(sums.sum(axis=0) / sums.sum(), (len(sums), 1))
        return np.divide(raised, totals, out=overall, where=totals > 0)

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        return float((log_profiles @ self.pseudo_counts).sum())


class MultinomialMixture(EMClusterer):
    r"""Mixture of multinomials: a row's counts are drawn from the profile of its cluster, its total given.

    .. math:: x_i \mid y_i = q \sim \mathrm{Multinomial}(L_i, p_q), \qquad P(y_i = q) = \pi_q

    fitted by EM in logarithms from several starts. Rows with different totals are no problem: the totals are
    not modelled.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    smoothing : float, default=0.1
        Counts of each feature that occurs, which a cluster is taken to have beforehand: EM then maximises the
        posterior under a Dirichlet(1 + smoothing) prior of profiles. 0 is maximum likelihood; it can lock a row into a
        cluster for being the only one with a rare feature.
    start : {"kmeans", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf; EM at falling temperatures; random partitions.
        Annealing reaches higher likelihoods, but where profiles have more parameters than the counts can tell, those
        lie farther from the truth than what EM finds near k-means (measured on simulated data with noise).
    n_init : int, default=10
        Starts; the best in the end is kept.
    max_iter : int, default=500
        Most iterations of a start.
    tol : float, default=1e-5
        A start ends when an iteration gains less than this for each row, in nats.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Shares of the clusters.
    profiles_ : ndarray of shape (n_clusters, n_features)
        Probabilities of the features, rows sum to one.
    log_likelihood_ : float
        Log-likelihood, multinomial coefficients included.
    bic_, icl_ : float
        Log-likelihood minus half the number of parameters times log(n_samples), and that minus the entropy of the
        assignments. Larger is better.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood plus log-prior (up to a constant) after each iteration of the best start, never decreasing.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether it ended before `max_iter`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    K. Nigam, A. McCallum, S. Thrun and T. Mitchell, "Text classification from labeled and unlabeled documents using
    EM", Machine Learning 39, 2000 (without their labelled part).

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

    _rules: ClassVar = {**EM_RULES, "smoothing": NOT_NEGATIVE}

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

    def _constants(self, rows: Counts) -> Array:
        return log_multinomial_coefficients(rows)
