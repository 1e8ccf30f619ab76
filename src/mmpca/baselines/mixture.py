"""What the mixtures fitted by EM share: restarts, the choice among them, criteria, prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln, logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import Array, CountClusterer, Labels, child_seeds
from mmpca.baselines.checks import NOT_NEGATIVE, SEARCH_RULES, one_of
from mmpca.baselines.em import EMRun, Mixture, ProfileStep, annealed_partition, joint_log_density, run_em
from mmpca.baselines.starts import kmeans_partitions, random_partition
from mmpca.counts import Counts

EM_RULES = {**SEARCH_RULES, "start": one_of("kmeans", "anneal", "random"), "tol": NOT_NEGATIVE}


class EMClusterer(CountClusterer):
    """A mixture of profiles: a class says how profiles are estimated, what they cost, and the rows' constants."""

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
        """Return how profiles are estimated, fresh for a start."""

    @abstractmethod
    def _n_parameters(self, rows: Counts) -> int:
        """Return the number of free parameters."""

    @abstractmethod
    def _constants(self, rows: Counts) -> Array:
        """Return the part of each row's log density that no cluster changes, shape (n_rows,)."""

    def _is_hard(self) -> bool:
        return False

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        csr = rows.to_csr().astype(np.float64)
        seeds = child_seeds(rng, self.n_init)
        partitions = self._partitions(rows, seeds)
        runs = (self._run(csr, labels, self._step(rows, seed)) for labels, seed in zip(partitions, seeds, strict=True))
        best = max(runs, key=lambda run: run.history[-1])
        self._keep(best, rows)

    def _partitions(self, rows: Counts, seeds: list[int]) -> Iterator[Labels]:
        """Yield what each start begins with."""
        if self.start == "kmeans":
            return kmeans_partitions(rows, self.n_clusters, seeds)
        return (random_partition(rows.n_rows, self.n_clusters, seed) for seed in seeds)

    def _run(self, csr: sparse.csr_array, labels: Labels, step: ProfileStep) -> EMRun:
        """Return a run of EM or CEM from a partition, annealed first where asked for."""
        if self.start == "anneal":
            labels = annealed_partition(csr, labels, self.n_clusters, step)
        return run_em(csr, labels, self.n_clusters, step, is_hard=self._is_hard(), max_iter=self.max_iter, tol=self.tol)

    def _keep(self, run: EMRun, rows: Counts) -> None:
        """Set the attributes to the results of a run."""
        constant = float(self._constants(rows).sum())
        self.weights_, self.profiles_ = run.mixture
        self.labels_ = run.joint.argmax(axis=1)
        self.history_ = np.array(run.history) + constant
        self.n_iter_, self.converged_ = len(run.history), run.converged
        per_row = logsumexp(run.joint, axis=1)
        self.log_likelihood_ = float(per_row.sum()) + constant
        # -sum r log r with log r = joint - per_row, which takes r = 0.
        entropy = float(per_row.sum() - np.sum(softmax(run.joint, axis=1) * run.joint))
        self.bic_ = self.log_likelihood_ - self._n_parameters(rows) / 2 * np.log(rows.n_rows)
        self.icl_ = self.bic_ - entropy

    def predict(self, X: Any) -> Labels:
        """Return the most probable cluster of each row, shape (n_samples,).

        Features that never occurred in fitting are passed over.
        """
        labels: Labels = self._joint(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row, shape (n_samples, n_clusters), sums one."""
        probabilities: Array = softmax(self._joint(X), axis=1)
        return probabilities

    def _joint(self, X: Any) -> Array:
        """Return the log of weight times density of rows, without their constants, (N, Q)."""
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        return joint_log_density(rows.to_csr().astype(np.float64), Mixture(self.weights_, self.profiles_))


def log_factorials(rows: Counts) -> Array:
    """Return sum_v log(x_iv!) of each row, shape (n_rows,)."""
    csr = rows.to_csr()
    logs = sparse.csr_array((gammaln(csr.data + 1.0), csr.indices, csr.indptr), shape=csr.shape)
    totals: Array = logs.sum(axis=1)
    return totals


def log_multinomial_coefficients(rows: Counts) -> Array:
    """Return log(L_i! / prod_v x_iv!) of each row, shape (n_rows,)."""
    coefficients: Array = gammaln(rows.row_totals() + 1.0) - log_factorials(rows)
    return coefficients
