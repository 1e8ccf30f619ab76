"""What a fitted model says: topics, clusters, and how the search went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmpca.plots.style import COLOURS, SEQUENTIAL, new_axes, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MOST_NUMBERED = 200  # cells of a heat map that can bear a number each
NAME_LENGTH = 24
MOST_COLUMNS = 4  # of topics beside each other


def cluster_topics(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the topic shares of each cluster as a heat map, with numbers unless there are too many.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    shares = np.asarray(model.cluster_topics_)
    n_clusters, n_topics = shares.shape
    ax = new_axes(ax, width=1.8 + 0.55 * n_topics, height=1.1 + 0.32 * n_clusters)
    ax.imshow(shares, cmap=f"{SEQUENTIAL}_r", vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_xticks(np.arange(n_topics), [str(k) for k in range(n_topics)])
    ax.set_yticks(np.arange(n_clusters), [str(q) for q in range(n_clusters)])
    ax.set_xlabel("topic")
    ax.set_ylabel("cluster")
    ax.set_title("share of each topic, per cent", loc="left", fontsize="medium")
    if shares.size <= MOST_NUMBERED:
        for (q, k), share in np.ndenumerate(shares):
            colour = "white" if share > 0.5 else "black"
            ax.text(k, q, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize="small")
    return ax


def topics(model: Any, *, n_features: int = 8, by: str = "share", figure: Figure | None = None) -> Figure:
    """Draw the first features of all topics, each on axes of its own.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    n_features : int, default=8
        Features of each topic.
    by : {"share", "lift"}, default="share"
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
    by : {"share", "lift"}, default="share"
        What the features are ranked and drawn by: their share of the topic, or how many times as large that is as their
        share of all rows. Lift ranks only features that have at least a tenth of the largest share, because rare ones
        have large lifts by chance.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    if by not in ("share", "lift"):
        raise ValueError(f"by must be 'share' or 'lift', but it is {by!r}.")
    if not 0 <= topic < len(model.components_):
        raise ValueError(f"topic must be from 0 to {len(model.components_) - 1}, but it is {topic!r}.")
    shares = np.asarray(model.components_[topic])
    heights = shares if by == "share" else _lifts(model, shares)
    top = np.argsort(-heights, kind="stable")[:n_features]
    top = top[heights[top] > 0]
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(top))
    ax.barh(np.arange(len(top)), 100 * heights[top] if by == "share" else heights[top], color=COLOURS[0])
    ax.set_yticks(np.arange(len(top)), [_feature_name(model, int(v)) for v in top])
    ax.invert_yaxis()
    ax.set_xlabel("share of the topic, per cent" if by == "share" else "lift: share of the topic / of all rows")
    ax.set_title(f"topic {topic}", loc="left", fontsize="medium")
    _tidy_bars(ax)
    return ax


def bound_history(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the bound along the epochs of the best start, and where the other starts ended.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    bounds = np.asarray(model.bound_history_)
    ends = np.array([start.bound for start in model.starts_])
    best = int(ends.argmax())
    ax = new_axes(ax)
    # From the best end: bounds of millions that differ by a few nats would have equal labels.
    ax.plot(np.arange(len(bounds)), bounds - ends[best], color=COLOURS[0], marker="o", markersize=4, label="best start")
    if len(ends) > 1:
        epochs = [start.n_epochs for start in model.starts_]
        places = np.delete(epochs, best), np.delete(ends - ends[best], best)
        ax.plot(*places, linestyle="none", marker="s", markersize=5, color=COLOURS[1], label="end of another start")
        ax.legend(frameon=False, fontsize="small", loc="lower right")
    ax.set_xlabel("epoch")
    ax.set_ylabel("bound, nats from the best end")
    ax.locator_params(axis="x", integer=True)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.set_title(f"best bound: {ends[best]:,.1f}", loc="left", fontsize="medium")
    tidy(ax)
    return ax


def cluster_sizes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the number of rows in each cluster as bars, each with its number.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    sizes = np.bincount(model.labels_, minlength=len(model.weights_))
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(sizes))
    bars = ax.barh(np.arange(len(sizes)), sizes, color=COLOURS[0])
    ax.bar_label(bars, labels=[f"{size:,}" for size in sizes.tolist()], padding=3, fontsize="small")
    ax.margins(x=0.15)
    ax.set_yticks(np.arange(len(sizes)), [str(q) for q in range(len(sizes))])
    ax.invert_yaxis()
    ax.set_xlabel("rows")
    ax.set_ylabel("cluster")
    _tidy_bars(ax)
    return ax


def _lifts(model: Any, shares: Array) -> Array:
    """Return the lift of each feature in a topic, zero for those that are too rare in it; shares: (V,)."""
    common = model.weights_ @ model.cluster_topics_ @ model.components_  # (V,)
    is_listed = (shares >= 0.1 * shares.max()) & (common > 0)
    lifts: Array = np.divide(shares, common, out=np.zeros_like(shares), where=is_listed)
    return lifts


def _feature_name(model: Any, v: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    name = f"feature {v}" if names is None else str(names[v])
    short = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
    return short.replace("$", r"\$")  # two dollars would be taken for a formula


def _tidy_bars(ax: Axes) -> None:
    tidy(ax)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.tick_params(axis="y", length=0)
