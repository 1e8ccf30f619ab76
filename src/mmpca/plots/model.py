"""What a fitted model says of its clusters, and how the search went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mmpca.plots.style import COLOURS, DARK, SEQUENTIAL, new_axes, tidy, tidy_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERED = 200  # cells of a heat map that can bear a number each


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
    ax.imshow(shares, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_xticks(np.arange(n_topics), [str(k) for k in range(n_topics)])
    ax.set_yticks(np.arange(n_clusters), [str(q) for q in range(n_clusters)])
    ax.set_xlabel("topic")
    ax.set_ylabel("cluster")
    ax.set_title("share of each topic, per cent", loc="left", fontsize="medium")
    if shares.size <= MOST_NUMBERED:
        for (q, k), share in np.ndenumerate(shares):
            colour = "white" if share > DARK else "black"
            ax.text(k, q, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize="small")
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
    tidy_bars(ax)
    return ax
