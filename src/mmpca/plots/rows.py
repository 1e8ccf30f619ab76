"""A map of the rows: rows with similar topic proportions lie close together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from mmpca.plots.style import COLORS, MARKERS, new_axes, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

N_LANDMARKS = 2000  # rows that t-SNE places; the others are placed between the landmarks that they resemble
N_NEAREST = 3  # landmarks that determine the position of another row
N_ITERATIONS = 500
PERPLEXITY = 30.0
MAX_DRAWN = 20_000  # more points would only cover each other


def row_layout(shares: ArrayLike, clusters: ArrayLike, *, random_state: int = 0) -> Array:
    """Place rows in the unit square, rows with similar topic proportions close together.

    t-SNE of the square roots of the proportions (so that distances are Hellinger distances), started from the centers
    of the clusters: the arrangement of clusters is meaningful, and the same rows always give the same map. With more
    than 2,000 rows, t-SNE places 2,000 of them, and every other row lies between the three that it resembles most.
    The clusters only determine the start. Clusters that overlap in topic space overlap on the map.

    Parameters
    ----------
    shares : array of shape (n_samples, n_topics)
        Topic proportions of each row, from :meth:`mmpca.MMPCA.transform`.
    clusters : array of int, shape (n_samples,)
        Cluster of each row.
    random_state : int, default=0
        Seed for the choice of the rows that t-SNE places.

    Returns
    -------
    array of shape (n_samples, 2)
        Positions between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.plots.rows import row_layout
    >>> shares = np.repeat([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], 10, axis=0)
    >>> positions = row_layout(shares, np.repeat([0, 1], 10))
    >>> bool(np.linalg.norm(positions[0] - positions[10]) > np.linalg.norm(positions[0] - positions[1]))
    True
    """
    from sklearn.neighbors import NearestNeighbors

    roots = np.sqrt(np.asarray(shares, dtype=np.float64))  # (N, K)
    groups = np.asarray(clusters)
    n_rows = len(roots)
    centers = np.array([roots[groups == q].mean(axis=0) for q in np.unique(groups)])
    middle = centers.mean(axis=0)
    axes = np.linalg.svd(centers - middle, full_matrices=False)[2][:2]  # main directions between clusters
    plane = np.zeros((n_rows, 2))
    plane[:, : len(axes)] = (roots - middle) @ axes.T
    rng = np.random.default_rng(random_state)
    plane += 1e-3 * max(float(plane.std()), 1e-9) * rng.standard_normal(plane.shape)  # equal rows must not coincide
    landmarks = np.sort(rng.choice(n_rows, min(n_rows, N_LANDMARKS), replace=False))
    positions = plane if n_rows < 4 else _embed(roots[landmarks], plane[landmarks])
    if n_rows > len(landmarks):
        distances, nearest = NearestNeighbors(n_neighbors=N_NEAREST).fit(roots[landmarks]).kneighbors(roots)
        weights = 1.0 / (distances + 1e-3)
        weights /= weights.sum(axis=1, keepdims=True)
        scatter = 0.01 * positions.std() * rng.standard_normal((n_rows, 2))  # else rows would lie on lines
        placed = np.einsum("ij,ijd->id", weights, positions[nearest]) + scatter
        placed[landmarks] = positions
        positions = placed
    low, high = positions.min(axis=0), positions.max(axis=0)
    return np.asarray((positions - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5)


def _embed(roots: Array, plane: Array) -> Array:
    """Return the t-SNE of some rows from positions in the plane of the clusters; roots: (n, K), plane: (n, 2)."""
    from sklearn.manifold import TSNE

    start = plane / max(float(plane[:, 0].std()), 1e-12) * 1e-4  # the scale that t-SNE expects
    embedding = TSNE(
        init=start,
        perplexity=min(PERPLEXITY, (len(roots) - 1) / 3),
        max_iter=N_ITERATIONS,
        random_state=0,
    )
    with threadpool_limits(1):  # its sums depend on the number of threads
        return np.asarray(embedding.fit_transform(roots), dtype=np.float64)


def row_map(
    model: Any,
    X: Any,
    *,
    clusters: ArrayLike | None = None,
    color_by: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of the rows, rows with similar topic proportions close together, with the names of the clusters.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows to draw. If there are more than 20,000, an evenly spaced subset is drawn and the title says so.
    clusters : array of int, shape (n_samples,), optional
        Cluster of each row, such as `labels_` for the fitted X; predicted by default.
    color_by : array of shape (n_samples,), optional
        Numbers to color the rows by, such as probabilities, with a color bar; by default rows are colored by cluster.
    names : sequence of str, length n_clusters, optional
        Names of the clusters; by default their numbers.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the map.

    Raises
    ------
    ValueError
        `clusters`, `color_by` or `names` has the wrong length.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> ax = plots.row_map(model, data.X, clusters=model.labels_)
    >>> len(ax.collections)
    6
    """
    groups = np.asarray(model.predict(X) if clusters is None else clusters, dtype=np.int64)
    shares = np.asarray(model.transform(X), dtype=np.float64)  # (N, K)
    values = None if color_by is None else np.asarray(color_by, dtype=np.float64)
    n_rows = len(shares)
    for name, given, length in (
        ("clusters", groups, n_rows),
        ("color_by", values, n_rows),
        ("names", names, len(model.weights_)),
    ):
        if given is not None and len(given) != length:
            raise ValueError(f"{name} must have {length} entries, but it has {len(given)}.")
    ax = new_axes(ax, width=6.4, height=5.4)
    if n_rows > MAX_DRAWN:
        chosen = np.linspace(0, n_rows - 1, MAX_DRAWN).round().astype(int)
        shares, groups = shares[chosen], groups[chosen]
        values = None if values is None else values[chosen]
        ax.set_title(f"{MAX_DRAWN:,} of {n_rows:,} rows", loc="left", fontsize="medium")
    positions = row_layout(shares, groups)
    size = 16 if len(positions) <= 1000 else 5
    if values is None:
        for q in np.unique(groups):
            own = positions[groups == q]
            # Eight colors, then the same ones with another marker.
            color, marker = COLORS[q % len(COLORS)], MARKERS[q // len(COLORS) % len(MARKERS)]
            ax.scatter(own[:, 0], own[:, 1], s=size, alpha=0.75, linewidths=0, color=color, marker=marker)
    else:
        points = ax.scatter(positions[:, 0], positions[:, 1], c=values, s=size, linewidths=0, cmap="viridis")
        ax.figure.colorbar(points, ax=ax, shrink=0.8)
    frame = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.4", "linewidth": 0.8, "alpha": 0.85}
    for q in np.unique(groups):
        x, y = np.median(positions[groups == q], axis=0)
        name = str(q) if names is None else short_name(names[q])
        ax.text(x, y, name, ha="center", va="center", fontsize="small", bbox=frame, zorder=4)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_color("0.85")
    return ax
