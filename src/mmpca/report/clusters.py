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
USED = 0.1  # share from which on a cluster is said to use a topic


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
    return [
        Cluster(
            q,
            int(sizes[q]),
            percent(float(model.weights_[q])),
            round(100 * int(sizes[q]) / largest),
            number(float(model.cluster_overdispersion_[q])),
            [cell(float(share)) for share in model.cluster_topics_[q]],
            used_topics(model.cluster_topics_[q]),
            # Ranked by p log(p / p_all): lift alone would list features that occur once.
            _features(subject, profiles[q], common, profiles[q] * np.log(_ratio(profiles[q], common))),
        )
        for q in range(model.n_clusters)
    ]


def topics_of(subject: Subject) -> list[Topic]:
    """Return the topics in their order."""
    model = subject.model
    common = profile_table(model)[1]
    weights = model.weights_ @ model.cluster_topics_
    return [
        Topic(
            k,
            percent(float(weights[k])),
            _features(subject, topic, common, topic),
            [(q, whole_percent(float(model.cluster_topics_[q, k]))) for q in _users(model.cluster_topics_[:, k])],
        )
        for k, topic in enumerate(model.components_)
    ]


def used_topics(shares: Array) -> list[int]:
    """Return the topics that a cluster uses, the largest first; at least one."""
    order = np.argsort(-shares, kind="stable")
    n_used = max(1, int((shares >= USED).sum()))
    return [int(k) for k in order[:n_used]]


def cell(share: float, *, told: str | None = None) -> Cell:
    """Return a share as a cell of a heat map."""
    return Cell(whole_percent(share) if told is None else told, share, min(SHADES - 1, int(share * SHADES)))


def _users(shares: Array) -> list[int]:
    order = np.argsort(-shares, kind="stable")
    return [int(q) for q in order if shares[q] >= USED]


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
