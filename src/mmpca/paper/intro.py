"""The bound and the agreement with the truth during a run: they rise together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mmpca import engine
from mmpca.counts import Counts, as_counts
from mmpca.evaluation import agreement
from mmpca.model import MMPCA
from mmpca.monitor import History, Monitor, Progress
from mmpca.paper.experiment import Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.paper.figures import run_courses
from mmpca.simulate import paper_design
from mmpca.topics import fit_lda

MAX_EPOCHS = 50


@dataclass(frozen=True)
class Intro(Experiment):
    """The published algorithm from one random partition, recorded every few rows, and the end of a default fit.

    A default fit has several starts, and merges and splits clusters.

    Parameters
    ----------
    noise, balance : float
        Noise level and balance of the data sets (the paper's epsilon and lambda).
    n_samples : int, default=400
        Rows of a data set.
    """

    name: ClassVar[str] = "intro"
    shared_options: ClassVar[tuple[str, ...]] = ("noise", "balance", "n_samples")

    replicates: int = 10
    noise: float = 0.2
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

        history = History(Monitor(record), n_rows=rows.n_rows)
        options = engine.SearchOptions(n_clusters, algorithm="exact", max_epochs=MAX_EPOCHS)
        engine.climb(state, options, rng=rng, history=history)
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
        """Return a row for each point of a run, and one for the end of each default fit."""
        rows = []
        for task, record in records.items():
            seed = task["seed"]
            for epochs, above, ari in zip(record["epochs"], record["above_truth"], record["ari"], strict=True):
                rows.append({"seed": seed, "run": "published", "epochs": epochs, "above_truth": above, "ari": ari})
            end = {"above_truth": record["default_above_truth"], "ari": record["default_ari"]}
            rows.append({"seed": seed, "run": "default", "epochs": record["epochs"][-1], **end})
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
