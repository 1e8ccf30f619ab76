"""Figures of a fitted model: its clusters, its topics, and the search that found them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from mmpca.plots.style import COLORS, SEQUENTIAL, new_axes, new_figure, short_name, tidy, tidy_bars, write_in_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MAX_NUMBERED_CELLS = 200  # numbers in a larger heat map would be too small to read
MAX_COLUMNS = 4  # topics side by side
RANKING_LABELS = {
    "share": "share of the topic (%)",
    "lift": "lift: share of the topic\n/ share of all counts",
    "entropy": "share of the topic (%)\n\N{MULTIPLICATION SIGN} specificity of the feature",
}


def cluster_topics(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the topic shares of each cluster as a heat map.

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
    shares = np.asarray(model.cluster_topics_)
    n_clusters, n_topics = shares.shape
    ax = new_axes(ax, width=1.8 + 0.55 * n_topics, height=1.1 + 0.32 * n_clusters)
    ax.imshow(shares, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_xticks(np.arange(n_topics), [str(k) for k in range(n_topics)])
    ax.set_yticks(np.arange(n_clusters), [str(q) for q in range(n_clusters)])
    ax.set_xlabel("topic")
    ax.set_ylabel("cluster")
    ax.set_title("share of each topic (%)", loc="left", fontsize="medium")
    if shares.size <= MAX_NUMBERED_CELLS:
        for (q, k), share in np.ndenumerate(shares):
            write_in_cell(ax, k, q, f"{100 * share:.0f}", share)
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
    sizes = np.bincount(model.labels_, minlength=len(model.weights_))
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(sizes))
    bars = ax.barh(np.arange(len(sizes)), sizes, color=COLORS[0])
    ax.bar_label(bars, labels=[f"{size:,}" for size in sizes.tolist()], padding=3, fontsize="small")
    ax.margins(x=0.15)
    ax.set_yticks(np.arange(len(sizes)), [str(q) for q in range(len(sizes))])
    ax.invert_yaxis()
    ax.set_xlabel("rows")
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
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.set_title(f"best bound: {final[best]:,.1f}", loc="left", fontsize="medium")
    tidy(ax)
    return ax


def topics(model: Any, *, n_features: int = 8, by: str = "share", figure: Figure | None = None) -> Figure:
    """Draw the leading features of every topic, one panel per topic.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    n_features : int, default=8
        Maximum number of features in each panel.
    by : {"share", "lift", "entropy"}, default="share"
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
    n_topics = len(model.components_)
    n_columns = min(n_topics, MAX_COLUMNS)
    n_lines = -(-n_topics // n_columns)
    figure = new_figure(figure, width=2.9 * n_columns, height=n_lines * (0.9 + 0.22 * n_features))
    for k in range(n_topics):
        ax = figure.add_subplot(n_lines, n_columns, k + 1)
        topic_features(model, k, n_features=n_features, by=by, ax=ax)
        if k + n_columns < n_topics:  # only the bottom panel of each column labels the axis
            ax.set_xlabel("")
    return figure


def topic_features(model: Any, topic: int, *, n_features: int = 10, by: str = "share", ax: Axes | None = None) -> Axes:
    r"""Draw the leading features of one topic as bars.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    topic : int
        Index of the topic.
    n_features : int, default=10
        Maximum number of features to draw.
    by : {"share", "lift", "entropy"}, default="share"
        How to rank the features, and what the bars show:

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
        `by` is not one of the three rankings, or the model has no such topic.

    Examples
    --------
    >>> from mmpca import MMPCA, plots
    >>> model = MMPCA(2, 2, n_init=1, random_state=0).fit([[5, 1, 0], [6, 0, 0], [0, 2, 7], [1, 1, 9]])
    >>> len(plots.topic_features(model, 0, n_features=2).patches)
    2
    """
    if by not in RANKING_LABELS:
        raise ValueError(f"by must be 'share', 'lift' or 'entropy', but is {by!r}.")
    if not 0 <= topic < len(model.components_):
        raise ValueError(f"topic must be between 0 and {len(model.components_) - 1}, but is {topic!r}.")
    shares = np.asarray(model.components_[topic])
    widths = _lift(model, shares) if by == "lift" else 100 * shares * (_specificity(model) if by == "entropy" else 1.0)
    top = np.argsort(-widths, kind="stable")[:n_features]
    top = top[widths[top] > 0]
    ax = new_axes(ax, width=3.4, height=0.8 + 0.24 * len(top))
    ax.barh(np.arange(len(top)), widths[top], color=COLORS[0])
    names = getattr(model, "feature_names_in_", None)
    ax.set_yticks(np.arange(len(top)), [short_name(f"feature {v}" if names is None else names[v]) for v in top])
    ax.invert_yaxis()
    ax.set_xlabel(RANKING_LABELS[by])
    ax.set_title(f"topic {topic}", loc="left", fontsize="medium")
    tidy_bars(ax)
    return ax


def _lift(model: Any, shares: Array) -> Array:
    """Return the lift of each feature in a topic, 0 for features that are too rare in it; shares: (V,)."""
    overall = model.weights_ @ model.cluster_topics_ @ model.components_  # (V,)
    is_frequent = (shares >= 0.1 * shares.max()) & (overall > 0)
    lift: Array = np.divide(shares, overall, out=np.zeros_like(shares), where=is_frequent)
    return lift


def _specificity(model: Any) -> Array:
    """Return 1 for features of a single topic, down to 0 for features equally probable in all topics; (V,)."""
    topics = np.asarray(model.components_)
    if len(topics) == 1:
        return np.ones(topics.shape[1])
    sums = topics.sum(axis=0)
    given_feature = np.divide(topics, sums, out=np.full_like(topics, 1 / len(topics)), where=sums > 0)  # (K, V)
    specificity: Array = np.maximum(1 - entr(given_feature).sum(axis=0) / np.log(len(topics)), 0.0)
    return specificity
