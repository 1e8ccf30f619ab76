"""Mixtures fitted by EM in which each cluster is a profile over the features.

The density of row `i` in cluster `q` is ``exp(constant_i + sum_v x_iv log p_qv)`` for the multinomial mixture, for the
Poisson mixture with fixed row levels, and for NMF-EM, whose profiles share topics. They differ only in how the profiles
`p` are estimated from sums of rows, which is the job of a `ProfileStep`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import gammaln, logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import (
    SEARCH_RULES,
    Array,
    Labels,
    MixtureClusterer,
    RandomState,
    child_seeds,
    kmeans_partitions,
    proportions_partition,
    random_partition,
)
from mmpca.counts import Counts
from mmpca.parameters import integer, one_of, real

EM_RULES = {**SEARCH_RULES, "start": one_of("kmeans", "proportions", "anneal", "random"), "tol": real(0)}

# Annealing from 32 or 64 ends at lower likelihoods on simulated rows of a few hundred counts.
TEMPERATURES = (8.0, 4.0, 2.0)
_ITERATIONS_PER_TEMPERATURE = 20

# Replaces the logarithm of zero: finite, so that its product with a zero count is not NaN.
TINY = float(np.finfo(np.float64).tiny)


class ProfileStep(Protocol):
    """The M-step for profiles; may keep state from one step to the next."""

    def estimate(self, sums: Array) -> Array:
        """Return profiles that do not lower `sum(sums * log(profiles)) + penalty(profiles)`.

        sums: (Q, V) -> (Q, V); rows sum to one, a feature that never occurs has probability zero.
        """
        ...

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        ...


class EMRun(NamedTuple):
    """The end of a run of EM; densities and objective are without the rows' constants."""

    weights: Array  # (Q,)
    profiles: Array  # (Q, V)
    step: ProfileStep  # with its last state
    joint: Array  # log of weight times density, (N, Q)
    history: list[float]  # objective after each iteration, never decreasing
    converged: bool  # the last iteration gained less than the tolerance


def run_em(
    csr: sparse.csr_array,
    labels: Labels,
    n_clusters: int,
    step: ProfileStep,
    *,
    is_hard: bool = False,
    max_iter: int,
    tol: float,
) -> EMRun:
    """Run EM from a partition until an iteration gains less than `tol` nats per row.

    If `is_hard`, run classification EM: each row is assigned to its most probable cluster between the steps, which
    maximizes the classification likelihood. csr: (N, V), labels: (N,).
    """
    responsibilities = np.eye(n_clusters)[labels]  # (N, Q)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        weights, profiles = _estimate(csr, responsibilities, step)
        joint = joint_log_density(csr, weights, profiles)
        per_row = joint.max(axis=1) if is_hard else logsumexp(joint, axis=1)
        responsibilities = np.eye(n_clusters)[joint.argmax(axis=1)] if is_hard else np.exp(joint - per_row[:, None])
        # With the log-prior: the M-step maximizes the posterior, so the likelihood alone could decrease.
        history.append(float(per_row.sum()) + step.penalty(log_profiles(profiles)))
        converged = len(history) > 1 and history[-1] - history[-2] <= tol * len(labels)
    return EMRun(weights, profiles, step, joint, history, converged)


def annealed_partition(csr: sparse.csr_array, labels: Labels, n_clusters: int, step: ProfileStep) -> Labels:
    """Return the labels that EM finds when log densities are divided by falling temperatures.

    The soft assignments of the first iterations make the result nearly independent of the labels it starts from.
    csr: (N, V), labels: (N,) -> (N,).
    """
    responsibilities = np.eye(n_clusters)[labels]  # (N, Q)
    for temperature in TEMPERATURES:
        for _ in range(_ITERATIONS_PER_TEMPERATURE):
            joint = joint_log_density(csr, *_estimate(csr, responsibilities, step))
            responsibilities = softmax(joint / temperature, axis=1)
    annealed: Labels = responsibilities.argmax(axis=1)
    return annealed


def _estimate(csr: sparse.csr_array, responsibilities: Array, step: ProfileStep) -> tuple[Array, Array]:
    """Return the weights and profiles of the M-step; csr: (N, V), responsibilities: (N, Q) -> (Q,), (Q, V)."""
    sums = np.ascontiguousarray((csr.T @ responsibilities).T)  # (Q, V)
    return responsibilities.mean(axis=0), step.estimate(sums)


def joint_log_density(csr: sparse.csr_array, weights: Array, profiles: Array) -> Array:
    """Return the log of weight times density without the rows' constants; csr: (N, V) -> (N, Q)."""
    joint: Array = csr @ log_profiles(profiles).T + np.log(np.maximum(weights, TINY))
    return joint


def log_profiles(profiles: Array) -> Array:
    """Return log probabilities, (Q, V); zero for a feature that no cluster has, so that new rows may contain it."""
    is_absent = profiles.sum(axis=0) == 0
    return np.where(is_absent, 0.0, np.log(np.maximum(profiles, TINY)))


def log_factorials(rows: Counts) -> Array:
    """Return sum_v log(x_iv!) for each row, shape (n_rows,)."""
    csr = rows.to_csr()
    logs = sparse.csr_array((gammaln(csr.data + 1.0), csr.indices, csr.indptr), shape=csr.shape)
    totals: Array = logs.sum(axis=1)
    return totals


def log_multinomial_coefficients(rows: Counts) -> Array:
    """Return log(L_i! / prod_v x_iv!) for each row, shape (n_rows,)."""
    coefficients: Array = gammaln(rows.row_totals() + 1.0) - log_factorials(rows)
    return coefficients


class Criteria(NamedTuple):
    """Log-likelihood, BIC and ICL; larger is better."""

    log_likelihood: float
    bic: float
    icl: float


def criteria(joint: Array, constant: float, n_parameters: int) -> Criteria:
    """Return the criteria of a mixture, given the log of weight times density (N, Q) and the sum of its constants."""
    per_row = logsumexp(joint, axis=1)
    log_likelihood = float(per_row.sum()) + constant
    # -sum r log r with log r = joint - per_row, which also holds for r = 0.
    entropy = float(per_row.sum() - np.sum(softmax(joint, axis=1) * joint))
    bic = float(log_likelihood - n_parameters / 2 * np.log(len(joint)))
    return Criteria(log_likelihood, bic, bic - entropy)


class EMClusterer(MixtureClusterer):
    """A mixture of profiles; subclasses define the M-step, the number of parameters and the rows' constants."""

    n_clusters: int
    start: str
    n_init: int
    max_iter: int
    tol: float
    weights_: Array
    profiles_: Array
    history_: Array

    @abstractmethod
    def _step(self, rows: Counts, seed: int) -> ProfileStep:
        """Return a new M-step for one start."""

    @abstractmethod
    def _n_parameters(self, rows: Counts) -> int:
        """Return the number of free parameters."""

    def _constants(self, rows: Counts) -> Array:
        """Return the part of each row's log density that does not depend on the cluster, shape (n_rows,)."""
        return log_multinomial_coefficients(rows)

    def _is_hard(self) -> bool:
        return False

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        runs = self._runs(rows, child_seeds(rng, self.n_init))
        self._keep(max(runs, key=lambda run: run.history[-1]), rows)

    def _runs(self, rows: Counts, seeds: list[int]) -> Iterator[EMRun]:
        """Yield a run of EM for each seed; the partition it starts from depends on `start`."""
        csr, n_clusters = rows.to_csr().astype(np.float64), self.n_clusters
        if self.start == "kmeans":
            partitions = kmeans_partitions(rows, n_clusters, seeds)
        elif self.start == "proportions":
            partitions = (proportions_partition(rows, n_clusters, seed) for seed in seeds)
        else:
            partitions = (random_partition(rows.n_rows, n_clusters, seed) for seed in seeds)
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        for labels, seed in zip(partitions, seeds, strict=True):
            step = self._step(rows, seed)
            start = annealed_partition(csr, labels, n_clusters, step) if self.start == "anneal" else labels
            yield run_em(csr, start, n_clusters, step, is_hard=self._is_hard(), **limits)

    def _keep(self, run: EMRun, rows: Counts) -> None:
        """Set the fitted attributes to the results of a run."""
        constant = float(self._constants(rows).sum())
        self.weights_, self.profiles_ = run.weights, run.profiles
        self.labels_ = run.joint.argmax(axis=1)
        self.history_ = np.array(run.history) + constant
        self.n_iter_, self.converged_ = len(run.history), run.converged
        self.log_likelihood_, self.bic_, self.icl_ = criteria(run.joint, constant, self._n_parameters(rows))

    def _joint(self, X: Any) -> Array:
        """Return the log of weight times density of rows, without their constants, (N, Q)."""
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        return joint_log_density(rows.to_csr().astype(np.float64), self.weights_, self.profiles_)


# --- free profiles ----------------------------------------------------------------------------------------------


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
    start : {"kmeans", "proportions", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf, k-means on the rows' proportions from random
        centers, EM at falling temperatures, or random partitions. Annealing reaches higher likelihoods, but on noisy
        simulated data, where profiles have more parameters than the counts can determine, its solutions are farther
        from the truth.
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


# --- profiles that share topics ---------------------------------------------------------------------------------


# The first M-step starts from random topics and needs this many times as many updates as the others.
_FIRST_UPDATES = 20


class SharedTopics:
    """M-step for profiles that mix common topics, `profiles = theta @ beta`, by multiplicative updates.

    It starts from random theta (Q, K) and beta (K, V); `is_present` (V,) marks the features that occur.
    """

    def __init__(
        self, n_clusters: int, n_topics: int, is_present: NDArray[np.bool_], *, n_updates: int, seed: int
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
    start : {"kmeans", "proportions", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf, k-means on the rows' proportions from random
        centers, EM at falling temperatures, or random partitions. The first two do equally well on simulated data.
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
        return SharedTopics(self.n_clusters, self.n_topics, is_present, n_updates=self.n_updates, seed=seed)

    def _keep(self, run: EMRun, rows: Counts) -> None:
        super()._keep(run, rows)
        assert isinstance(run.step, SharedTopics)
        self.cluster_topics_, self.components_ = run.step.theta, run.step.beta

    def _n_parameters(self, rows: Counts) -> int:
        n_present = int(np.count_nonzero(rows.column_totals()))
        return self.n_clusters * (self.n_topics - 1) + self.n_topics * (n_present - 1) + self.n_clusters - 1


# --- profiles of conditions -------------------------------------------------------------------------------------


class ConditionProfiles(FreeProfiles):
    """M-step for profiles in which the columns of a condition differ only by their library sizes.

    conditions: (V,), numbered from 0 without gaps; sizes: (V,), sum to one, positive for a column with counts.
    """

    def __init__(self, conditions: NDArray[np.intp], sizes: Array, smoothing: float) -> None:
        super().__init__(smoothing * sizes.size * sizes)
        shape = sizes.size, int(conditions.max()) + 1
        self.members = sparse.csr_array((np.ones(sizes.size), (np.arange(sizes.size), conditions)), shape=shape)
        self.conditions = conditions
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
    start : {"kmeans", "proportions", "anneal", "random"}, default="kmeans"
        k-means in the space of the leading singular vectors of tf-idf, k-means on the rows' proportions from random
        centers, EM at falling temperatures, or random partitions. Annealing reaches higher likelihoods, but on noisy
        simulated data, where profiles have more parameters than the counts can determine, its solutions are farther
        from the truth.
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
