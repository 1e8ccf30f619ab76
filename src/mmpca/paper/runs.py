"""Runs of the algorithm: bound and agreement with the truth during a run, and time by the number of rows."""

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
from mmpca.evaluation import agreement
from mmpca.model import MMPCA
from mmpca.monitor import History, Monitor, Progress
from mmpca.paper.experiment import Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.paper.figures import growth_curves, run_courses
from mmpca.simulate import paper_design
from mmpca.topics import fit_lda

MAX_EPOCHS = 50
MIN_GAIN = 1e-9  # of a move, relative to the bound

SIZES = tuple(range(50, 1001, 50))
FIT, TOPICS, SEARCH, START = "MMPCA: fit", "MMPCA: topics", "MMPCA: search", "MMPCA: one random start"
PUBLISHED, EPOCH = "published algorithm: one start", "published algorithm: one epoch"
LDA, WIDE_LDA, FAST_LDA = "LDA: scikit-learn, K topics", "LDA: scikit-learn, Q topics", "LDA: as in the baselines"
PARTS = (FIT, TOPICS, SEARCH, START, PUBLISHED, EPOCH, LDA, WIDE_LDA, FAST_LDA)
EXPONENTS = np.arange(0.1, 3.0, 0.01)  # candidates for the exponent of a growth
MIN_SIZES = 5  # to fit a growth, which has three parameters
N_SIZES_SHOWN = 4
LONG = 1.0  # seconds from which one measurement is enough


@dataclass(frozen=True)
class Intro(Experiment):
    """The published algorithm from one random partition, recorded every few rows, and the end of two other fits.

    One is the published algorithm from the same partition with the topics re-estimated after each move, which the text
    of the paper also allows; the other is a default fit, which has several starts, and merges and splits clusters.

    Parameters
    ----------
    noise, balance : float
        Noise level and balance of the data sets (the paper's epsilon and lambda); 0 and 1 in the paper.
    n_samples : int, default=400
        Rows of a data set.
    """

    name: ClassVar[str] = "intro"
    shared_options: ClassVar[tuple[str, ...]] = ("noise", "balance", "n_samples")

    replicates: int = 10
    noise: float = 0.0
    balance: float = 1.0
    n_samples: int = 400

    @classmethod
    def quick(cls) -> Self:
        """Return three data sets of 200 rows."""
        return cls(replicates=3, n_samples=200)

    def tasks(self) -> list[Task]:
        """Return a task for each data set."""
        return [new_task("run", seed=seed) for seed in self.seeds]

    def run(self, task: Task) -> Record:
        """Return epochs, bounds relative to the truth and ARIs during a run, and those at the end of a default fit."""
        seed = task["seed"]
        data = paper_design(self.n_samples, noise=self.noise, balance=self.balance, random_state=seed)
        rows = as_counts(data.X)
        n_clusters, n_topics = data.cluster_topics.shape
        rng = np.random.default_rng(seed)
        beta = fit_lda(rows, n_topics, rng=rng).beta
        labels = rng.permutation(np.arange(rows.n_rows) % n_clusters)
        state = engine.build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=1.0)
        course = [(0.0, engine.bound(state), agreement(data.labels, state.labels).ari)]

        def record(progress: Progress) -> None:
            """Add a point to the course."""
            epochs = progress.epoch - 1 + history.n_done / rows.n_rows
            course.append((epochs, engine.bound(state), agreement(data.labels, state.labels).ari))

        history = History(Monitor(record))
        options = engine.SearchOptions(n_clusters, algorithm="exact", max_epochs=MAX_EPOCHS)
        engine.climb(state, options, rng=rng, history=history)
        true = engine.bound(_true_state(rows, data.labels, beta))
        default = MMPCA(n_clusters, n_topics, topics=beta, random_state=seed).fit(data.X)
        joint = engine.build(rows, labels, n_clusters=n_clusters, beta=beta.copy(), alpha=1.0)
        options = engine.SearchOptions(
            n_clusters, algorithm="exact", max_epochs=MAX_EPOCHS, tol=MIN_GAIN, refits_topics=True
        )
        engine.search(joint, options, rng=np.random.default_rng(seed))
        joint_bound = engine.bound(engine.build(rows, joint.labels, n_clusters=n_clusters, beta=beta, alpha=1.0))
        return {
            "epochs": [epochs for epochs, _, _ in course],
            "above_truth": [float(bound - true) for _, bound, _ in course],
            "ari": [ari for _, _, ari in course],
            "default_above_truth": float(default.bound_ - true),
            "default_ari": agreement(data.labels, default.labels_).ari,
            "joint_above_truth": float(joint_bound - true),
            "joint_ari": agreement(data.labels, joint.labels).ari,
        }

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each point of a run, and one for the end of each other fit."""
        rows = []
        for task, record in records.items():
            seed = task["seed"]
            for epochs, above, ari in zip(record["epochs"], record["above_truth"], record["ari"], strict=True):
                rows.append({"seed": seed, "run": "published", "epochs": epochs, "above_truth": above, "ari": ari})
            for run, name in (("topics re-estimated", "joint"), ("default", "default")):
                end = {"above_truth": record[f"{name}_above_truth"], "ari": record[f"{name}_ari"]}
                rows.append({"seed": seed, "run": run, "epochs": record["epochs"][-1], **end})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return the end of each run."""
        ends: dict[int, dict[str, Any]] = {}
        for seed, run, epochs, above, ari in zip(*table.values(), strict=True):
            end = ends.setdefault(seed, {"seed": seed})
            if run == "published":
                end["epochs"] = epochs
            end[f"{run}: ARI"], end[f"{run}: nats above the truth"] = ari, above
        return columns(list(ends.values()))

    def draw(self, table: Table) -> Figure:
        """Draw bound and ARI during the runs."""
        return run_courses(table)


def _true_state(rows: Counts, truth: Any, beta: Any) -> engine.State:
    """Return the state of the true partition, without clusters that have no rows."""
    names, labels = np.unique(truth, return_inverse=True)
    return engine.build(rows, labels, n_clusters=len(names), beta=beta, alpha=1.0)


@dataclass(frozen=True)
class Runtime(Experiment):
    """Processor time of a fit and of its parts, compared with that of an LDA.

    The search is timed with topics that were learned beforehand: all starts of a default fit with the final
    re-estimation of the topics; the search from one random partition; and the published algorithm from that partition,
    in which every move is evaluated exactly until none gains. The published algorithm is timed as a whole and per
    epoch, because the number of its epochs varies. LDA is one run with the settings of the baselines. It is
    timed with scikit-learn, with as many topics as the model and with as many as clusters, as in the paper, and in the
    faster form that the baselines use; a baseline makes four or five such runs.

    Parameters
    ----------
    sizes : tuple of int, default=50, 100, 150, ..., 1000
        Rows of a data set.
    repeats : int, default=3
        Number of measurements, of which the shortest counts: disturbances only add time. Parts that take longer than a
        second are measured once.
    noise, balance : float
        Noise level and balance of the data sets (the paper's epsilon and lambda); 0 and 1 in the paper.
    """

    name: ClassVar[str] = "runtime"
    shared_options: ClassVar[tuple[str, ...]] = ("repeats", "noise", "balance")
    is_timed: ClassVar[bool] = True

    replicates: int = 10
    sizes: tuple[int, ...] = SIZES
    repeats: int = 3
    noise: float = 0.0
    balance: float = 1.0

    @classmethod
    def quick(cls) -> Self:
        """Return one data set of each of three sizes."""
        return cls(replicates=1, sizes=(50, 200, 400), repeats=2)

    def identity(self) -> dict[str, Any]:
        """Return the options that are not in the tasks, and what is timed."""
        return {"parts": list(PARTS), **super().identity()}

    def tasks(self) -> list[Task]:
        """Return a task for each data set."""
        return [new_task(f"rows-{size}", n_samples=size, seed=seed) for seed in self.seeds for size in self.sizes]

    def run(self, task: Task) -> Record:
        """Return the seconds of each part."""
        seed = task["seed"]
        data = paper_design(task["n_samples"], noise=self.noise, balance=self.balance, random_state=seed)
        rows = as_counts(data.X)
        n_clusters, n_topics = data.cluster_topics.shape
        _warm_up()

        def topics() -> Any:
            """Learn the topics."""
            return fit_lda(rows, n_topics, rng=np.random.default_rng(seed)).beta

        beta = topics()
        parts: dict[str, Callable[[], object]] = {
            FIT: lambda: MMPCA(n_clusters, n_topics, random_state=seed).fit(data.X),
            TOPICS: topics,
            SEARCH: lambda: MMPCA(n_clusters, n_topics, topics=beta, random_state=seed).fit(data.X),
            LDA: lambda: fit_topic_space(rows, _plain_lda(), n_topics, [seed]),
            WIDE_LDA: lambda: fit_topic_space(rows, _plain_lda(), n_clusters, [seed]),
            FAST_LDA: lambda: fit_topic_space(rows, "sklearn", n_topics, [seed]),
        }
        seconds = {name: shortest_time(part, self.repeats) for name, part in parts.items()}
        one = [times_from_one_start(rows, n_clusters, beta, seed) for _ in range(self.repeats)]
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
        """Return the exponent of each part's growth, its fixed time, the exponent of the rest, and mean times."""
        rows = []
        for part, (sizes, seconds) in mean_times(table).items():
            growth = fit_growth(sizes, seconds)
            row: dict[str, Any] = {"part": part, "exponent": exponent(sizes, seconds)}
            row["fixed, s"] = None if growth is None else growth.fixed
            row["exponent of the rest"] = None if growth is None else _exponent_range(growth, _jackknife(table, part))
            shown = np.unique(np.linspace(0, len(sizes) - 1, N_SIZES_SHOWN).round().astype(int))
            rows.append(row | {f"{sizes[place]} rows": f"{seconds[place]:.3f} s" for place in shown})
        return columns(rows)

    def draw(self, table: Table) -> Figure:
        """Draw the times on logarithmic axes, with the exponents of their growth."""
        times = mean_times(table)
        return growth_curves({part: (*line, exponent(*line)) for part, line in times.items()})


def mean_times(table: Table, without: int | None = None) -> dict[str, tuple[list[int], list[float]]]:
    """Return sizes and mean seconds of each part, optionally without the data sets of one seed."""
    found: dict[str, dict[int, list[float]]] = {}
    for size, seed, part, seconds in zip(*table.values(), strict=True):
        if seed != without:
            found.setdefault(part, {}).setdefault(size, []).append(seconds)
    return {part: (list(by_size), [float(np.mean(s)) for s in by_size.values()]) for part, by_size in found.items()}


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return b in seconds = a sizes^b, by least squares on the logarithms; NaN for a single size.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


class Growth(NamedTuple):
    """Parameters of seconds = fixed + b sizes^exponent."""

    fixed: float
    exponent: float


def fit_growth(sizes: list[int], seconds: list[float]) -> Growth | None:
    """Return the fixed part of times and the exponent of the rest, by least squares on relative errors.

    Neither part is negative. None if they cannot be determined: with fewer than five sizes, or if the best exponent is
    the first or last candidate, as for times that hardly grow.

    Examples
    --------
    >>> growth = fit_growth([1, 2, 4, 8, 16], [5.0, 8.0, 14.0, 26.0, 50.0])
    >>> round(growth.fixed, 2), round(growth.exponent, 2)
    (2.0, 1.0)
    """
    if len(sizes) < MIN_SIZES:
        return None
    inverse = 1 / np.asarray(seconds)  # (S,)
    powers = np.asarray(sizes, float) ** EXPONENTS[:, None]  # (E, S)
    scale = powers.max(axis=1, keepdims=True)
    fits = [nnls(np.stack([inverse, row * inverse], axis=1), np.ones(len(sizes))) for row in powers / scale]
    best = int(np.argmin([error for _, error in fits]))
    return None if best in (0, len(fits) - 1) else Growth(float(fits[best][0][0]), float(EXPONENTS[best]))


def _jackknife(table: Table, part: str) -> list[Growth | None]:
    """Return the growth with each seed left out in turn, which shows how certain it is."""
    seeds = sorted(set(table["seed"])) if len(set(table["seed"])) > 1 else []
    return [fit_growth(*mean_times(table, without=seed)[part]) for seed in seeds]


def _exponent_range(growth: Growth, others: list[Growth | None]) -> str:
    """Return the exponent, with the range of the others in parentheses."""
    if any(other is None for other in others):
        return f"{growth.exponent:.2f} (undetermined)"
    found = [other.exponent for other in others if other is not None]
    return f"{growth.exponent:.2f}" + (f" ({min(found):.2f} to {max(found):.2f})" if found else "")


def _plain_lda() -> LatentDirichletAllocation:
    """Return scikit-learn's LDA with the settings of the baselines' first run."""
    return LatentDirichletAllocation(doc_topic_prior=1.0, max_iter=PASSES, max_doc_update_iter=ROW_UPDATES)


def shortest_time(part: Callable[[], object], repeats: int, clock: Callable[[], float] = process_time) -> float:
    """Return the shortest of several measured times in seconds; a long one is measured once."""
    shortest = _time(part, clock)
    for _ in range(repeats - 1 if shortest < LONG else 0):
        shortest = min(shortest, _time(part, clock))
    return shortest


def _time(part: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
    start = clock()
    part()
    return clock() - start


def times_from_one_start(rows: Counts, n_clusters: int, beta: Any, seed: int) -> dict[str, float]:
    """Return the times of the search and of the published algorithm from the same random partition, in seconds."""
    labels = np.random.default_rng(seed).permutation(np.arange(rows.n_rows) % n_clusters)

    def start() -> engine.State:
        """Return the state of the random partition."""
        return engine.build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=1.0)

    options = engine.SearchOptions(n_clusters, max_epochs=MAX_EPOCHS)
    exact_options, history = options._replace(algorithm="exact"), History()
    ours, published = start(), start()
    greedy = _time(lambda: engine.search(ours, options, rng=np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    exact = _time(lambda: engine.climb(published, exact_options, rng=rng, history=history))
    return {START: greedy, PUBLISHED: exact, EPOCH: exact / history.n_epochs}


def _warm_up() -> None:
    """Compile the kernels, or load them from the cache, before anything is measured."""
    data = paper_design(30, random_state=0)
    model = MMPCA(6, 4, n_init=3, random_state=0).fit(data.X)
    times_from_one_start(as_counts(data.X), 6, model.components_, 0)
