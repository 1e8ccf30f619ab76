"""Fits of large data and passes of rivals over them, each for a process of its own; see `scale.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np

DISTURBED = 0.1  # share of the labels that a search starts with at random, to have more than one epoch
N_TASKS, N_ROUNDS = 1000, 50  # at a time, and one after another, that the cost of a task is measured by
TOPIC_STAGES = ("directions", "groups", "scores", "prior", "topics", "sample", "refining")
SEARCH_STAGES = ("shares", "starts", "carrying", "search")


def fit_threads(folder: str, n_threads: str, n_groups: str) -> dict[str, Any]:
    """Fit the counts of a folder, mapped into memory, in threads of this process."""
    from mmpca import MMPCA
    from mmpca.io import read_counts

    warm_up()
    X = read_counts(Path(folder, "X.npz")).X
    model = MMPCA(int(n_groups), int(n_groups), n_jobs=int(n_threads), random_state=0)
    found = watched(lambda listen: model.fit(X, on_stage=listen))
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
    epochs: list[float] = watched(lambda _: again.fit(X), n_rows=len(labels))["epochs"]
    return epochs


def fit_processes(folder: str, n_workers: str, n_groups: str, n_threads: str) -> dict[str, Any]:
    """Fit the blocks of a folder, read by workers of a Dask cluster, with so many threads of the client's own.

    The client waits while workers work, and they while it brings clusters up to date.
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
        found = watched(lambda listen: fit(model, blocks, client, on_stage=listen))
        # That of the client, and of the scheduler in the same process, is there already.
        found["processor"] += sum(client.run(process_time).values()) - sum(before.values())
        gigabytes = peak_gigabytes() + sum(client.run(peak_gigabytes).values())
    found |= {"entries": int(read_counts(Path(folder, "X.npz")).X.nnz), "workers": int(n_workers)}
    return found | {"gigabytes": gigabytes, "ari": agreement(folder, model.labels_), "bound": model.bound_}


def task_overhead(n_workers: str) -> dict[str, Any]:
    """Measure what a task costs beside its work, as a fit gives it to workers: one to wait for, and each of many."""
    from mmpca.distributed.crews import Cluster

    with cluster_of(int(n_workers)) as client:
        crew = Cluster(client)
        kept = crew.send(np.zeros(1))

        def seconds_of(n_tasks: int) -> float:
            start = perf_counter()
            crew.gather([crew.submit(add_number, kept, number) for number in range(n_tasks)])
            return perf_counter() - start

        seconds_of(N_TASKS)  # connections are made, functions known
        alone = float(np.median([seconds_of(1) for _ in range(N_ROUNDS)]))
        return {"alone": alone, "each": min(seconds_of(N_TASKS) for _ in range(3)) / N_TASKS}


def add_number(kept: Any, number: int) -> float:
    """Do next to nothing."""
    return float(kept[0] + number)


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Any]:
    """Provide a client of so many worker processes on this machine, a thread each."""
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None,
        host="127.0.0.1",
    )  # fmt: skip
    with local as cluster, Client(cluster) as client:
        yield client


def fit_corpus() -> dict[str, Any]:
    """Fit the corpus of the engine's benchmark; beside it, make ten iterations of scikit-learn's LDA over all rows."""
    from sklearn.decomposition import LatentDirichletAllocation

    from mmpca import MMPCA
    from problems import FULL, corpus

    warm_up()
    X = corpus(FULL).X
    model = MMPCA(FULL.n_clusters, FULL.n_topics, n_jobs=1, random_state=0)
    found = watched(lambda listen: model.fit(X, on_stage=listen))
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
                block = X[first : first + min(2000, n_rows - seen)]
                learn(block)
                seen += block.shape[0]
    return {
        "clock": perf_counter() - clock,
        "processor": process_time() - processor,
        "gigabytes": peak_gigabytes(),
        "rows": seen,
    }


# --- watching -----------------------------------------------------------------------------------------------------


class StageWatch:
    """A listener of a fit that notes the seconds of each stage; "before" is what comes before the first one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._since = "before", perf_counter()

    def __call__(self, stage: Any) -> None:
        """Note that a stage has got on, or has ended where another begins."""
        if stage.name != self._name:
            now = perf_counter()
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
            self._name, self._since = stage.name, now

    def sum(self, names: tuple[str, ...]) -> float:
        """Return the seconds of some stages together."""
        return sum(self.seconds.get(name, 0.0) for name in names)


def watched(fit: Callable[[Any], object], n_rows: int = 0) -> dict[str, Any]:
    """Return the times of a fit, of its stages, and of each epoch over so many rows (seconds of the processor).

    The fit is given what listens to its stages.
    """
    from mmpca.engine import loop

    epochs: list[float] = []

    def epoch(state: Any, *rest: Any) -> Any:
        start = process_time()
        answer = real_epoch(state, *rest)
        if len(state.labels) == n_rows:
            epochs.append(process_time() - start)
        return answer

    real_epoch = loop._epoch
    with patch.object(loop, "_epoch", epoch):
        listen, clock, processor = StageWatch(), perf_counter(), process_time()
        fit(listen)
        found: dict[str, Any] = {"clock": perf_counter() - clock, "processor": process_time() - processor}
    if listen.seconds:
        found |= {"topics": listen.sum(TOPIC_STAGES), "search": listen.sum(SEARCH_STAGES), "stages": listen.seconds}
    return found | {"epochs": epochs}


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
