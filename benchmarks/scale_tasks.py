"""Fits of large data and passes of rivals over them, each for a process of its own; see `scale.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np

DISTURBED = 0.1  # share of the labels that a search starts with at random, to have more than one epoch


def fit_threads(folder: str, n_threads: str, n_groups: str) -> dict[str, Any]:
    """Fit the counts of a folder, mapped into memory, in threads of this process."""
    from mmpca import MMPCA
    from mmpca.io import read_counts

    warm_up()
    X = read_counts(Path(folder, "X.npz")).X
    model = MMPCA(int(n_groups), int(n_groups), n_jobs=int(n_threads), random_state=0)
    found = watched(lambda: model.fit(X))
    found |= {"gigabytes": peak_gigabytes(), "ari": agreement(folder, model.labels_), "bound": model.bound_}
    found["entries"] = int(X.nnz)
    if n_threads == "1":
        found["product"] = product_seconds(X, int(n_groups))
        found["epochs"] = epochs_from_disturbed_labels(model, X)
    return found


def epochs_from_disturbed_labels(model: Any, X: Any) -> list[float]:
    """Return the seconds of each epoch of a search whose start has every tenth label drawn anew.

    A search of all of many rows often needs one epoch only, as its start comes from a sample.
    """
    from mmpca import MMPCA

    rng = np.random.default_rng(0)
    labels = model.labels_.copy()
    some = rng.random(len(labels)) < DISTURBED
    labels[some] = rng.integers(model.n_clusters, size=some.sum())
    again = MMPCA(
        model.n_clusters, model.n_topics, topics=model.components_, start=labels, refit_topics=False, n_jobs=1,
        random_state=0,
    )  # fmt: skip
    epochs: list[float] = watched(lambda: again.fit(X), n_rows=len(labels))["epochs"]
    return epochs


def fit_processes(folder: str, n_workers: str, n_groups: str) -> dict[str, Any]:
    """Fit the blocks of a folder, read by workers of a Dask cluster."""
    from distributed import Client, LocalCluster

    from mmpca import MMPCA
    from mmpca.distributed import fit

    blocks = sorted(Path(folder).glob("block-*.npz"))
    # The client's own threads: it waits while workers work, and they while it brings clusters up to date.
    model = MMPCA(int(n_groups), int(n_groups), n_jobs=int(n_workers), random_state=0)
    local = LocalCluster(
        n_workers=int(n_workers), threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None,
        host="127.0.0.1",
    )  # fmt: skip
    with local as cluster, Client(cluster) as client:
        client.run(warm_up)
        warm_up()
        found = watched(lambda: fit(model, blocks, client))
        gigabytes = peak_gigabytes() + sum(client.run(peak_gigabytes).values())
        found["processor"] += sum(client.run(process_time).values())
    return found | {"gigabytes": gigabytes, "ari": agreement(folder, model.labels_), "bound": model.bound_}


def fit_corpus() -> dict[str, Any]:
    """Fit the corpus of the engine's benchmark; beside it, make ten iterations of scikit-learn's LDA over all rows."""
    from sklearn.decomposition import LatentDirichletAllocation

    from mmpca import MMPCA
    from problems import FULL, corpus

    warm_up()
    X = corpus(FULL).X
    found = watched(lambda: MMPCA(FULL.n_clusters, FULL.n_topics, n_jobs=1, random_state=0).fit(X))
    rival = LatentDirichletAllocation(FULL.n_topics, learning_method="batch", max_iter=10, n_jobs=1, random_state=0)
    start = process_time()
    rival.fit(X)
    return found | {"lda": process_time() - start, "gigabytes": peak_gigabytes()}


def pass_lda(folder: str, n_rows: str, n_groups: str) -> dict[str, Any]:
    """Make one pass of scikit-learn's online LDA over the blocks of a folder."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        int(n_groups), learning_method="online", total_samples=len(labels_of(folder)), random_state=0
    )
    return rival_pass(folder, int(n_rows), model.partial_fit)


def pass_kmeans(folder: str, n_rows: str, n_groups: str) -> dict[str, Any]:
    """Make one pass of scikit-learn's mini-batch k-means over the blocks of a folder, rows scaled to sum one."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.preprocessing import normalize

    model = MiniBatchKMeans(int(n_groups), random_state=0, n_init=1)
    return rival_pass(folder, int(n_rows), lambda block: model.partial_fit(normalize(block.astype(float), "l1")))


def rival_pass(folder: str, n_rows: int, learn: Callable[[Any], object]) -> dict[str, Any]:
    """Show blocks of 2,000 rows to a rival, so many rows at the most; return what that took."""
    from mmpca.io import read_counts

    seen, clock, processor = 0, perf_counter(), process_time()
    for path in sorted(Path(folder).glob("block-*.npz")):
        X = read_counts(path).X
        for first in range(0, X.shape[0], 2000):
            if seen < n_rows:
                block = X[first : first + 2000]
                learn(block)
                seen += block.shape[0]
    return {
        "clock": perf_counter() - clock,
        "processor": process_time() - processor,
        "gigabytes": peak_gigabytes(),
        "rows": seen,
    }


# --- watching -----------------------------------------------------------------------------------------------------


def watched(fit: Callable[[], object], n_rows: int = 0) -> dict[str, Any]:
    """Return the times of a fit, of its phases, and of each epoch over so many rows (seconds of the processor)."""
    from mmpca.engine import loop
    from mmpca.model import MMPCA, estimator

    found: dict[str, Any] = {"topics": 0.0, "search": 0.0, "epochs": []}

    def timed(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed_call(*arguments: Any, **options: Any) -> Any:
            start = perf_counter()
            answer = call(*arguments, **options)
            found[name] += perf_counter() - start
            return answer

        return timed_call

    def epoch(state: Any, *rest: Any) -> Any:
        start = process_time()
        answer = real_epoch(state, *rest)
        if len(state.labels) == n_rows:
            found["epochs"].append(process_time() - start)
        return answer

    real_epoch = loop._epoch
    with (
        patch.object(MMPCA, "_topics", timed(MMPCA._topics, "topics")),
        patch.object(estimator, "search", timed(estimator.search, "search")),
        patch.object(loop, "_epoch", epoch),
    ):
        clock, processor = perf_counter(), process_time()
        fit()
        found |= {"clock": perf_counter() - clock, "processor": process_time() - processor}
    return found


def warm_up() -> None:
    """Compile, or load what was compiled, before anything is measured."""
    from mmpca import MMPCA
    from mmpca.simulate import paper_design

    MMPCA(6, 4, random_state=0).fit(paper_design(60, random_state=0).X)


def product_seconds(X: Any, n_columns: int) -> float:
    """Return the least time of a product of the counts with a dense matrix (V, Q)."""
    values, dense = X.astype(np.float64), np.random.default_rng(0).random((X.shape[1], n_columns))
    seconds = []
    for _ in range(3):
        start = process_time()
        values @ dense
        seconds.append(process_time() - start)
    return min(seconds)


def peak_gigabytes() -> float:
    """Return the largest resident memory of this process so far."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


def labels_of(folder: str) -> Any:
    """Return the true clusters."""
    return np.load(Path(folder, "labels.npy"))


def agreement(folder: str, labels: Any) -> float:
    """Return the adjusted Rand index with the true clusters."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels_of(folder), labels))
