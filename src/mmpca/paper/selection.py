"""How often each criterion chooses the true numbers of clusters and topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mmpca.paper.comparison import BALANCES
from mmpca.paper.experiment import Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.paper.figures import choice_maps
from mmpca.selection import CRITERIA, MMPCASearch
from mmpca.simulate import paper_design

TRUTH = (6, 4)


@dataclass(frozen=True)
class Selection(Experiment):
    """The cell of a grid of clusters and topics that each criterion chooses, by balance (the paper's lambda).

    Parameters
    ----------
    balances : tuple of float, default=1, 0.85, 0.7
        Balance of the cluster sizes.
    noise : float, default=0
        Noise level (the paper's epsilon).
    n_clusters, n_topics : tuple of int
        The grid.
    n_samples : int, default=400
        Rows of a data set.
    """

    name: ClassVar[str] = "selection"
    shared_options: ClassVar[tuple[str, ...]] = ("noise", "n_samples", "n_clusters", "n_topics")

    replicates: int = 50
    balances: tuple[float, ...] = BALANCES
    noise: float = 0.0
    n_clusters: tuple[int, ...] = tuple(range(2, 9))
    n_topics: tuple[int, ...] = tuple(range(2, 6))
    n_samples: int = 400

    @classmethod
    def quick(cls) -> Self:
        """Return two data sets of 200 rows for each balance, and fewer cells."""
        return cls(replicates=2, n_clusters=(5, 6, 7), n_topics=(3, 4, 5), n_samples=200)

    def tasks(self) -> list[Task]:
        """Return a task for each data set."""
        return [new_task("search", balance=balance, seed=seed) for seed in self.seeds for balance in self.balances]

    def run(self, task: Task) -> Record:
        """Return the value of each criterion in each cell."""
        seed = task["seed"]
        data = paper_design(self.n_samples, noise=self.noise, balance=task["balance"], random_state=seed)
        search = MMPCASearch(self.n_clusters, self.n_topics, random_state=seed, n_jobs=1).fit(data.X)
        return {name: search.results_[name].tolist() for name in ("n_clusters", "n_topics", *CRITERIA)}

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and cell, with 1 for each criterion that chooses the cell."""
        rows = []
        for task, record in sorted(records.items(), key=lambda item: (-item[0]["balance"], item[0]["seed"])):
            best = {name: max(range(len(record[name])), key=record[name].__getitem__) for name in CRITERIA}
            for cell in range(len(record["n_clusters"])):
                row = {"balance": task["balance"], "seed": task["seed"]}
                row |= {name: column[cell] for name, column in record.items()}
                rows.append(row | {f"{name}_choice": int(best[name] == cell) for name in CRITERIA})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return how often each criterion is right, and its most frequent wrong choice."""
        rows = []
        for balance in dict.fromkeys(table["balance"]):
            row: dict[str, Any] = {"balance": balance}
            for name in CRITERIA:
                chosen = choices(table, name, balance)
                wrong = Counter({cell: n for cell, n in chosen.items() if cell != TRUTH}).most_common(1)
                row["data sets"] = chosen.total()
                row[f"{name} right"] = chosen[TRUTH]
                row[f"{name} instead"] = f"{wrong[0][0]} x {wrong[0][1]}" if wrong else ""
            rows.append(row)
        return columns(rows)

    def draw(self, table: Table) -> Figure:
        """Draw how often each cell is chosen, a map for each criterion and balance."""
        counts = {
            (name, balance): choices(table, name, balance)
            for name in CRITERIA
            for balance in dict.fromkeys(table["balance"])
        }
        return choice_maps(counts, n_clusters=self.n_clusters, n_topics=self.n_topics, truth=TRUTH)


def choices(table: Table, criterion: str, balance: float) -> Counter[tuple[int, int]]:
    """Return how often a criterion chooses each cell (Q, K)."""
    cells = zip(table["balance"], table["n_clusters"], table["n_topics"], table[f"{criterion}_choice"], strict=True)
    return Counter((q, k) for where, q, k, is_chosen in cells if where == balance and is_chosen)
