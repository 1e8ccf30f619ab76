"""Figures that compare clusters: their topics, features, known labels and certainty, and how they split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy

from mmpca.counts import as_counts
from mmpca.model.dispersion import in_counts
from mmpca.model.explanation import LIKELY
from mmpca.model.results import cluster_features, feature_names, headings, plural, relevance, words_of
from mmpca.plots.style import (
    COLORS,
    SEQUENTIAL,
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

LARGEST_DOT = 160.0  # area of a dot for a feature that every row of the cluster has, in square points
LINE_LENGTH = 40  # characters of a cluster's name
INCHES = 0.085  # that a character of a name takes
TITLE_LENGTH = 36
MAX_LABELS = 20  # known labels with colors of their own; the others are drawn together in gray


def theta_heatmap(model: Any, *, figure: Figure | None = None) -> Figure:
    """Draw the topic proportions of the clusters as a heat map beside the tree in which the clusters merge.

    Clusters that merge early stand next to each other. The length of a branch is the loss of the bound.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        The figure with the tree and the heat map.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> len(plots.theta_heatmap(model).axes)
    2
    """
    shares = in_counts(model).cluster_topics
    n_clusters, n_topics = shares.shape
    clusters = [short_name(name, LINE_LENGTH) for name in headings(model, "cluster")]
    topics = [short_name(name) for name in headings(model, "topic")]
    # The names stand beside and below the cells, so they need room of their own.
    width = 1.6 + INCHES * max(map(len, clusters)) + 0.45 * n_topics
    figure = new_figure(figure, width, 1.0 + INCHES * max(map(len, topics)) + 0.32 * n_clusters)
    tree, ax = figure.subplots(1, 2, width_ratios=(1, 1 + 0.35 * n_topics))
    order = np.arange(n_clusters)
    if n_clusters > 1:
        drawn = hierarchy.dendrogram(
            model.merge_path().linkage, orientation="left", ax=tree, no_labels=True,
            color_threshold=0, above_threshold_color=COLORS[0],
        )  # fmt: skip
        order = np.array(drawn["leaves"])[::-1]  # drawn from the bottom up
        # SciPy draws leaf i at 5 + 10 i; the heat map has row i at i.
        tree.set_ylim(0, 10 * n_clusters)
    tree.set_axis_off()
    cells = shares[order]
    texts = percent_texts(cells)
    heat_map(ax, cells, [clusters[q] for q in order], topics, texts)
    ax.tick_params(axis="x", rotation=90)
    ax.set(xlabel="topic (share in %)" if texts else "topic", ylabel="cluster")
    if not texts:
        figure.colorbar(ax.images[0], ax=ax, shrink=0.6, label="share of the topic")
    return figure


def marker_dotplot(
    model: Any, X: Any, *, n_features: int = 3, clusters: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a dot plot of the features that distinguish each cluster, for all clusters.

    The area of a dot is the share of the cluster's rows that have the feature; its color is the feature's share of the
    cluster's counts, relative to the cluster where this share is largest.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows.
    n_features : int, default=3
        Distinctive features of each cluster.
    clusters : array of int, shape (n_samples,), optional
        Cluster of each row, such as `labels_` for the fitted X; predicted by default.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the dots.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> X = [[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]]
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit(X)
    >>> ax = plots.marker_dotplot(model, X, n_features=1, clusters=model.labels_)
    >>> sorted(label.get_text() for label in ax.get_xticklabels())
    ['feature 0', 'feature 2']
    """
    groups = np.asarray(model.predict(X) if clusters is None else clusters, dtype=np.int64)
    counts, names, words = as_counts(X, empty_rows="allow"), feature_names(model), words_of(model)
    n_clusters = len(model.weights_)
    chosen: list[int] = []
    for found in cluster_features(model):
        chosen += [v for v in found.leading(n_features) if v not in chosen]
    sizes = np.maximum(np.bincount(groups, minlength=n_clusters), 1)[:, None]
    present = counts._replace(data=np.ones_like(counts.data)).group_sums(groups, n_clusters)[:, chosen] / sizes
    sums = counts.group_sums(groups, n_clusters)
    shares = sums[:, chosen] / np.maximum(sums.sum(axis=1, keepdims=True), 1)
    shades = shares / np.maximum(shares.max(axis=0), 1e-300)
    shown = [short_name(names[v]) for v in chosen]
    titles = [short_name(name, LINE_LENGTH) for name in headings(model, "cluster")]
    width = max(5.4, 2.2 + INCHES * max(map(len, titles)) + 0.27 * len(chosen))
    ax = new_axes(ax, width, height=max(3.4, 1.5 + INCHES * max(map(len, shown), default=0) + 0.3 * n_clusters))
    at_y, at_x = np.mgrid[:n_clusters, : len(chosen)]
    dots = ax.scatter(
        at_x.ravel(), at_y.ravel(), s=LARGEST_DOT * present.ravel(), c=shades.ravel(), cmap=SEQUENTIAL, vmin=0, vmax=1,
        edgecolors="0.5", linewidths=0.4,
    )  # fmt: skip
    ax.set_xticks(np.arange(len(chosen)), shown, rotation=90)
    ax.set_yticks(np.arange(n_clusters), titles)
    ax.set(xlim=(-0.8, len(chosen) - 0.2), ylim=(n_clusters - 0.4, -0.6), xlabel=words.feature, ylabel="cluster")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.colorbar(dots, ax=ax, shrink=0.7, label="share, relative to\nthe largest cluster")
    sample = [ax.scatter([], [], s=LARGEST_DOT * part, color="0.6") for part in (0.25, 0.5, 1.0)]
    ax.legend(
        sample, ["25%", "50%", "100%"], title=f"{words.rows} with the {words.feature}", loc="lower left",
        bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, fontsize="small", title_fontsize="small",
    )  # fmt: skip
    return ax


def relevance_bars(
    model: Any, cluster: int, *, weight: float = 0.6, n_features: int = 15, ax: Axes | None = None
) -> Axes:
    """Draw the most relevant features of a cluster: their share of its counts, and of all counts.

    The relevance is ``weight * log(share) + (1 - weight) * log(lift)`` (Sievert and Shirley 2014): 1 ranks features by
    frequency, 0 by how specific they are. Features found in a single row are left out.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    cluster : int
        Number of the cluster.
    weight : float, default=0.6
        Between 0 and 1.
    n_features : int, default=15
        Number of features.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the bars.

    Raises
    ------
    ValueError
        There is no such cluster, or the weight is not between 0 and 1.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> ax = plots.relevance_bars(model, int(model.labels_[0]), n_features=1)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['feature 0']
    """
    n_clusters = len(model.weights_)
    if not 0 <= cluster < n_clusters:
        raise ValueError(f"cluster must be from 0 to {n_clusters - 1}, but it is {cluster}.")
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be between 0 and 1, but it is {weight}.")
    found = list(cluster_features(model))[cluster]
    score = np.where(found.can_lead, relevance(found.share, found.lift, weight), -np.inf)
    order = np.argsort(-score, kind="stable")[:n_features]
    top = order[np.isfinite(score[order])][::-1]  # drawn from the bottom up
    names, overall = feature_names(model), found.share[top] / found.lift[top]
    ax = new_axes(ax, width=4.8, height=0.9 + 0.26 * len(top))
    at = np.arange(len(top))
    ax.barh(at, 100 * found.share[top], height=0.72, color=COLORS[0], label="this cluster")
    ax.barh(at, 100 * overall, height=0.3, color="0.75", label=f"all {words_of(model).rows}")
    ax.set_yticks(at, [short_name(names[v]) for v in top])
    ax.set_xlabel("share of the counts (%)")
    ax.set_title(
        f"cluster {short_name(headings(model, 'cluster')[cluster], TITLE_LENGTH)}", loc="left", fontsize="medium"
    )
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    tidy_bars(ax)
    return ax


def label_composition(
    labels: Sequence[object],
    clusters: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    row_word: str = "row",
    ax: Axes | None = None,
) -> Axes:
    """Draw the known labels of the rows of each cluster as stacked bars.

    The seven most frequent labels have their own colors; the others are gray.

    Parameters
    ----------
    labels : sequence of length n_samples
        Known label of each row.
    clusters : array of int, shape (n_samples,)
        Cluster of each row.
    names : sequence of str, optional
        Names of the clusters; by default their numbers.
    row_word : str, default="row"
        Word for a row, in the singular.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the bars.

    Raises
    ------
    ValueError
        Labels and clusters have different lengths.

    Examples
    --------
    >>> from mmpca import plots
    >>> ax = plots.label_composition(["a", "a", "b"], [0, 0, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    known, groups = np.array([str(label) for label in labels], dtype=object), np.asarray(clusters)
    if len(known) != len(groups):
        raise ValueError(f"labels and clusters must have the same length, but have {len(known)} and {len(groups)}.")
    kinds, codes = np.unique(known, return_inverse=True)
    numbers, places = np.unique(groups, return_inverse=True)
    table = np.zeros((len(numbers), len(kinds)))
    np.add.at(table, (places, codes), 1)
    order = np.argsort(-table.sum(axis=0), kind="stable")
    ax = new_axes(ax, width=7.6, height=1.1 + 0.3 * len(numbers))
    from matplotlib import colormaps

    colors = COLORS if len(order) <= len(COLORS) else colormaps["tab20"](np.arange(MAX_LABELS))
    parts = [(short_name(kinds[c]), table[:, c], colors[rank]) for rank, c in enumerate(order[:MAX_LABELS])]
    if len(order) > MAX_LABELS:
        parts.append((f"{len(order) - MAX_LABELS} other labels", table[:, order[MAX_LABELS:]].sum(axis=1), "0.75"))
    left, total = np.zeros(len(numbers)), table.sum(axis=1)
    for name, sizes, color in parts:
        share = 100 * sizes / total
        ax.barh(np.arange(len(numbers)), share, left=left, color=color, label=name, edgecolor="white", linewidth=0.5)
        left += share
    shown = [str(number) if names is None else short_name(names[number], LINE_LENGTH) for number in numbers.tolist()]
    ax.set_yticks(np.arange(len(numbers)), [f"{name} ({n:,.0f})" for name, n in zip(shown, total, strict=True)])
    ax.set(xlim=(0, 100), ylim=(len(numbers) - 0.5, -0.5))
    ax.set(xlabel=f"{plural(row_word)} of the cluster (%)", ylabel="cluster")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy_bars(ax)
    return ax


def certainty_strips(
    probabilities: ArrayLike,
    clusters: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    row_word: str = "row",
    ax: Axes | None = None,
) -> Axes:
    """Draw how certain the rows of each cluster are: a strip for each cluster, its rows sorted by probability.

    Parameters
    ----------
    probabilities : array of shape (n_samples,) or (n_samples, n_clusters)
        Probability of each row's cluster, or of all clusters, from :meth:`mmpca.MMPCA.predict_proba`.
    clusters : array of int, shape (n_samples,)
        Cluster of each row.
    names : sequence of str, optional
        Names of the clusters; by default their numbers.
    row_word : str, default="row"
        Word for a row, in the singular.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the strips.

    Raises
    ------
    ValueError
        Probabilities and clusters have different lengths.

    Examples
    --------
    >>> from mmpca import plots
    >>> ax = plots.certainty_strips([0.5, 0.9, 1.0], [0, 0, 1])
    >>> len(ax.lines)
    2
    """
    values, groups = np.asarray(probabilities, dtype=np.float64), np.asarray(clusters)
    if len(values) != len(groups):
        raise ValueError(
            f"probabilities and clusters must have the same length, but have {len(values)} and {len(groups)}."
        )
    if values.ndim == 2:
        values = values[np.arange(len(groups)), groups]
    numbers = np.unique(groups)
    ax = new_axes(ax, width=7.0, height=1.2 + 0.36 * len(numbers))
    for line, number in enumerate(numbers.tolist()):
        own = np.sort(values[groups == number])[::-1]
        x = np.linspace(0, 100, len(own) + 1)
        height = np.append(own, own[-1])
        ax.fill_between(x, line + 0.42, line + 0.42 - 0.84 * height, step="post", color=COLORS[0], alpha=0.35)
        ax.plot(x, line + 0.42 - 0.84 * height, drawstyle="steps-post", color=COLORS[0], linewidth=1.2)
        unsure = 100 * float((own >= LIKELY).mean())
        if unsure < 100:
            ax.vlines(unsure, line - 0.42, line + 0.42, color=COLORS[1], linewidth=1.5)
    ax.set_yticks(
        np.arange(len(numbers)),
        [str(number) if names is None else short_name(names[number], LINE_LENGTH) for number in numbers.tolist()],
    )
    ax.set(xlim=(0, 100), ylim=(len(numbers) - 0.5, -0.5), ylabel="cluster")
    ax.set_xlabel(f"{plural(row_word)} of the cluster, most certain first (%)")
    ax.set_title("height: probability; right of the mark: borderline", loc="left", fontsize="medium")
    tidy_bars(ax)
    return ax


def clustree(partitions: Sequence[ArrayLike], *, ax: Axes | None = None) -> Axes:
    """Draw how clusters split from one partition of the rows to the next, such as fits with 2, 3, 4, ... clusters.

    Each line of dots is a partition; the area of a dot is the size of the cluster. An edge connects two clusters that
    share rows; its width is their share of the lower cluster.

    Parameters
    ----------
    partitions : sequence of arrays of int, shape (n_samples,)
        Labels of the same rows, from few to many clusters.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the tree.

    Raises
    ------
    ValueError
        There are no partitions, or they have different lengths.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> path = model.merge_path()
    >>> ax = plots.clustree([path.groups(n)[model.labels_] for n in range(1, 7)])
    >>> ax.get_ylabel()
    'clusters'
    """
    labels = [np.unique(np.asarray(one), return_inverse=True)[1] for one in partitions]
    if not labels or len({len(one) for one in labels}) != 1:
        raise ValueError(f"partitions must not be empty, and all need the same rows; got sizes {[*map(len, labels)]}.")
    widest = max(int(one.max()) + 1 for one in labels)
    ax = new_axes(ax, width=max(4.0, 1.2 + 0.6 * widest), height=0.8 + 0.75 * len(labels))
    above: Array | None = None
    for level, own in enumerate(labels):
        n_clusters = int(own.max()) + 1
        sizes = np.bincount(own, minlength=n_clusters)
        order = np.arange(n_clusters)
        if above is not None:
            shared = np.zeros((len(above), n_clusters))
            np.add.at(shared, (labels[level - 1], own), 1)
            # A cluster stands below the mean position of the clusters that its rows come from.
            order = np.argsort((shared * above[:, None]).sum(axis=0) / sizes, kind="stable")
        x = np.empty(n_clusters)
        x[order] = (np.arange(n_clusters) + 0.5) * widest / n_clusters
        if above is not None:
            for first, second in zip(*np.nonzero(shared / sizes >= 0.05), strict=True):
                share = shared[first, second] / sizes[second]
                ax.plot([above[first], x[second]], [level - 1, level], color="0.6", linewidth=4 * share, zorder=1,
                        solid_capstyle="round", alpha=0.8)  # fmt: skip
        ax.scatter(x, np.full(n_clusters, level), s=40 + 700 * sizes / sizes.sum(), color=COLORS[0], zorder=2)
        for q in range(n_clusters):
            ax.text(x[q], level, str(q), ha="center", va="center", color="white", fontsize="small", zorder=3)
        above = x
    ax.set_yticks(np.arange(len(labels)), [str(int(one.max()) + 1) for one in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlim(0, widest)
    ax.set_xticks([])
    ax.set_ylabel("clusters")
    tidy(ax)
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)
    return ax


def clusters_over(
    table: Any,
    *,
    kind: str = "cluster",
    numbers: Sequence[int] | None = None,
    connect: bool = True,
    figure: Figure | None = None,
) -> Figure:
    """Draw how the shares of clusters or topics differ between periods or groups, with intervals.

    Parameters
    ----------
    table : DataFrame or mapping of columns
        From :meth:`mmpca.MMPCA.clusters_over`.
    kind : {"cluster", "topic"}, default="cluster"
        Whether to draw clusters or topics.
    numbers : sequence of int, optional
        Numbers of the clusters or topics to draw; all by default.
    connect : bool, default=True
        Whether to connect the groups by a line, as for periods; if False, draw points.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each cluster or topic, all with the same axes.

    Raises
    ------
    ValueError
        The table has no rows of this kind.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> figure = plots.clusters_over(model.clusters_over([2022, 2023, 2024] * 20))
    >>> len(figure.axes)
    6
    """
    columns = {name: list(table[name]) for name in ("kind", "number", "name", "group", "share", "lower", "upper")}
    lines = [at for at, own in enumerate(columns["kind"]) if own == kind]
    groups = list(dict.fromkeys(columns["group"][at] for at in lines))
    shown = sorted({columns["number"][at] for at in lines}) if numbers is None else list(numbers)
    if not lines or not shown:
        raise ValueError(f"The table has no rows of kind {kind!r}. For topics, pass X to clusters_over.")
    n_across = min(len(shown), 3)
    n_down = -(-len(shown) // n_across)
    figure = new_figure(figure, width=1.0 + 2.4 * n_across, height=0.9 + 1.5 * n_down)
    panels = figure.subplots(n_down, n_across, sharex=True, sharey=True, squeeze=False)
    place = {group: at for at, group in enumerate(groups)}
    for ax, number in zip(panels.flat, shown, strict=False):
        own = [at for at in lines if columns["number"][at] == number]
        x = [place[columns["group"][at]] for at in own]
        share, lower, upper = (
            100 * np.array([columns[name][at] for at in own]) for name in ("share", "lower", "upper")
        )
        if connect:
            ax.fill_between(x, lower, upper, color=COLORS[0], alpha=0.25, linewidth=0)
            ax.plot(x, share, color=COLORS[0], marker="o", markersize=3)
        else:
            ax.errorbar(x, share, np.stack([share - lower, upper - share]), fmt="o", markersize=4, color=COLORS[0])
        name = str(columns["name"][own[0]]) if own else ""
        ax.set_title(short_name(f"{number}: {name}" if name else str(number)), loc="left", fontsize="medium")
        tidy(ax)
    for ax in panels.flat[len(shown) :]:
        ax.set_axis_off()
    step = -(-len(groups) // 6)  # names of periods must not overlap
    for ax in panels.flat[: len(shown)]:
        ax.set_xticks(np.arange(0, len(groups), step), [short_name(group, 12) for group in groups[::step]])
        ax.tick_params(axis="x", labelrotation=45, labelbottom=True)
        ax.set_ylim(bottom=0)
    figure.supylabel("share of the group (%)" if kind == "cluster" else "counts of the group (%)", fontsize="medium")
    return figure
