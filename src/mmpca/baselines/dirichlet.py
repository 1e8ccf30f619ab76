"""Mixture of multinomials with all parameters integrated out."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.checks import AT_LEAST_ONE, POSITIVE, SEARCH_RULES, Rule
from mmpca.baselines.collapsed import Partition, Priors, run_greedy
from mmpca.baselines.mixture import log_multinomial_coefficients
from mmpca.baselines.starts import kmeans_partitions
from mmpca.counts import Counts


class DirichletMultinomialMixture(CountClusterer):
    r"""Dirichlet-multinomial mixture: the partition with the largest exact ICL, found by greedy moves and merges.

    Profiles and weights have symmetric Dirichlet priors and are integrated out, so the labels are all that is left to
    search: :math:`\log p(X, y)` is known exactly. From each start rows move to where they gain most until nothing
    gains. Where the number of clusters is to be found, the search starts with `max_clusters`, merges pairs as long as
    that gains, and moves rows again.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters; "auto" merges as long as the ICL gains.
    max_clusters : int, default=20
        Clusters that "auto" starts from, and so the most that it can find.
    profile_prior : float, default=1.0
        Parameter of the prior on profiles.
    weight_prior : float, default=1.0
        Parameter of the prior on weights.
    n_init : int, default=5
        Starts, from k-means in the space of the leading singular vectors of tf-idf; the largest ICL is kept.
    max_iter : int, default=100
        Most sweeps over the rows between merges.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the order of the rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; every cluster has one.
    n_clusters_ : int
        Number of clusters.
    weights_ : ndarray of shape (n_clusters_,)
        Posterior mean of the weights.
    profiles_ : ndarray of shape (n_clusters_, n_features)
        Posterior mean of the profiles; zero for a feature that never occurs.
    icl_ : float
        Exact ICL, multinomial coefficients included; larger is better.
    history_ : ndarray of shape (n_iter_,)
        ICL after each sweep of the best start since its last merge, never decreasing.
    n_iter_ : int
        Sweeps since the last merge.
    converged_ : bool
        Whether the last sweep moved nothing.
    n_features_in_ : int
        Number of features.

    References
    ----------
    E. Côme, N. Jouvin, P. Latouche and C. Bouveyron, "Hierarchical clustering with discrete latent variable models and
    the integrated classification likelihood", Advances in Data Analysis and Classification 15, 2021 (the R package
    greed); C. Biernacki, G. Celeux and G. Govaert, "Exact and Monte Carlo calculations of integrated likelihoods for
    the latent class model", Journal of Statistical Planning and Inference 140, 2010.

    Examples
    --------
    >>> from mmpca.baselines import DirichletMultinomialMixture
    >>> X = [[9, 1, 0, 0], [80, 20, 0, 10], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> model = DirichletMultinomialMixture(random_state=0).fit(X)
    >>> model.n_clusters_
    2
    """

    weights_: Array
    profiles_: Array
    history_: Array

    _rules: ClassVar = {
        **SEARCH_RULES,
        "n_clusters": Rule(
            lambda value: (isinstance(value, str) and value == "auto") or AT_LEAST_ONE.holds(value),
            f'"auto" or {AT_LEAST_ONE.expected}',
        ),
        "max_clusters": AT_LEAST_ONE,
        "profile_prior": POSITIVE,
        "weight_prior": POSITIVE,
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 20,
        profile_prior: float = 1.0,
        weight_prior: float = 1.0,
        n_init: int = 5,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.profile_prior = profile_prior
        self.weight_prior = weight_prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        is_auto = isinstance(self.n_clusters, str)
        n_start = min(rows.n_rows, self.max_clusters) if is_auto else int(self.n_clusters)
        priors = Priors(float(self.profile_prior), float(self.weight_prior))
        seeds = child_seeds(rng, self.n_init)
        runs = (
            run_greedy(Partition(rows, labels, priors), has_merges=is_auto, seed=seed, max_iter=self.max_iter)
            for labels, seed in zip(kmeans_partitions(rows, n_start, seeds), seeds, strict=True)
        )
        best = max(runs, key=lambda run: run.history[-1])
        self._keep_partition(best.partition, rows)
        self.history_ = np.array(best.history) + float(log_multinomial_coefficients(rows).sum())
        self.icl_ = float(self.history_[-1])
        self.n_iter_, self.converged_ = len(best.history), best.converged

    def _keep_partition(self, partition: Partition, rows: Counts) -> None:
        """Set labels, weights and profiles to those of a partition."""
        self.labels_, self.n_clusters_ = partition.labels, partition.n_clusters
        weights = partition.sizes + self.weight_prior
        self.weights_ = weights / weights.sum()
        raised = partition.sums.T + self.profile_prior  # (Q, V), of the features that occur
        self.profiles_ = np.zeros((partition.n_clusters, rows.n_features))
        self.profiles_[:, rows.column_totals() > 0] = raised / raised.sum(axis=1, keepdims=True)
