r"""Why a row is in its cluster: evidence from each feature, in nats.

**Log-odds.** The log-odds of cluster q against cluster r for a row x are a sum over features,

.. math:: \log\frac{P(q | x)}{P(r | x)} =
          \frac{1}{T} \Big( \log\frac{\pi_q}{\pi_r} + \sum_v x_v \log\frac{p_{qv}}{p_{rv}} \Big),

where p_q is the cluster's mixture of the topics and T the temperature of the model. Each feature contributes its own
term for or against the cluster; one nat multiplies the odds by e = 2.7. The parameters of the fit are held fixed,
except that a fitted row is taken out of its own cluster first. With square roots or effective counts, x is in these
units; the counts shown beside a term are the original ones.

**Gains.** The bound shows what would happen if the row were moved and all parameters were maximized again. When a row x
joins cluster q, the bound changes by

.. math:: \Delta_q = \max J(M_q + x) - \max J(M_q) + (n_q + 1) \log(n_q + 1) - n_q \log n_q - c

with a constant c that is the same for all q. A fitted row is first taken out of its own cluster, so there M_q and n_q
exclude it. The gain of cluster r over cluster q is :math:`\Delta_r - \Delta_q`; for a fitted row, it is exactly the
change of the bound if the row moved. To first order in x, :math:`\max J` changes by :math:`\sum_v x_v C_{qv}` with
:math:`C_{qv} = \log \sum_k \beta_{kv} e^{\eta_{qk}}`, one term for each feature; the remainder is due to clusters
adapting to the row. The topics `components_` are held fixed, so gains refer to `bound_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from mmpca import engine
from mmpca.counts import Counts
from mmpca.model import prediction
from mmpca.topics import known_counts

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Verdict = Literal["clear", "likely", "borderline"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

CLEAR, LIKELY = 0.99, 0.75  # least probability for each verdict
NOT_FITTED = -1  # label of rows that were not fitted


# --- results ----------------------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """Evidence from one feature of a row; positive numbers favor the cluster over the runner-up.

    Attributes
    ----------
    feature : int
        Index of the feature.
    name : str
        Its name, or "feature 7" if the model has no names.
    occurrences : int
        Its count in the row.
    nats : float
        Its term in the log-odds.
    first_order : float or None
        Its first-order term in the bound's margin; None without gains.
    annotation : str
        Its taxonomy or another description, if the model has any.
    """

    feature: int
    name: str
    occurrences: int
    nats: float
    first_order: float | None = None
    annotation: str = ""


class Alternative(NamedTuple):
    """Another cluster for a row.

    Attributes
    ----------
    cluster : int
    log_odds : float
        Log-odds against the explained cluster, in nats.
    probability : float
    gain : float or None
        Change of the bound if the row were in this cluster instead and all parameters were maximized again. Minus
        infinity for a fitted row that is alone in its cluster and so cannot leave it; None without gains.
    """

    cluster: int
    log_odds: float
    probability: float
    gain: float | None = None


class BoundMargin(NamedTuple):
    """How much the bound prefers the cluster to the runner-up, in nats; positive numbers favor the cluster.

    Attributes
    ----------
    total : float
        Minus the gain of the runner-up; equals from_features + from_sizes + remainder.
    from_features : float
        First-order terms of all features.
    from_sizes : float
        Contribution of the sizes of the two clusters.
    remainder : float
        The rest, due to clusters adapting to the row. Mostly negative for a fitted row, because its own cluster has
        adapted to it already.
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
        Index of the row in X.
    cluster : int
        The explained cluster.
    probability : float
        Probability of the cluster, as in `predict_proba` for a new row and `leave_one_out_proba` for a fitted one.
    verdict : {"clear", "likely", "borderline"}
        Probability of at least 0.99, at least 0.75, or less; if `stability` is known, the smaller of the two counts.
    runner_up : int or None
        The most probable other cluster; None if there is no other.
    margin : float
        Log-odds of the cluster against the runner-up in nats; negative if the runner-up is more probable, infinite if
        there is none.
    alternatives : tuple of Alternative
        The other clusters, most probable first.
    evidence_for, evidence_against : tuple of Evidence
        Features with the strongest evidence for the cluster and for the runner-up, strongest first.
    from_sizes : float
        Contribution of the sizes of the two clusters, log(pi_q / pi_r) / T.
    from_others : float
        Sum over the features that are not listed. Listed evidence, `from_sizes`, `from_others` and `from_variation` add
        up to `margin`.
    from_variation : float
        With ``dispersion="shares"`` or ``"polya"``, the rest of the margin: the evidence listed assumes that all rows
        of a cluster mix the topics in the same way; this term corrects for the fact that they do not. 0 otherwise.
    is_fitted : bool
        True if X holds the fitted rows; gains then refer to moving the row instead of adding it.
    contribution : float or None
        Change of the bound when the row joins the cluster; for another cluster, add the gain of the alternative. None
        without gains.
    bound_margin : BoundMargin or None
        The margin over the runner-up in the bound. None without gains or without another cluster.
    stability : float or None
        Share of the refits that put a fitted row into its cluster; None unless the model keeps them
        (:meth:`mmpca.MMPCA.keep_stability`).
    total_evidence : float
        Sum of the absolute evidence of all features.
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
    from_variation: float = 0.0
    is_fitted: bool = False
    contribution: float | None = None
    bound_margin: BoundMargin | None = None
    stability: float | None = None
    total_evidence: float = 0.0

    @property
    def is_held_by_itself(self) -> bool:
        """True if, without its own contribution, a fitted row would more probably belong to another cluster."""
        return self.is_fitted and self.margin < 0

    @property
    def other_terms(self) -> list[tuple[str, float]]:
        """The terms of the margin that are not listed as evidence, with their names."""
        terms = [("all other features", self.from_others), ("cluster sizes", self.from_sizes)]
        return terms + [("rows vary within clusters", self.from_variation)] * (self.from_variation != 0.0)


# --- input ------------------------------------------------------------------------------------------------------


def select_rows(rows: ArrayLike | None, n_rows: int) -> NDArray[np.intp]:
    """Check row indices; negative ones count from the end, and None selects all rows."""
    if rows is None:
        return np.arange(n_rows)
    chosen = np.atleast_1d(np.asarray(rows))
    if chosen.shape == (0,):
        return np.empty(0, dtype=np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be a list of integers, but it has shape {chosen.shape} and dtype {chosen.dtype}. Pass row "
            "indices such as [0, 3], or numpy.flatnonzero(mask)."
        )
    outside = chosen[(chosen < -n_rows) | (chosen >= n_rows)]
    if outside.size:
        raise ValueError(f"rows must be between 0 and {n_rows - 1}, because X has {n_rows} rows; got {outside[0]}.")
    return chosen.astype(np.intp) % n_rows


def check_clusters(labels: ArrayLike, n_rows: int, n_clusters: int) -> NDArray[np.intp]:
    """Check the labels of the clusters to explain."""
    if np.ma.is_masked(labels):  # asarray would drop the mask
        raise ValueError("labels must hold one cluster for each row, but some of them are masked. Fill them in.")
    chosen = np.asarray(labels)
    if chosen.shape != (n_rows,) or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"labels must hold one integer for each of the {n_rows} rows of X, but has shape {chosen.shape} and dtype "
            f"{chosen.dtype}. Pass labels_ with the X of the fit, or omit labels."
        )
    outside = np.flatnonzero((chosen < 0) | (chosen >= n_clusters))
    if outside.size:
        i = outside[0]
        raise ValueError(f"labels must be between 0 and {n_clusters - 1}, but labels[{i}] = {chosen[i]}.")
    return chosen.astype(np.intp)


def fitted_labels(counts: Counts, model: MMPCA) -> Labels:
    """Return the fitted labels of rows in the units of the fit, (N,); all `NOT_FITTED` if X is not the fitted matrix.

    The model does not keep its rows. X is taken for the fitted matrix if it has as many non-empty rows and the labels
    give the same sums in every cluster.
    """
    labels = np.full(counts.n_rows, NOT_FITTED, dtype=np.int32)
    filled = np.flatnonzero(np.diff(counts.indptr))  # `fit` accepts no empty rows
    if filled.size == model.labels_.size:
        rows = counts if filled.size == counts.n_rows else counts.take(filled)
        if np.array_equal(rows.group_sums(model.labels_, len(model.weights_)), model.unit_counts):
            labels[filled] = model.labels_
    return labels


# --- explanations -----------------------------------------------------------------------------------------------


class _Gains(NamedTuple):
    """Changes of the bound when each of some rows joins each cluster."""

    change: Array  # Delta_q, (R, Q)
    from_sizes: Array  # the part of it due to cluster sizes, (R, Q)
    slopes: Array  # C_qv, (V, Q); zero for features that no topic has

    def over(self, r: int, cluster: int) -> Array:
        """Return the gain of each cluster over the given one for row r, (Q,)."""
        change = self.change[r]
        with np.errstate(invalid="ignore"):  # inf - inf, for a row that is alone in its cluster
            return np.where(change == change[cluster], 0.0, change - change[cluster])

    def margin(self, r: int, cluster: int, other: int, first_order: Array) -> BoundMargin:
        """Return the bound's margin of a cluster over another for row r."""
        total = -float(self.over(r, cluster)[other])
        from_features = float(first_order.sum())
        from_sizes = float(self.from_sizes[r, cluster] - self.from_sizes[r, other])
        return BoundMargin(total, from_features, from_sizes, total - from_features - from_sizes)


def _gains(rows: Counts, labels: Labels, model: MMPCA) -> _Gains:
    """Compute exact gains, with one maximization for each row and cluster."""
    beta, sizes = model.components_, model.cluster_sizes
    state = engine.from_sums(model.unit_counts, sizes, beta=beta, alpha=model.topic_prior_)
    state = state._replace(rows=known_counts(rows, beta), labels=labels)
    slopes = np.where((beta.max(axis=0) > 0)[:, None], state.clusters.tables[:, : state.n_clusters], 0.0)
    return _Gains(*engine.joins(state), slopes)


class RowTerms(NamedTuple):
    """The log-odds of some rows: of their cluster against the runner-up, by feature."""

    rows: Counts  # (R, V), in the units of the fit
    occurrences: NDArray[np.int32]  # the counts, (nnz,)
    fitted: Labels  # cluster of fitted rows, `NOT_FITTED` for others, (R,)
    clusters: NDArray[np.integer[Any]]  # the explained clusters, (R,)
    order: NDArray[np.intp]  # all clusters, most probable first, (R, Q)
    joint: Array  # log-odds up to a constant, (R, Q)
    probabilities: Array  # (R, Q)
    stability: Array  # share of the refits that agree, NaN if unknown, (R,)
    runner_up: NDArray[np.intp]  # most probable other cluster, -1 if there is none, (R,)
    nats: Array  # evidence of each entry of the rows, (nnz,)
    from_sizes: Array  # (R,)
    is_sum: bool  # whether these are all terms of the log-odds

    @property
    def margin(self) -> Array:
        """Log-odds against the runner-up, infinite if there is none, (R,)."""
        at = np.arange(len(self.clusters))
        return np.where(self.runner_up < 0, np.inf, self.joint[at, self.clusters] - self.joint[at, self.runner_up])

    @property
    def probability(self) -> Array:
        """Probability of the explained clusters, (R,)."""
        return self.probabilities[np.arange(len(self.clusters)), self.clusters]


def row_terms(
    counts: Counts, model: MMPCA, indices: NDArray[np.intp], labels: NDArray[np.integer[Any]] | None = None
) -> RowTerms:
    """Return the log-odds of some rows of X; labels: (N,), the clusters to explain."""
    converted = model.units.convert(counts)  # evidence is weighed in the units of the fit, and shown with the counts
    chosen, fitted = converted.take(indices), fitted_labels(converted, model)[indices]
    mixture, temperature = model.mixture(), model.temperature_
    joint = prediction.joint_log_likelihood(chosen, mixture, fitted) / temperature  # (R, Q)
    order = np.argsort(-joint, axis=1, kind="stable")
    clusters = np.where(fitted == NOT_FITTED, order[:, 0], fitted) if labels is None else labels[indices]
    refits = _row_stability(model, counts)
    stability = (
        np.full(len(indices), np.nan) if refits is None else np.where(fitted == clusters, refits[indices], np.nan)
    )
    nats, from_sizes = np.zeros(chosen.nnz), np.zeros(len(indices))
    runner_up = np.full(len(indices), -1, dtype=np.intp)
    if joint.shape[1] > 1:
        runner_up = np.where(order[:, 0] == clusters, order[:, 1], order[:, 0])
        log_weights, left_out = np.broadcast_to(np.log(mixture.weights), joint.shape), mixture.left_out(fitted)
        if left_out is not None:  # the cluster of a fitted row, without the row
            shares = engine.shares_without_row(chosen, mixture.topics, left_out)  # (R, K)
            log_weights = engine.log_weights_without_row(mixture.weights, left_out)  # (R, Q)
        own, other = np.empty(chosen.nnz), np.empty(chosen.nnz)
        for part, row, topics in engine.topics_of_entries(chosen, mixture.topics, left_out):
            entries = slice(chosen.indptr[part.start], chosen.indptr[part.stop])
            for side, of_rows in ((own, clusters[part]), (other, runner_up[part])):
                theta = mixture.cluster_topics[of_rows]  # (rows, K)
                if left_out is not None:
                    theta = np.where((fitted[part] == of_rows)[:, None], shares[part], theta)
                profiles, is_known = (theta[row] * topics).sum(axis=1), topics.any(axis=1)  # (n,) each
                side[entries] = np.log(
                    np.maximum(profiles, prediction.SMALLEST), out=np.zeros_like(profiles), where=is_known
                )
        nats = chosen.data * (own - other) / temperature
        at = np.arange(len(indices))
        from_sizes = (log_weights[at, clusters] - log_weights[at, runner_up]) / temperature
    return RowTerms(
        chosen,
        counts.take(indices).data,
        fitted,
        clusters,
        order,
        joint,
        softmax(joint, axis=1),
        stability,
        runner_up,
        nats,
        from_sizes,
        is_sum=mixture.concentration is None,
    )


def explain(
    counts: Counts,
    model: MMPCA,
    *,
    rows: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    n_features: int = 10,
    with_gains: bool = False,
) -> list[Explanation]:
    """Explain the clusters of the chosen rows; see :meth:`mmpca.MMPCA.explain`."""
    if not isinstance(n_features, int | np.integer) or n_features < 0:
        raise ValueError(f"n_features must be an integer of at least 0, got {n_features!r}.")
    indices = select_rows(rows, counts.n_rows)
    given = None if labels is None else check_clusters(labels, counts.n_rows, len(model.weights_))
    terms = row_terms(counts, model, indices, given)
    gains = _gains(terms.rows, terms.fitted, model) if with_gains else None
    margins, probabilities = terms.margin.tolist(), terms.probability.tolist()
    explained = []
    for r, (i, cluster) in enumerate(zip(indices.tolist(), terms.clusters.tolist(), strict=True)):
        stability = None if np.isnan(terms.stability[r]) else float(terms.stability[r])
        why = Explanation(
            row=i,
            cluster=cluster,
            probability=probabilities[r],
            verdict=judge(probabilities[r], stability),
            runner_up=None,
            margin=margins[r],
            alternatives=_alternatives(terms, r, None if gains is None else gains.over(r, cluster)),
            evidence_for=(),
            evidence_against=(),
            from_sizes=float(terms.from_sizes[r]),
            from_others=0.0,
            is_fitted=bool(terms.fitted[r] != NOT_FITTED),
            contribution=None if gains is None else float(gains.change[r, cluster]),
            stability=stability,
        )
        if why.alternatives:
            why = _with_evidence(why, r, terms, model=model, gains=gains, n_listed=n_features)
        explained.append(why)
    return explained


def _alternatives(terms: RowTerms, r: int, gains: Array | None) -> tuple[Alternative, ...]:
    """Return the other clusters of row r, most probable first."""
    cluster = terms.clusters[r]
    others = terms.order[r][terms.order[r] != cluster]
    log_odds, probabilities = terms.joint[r] - terms.joint[r, cluster], terms.probabilities[r]
    changes = [None] * len(others) if gains is None else gains[others].tolist()
    columns = (others.tolist(), log_odds[others].tolist(), probabilities[others].tolist(), changes)
    return tuple(Alternative(*line) for line in zip(*columns, strict=True))


def _with_evidence(
    why: Explanation, r: int, terms: RowTerms, *, model: MMPCA, gains: _Gains | None, n_listed: int
) -> Explanation:
    """Add the comparison with the runner-up."""
    cluster, other = why.cluster, int(terms.runner_up[r])
    entries = slice(terms.rows.indptr[r], terms.rows.indptr[r + 1])
    features, nats, occurrences = terms.rows.indices[entries], terms.nats[entries], terms.occurrences[entries]
    first_order, bound_margin = None, None
    if gains is not None:
        slopes = gains.slopes[features, cluster] - gains.slopes[features, other]
        first_order = terms.rows.data[entries] * slopes  # (nnz,)
        bound_margin = gains.margin(r, cluster, other, first_order)
    names, noun = (
        getattr(model, "feature_names_in_", None),
        getattr(getattr(model, "_words", None), "feature", "feature"),
    )
    descriptions = getattr(model, "feature_annotations_", {})

    def evidence(entry: int) -> Evidence:
        v = int(features[entry])
        name = f"{noun} {v}" if names is None else str(names[v])
        slope = None if first_order is None else float(first_order[entry])
        annotation = "; ".join(str(of_features[v]) for of_features in descriptions.values())
        return Evidence(v, name, int(occurrences[entry]), float(nats[entry]), slope, annotation)

    order = np.argsort(-np.abs(nats), kind="stable")
    strongest_for, strongest_against = order[nats[order] > 0][:n_listed], order[nats[order] < 0][:n_listed]
    return why._replace(
        runner_up=other,
        evidence_for=tuple(map(evidence, strongest_for)),
        evidence_against=tuple(map(evidence, strongest_against)),
        from_variation=0.0 if terms.is_sum else float(why.margin - nats.sum() - why.from_sizes),
        from_others=float(nats.sum() - (nats[strongest_for].sum() + nats[strongest_against].sum())),
        bound_margin=bound_margin,
        total_evidence=float(np.abs(nats).sum()),
    )


def _row_stability(model: MMPCA, counts: Counts) -> Array | None:
    """Return the share of refits that agree on each row of X, (N,), if X may be the fitted matrix; NaN if unknown."""
    known: Array | None = getattr(model, "row_stability_", None)
    if known is None:
        return None
    filled = np.flatnonzero(np.diff(counts.indptr))  # `fit` accepts no empty rows
    if filled.size != known.size:
        return None
    of_rows = np.full(counts.n_rows, np.nan)
    of_rows[filled] = known
    return of_rows


def judge(probability: float, stability: float | None = None) -> Verdict:
    """Return the verdict on a cluster with this probability, and this share of refits that agree.

    Examples
    --------
    >>> judge(0.995), judge(0.995, 0.8), judge(0.995, 0.2)
    ('clear', 'likely', 'borderline')
    """
    probability = probability if stability is None else min(probability, stability)
    return "clear" if probability >= CLEAR else "likely" if probability >= LIKELY else "borderline"
