"""Mixture of Poisson distributions with row levels and library sizes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mmpca.baselines.base import Array, RandomState
from mmpca.baselines.em import EM_RULES, EMClusterer, log_factorials
from mmpca.counts import Counts
from mmpca.parameters import one_of, real


class ConditionProfiles:
    """M-step for profiles in which the columns of a condition differ only by their library sizes.

    conditions: (V,), numbered from 0 without gaps; sizes: (V,), sum to one, positive for a column with counts.
    """

    def __init__(self, conditions: NDArray[np.intp], sizes: Array, smoothing: float) -> None:
        shape = sizes.size, int(conditions.max()) + 1
        self.members = sparse.csr_array((np.ones(sizes.size), (np.arange(sizes.size), conditions)), shape=shape)
        self.conditions = conditions
        self.pseudo_counts = smoothing * sizes.size * sizes
        condition_sizes = np.bincount(conditions, weights=sizes)[conditions]  # (V,)
        # A column's share of the counts of its condition.
        self.within = np.divide(sizes, condition_sizes, out=np.zeros_like(sizes), where=condition_sizes > 0)

    def estimate(self, sums: Array) -> Array:
        """Return `lambda[q, condition of v] * sizes[v]`, sums: (Q, V) -> (Q, V)."""
        raised = sums + self.pseudo_counts
        is_empty = raised.sum(axis=1) == 0
        raised[is_empty] = sums.sum(axis=0)  # a cluster that lost all its rows gets the profile of all rows
        of_conditions = np.asarray(self.members.T @ raised.T)  # (conditions, Q)
        by_condition = of_conditions[self.conditions].T  # (Q, V)
        return by_condition * self.within / raised.sum(axis=1, keepdims=True)

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        return float((log_profiles @ self.pseudo_counts).sum())


def check_conditions(conditions: Any, n_features: int) -> NDArray[np.intp]:
    """Return the condition of each column, numbered from 0; None makes each column its own condition."""
    if conditions is None:
        return np.arange(n_features)
    values = np.asarray(conditions)
    if values.shape != (n_features,):
        raise ValueError(
            f"conditions must have one entry for each of the {n_features} columns of X, but its shape is "
            f"{values.shape}. Pass an array of shape ({n_features},), or None."
        )
    return np.unique(values, return_inverse=True)[1]


def check_library_sizes(sizes: Any, rows: Counts) -> Array:
    """Return the library sizes of the columns, divided by their sum; "total" means the column totals."""
    totals = rows.column_totals().astype(np.float64)
    if isinstance(sizes, str) and sizes == "total":
        return totals / totals.sum()
    values = np.asarray(sizes)
    if values.dtype.kind not in "biuf" or values.shape != totals.shape:
        raise ValueError(
            f'library_sizes must be "total" or an array of {totals.size} numbers, one for each column of X, but it has '
            f"type {values.dtype} and shape {values.shape}. Pass an array of shape ({totals.size},)."
        )
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | ((values == 0) & (totals > 0)))
    if wrong.size:
        v = wrong[0]
        raise ValueError(
            "library_sizes must be finite and non-negative, and positive for a column with counts, but "
            f"library_sizes[{v}] = {values[v]} and column {v} has {totals[v]:.0f} counts. Correct it, or drop the "
            "column."
        )
    return values / values.sum()


class PoissonMixture(EMClusterer):
    r"""Poisson mixture with a level for each row and a library size for each column.

    .. math:: x_{iv} \mid y_i = q \sim \mathrm{Poisson}(w_i \lambda_{q j(v)} s_v), \quad \sum_v \lambda_{q j(v)} s_v = 1

    Here :math:`w_i` is the total of row i, :math:`s_v` the library size of column v (they sum to one), and
    :math:`\lambda_{qj}` how far cluster q is above or below average in condition j. Columns of the same condition are
    replicates. If each column is its own condition, library sizes cancel and the labels are those of a multinomial
    mixture: given its total, a vector of Poisson counts is multinomial.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    algorithm : {"em", "cem"}, default="em"
        EM maximizes the likelihood. Classification EM assigns each row to its most probable cluster in each iteration
        and maximizes the classification likelihood.
    conditions : array-like of shape (n_features,) or None, default=None
        Condition of each column, as numbers or names; None makes each column its own condition.
    library_sizes : "total" or array-like of shape (n_features,), default="total"
        Library sizes, such as normalization factors times totals; "total" uses the column totals.
    smoothing : float, default=0.1
        Pseudo-counts per column that are added to a cluster, distributed in proportion to the library sizes. They
        shrink all rates toward 1; 0 is maximum likelihood.
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
        Most probable cluster of each row; with CEM a cluster may have lost all its rows.
    weights_ : ndarray of shape (n_clusters,)
        Proportions of the clusters.
    rates_ : ndarray of shape (n_clusters, n_features)
        The rates lambda for the condition of each column; 1 is average, and a column of library size 0 has rate 0.
    profiles_ : ndarray of shape (n_clusters, n_features)
        Rates times library sizes; rows sum to one.
    library_sizes_ : ndarray of shape (n_features,)
        Library sizes, which sum to one.
    log_likelihood_ : float
        Log-likelihood, including factorials.
    bic_, icl_ : float
        Log-likelihood minus half the number of free rates and weights times log(n_samples), and that minus the entropy
        of the assignments. Row levels and library sizes are treated as known. Larger is better.
    history_ : ndarray of shape (n_iter_,)
        Objective plus log-prior (up to a constant) after each iteration of the best start, never decreasing.
    n_iter_ : int
        Number of iterations of the best start.
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

    _rules: ClassVar = {**EM_RULES, "algorithm": one_of("em", "cem"), "smoothing": real(0)}

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
