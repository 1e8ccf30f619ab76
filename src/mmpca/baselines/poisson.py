"""Mixture of Poisson distributions with row levels and library sizes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mmpca.baselines.base import Array, RandomState
from mmpca.baselines.checks import NOT_NEGATIVE, one_of
from mmpca.baselines.libraries import ConditionProfiles, check_conditions, check_library_sizes
from mmpca.baselines.mixture import EM_RULES, EMClusterer, log_factorials
from mmpca.counts import Counts


class PoissonMixture(EMClusterer):
    r"""Poisson mixture with a level for each row and a library size for each column.

    .. math:: x_{iv} \mid y_i = q \sim \mathrm{Poisson}(w_i \lambda_{q j(v)} s_v), \quad \sum_v \lambda_{q j(v)} s_v = 1

    Here :math:`w_i` is the total of row i, :math:`s_v` the library size of column v (shares, sum one) and
    :math:`\lambda_{qj}` how far cluster q is above or below average in condition j. Columns are replicates where they
    share a condition. Where each is its own condition, library sizes cancel and the labels are those of a multinomial
    mixture: given its total, a vector of Poisson counts is multinomial.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    algorithm : {"em", "cem"}, default="em"
        EM maximises the likelihood; CEM puts every row into its most probable cluster at each iteration and maximises
        the classification likelihood.
    conditions : array-like of shape (n_features,) or None, default=None
        Condition of each column, numbers or names; None makes each its own.
    library_sizes : "total" or array-like of shape (n_features,), default="total"
        Library sizes, e.g. normalisation factors times totals; "total" takes the column totals.
    smoothing : float, default=0.1
        Counts for each column that a cluster is taken to have beforehand, shared out in proportion to the library
        sizes: they draw every rate towards 1. 0 is maximum likelihood.
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
        Most probable cluster of each row; with CEM a cluster may have lost all its rows.
    weights_ : ndarray of shape (n_clusters,)
        Shares of the clusters.
    rates_ : ndarray of shape (n_clusters, n_features)
        The rates lambda, of each column's condition; 1 is average. Zero for a column without library.
    profiles_ : ndarray of shape (n_clusters, n_features)
        Rates times library sizes, rows sum to one.
    library_sizes_ : ndarray of shape (n_features,)
        Library sizes, sum one.
    log_likelihood_ : float
        Log-likelihood, factorials included.
    bic_, icl_ : float
        Log-likelihood minus half the number of free rates and weights times log(n_samples), and that minus the entropy
        of the assignments. Row levels and library sizes are taken as given. Larger is better.
    history_ : ndarray of shape (n_iter_,)
        What is maximised, plus log-prior (up to a constant), after each iteration of the best start, never decreasing.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether it ended before `max_iter`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    A. Rau, C. Maugis-Rabusseau, M.-L. Martin-Magniette and G. Celeux, "Co-expression analysis of high-throughput
    transcriptome sequencing data with Poisson mixture models", Bioinformatics 31, 2015; A. Rau, G. Celeux, M.-L.
    Martin-Magniette and C. Maugis-Rabusseau, "Clustering high-throughput sequencing data with Poisson mixture models",
    INRIA research report 7786, 2011.

    Examples
    --------
    >>> from mmpca.baselines import PoissonMixture
    >>> X = [[9, 12, 0, 1], [80, 90, 10, 10], [1, 0, 7, 9], [2, 0, 9, 12]]
    >>> model = PoissonMixture(2, conditions=["a", "a", "b", "b"], random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    """

    library_sizes_: Array
    rates_: Array

    _rules: ClassVar = {
        **EM_RULES,
        "algorithm": one_of("em", "cem"),
        "smoothing": NOT_NEGATIVE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        algorithm: str = "em",
        conditions: ArrayLike | None = None,
        library_sizes: ArrayLike | str = "total",
        smoothing: float = 0.1,
        start: str = "kmeans",
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.conditions = conditions
        self.library_sizes = library_sizes
        self.smoothing = smoothing
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_rows(self, rows: Counts) -> None:
        super()._check_rows(rows)
        check_library_sizes(self.library_sizes, rows)
        check_conditions(self.conditions, rows.n_features)

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        self.library_sizes_ = check_library_sizes(self.library_sizes, rows)
        self._conditions = check_conditions(self.conditions, rows.n_features)
        super()._fit(rows, rng)
        sizes = self.library_sizes_
        self.rates_ = np.divide(self.profiles_, sizes, out=np.zeros_like(self.profiles_), where=sizes > 0)

    def _is_hard(self) -> bool:
        return self.algorithm == "cem"

    def _step(self, rows: Counts, seed: int) -> ConditionProfiles:
        return ConditionProfiles(self._conditions, self.library_sizes_, float(self.smoothing))

    def _n_parameters(self, rows: Counts) -> int:
        n_conditions = np.unique(self._conditions[self.library_sizes_ > 0]).size
        return self.n_clusters * (n_conditions - 1) + self.n_clusters - 1

    def _constants(self, rows: Counts) -> Array:
        levels = rows.row_totals().astype(np.float64)
        constants: Array = levels * np.log(levels) - levels - log_factorials(rows)
        return constants
