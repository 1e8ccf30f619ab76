"""Colors, axes and files that all figures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mmpca.store import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The color-blind safe palette of Okabe and Ito, with the colors that show best on white first.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# For the page, where black and yellow would vanish on a dark or light background. Known labels use Paul Tol's colors.
PAGE_COLORS = (*COLORS[:6], "#8C6BB1", "#A6761D")
LABEL_COLORS = ("#44AA99", "#CC6677", "#AA4499", "#999933", "#88CCEE", "#882255", "#DDCC77", "#117733")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SEQUENTIAL = "Blues"  # from white to dark in a single hue, so lightness alone carries the order
EMPHASIS = "#D55E00"
DARK = 0.68  # position in the sequential color map above which white text is easier to read than black
NAME_LENGTH = 24
MOST_NAMED, EDGE = 12, 0.2  # most clusters shown with long names; share of the width that counts as an edge
MAX_NUMBERED_CELLS = 200  # in a larger heat map, numbers would be too small to read


def new_axes(ax: Axes | None, width: float = 5.0, height: float = 3.6) -> Axes:
    """Return the given axes, or the axes of a new figure with this size in inches."""
    return new_figure(None, width, height).add_subplot() if ax is None else ax


def new_figure(figure: Figure | None, width: float, height: float) -> Figure:
    """Return the given figure, or a new one with this size in inches."""
    if figure is not None:
        return figure
    check_matplotlib()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def check_matplotlib() -> None:
    """Raise ImportError with the install command if matplotlib is missing."""
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError('Figures need matplotlib. Install it with: pip install "mmpca[plots]"') from error


def tidy(ax: Axes) -> None:
    """Remove the top and right spines and add a faint horizontal grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def tidy_bars(ax: Axes) -> None:
    """Tidy axes with horizontal bars: a vertical grid, and no ticks beside the names."""
    tidy(ax)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.tick_params(axis="y", length=0)


def frame(x: float, y: float) -> Any:
    """Return a rectangle around one cell of a heat map."""
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1.0, 1.0, fill=False, edgecolor=EMPHASIS, linewidth=2.5)


def heat_map(
    ax: Axes,
    shades: NDArray[np.float64],
    rows: Iterable[object],
    columns: Iterable[object],
    texts: Sequence[Sequence[str]] = (),
    origin: Literal["upper", "lower"] = "upper",
) -> None:
    """Draw a cell for each shade, from 0 (white) to 1 (dark), with the names of rows and columns and texts in cells.

    shades, texts: (n_rows, n_columns); a cell of shade NaN stays white, and texts may be empty or missing.
    """
    ax.imshow(shades, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto", origin=origin)
    ax.set_xticks(np.arange(shades.shape[1]), [str(name) for name in columns])
    ax.set_yticks(np.arange(shades.shape[0]), [str(name) for name in rows])
    for y, line in enumerate(texts):
        for x, text in enumerate(line):
            if text:
                color = "white" if shades[y, x] > DARK else "black"
                ax.text(x, y, text, ha="center", va="center", color=color, fontsize="small")


def percent_texts(shares: NDArray[np.float64]) -> list[list[str]]:
    """Return shares in percent as the texts of a heat map, or none if there are too many cells to read them."""
    return [[f"{100 * share:.0f}" for share in row] for row in shares] if shares.size <= MAX_NUMBERED_CELLS else []


def draw_clusters(
    ax: Axes, positions: NDArray[np.float64], groups: NDArray[np.int64], values: NDArray[np.float64] | None = None
) -> None:
    """Draw rows as points, colored by cluster, or by values with a color bar; positions: (n, 2)."""
    size = 14 if len(positions) <= 1000 else 5
    if values is not None:
        points = ax.scatter(positions[:, 0], positions[:, 1], c=values, s=size, linewidths=0, cmap="viridis")
        ax.figure.colorbar(points, ax=ax, shrink=0.8)
        return
    for q in np.unique(groups):
        own = positions[groups == q]
        # Eight colors, then the same ones with another marker.
        color, marker = COLORS[q % len(COLORS)], MARKERS[q // len(COLORS) % len(MARKERS)]
        ax.scatter(own[:, 0], own[:, 1], s=size, alpha=0.75, linewidths=0, color=color, marker=marker)


def draw_names(
    ax: Axes, positions: NDArray[np.float64], groups: NDArray[np.int64], names: Sequence[object] | None = None
) -> None:
    """Write the names of clusters, by default their numbers, at the medians of their rows; positions: (n, 2)."""
    frame = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.4", "linewidth": 0.8, "alpha": 0.85}
    shown, (left, right) = np.unique(groups), (positions[:, 0].min(), positions[:, 0].max())
    size = "small" if len(shown) <= MOST_NAMED else "x-small"
    for q in shown:
        x, y = np.median(positions[groups == q], axis=0)
        if names is None:
            name, side = str(q), "center"
        else:  # with many clusters, only the first feature; names near an edge are aligned with it
            name = short_name(names[q] if len(shown) <= MOST_NAMED else str(names[q]).split(", ")[0])
            at = (x - left) / max(right - left, 1e-12)
            side = "left" if at < EDGE else "right" if at > 1 - EDGE else "center"
        ax.text(x, y, name, ha=side, va="center", fontsize=size, bbox=frame, zorder=4)


def short_name(name: object, length: int = NAME_LENGTH) -> str:
    """Shorten a name so that it fits beside an axis, and keep matplotlib from reading it as a formula."""
    text = str(name)
    short = text if len(text) <= length else text[: length - 1] + "…"
    return short.replace("$", r"\$")


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG, each atomically, and close it; `path` has no suffix. Return the two files."""
    import matplotlib.pyplot as plt

    written = []
    # Without a date and with a fixed salt for its identifiers, the same figure gives the same SVG file.
    with plt.rc_context({"svg.hashsalt": "mmpca"}):
        for suffix in ("png", "svg"):
            target = path.with_name(f"{path.name}.{suffix}")

            def write(file: IO[bytes], suffix: str = suffix) -> None:
                """Write the figure in one of the formats."""
                figure.savefig(file, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else {})

            write_atomically(target, write)
            written.append(target)
    plt.close(figure)
    return written
