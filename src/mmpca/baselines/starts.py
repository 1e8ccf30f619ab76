"""Where the mixtures start: partitions of two kinds by turns, so that neither kind's weakness decides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmpca.baselines.base import Labels
from mmpca.baselines.directions import run_directions
from mmpca.baselines.weighting import unit_tfidf
from mmpca.counts import Counts

# Assignments of a k-means start: the mixture goes on from there, so it need not settle.
_START_ITER = 20


def start_partitions(rows: Counts, n_clusters: int, seeds: list[int]) -> Iterator[tuple[Labels, int]]:
    """Yield labels that use every cluster, and the seed they came from: spherical k-means, random, by turns."""
    units = unit_tfidf(rows)
    for turn, seed in enumerate(seeds):
        if turn % 2 == 0:
            yield run_directions(units, n_clusters, seed=seed, max_iter=_START_ITER).labels, seed
        else:
            yield random_partition(rows.n_rows, n_clusters, seed), seed


def random_partition(n_rows: int, n_clusters: int, seed: int) -> Labels:
    """Return labels of clusters of equal size, but for one row, in random order."""
    return np.random.RandomState(seed).permutation(np.arange(n_rows) % n_clusters)
