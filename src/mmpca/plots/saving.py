"""Figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from mmpca.model.archive import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG, each whole or not at all, and close it.

    Parameters
    ----------
    figure : Figure
    path : Path
        Without an ending; those of the formats are added.

    Returns
    -------
    list of Path
        What was written.
    """
    import matplotlib.pyplot as plt

    written = []
    # The same figure makes the same SVG: no date, and identifiers that are not drawn anew.
    with plt.rc_context({"svg.hashsalt": "mmpca"}):
        for ending in ("png", "svg"):
            target = path.with_name(f"{path.name}.{ending}")

            def write(file: IO[bytes], ending: str = ending) -> None:
                metadata = {"Date": None} if ending == "svg" else {}
                figure.savefig(file, format=ending, dpi=DOTS_PER_INCH, metadata=metadata)

            write_atomically(target, write)
            written.append(target)
    plt.close(figure)
    return written
