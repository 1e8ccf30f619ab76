"""Fits of large data, and passes of baselines over them, each for its own process; see `scale.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

DISTURBED = 0.1  # share of the labels that are redrawn, so that a search has more than one epoch
N_TASKS, N_ROUNDS = 1000, 50  # tasks submitted together, and rounds of a single task, to measure the cost of a task
SEARCH_STAGES = ("shares", "starts", "extension", "search")


def fit_threads(folder: str, n_threads: str, n_groups: str) -> dict[str, Any]:
    """Fit the memory-mapped counts of a folder in threads of this process."""
    from mmpca import MMPCA
    from mmpca.io import read_counts

    warm_up()
    X = read_counts(Path(folder, "X.npz")).X
    model = MMPCA(int(n_groups), int(n_groups), n_jobs=int(n_threads), random_state=0)
    found = timed_fit(lambda callback: model.fit(X, callback=callback))
    found |= {"gigabytes": peak_gigabytes(), "ari": agreement(folder, model.labels_), "bound": model.bound_}
    found["entries"] = int(X.nnz)
    if n_threads == "1":
        found["product"] = product_seconds(X, int(n_groups))
        found["epochs"] = epochs_from_disturbed_labels(model, X)
    return found


def epochs_from_disturbed_labels(model: Any, X: Any) -> list[float]:
    """Return the CPU seconds of each epoch of a search that starts with every tenth label redrawn.

    On large data the start comes from a sample, and a search over all rows often needs a single epoch.
    """
    from measure import EpochTimer
    from mmpca import MMPCA

    rng = np.random.default_rng(0)
    labels = model.labels_.copy()
    is_drawn = rng.random(len(labels)) < DISTURBED
    labels[is_drawn] = rng.integers(model.n_clusters, size=is_drawn.sum())
    again = MMPCA(
        model.n_clusters, model.n_topics, topics=model.components_, start=labels, n_jobs=1,
        random_state=0,
    )  # fmt: skip
    timer = EpochTimer()
    again.fit(X, callback=timer)
    return [float(seconds) for seconds in timer.stop()]


def fit_processes(folder: str, n_workers: str, n_groups: str, n_threads: str) -> dict[str, Any]:
    """Fit the blocks of a folder, read by the workers of a Dask cluster; the client has threads of its own.

    The client waits while workers work, and workers wait while the client refreshes clusters.
    """
    from mmpca import MMPCA
    from mmpca.distributed import fit
    from mmpca.io import read_counts

    blocks = sorted(Path(folder).glob("block-*.npz"))
    model = MMPCA(int(n_groups), int(n_groups), n_jobs=int(n_threads), random_state=0)
    with cluster_of(int(n_workers)) as client:
        client.run(warm_up)
        warm_up()
        before = client.run(process_time)
        found = timed_fit(lambda callback: fit(model, blocks, client, callback=callback))
        # The time of the client, and of the scheduler in the same process, is already included.
        found["cpu"] += sum(client.run(process_time).values()) - sum(before.values())
        gigabytes = peak_gigabytes() + sum(client.run(peak_gigabytes).values())
    found |= {"entries": int(read_counts(Path(folder, "X.npz")).X.nnz), "workers": int(n_workers)}
    return found | {"gigabytes": gigabytes, "ari": agreement(folder, model.labels_), "bound": model.bound_}


def task_overhead(n_workers: str) -> dict[str, Any]:
    """Measure what a Dask task costs besides its work: a single one, and each of many."""
    with cluster_of(int(n_workers)) as client:
        shared = client.scatter(np.zeros(1), broadcast=True)

        def seconds_of(n_tasks: int) -> float:
            start = perf_counter()
            client.gather([client.submit(add_number, shared, number, pure=False) for number in range(n_tasks)])
            return perf_counter() - start

        seconds_of(N_TASKS)  # open the connections
        alone = float(np.median([seconds_of(1) for _ in range(N_ROUNDS)]))
        return {"alone": alone, "each": min(seconds_of(N_TASKS) for _ in range(3)) / N_TASKS}


def add_number(shared: Any, number: int) -> float:
    """Do next to nothing."""
    return float(shared[0] + number)


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Any]:
    """Start worker processes on this machine, one thread each, and yield their client."""
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None,
        host="127.0.0.1",
    )  # fmt: skip
    with local as cluster, Client(cluster) as client:
        yield client


def fit_corpus() -> dict[str, Any]:
    """Fit the corpus of `make bench`, and time ten iterations of scikit-learn's LDA on all its rows."""
    from sklearn.decomposition import LatentDirichletAllocation

    from mmpca import MMPCA
    from problems import FULL, corpus

    warm_up()
    X = corpus(FULL).X
    model = MMPCA(FULL.n_clusters, FULL.n_topics, n_jobs=1, random_state=0)
    found = timed_fit(lambda callback: model.fit(X, callback=callback))
    baseline = LatentDirichletAllocation(FULL.n_topics, learning_method="batch", max_iter=10, n_jobs=1, random_state=0)
    start = process_time()
    baseline.fit(X)
    return found | {"lda": process_time() - start, "gigabytes": peak_gigabytes()}


def pass_lda(folder: str, n_rows: str, n_groups: str) -> dict[str, Any]:
    """Make one pass of scikit-learn's online LDA over the blocks of a folder."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        int(n_groups), learning_method="online", total_samples=len(labels_of(folder)), random_state=0
    )
    return baseline_pass(folder, int(n_rows), model.partial_fit)


def pass_kmeans(folder: str, n_rows: str, n_groups: str) -> dict[str, Any]:
    """Make one pass of scikit-learn's mini-batch k-means over the blocks of a folder, on row profiles."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.preprocessing import normalize

    model = MiniBatchKMeans(int(n_groups), random_state=0, n_init=1)
    return baseline_pass(folder, int(n_rows), lambda block: model.partial_fit(normalize(block.astype(float), "l1")))


def baseline_pass(folder: str, n_rows: int, learn: Callable[[Any], object]) -> dict[str, Any]:
    """Pass at most `n_rows` rows to a baseline, 2,000 at a time; return the cost."""
    from mmpca.io import read_counts

    seen, clock, cpu = 0, perf_counter(), process_time()
    for path in sorted(Path(folder).glob("block-*.npz")):
        X = read_counts(path).X
        for first in range(0, X.shape[0], 2000):
            if seen < n_rows:
                block = X[first : first + min(2000, n_rows - seen)]
                learn(block)
                seen += block.shape[0]
    return {
        "clock": perf_counter() - clock,
        "cpu": process_time() - cpu,
        "gigabytes": peak_gigabytes(),
        "rows": seen,
    }


# --- measuring ----------------------------------------------------------------------------------------------------


class StageTimer:
    """A callback that measures the seconds of each stage; "before" is the time before the first one.

    The stage "topics" has several parts, which are distinguished by the text that they begin with.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._name, self._since = clock, "before", clock()

    def __call__(self, progress: Any) -> None:
        """Add up the time of a stage when another one begins."""
        name = progress.stage
        if name == "topics":
            name = progress.text if progress.n_done == 0 else self._name
        if name != self._name:
            now = self._clock()
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
            self._name, self._since = name, now


def timed_fit(fit: Callable[[Any], object]) -> dict[str, Any]:
    """Return the times of a fit and of its stages; the fit is given a callback."""
    timer, clock, cpu = StageTimer(), perf_counter(), process_time()
    fit(timer)
    found: dict[str, Any] = {"clock": perf_counter() - clock, "cpu": process_time() - cpu, "stages": timer.seconds}
    found["topics"] = sum(seconds for name, seconds in timer.seconds.items() if name.startswith("topics"))
    found["search"] = sum(timer.seconds.get(name, 0.0) for name in SEARCH_STAGES)
    return found


def warm_up() -> None:
    """Compile, or load compiled code, before anything is measured."""
    from mmpca import MMPCA
    from mmpca.simulate import paper_design

    MMPCA(6, 4, random_state=0).fit(paper_design(60, random_state=0).X)


def product_seconds(X: Any, n_columns: int) -> float:
    """Return the shortest time of a product of the counts with a dense matrix (V, Q)."""
    values, dense = X.astype(np.float64), np.random.default_rng(0).random((X.shape[1], n_columns))
    seconds = []
    for _ in range(3):
        start = process_time()
        values @ dense
        seconds.append(process_time() - start)
    return min(seconds)


def peak_gigabytes() -> float:
    """Return the peak resident memory of this process so far."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


def labels_of(folder: str) -> Any:
    """Return the true clusters."""
    return np.load(Path(folder, "labels.npy"))


def agreement(folder: str, labels: Any) -> float:
    """Return the adjusted Rand index with the true clusters."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels_of(folder), labels))
