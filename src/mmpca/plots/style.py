"""What all figures have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart, the darkest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SEQUENTIAL = "Blues"  # white for nothing; its lightness alone tells the order
EMPHASIS = "#D55E00"
DARK = 0.68  # of the sequential colours: from here on white is easier to read on them than black
NAME_LENGTH = 24


def new_axes(ax: Axes | None, width: float = 5.0, height: float = 3.6) -> Axes:
    """Return the axes, or those of a new figure of so many inches."""
    return new_figure(None, width, height).add_subplot() if ax is None else ax


def new_figure(figure: Figure | None, width: float, height: float) -> Figure:
    """Return the figure, or a new one of so many inches."""
    if figure is not None:
        return figure
    check_matplotlib()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def check_matplotlib() -> None:
    """Say how to install matplotlib where it is missing."""
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError('Figures need matplotlib. Install it with: pip install "mmpca[plots]"') from error


def tidy(ax: Axes) -> None:
    """Take away what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def tidy_bars(ax: Axes) -> None:
    """Take away what carries no information beside horizontal bars."""
    tidy(ax)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.tick_params(axis="y", length=0)


def short_name(name: object) -> str:
    """Return a name that fits beside an axis, and that matplotlib does not take for a formula."""
    told = str(name)
    short = told if len(told) <= NAME_LENGTH else told[: NAME_LENGTH - 1] + "…"
    return short.replace("$", r"\$")  # two dollars would be a formula
