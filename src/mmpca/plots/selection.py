"""Figures of a search over the numbers of clusters and topics, and of merging clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy

from mmpca.plots.style import COLORS, EMPHASIS, MARKERS, frame, heat_map, new_axes, short_name, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def criterion_heatmap(
    results: Mapping[str, ArrayLike], *, criterion: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a criterion for every combination of numbers of clusters and topics, with the best one framed.

    Parameters
    ----------
    results : mapping
        `MMPCASearch.results_`, or any table with the columns `n_clusters`, `n_topics` and the criterion.
    criterion : str, optional
        Column to draw, where larger values are better; by default the first of "shares", "predictive" and "icl" in
        the results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the heat map; each cell shows how far it falls short of the best one, in nats.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from mmpca import plots
    >>> results = {"n_clusters": [2, 3], "n_topics": [2, 2], "icl": [-130.0, -120.0]}
    >>> [text.get_text() for text in plots.criterion_heatmap(results).texts]
    ['10', 'best']
    """
    criterion, n_clusters, n_topics, behind = shortfall(results, criterion)
    rows, columns = np.unique(n_topics), np.unique(n_clusters)
    table = np.full((len(rows), len(columns)), np.nan)
    table[np.searchsorted(rows, n_topics), np.searchsorted(columns, n_clusters)] = behind
    ax = new_axes(ax, width=1.6 + 0.75 * len(columns), height=1.2 + 0.55 * len(rows))
    # A few nats decide, yet distant cells are thousands behind; a logarithmic scale shows both.
    depth = np.log10(1.0 + table)
    deepest = max(float(np.nanmax(depth)), 1e-9)
    heat_map(ax, 1 - depth / deepest, rows, columns, [[loss_text(nats) for nats in row] for row in table], "lower")
    ax.set_xlabel("clusters")
    ax.set_ylabel("topics")
    ax.set_title(f"{criterion}: nats below the best", loc="left", fontsize="medium")
    y, x = np.unravel_index(np.nanargmin(table), table.shape)
    ax.add_patch(frame(float(x), float(y)))
    return ax


def criterion_curves(results: Mapping[str, ArrayLike], *, criterion: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a criterion against the number of clusters, one curve per number of topics, with the maximum marked.

    Parameters
    ----------
    results : mapping
        `MMPCASearch.results_`, or any table with the columns `n_clusters`, `n_topics` and the criterion.
    criterion : str, optional
        Column to draw, where larger values are better; by default the first of "shares", "predictive" and "icl" in
        the results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curves, in nats relative to the best, with standard errors where the results have them.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from mmpca import plots
    >>> results = {"n_clusters": [2, 3, 2, 3], "n_topics": [2, 2, 3, 3], "icl": [-130.0, -120.0, -150.0, -125.0]}
    >>> [text.get_text() for text in plots.criterion_curves(results).texts]
    ['3 clusters, 2 topics']
    """
    criterion, n_clusters, n_topics, behind = shortfall(results, criterion)
    # Errors of "predictive" belong to numbers of topics, not to points of a curve.
    error = np.asarray(results["shares_error"]) if criterion == "shares" and "shares_error" in results else None
    ax = new_axes(ax)
    for number, k in enumerate(np.unique(n_topics)):
        at = np.flatnonzero(n_topics == k)
        at = at[np.argsort(n_clusters[at])]
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        ax.plot(n_clusters[at], -behind[at], color=color, marker=marker, markersize=4, linewidth=1.5, label=str(k))
        if error is not None:
            ax.errorbar(n_clusters[at], -behind[at], yerr=error[at], fmt="none", ecolor=color, elinewidth=1)
    best = int(behind.argmin())
    ax.plot(
        n_clusters[best], 0.0, marker="o", markersize=13, markerfacecolor="none", markeredgecolor=EMPHASIS, zorder=5
    )
    text = f"{n_clusters[best]} clusters, {n_topics[best]} topics"
    ax.annotate(text, (n_clusters[best], 0.0), xytext=(0, 11), textcoords="offset points", ha="center", color=EMPHASIS)
    ax.set_yscale("symlog", linthresh=10)
    ax.margins(y=0.12)
    ax.set_xticks(np.unique(n_clusters))
    ax.set_xlabel("clusters")
    ax.set_ylabel(f"{criterion}, relative to the best (nats)")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.legend(title="topics", frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax)
    return ax


def dendrogram(path: Any, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the order in which clusters merge; the height of a merge is the bound lost so far.

    Parameters
    ----------
    path : MergePath
        The result of :meth:`mmpca.MMPCA.merge_path`.
    names : sequence of str, optional
        Names of the clusters; by default their indices.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the tree.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> len(plots.dendrogram(model.merge_path()).get_xticklabels())
    2
    """
    n_clusters = len(path.bounds)
    ax = new_axes(ax, width=max(3.2, 0.55 * n_clusters + 1.2), height=3.6 if names is None else 4.8)
    labels = [str(q) for q in range(n_clusters)] if names is None else [short_name(name) for name in names]
    if n_clusters > 1:
        hierarchy.dendrogram(
            path.linkage, labels=labels, ax=ax, color_threshold=0, above_threshold_color=COLORS[0], leaf_font_size=9,
            leaf_rotation=0 if names is None else 90,
        )  # fmt: skip
    else:
        ax.set_xticks([0], labels)
    ax.set_xlabel("cluster")
    ax.set_ylabel("loss of the bound (nats)")
    tidy(ax)
    return ax


def loss_text(nats: float) -> str:
    """Return how far a cell is below the best one, "best" for that one itself, nothing for NaN."""
    if np.isnan(nats):
        return ""
    return "best" if nats == 0 else f"{nats:,.0f}" if nats >= 9.95 else f"{nats:.1f}"


def shortfall(
    results: Mapping[str, ArrayLike], criterion: str | None, name: str = "results"
) -> tuple[str, NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the criterion's name, the numbers of clusters and topics, and how far each fit is below the best one."""
    if criterion is None:
        criterion = next((name for name in ("shares", "predictive") if name in results), "icl")
    missing = {"n_clusters", "n_topics", criterion} - set(results)
    if missing:
        raise ValueError(f"{name} must have a column {sorted(missing)[0]!r}, but has only {sorted(results)}.")
    score = np.asarray(results[criterion], dtype=np.float64)
    return criterion, np.asarray(results["n_clusters"]), np.asarray(results["n_topics"]), score.max() - score
