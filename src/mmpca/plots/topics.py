"""What topics are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from mmpca.plots.style import COLOURS, new_axes, new_figure, short_name, tidy_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MOST_COLUMNS = 4  # of topics beside each other
AXES = {
    "share": "share of the topic, per cent",
    "lift": "lift: share of the topic / of all rows",
    "entropy": "share of the topic, per cent,\nless what topics have in common",
}


def topics(model: Any, *, n_features: int = 8, by: str = "share", figure: Figure | None = None) -> Figure:
    """Draw the first features of all topics, each on axes of its own.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    n_features : int, default=8
        Features of each topic.
    by : {"share", "lift", "entropy"}, default="share"
        As in `topic_features`.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    n_topics = len(model.components_)
    n_columns = min(n_topics, MOST_COLUMNS)
    n_lines = -(-n_topics // n_columns)
    figure = new_figure(figure, width=2.9 * n_columns, height=n_lines * (0.9 + 0.22 * n_features))
    for k in range(n_topics):
        ax = figure.add_subplot(n_lines, n_columns, k + 1)
        topic_features(model, k, n_features=n_features, by=by, ax=ax)
        if k + n_columns < n_topics:  # the lowest of a column tells what the bars mean
            ax.set_xlabel("")
    return figure


def topic_features(model: Any, topic: int, *, n_features: int = 10, by: str = "share", ax: Axes | None = None) -> Axes:
    """Draw the first features of a topic as bars.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    topic : int
        Number of the topic, from 0.
    n_features : int, default=10
    by : {"share", "lift", "entropy"}, default="share"
        What the features are ranked and drawn by: their share of the topic; how many times as large that is as their
        share of all rows; or their share, weighed down where a feature is spread over the topics, to nothing where it
        says nothing about them. The weight is 1 - H / log K, H being the entropy of the topic given the feature, all
        topics being as frequent. Lift ranks only features that have at least a tenth of the largest share, because rare
        ones have large lifts by chance.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    if by not in AXES:
        raise ValueError(f"by must be 'share', 'lift' or 'entropy', but it is {by!r}.")
    if not 0 <= topic < len(model.components_):
        raise ValueError(f"topic must be from 0 to {len(model.components_) - 1}, but it is {topic!r}.")
    shares = np.asarray(model.components_[topic])
    heights = _lifts(model, shares) if by == "lift" else 100 * shares * (_weights(model) if by == "entropy" else 1.0)
    top = np.argsort(-heights, kind="stable")[:n_features]
    top = top[heights[top] > 0]
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(top))
    ax.barh(np.arange(len(top)), heights[top], color=COLOURS[0])
    ax.set_yticks(np.arange(len(top)), [_feature_name(model, int(v)) for v in top])
    ax.invert_yaxis()
    ax.set_xlabel(AXES[by])
    ax.set_title(f"topic {topic}", loc="left", fontsize="medium")
    tidy_bars(ax)
    return ax


def _lifts(model: Any, shares: Array) -> Array:
    """Return the lift of each feature in a topic, zero for those that are too rare in it; shares: (V,)."""
    common = model.weights_ @ model.cluster_topics_ @ model.components_  # (V,)
    is_listed = (shares >= 0.1 * shares.max()) & (common > 0)
    lifts: Array = np.divide(shares, common, out=np.zeros_like(shares), where=is_listed)
    return lifts


def _weights(model: Any) -> Array:
    """Return 1 for features that a single topic has, 0 for those that all topics have alike, (V,)."""
    topics = np.asarray(model.components_)
    if len(topics) == 1:
        return np.ones(topics.shape[1])
    sums = topics.sum(axis=0)
    given_feature = np.divide(topics, sums, out=np.full_like(topics, 1 / len(topics)), where=sums > 0)  # (K, V)
    weights: Array = np.maximum(1 - entr(given_feature).sum(axis=0) / np.log(len(topics)), 0.0)
    return weights


def _feature_name(model: Any, v: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return short_name(f"feature {v}" if names is None else names[v])
