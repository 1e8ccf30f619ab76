"""New rows under a fitted mixture; its parameters are plain arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from mmpca.counts import Counts

Array = NDArray[np.float64]
ROWS_AT_ONCE = 20_000  # that are given a number for each cluster: those of all rows may take more than the counts
BEST = np.dtype([("cluster", np.int32), ("probability", np.float64)])


class Scores(NamedTuple):
    """What a row scores in each cluster: for each count of a feature, and for the size of the cluster."""

    of_features: Array  # log (theta_q beta)_v, (V, Q)
    of_clusters: Array  # log pi_q, (Q,)


def log_profiles(topics: Array, cluster_topics: Array) -> Array:
    """Return log (theta_q beta)_v, shape (Q, V); zero for features that no topic knows, which thereby say nothing."""
    profiles = cluster_topics @ topics
    logs: Array = np.log(profiles, out=np.zeros_like(profiles), where=profiles > 0)
    return logs


def scores_of(topics: Array, cluster_topics: Array, weights: Array) -> Scores:
    """Return the scores of a mixture."""
    return Scores(np.ascontiguousarray(log_profiles(topics, cluster_topics).T), np.log(weights))


def joint_log_likelihood(rows: Counts, topics: Array, cluster_topics: Array, weights: Array) -> Array:
    """Return log pi_q + sum_v x_iv log (theta_q beta)_v, shape (N, Q).

    Multinomial coefficients, which no cluster changes, are left out, and so are features that no topic knows.
    """
    return joint_of(rows, scores_of(topics, cluster_topics, weights))


def joint_of(rows: Counts, scores: Scores) -> Array:
    """Return the joint log-likelihood of rows and clusters, (N, Q)."""
    joint: Array = rows.to_csr() @ scores.of_features + scores.of_clusters
    return joint


def joint_in_pieces(rows: Counts, scores: Scores) -> Iterator[tuple[slice, Array]]:
    """Yield the joint log-likelihood of some rows after the others, with their places."""
    for first in range(0, rows.n_rows, ROWS_AT_ONCE):
        piece = slice(first, first + ROWS_AT_ONCE)
        yield piece, joint_of(rows.take(piece), scores)


def posterior(joint: Array) -> Array:
    """Return the probability of each cluster given the row, (N, Q)."""
    probabilities: Array = softmax(joint, axis=1)
    return probabilities


def best_of(probabilities: Array) -> NDArray[Any]:
    """Return the most probable cluster of each row and its probability, an array of `BEST`, (N,)."""
    best = np.empty(len(probabilities), dtype=BEST)
    best["cluster"], best["probability"] = probabilities.argmax(axis=1), probabilities.max(axis=1)
    return best


def own_of(probabilities: Array, labels: NDArray[np.int32]) -> Array:
    """Return the probability of each row's own cluster, (N,)."""
    own: Array = probabilities[np.arange(len(labels)), labels]
    return own


def mean_log_likelihood(joint: Array) -> float:
    """Return the mean over the rows of log sum_q exp(joint)."""
    return float(np.mean(logsumexp(joint, axis=1)))
