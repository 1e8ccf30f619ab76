"""Clusters, topics and known labels as the tables of the page show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mmpca.evaluation import Summary
from mmpca.model import MMPCA
from mmpca.report.context import Context
from mmpca.report.formatting import clean

Array = NDArray[np.float64]

N_FEATURES = 10
MIN_SHARE = 0.1  # a cluster uses a topic if its share is at least this large, and at least as large as in all rows
MAX_LABELS = 60


class FeatureShare(NamedTuple):
    """A feature in a cluster or topic: its share there, and the ratio of that to its share of all counts."""

    name: str
    share: float
    lift: float


class ClusterCard(NamedTuple):
    """One cluster."""

    number: int
    n_rows: int
    weight: float
    overdispersion: float
    certainty: float | None  # mean probability of its rows
    shares: list[float]  # of each topic
    topics: list[int]  # that it uses, largest share first
    features: list[FeatureShare]


class TopicCard(NamedTuple):
    """One topic."""

    number: int
    weight: float
    coherence: float | None
    clusters: list[tuple[int, float]]  # that use it, and its share in each, largest first
    features: list[FeatureShare]


class LabelTable(NamedTuple):
    """Number of rows of each known label in each cluster."""

    lines: list[tuple[str, int, list[int]]]  # label, its rows, its rows in each cluster
    rand_index: float
    n_left_out: int


def cluster_cards(context: Context, quality: Summary | None) -> list[ClusterCard]:
    """Return the clusters, with the features that distinguish each one."""
    model = context.model
    profiles = model.cluster_topics_ @ model.components_  # (Q, V)
    overall = model.weights_ @ profiles  # (V,)
    sizes = np.bincount(context.clusters, minlength=len(model.weights_))
    used = used_topics(model)
    return [
        ClusterCard(
            number=q,
            n_rows=int(sizes[q]),
            weight=float(model.weights_[q]),
            overdispersion=float(model.cluster_overdispersion_[q]),
            certainty=None if quality is None else float(quality.certainty[q]),
            shares=model.cluster_topics_[q].tolist(),
            topics=used[q],
            # Ranked by p log(p / p_all), because lift alone would favor features that occur once.
            features=_leading_features(context, profile, overall, profile * np.log(_lift(profile, overall))),
        )
        for q, profile in enumerate(profiles)
    ]


def topic_cards(context: Context, quality: Summary | None) -> list[TopicCard]:
    """Return the topics, with their most probable features."""
    model = context.model
    shares, used = model.cluster_topics_, used_topics(model)
    weights = model.weights_ @ shares  # (K,)
    overall = weights @ model.components_  # (V,)
    return [
        TopicCard(
            number=k,
            weight=float(weights[k]),
            coherence=None if quality is None else float(quality.npmi[k]),
            clusters=[(int(q), float(shares[q, k])) for q in np.argsort(-shares[:, k]) if k in used[q]],
            features=_leading_features(context, topic, overall, topic),
        )
        for k, topic in enumerate(model.components_)
    ]


def used_topics(model: MMPCA) -> list[list[int]]:
    """Return the topics that each cluster uses, largest share first; every cluster uses at least one."""
    shares = model.cluster_topics_
    least = np.maximum(MIN_SHARE, model.weights_ @ shares - 1e-9)  # (K,); tolerates rounding of equal shares
    order = np.argsort(-shares, axis=1, kind="stable")
    used = [[int(k) for k in order[q] if shares[q, k] >= least[k]] for q in range(len(shares))]
    return [topics or [int(order[q, 0])] for q, topics in enumerate(used)]


def label_table(context: Context) -> LabelTable | None:
    """Return the table of known labels and clusters, largest labels first; None without labels."""
    if context.labels is None:
        return None
    names, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
    table = np.zeros((len(names), len(context.model.weights_)), dtype=int)
    np.add.at(table, (codes, context.clusters), 1)
    totals = table.sum(axis=1)
    order = np.argsort(-totals, kind="stable")[:MAX_LABELS]
    lines = [(clean(names[c]), int(totals[c]), table[c].tolist()) for c in order]
    return LabelTable(lines, float(adjusted_rand_score(codes, context.clusters)), len(names) - len(order))


def _lift(profile: Array, overall: Array) -> Array:
    """Return the lift of each feature, 1 for features that never occur; (V,)."""
    lift: Array = np.divide(profile, overall, out=np.ones_like(profile), where=(overall > 0) & (profile > 0))
    return lift


def _leading_features(context: Context, profile: Array, overall: Array, score: Array) -> list[FeatureShare]:
    """Return the features with the highest positive scores; profile, overall, score: (V,)."""
    top = np.argsort(-score, kind="stable")[:N_FEATURES]
    lift = _lift(profile, overall)
    return [
        FeatureShare(clean(context.feature_name(v)), float(profile[v]), float(lift[v]))
        for v in top[score[top] > 0].tolist()
    ]
