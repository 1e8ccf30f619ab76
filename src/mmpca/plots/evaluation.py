"""Figures of how well clusters agree with known classes, and how stable they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.evaluation import matched_confusion
from mmpca.evaluation.partitions import DISSOLVED, STABLE
from mmpca.plots.style import COLORS, EMPHASIS, heat_map, new_axes, short_name, tidy_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NUMBERED_CELLS = 400  # numbers in a larger table would be too small to read


def confusion(known: Sequence[object] | NDArray[Any], clusters: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw a table of known classes against clusters.

    Each cell shows a number of rows; its color is the share of the class that falls into the cluster. Classes are
    matched to clusters one to one and sorted accordingly, so that agreement appears as a diagonal.

    Parameters
    ----------
    known : sequence of length n_samples
        Known class of each row.
    clusters : array of int, shape (n_samples,)
        Cluster of each row, such as `labels_`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the table.

    Raises
    ------
    ValueError
        The two arguments differ in length.

    Examples
    --------
    >>> from mmpca import plots
    >>> ax = plots.confusion(["wet", "dry", "dry", "dry"], [1, 0, 0, 1])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['dry', 'wet']
    """
    matched = matched_confusion([str(name) for name in known], clusters)
    n_classes, n_clusters = matched.table.shape
    # Columns in the order of the clusters; a class takes the position of its match, and classes without one come last.
    columns = np.argsort(matched.clusters, kind="stable")
    rows = np.append(columns[columns < n_classes], np.arange(n_clusters, n_classes))
    table = matched.table[np.ix_(rows, columns)]
    ax = new_axes(ax, width=2.2 + 0.5 * n_clusters, height=1.0 + 0.32 * n_classes)
    shares = table / table.sum(axis=1, keepdims=True)
    texts = [[f"{number:,}" if number else "" for number in row] for row in table.tolist()]
    names = [short_name(name) for name in matched.classes[rows]]
    heat_map(ax, shares, names, matched.clusters[columns], texts if table.size <= MAX_NUMBERED_CELLS else ())
    ax.set_xlabel("cluster")
    ax.set_ylabel("known class")
    ax.set_title("number of rows; color: share of the class", loc="left", fontsize="medium")
    return ax


def stability(result: Any, *, names: Sequence[object] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how well each cluster is recovered in refits: a dot for the mean, a line for the interquartile range.

    Parameters
    ----------
    result : Stability or array of shape (n_refits, n_clusters) or (n_clusters,)
        The result of :func:`mmpca.evaluation.stability`, or Jaccard similarities (0 to 1) between each cluster and its
        match, one row for each refit or a single row. NaN marks a missing value.
    names : sequence of length n_clusters, optional
        Names of the clusters; by default their indices.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with a line for each cluster.

    Raises
    ------
    ValueError
        A similarity is outside the range 0 to 1, or `names` has the wrong length.

    Examples
    --------
    >>> from mmpca import plots
    >>> ax = plots.stability([[0.9, 0.5], [0.8, 0.4]], names=["wet", "dry"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['wet', 'dry']
    """
    values = np.atleast_2d(np.asarray(getattr(result, "jaccard", result), dtype=np.float64))  # (R, Q)
    n_clusters = values.shape[1]
    if names is not None and len(names) != n_clusters:
        raise ValueError(f"names must have one entry for each of the {n_clusters} clusters, but has {len(names)}.")
    if values.ndim != 2 or np.nanmin(values, initial=0) < 0 or np.nanmax(values, initial=1) > 1:
        raise ValueError("result must hold numbers from 0 to 1, in shape (n_refits, n_clusters) or (n_clusters,).")
    ax = new_axes(ax, width=3.6 if names is None else 5.0, height=0.9 + 0.28 * n_clusters)
    ax.axvspan(0.0, DISSOLVED, color="0.94", zorder=0)
    ax.axvline(STABLE, color="0.6", linewidth=1, linestyle="--", zorder=1)
    for q in range(n_clusters):
        seen = values[np.isfinite(values[:, q]), q]
        if seen.size:
            color = COLORS[0] if seen.mean() >= DISSOLVED else EMPHASIS
            ax.plot(np.quantile(seen, [0.25, 0.75]), [q, q], color=color, linewidth=2, solid_capstyle="butt")
            ax.plot(seen.mean(), q, marker="o", markersize=6, color=color)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(n_clusters - 0.5, -0.5)
    ax.set_yticks(np.arange(n_clusters), [str(q) if names is None else short_name(names[q]) for q in range(n_clusters)])
    ax.set_xlabel("Jaccard similarity in refits\n(gray: dissolved;\nright of the line: stable)")
    ax.set_ylabel("cluster")
    tidy_bars(ax)
    return ax
