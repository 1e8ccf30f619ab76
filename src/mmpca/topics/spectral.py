"""Topics from the main directions of all rows: where a sample shows too little to start from.

EM from random topics needs rows in which it can see them. Where features are many and rows short, no affordable sample
is enough: it predicts no better than the features' frequencies. The leading singular vectors of all rows average over
every one of them, in a few passes; groups of rows that lie near each other there are a start that EM can go on from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mmpca import kernels
from mmpca.blas import one_blas_thread
from mmpca.counts import Counts
from mmpca.places import EXACT_BITS, ForRows, Place, Rows, pieces_of, summed
from mmpca.stages import QUIET, Stages

Array = NDArray[np.float64]

N_PASSES = 6
SPARE_DIRECTIONS = 8  # beside those that are asked for: they speed up the convergence of the others
GROUPED_ROWS = 30_000  # that k-means sees
N_INIT = 3  # of k-means


def grouped_counts(
    place: Place,
    among: Rows,
    column_totals: Array,
    n_topics: int,
    rng: np.random.Generator,
    stages: Stages = QUIET,
) -> Array:
    """Return the summed counts (V, K) of groups of rows that are alike in their main directions.

    Parameters
    ----------
    place : Place
    among : array of int
        The rows that count.
    column_totals : array of shape (V,)
        Totals of the features; those without a count stay without.
    n_topics : int
        Number of groups.
    rng : Generator
        Draws the start of the iteration, and the rows that k-means sees.
    stages : Stages
        Told of each pass.
    """
    directions = main_directions(place, among, column_totals, n_topics, rng, stages)
    stages.begin("groups", "topics: groups of rows")
    some = np.sort(rng.choice(among, min(GROUPED_ROWS, len(among)), replace=False))
    centres = place.together(group_centres, some, directions, n_topics, int(rng.integers(2**31)))
    return place.total(nearest_sums, among, shared=(directions, centres))


def main_directions(
    place: Place,
    among: Rows,
    column_totals: Array,
    n_topics: int,
    rng: np.random.Generator,
    stages: Stages = QUIET,
) -> Array:
    """Return a basis (V, K - 1) whose product with the profile of a row places it among the others.

    The basis is of the leading singular vectors, but for the first, of the counts divided by the roots of their rows'
    and their features' totals, as in correspondence analysis; the mean total is added to those of the features, which
    keeps rare ones from making directions of their own. By subspace iteration: each pass is a sum over the rows.
    """
    is_present = column_totals > 0
    weight = np.where(is_present, 1.0 / np.sqrt(column_totals + column_totals[is_present].mean()), 0.0)[:, None]
    span = rng.standard_normal((len(weight), n_topics + SPARE_DIRECTIONS)) * is_present[:, None]
    with one_blas_thread():
        span = np.linalg.qr(span)[0]
        stages.begin("directions", "topics: main directions", N_PASSES * len(among))
        for number in range(N_PASSES):
            stages.reach(number * len(among), f"topics: main directions, pass {number + 1} of {N_PASSES}")
            image = _image(place, among, weight, span, int(column_totals.max()), stages)
            span, last = np.linalg.qr(image)[0], span
        # Directions within the last span, the leading ones first.
        values, turn = np.linalg.eigh(last.T @ image)
        leading = np.argsort(-values, kind="stable")[1:n_topics]
        return np.ascontiguousarray(weight * (last @ turn[:, leading]))


def _image(place: Place, among: Rows, weight: Array, span: Array, largest_total: int, stages: Stages) -> Array:
    """Return the product of the weighed rows, transposed, and of these with vectors (V, D)."""
    basis = np.ascontiguousarray(weight * span)
    # What a row adds is rounded to whole numbers of such a unit that no sum is too large to be exact.
    exponent = EXACT_BITS - np.ceil(np.log2(largest_total * np.abs(basis).max()))
    scale = float(2.0**exponent)
    return weight * (place.total(products, among, shared=(basis, scale, stages)) / scale)


# --- what is called where the rows are ------------------------------------------------------------------------------


def products(part: Counts, rows: Rows, basis: Array, scale: float, stages: Stages, for_rows: ForRows) -> Array:
    """Return the sums over rows of count times the mean of `basis` over the row, (V, D), in units of 1 / scale."""

    def add(at: slice, counts: Array) -> None:
        kernels.gather_products(part, rows[at], basis, scale, counts)
        stages.step(at.stop - at.start)

    return summed(add, pieces_of(part, rows), basis.shape, for_rows)


def group_centres(rows: Counts, directions: Array, n_topics: int, seed: int) -> Array:
    """Return the centres of groups of rows, (groups, D)."""
    from sklearn.cluster import KMeans  # half a second that others need not wait for

    points = np.empty((rows.n_rows, directions.shape[1]))
    kernels.project(rows, np.arange(rows.n_rows), directions, points)
    n_groups = min(n_topics, len(np.unique(points, axis=0)))
    with threadpool_limits(1, user_api="openmp"):
        centres: Array = KMeans(n_groups, n_init=N_INIT, random_state=seed).fit(points).cluster_centers_
    return centres


def nearest_sums(part: Counts, rows: Rows, directions: Array, centres: Array, for_rows: ForRows) -> Array:
    """Return the sums (V, K) of the rows that are nearest to each centre."""

    def add(at: slice, counts: Array) -> None:
        kernels.gather_nearest(part, rows[at], directions, centres, counts)

    return summed(add, pieces_of(part, rows), (part.n_features, directions.shape[1] + 1), for_rows)
