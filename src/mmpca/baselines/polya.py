"""Mixture of Dirichlet-multinomials (Polya distributions): each row has a profile of its own.

The log density of row `i` in cluster `q` is, up to the row's multinomial coefficient,

    sum_v [log Gamma(alpha_qv + x_iv) - log Gamma(alpha_qv)]  -  [log Gamma(A_q + L_i) - log Gamma(A_q)]

with A_q the sum of alpha_q. Entries with the same feature and count contribute the same term, and real counts repeat
them often, so EM works on the distinct pairs of feature and count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, logsumexp, polygamma, psi
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import (
    SEARCH_RULES,
    Array,
    Labels,
    MixtureClusterer,
    RandomState,
    child_seeds,
    hellinger_partition,
    kmeans_partitions,
    random_partition,
)
from mmpca.baselines.mixtures import TINY, criteria, log_multinomial_coefficients
from mmpca.counts import Counts
from mmpca.parameters import one_of, real

_STARTS = ("kmeans", "hellinger", "random")

# The first M-step, from a partition, is repeated until it converges: a rough one can lose a good partition.
_MOST_FIRST_STEPS = 50

# Largest change of log(alpha) in a Newton step.
_LARGEST_STEP = 2.0


class Pairs(NamedTuple):
    """Rows, described by their distinct pairs of feature and count, and by their distinct totals."""

    has_pair: sparse.csr_array  # 1 where a row has a pair, (N, n_pairs)
    has_total: sparse.csr_array  # 1 where a row has a total, (N, n_totals)
    is_of: sparse.csr_array  # 1 where a pair is of a feature, (V, n_pairs)
    features: NDArray[np.intp]  # of the pairs, (n_pairs,)
    counts: Array  # of the pairs, (n_pairs, 1)
    totals: Array  # the distinct totals, (n_totals, 1)


def as_pairs(csr: sparse.csr_array) -> Pairs:
    """Return rows of counts as pairs; csr: (N, V)."""
    n_rows, n_features = csr.shape
    codes, of_entry = np.unique(csr.indices + n_features * csr.data.astype(np.int64), return_inverse=True)
    counts, features = np.divmod(codes, n_features)
    totals, of_row = np.unique(csr.sum(axis=1), return_inverse=True)
    return Pairs(
        sparse.csr_array((np.ones(csr.nnz), of_entry, csr.indptr), shape=(n_rows, codes.size)),
        sparse.csr_array((np.ones(n_rows), of_row, np.arange(n_rows + 1)), shape=(n_rows, totals.size)),
        sparse.csr_array((np.ones(codes.size), (features, np.arange(codes.size))), shape=(n_features, codes.size)),
        features,
        counts[:, None].astype(np.float64),
        totals[:, None].astype(np.float64),
    )


def joint_log_density(pairs: Pairs, weights: Array, alphas: Array) -> Array:
    """Return the log of weight times density without multinomial coefficients.

    weights: (Q,), alphas: (V, Q) -> (N, Q).
    """
    of_pairs = log_rising(alphas[pairs.features], pairs.counts)  # (n_pairs, Q)
    of_totals = log_rising(alphas.sum(axis=0), pairs.totals)  # (n_totals, Q)
    joint: Array = pairs.has_pair @ of_pairs - pairs.has_total @ of_totals + np.log(np.maximum(weights, TINY))
    return joint


def log_rising(a: Array, n: Array) -> Array:
    """Return log(a (a + 1) ... (a + n - 1)), the logarithm of the rising factorial."""
    result: Array = gammaln(a + n) - gammaln(a)
    return result


class AlphaStep:
    """M-step for the parameters of the clusters, under a Gamma(1 + smoothing, rate) prior on each of them."""

    def __init__(self, pairs: Pairs, smoothing: float, rate: float) -> None:
        self.pairs, self.smoothing, self.rate = pairs, smoothing, rate

    def expected(self, responsibilities: Array) -> tuple[Array, Array]:
        """Return the expected number of rows of each cluster with each pair, (n_pairs, Q), and total, (n_totals, Q)."""
        return self.pairs.has_pair.T @ responsibilities, self.pairs.has_total.T @ responsibilities

    def first(self, responsibilities: Array, tol: float) -> Array:
        """Return the parameters of a partition, after steps until one gains at most `tol` per row; (N, Q) -> (V, Q)."""
        of_pairs, of_totals = self.expected(responsibilities)
        sums = self.pairs.is_of @ (self.pairs.counts * of_pairs) + self.smoothing  # (V, Q)
        # From a small concentration, Newton steps rise fast; from a large one, they fall slowly.
        alphas: Array = min(len(sums), float(self.pairs.totals.min())) * sums / sums.sum(axis=0)
        before = -np.inf
        for _ in range(_MOST_FIRST_STEPS):
            alphas = self.improve(alphas, of_pairs, of_totals)
            after = float(self.objective(alphas, of_pairs, of_totals).sum())
            if after - before <= tol * len(responsibilities):
                break
            before = after
        return alphas

    def improve(self, alphas: Array, of_pairs: Array, of_totals: Array) -> Array:
        """Return parameters that do not lower the objective of any cluster; alphas: (V, Q) -> (V, Q).

        A cluster takes a Newton step in log(alpha) if that raises its objective. If not, it takes the fixed point of a
        minorizing function, which never lowers it.
        """
        step, fixed_point = self._proposals(alphas, of_pairs, of_totals)
        proposed = alphas * np.exp(step)
        before, after = (self.objective(values, of_pairs, of_totals) for values in (alphas, proposed))
        return np.where(after > before, proposed, fixed_point)

    def objective(self, alphas: Array, of_pairs: Array, of_totals: Array) -> Array:
        """Return the expected log density of the rows of each cluster plus the log-prior, (Q,)."""
        value: Array = np.sum(of_pairs * log_rising(alphas[self.pairs.features], self.pairs.counts), axis=0)
        value -= np.sum(of_totals * log_rising(alphas.sum(axis=0), self.pairs.totals), axis=0)
        return value + self.log_prior(alphas)

    def log_prior(self, alphas: Array) -> Array:
        """Return the log density of the prior of each cluster's parameters, up to a constant, (Q,)."""
        value: Array = np.sum(self.smoothing * np.log(alphas) - self.rate * alphas, axis=0)
        return value

    def _proposals(self, alphas: Array, of_pairs: Array, of_totals: Array) -> tuple[Array, Array]:
        """Return the Newton step in log(alpha) and the fixed point, both (V, Q).

        With F the sum of differences of digammas over pairs and G that over totals, the gradient in log(alpha) is
        alpha (F - G - rate) + smoothing, and the fixed point is (alpha F + smoothing) / (G + rate). The Hessian is
        diagonal plus z alpha alpha', so it is inverted by the Sherman-Morrison formula.
        """
        pairs, total = self.pairs, alphas.sum(axis=0)  # (Q,)
        at = alphas[pairs.features]  # (n_pairs, Q)
        F = pairs.is_of @ (of_pairs * (psi(at + pairs.counts) - psi(at)))  # (V, Q)
        dF = pairs.is_of @ (of_pairs * (polygamma(1, at + pairs.counts) - polygamma(1, at)))
        G = np.sum(of_totals * (psi(total + pairs.totals) - psi(total)), axis=0)  # (Q,)
        z = -np.sum(of_totals * (polygamma(1, total + pairs.totals) - polygamma(1, total)), axis=0)
        gradient = alphas * (F - G - self.rate) + self.smoothing
        # The negative diagonal. The objective is not concave: where the diagonal has the wrong sign, only its concave
        # part is used.
        concave = alphas * (G + self.rate)
        curvature = concave - alphas * F - alphas**2 * dF
        curvature = np.where(curvature > 0, curvature, concave)
        plain, common = gradient / curvature, alphas / curvature
        divisor = 1 - z * np.sum(alphas * common, axis=0)
        share = np.where(divisor > 0, z / np.where(divisor > 0, divisor, 1.0), 0.0)
        step = plain + common * share * np.sum(alphas * plain, axis=0)
        fixed_point = (alphas * F + self.smoothing) / (G + self.rate)
        return np.clip(step, -_LARGEST_STEP, _LARGEST_STEP), fixed_point


class PolyaRun(NamedTuple):
    """The end of a run of EM; densities and objective are without multinomial coefficients."""

    weights: Array  # (Q,)
    alphas: Array  # (V, Q)
    joint: Array  # log of weight times density, (N, Q)
    history: list[float]  # objective after each iteration, never decreasing
    converged: bool  # the last iteration gained less than the tolerance


def run_em(pairs: Pairs, labels: Labels, n_clusters: int, step: AlphaStep, *, max_iter: int, tol: float) -> PolyaRun:
    """Run EM from a partition until an iteration gains less than `tol` nats per row; labels: (N,)."""
    responsibilities = np.eye(n_clusters)[labels]  # (N, Q)
    alphas = step.first(responsibilities, tol)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        alphas = step.improve(alphas, *step.expected(responsibilities))
        weights = responsibilities.mean(axis=0)
        joint = joint_log_density(pairs, weights, alphas)
        per_row = logsumexp(joint, axis=1)
        responsibilities = np.exp(joint - per_row[:, None])
        # With the log-prior: the M-step raises the posterior, so the likelihood alone could decrease.
        history.append(float(per_row.sum() + step.log_prior(alphas).sum()))
        converged = len(history) > 1 and history[-1] - history[-2] <= tol * len(labels)
    return PolyaRun(weights, alphas, joint, history, converged)


class PolyaMixture(MixtureClusterer):
    r"""Mixture of Dirichlet-multinomials (Polya distributions): each row draws a profile of its own.

    .. math::
        x_i \mid p_i \sim \mathrm{Multinomial}(L_i, p_i), \qquad p_i \mid y_i = q \sim \mathrm{Dirichlet}(\alpha_q)

    The profiles of the rows are integrated out. A cluster has a mean profile and a concentration, the sum of
    :math:`\alpha_q`: the smaller it is, the more its rows differ from each other. EM maximizes the posterior of
    weights and parameters under independent Gamma priors on the parameters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    smoothing : float, default=0.1
        The prior on each parameter is Gamma(1 + smoothing, rate). It keeps parameters of features that do not occur in
        a cluster above zero.
    rate : float, default=0.01
        Rate of that prior. It keeps concentrations finite if rows vary no more than multinomial counts.
    start : {"auto", "kmeans", "hellinger", "random"}, default="auto"
        k-means in the space of the leading singular vectors of tf-idf, k-means on square roots of the rows' shares
        (Hellinger distance), random partitions, or these three in turn.
    n_init : int, default=10
        Number of starts; the one with the best objective is kept.
    max_iter : int, default=200
        Maximum number of iterations per start.
    tol : float, default=1e-4
        A start ends when an iteration raises the objective by less than this per row.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Proportions of the clusters.
    alphas_ : ndarray of shape (n_clusters, n_features)
        Parameters of the Dirichlet distributions; zero for a feature that never occurs.
    profiles_ : ndarray of shape (n_clusters, n_features)
        Mean profiles of the clusters: the parameters divided by their sums.
    concentrations_ : ndarray of shape (n_clusters,)
        Sums of the parameters.
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
    I. Holmes, K. Harris and C. Quince, "Dirichlet multinomial mixtures: generative models for microbial metagenomics",
    PLoS ONE 7(2): e30126, 2012; T. P. Minka, "Estimating a Dirichlet distribution", technical report, 2000 (the fixed
    point and the Newton step).

    Examples
    --------
    >>> from mmpca.baselines import PolyaMixture
    >>> X = [[9, 1, 0, 0], [80, 20, 0, 10], [7, 4, 0, 0], [0, 1, 7, 3], [1, 0, 9, 4], [0, 0, 30, 60]]
    >>> model = PolyaMixture(2, random_state=0).fit(X)
    >>> [bool(label == model.labels_[0]) for label in model.labels_]
    [True, True, True, False, False, False]
    """

    weights_: Array
    alphas_: Array
    profiles_: Array
    concentrations_: Array
    history_: Array

    _rules: ClassVar = {
        **SEARCH_RULES,
        "smoothing": real(1e-6),
        "rate": real(1e-6),
        "start": one_of("auto", *_STARTS),
        "tol": real(0),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        smoothing: float = 0.1,
        rate: float = 0.01,
        start: str = "auto",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.smoothing = smoothing
        self.rate = rate
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        # A feature that never occurs carries no information, but its parameter would count in the concentration.
        present = np.flatnonzero(rows.column_totals())
        pairs = as_pairs(rows.to_csr()[:, present])
        step = AlphaStep(pairs, float(self.smoothing), float(self.rate))
        runs = (
            run_em(pairs, labels, self.n_clusters, step, max_iter=self.max_iter, tol=self.tol)
            for labels in self._partitions(rows, child_seeds(rng, self.n_init))
        )
        best = max(runs, key=lambda run: run.history[-1])

        constant = float(log_multinomial_coefficients(rows).sum())
        self.weights_, self.labels_ = best.weights, best.joint.argmax(axis=1)
        self.alphas_ = np.zeros((self.n_clusters, rows.n_features))
        self.alphas_[:, present] = best.alphas.T
        self.concentrations_ = self.alphas_.sum(axis=1)
        self.profiles_ = self.alphas_ / self.concentrations_[:, None]
        self.history_ = np.array(best.history) + constant
        self.n_iter_, self.converged_ = len(best.history), best.converged
        n_parameters = self.n_clusters * present.size + self.n_clusters - 1
        self.log_likelihood_, self.bic_, self.icl_ = criteria(best.joint, constant, n_parameters)

    def _partitions(self, rows: Counts, seeds: list[int]) -> Iterator[Labels]:
        """Yield a partition to start from for each seed."""
        kinds = cycle(_STARTS if self.start == "auto" else [self.start])
        for kind, seed in zip(kinds, seeds, strict=False):
            if kind == "kmeans":
                yield from kmeans_partitions(rows, self.n_clusters, [seed])
            elif kind == "hellinger":
                yield hellinger_partition(rows, self.n_clusters, seed)
            else:
                yield random_partition(rows.n_rows, self.n_clusters, seed)

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        present = np.flatnonzero(self.alphas_[0])
        pairs = as_pairs(self._counts(X, reset=False).to_csr()[:, present])
        return joint_log_density(pairs, self.weights_, np.ascontiguousarray(self.alphas_[:, present].T))
