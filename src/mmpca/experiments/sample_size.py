"""How each method does with few and with many rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.experiments.methods import FAMILIES, fit_family, method_order
from mmpca.experiments.summaries import group_means, paired_gaps
from mmpca.plots.experiments import agreement_curves
from mmpca.simulate import paper_design
from mmpca.simulate.corpus import article_topics

SIZES = (50, 100, 200, 400, 800)


@dataclass(frozen=True)
class SampleSize(Experiment):
    """Agreement of all methods with the truth, by the number of rows as a multiple of that of the features.

    Parameters
    ----------
    replicates : int, default=50
        Data sets for each size.
    seed : int, default=1000
        Seed of the first data set and of the methods on it; the others follow.
    sizes : tuple of int, default=50, 100, 200, 400, 800
        Rows of a data set.
    noise, balance : float
        Of the data sets (the paper's epsilon and lambda).
    families : tuple of str, optional
        Which methods, by the names of their families; all by default.
    """

    name: ClassVar[str] = "sample-size"

    replicates: int = 50
    seed: int = SEED
    sizes: tuple[int, ...] = SIZES
    noise: float = 0.2
    balance: float = 0.85
    families: tuple[str, ...] = tuple(FAMILIES)

    @classmethod
    def quick(cls) -> Self:
        """Return two small data sets for two sizes."""
        return cls(replicates=2, sizes=(50, 100))

    def identity(self) -> dict[str, Any]:
        """Return what is not in the tasks."""
        return {"noise": self.noise, "balance": self.balance}

    def tasks(self) -> list[Task]:
        """Return a task for each data set and family of methods."""
        return [
            new_task(family, n_samples=size, seed=seed)
            for seed in range(self.seed, self.seed + self.replicates)
            for size in self.sizes
            for family in self.families
        ]

    def run(self, task: Task) -> Record:
        """Return the agreement of each method of the family."""
        seed = task["seed"]
        data = paper_design(task["n_samples"], noise=self.noise, balance=self.balance, random_state=seed)
        return fit_family(task.kind, data, seed)

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and method."""
        order = {method: place for place, method in enumerate(method_order())}
        n_features = article_topics()[0].shape[1]
        rows = []
        for task, record in records.items():
            size = task["n_samples"]
            where = {"n_samples": size, "rows_per_feature": round(size / n_features, 4), "seed": task["seed"]}
            rows += [{**where, "method": method, **found} for method, found in record.items()]
        return columns(sorted(rows, key=lambda row: (row["n_samples"], row["seed"], order[row["method"]])))

    def summary(self, table: Table) -> Table:
        """Return the mean agreement by method and size."""
        return group_means(table, "ari", rows=("method",), across=("n_samples",))

    def gaps(self, table: Table) -> Table | None:
        """Return the mean paired difference to MMPCA by method and size."""
        return paired_gaps(table, "ari", "MMPCA", rows=("method",), across=("n_samples",))

    def draw(self, table: Table) -> Figure:
        """Draw the means with their standard errors."""
        return agreement_curves(table, x="rows_per_feature", x_label="rows / features, N / V", x_scale="log")
