"""Mixtures fitted by EM in which each cluster is a profile over the features.

The density of row `i` in cluster `q` is ``exp(constant_i + sum_v x_iv log p_qv)`` for the multinomial mixture, for the
Poisson mixture with fixed row levels, and for the mixture with low-rank profiles. They differ only in how the profiles
`p` are estimated from sums of rows, which is the job of a `ProfileStep`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.special import gammaln, logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import (
    SEARCH_RULES,
    Array,
    CountClusterer,
    Labels,
    child_seeds,
    kmeans_partitions,
    random_partition,
)
from mmpca.counts import Counts
from mmpca.parameters import one_of, real

EM_RULES = {**SEARCH_RULES, "start": one_of("kmeans", "anneal", "random"), "tol": real(0)}

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


class EMClusterer(CountClusterer):
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
        csr = rows.to_csr().astype(np.float64)
        seeds = child_seeds(rng, self.n_init)
        partitions = self._partitions(rows, seeds)
        runs = (self._run(csr, labels, self._step(rows, seed)) for labels, seed in zip(partitions, seeds, strict=True))
        self._keep(max(runs, key=lambda run: run.history[-1]), rows)

    def _partitions(self, rows: Counts, seeds: list[int]) -> Iterator[Labels]:
        """Yield the partition that each start begins with."""
        if self.start == "kmeans":
            return kmeans_partitions(rows, self.n_clusters, seeds)
        return (random_partition(rows.n_rows, self.n_clusters, seed) for seed in seeds)

    def _run(self, csr: sparse.csr_array, labels: Labels, step: ProfileStep) -> EMRun:
        """Return a run of EM from a partition, annealed first if `start` asks for it."""
        if self.start == "anneal":
            labels = annealed_partition(csr, labels, self.n_clusters, step)
        return run_em(csr, labels, self.n_clusters, step, is_hard=self._is_hard(), max_iter=self.max_iter, tol=self.tol)

    def _keep(self, run: EMRun, rows: Counts) -> None:
        """Set the fitted attributes to the results of a run."""
        constant = float(self._constants(rows).sum())
        self.weights_, self.profiles_ = run.weights, run.profiles
        self.labels_ = run.joint.argmax(axis=1)
        self.history_ = np.array(run.history) + constant
        self.n_iter_, self.converged_ = len(run.history), run.converged
        per_row = logsumexp(run.joint, axis=1)
        self.log_likelihood_ = float(per_row.sum()) + constant
        # -sum r log r with log r = joint - per_row, which also holds for r = 0.
        entropy = float(per_row.sum() - np.sum(softmax(run.joint, axis=1) * run.joint))
        self.bic_ = self.log_likelihood_ - self._n_parameters(rows) / 2 * np.log(rows.n_rows)
        self.icl_ = self.bic_ - entropy

    def predict(self, X: Any) -> Labels:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts; features that never occurred in the fit are ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        labels: Labels = self._joint(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts; features that never occurred in the fit are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        probabilities: Array = softmax(self._joint(X), axis=1)
        return probabilities

    def _joint(self, X: Any) -> Array:
        """Return the log of weight times density of rows, without their constants, (N, Q)."""
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        return joint_log_density(rows.to_csr().astype(np.float64), self.weights_, self.profiles_)
