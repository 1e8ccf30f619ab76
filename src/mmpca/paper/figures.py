"""The figures of the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmpca.plots import confusion
from mmpca.plots.style import (
    COLORS,
    EMPHASIS,
    MARKERS,
    SEQUENTIAL,
    frame,
    heat_map,
    new_figure,
    percent_texts,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Columns = Mapping[str, Sequence[Any]]

# Yellow lines are hard to see.
LINE_COLORS = (
    *(color for color in COLORS if color != "#F0E442"),
    "#7F7F7F",
    "#8C510A",
    "#B2182B",
    "#4D9221",
    "#762A83",
)
TICK_RATIO = 1.9  # of two numbers of rows whose tick labels do not overlap
OWN_LDA = " (mmpca)"  # suffix of a baseline that uses the LDA of this package; its curve is dashed
ORACLE = "true parameters"
# Fits of which only the end is shown: run, legend, marker and color.
ENDS = (
    ("topics re-estimated", "the same, topics re-estimated after each move", "s", COLORS[2]),
    ("default", "default fit", "o", EMPHASIS),
)
COLUMNS = ("topic", "kind", "name", "probability")  # of the design


def agreement_curves(
    table: Columns, *, x: str, x_label: str, panel: str | None = None, panel_label: str = "", x_scale: str = "linear"
) -> Figure:
    """Draw the mean agreement of each method against column `x`, with standard errors; column `panel` splits it.

    The table has a row for each data set and method, with the columns `method`, `ari`, `x` and `panel`.
    """
    panels = list(dict.fromkeys(table[panel])) if panel is not None else [None]
    figure = new_figure(None, width=3.4 * len(panels) + 2.6, height=4.0)
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
    for ax, shown in zip(axes, panels, strict=True):
        is_in_panel = np.full(len(table[x]), True) if panel is None else np.asarray(table[panel]) == shown
        _method_curves(ax, table, x, is_in_panel)
        ax.set_xlabel(x_label)
        if x_scale == "log":
            ax.set_xscale("log")
            ax.set_xticks(np.unique(table[x]), [f"{position:.2g}" for position in np.unique(table[x])], minor=False)
            ax.minorticks_off()
        if panel is not None:
            ax.set_title(f"{panel_label} = {shown:g}", loc="left", fontsize="medium")
        tidy(ax)
    axes[0].set_ylabel("adjusted Rand index, mean ± standard error")
    axes[-1].legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _method_curves(ax: Axes, table: Columns, x: str, is_in_panel: NDArray[np.bool_]) -> None:
    """Draw a curve for each method."""
    methods, positions = np.asarray(table["method"]), np.asarray(table[x], dtype=float)
    values = np.asarray(table["ari"], dtype=float)
    names = list(dict.fromkeys(table["method"]))
    for name in names:
        at = is_in_panel & (methods == name)
        steps = np.unique(positions[at])
        groups = [values[at & (positions == step)] for step in steps]
        means = [group.mean() for group in groups]
        errors = [group.std(ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0.0 for group in groups]
        ax.errorbar(steps, means, yerr=errors, label=name, **_line_style(name, names))


def _line_style(name: str, names: list[str]) -> dict[str, Any]:
    """Return the style of a method's curve; both variants of a baseline have the same color."""
    if name == ORACLE:
        return {"color": "0.4", "linestyle": ":", "linewidth": 1.5}
    base = name.removesuffix(OWN_LDA)
    place = list(dict.fromkeys(other.removesuffix(OWN_LDA) for other in names if other != ORACLE)).index(base)
    return {
        "color": LINE_COLORS[place % len(LINE_COLORS)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4,
        "linestyle": "--" if name.endswith(OWN_LDA) else "-",
        "linewidth": 2.2 if name == "MMPCA" else 1.2,
        "zorder": 5 if name == "MMPCA" else 2,
    }


def run_courses(table: Columns) -> Figure:
    """Draw the bound and the adjusted Rand index during runs, and the end points of other fits of the same data.

    The columns are `seed`, `run` ("published", "topics re-estimated" or "default"), `epochs`, `above_truth` and `ari`.
    """
    figure = new_figure(None, width=8.4, height=3.8)
    axes = figure.subplots(1, 2)
    seeds, runs = np.asarray(table["seed"]), np.asarray(table["run"])
    epochs = np.asarray(table["epochs"], dtype=float)
    labels = ("bound minus bound of the true clusters, nats", "adjusted Rand index")
    for ax, name, label in zip(axes, ("above_truth", "ari"), labels, strict=True):
        values = np.asarray(table[name], dtype=float)
        for number, seed in enumerate(dict.fromkeys(table["seed"])):
            at = (seeds == seed) & (runs == "published")
            legend = "published algorithm, one random start" if number == 0 else None
            ax.plot(epochs[at], values[at], color=COLORS[0], linewidth=1, alpha=0.6, label=legend)
        for number, (run, legend, marker, color) in enumerate(ENDS):
            at = runs == run
            style: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": 5, "color": color}
            ax.plot(np.full(at.sum(), (1.04 + 0.05 * number) * epochs.max()), values[at], label=legend, **style)
        ax.set_xlabel("epochs (passes over all rows)")
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
) -> Figure:
    """Draw how often each cell of a grid is chosen, a map for each criterion and balance, with the truth framed.

    `counts` has the number of choices of each cell (Q, K) by criterion and balance; a true cell that is not on the grid
    has no frame.
    """
    criteria = list(dict.fromkeys(criterion for criterion, _ in counts))
    balances = list(dict.fromkeys(balance for _, balance in counts))
    size = 1.3 + 0.42 * len(n_clusters), 0.9 + 0.42 * len(n_topics)
    figure = new_figure(None, width=size[0] * len(balances), height=size[1] * len(criteria))
    axes = figure.subplots(len(criteria), len(balances), squeeze=False, sharex=True, sharey=True)
    for (row, criterion), (column, balance) in product(enumerate(criteria), enumerate(balances)):
        ax = axes[row, column]
        chosen = counts[criterion, balance]
        numbers = np.array([[chosen.get((q, k), 0) for q in n_clusters] for k in n_topics])
        shares = numbers / max(1, sum(chosen.values()))
        texts = [[f"{100 * share:.0f}" if share else "" for share in line] for line in shares]
        heat_map(ax, shares, n_topics, n_clusters, texts, "lower")
        if truth[0] in n_clusters and truth[1] in n_topics:
            ax.add_patch(frame(n_clusters.index(truth[0]), n_topics.index(truth[1])))
        ax.set_title(f"{criterion}, $\\lambda$ = {balance:g}", loc="left", fontsize="medium")
        ax.set_xlabel("clusters" if row == len(criteria) - 1 else "")
        ax.set_ylabel("topics" if column == 0 else "")
    return figure


def confusions(partitions: Mapping[str, tuple[Sequence[object], Sequence[int]]]) -> Figure:
    """Draw known classes against clusters, a table for each title."""
    widths = [2.2 + 0.5 * len(set(clusters)) for _, clusters in partitions.values()]
    n_classes = max(len(set(classes)) for classes, _ in partitions.values())
    figure = new_figure(None, width=sum(widths) + 1.5, height=1.4 + 0.36 * n_classes)
    axes = np.atleast_1d(figure.subplots(1, len(partitions), width_ratios=widths))
    for ax, (title, (classes, clusters)) in zip(axes, partitions.items(), strict=True):
        confusion(classes, clusters, ax=ax)
        ax.set_title(title, loc="left")
    return figure


def growth_curves(times: Mapping[str, tuple[Sequence[int], Sequence[float], float]]) -> Figure:
    """Draw times against numbers of rows on logarithmic axes; `times` has sizes, seconds and exponent by name."""
    figure = new_figure(None, width=6.8, height=4.0)
    ax = figure.add_subplot()
    for number, (name, (sizes, seconds, exponent)) in enumerate(times.items()):
        style = {"color": LINE_COLORS[number % len(LINE_COLORS)], "marker": MARKERS[number % len(MARKERS)]}
        ax.plot(sizes, seconds, label=f"{name}: exponent {exponent:.2f}", markersize=4, **style)  # type: ignore[arg-type]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows N")
    ax.set_ylabel("processor time, seconds")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    ticks = _row_ticks(sorted({size for line in times.values() for size in line[0]}))
    ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    tidy(ax)
    return figure


def _row_ticks(sizes: Sequence[int]) -> list[int]:
    """Return the sizes whose labels fit on a logarithmic axis; always the first and the last.

    Examples
    --------
    >>> _row_ticks([50, 100, 200, 300, 400, 600, 800, 1000])
    [50, 100, 200, 400, 1000]
    """
    ticks = list(sizes[:1])
    for size in sizes[1:-1]:
        if size >= TICK_RATIO * ticks[-1] and sizes[-1] >= TICK_RATIO * size:
            ticks.append(size)
    return ticks + list(sizes[1:][-1:])


def design_maps(table: Columns) -> Figure:
    """Draw the true topics, words by topics on a logarithmic scale, and the topic proportions of the clusters.

    The columns are `topic`, `kind` ("word" or "cluster"), `name` and `probability`; words are drawn in their order.
    """
    from matplotlib.colors import LogNorm

    topics = list(dict.fromkeys(table["topic"]))
    maps = {}
    for kind in ("word", "cluster"):
        names = list(dict.fromkeys(n for n, k in zip(table["name"], table["kind"], strict=True) if k == kind))
        places = {name: place for place, name in enumerate(names)}
        maps[kind] = np.zeros((len(topics), len(names)))
        for topic, row_kind, name, probability in zip(*(table[c] for c in COLUMNS), strict=True):
            if row_kind == kind:
                maps[kind][topics.index(topic), places[name]] = probability
    figure = new_figure(None, width=9.6, height=2.6)
    axes = figure.subplots(1, 2, width_ratios=(3, 1.2))
    words, clusters = np.ma.masked_equal(maps["word"], 0.0), maps["cluster"]
    image = axes[0].imshow(
        words, cmap=SEQUENTIAL, norm=LogNorm(vmin=words.min() / 3), aspect="auto", interpolation="nearest"
    )
    figure.colorbar(image, ax=axes[0], label="probability")
    axes[0].set_yticks(range(len(topics)), [str(topic).replace("_", " ") for topic in topics])
    axes[0].set_xlabel(f"{words.shape[1]} words, by their main topic")
    axes[0].set_title("true topics $\\beta$", loc="left", fontsize="medium")
    heat_map(axes[1], clusters.T, range(clusters.shape[1]), range(len(topics)), percent_texts(clusters.T))
    axes[1].set_xlabel("topic")
    axes[1].set_ylabel("cluster")
    axes[1].set_title("true proportions $\\theta$, %", loc="left", fontsize="medium")
    return figure
