"""The figures of the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmpca.plots.evaluation import confusion
from mmpca.plots.selection import frame
from mmpca.plots.style import COLOURS, DARK, EMPHASIS, MARKERS, SEQUENTIAL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Columns = Mapping[str, Sequence[Any]]

# Of lines, among which yellow is hard to see.
LINE_COLOURS = (*(colour for colour in COLOURS if colour != "#F0E442"), "#7F7F7F", "#8C510A", "#B2182B")
NUMBER_ROOM = 1.9  # ratio of two numbers of rows whose ticks do not touch
VARIANT = " (mmpca)"  # a rival on the package's LDA: the colour of the rival, dashed
CEILING = "true parameters"


def agreement_curves(
    table: Columns,
    *,
    x: str,
    panel: str | None = None,
    x_label: str,
    panel_label: str = "",
    value: str = "ari",
    x_scale: str = "linear",
    figure: Figure | None = None,
) -> Figure:
    """Draw the mean agreement of each method, with standard errors.

    Parameters
    ----------
    table : mapping of columns
        With `method`, the value, and the columns named by `x` and `panel`; one row for each data set and method.
    x, x_label : str
        Column along the horizontal axis, and what to call it.
    panel, panel_label : str, optional
        Column that tells the panels apart, and what to call it.
    value : str, default="ari"
        Column to average.
    x_scale : {"linear", "log"}, default="linear"
        Scale of the horizontal axis.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    places = list(dict.fromkeys(table[panel])) if panel is not None else [None]
    figure = new_figure(figure, width=3.4 * len(places) + 2.6, height=4.0)
    axes = np.atleast_1d(figure.subplots(1, len(places), sharey=True))
    for ax, place in zip(axes, places, strict=True):
        is_here = np.full(len(table[x]), True) if panel is None else np.asarray(table[panel]) == place
        _curves(ax, table, x, value, is_here)
        ax.set_xlabel(x_label)
        if x_scale == "log":
            ax.set_xscale("log")
            ax.set_xticks(np.unique(table[x]), [f"{place:.2g}" for place in np.unique(table[x])], minor=False)
            ax.minorticks_off()
        if panel is not None:
            ax.set_title(f"{panel_label} = {place:g}", loc="left", fontsize="medium")
        tidy(ax)
    axes[0].set_ylabel("adjusted Rand index, mean ± standard error")
    axes[-1].legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def run_courses(table: Columns, *, figure: Figure | None = None) -> Figure:
    """Draw bound and adjusted Rand index along runs, and where default fits of the same data end.

    Parameters
    ----------
    table : mapping of columns
        `seed`, `run` ("published" or "default"), `epochs`, `above_truth` and `ari`.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    figure = new_figure(figure, width=8.4, height=3.8)
    axes = figure.subplots(1, 2)
    seeds, runs = np.asarray(table["seed"]), np.asarray(table["run"])
    epochs = np.asarray(table["epochs"], dtype=float)
    labels = ("bound, nats above that of the true clusters", "adjusted Rand index")
    for ax, name, label in zip(axes, ("above_truth", "ari"), labels, strict=True):
        values = np.asarray(table[name], dtype=float)
        for number, seed in enumerate(dict.fromkeys(table["seed"])):
            at = (seeds == seed) & (runs == "published")
            told = "one random start, as published" if number == 0 else None
            ax.plot(epochs[at], values[at], color=COLOURS[0], linewidth=1, alpha=0.6, label=told)
        at = runs == "default"
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5, "color": EMPHASIS}
        ax.plot(np.full(at.sum(), 1.04 * epochs.max()), values[at], label="default fit", **style)
        ax.set_xlabel("epoch: every row was visited once")
        ax.set_ylabel(label)
        tidy(ax)
    axes[0].set_yscale("symlog", linthresh=100)
    axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes[1].legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def choice_maps(
    counts: Mapping[tuple[str, float], Mapping[tuple[int, int], int]],
    *,
    n_clusters: Sequence[int],
    n_topics: Sequence[int],
    truth: tuple[int, int],
    figure: Figure | None = None,
) -> Figure:
    """Draw how often each cell of a grid is chosen, a map for each criterion and balance, the truth framed.

    Parameters
    ----------
    counts : mapping of (criterion, balance) to mapping of (Q, K) to int
        How often each cell is chosen; cells that never are may be left out.
    n_clusters, n_topics : sequence of int
        The grid.
    truth : pair of int
        The true cell; a grid without it has no frame.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    criteria = list(dict.fromkeys(criterion for criterion, _ in counts))
    balances = list(dict.fromkeys(balance for _, balance in counts))
    size = 1.3 + 0.42 * len(n_clusters), 0.9 + 0.42 * len(n_topics)
    figure = new_figure(figure, width=size[0] * len(balances), height=size[1] * len(criteria))
    axes = figure.subplots(len(criteria), len(balances), squeeze=False, sharex=True, sharey=True)
    for (row, criterion), (column, balance) in product(enumerate(criteria), enumerate(balances)):
        ax = axes[row, column]
        _choice_map(ax, counts[criterion, balance], n_clusters, n_topics)
        if truth[0] in n_clusters and truth[1] in n_topics:
            ax.add_patch(frame(n_clusters.index(truth[0]), n_topics.index(truth[1])))
        ax.set_title(f"{criterion}, $\\lambda$ = {balance:g}", loc="left", fontsize="medium")
        ax.set_xlabel("clusters" if row == len(criteria) - 1 else "")
        ax.set_ylabel("topics" if column == 0 else "")
    return figure


def confusions(
    partitions: Mapping[str, tuple[Sequence[object], Sequence[int]]], *, figure: Figure | None = None
) -> Figure:
    """Draw known classes against clusters, a table for each of some partitions.

    Parameters
    ----------
    partitions : mapping of str to (classes, clusters)
        By title: known classes of the rows, and their clusters, from 0.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    widths = [2.2 + 0.5 * len(set(clusters)) for _, clusters in partitions.values()]
    n_classes = max(len(set(classes)) for classes, _ in partitions.values())
    figure = new_figure(figure, width=sum(widths) + 1.5, height=1.4 + 0.36 * n_classes)
    axes = np.atleast_1d(figure.subplots(1, len(partitions), width_ratios=widths))
    for ax, (title, (classes, clusters)) in zip(axes, partitions.items(), strict=True):
        confusion(classes, clusters, ax=ax)
        ax.set_title(title, loc="left")
    return figure


def growth_curves(
    times: Mapping[str, tuple[Sequence[int], Sequence[float], float]], *, figure: Figure | None = None
) -> Figure:
    """Draw times against numbers of rows on logarithmic axes.

    Parameters
    ----------
    times : mapping of str to (sizes, seconds, exponent)
        By the name of what was timed.
    figure : Figure, optional

    Returns
    -------
    Figure
    """
    figure = new_figure(figure, width=6.8, height=4.0)
    ax = figure.add_subplot()
    for number, (name, (sizes, seconds, exponent)) in enumerate(times.items()):
        style = {"color": LINE_COLOURS[number % len(LINE_COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        ax.plot(sizes, seconds, label=f"{name}: exponent {exponent:.2f}", markersize=4, **style)  # type: ignore[arg-type]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows N")
    ax.set_ylabel("processor time, seconds")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    ticks = _ticks(sorted({size for line in times.values() for size in line[0]}))
    ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    tidy(ax)
    return figure


def _ticks(sizes: Sequence[int]) -> list[int]:
    """Return the sizes that have room for their numbers on a logarithmic axis, the first and the last always.

    Examples
    --------
    >>> _ticks([50, 100, 200, 300, 400, 600, 800, 1000])
    [50, 100, 200, 400, 1000]
    """
    ticks = list(sizes[:1])
    for size in sizes[1:-1]:
        if size >= NUMBER_ROOM * ticks[-1] and sizes[-1] >= NUMBER_ROOM * size:
            ticks.append(size)
    return ticks + list(sizes[1:][-1:])


def _choice_map(
    ax: Axes, counts: Mapping[tuple[int, int], int], n_clusters: Sequence[int], n_topics: Sequence[int]
) -> None:
    """Draw the shares of all choices, in per cent."""
    total = max(1, sum(counts.values()))
    shares = np.array([[counts.get((q, k), 0) / total for q in n_clusters] for k in n_topics])
    ax.imshow(shares, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto", origin="lower")
    ax.set_xticks(np.arange(len(n_clusters)), [str(q) for q in n_clusters])
    ax.set_yticks(np.arange(len(n_topics)), [str(k) for k in n_topics])
    for (y, x), share in np.ndenumerate(shares):
        if share > 0:
            colour = "white" if share > DARK else "black"
            ax.text(x, y, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize="small")


def _curves(ax: Axes, table: Columns, x: str, value: str, is_here: NDArray[np.bool_]) -> None:
    """Draw a curve for each method."""
    methods, places = np.asarray(table["method"]), np.asarray(table[x], dtype=float)
    values = np.asarray(table[value], dtype=float)
    names = list(dict.fromkeys(table["method"]))
    for name in names:
        at = is_here & (methods == name)
        steps = np.unique(places[at])
        groups = [values[at & (places == step)] for step in steps]
        means = [group.mean() for group in groups]
        errors = [group.std(ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0.0 for group in groups]
        ax.errorbar(steps, means, yerr=errors, label=name, **_style(name, names))


def _style(name: str, names: list[str]) -> dict[str, Any]:
    """Return how the curve of a method looks."""
    if name == CEILING:
        return {"color": "0.4", "linestyle": ":", "linewidth": 1.5}
    base = name.removesuffix(VARIANT)
    # A variant may be there without its base.
    place = list(dict.fromkeys(other.removesuffix(VARIANT) for other in names if other != CEILING)).index(base)
    return {
        "color": LINE_COLOURS[place % len(LINE_COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4,
        "linestyle": "--" if name.endswith(VARIANT) else "-",
        "linewidth": 2.2 if name == "MMPCA" else 1.2,
        "zorder": 5 if name == "MMPCA" else 2,
    }
