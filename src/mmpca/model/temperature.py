r"""Temperature: the number by which log-odds are divided to correct overconfident probabilities.

The model treats the counts of a row as independent. Real counts come in bursts, topic shares vary within clusters, and
the clusters themselves are uncertain, so its probabilities are too close to 0 and 1. Dividing all log-odds by one
number, the temperature T, corrects this and keeps the most probable cluster. T is the larger of two estimates, neither
of which needs known classes.

**Two halves of the features.** Divide the features at random, and cluster the same rows by each half. Let
:math:`a_i` and :math:`b_i` be the probabilities of row i in the two results, with clusters matched, and
:math:`\pi_q` their mean. If they are calibrated, and the halves of a row independent given its cluster, then

.. math:: E\, a_i b_i' = A\, diag(\pi)^{-1} B, \qquad A = E\, a_i a_i', \quad B = E\, b_i b_i'.

The trace on the left is the rate at which labels drawn from the two agree; that on the right is the rate to expect.
Overconfident probabilities promise more agreement than there is. T is the smallest temperature at which they do not.
With many rows, only a sample is clustered. If the sample is too small to find clusters in half of the features, both
halves are scored under the fitted clusters instead, which come from all rows.

**Shares that vary.** The two halves of a row have the same topic shares, so they agree even if these stray from the
cluster's. A likelihood in which each row has its own shares (:mod:`mmpca.engine.shares`) allows for this. Labels cut
off the rows that stray farthest, so clusters and concentration are estimated jointly, from soft assignments. At
temperature T, the most probable clusters have the same mean probability as under this likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mmpca import engine
from mmpca.backend import LocalRows, one_blas_thread
from mmpca.counts import Counts
from mmpca.model.choices import COMPARED_EPOCHS, Half, feature_halves, partition_agreement
from mmpca.model.prediction import (
    ClusterMixture,
    choose_smoothing,
    joint_log_likelihood,
    posterior,
    smoothed_topics,
)
from mmpca.model.starts import LARGE_TABLES, best_of, plan_starts, search_from_starts
from mmpca.topics import fit_lda

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

N_SPLITS = 3  # of the features; the result is the geometric mean
MIN_ROWS, ROWS_PER_CLUSTER, MAX_ROWS = 1000, 100, 5000  # in the sample of the fitted rows, if there are more
SHARE_ROWS_PER_CLUSTER = 20  # of these, for the second estimate: at least `MIN_ROWS` in all
LOST = 0.1  # a sample whose clusters share less than this part of the fitted clusters' information has found none
LARGEST = 2.0**20  # beyond which probabilities say nothing
BISECTIONS = 30


def n_sampled(n_rows: int, n_clusters: int) -> int:
    """Return the number of fitted rows from which the temperature is estimated."""
    return min(n_rows, max(MIN_ROWS, min(MAX_ROWS, ROWS_PER_CLUSTER * n_clusters)))


class Temperature:
    """A temperature that is estimated when first needed, because that may take as long as the fit.

    Parameters
    ----------
    rows : Counts of shape (n, V)
        Some of the fitted rows, in the units of the fit.
    labels : array of int, shape (n,)
    mixture : ClusterMixture
        The fitted mixture.
    seed : SeedSequence
    """

    def __init__(self, rows: Counts, labels: Labels, mixture: ClusterMixture, seed: np.random.SeedSequence) -> None:
        self._sample: tuple[Counts, Labels, ClusterMixture, np.random.SeedSequence] | None
        self._sample = (rows, labels, mixture, seed)
        self._value = 1.0

    @property
    def value(self) -> float:
        """The temperature, at least 1."""
        if self._sample is not None:
            rows, labels, mixture, seed = self._sample
            self._value = max(by_shares(rows, labels, mixture), by_halves(rows, mixture, seed))
            self._sample = None  # rows are kept no longer than needed
        return self._value


def by_shares(rows: Counts, labels: Labels, mixture: ClusterMixture) -> float:
    """Return the temperature at which rows are as sure of their clusters as if topic shares varied within clusters.

    Parameters
    ----------
    rows : Counts of shape (N, V)
        Fitted rows.
    labels : array of int, shape (N,)
    mixture : ClusterMixture
    """
    n_clusters = len(mixture.weights)
    if n_clusters < 2:
        return 1.0
    n_used = min(rows.n_rows, max(MIN_ROWS, SHARE_ROWS_PER_CLUSTER * n_clusters))
    some = np.linspace(0, rows.n_rows - 1, n_used).astype(int)
    rows, labels = rows.take(some), labels[some]
    with one_blas_thread():
        found = engine.fit_varying_shares(
            rows, labels, topics=mixture.topics, n_clusters=n_clusters, alpha=mixture.topic_prior
        )
        if not np.isfinite(found.concentration):
            return 1.0
        varying = mixture._replace(**found._asdict())
        if mixture.topic_params is not None:
            totals = mixture.topic_params.sum(axis=1, keepdims=True)
            varying = varying._replace(topic_params=totals * found.cluster_topics)
        joint = joint_log_likelihood(rows, mixture, labels)
        own = posterior(joint_log_likelihood(rows, varying, labels))[np.arange(rows.n_rows), joint.argmax(axis=1)]
    return _smallest(lambda T: own.mean() - posterior(joint, T).max(axis=1).mean())


def by_halves(rows: Counts, mixture: ClusterMixture, seed: np.random.SeedSequence) -> float:
    """Return the temperature at which two halves of the features agree as often as their probabilities promise.

    1 if there are too few rows or features to divide.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    mixture : ClusterMixture
        Says how many clusters and topics to find, and whether topic shares vary.
    seed : SeedSequence
        Divides the features.
    """
    if len(mixture.weights) < 2:
        return 1.0
    rng, row_prior, found = np.random.default_rng(seed), None, []
    with one_blas_thread():
        for _ in range(N_SPLITS):
            halves = feature_halves(rows, rng)
            if halves is None or halves[0].rows.n_rows < 2 * len(mixture.weights):
                break
            joints = []
            for half in halves:
                joint, row_prior = _joint_of_half(half.rows, mixture, rng, row_prior)  # the first prior suits all
                joints.append(joint)
            if mixture.sizes is not None and rows.n_rows < mixture.sizes.sum():
                fitted = [_joint_of_fit(half, mixture) for half in halves]
                joints = fitted if _information(joints) < LOST * _information(fitted) else joints
            found.append(by_agreement(*joints))
    return float(np.exp(np.mean(np.log(found)))) if found else 1.0


def by_agreement(first: Array, second: Array) -> float:
    """Return the smallest temperature at which two results agree as often as they promise, at least 1.

    Parameters
    ----------
    first, second : array of shape (N, Q)
        Joint log-likelihoods of the same rows, independent given their clusters; clusters may be in any order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.choice([-1.0, 1.0], 5000)
    >>> first, second = (2 * np.outer(rng.normal(signs, 1.0), [0.5, -0.5]) for _ in range(2))
    >>> round(by_agreement(first, second), 1), round(by_agreement(4 * first, 4 * second), 1)
    (1.0, 4.0)
    """
    order = linear_sum_assignment(-(posterior(first).T @ posterior(second)))[1]
    second = second[:, order]

    def excess(T: float) -> float:
        a, b = posterior(first, T), posterior(second, T)
        weights = np.maximum((a.mean(axis=0) + b.mean(axis=0)) / 2, np.finfo(float).tiny)  # (Q,)
        expected = ((a.T @ a) * (b.T @ b).T / weights[:, None]).sum() / len(a) ** 2
        return float((a * b).sum() / len(a) - expected)

    return _smallest(excess)


def _smallest(excess: Callable[[float], float]) -> float:
    """Return the smallest temperature of at least 1 at which a function is not negative."""
    if excess(1.0) >= 0:
        return 1.0
    low, high = 1.0, 2.0
    while excess(high) < 0:
        low, high = high, 2.0 * high
        if high > LARGEST:
            return LARGEST
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return high


def _joint_of_half(
    half: Counts, mixture: ClusterMixture, rng: np.random.Generator, row_prior: float | None
) -> tuple[Array, float]:
    """Cluster rows by some of the features; return their joint log-likelihood, (N, Q), and the topics' row prior.

    Topics always come from LDA, whatever the source of the fit's topics: results that owe their clusters to the same
    starts agree too often, and probabilities would be too large.
    """
    n_clusters, n_topics = len(mixture.weights), min(len(mixture.topics), half.n_features)
    fit = fit_lda(half, n_topics, rng=rng, row_prior="auto" if row_prior is None else row_prior, n_init=1)
    seed, prior = np.random.SeedSequence(int(rng.integers(2**31))), float(np.mean(mixture.topic_prior))  # of new topics
    sizes = {"n_clusters": n_clusters, "n_topics": n_topics}
    starts, patience = plan_starts("kmeans", 1, **sizes, shape=(half.n_rows, half.n_features), seed=seed)
    options = engine.SearchOptions(
        n_clusters=n_clusters,
        alpha=prior,
        patience=patience,
        max_epochs=COMPARED_EPOCHS,
        merge_split=n_clusters * n_topics * half.n_features <= LARGE_TABLES,  # as in other comparisons of halves
    )
    best = best_of(search_from_starts(LocalRows(half), fit.beta, starts, options, seed=0, sample_size=half.n_rows))
    if best.history.interrupted:  # Ctrl-C means the whole estimate
        raise KeyboardInterrupt
    theta = best.gamma / best.gamma.sum(axis=1, keepdims=True)
    sums = half.group_sums(best.labels, n_clusters)
    smoothing = choose_smoothing(half, best.labels, best.beta, theta, sums)
    topics = smoothed_topics(best.beta, theta, sums, smoothing)
    found = ClusterMixture(
        topics,
        theta,
        best.weights,
        topic_params=best.gamma,
        sizes=np.bincount(best.labels, minlength=n_clusters).astype(np.float64),
        topic_prior=prior,
        sums=sums,
        smoothing=smoothing,
    )
    if mixture.concentration is not None:
        varying = engine.fit_varying_shares(half, best.labels, topics=topics, n_clusters=n_clusters, alpha=prior)
        found = found._replace(concentration=varying.concentration)
    return joint_log_likelihood(half, found, best.labels), fit.row_prior


def _joint_of_fit(half: Half, mixture: ClusterMixture) -> Array:
    """Return the joint log-likelihood of rows under the fitted clusters, given some of the features, (N, Q)."""
    topics = mixture.topics[:, half.features]
    masses = np.maximum(topics.sum(axis=1), np.finfo(float).tiny)  # (K,)
    shares = mixture.cluster_topics * masses
    own = ClusterMixture(topics / masses[:, None], shares / shares.sum(axis=1, keepdims=True), mixture.weights)
    return joint_log_likelihood(half.rows, own._replace(concentration=mixture.concentration))


def _information(joints: Sequence[Array]) -> float:
    """Return the information that the most probable clusters of two results share."""
    first, second = (joint.argmax(axis=1).astype(np.int32) for joint in joints)
    return partition_agreement(first, second).information
