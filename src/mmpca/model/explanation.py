r"""Why a row is in its cluster, in nats.

The evidence for cluster q against cluster r that a row x gives is additive:

.. math:: \log\frac{P(q | x)}{P(r | x)} = \log\frac{\pi_q}{\pi_r} + \sum_v x_v \log\frac{p_{qv}}{p_{rv}},

p_q being the cluster's mixture of the topics. So each feature speaks for or against by so many nats, and together with
the sizes of the clusters they give the margin exactly. One nat is a factor of e = 2.7 in the odds.

These odds take the parameters of the fit as they are. What the bound itself would gain or lose if the row were in
another cluster, with everything maximised anew, is told beside them (:mod:`mmpca.model.gains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from mmpca.counts import Counts
from mmpca.model import prediction
from mmpca.model.gains import OUTSIDE, Joins, Partition, joins, membership

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Verdict = Literal["clear", "likely", "borderline"]

# Probabilities, tempered by overdispersion, from which on a row is clear or likely.
CLEAR, LIKELY = 0.99, 0.75


class Evidence(NamedTuple):
    """What one feature of a row says: a positive number of nats speaks for the cluster, a negative one against it.

    `nats` is its part of the log-odds, `first_order` its part of the margin in the bound, to first order in the counts;
    None without gains.
    """

    feature: int
    name: str
    occurrences: int
    nats: float
    first_order: float | None = None


class Alternative(NamedTuple):
    """Another cluster for a row: its log-odds against the row's cluster, its probability, and its gain.

    The gain is by how much the bound would be higher with the row in this cluster instead, everything maximised anew;
    minus infinity for a fitted row that is alone in its cluster, which it cannot leave, and None where it was not asked
    for.
    """

    cluster: int
    log_odds: float
    probability: float
    gain: float | None = None


class BoundMargin(NamedTuple):
    """By how much the bound prefers the cluster to the runner-up, in nats; positive numbers speak for the cluster.

    Attributes
    ----------
    total : float
        The gain of the runner-up with its sign turned: from_features + from_sizes + remainder.
    from_features : float
        What all features say to first order in the counts, the clusters being as they are.
    from_sizes : float
        What the sizes of the two clusters say.
    remainder : float
        What is left: how the clusters give way to the row. For a fitted row mostly negative, because its own cluster
        has given way to it already.
    """

    total: float
    from_features: float
    from_sizes: float
    remainder: float


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
    is_fitted : bool
        Whether X holds the rows that the model was fitted to, so that this one is moved rather than added.
    contribution : float or None
        By how much the bound rises when the row joins the cluster, which is where it is or would be put; with another
        cluster, it is this plus the gain of the alternative. None without gains.
    bound_margin : BoundMargin or None
        The comparison with the runner-up by the bound. None without gains or another cluster.
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
    is_fitted: bool = False
    contribution: float | None = None
    bound_margin: BoundMargin | None = None


class Mixture(NamedTuple):
    """A fitted mixture as far as explanations need it."""

    topics: Array  # (K, V)
    cluster_topics: Array  # (Q, K)
    weights: Array  # (Q,)
    overdispersion: float
    feature_names: Sequence[str] | NDArray[Any] | None
    partition: Partition


def mixture_of(model: MMPCA) -> Mixture:
    """Return what explanations need of a fitted model."""
    names = getattr(model, "feature_names_in_", None)
    partition = Partition(model.cluster_counts_, model.labels_, model.components_, float(model.topic_prior))
    return Mixture(model.components_, model.cluster_topics_, model.weights_, model.overdispersion_, names, partition)


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
    with_gains: bool = False,
) -> list[Explanation]:
    """Return an explanation for each of the chosen rows; see :meth:`mmpca.MMPCA.explain`."""
    numbers = select_rows(rows, counts.n_rows)
    if not isinstance(n_features, int | np.integer) or n_features < 0:
        raise ValueError(f"n_features must be a whole number of at least 0, but it is {n_features!r}.")
    chosen = counts.take(numbers)
    fitted = membership(counts, mixture.partition)[numbers]
    joint = prediction.joint_log_likelihood(chosen, mixture.topics, mixture.cluster_topics, mixture.weights)  # (n, Q)
    if labels is None:
        clusters = np.where(fitted == OUTSIDE, joint.argmax(axis=1), fitted)
    else:
        clusters = check_labels(labels, counts.n_rows, len(mixture.weights))[numbers]
    explainer = _Explainer(
        mixture,
        prediction.log_profiles(mixture.topics, mixture.cluster_topics),
        joins(chosen, fitted, mixture.partition) if with_gains else None,
        int(n_features),
    )
    return [
        explainer.explain(position, _Row(i, q, bool(f != OUTSIDE), joint[position], *_entries(chosen, position)))
        for position, (i, q, f) in enumerate(zip(numbers.tolist(), clusters.tolist(), fitted.tolist(), strict=True))
    ]


class _Row(NamedTuple):
    """A row with its joint log-likelihoods."""

    number: int
    cluster: int
    is_fitted: bool
    joint: Array  # (Q,)
    features: NDArray[np.int32]  # (nnz,)
    counts: NDArray[np.int32]  # (nnz,)


def _entries(counts: Counts, i: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    entries = slice(counts.indptr[i], counts.indptr[i + 1])
    return counts.indices[entries], counts.data[entries]


class _Explainer(NamedTuple):
    """What the explanations of all rows share."""

    mixture: Mixture
    log_profiles: Array  # (Q, V)
    joins: Joins | None
    n_features: int

    def explain(self, position: int, row: _Row) -> Explanation:
        """Explain a row, the gains of which are at the given position."""
        alternatives = self._alternatives(position, row)
        probability = float(prediction.posterior(row.joint[None])[0, row.cluster])
        verdict = judge(row.joint, row.cluster, self.mixture.overdispersion)
        head = row.number, row.cluster, probability, verdict
        contribution = None if self.joins is None else float(self.joins.change[position, row.cluster])
        if not alternatives:
            return Explanation(*head, None, np.inf, (), (), (), 0.0, 0.0, row.is_fitted, contribution)
        other, weights = alternatives[0].cluster, self.mixture.weights
        nats = row.counts * (self.log_profiles[row.cluster, row.features] - self.log_profiles[other, row.features])
        order = np.argsort(-np.abs(nats), kind="stable")
        listed = [order[nats[order] > 0][: self.n_features], order[nats[order] < 0][: self.n_features]]
        slopes = self._slopes(row, other)
        return Explanation(
            *head,
            other,
            -alternatives[0].log_odds,
            alternatives,
            _evidence(row, nats, slopes, listed[0], self.mixture),
            _evidence(row, nats, slopes, listed[1], self.mixture),
            float(np.log(weights[row.cluster]) - np.log(weights[other])),
            float(nats.sum() - sum(nats[chosen].sum() for chosen in listed)),
            row.is_fitted,
            contribution,
            self._bound_margin(position, row, other, slopes),
        )

    def _alternatives(self, position: int, row: _Row) -> tuple[Alternative, ...]:
        """Return the other clusters, the most probable first."""
        probabilities = prediction.posterior(row.joint[None])[0]
        log_odds = row.joint - row.joint[row.cluster]
        gains = [None] * log_odds.size if self.joins is None else self._gains(position, row.cluster)
        return tuple(
            Alternative(q, float(log_odds[q]), float(probabilities[q]), gains[q])
            for q in np.argsort(-row.joint, kind="stable").tolist()
            if q != row.cluster
        )

    def _gains(self, position: int, cluster: int) -> list[float]:
        """Return what each cluster gains over the row's."""
        assert self.joins is not None
        change = self.joins.change[position]
        with np.errstate(invalid="ignore"):
            gains: list[float] = np.where(change == change[cluster], 0.0, change - change[cluster]).tolist()
        return gains

    def _slopes(self, row: _Row, other: int) -> Array | None:
        """Return what each feature says to first order, (nnz,)."""
        if self.joins is None:
            return None
        slopes = self.joins.slopes[row.features]
        parts: Array = row.counts * (slopes[:, row.cluster] - slopes[:, other])
        return parts

    def _bound_margin(self, position: int, row: _Row, other: int, slopes: Array | None) -> BoundMargin | None:
        """Return the bound's margin over the runner-up, in parts."""
        if self.joins is None or slopes is None:
            return None
        total = -self._gains(position, row.cluster)[other]
        sizes = self.joins.from_sizes[position]
        features, from_sizes = float(slopes.sum()), float(sizes[row.cluster] - sizes[other])
        return BoundMargin(total, features, from_sizes, total - features - from_sizes)


def _evidence(
    row: _Row, nats: Array, slopes: Array | None, chosen: NDArray[np.intp], mixture: Mixture
) -> tuple[Evidence, ...]:
    names = mixture.feature_names
    return tuple(
        Evidence(
            v,
            f"feature {v}" if names is None else str(names[v]),
            int(row.counts[entry]),
            float(nats[entry]),
            None if slopes is None else float(slopes[entry]),
        )
        for v, entry in zip(row.features[chosen].tolist(), chosen, strict=True)
    )


def judge(joint: Array, cluster: int, overdispersion: float) -> Verdict:
    """Return how sure a cluster is, log-odds divided by an overdispersion above 1; joint: (Q,)."""
    tempered = softmax(joint / max(1.0, overdispersion if np.isfinite(overdispersion) else 1.0))
    probability = float(tempered[cluster])
    return "clear" if probability >= CLEAR else "likely" if probability >= LIKELY else "borderline"
