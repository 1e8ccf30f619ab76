"""Rows in topic space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from mmpca.plots.style import COLOURS, MARKERS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

MOST_ROWS = 5000  # drawn: more only make ink
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # of the simplex of three topics


def topic_space(model: Any, X: Any, *, clusters: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw rows by their topic shares, in the colours of their clusters, each cluster's number at its centre.

    Three topics make a triangle in which nothing is lost: a row is the nearer to a corner the more it has of the topic
    there. Two topics make a line for each cluster. More topics are projected linearly, on the plane that keeps the
    clusters apart best (Fisher's discriminants); arrows show in which direction each topic grows.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows; of more than 5,000 as many are drawn, evenly chosen, and the title says so.
    clusters : array of int, shape (n_samples,), optional
        Clusters of the rows, e.g. `labels_` for the X that was fitted; predicted by default.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    shares, groups = _sample(model, X, clusters)
    ax = new_axes(ax, width=4.6, height=4.2)
    n_topics = shares.shape[1]
    draw = {1: _draw_line, 2: _draw_line, 3: _draw_simplex}.get(n_topics, _draw_plane)
    draw(ax, shares, groups)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows > len(shares):
        ax.set_title(f"{len(shares):,} of {n_rows:,} rows", loc="left", fontsize="medium")
    return ax


def _sample(model: Any, X: Any, clusters: ArrayLike | None) -> tuple[Array, NDArray[np.int64]]:
    """Return topic shares, (n, K), and clusters, (n,), of rows that are evenly chosen if there are too many."""
    groups = np.asarray(model.predict(X) if clusters is None else clusters, dtype=np.int64)
    shares = np.asarray(model.transform(X), dtype=np.float64)
    if groups.shape != (len(shares),):
        raise ValueError(f"clusters must have one entry for each of the {len(shares)} rows, but has {groups.shape}.")
    chosen = np.unique(np.linspace(0, len(shares) - 1, min(len(shares), MOST_ROWS)).round().astype(int))
    return shares[chosen], groups[chosen]


def _draw_points(ax: Axes, places: Array, groups: NDArray[np.int64]) -> None:
    """Draw rows and the numbers of their clusters; places: (n, 2)."""
    size = 14 if len(places) <= 1000 else 5
    for q in np.unique(groups):
        own = places[groups == q]
        # Eight colours, then the same ones with other markers.
        style: dict[str, Any] = {
            "color": COLOURS[q % len(COLOURS)],
            "marker": MARKERS[q // len(COLOURS) % len(MARKERS)],
        }
        ax.scatter(own[:, 0], own[:, 1], s=size, alpha=0.75, linewidths=0, **style)
    for q in np.unique(groups):
        centre = np.median(places[groups == q], axis=0)
        frame: dict[str, Any] = {
            "boxstyle": "round,pad=0.2",
            "facecolor": "white",
            "edgecolor": "0.4",
            "linewidth": 0.8,
        }
        ax.text(centre[0], centre[1], str(q), ha="center", va="center", fontsize="small", bbox=frame, zorder=4)


def _draw_simplex(ax: Axes, shares: Array, groups: NDArray[np.int64]) -> None:
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.4", linewidth=1)
    _draw_points(ax, shares @ CORNERS, groups)
    for k, (corner, at) in enumerate(zip(CORNERS, ("top", "top", "bottom"), strict=True)):
        shift = -6 if at == "top" else 6
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": at}
        ax.annotate(f"topic {k}", (corner[0], corner[1]), xytext=(0, shift), **place)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(0.12)


def _draw_line(ax: Axes, shares: Array, groups: NDArray[np.int64]) -> None:
    """Draw a lane for each cluster, rows spread over its height so that they can be told apart."""
    spread = 0.7 * (np.argsort(np.argsort(shares[:, -1], kind="stable")) * 0.618034 % 1 - 0.5)
    n_clusters = int(groups.max()) + 1
    _draw_points(ax, np.column_stack([shares[:, -1], groups + spread]), groups)
    ax.set_ylim(n_clusters - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_yticks(np.arange(n_clusters))
    ax.set_xlabel(f"share of topic {shares.shape[1] - 1}")
    ax.set_ylabel("cluster")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_plane(ax: Axes, shares: Array, groups: NDArray[np.int64]) -> None:
    axes, n_found = _directions(shares, groups)  # (K, 2)
    places = (shares - shares.mean(axis=0)) @ axes
    _draw_points(ax, places, groups)
    # What a share of one more of a topic does, without its part that all topics share: shares sum to one.
    arrows = axes - axes.mean(axis=0)
    longest = (np.abs(arrows) / _or_one(np.abs(places).max(axis=0))).max()
    arrows *= 0.95 / _or_one(longest)  # all of them fit
    ax.update_datalim(1.2 * arrows)
    for k, (x, y) in enumerate(arrows.tolist()):
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": "0.35", "linewidth": 1}, zorder=3)
        # Beside the tip, away from the middle: a cluster's number may cover the tip itself.
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "left" if x > 0 else "right", "va": "center"}
        shift = (10 if x > 0 else -10, 5 if y > 0 else -5)
        ax.annotate(f"topic {k}", (x, y), xytext=shift, fontsize="small", color="0.25", zorder=5, **style)
    names = ("first discriminant", "second discriminant")[:n_found] + ("most other variation",) * (2 - n_found)
    ax.set_xlabel(f"{names[0]} of the topic shares")
    ax.set_ylabel(names[1])
    ax.margins(0.08)
    ax.autoscale_view()
    ax.spines[["top", "right"]].set_visible(False)


def _or_one(width: ArrayLike) -> Array:
    """Return a width to divide by: 1 where there is none."""
    given = np.asarray(width, dtype=np.float64)
    return np.where(given > 1e-9, given, 1.0)


def _directions(shares: Array, groups: NDArray[np.int64]) -> tuple[Array, int]:
    """Return two directions in topic space, (K, 2), and how many of them are discriminants of the clusters.

    Fewer than three clusters have fewer than two discriminants: what varies most is taken for the rest.
    """
    centred = shares - shares.mean(axis=0)
    found = _discriminants(shares, groups)
    rest = centred - centred @ found @ np.linalg.pinv(found) if found.size else centred
    width = float(_or_one(rest.std()))  # to make the rest as wide as the discriminants
    main = np.linalg.svd(rest, full_matrices=False)[2].T / width  # (K, K)
    directions = np.column_stack([found, main])[:, :2]
    # Signs are a matter of taste, but must not change from machine to machine.
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(2)])
    return directions * np.where(signs == 0, 1.0, signs), found.shape[1]


def _discriminants(shares: Array, groups: NDArray[np.int64]) -> Array:
    """Return Fisher's discriminants, two at the most, (K, 0 to 2); along each, clusters are about one wide."""
    members = np.equal.outer(np.unique(groups), groups)  # (Q, N)
    means = members @ shares / members.sum(axis=1, keepdims=True)  # (Q, K)
    within = shares - members.T @ means
    between = members.T @ means - shares.mean(axis=0)
    # A little is added because shares sum to one, and because clusters may have no width at all.
    width = within.T @ within / len(shares)
    width += (1e-6 * np.trace(width) + 1e-9) * np.eye(shares.shape[1])
    values, vectors = linalg.eigh(between.T @ between / len(shares), width)
    n_found = min(2, int((values > 1e-6).sum()))
    found: Array = vectors[:, ::-1][:, :n_found]
    return found
