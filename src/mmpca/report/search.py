"""How the fit went, and how the numbers of clusters and topics were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.model import MMPCA
from mmpca.report.clusters import SHADES, Cell
from mmpca.report.words import exact, number
from mmpca.selection import MMPCASearch
from mmpca.selection.reasons import sentence

Array = NDArray[np.float64]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 220, 112, 36, 12  # of the curve, in its own units
MOST_EPOCHS = 200  # in the table behind it


class Curve(NamedTuple):
    """The bound along the epochs, as points of a drawing."""

    points: list[tuple[float, float]]
    y_marks: list[tuple[float, str]]
    x_marks: list[tuple[float, str]]
    table: list[tuple[int, str, str]]  # epoch, bound, rise
    n_left_out: int
    size: tuple[int, int, int, int]  # width, height, left and bottom margin

    @property
    def line(self) -> str:
        """The points as SVG writes them."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


class Choice(NamedTuple):
    """How (Q, K) was chosen."""

    reason: str
    criterion: str
    n_clusters: list[int]
    lines: list[tuple[int, list[Cell | None]]]  # for each number of topics; None where there is no such fit
    best: tuple[int, int]
    wins: list[tuple[int, int, float]]


def curve_of(model: MMPCA) -> Curve:
    """Return the bound's history of the best start."""
    bounds = np.asarray(model.bound_history_, dtype=float)
    low, high = float(bounds.min()), float(bounds.max())
    span = high - low or 1.0
    inner_width, inner_height = WIDTH - LEFT - 12, HEIGHT - BOTTOM - TOP
    steps = max(len(bounds) - 1, 1)
    points = [
        (LEFT + inner_width * epoch / steps, TOP + inner_height * (high - bound) / span)
        for epoch, bound in enumerate(bounds.tolist())
    ]
    y_marks = [(float(TOP), exact(high))] + ([(float(TOP + inner_height), exact(low))] if high > low else [])
    places = np.unique(np.linspace(0, len(bounds) - 1, 5).round().astype(int)).tolist()
    rises = np.diff(bounds, prepend=np.nan)
    table = [
        (epoch, exact(bound), "" if epoch == 0 else f"+{max(rise, 0.0):,.1f}")
        for epoch, (bound, rise) in enumerate(zip(bounds.tolist(), rises.tolist(), strict=True))
    ][:MOST_EPOCHS]
    return Curve(
        points,
        y_marks,
        [(points[epoch][0], str(epoch)) for epoch in places],
        table,
        len(bounds) - len(table),
        (WIDTH, HEIGHT, LEFT, BOTTOM),
    )


def choice_of(search: MMPCASearch | Mapping[str, ArrayLike] | None) -> Choice | None:
    """Return how (Q, K) was chosen by a fitted search, or as its results say; None without."""
    if search is None:
        return None
    results, criterion = _results(search)
    table = {name: np.asarray(column) for name, column in results.items()}
    n_clusters, n_topics, score = table["n_clusters"], table["n_topics"], table[criterion].astype(float)
    behind = score.max() - score
    best = int(behind.argmin())
    return Choice(
        sentence(table, criterion),
        criterion,
        np.unique(n_clusters).tolist(),
        [(int(k), _line(n_clusters, behind, n_topics == k)) for k in np.unique(n_topics)],
        (int(n_clusters[best]), int(n_topics[best])),
        _wins(results, n_clusters, n_topics),
    )


def _results(search: Any) -> tuple[Mapping[str, ArrayLike], str]:
    """Return the table of a search and the criterion that decided; larger is better."""
    if hasattr(search, "results_"):
        return search.results_, search.criterion
    if not isinstance(search, Mapping):
        raise TypeError(f"search must be a fitted MMPCASearch or its results_, but it is a {type(search).__name__}.")
    criterion = "predictive" if "predictive" in search else "icl"
    missing = {"n_clusters", "n_topics", criterion} - set(search)
    if missing:
        raise ValueError(f"search must have the column {sorted(missing)[0]!r}, but it has {sorted(search)}.")
    return search, criterion


def _line(n_clusters: NDArray[Any], behind: Array, is_wanted: NDArray[np.bool_]) -> list[Cell | None]:
    """Return the cells of one number of topics, in the order of the numbers of clusters."""
    found = dict(zip(n_clusters[is_wanted].tolist(), behind[is_wanted].tolist(), strict=True))
    # Differences of a few nats decide, and far cells are thousands behind: a logarithmic scale shows both.
    deepest = float(np.log1p(behind).max()) or 1.0
    return [_cell(found[q], deepest) if q in found else None for q in np.unique(n_clusters).tolist()]


def _cell(behind: float, deepest: float) -> Cell:
    shade = round((SHADES - 1) * (1 - float(np.log1p(behind)) / deepest))
    return Cell("best" if behind == 0 else number(behind), behind, shade)


def _wins(results: Mapping[str, ArrayLike], n_clusters: NDArray[Any], n_topics: NDArray[Any]) -> list[Any]:
    """Return the cells that have won on parts of the rows, the most frequent first."""
    if "wins" not in results:
        return []
    wins = np.asarray(results["wins"], dtype=float)
    order = np.argsort(-wins, kind="stable")
    return [(int(n_clusters[c]), int(n_topics[c]), float(wins[c])) for c in order if wins[c] > 0]
