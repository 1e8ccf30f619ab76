"""Clusters and topics in tables: how large, of what, and what sets them apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.model import MMPCA
from mmpca.report.subject import Subject
from mmpca.report.words import TIMES, number, percent, shown, whole_percent

Array = NDArray[np.float64]

FEATURES_SHOWN = 10
SHADES = 10
USED = 0.1  # a cluster uses a topic that has at least this share in it, and no less than among all rows


class Feature(NamedTuple):
    """A feature of a cluster or topic: its share there, and how many times as large that is as among all counts."""

    name: str
    share: float
    told_share: str
    lift: float
    told_lift: str
    width: int  # of its bar, per cent of the longest


class Cell(NamedTuple):
    """A cell of a heat map."""

    told: str
    value: float
    shade: int  # from 0 to SHADES - 1


class Cluster(NamedTuple):
    """A cluster as its card shows it."""

    number: int
    n_rows: int
    weight: str
    width: int
    overdispersion: str
    shares: list[Cell]
    topics: list[int]  # those that it uses, the largest share first
    features: list[Feature]


class Topic(NamedTuple):
    """A topic as its card shows it."""

    number: int
    weight: str
    features: list[Feature]
    clusters: list[tuple[int, str]]  # those that use it, with its share


def profile_table(model: MMPCA) -> tuple[Array, Array]:
    """Return the distributions over features of the clusters, (Q, V), and of all rows together, (V,)."""
    profiles = model.cluster_topics_ @ model.components_
    return profiles, model.weights_ @ profiles


def clusters_of(subject: Subject) -> list[Cluster]:
    """Return the clusters in their order."""
    model = subject.model
    profiles, common = profile_table(model)
    sizes = np.bincount(subject.clusters, minlength=model.n_clusters)
    largest = max(int(sizes.max()), 1)
    used = used_topics(model)
    return [
        Cluster(
            q,
            int(sizes[q]),
            percent(float(model.weights_[q])),
            round(100 * int(sizes[q]) / largest),
            number(float(model.cluster_overdispersion_[q])),
            [cell(float(share)) for share in model.cluster_topics_[q]],
            used[q],
            # Ranked by p log(p / p_all): lift alone would list features that occur once.
            _features(subject, profiles[q], common, profiles[q] * np.log(_ratio(profiles[q], common))),
        )
        for q in range(model.n_clusters)
    ]


def topics_of(subject: Subject) -> list[Topic]:
    """Return the topics in their order."""
    model = subject.model
    common = profile_table(model)[1]
    shares, used = model.cluster_topics_, used_topics(model)
    weights = model.weights_ @ shares
    return [
        Topic(
            k,
            percent(float(weights[k])),
            _features(subject, topic, common, topic),
            [(int(q), whole_percent(float(shares[q, k]))) for q in np.argsort(-shares[:, k]) if k in used[q]],
        )
        for k, topic in enumerate(model.components_)
    ]


def used_topics(model: MMPCA) -> list[list[int]]:
    """Return the topics that each cluster uses, the largest share first; at least one."""
    shares = model.cluster_topics_
    least = np.maximum(USED, model.weights_ @ shares - 1e-9)  # (K,); rounding must not part equal shares
    order = np.argsort(-shares, axis=1, kind="stable")
    used = [[int(k) for k in order[q] if shares[q, k] >= least[k]] for q in range(len(shares))]
    return [topics or [int(order[q, 0])] for q, topics in enumerate(used)]


def cell(share: float, *, told: str | None = None) -> Cell:
    """Return a share as a cell of a heat map."""
    return Cell(whole_percent(share) if told is None else told, share, min(SHADES - 1, int(share * SHADES)))


def _ratio(profile: Array, common: Array) -> Array:
    """Return the lift of each feature, 1 where it never occurs; (V,)."""
    is_known = (common > 0) & (profile > 0)
    ratio: Array = np.divide(profile, common, out=np.ones_like(profile), where=is_known)
    return ratio


def _features(subject: Subject, profile: Array, common: Array, score: Array) -> list[Feature]:
    """Return the features with the best scores; profile, common, score: (V,)."""
    top = np.argsort(-score, kind="stable")[:FEATURES_SHOWN]
    top = top[score[top] > 0]
    lifts = _ratio(profile, common)
    longest = float(profile[top].max()) if top.size else 1.0
    return [
        Feature(
            shown(subject.feature_name(int(v))),
            float(profile[v]),
            percent(float(profile[v])),
            float(lifts[v]),
            f"{lifts[v]:.1f} {TIMES}",
            round(100 * float(profile[v]) / longest),
        )
        for v in top
    ]
