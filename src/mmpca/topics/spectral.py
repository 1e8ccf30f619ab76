"""Initial topics from the main directions of all rows, for data where a sample shows too little to start from.

EM from random topics must be able to see the topics in its rows. With many features and short rows, no affordable
sample suffices: its topics predict no better than the frequencies of the features. The leading singular vectors of all
rows average over every one of them in a few passes; groups of rows that are close to each other there give a start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import EXACT_BITS, RowBackend, Rows, Threads, one_blas_thread, one_library_thread, slices_of
from mmpca.counts import Counts
from mmpca.monitor import Monitor
from mmpca.topics import kernels

Array = NDArray[np.float64]

N_PASSES = 6
SPARE_DIRECTIONS = 8  # beyond those needed, to speed up the convergence of the others
GROUPED_ROWS = 30_000  # rows used by k-means
N_INIT = 3  # of k-means


def grouped_counts(
    backend: RowBackend,
    among: Rows,
    column_totals: Array,
    n_topics: int,
    rng: np.random.Generator,
    monitor: Monitor | None = None,
) -> Array:
    """Return the summed counts (V, K) of groups of rows that are similar in their main directions.

    Parameters
    ----------
    backend : RowBackend
    among : array of int
        Rows to use.
    column_totals : array of shape (V,)
        Totals of the features; those with a total of zero keep it.
    n_topics : int
        Number of groups.
    rng : Generator
        Draws the start of the iteration and the rows used by k-means.
    monitor : Monitor, optional
        Receives each row of each pass as a step.
    """
    monitor = Monitor() if monitor is None else monitor
    directions = main_directions(backend, among, column_totals, n_topics, rng, monitor)
    monitor.begin("topics", "topics: grouping rows")
    some = np.sort(rng.choice(among, min(GROUPED_ROWS, len(among)), replace=False))
    centers = backend.apply(group_centers, some, directions, n_topics, int(rng.integers(2**31)))
    return backend.map_reduce(nearest_sums, among, shared=(directions, centers))


def main_directions(
    backend: RowBackend, among: Rows, column_totals: Array, n_topics: int, rng: np.random.Generator, monitor: Monitor
) -> Array:
    """Return a basis (V, K - 1); the mean of a row's counts in it is the position of the row.

    The basis consists of the leading singular vectors, except the first, of the counts divided by the square roots of
    the totals of their rows and features, as in correspondence analysis. Adding the mean total to those of the features
    keeps rare features from dominating a direction. Computed by subspace iteration; each pass is a sum over
    the rows.
    """
    is_present = column_totals > 0
    weight = np.where(is_present, 1.0 / np.sqrt(column_totals + column_totals[is_present].mean()), 0.0)[:, None]
    span = rng.standard_normal((len(weight), n_topics + SPARE_DIRECTIONS)) * is_present[:, None]
    with one_blas_thread():
        span = np.linalg.qr(span)[0]
        monitor.begin("topics", "topics: main directions", N_PASSES * len(among))
        for _ in range(N_PASSES):
            basis = np.ascontiguousarray(weight * span)
            # The contribution of a row is rounded to a unit coarse enough for every sum to be exact.
            scale = float(2.0 ** (EXACT_BITS - np.ceil(np.log2(int(column_totals.max()) * np.abs(basis).max()))))
            image = weight * (backend.map_reduce(products, among, shared=(basis, scale, monitor)) / scale)
            span, last = np.linalg.qr(image)[0], span
            if monitor.is_stopped:
                break
        # Directions within the last span, the leading ones first.
        values, turn = np.linalg.eigh(last.T @ image)
        leading = np.argsort(-values, kind="stable")[1:n_topics]
        return np.ascontiguousarray(weight * (last @ turn[:, leading]))


# --- functions of a block ---------------------------------------------------------------------------------------


def products(block: Counts, rows: Rows, basis: Array, scale: float, monitor: Monitor, threads: Threads) -> Array:
    """Return the sums over rows of count times the row's mean of `basis`, (V, D), in units of 1 / scale."""

    def add(part: slice, counts: Array) -> None:
        kernels.gather_products(block, rows[part], basis, scale, counts)
        monitor.step(part.stop - part.start)

    return threads.sum_slices(add, slices_of(block, rows), basis.shape)


def group_centers(rows: Counts, directions: Array, n_topics: int, seed: int) -> Array:
    """Return the centers of groups of rows, (n_groups, D), found by k-means."""
    from sklearn.cluster import KMeans  # takes half a second to import

    points = np.empty((rows.n_rows, directions.shape[1]))
    kernels.project(rows, np.arange(rows.n_rows), directions, points)
    n_groups = min(n_topics, len(np.unique(points, axis=0)))
    with one_library_thread("openmp"):
        centers: Array = KMeans(n_groups, n_init=N_INIT, random_state=seed).fit(points).cluster_centers_
    return centers


def nearest_sums(block: Counts, rows: Rows, directions: Array, centers: Array, threads: Threads) -> Array:
    """Return the sums (V, K) of the rows nearest to each center."""

    def add(part: slice, counts: Array) -> None:
        kernels.gather_nearest(block, rows[part], directions, centers, counts)

    return threads.sum_slices(add, slices_of(block, rows), (block.n_features, directions.shape[1] + 1))
