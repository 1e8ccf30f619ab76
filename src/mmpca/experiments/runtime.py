"""How the time of a fit grows with the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.decomposition import LatentDirichletAllocation

from mmpca import engine
from mmpca.baselines.topic_space import PASSES, ROW_UPDATES, fit_topic_space
from mmpca.counts import Counts, as_counts
from mmpca.engine.loop import climb
from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.model import MMPCA
from mmpca.plots.experiments import growth_curves
from mmpca.simulate import paper_design
from mmpca.topics import learn_topics

SIZES = (50, *range(100, 1001, 100))
FIT, TOPICS, SEARCH, START = "MMPCA, whole fit", "its topics", "its search", "one random start"
PUBLISHED, EPOCH = "one start as published", "an epoch as published"
LDA, QUICK_LDA = "LDA, scikit-learn's", "LDA, as the rivals run it"
PARTS = (FIT, TOPICS, SEARCH, START, PUBLISHED, EPOCH, LDA, QUICK_LDA)
EXPONENTS = np.arange(0.1, 3.0, 0.01)  # among which the nearest is looked for
LEAST_SIZES = 5  # three numbers are fitted to their times
N_SIZES_SHOWN = 4
LONG = 1.0  # seconds that need not be measured twice


@dataclass(frozen=True)
class Runtime(Experiment):
    """Processor time of a fit and of its parts, beside that of an LDA.

    The topics are learned first and the search is timed with these: all starts of a default fit and the last
    re-estimation of the topics; the search from one random partition; and the algorithm as published from that
    partition, every move evaluated exactly until none gains, as a whole and by the epoch, because the number of its
    epochs varies. LDA is one run of scikit-learn's with as many topics and the settings that the rivals have, once as
    it is and once in the faster form that they use; they make four or five such runs.

    Parameters
    ----------
    replicates : int, default=10
        Data sets for each size.
    seed : int, default=1000
        Seed of the first data set and of the fits of it; the others follow.
    sizes : tuple of int, default=50, 100, 200, ..., 1000
        Rows of a data set.
    repeats : int, default=3
        Each time is the least of so many, but for what takes longer than a second: a disturbance only adds to a
        measurement, and to long ones adds little.
    noise, balance : float
        Of the data sets (the paper's epsilon and lambda).
    """

    name: ClassVar[str] = "runtime"
    is_timed: ClassVar[bool] = True

    replicates: int = 10
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
        return {"parts": list(PARTS), "repeats": self.repeats, "noise": self.noise, "balance": self.balance}

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
            LDA: lambda: fit_topic_space(rows, _plain_lda(), n_topics, [seed]),
            QUICK_LDA: lambda: fit_topic_space(rows, "sklearn", n_topics, [seed]),
        }
        seconds = {name: least_seconds(part, self.repeats) for name, part in parts.items()}
        one = [seconds_from_one_start(rows, n_clusters, beta, seed) for _ in range(self.repeats)]
        return seconds | {name: min(times[name] for times in one) for name in one[0]}

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
        """Return the exponent of each part's growth, what does not grow, the exponent of the rest, and mean times."""
        rows = []
        for part, (sizes, seconds) in mean_times(table).items():
            growth = nearest_growth(sizes, seconds)
            row: dict[str, Any] = {"part": part, "exponent": exponent(sizes, seconds)}
            row["fixed, s"] = None if growth is None else growth.fixed
            row["exponent beyond it"] = None if growth is None else _told(growth, _others(table, part))
            shown = np.unique(np.linspace(0, len(sizes) - 1, N_SIZES_SHOWN).round().astype(int))
            rows.append(row | {f"{sizes[place]} rows": f"{seconds[place]:.3f} s" for place in shown})
        return columns(rows)

    def draw(self, table: Table) -> Figure:
        """Draw the times on logarithmic axes, with the exponents of their growth."""
        times = mean_times(table)
        return growth_curves({part: (*line, exponent(*line)) for part, line in times.items()})


def mean_times(table: Table, without: int | None = None) -> dict[str, tuple[list[int], list[float]]]:
    """Return sizes and mean seconds of each part, the data sets of one seed left out if it is named."""
    found: dict[str, dict[int, list[float]]] = {}
    for size, seed, part, seconds in zip(*table.values(), strict=True):
        if seed != without:
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


class Growth(NamedTuple):
    """Of seconds = fixed + b sizes^exponent."""

    fixed: float
    exponent: float


def nearest_growth(sizes: list[int], seconds: list[float]) -> Growth | None:
    """Return the part of times that does not grow, and the exponent of the rest, by least squares of relative errors.

    Neither part is negative. None where it cannot be told: for fewer than five sizes, and where the exponent is at an
    end of those that are tried, as it is of times that hardly grow.

    Examples
    --------
    >>> growth = nearest_growth([1, 2, 4, 8, 16], [5.0, 8.0, 14.0, 26.0, 50.0])
    >>> round(growth.fixed, 2), round(growth.exponent, 2)
    (2.0, 1.0)
    """
    if len(sizes) < LEAST_SIZES:
        return None
    inverse = 1 / np.asarray(seconds)  # (S,)
    powers = np.asarray(sizes, float) ** EXPONENTS[:, None]  # (E, S)
    scale = powers.max(axis=1, keepdims=True)
    fits = [nnls(np.stack([inverse, row * inverse], axis=1), np.ones(len(sizes))) for row in powers / scale]
    best = int(np.argmin([error for _, error in fits]))
    is_at_an_end = best in (0, len(fits) - 1)
    return None if is_at_an_end else Growth(float(fits[best][0][0]), float(EXPONENTS[best]))


def _others(table: Table, part: str) -> list[Growth | None]:
    """Return the growth with each seed left out in turn, which tells how sure one is."""
    seeds = sorted(set(table["seed"])) if len(set(table["seed"])) > 1 else []
    return [nearest_growth(*mean_times(table, without=seed)[part]) for seed in seeds]


def _told(growth: Growth, others: list[Growth | None]) -> str:
    """Return the exponent, and the range of others."""
    if any(other is None for other in others):
        return f"{growth.exponent:.2f} (anything)"
    found = [other.exponent for other in others if other is not None]
    return f"{growth.exponent:.2f}" + (f" ({min(found):.2f} to {max(found):.2f})" if found else "")


def _plain_lda() -> LatentDirichletAllocation:
    """Return scikit-learn's LDA with the settings of the rivals' first run."""
    return LatentDirichletAllocation(doc_topic_prior=1.0, max_iter=PASSES, max_doc_update_iter=ROW_UPDATES)


def least_seconds(part: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of several measurements; of one, if that is long."""
    least = _seconds(part)
    for _ in range(repeats - 1 if least < LONG else 0):
        least = min(least, _seconds(part))
    return least


def _seconds(part: Callable[[], object]) -> float:
    start = process_time()
    part()
    return process_time() - start


def seconds_from_one_start(rows: Counts, n_clusters: int, beta: Any, seed: int) -> dict[str, float]:
    """Return the times of the search and of the published algorithm from the same random partition."""
    labels = np.random.default_rng(seed).permutation(np.arange(rows.n_rows) % n_clusters)

    def start() -> engine.State:
        return engine.build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=1.0)

    runs: list[engine.Run] = []
    ours, published = start(), start()
    greedy = _seconds(lambda: engine.search(ours, rng=np.random.default_rng(seed), regroup=True))
    exact = _seconds(lambda: runs.append(climb(published, algorithm="exact", rng=np.random.default_rng(seed))))
    return {START: greedy, PUBLISHED: exact, EPOCH: exact / runs[0].n_epochs}


def _warm_up() -> None:
    """Compile, or load what was compiled, before anything is measured."""
    data = paper_design(30, random_state=0)
    model = MMPCA(6, 4, n_init=3, random_state=0).fit(data.X)
    seconds_from_one_start(as_counts(data.X), 6, model.components_, 0)
