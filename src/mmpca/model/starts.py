"""Labels to start from, and the searches from all of them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from mmpca import engine
from mmpca.counts import Counts
from mmpca.engine.bound import Array

Labels = NDArray[np.int32]


class Start(NamedTuple):
    """Labels to start a search from, with the generator that orders its visits."""

    kind: str
    labels: Labels
    rng: np.random.Generator


class Outcome(NamedTuple):
    """Where a search from one start ended."""

    kind: str
    bound: float
    labels: Labels
    gamma: Array  # (Q, K)
    run: engine.Run


def random_labels(n_samples: int, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return a random partition into clusters of equal size, up to one row."""
    return rng.permutation(np.arange(n_samples) % n_clusters).astype(np.int32)


def kmeans_labels(shares: Array, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return the partition of k-means on the square roots of topic shares (N, K), where distances are Hellinger's."""
    points = np.sqrt(shares)
    # k-means warns where there are fewer distinct points than clusters: the rest are filled below instead.
    n_distinct = min(n_clusters, len(np.unique(points, axis=0)))
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # points that differ by rounding alone
        labels = KMeans(n_distinct, n_init=1, random_state=seed).fit(points).labels_.astype(np.int32)
    return fill_empty(labels, n_clusters, rng)


def fill_empty(labels: Labels, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return labels in which every cluster has a row, taking rows at random from the largest clusters."""
    labels = labels.copy()
    sizes = np.bincount(labels, minlength=n_clusters)
    for q in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        labels[rng.choice(np.flatnonzero(labels == largest))] = q
        sizes[largest] -= 1
        sizes[q] += 1
    return labels


def search_all(
    starts: Sequence[Start],
    rows: Counts,
    *,
    beta: Array,
    alpha: float,
    n_clusters: int,
    n_threads: int,
    search: Callable[..., engine.Run],
    callback: Callable[[int, engine.Progress], object] | None = None,
) -> list[Outcome]:
    """Search from every start, several at a time in threads; after an interruption, from those that had begun.

    The outcomes come in the order of the starts and do not depend on the number of threads. `callback` is called with
    the number of the start and its progress; a true answer stops all of them, and so does Ctrl-C.
    """
    stop = threading.Event()
    n_parallel = min(n_threads, len(starts))

    def one(number: int) -> Outcome | None:
        if stop.is_set():
            return None

        def watch(progress: engine.Progress) -> bool:
            if callback is not None and callback(number, progress):
                stop.set()
            return stop.is_set()

        start = starts[number]
        state = engine.build(rows, start.labels, n_clusters=n_clusters, beta=beta, alpha=alpha)
        run = search(state, rng=start.rng, n_threads=n_threads // n_parallel, callback=watch)
        if run.interrupted:
            stop.set()
        return Outcome(start.kind, run.bounds[-1], state.labels, state.gamma, run)

    if n_parallel == 1:
        outcomes = [one(number) for number in range(len(starts))]
    else:
        with ThreadPoolExecutor(n_parallel) as pool:
            futures = [pool.submit(one, number) for number in range(len(starts))]
            try:
                outcomes = [future.result() for future in futures]
            except KeyboardInterrupt:
                # Only the main thread hears Ctrl-C; the others stop after their block.
                stop.set()
                outcomes = [future.result() for future in futures]
    return [outcome for outcome in outcomes if outcome is not None]
