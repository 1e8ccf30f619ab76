"""The bound and the agreement with the truth along a run: one rises with the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mmpca import engine
from mmpca.counts import Counts, as_counts
from mmpca.engine.loop import Limits, climb
from mmpca.evaluation import agreement
from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.model import MMPCA
from mmpca.plots.experiments import run_courses
from mmpca.simulate import paper_design
from mmpca.topics import learn_topics

MOST_EPOCHS = 50
DEFAULT = "default"


@dataclass(frozen=True)
class Intro(Experiment):
    """The algorithm as published, from one random partition, watched after every few rows.

    The end of a default fit, with its several starts and its merges and splits, is recorded beside it.

    Parameters
    ----------
    replicates : int, default=10
        Data sets.
    seed : int, default=1000
        Seed of the first data set and of the run on it; the others follow.
    noise, balance : float
        Of the data sets (the paper's epsilon and lambda).
    n_samples : int, default=400
        Rows of a data set.
    """

    name: ClassVar[str] = "intro"

    replicates: int = 10
    seed: int = SEED
    noise: float = 0.2
    balance: float = 1.0
    n_samples: int = 400

    @classmethod
    def quick(cls) -> Self:
        """Return three data sets of 200 rows."""
        return cls(replicates=3, n_samples=200)

    def identity(self) -> dict[str, Any]:
        """Return what is not in the tasks."""
        return {"noise": self.noise, "balance": self.balance, "n_samples": self.n_samples}

    def tasks(self) -> list[Task]:
        """Return a task for each data set."""
        return [new_task("run", seed=seed) for seed in range(self.seed, self.seed + self.replicates)]

    def run(self, task: Task) -> Record:
        """Return epochs, bounds above that of the truth, and ARI along a run, and where a default fit ends."""
        seed = task["seed"]
        data = paper_design(self.n_samples, noise=self.noise, balance=self.balance, random_state=seed)
        rows = as_counts(data.X)
        n_clusters, n_topics = data.cluster_topics.shape
        rng = np.random.default_rng(seed)
        beta = learn_topics(rows, n_topics, rng=rng)
        labels = rng.permutation(np.arange(rows.n_rows) % n_clusters)
        state = engine.build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=1.0)
        course = [(0.0, engine.bound(state), agreement(data.labels, state.labels).ari)]

        def watch(now: Any) -> None:
            epochs = now.epoch - 1 + now.n_done / now.n_rows
            course.append((epochs, engine.bound(state), agreement(data.labels, state.labels).ari))

        climb(state, algorithm="exact", rng=rng, limits=Limits(MOST_EPOCHS), callback=watch)
        true = engine.bound(_true_state(rows, data.labels, beta))
        default = MMPCA(n_clusters, n_topics, topics=beta, random_state=seed).fit(data.X)
        return {
            "epochs": [epochs for epochs, _, _ in course],
            "above_truth": [float(bound - true) for _, bound, _ in course],
            "ari": [ari for _, _, ari in course],
            "default_above_truth": float(default.bound_ - true),
            "default_ari": agreement(data.labels, default.labels_).ari,
        }

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each point of a run, and one for the end of a default fit."""
        rows = []
        for task, record in records.items():
            seed = task["seed"]
            for epochs, above, ari in zip(record["epochs"], record["above_truth"], record["ari"], strict=True):
                rows.append({"seed": seed, "run": "published", "epochs": epochs, "above_truth": above, "ari": ari})
            end = {"above_truth": record["default_above_truth"], "ari": record["default_ari"]}
            rows.append({"seed": seed, "run": DEFAULT, "epochs": record["epochs"][-1], **end})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return where each run ended."""
        ends: dict[int, dict[str, Any]] = {}
        for seed, run, epochs, above, ari in zip(*table.values(), strict=True):
            end = ends.setdefault(seed, {"seed": seed})
            if run == "published":
                end["epochs"] = epochs
            end[f"{run}: ARI"], end[f"{run}: nats above the truth"] = ari, above
        return columns(list(ends.values()))

    def draw(self, table: Table) -> Figure:
        """Draw bound and ARI along the runs."""
        return run_courses(table)


def _true_state(rows: Counts, truth: Any, beta: Any) -> engine.State:
    """Return the state of the true partition; a cluster may have drawn no row."""
    names, labels = np.unique(truth, return_inverse=True)
    return engine.build(rows, labels, n_clusters=len(names), beta=beta, alpha=1.0)
