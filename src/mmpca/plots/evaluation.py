"""How clusters agree with what is known, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from mmpca.evaluation.stability import DISSOLVED, STABLE
from mmpca.plots.style import COLOURS, DARK, EMPHASIS, SEQUENTIAL, new_axes, short_name, tidy_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERED = 400  # cells of the table that can bear a number each


def confusion(known: Sequence[object] | NDArray[Any], clusters: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw how many rows of each known class are in each cluster; shades are shares of the class.

    Classes stand in the order of the clusters that they match best, one to one, so that agreement shows as a diagonal.

    Parameters
    ----------
    known : sequence of length n_samples
        Classes of the rows.
    clusters : array of int, shape (n_samples,)
        Their clusters, from 0, e.g. `labels_`.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    names, table = _table(known, np.asarray(clusters))
    n_classes, n_clusters = table.shape
    ax = new_axes(ax, width=2.2 + 0.5 * n_clusters, height=1.0 + 0.32 * n_classes)
    shares = table / table.sum(axis=1, keepdims=True)
    ax.imshow(shares, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_xticks(np.arange(n_clusters), [str(q) for q in range(n_clusters)])
    ax.set_yticks(np.arange(n_classes), [short_name(name) for name in names])
    ax.set_xlabel("cluster")
    ax.set_ylabel("known class")
    ax.set_title("rows; shades: share of the class", loc="left", fontsize="medium")
    if table.size <= MOST_NUMBERED:
        for y, x in zip(*table.nonzero(), strict=True):
            colour = "white" if shares[y, x] > DARK else "black"
            ax.text(x, y, f"{table[y, x]:,}", ha="center", va="center", color=colour, fontsize="small")
    return ax


def stability(result: Any, *, names: Sequence[object] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how well each cluster was found again in refits: a dot for the mean, a line for the middle half.

    Parameters
    ----------
    result : Stability or array of shape (n_refits, n_clusters) or (n_clusters,)
        What :func:`mmpca.evaluation.stability` returns, or similarities from 0 to 1 of each cluster and its
        counterpart: for each refit, or one number for each cluster. NaN where there is nothing to tell.
    names : sequence of length n_clusters, optional
        Of the clusters; by default their numbers.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    values = np.atleast_2d(np.asarray(getattr(result, "jaccard", result), dtype=np.float64))  # (R, Q)
    n_clusters = values.shape[1]
    if names is not None and len(names) != n_clusters:
        raise ValueError(f"names must have one entry for each of the {n_clusters} clusters, but has {len(names)}.")
    if values.ndim != 2 or np.nanmin(values, initial=0) < 0 or np.nanmax(values, initial=1) > 1:
        raise ValueError("result must have numbers from 0 to 1, of shape (n_refits, n_clusters) or (n_clusters,).")
    ax = new_axes(ax, width=3.6, height=0.9 + 0.28 * n_clusters)
    ax.axvspan(0.0, DISSOLVED, color="0.94", zorder=0)
    ax.axvline(STABLE, color="0.6", linewidth=1, linestyle="--", zorder=1)
    for q in range(n_clusters):
        seen = values[np.isfinite(values[:, q]), q]
        if seen.size:
            colour = COLOURS[0] if seen.mean() >= DISSOLVED else EMPHASIS
            ax.plot(np.quantile(seen, [0.25, 0.75]), [q, q], color=colour, linewidth=2, solid_capstyle="butt")
            ax.plot(seen.mean(), q, marker="o", markersize=6, color=colour)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(n_clusters - 0.5, -0.5)
    ax.set_yticks(np.arange(n_clusters), [str(q) if names is None else short_name(names[q]) for q in range(n_clusters)])
    ax.set_xlabel("similarity when fitted anew\n(grey: dissolved; right of the line: stable)")
    ax.set_ylabel("cluster")
    tidy_bars(ax)
    return ax


def _table(known: Sequence[object] | NDArray[Any], clusters: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """Return names of the classes and how many of their rows are in each cluster, in the order of their matches."""
    if len(known) != len(clusters) or clusters.ndim != 1 or not len(clusters):
        raise ValueError(
            f"known and clusters must have one entry for each row, but there are {len(known)} and {len(clusters)}."
        )
    if clusters.dtype.kind not in "iu" or clusters.min() < 0:
        raise ValueError("clusters must be whole numbers from 0, such as labels_.")
    names, codes = np.unique(np.array([str(name) for name in known], dtype=object), return_inverse=True)
    table = np.zeros((len(names), int(clusters.max()) + 1), dtype=np.int64)
    np.add.at(table, (codes, clusters), 1)
    matched, to = linear_sum_assignment(-table)
    place = np.full(len(names), float(table.shape[1]))  # classes without a cluster of their own come last
    place[matched] = to
    order = np.argsort(place, kind="stable")
    return [str(name) for name in names[order]], table[order]
