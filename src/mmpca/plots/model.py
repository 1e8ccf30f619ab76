"""Figures of a fitted model: its clusters, its topics, the search that found them, and rows in topic space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import entr

from mmpca.model import results
from mmpca.model.dispersion import Shown, in_counts
from mmpca.plots.style import (
    COLORS,
    draw_clusters,
    draw_names,
    heat_map,
    new_axes,
    new_figure,
    percent_texts,
    short_name,
    tidy,
    tidy_bars,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

HEADING_LENGTH = 36  # characters, for three words
MAX_COLUMNS = 4  # topics side by side
RANKING_LABELS = {
    "distinctive": "share (%), most\ndistinctive first",
    "share": "share of the topic (%)",
    "lift": "lift: share of the topic\n/ share of all counts",
    "entropy": "share of the topic (%)\n\N{MULTIPLICATION SIGN} specificity of the feature",
}
MAX_ROWS = 5000  # more points would only cover each other
MAX_ARROWS = 8  # arrows drawn in the plane: the longest ones
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # of the simplex of three topics


def cluster_topics(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the topic proportions of each cluster as a heat map, with the names of clusters and topics.

    Each cell also shows its share as a number, unless there are more than 200 cells.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the heat map.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> plots.cluster_topics(model).get_xlabel()
    'topic'
    """
    shares = in_counts(model).cluster_topics
    n_clusters, n_topics = shares.shape
    names = [_headings(model, kind) for kind in ("cluster", "topic")]
    longest = [max(map(len, group)) for group in names]
    size = (1.8 + 0.06 * longest[0] + 0.55 * n_topics, 1.1 + 0.05 * longest[1] + 0.32 * n_clusters)
    ax = new_axes(ax, *size)
    texts = percent_texts(shares)
    heat_map(ax, shares, names[0], names[1], texts)
    if longest[1] > 3:
        ax.tick_params(axis="x", labelrotation=45)
        for label in ax.get_xticklabels():
            label.set(horizontalalignment="right", rotation_mode="anchor")
    ax.set_xlabel("topic")
    ax.set_ylabel("cluster")
    if texts:
        ax.set_title("share of each topic (%)", loc="left", fontsize="medium")
    else:
        ax.figure.colorbar(ax.images[0], ax=ax, shrink=0.7, label="share of the topic")
    return ax


def cluster_sizes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the number of rows in each cluster as labeled bars.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the bars.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> len(plots.cluster_sizes(model).patches)
    2
    """
    sizes = model.cluster_sizes
    names = _headings(model, "cluster")
    ax = new_axes(ax, width=3.0 + 0.07 * max(map(len, names)), height=0.8 + 0.24 * len(sizes))
    bars = ax.barh(np.arange(len(sizes)), sizes, color=COLORS[0])
    ax.bar_label(bars, labels=[f"{size:,}" for size in sizes.tolist()], padding=3, fontsize="small")
    ax.margins(x=0.15)
    ax.set_yticks(np.arange(len(sizes)), names)
    ax.invert_yaxis()
    ax.set_xlabel(results.words_of(model).rows)
    ax.set_ylabel("cluster")
    tidy_bars(ax)
    return ax


def bound_history(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the bound after each epoch of the best start, and the final bound of every other start.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curve.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> plots.bound_history(model).get_xlabel()
    'epoch'
    """
    bounds = np.asarray(model.bound_history_)
    final = np.array([start.bound for start in model.starts_])
    best = int(final.argmax())
    ax = new_axes(ax)
    # Relative to the best: bounds in the millions that differ by a few nats would all get the same tick label.
    ax.plot(np.arange(len(bounds)), bounds - final[best], color=COLORS[0], marker="o", markersize=4, label="best start")
    if len(final) > 1:
        epochs = np.delete([start.n_epochs for start in model.starts_], best)
        others = np.delete(final - final[best], best)
        ax.plot(
            epochs, others, linestyle="none", marker="s", markersize=5, color=COLORS[1], label="other starts, final"
        )
        ax.legend(frameon=False, fontsize="small", loc="lower right")
    ax.set_xlabel("epoch")
    ax.set_ylabel("bound relative to the best (nats)")
    ax.locator_params(axis="x", integer=True)
    if len(bounds) == 1:
        ax.set_xlim(-1, 1)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.set_title(f"best bound: {final[best]:,.1f}", loc="left", fontsize="medium")
    tidy(ax)
    return ax


def distinctive_features(model: Any, *, n_features: int = 8, figure: Figure | None = None) -> Figure:
    r"""Draw the most distinctive features of every cluster, one panel per cluster.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    n_features : int, default=8
        Maximum number of features in each panel.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        The figure with a panel for each cluster; its title has the number of rows and, if :meth:`MMPCA.rename` gave the
        cluster a name, the name. Bars show the share of the cluster's counts.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> [ax.get_title(loc="left") for ax in plots.distinctive_features(model.rename({1: "rugby"})).axes]
    ['cluster 0\n2 rows', 'cluster 1: rugby\n2 rows']
    """
    words, sizes = results.words_of(model), model.cluster_sizes.tolist()
    figure, axes = _panels(figure, len(sizes), n_features)
    for ax, own, title, size in zip(
        axes, results.cluster_features(model), _titles(model, "cluster"), sizes, strict=True
    ):
        top = own.leading(n_features)
        _draw_bars(ax, model, top, 100 * own.share[top])
        ax.set_title(f"{title}\n{size:,} {words.row if size == 1 else words.rows}", loc="left", fontsize="medium")
    _label_panels(axes, RANKING_LABELS["distinctive"])
    return figure


def topics(model: Any, *, n_features: int = 8, by: str = "distinctive", figure: Figure | None = None) -> Figure:
    """Draw the leading features of every topic, one panel per topic.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    n_features : int, default=8
        Maximum number of features in each panel.
    by : {"distinctive", "share", "lift", "entropy"}, default="distinctive"
        How to rank the features; see :func:`topic_features`.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        The figure with a panel for each topic.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> [ax.get_title(loc="left") for ax in plots.topics(model).axes]
    ['topic 0', 'topic 1']
    """
    figure, axes = _panels(figure, len(model.components_), n_features)
    ranked = _ranked(model, by, n_features)
    for ax, title, (top, widths) in zip(axes, _titles(model, "topic"), ranked, strict=True):
        _draw_bars(ax, model, top, widths)
        ax.set_title(title, loc="left", fontsize="medium")
    _label_panels(axes, RANKING_LABELS[by])
    return figure


def topic_features(
    model: Any, topic: int, *, n_features: int = 10, by: str = "distinctive", ax: Axes | None = None
) -> Axes:
    r"""Draw the leading features of one topic as bars.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    topic : int
        Index of the topic.
    n_features : int, default=10
        Maximum number of features to draw.
    by : {"distinctive", "share", "lift", "entropy"}, default="distinctive"
        How to rank the features, and what the bars show:

        - "distinctive": the order of :meth:`MMPCA.features_frame`, by log-odds against the other topics in standard
          errors; bars show the share of the topic's counts.
        - "share": the feature's probability in the topic.
        - "lift": that probability divided by the feature's share of all counts. Features with less than a tenth of the
          topic's largest probability are left out, because rare features have a large lift by chance.
        - "entropy": the probability times a weight of :math:`1 - H / \log K`, where H is the entropy of the topic given
          the feature if all K topics are equally frequent. The weight is 1 for a feature that occurs in a single topic,
          and 0 for one that is equally probable in all of them.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the bars.

    Raises
    ------
    ValueError
        `by` is not one of the four rankings, or the model has no such topic.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> len(plots.topic_features(model, 0, n_features=2, by="share").patches)
    2
    """
    if not 0 <= topic < len(model.components_):
        raise ValueError(f"topic must be between 0 and {len(model.components_) - 1}, but is {topic!r}.")
    top, widths = list(_ranked(model, by, n_features))[topic]
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(top))
    _draw_bars(ax, model, top, widths)
    ax.set_xlabel(RANKING_LABELS[by])
    ax.set_title(_titles(model, "topic")[topic], loc="left", fontsize="medium")
    return ax


def _ranked(model: Any, by: str, n_features: int) -> Iterator[tuple[list[int], Array]]:
    """Yield the leading features of each topic, and the widths of their bars."""
    if by not in RANKING_LABELS:
        raise ValueError(f"by must be 'distinctive', 'share', 'lift' or 'entropy', but is {by!r}.")
    if by == "distinctive":
        for own in results.topic_features(model):
            top = own.leading(n_features)
            yield top, 100 * own.share[top]
        return
    shown = in_counts(model)
    for shares in shown.topics:
        specificity = _specificity(shown) if by == "entropy" else 1.0
        widths = _lift(shown, shares) if by == "lift" else 100 * shares * specificity
        order = np.argsort(-widths, kind="stable")[:n_features]
        order = order[widths[order] > 0]
        yield order.tolist(), widths[order]


def _headings(model: Any, kind: str) -> list[str]:
    """Return the numbers and names of clusters or topics, short enough for an axis."""
    return [short_name(heading, HEADING_LENGTH) for heading in results.headings(model, kind)]


def _titles(model: Any, kind: str) -> list[str]:
    """Return the numbers of clusters or topics, with the names that they were given; bars show the others."""
    given = results.given_names(model, kind)
    n = len(model.weights_ if kind == "cluster" else model.components_)
    return [f"{kind} {at}" + (f": {short_name(given[at])}" if at in given else "") for at in range(n)]


def _panels(figure: Figure | None, n_panels: int, n_features: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, in as many lines as needed."""
    n_columns = min(n_panels, MAX_COLUMNS)
    n_lines = -(-n_panels // n_columns)
    figure = new_figure(figure, width=2.9 * n_columns, height=n_lines * (0.9 + 0.22 * n_features))
    return figure, [figure.add_subplot(n_lines, n_columns, at + 1) for at in range(n_panels)]


def _label_panels(axes: list[Axes], label: str) -> None:
    """Label the axis of the bottom panel of each column."""
    for ax in axes[-MAX_COLUMNS:]:
        ax.set_xlabel(label)


def _draw_bars(ax: Axes, model: Any, features: list[int], widths: Array) -> None:
    """Draw a bar for each feature, the first on top."""
    ax.barh(np.arange(len(features)), widths, color=COLORS[0])
    names = results.feature_names(model)
    ax.set_yticks(np.arange(len(features)), [short_name(names[v]) for v in features])
    ax.invert_yaxis()
    tidy_bars(ax)


def _lift(shown: Shown, shares: Array) -> Array:
    """Return the lift of each feature in a topic, 0 for features that are too rare in it; shares: (V,)."""
    overall = shown.overall
    is_frequent = (shares >= 0.1 * shares.max()) & (overall > 0)
    lift: Array = np.divide(shares, overall, out=np.zeros_like(shares), where=is_frequent)
    return lift


def _specificity(shown: Shown) -> Array:
    """Return 1 for features of a single topic, down to 0 for features equally probable in all topics; (V,)."""
    topics = shown.topics
    if len(topics) == 1:
        return np.ones(topics.shape[1])
    sums = topics.sum(axis=0)
    given_feature = np.divide(topics, sums, out=np.full_like(topics, 1 / len(topics)), where=sums > 0)  # (K, V)
    specificity: Array = np.maximum(1 - entr(given_feature).sum(axis=0) / np.log(len(topics)), 0.0)
    return specificity


# --- rows in topic space ----------------------------------------------------------------------------------------


def topic_space(model: Any, X: Any, *, clusters: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw rows by their topic proportions, colored by cluster, with the cluster's number at its center.

    With three topics, the rows lie in a triangle and no information is lost: the larger a row's share of a topic, the
    closer it is to that corner. With one or two topics, each cluster has its own horizontal strip. With more topics,
    the rows are projected linearly onto the plane that separates the clusters best (Fisher's linear discriminants), and
    arrows show the direction in which the share of a topic grows; only the eight longest arrows are drawn.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows to draw. If there are more than 5,000, an evenly spaced subset is drawn and the title says so.
    clusters : array of int, shape (n_samples,), optional
        Cluster of each row, such as `labels_` for the fitted X; predicted by default.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the rows.

    Raises
    ------
    ValueError
        `clusters` does not have one entry for each row.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> X = [[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]]
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit(X)
    >>> plots.topic_space(model, X, clusters=model.labels_).get_xlabel()
    'share of topic 1'
    """
    groups = np.asarray(model.predict(X) if clusters is None else clusters, dtype=np.int64)
    shares = np.asarray(model.transform(X), dtype=np.float64)  # (N, K)
    n_rows, n_topics = shares.shape
    if groups.shape != (n_rows,):
        raise ValueError(f"clusters must have one entry for each of the {n_rows} rows, but has shape {groups.shape}.")
    ax = new_axes(ax, width=4.6, height=4.2)
    if n_rows > MAX_ROWS:
        chosen = np.linspace(0, n_rows - 1, MAX_ROWS).round().astype(int)
        shares, groups = shares[chosen], groups[chosen]
        ax.set_title(f"{MAX_ROWS:,} of {n_rows:,} {results.words_of(model).rows}", loc="left", fontsize="medium")
    draw = {1: _draw_strips, 2: _draw_strips, 3: _draw_simplex}.get(n_topics, _draw_plane)
    draw(ax, shares, groups)
    return ax


def _draw_points(ax: Axes, positions: Array, groups: NDArray[np.int64]) -> None:
    """Draw rows and the numbers of their clusters; positions: (n, 2)."""
    draw_clusters(ax, positions, groups)
    draw_names(ax, positions, groups)


def _draw_simplex(ax: Axes, shares: Array, groups: NDArray[np.int64]) -> None:
    """Draw rows in a triangle with a topic at each corner."""
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.4", linewidth=1)
    _draw_points(ax, shares @ CORNERS, groups)
    for k, (corner, at) in enumerate(zip(CORNERS, ("top", "top", "bottom"), strict=True)):
        shift = -6 if at == "top" else 6
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": at}
        ax.annotate(f"topic {k}", (corner[0], corner[1]), xytext=(0, shift), **place)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(0.12)


def _draw_strips(ax: Axes, shares: Array, groups: NDArray[np.int64]) -> None:
    """Draw a strip for each cluster, its rows spread vertically so that they do not hide each other."""
    # Multiples of the golden ratio, modulo one, are spread evenly and look random.
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
    """Draw rows in the plane that separates the clusters best, with an arrow for each topic."""
    axes, n_found = _directions(shares, groups)  # (K, 2)
    positions = (shares - shares.mean(axis=0)) @ axes
    _draw_points(ax, positions, groups)
    # Shares sum to one, so only differences from the average topic have a direction.
    arrows = axes - axes.mean(axis=0)
    longest = (np.abs(arrows) / _or_one(np.abs(positions).max(axis=0))).max()
    arrows *= 0.95 / _or_one(longest)  # scaled so that the longest one fits
    ax.update_datalim(1.2 * arrows)
    for k in np.argsort(-np.linalg.norm(arrows, axis=1), kind="stable")[:MAX_ARROWS].tolist():
        x, y = arrows[k].tolist()
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": "0.35", "linewidth": 1}, zorder=3)
        # Beside the tip and away from the center, because a cluster's number may cover the tip itself.
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "left" if x > 0 else "right", "va": "center"}
        shift = (10 if x > 0 else -10, 5 if y > 0 else -5)
        ax.annotate(f"topic {k}", (x, y), xytext=shift, fontsize="small", color="0.25", zorder=5, **style)
    names = ("first discriminant", "second discriminant")[:n_found] + ("main remaining variation",) * (2 - n_found)
    ax.set_xlabel(f"{names[0]} of the topic shares")
    ax.set_ylabel(names[1])
    ax.margins(x=0.16, y=0.08)  # room for the names of topics
    ax.autoscale_view()
    ax.spines[["top", "right"]].set_visible(False)


def _or_one(width: ArrayLike) -> Array:
    """Return widths to divide by, with 1 in place of zero."""
    given = np.asarray(width, dtype=np.float64)
    return np.where(given > 1e-9, given, 1.0)


def _directions(shares: Array, groups: NDArray[np.int64]) -> tuple[Array, int]:
    """Return two directions in topic space, (K, 2), and how many of them are discriminants of the clusters.

    With fewer than three clusters there are fewer than two discriminants; principal components of the remaining
    variation take their place.
    """
    centered = shares - shares.mean(axis=0)
    found = _discriminants(shares, groups)
    rest = centered - centered @ found @ np.linalg.pinv(found) if found.size else centered
    width = float(_or_one(rest.std()))  # scales the rest like the discriminants
    main = np.linalg.svd(rest, full_matrices=False)[2].T / width  # (K, K)
    directions = np.column_stack([found, main])[:, :2]
    # The sign of a direction is arbitrary; fix it so that figures do not differ between machines.
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(2)])
    return directions * np.where(signs == 0, 1.0, signs), found.shape[1]


def _discriminants(shares: Array, groups: NDArray[np.int64]) -> Array:
    """Return up to two Fisher discriminants, (K, 0 to 2), scaled to unit variance within clusters."""
    members = np.equal.outer(np.unique(groups), groups)  # (Q, N)
    means = members @ shares / members.sum(axis=1, keepdims=True)  # (Q, K)
    within = shares - members.T @ means
    between = members.T @ means - shares.mean(axis=0)
    # Regularized: shares sum to one, so this matrix is singular, and identical rows have no variance at all.
    width = within.T @ within / len(shares)
    width += (1e-6 * np.trace(width) + 1e-9) * np.eye(shares.shape[1])
    values, vectors = linalg.eigh(between.T @ between / len(shares), width)
    n_found = min(2, int((values > 1e-6).sum()))
    found: Array = vectors[:, ::-1][:, :n_found]
    return found
