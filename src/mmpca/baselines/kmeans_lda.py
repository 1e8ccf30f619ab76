"""k-means in the space of an LDA."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.checks import AT_LEAST_ONE, AT_LEAST_TWO, LDA_CHOICE
from mmpca.baselines.topic_space import fit_topic_space
from mmpca.counts import Counts


class KMeansLDA(CountClusterer):
    """k-means on the rows' topic shares under an LDA.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_topics : int, default=5
        Number of topics, at least 2.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA with row priors 1 and 1/n_topics by turns, or an unfitted transformer such as
        `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    n_init_lda : int, default=4
        Runs of the LDA; the one that scores best is kept.
    n_init : int, default=10
        Starts of k-means; the one with the smallest sum of squares is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of everything.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters, n_topics)
        Mean topic shares.
    inertia_ : float
        Sum of squared distances of shares from their centres; smaller is better.
    shares_ : ndarray of shape (n_samples, n_topics)
        Topic shares of the rows.
    lda_ : estimator
        The fitted LDA.
    n_features_in_ : int
        Number of features.

    References
    ----------
    D. M. Blei, A. Y. Ng and M. I. Jordan, "Latent Dirichlet allocation", Journal of Machine Learning Research 3, 2003,
    for the space; S. P. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28, 1982.

    Examples
    --------
    >>> from mmpca.baselines import KMeansLDA
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = KMeansLDA(2, 2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    shares_: Array
    cluster_centers_: Array

    _rules: ClassVar = {
        "n_clusters": AT_LEAST_ONE,
        "n_topics": AT_LEAST_TWO,
        "lda": LDA_CHOICE,
        "n_init_lda": AT_LEAST_ONE,
        "n_init": AT_LEAST_ONE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        lda: Any = "sklearn",
        n_init_lda: int = 4,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.lda = lda
        self.n_init_lda = n_init_lda
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        *lda_seeds, seed = child_seeds(rng, self.n_init_lda + 1)
        self.lda_, self.shares_ = fit_topic_space(rows, self.lda, self.n_topics, lda_seeds)
        model = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            model.fit(self.shares_)
        self.labels_ = model.labels_.astype(np.int64)
        self.cluster_centers_, self.inertia_ = model.cluster_centers_, float(model.inertia_)
