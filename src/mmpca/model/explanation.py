r"""Why a row is in its cluster, in nats.

The evidence for cluster q against cluster r that a row x gives is additive:

.. math:: \log\frac{P(q | x)}{P(r | x)} = \log\frac{\pi_q}{\pi_r} + \sum_v x_v \log\frac{p_{qv}}{p_{rv}},

p_q being the cluster's mixture of the topics. So each feature speaks for or against by so many nats, and together with
the sizes of the clusters they give the margin exactly. One nat is a factor of e = 2.7 in the odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from mmpca.counts import Counts
from mmpca.model import prediction

Array = NDArray[np.float64]
Verdict = Literal["clear", "likely", "borderline"]

# Probabilities, tempered by overdispersion, from which on a row is clear or likely.
CLEAR, LIKELY = 0.99, 0.75


class Evidence(NamedTuple):
    """What one feature of a row says: a positive number of nats speaks for the cluster, a negative one against it."""

    feature: int
    name: str
    occurrences: int
    nats: float


class Alternative(NamedTuple):
    """Another cluster for a row: its log-odds against the row's cluster, and its probability."""

    cluster: int
    log_odds: float
    probability: float


class Explanation(NamedTuple):
    """Why a row is in its cluster.

    Attributes
    ----------
    row : int
        The row's number in X.
    cluster : int
        The cluster that is explained.
    probability : float
        Probability of the cluster, as `predict_proba` has it.
    verdict : {"clear", "likely", "borderline"}
        How sure that is: a probability of at least 0.99, of at least 0.75, or less, after all log-odds were divided by
        `overdispersion_` where that exceeds 1, because counts that come in bursts say less than independent ones.
    runner_up : int or None
        The most probable other cluster; None if there is no other.
    margin : float
        Log-odds of the cluster against the runner-up in nats; negative where the runner-up is more probable, and
        infinite if there is none.
    alternatives : tuple of Alternative
        The other clusters, the most probable first.
    evidence_for, evidence_against : tuple of Evidence
        The features that speak most for the cluster and most against it, relative to the runner-up.
    from_sizes : float
        What the sizes of the two clusters say, log(pi_q / pi_r).
    from_others : float
        What all features say that are not listed; these numbers and the listed evidence sum to the margin.
    """

    row: int
    cluster: int
    probability: float
    verdict: Verdict
    runner_up: int | None
    margin: float
    alternatives: tuple[Alternative, ...]
    evidence_for: tuple[Evidence, ...]
    evidence_against: tuple[Evidence, ...]
    from_sizes: float
    from_others: float


class Mixture(NamedTuple):
    """A fitted mixture as far as explanations need it."""

    topics: Array  # (K, V)
    cluster_topics: Array  # (Q, K)
    weights: Array  # (Q,)
    overdispersion: float
    feature_names: Sequence[str] | NDArray[Any] | None


def select_rows(rows: ArrayLike | None, n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of the rows to explain, checked; negative ones count from the end."""
    if rows is None:
        return np.arange(n_rows)
    chosen = np.atleast_1d(np.asarray(rows))
    if chosen.shape == (0,):
        return np.empty(0, dtype=np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be whole numbers, one for each row to explain, but they have shape {chosen.shape} and type "
            f"{chosen.dtype}. Give e.g. [0, 3], or numpy.flatnonzero(mask)."
        )
    outside = chosen[(chosen < -n_rows) | (chosen >= n_rows)]
    if outside.size:
        raise ValueError(f"rows must be from 0 to {n_rows - 1}, but there is {outside[0]}. X has {n_rows} rows.")
    return chosen.astype(np.intp) % n_rows


def check_labels(labels: ArrayLike, n_rows: int, n_clusters: int) -> NDArray[np.intp]:
    """Return the clusters to explain, checked."""
    chosen = np.asarray(labels)
    if chosen.shape != (n_rows,) or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be whole numbers, one for each of the {n_rows} rows of X, but they have shape {chosen.shape} "
            f"and type {chosen.dtype}. Give labels_ with the X that was fitted, or leave them out."
        )
    outside = np.flatnonzero((chosen < 0) | (chosen >= n_clusters))
    if outside.size:
        i = outside[0]
        raise ValueError(f"labels must be from 0 to {n_clusters - 1}, but labels[{i}] = {chosen[i]}. Renumber them.")
    return chosen.astype(np.intp)


def explain(
    counts: Counts,
    mixture: Mixture,
    *,
    rows: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    n_features: int = 10,
) -> list[Explanation]:
    """Return an explanation for each of the chosen rows; see :meth:`mmpca.MMPCA.explain`."""
    numbers = select_rows(rows, counts.n_rows)
    if not isinstance(n_features, int | np.integer) or n_features < 0:
        raise ValueError(f"n_features must be a whole number of at least 0, but it is {n_features!r}.")
    chosen = counts.take(numbers)
    joint = prediction.joint_log_likelihood(chosen, mixture.topics, mixture.cluster_topics, mixture.weights)  # (n, Q)
    if labels is None:
        clusters = joint.argmax(axis=1)
    else:
        clusters = check_labels(labels, counts.n_rows, len(mixture.weights))[numbers]
    log_profiles = prediction.log_profiles(mixture.topics, mixture.cluster_topics)  # (Q, V)
    explained = (
        _Row(i, q, joint[position], *_entries(chosen, position))
        for position, (i, q) in enumerate(zip(numbers.tolist(), clusters.tolist(), strict=True))
    )
    return [_explain_row(row, mixture, log_profiles, int(n_features)) for row in explained]


class _Row(NamedTuple):
    """A row with its joint log-likelihoods."""

    number: int
    cluster: int
    joint: Array  # (Q,)
    features: NDArray[np.int32]  # (nnz,)
    counts: NDArray[np.int32]  # (nnz,)


def _entries(counts: Counts, i: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    entries = slice(counts.indptr[i], counts.indptr[i + 1])
    return counts.indices[entries], counts.data[entries]


def _explain_row(row: _Row, mixture: Mixture, log_profiles: Array, n_features: int) -> Explanation:
    probabilities = prediction.posterior(row.joint[None])[0]
    order = np.argsort(-row.joint, kind="stable")
    alternatives = tuple(
        Alternative(int(q), float(row.joint[q] - row.joint[row.cluster]), float(probabilities[q]))
        for q in order
        if q != row.cluster
    )
    verdict = judge(row.joint, row.cluster, mixture.overdispersion)
    head = row.number, row.cluster, float(probabilities[row.cluster]), verdict
    if not alternatives:
        return Explanation(*head, None, np.inf, (), (), (), 0.0, 0.0)
    other = alternatives[0].cluster
    nats = row.counts * (log_profiles[row.cluster, row.features] - log_profiles[other, row.features])
    order = np.argsort(-np.abs(nats), kind="stable")
    speak_for, against = order[nats[order] > 0][:n_features], order[nats[order] < 0][:n_features]
    listed = nats[speak_for].sum() + nats[against].sum()
    return Explanation(
        *head,
        other,
        -alternatives[0].log_odds,
        alternatives,
        _evidence(row, nats, speak_for, mixture),
        _evidence(row, nats, against, mixture),
        float(np.log(mixture.weights[row.cluster]) - np.log(mixture.weights[other])),
        float(nats.sum() - listed),
    )


def _evidence(row: _Row, nats: Array, chosen: NDArray[np.intp], mixture: Mixture) -> tuple[Evidence, ...]:
    names = mixture.feature_names
    features = row.features[chosen].tolist()
    return tuple(
        Evidence(v, f"feature {v}" if names is None else str(names[v]), int(row.counts[entry]), float(nats[entry]))
        for v, entry in zip(features, chosen, strict=True)
    )


def judge(joint: Array, cluster: int, overdispersion: float) -> Verdict:
    """Return how sure a cluster is, log-odds divided by an overdispersion above 1; joint: (Q,)."""
    tempered = softmax(joint / max(1.0, overdispersion if np.isfinite(overdispersion) else 1.0))
    probability = float(tempered[cluster])
    return "clear" if probability >= CLEAR else "likely" if probability >= LIKELY else "borderline"
