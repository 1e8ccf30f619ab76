"""The figures of the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmpca.plots.style import COLOURS, EMPHASIS, MARKERS, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Columns = Mapping[str, Sequence[Any]]

MORE_COLOURS = ("#7F7F7F", "#8C510A", "#B2182B")
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
    place = [other for other in names if not other.endswith(VARIANT) and other != CEILING].index(base)
    colours = (*(colour for colour in COLOURS if colour != "#F0E442"), *MORE_COLOURS)  # yellow is hard to see
    return {
        "color": colours[place % len(colours)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4,
        "linestyle": "--" if name.endswith(VARIANT) else "-",
        "linewidth": 2.2 if name == "MMPCA" else 1.2,
        "zorder": 5 if name == "MMPCA" else 2,
    }
