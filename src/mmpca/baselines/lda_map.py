"""The most probable topic of an LDA as cluster."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.checks import AT_LEAST_ONE, LDA_CHOICE
from mmpca.baselines.topic_space import fit_topic_space
from mmpca.counts import Counts


class LDAMap(CountClusterer):
    """LDA with one topic for each cluster: a row goes to its most probable topic.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters and of topics.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA with row priors 1 and 1/n_clusters by turns, or an unfitted transformer such as
        `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    n_init : int, default=5
        Runs of the LDA; the one that scores best is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the runs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable topic of each row; a topic may have no row.
    shares_ : ndarray of shape (n_samples, n_clusters)
        Topic shares of the rows.
    lda_ : estimator
        The fitted LDA.
    lda_score_ : float or None
        What it scores on the rows, by which the run was chosen: scikit-learn's, the bound on the likelihood. None for a
        transformer without `score`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    D. M. Blei, A. Y. Ng and M. I. Jordan, "Latent Dirichlet allocation", Journal of Machine Learning Research 3, 2003.

    Examples
    --------
    >>> from mmpca.baselines import LDAMap
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = LDAMap(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    shares_: Array
    lda_score_: float | None

    _rules: ClassVar = {"n_clusters": AT_LEAST_ONE, "lda": LDA_CHOICE, "n_init": AT_LEAST_ONE}

    def __init__(
        self, n_clusters: int = 8, *, lda: Any = "sklearn", n_init: int = 5, random_state: RandomState = None
    ) -> None:
        self.n_clusters = n_clusters
        self.lda = lda
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        seeds = child_seeds(rng, self.n_init)
        self.lda_, self.shares_ = fit_topic_space(rows, self.lda, self.n_clusters, seeds)
        self.lda_score_ = float(self.lda_.score(rows.to_csr())) if hasattr(self.lda_, "score") else None
        self.labels_ = self.shares_.argmax(axis=1)
