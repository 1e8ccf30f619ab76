"""Maps of the rows: by topic proportions, and by principal coordinates of the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.backend import one_library_thread
from mmpca.counts import as_counts
from mmpca.io import CountTable
from mmpca.model.results import words_of
from mmpca.plots.style import draw_clusters, draw_names, new_axes

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
    with one_library_thread():  # its sums depend on the number of threads
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
        ax.set_title(f"{MAX_DRAWN:,} of {n_rows:,} {words_of(model).rows}", loc="left", fontsize="medium")
    positions = row_layout(shares, groups)
    draw_clusters(ax, positions, groups, values)
    draw_names(ax, positions, groups, names)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.set_xlabel(
        f"t-SNE of the topic proportions: similar {words_of(model).rows} lie close together", fontsize="small"
    )
    ax.spines[:].set_color("0.85")
    return ax


def principal_coordinates(X: Any, metric: str = "braycurtis") -> tuple[Array, Array]:
    """Return the first two principal coordinates of rows, (N, 2), and the shares of the variation that they show, (2,).

    Classical scaling of Bray-Curtis dissimilarities between relative abundances, or of Aitchison distances: Euclidean
    distances after a centered log-ratio transform, with 0.5 added to every count. The shares are of the positive
    eigenvalues. Relative abundances make rows of different totals comparable.

    Examples
    --------
    >>> positions, shares = principal_coordinates([[9, 1, 0], [8, 2, 0], [0, 1, 9], [0, 2, 8]])
    >>> bool(shares[0] > 0.9), bool(abs(positions[0, 0] - positions[2, 0]) > 0.5)
    (True, True)
    """
    from scipy.spatial.distance import pdist, squareform

    counts = as_counts(X).to_csr().toarray().astype(np.float64)  # (N, V)
    if metric == "braycurtis":
        distances = pdist(counts / counts.sum(axis=1, keepdims=True), "braycurtis")
    elif metric == "aitchison":
        logs = np.log(counts + 0.5)
        distances = pdist(logs - logs.mean(axis=1, keepdims=True))
    else:
        raise ValueError(f"metric must be 'braycurtis' or 'aitchison', but it is {metric!r}.")
    squares = squareform(distances) ** 2
    centered = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    with one_library_thread():  # the same figure on any number of threads
        values, vectors = np.linalg.eigh(centered)
    positions, shares = np.zeros((len(counts), 2)), np.zeros(2)
    for at, (value, axis) in enumerate(zip(values[::-1][:2], vectors.T[::-1][:2], strict=True)):
        if value > 0:
            positions[:, at] = axis * np.sign(axis[np.abs(axis).argmax()]) * np.sqrt(value)
            shares[at] = value / values[values > 0].sum()
    return positions, shares


def ordination(
    X: Any,
    clusters: ArrayLike,
    *,
    metric: str = "braycurtis",
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows by principal coordinates (PCoA), which do not depend on topics, colored by cluster.

    Next to :func:`topic_space`, it shows whether the dissimilarities that ecologists use also separate the clusters.

    Parameters
    ----------
    X : array-like, sparse matrix or CountTable of shape (n_samples, n_features)
        Counts. If there are more than 2,000 rows, an evenly spaced subset is drawn and the title says so.
    clusters : array of int, shape (n_samples,)
        Cluster of each row, such as `labels_` of a model.
    metric : {"braycurtis", "aitchison"}, default="braycurtis"
        Bray-Curtis dissimilarity of relative abundances, or Aitchison distance: Euclidean after a centered log-ratio
        transform, with 0.5 added to every count.
    names : sequence of str, length n_clusters, optional
        Names of the clusters; by default their numbers.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; their labels say how much of the variation each of them shows.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> ax = plots.ordination(data.X, model.labels_, metric="aitchison")
    >>> len(ax.collections)
    6
    """
    rows = as_counts(X.X if isinstance(X, CountTable) else X)
    groups = np.asarray(clusters, dtype=np.int64)
    if len(groups) != rows.n_rows:
        raise ValueError(f"clusters must have {rows.n_rows} entries, but it has {len(groups)}.")
    ax = new_axes(ax, width=6.4, height=5.4)
    if rows.n_rows > N_LANDMARKS:
        chosen = np.linspace(0, rows.n_rows - 1, N_LANDMARKS).round().astype(int)
        ax.set_title(f"{N_LANDMARKS:,} of {rows.n_rows:,} rows", loc="left", fontsize="medium")
        rows, groups = rows.take(chosen), groups[chosen]
    positions, shares = principal_coordinates(rows.to_csr(), metric)
    draw_clusters(ax, positions, groups, None)
    draw_names(ax, positions, groups, names)
    title = {"braycurtis": "Bray-Curtis", "aitchison": "Aitchison"}[metric]
    ax.set_xlabel(f"PCoA 1, {title} ({shares[0]:.0%})")
    ax.set_ylabel(f"PCoA 2 ({shares[1]:.0%})")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("0.85")
    return ax
