"""The drawings of the page, as coordinates for SVG: curves, a tree, dots, strips, and how clusters split."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy

from mmpca.model import MMPCA
from mmpca.model.explanation import LIKELY
from mmpca.model.results import cluster_features
from mmpca.report.context import Context, Margins
from mmpca.report.formatting import clean, count, decimals

Array = NDArray[np.float64]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 220, 112, 12, 12, 36  # size and margins of a curve, in SVG units
MAX_EPOCHS = 200  # in the table below the curve
N_MARKERS, MAX_MARKERS = 3, 60  # features of each cluster in the dot plot, and of all clusters
STRIP_WIDTH, STRIP_HEIGHT, STRIP_POINTS = 200, 26, 80
LEVEL_WIDTH, LEVEL_HEIGHT = 44, 62  # room for a cluster in the drawing of splits
SMALLEST_PART = 0.05  # share of a cluster's rows from which it is said to come from another one
TICKS = (0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000)


class Curve(NamedTuple):
    """The bound after each epoch, as the points of an SVG drawing."""

    points: list[tuple[float, float]]
    y_ticks: list[tuple[float, str]]
    x_ticks: list[tuple[float, str]]
    table: list[tuple[int, str, str]]  # epoch, bound, increase
    n_left_out: int
    size: tuple[int, int, int, int, int] = (WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM)


def bound_curve(history: ArrayLike) -> Curve:
    """Return the bound after each epoch of the best start."""
    bounds = np.asarray(history, dtype=float)
    low, high = float(bounds.min()), float(bounds.max())
    height, n_steps = HEIGHT - BOTTOM - TOP, max(len(bounds) - 1, 1)
    x = LEFT + (WIDTH - LEFT - RIGHT) * np.arange(len(bounds)) / n_steps
    y = TOP + height * (high - bounds) / (high - low or 1.0)
    increases = ["", *(f"+{max(step, 0.0):,.1f}" for step in np.diff(bounds).tolist())]
    shown = range(min(len(bounds), MAX_EPOCHS))
    return Curve(
        points=list(zip(x.tolist(), y.tolist(), strict=True)),
        y_ticks=[(float(TOP), decimals(high))] + ([(float(TOP + height), decimals(low))] if high > low else []),
        x_ticks=[
            (float(x[epoch]), str(epoch)) for epoch in np.unique(np.linspace(0, len(x) - 1, 5).round().astype(int))
        ],
        table=[(epoch, decimals(float(bounds[epoch])), increases[epoch]) for epoch in shown],
        n_left_out=len(bounds) - len(shown),
    )


# --- numbers of clusters and topics -----------------------------------------------------------------------------


class NumberCurves(NamedTuple):
    """How far numbers of clusters or topics fall short of the best one, as an SVG drawing."""

    noun: str  # what the numbers count
    lines: list[tuple[str, list[tuple[float, float, float, float]], list[str]]]  # name; x, y, ends of errors; tips
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    table: list[tuple[int, str, float, float]]  # number, name of its line, how far behind the best, standard error
    size: tuple[int, int, int, int, int] = (WIDTH, HEIGHT, 64, RIGHT, BOTTOM)

    @property
    def has_errors(self) -> bool:
        """True if standard errors are known."""
        return any(low < high for _, points, _ in self.lines for *_, low, high in points)


def compare_numbers(noun: str, lines: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]]) -> NumberCurves:
    """Draw how far each number falls short of the best, with standard errors, in one or more lines.

    The scale is logarithmic: a few units decide, yet distant numbers may be thousands behind.
    """
    arrays = {name: [np.asarray(one, dtype=float) for one in line] for name, line in lines.items()}
    numbers = np.unique(np.concatenate([line[0] for line in arrays.values()]))
    deepest = max(float((line[1] + line[2]).max()) for line in arrays.values())
    left = 64

    def at_x(number: Any) -> Any:
        return left + 10 + (WIDTH - left - RIGHT - 20) * (number - numbers[0]) / max(numbers[-1] - numbers[0], 1)

    def at_y(behind: Any) -> Any:
        return TOP + (HEIGHT - TOP - BOTTOM) * np.log1p(np.maximum(behind, 0)) / max(np.log1p(deepest), 1e-9)

    drawn, table = [], []
    for name, (own, behind, error) in arrays.items():
        order = np.argsort(own)
        points = np.column_stack([at_x(own), at_y(behind), at_y(behind - error), at_y(behind + error)])[order]
        tips = [
            f"{count(int(own[i]), noun)}: {'best' if behind[i] == 0 else f'{behind[i]:,.1f} below the best'}"
            f"{f' ± {error[i]:,.1f}' if error[i] else ''}"
            for i in order
        ]
        drawn.append((name, [tuple(point) for point in points.tolist()], tips))
        table += [(int(own[i]), name, float(behind[i]), float(error[i])) for i in order]
    few = _apart([(float(at_x(n)), str(int(n))) for n in numbers], 22)
    ticks = [(float(at_y(tick)), f"\N{MINUS SIGN}{tick:,}" if tick else "best") for tick in TICKS if tick <= deepest]
    return NumberCurves(
        noun,
        drawn,
        x_ticks=few,
        y_ticks=_apart(ticks, 15),
        table=table,
    )


def _apart(ticks: list[tuple[float, str]], distance: float) -> list[tuple[float, str]]:
    """Drop ticks whose labels would overlap the previous one.

    Examples
    --------
    >>> _apart([(0.0, "1"), (5.0, "2"), (20.0, "3")], 15)
    [(0.0, '1'), (20.0, '3')]
    """
    kept: list[tuple[float, str]] = []
    for tick in ticks:
        if not kept or tick[0] - kept[-1][0] >= distance:
            kept.append(tick)
    return kept


class Splits(NamedTuple):
    """How clusters split from one number of clusters to the next, as an SVG drawing."""

    size: tuple[int, int]
    nodes: list[tuple[float, float, float, str, bool]]  # x, y, radius, text, whether it is a cluster of the model
    edges: list[tuple[float, float, float, float, float]]  # from, to, width
    levels: list[tuple[float, int]]  # y, number of clusters
    sentences: list[str]
    table: list[tuple[int, int, int, int, int]]  # number of clusters, cluster; the same one level below; shared rows


def draw_splits(tables: list[list[list[float]]], n_clusters: int) -> Splits | None:
    """Draw tables of the rows that clusters of one level share with those of the next; None without tables."""
    shared = [np.asarray(table, dtype=float) for table in tables]
    if not shared:
        return None
    sizes = [shared[0].sum(axis=1), *(table.sum(axis=0) for table in shared)]
    widest = max(map(len, sizes))
    nodes, edges, levels, sentences, table = [], [], [], [], []
    above: Array = np.empty(0)
    for level, own in enumerate(sizes):
        order = np.arange(len(own))
        if level:  # below the mean position of the clusters that its rows come from
            order = np.argsort((shared[level - 1] * above[:, None]).sum(axis=0) / np.maximum(own, 1), kind="stable")
        x, y = np.empty(len(own)), 24.0 + LEVEL_HEIGHT * level
        x[order] = 70 + (np.arange(len(own)) + 0.5) * LEVEL_WIDTH * widest / len(own)
        is_own = len(own) == n_clusters
        for q, size in enumerate(own.tolist()):
            radius = 9 + 11 * float(np.sqrt(size / own.sum()))
            nodes.append((float(x[q]), y, radius, str(q) if is_own else "", is_own))
        if level:
            parts = shared[level - 1] / np.maximum(own, 1)
            for first, second in zip(*np.nonzero(parts >= SMALLEST_PART), strict=True):
                edges.append(
                    (float(above[first]), y - LEVEL_HEIGHT, float(x[second]), y, 7 * float(parts[first, second]))
                )
            table += [
                (len(above), q, len(own), to, int(n))
                for q, line in enumerate(shared[level - 1].tolist())
                for to, n in enumerate(line)
                if n
            ]
            sentences += [one for one in [_change(shared[level - 1], n_clusters)] if one]
        levels.append((y, len(own)))
        above = x
    size = (90 + LEVEL_WIDTH * widest, 48 + LEVEL_HEIGHT * (len(sizes) - 1))
    return Splits(size, nodes, edges, levels, sentences, table)


def _change(shared: Array, n_clusters: int) -> str:
    """Describe what happens to the clusters of the model between two numbers of clusters, "" if neither is its own.

    shared: (Q, Q'), the rows that are in both.
    """
    before, after = shared.shape
    head = f"From {before} to {after} clusters"
    if before == n_clusters:
        back = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
        parts = [(q, int((line >= 0.2).sum())) for q, line in enumerate(back)]
        split = [f"cluster {q} splits in {n}" for q, n in parts if n > 1]
        return f"{head}: {', '.join(split) if split else 'no cluster of this model splits clearly'}."
    if after == n_clusters:
        forth = shared / np.maximum(shared.sum(axis=0), 1)
        origin = shared.argmax(axis=0)
        groups = [np.flatnonzero(origin == q).tolist() for q in range(before)]
        joined = [f"clusters {' and '.join(map(str, own))} were one" for own in groups if len(own) > 1]
        mixed = int((forth.max(axis=0) < 1 - SMALLEST_PART).sum())
        verb = "takes" if mixed == 1 else "take"
        note = f"; {count(mixed, 'cluster')} of this model {verb} rows from several" if mixed else ""
        return f"{head}: {', '.join(joined) if joined else 'no two clusters of this model were one'}{note}."
    return ""


# --- clusters ---------------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """The order of clusters in the tree of their merges, and the tree as an SVG path with one unit per cluster."""

    order: list[int]
    path: str


def merge_tree(model: MMPCA) -> Tree:
    """Return the tree in which the clusters merge; similar clusters stand next to each other."""
    n_clusters = len(model.weights_)
    if n_clusters < 2:
        return Tree(list(range(n_clusters)), "")
    drawn = hierarchy.dendrogram(model.merge_path().linkage, no_plot=True)
    highest = max(max(heights) for heights in drawn["dcoord"]) or 1.0
    lines = []
    for y, heights in zip(drawn["icoord"], drawn["dcoord"], strict=True):  # leaf i is at 5 + 10 i
        points = [
            f"{100 - 96 * float(np.sqrt(h / highest)):.1f} {one / 10:.3f}" for one, h in zip(y, heights, strict=True)
        ]
        lines.append(f"M{'L'.join(points)}")
    return Tree([int(leaf) for leaf in drawn["leaves"] or ()], "".join(lines))


class Dots(NamedTuple):
    """The dot plot of the features that distinguish the clusters."""

    features: list[str]
    # Cluster; share of its rows that have each feature; frequency of each feature, relative to the largest.
    lines: list[tuple[int, list[tuple[float, float]]]]


def marker_dots(context: Context, order: list[int]) -> Dots | None:
    """Return the most distinctive features of each cluster, in all clusters; None for a model without row counts."""
    model = context.model
    rows = getattr(model, "cluster_row_counts_", None)  # older files do not have it
    if rows is None or len(model.weights_) < 2:
        return None
    n_each = max(1, min(N_MARKERS, MAX_MARKERS // len(order)))
    measured = list(cluster_features(model))
    chosen = list(dict.fromkeys(v for q in order for v in measured[q].leading(n_each)))[:MAX_MARKERS]
    sizes = np.maximum(model.cluster_sizes, 1)
    shares = np.array([own.share[chosen] for own in measured])  # (Q, F)
    relative = shares / np.maximum(shares.max(axis=0), 1e-300)
    present = rows[:, chosen] / sizes[:, None]
    return Dots(
        [clean(context.feature_name(v), 24) for v in chosen],
        [(q, list(zip(present[q].tolist(), relative[q].tolist(), strict=True))) for q in order],
    )


class Strip(NamedTuple):
    """The certainty of the rows of a cluster, most certain first."""

    points: str  # of a polygon
    mark: float | None  # where borderline rows begin
    size: tuple[int, int] = (STRIP_WIDTH, STRIP_HEIGHT)


def certainty_strip(margins: Margins, members: NDArray[np.intp]) -> Strip | None:
    """Return the certainty of the rows of a cluster, sorted; None for a cluster without rows."""
    if not len(members):
        return None
    own = np.sort(margins.certainty[members])[::-1]
    some = own[np.linspace(0, len(own) - 1, min(len(own), STRIP_POINTS)).round().astype(int)]
    x = np.linspace(0, STRIP_WIDTH, len(some) + 1)
    y = STRIP_HEIGHT * (1 - some)
    corners = [(0.0, float(STRIP_HEIGHT))]
    for (start, end), height in zip(pairwise(x.tolist()), y.tolist(), strict=True):
        corners += [(start, height), (end, height)]
    corners.append((float(STRIP_WIDTH), float(STRIP_HEIGHT)))
    n_sure = float((own >= LIKELY).mean())
    return Strip(" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), STRIP_WIDTH * n_sure if n_sure < 1 else None)
