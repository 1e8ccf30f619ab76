"""How the time of a fit grows with the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from mmpca import engine
from mmpca.baselines.topic_space import PASSES, ROW_UPDATES, fit_topic_space
from mmpca.counts import Counts, as_counts
from mmpca.engine.loop import Limits, climb
from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.model import MMPCA
from mmpca.plots.experiments import growth_curves
from mmpca.simulate import Simulation, paper_design
from mmpca.topics import learn_topics

SIZES = (50, *range(100, 1001, 100))
FIT, TOPICS, SEARCH, EPOCH = "MMPCA, whole fit", "its topics", "its search", "an epoch as published"
LDA, QUICK_LDA = "LDA, scikit-learn's", "LDA, as the rivals run it"
PARTS = (FIT, TOPICS, SEARCH, EPOCH, LDA, QUICK_LDA)


@dataclass(frozen=True)
class Runtime(Experiment):
    """Processor time of a fit and of its parts, beside that of an LDA.

    The topics are learned first and the search is timed with these; the algorithm as published is timed by the epoch,
    from a random partition, because the number of its epochs varies. LDA is one run of scikit-learn's with as many
    topics and the settings that the rivals have, once as it is and once in the faster form that they use; they make
    four or five such runs.

    Parameters
    ----------
    replicates : int, default=5
        Data sets for each size.
    seed : int, default=1000
        Seed of the first data set and of the fits of it; the others follow.
    sizes : tuple of int, default=50, 100, 200, ..., 1000
        Rows of a data set.
    repeats : int, default=3
        Each time is the least of so many, but for scikit-learn's own LDA: what disturbs a measurement only adds to it.
    noise, balance : float
        Of the data sets (the paper's epsilon and lambda).
    """

    name: ClassVar[str] = "runtime"
    is_timed: ClassVar[bool] = True

    replicates: int = 5
    seed: int = SEED
    sizes: tuple[int, ...] = SIZES
    repeats: int = 3
    noise: float = 0.2
    balance: float = 0.85

    @classmethod
    def quick(cls) -> Self:
        """Return one data set of each of three sizes."""
        return cls(replicates=1, sizes=(50, 200, 400), repeats=2)

    def identity(self) -> dict[str, Any]:
        """Return what is not in the tasks."""
        return {"repeats": self.repeats, "noise": self.noise, "balance": self.balance}

    def tasks(self) -> list[Task]:
        """Return a task for each data set."""
        seeds = range(self.seed, self.seed + self.replicates)
        return [new_task(f"rows-{size}", n_samples=size, seed=seed) for seed in seeds for size in self.sizes]

    def run(self, task: Task) -> Record:
        """Return the seconds of each part."""
        seed = task["seed"]
        data = paper_design(task["n_samples"], noise=self.noise, balance=self.balance, random_state=seed)
        rows = as_counts(data.X)
        n_clusters, n_topics = data.cluster_topics.shape
        _warm_up()

        def topics() -> Any:
            return learn_topics(rows, n_topics, rng=np.random.default_rng(seed))

        beta = topics()
        parts: dict[str, Callable[[], object]] = {
            FIT: lambda: MMPCA(n_clusters, n_topics, random_state=seed).fit(data.X),
            TOPICS: topics,
            SEARCH: lambda: MMPCA(n_clusters, n_topics, topics=beta, random_state=seed).fit(data.X),
            QUICK_LDA: lambda: fit_topic_space(rows, "sklearn", n_topics, [seed]),
        }
        seconds = {name: min(_seconds(part) for _ in range(self.repeats)) for name, part in parts.items()}
        # By far the slowest, so that once must do.
        seconds[LDA] = _seconds(lambda: fit_topic_space(rows, _plain_lda(), n_topics, [seed]))
        epochs = [_seconds_of_an_epoch(rows, data, beta, seed) for _ in range(self.repeats)]
        return seconds | {EPOCH: min(epochs)}

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and part."""
        order = {name: place for place, name in enumerate(PARTS)}
        rows = [
            {"n_samples": task["n_samples"], "seed": task["seed"], "part": part, "seconds": seconds}
            for task, record in records.items()
            for part, seconds in record.items()
        ]
        return columns(sorted(rows, key=lambda row: (row["n_samples"], row["seed"], order[row["part"]])))

    def summary(self, table: Table) -> Table:
        """Return the mean time at each size, the exponent of its growth, and the line a + b N nearest to it."""
        rows = []
        for part, (sizes, seconds) in mean_times(table).items():
            slope, fixed = np.polyfit(sizes, seconds, 1) if len(sizes) > 1 else (np.nan, np.nan)
            row: dict[str, Any] = {"part": part, "exponent": exponent(sizes, seconds)}
            row |= {"fixed, s": float(fixed), "1,000 rows, s": float(1000 * slope)}
            rows.append(row | {f"{size} rows": f"{time:.3f} s" for size, time in zip(sizes, seconds, strict=True)})
        return columns(rows)

    def draw(self, table: Table) -> Figure:
        """Draw the times on logarithmic axes, with the exponents of their growth."""
        times = mean_times(table)
        return growth_curves({part: (*line, exponent(*line)) for part, line in times.items()})


def mean_times(table: Table) -> dict[str, tuple[list[int], list[float]]]:
    """Return sizes and mean seconds of each part."""
    found: dict[str, dict[int, list[float]]] = {}
    for size, _, part, seconds in zip(*table.values(), strict=True):
        found.setdefault(part, {}).setdefault(size, []).append(seconds)
    return {part: (list(by_size), [float(np.mean(s)) for s in by_size.values()]) for part, by_size in found.items()}


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return b of seconds = a sizes^b, by least squares of the logarithms; NaN for a single size.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _plain_lda() -> LatentDirichletAllocation:
    """Return scikit-learn's LDA with the settings of the rivals' first run."""
    return LatentDirichletAllocation(doc_topic_prior=1.0, max_iter=PASSES, max_doc_update_iter=ROW_UPDATES)


def _seconds(part: Callable[[], object]) -> float:
    start = process_time()
    part()
    return process_time() - start


def _seconds_of_an_epoch(rows: Counts, data: Simulation, beta: Any, seed: int) -> float:
    """Return the mean time of an epoch of the published algorithm from a random partition."""
    rng = np.random.default_rng(seed)
    n_clusters = len(data.cluster_topics)
    labels = rng.permutation(np.arange(rows.n_rows) % n_clusters)
    state = engine.build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=1.0)
    start = process_time()
    run = climb(state, algorithm="exact", rng=rng, limits=Limits(50))
    return (process_time() - start) / run.n_epochs


def _warm_up() -> None:
    """Compile, or load what was compiled, before anything is measured."""
    data = paper_design(30, random_state=0)
    model = MMPCA(6, 4, n_init=3, random_state=0).fit(data.X)
    _seconds_of_an_epoch(as_counts(data.X), data, model.components_, 0)
