"""How each method bears noise and clusters of unequal size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.experiments.methods import FAMILIES, fit_family, method_order
from mmpca.experiments.summaries import group_means, paired_gaps
from mmpca.plots.experiments import agreement_curves
from mmpca.simulate import paper_design

LEVELS = tuple(round(0.05 * step, 2) for step in range(15))
BALANCES = (1.0, 0.85, 0.7)


@dataclass(frozen=True)
class Noise(Experiment):
    """Agreement of all methods with the truth, by noise and balance (the paper's epsilon and lambda).

    Parameters
    ----------
    replicates : int, default=50
        Data sets for each noise and balance.
    seed : int, default=1000
        Seed of the first data set and of the methods on it; the others follow.
    levels : tuple of float, default=0, 0.05, ..., 0.7
        Noise.
    balances : tuple of float, default=1, 0.85, 0.7
        Balance of the clusters' sizes.
    n_samples : int, default=400
        Rows of a data set.
    families : tuple of str, optional
        Which methods, by the names of their families; all by default.
    """

    name: ClassVar[str] = "noise"

    replicates: int = 50
    seed: int = SEED
    levels: tuple[float, ...] = LEVELS
    balances: tuple[float, ...] = BALANCES
    n_samples: int = 400
    families: tuple[str, ...] = tuple(FAMILIES)

    @classmethod
    def quick(cls) -> Self:
        """Return two data sets of 100 rows for two levels of noise."""
        return cls(replicates=2, levels=(0.0, 0.4), balances=(1.0,), n_samples=100)

    def identity(self) -> dict[str, Any]:
        """Return what is not in the tasks."""
        return {"n_samples": self.n_samples}

    def tasks(self) -> list[Task]:
        """Return a task for each data set and family of methods."""
        return [
            new_task(family, balance=balance, noise=level, seed=seed)
            for seed in range(self.seed, self.seed + self.replicates)
            for balance in self.balances
            for level in self.levels
            for family in self.families
        ]

    def run(self, task: Task) -> Record:
        """Return the agreement of each method of the family."""
        data = paper_design(self.n_samples, noise=task["noise"], balance=task["balance"], random_state=task["seed"])
        return fit_family(task.kind, data, task["seed"])

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and method."""
        order = {method: place for place, method in enumerate(method_order())}
        rows = [
            {"balance": task["balance"], "noise": task["noise"], "seed": task["seed"], "method": method, **found}
            for task, record in records.items()
            for method, found in record.items()
        ]
        rows.sort(key=lambda row: (-row["balance"], row["noise"], row["seed"], order[row["method"]]))
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return the mean agreement by balance, method and noise."""
        return group_means(table, "ari", rows=("balance", "method"), across=("noise",))

    def gaps(self, table: Table) -> Table | None:
        """Return the mean paired difference to MMPCA by balance, method and noise."""
        return paired_gaps(table, "ari", "MMPCA", rows=("balance", "method"), across=("noise",))

    def draw(self, table: Table) -> Figure:
        """Draw the means with their standard errors, a panel for each balance."""
        return agreement_curves(
            table, x="noise", panel="balance", x_label="noise $\\epsilon$", panel_label="$\\lambda$"
        )
