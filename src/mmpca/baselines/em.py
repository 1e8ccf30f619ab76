"""EM for mixtures in which a cluster is a profile over the features: one loop for all of them.

The density of row `i` in cluster `q` is `exp(constant_i + sum_v x_iv log p_qv)` for the multinomial mixture, for the
Poisson mixture with fixed row levels, and for the mixture with low-rank profiles: they differ in how profiles `p` are
estimated from sums of rows, and that is a `ProfileStep`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from mmpca.baselines.base import Array, Labels

# Of annealing, for rows of some hundred counts; from 32 or 64 it ends lower on simulated data.
TEMPERATURES = (8.0, 4.0, 2.0)
_ITERATIONS_PER_TEMPERATURE = 20

# Zero in logarithms: finite, so that a count times it is no NaN, and far below anything that matters.
TINY = float(np.finfo(np.float64).tiny)


class ProfileStep(Protocol):
    """How profiles are estimated from the sums of rows; may keep what it needs from one step to the next."""

    def estimate(self, sums: Array) -> Array:
        """Return profiles that do not lower `sum(sums * log(profiles)) + penalty(profiles)`.

        sums: (Q, V) -> (Q, V); rows sum to one, a feature that never occurs has probability zero.
        """
        ...

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        ...


class Mixture(NamedTuple):
    """Parameters of a mixture.

    Attributes
    ----------
    weights : ndarray of shape (n_clusters,)
        Shares of the clusters.
    profiles : ndarray of shape (n_clusters, n_features)
        Probabilities of the features in each cluster.
    """

    weights: Array
    profiles: Array


class EMRun(NamedTuple):
    """What a run of EM ends with.

    Attributes
    ----------
    mixture : Mixture
        The parameters.
    step : ProfileStep
        What estimated the profiles, with its last state.
    joint : ndarray of shape (n_rows, n_clusters)
        Log of weight times density under the parameters, without the rows' constants.
    history : list of float
        What EM maximises, after each iteration, without the rows' constants; never decreasing.
    converged : bool
        Whether the last iteration gained less than the tolerance.
    """

    mixture: Mixture
    step: ProfileStep
    joint: Array
    history: list[float]
    converged: bool


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
    """Maximise the likelihood by EM from a partition, or the classification likelihood by CEM if `is_hard`.

    Parameters
    ----------
    csr : csr_array of float64, shape (n_rows, n_features)
        The counts.
    labels : ndarray of shape (n_rows,)
        Partition to start from.
    n_clusters : int
        Number of clusters.
    step : ProfileStep
        How profiles are estimated.
    is_hard : bool, default=False
        Whether each row is put into its most probable cluster between the steps.
    max_iter : int
        Most iterations.
    tol : float
        The run ends when an iteration gains less than this for each row, in nats.

    Returns
    -------
    EMRun
    """
    responsibilities = np.eye(n_clusters)[labels]  # (N, Q)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        mixture = _estimate(csr, responsibilities, step)
        joint = joint_log_density(csr, mixture)
        per_row = joint.max(axis=1) if is_hard else logsumexp(joint, axis=1)
        responsibilities = np.eye(n_clusters)[joint.argmax(axis=1)] if is_hard else np.exp(joint - per_row[:, None])
        history.append(float(per_row.sum()) + step.penalty(log_profiles(mixture.profiles)))
        converged = len(history) > 1 and history[-1] - history[-2] <= tol * len(labels)
    return EMRun(mixture, step, joint, history, converged)


def annealed_partition(csr: sparse.csr_array, labels: Labels, n_clusters: int, step: ProfileStep) -> Labels:
    """Return the labels that EM comes to when its log densities are divided by temperatures that fall.

    Soft assignments at first keep the labels that it starts from from deciding; csr: (N, V), labels: (N,) -> (N,).
    """
    responsibilities = np.eye(n_clusters)[labels]  # (N, Q)
    for temperature in TEMPERATURES:
        for _ in range(_ITERATIONS_PER_TEMPERATURE):
            mixture = _estimate(csr, responsibilities, step)
            responsibilities = softmax(joint_log_density(csr, mixture) / temperature, axis=1)
    annealed: Labels = responsibilities.argmax(axis=1)
    return annealed


def _estimate(csr: sparse.csr_array, responsibilities: Array, step: ProfileStep) -> Mixture:
    """Return the parameters of the M-step; csr: (N, V), responsibilities: (N, Q)."""
    sums = np.ascontiguousarray((csr.T @ responsibilities).T)  # (Q, V)
    return Mixture(responsibilities.mean(axis=0), step.estimate(sums))


def joint_log_density(csr: sparse.csr_array, mixture: Mixture) -> Array:
    """Return the log of weight times density without the rows' constants, csr: (N, V) -> (N, Q)."""
    joint: Array = csr @ log_profiles(mixture.profiles).T + np.log(np.maximum(mixture.weights, TINY))
    return joint


def log_profiles(profiles: Array) -> Array:
    """Return logarithms, (Q, V), that are zero for a feature that no cluster has: new rows may have it."""
    is_absent = profiles.sum(axis=0) == 0
    return np.where(is_absent, 0.0, np.log(np.maximum(profiles, TINY)))
