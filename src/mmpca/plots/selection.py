"""How (Q, K) was chosen, and how clusters hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy

from mmpca.plots.style import COLOURS, DARK, EMPHASIS, MARKERS, SEQUENTIAL, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def criterion_heatmap(
    results: Mapping[str, ArrayLike], *, criterion: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a criterion over (Q, K), as nats behind the best cell, which is framed.

    Parameters
    ----------
    results : mapping
        `MMPCASearch.results_`, or any table with the columns `n_clusters`, `n_topics` and the criterion.
    criterion : str, optional
        Column to draw, larger is better; by default "predictive" if there is such a column, else "icl".
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    criterion = _criterion(results) if criterion is None else criterion
    n_clusters, n_topics, behind = _behind(results, criterion)
    rows, columns = np.unique(n_topics), np.unique(n_clusters)
    table = np.full((len(rows), len(columns)), np.nan)
    table[np.searchsorted(rows, n_topics), np.searchsorted(columns, n_clusters)] = behind
    ax = new_axes(ax, width=1.6 + 0.75 * len(columns), height=1.2 + 0.55 * len(rows))
    # Differences of a few nats decide, and far cells are thousands behind: a logarithmic scale shows both.
    image = ax.imshow(np.log10(1.0 + table), cmap=f"{SEQUENTIAL}_r", aspect="auto", origin="lower")
    ax.set_xticks(np.arange(len(columns)), [str(q) for q in columns])
    ax.set_yticks(np.arange(len(rows)), [str(k) for k in rows])
    ax.set_xlabel("clusters")
    ax.set_ylabel("topics")
    ax.set_title(f"{criterion}: nats behind the best", loc="left", fontsize="medium")
    deepest = max(float(np.nanmax(np.log10(1.0 + table))), 1e-9)
    for (y, x), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "white" if np.log10(1.0 + value) < (1 - DARK) * deepest else "black"
            ax.text(x, y, _nats(value), ha="center", va="center", color=colour, fontsize="small")
    y, x = np.unravel_index(np.nanargmin(table), table.shape)
    ax.add_patch(frame(float(x), float(y)))
    image.set_clim(0.0, deepest)
    return ax


def criterion_curves(results: Mapping[str, ArrayLike], *, criterion: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a criterion over the number of clusters, a curve for each number of topics, the maximum marked.

    Parameters
    ----------
    results : mapping
        As in `criterion_heatmap`.
    criterion : str, optional
        Column to draw, larger is better; by default "predictive" if there is such a column, else "icl".
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    criterion = _criterion(results) if criterion is None else criterion
    n_clusters, n_topics, behind = _behind(results, criterion)
    ax = new_axes(ax)
    for number, k in enumerate(np.unique(n_topics)):
        at = np.flatnonzero(n_topics == k)
        at = at[np.argsort(n_clusters[at])]
        style: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 4,
        }
        ax.plot(n_clusters[at], -behind[at], label=str(k), linewidth=1.5, **style)
    best = int(behind.argmin())
    ax.plot(
        n_clusters[best], 0.0, marker="o", markersize=13, markerfacecolor="none", markeredgecolor=EMPHASIS, zorder=5
    )
    told = f"{n_clusters[best]} clusters, {n_topics[best]} topics"
    ax.annotate(told, (n_clusters[best], 0.0), xytext=(0, 11), textcoords="offset points", ha="center", color=EMPHASIS)
    ax.set_yscale("symlog", linthresh=10)
    ax.margins(y=0.12)
    ax.set_xticks(np.unique(n_clusters))
    ax.set_xlabel("clusters")
    ax.set_ylabel(f"{criterion}, nats behind the best")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.legend(title="topics", frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax)
    return ax


def dendrogram(path: Any, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how clusters merge: the height is what the bound has lost.

    Parameters
    ----------
    path : MergePath
        From `MMPCA.merge_path`.
    names : sequence of str, optional
        Of the clusters; by default their numbers.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    n_clusters = len(path.bounds)
    ax = new_axes(ax, width=max(3.2, 0.55 * n_clusters + 1.2))
    labels = [str(q) for q in range(n_clusters)] if names is None else [str(name) for name in names]
    if n_clusters > 1:
        hierarchy.dendrogram(
            path.linkage, labels=labels, ax=ax, color_threshold=0, above_threshold_color=COLOURS[0], leaf_font_size=9
        )
    else:
        ax.set_xticks([0], labels)
    ax.set_xlabel("cluster")
    ax.set_ylabel("loss of the bound, nats")
    tidy(ax)
    return ax


def _criterion(results: Mapping[str, ArrayLike]) -> str:
    """Return the criterion to draw where none is named."""
    return "predictive" if "predictive" in results else "icl"


def _behind(results: Mapping[str, ArrayLike], criterion: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the cells and how far each is behind the best."""
    missing = {"n_clusters", "n_topics", criterion} - set(results)
    if missing:
        raise ValueError(f"results must have the column {sorted(missing)[0]!r}, but it has {sorted(results)}.")
    score = np.asarray(results[criterion], dtype=np.float64)
    return np.asarray(results["n_clusters"]), np.asarray(results["n_topics"]), score.max() - score


def _nats(value: float) -> str:
    return "best" if value == 0 else f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def frame(x: float, y: float) -> Any:
    """Return the frame of a cell of a heat map."""
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1.0, 1.0, fill=False, edgecolor=EMPHASIS, linewidth=2.5)
