"""New rows under a fitted mixture; its parameters are plain arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from mmpca.counts import Counts

Array = NDArray[np.float64]


def log_profiles(topics: Array, cluster_topics: Array) -> Array:
    """Return log (theta_q beta)_v, shape (Q, V); zero for features that no topic knows, which thereby say nothing."""
    profiles = cluster_topics @ topics
    logs: Array = np.log(profiles, out=np.zeros_like(profiles), where=profiles > 0)
    return logs


def joint_log_likelihood(rows: Counts, topics: Array, cluster_topics: Array, weights: Array) -> Array:
    """Return log pi_q + sum_v x_iv log (theta_q beta)_v, shape (N, Q).

    Multinomial coefficients, which no cluster changes, are left out, and so are features that no topic knows.
    """
    table = np.ascontiguousarray(log_profiles(topics, cluster_topics).T)  # (V, Q)
    scores: Array = rows.to_csr() @ table + np.log(weights)
    return scores


def posterior(joint: Array) -> Array:
    """Return the probability of each cluster given the row, (N, Q)."""
    probabilities: Array = softmax(joint, axis=1)
    return probabilities


def mean_log_likelihood(joint: Array) -> float:
    """Return the mean over the rows of log sum_q exp(joint)."""
    return float(np.mean(logsumexp(joint, axis=1)))
