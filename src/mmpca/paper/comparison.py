"""Comparisons on the paper's simulated data: all methods by noise and by the number of rows, and all criteria."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from mmpca.baselines import PoissonMixture
from mmpca.counts import as_counts
from mmpca.evaluation import agreement, all_methods
from mmpca.model.prediction import ClusterMixture, joint_log_likelihood
from mmpca.paper.experiment import (
    Experiment,
    Figure,
    Record,
    Table,
    Task,
    columns,
    group_means,
    new_task,
    paired_gaps,
)
from mmpca.paper.figures import ORACLE, agreement_curves, choice_maps
from mmpca.selection import GRID_CRITERIA, MMPCASearch
from mmpca.simulate import Simulation, paper_design
from mmpca.simulate.designs import article_topics

HTSCLUSTER = "Poisson mixture (as published)"

# Methods by the kind of task that fits them. In a family that shares an LDA, the Gaussian mixture comes first, and
# k-means uses the topic shares it found.
FAMILIES: Mapping[str, Sequence[str]] = {
    "ceiling": (ORACLE,),
    "mmpca": ("MMPCA",),
    "lda-space": ("GMM on LDA", "k-means on LDA"),
    "lda-space-mmpca": ("GMM on LDA (mmpca)", "k-means on LDA (mmpca)"),
    "lda": ("LDA",),
    "lda-mmpca": ("LDA (mmpca)",),
    "nmf-em": ("NMF-EM",),
    "mixtures": ("multinomial mixture", "Poisson mixture"),
    "htscluster": (HTSCLUSTER,),
    "integrated": ("integrated multinomial mixture",),
    "polya": ("Polya mixture",),
    "gsdmm": ("GSDMM",),
    "directions": ("spherical k-means", "NMF"),
}

LEVELS = tuple(round(0.05 * step, 2) for step in range(15))
BALANCES = (1.0, 0.85, 0.7)
SIZES = (50, 100, 200, 400, 800)
TRUTH = (6, 4)  # clusters and topics of the design


class KnownShares(TransformerMixin, BaseEstimator):
    """A transformer that returns given topic shares, (N, K), for baselines that would otherwise fit an LDA again.

    Baselines set `n_topics`, which is ignored.
    """

    def __init__(self, shares: NDArray[np.float64], n_topics: int | None = None) -> None:
        self.shares = shares
        self.n_topics = n_topics

    def fit(self, X: Any, y: object = None) -> Self:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the shares."""
        return self.shares


def fit_family(family: str, data: Simulation, seed: int) -> Record:
    """Return the agreement of each method of a family with the true labels: {method: {"ari": ..., "nmi": ...}}."""
    if family == "ceiling":
        return {ORACLE: agreement(data.labels, oracle_labels(data))._asdict()}
    n_clusters, n_topics = data.cluster_topics.shape
    methods = experiment_methods(n_clusters, n_topics, seed)
    record, shares = {}, None
    for name in FAMILIES[family]:
        model = methods[name]
        if shares is not None and "lda" in model.get_params():
            model.set_params(lda=KnownShares(shares))
        record[name] = agreement(data.labels, model.fit_predict(data.X))._asdict()
        shares = getattr(model, "shares_", None)
    return record


def experiment_methods(n_clusters: int, n_topics: int, random_state: Any = None) -> dict[str, Any]:
    """Return all methods, and the Poisson mixture with the settings of the paper, unfitted, by name.

    The paper runs HTSCluster with classification EM, without normalization, from its default start: a single k-means
    partition of the rows' proportions. Library sizes cancel, because each word is a condition of its own.
    """
    published = PoissonMixture(
        n_clusters, algorithm="cem", smoothing=0.0, start="proportions", n_init=1, random_state=random_state
    )
    methods = all_methods(n_clusters, n_topics, random_state)
    place = list(methods).index("Poisson mixture") + 1
    items = list(methods.items())
    return dict([*items[:place], (HTSCLUSTER, published), *items[place:]])


def oracle_labels(data: Simulation) -> NDArray[np.int64]:
    """Return the most probable cluster of each row under the true parameters, (N,)."""
    theta = (1 - data.noise) * data.cluster_topics + data.noise / len(data.topics)
    joint = joint_log_likelihood(as_counts(data.X), ClusterMixture(data.topics, theta, data.weights))  # (N, Q)
    labels: NDArray[np.int64] = joint.argmax(axis=1)
    return labels


@dataclass(frozen=True)
class MethodComparison(Experiment):
    """Agreement of all methods with the truth on simulated data.

    Parameters
    ----------
    families : tuple of str, optional
        Families of methods to fit; all by default.
    """

    down: ClassVar[tuple[str, ...]]  # columns of the table that become rows of the summary
    across: ClassVar[tuple[str, ...]]  # and those that become its columns

    replicates: int = 50
    families: tuple[str, ...] = tuple(FAMILIES)

    @abstractmethod
    def setting(self, task: Task) -> dict[str, Any]:
        """Return the columns that describe a data set, apart from its seed."""

    @abstractmethod
    def position(self, row: Mapping[str, Any]) -> tuple[float, ...]:
        """Return a key that sorts the table by setting."""

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and method."""
        return self.sorted_table(
            {**self.setting(task), "seed": task["seed"], "method": method, **found}
            for task, record in records.items()
            for method, found in record.items()
        )

    def sorted_table(self, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Return the rows as a table, sorted by setting, data set and method."""
        order = {method: place for place, method in enumerate([ORACLE, *experiment_methods(1, 2)])}
        return columns(sorted(rows, key=lambda row: (*self.position(row), row["seed"], order[row["method"]])))

    def summary(self, table: Table) -> Table:
        """Return the mean agreement by setting and method."""
        return group_means(table, "ari", rows=self.down, across=self.across)

    def gaps(self, table: Table) -> Table | None:
        """Return the mean paired difference from MMPCA by setting and method."""
        return paired_gaps(table, "ari", "MMPCA", rows=self.down, across=self.across)


@dataclass(frozen=True)
class Noise(MethodComparison):
    """Agreement of all methods with the truth, by noise and balance (the paper's epsilon and lambda).

    Parameters
    ----------
    levels : tuple of float, default=0, 0.05, ..., 0.7
        Noise levels.
    balances : tuple of float, default=1, 0.85, 0.7
        Balance of the cluster sizes.
    n_samples : int, default=400
        Rows of a data set.
    """

    name: ClassVar[str] = "noise"
    shared_options: ClassVar[tuple[str, ...]] = ("n_samples",)
    down: ClassVar[tuple[str, ...]] = ("balance", "method")
    across: ClassVar[tuple[str, ...]] = ("noise",)

    levels: tuple[float, ...] = LEVELS
    balances: tuple[float, ...] = BALANCES
    n_samples: int = 400

    @classmethod
    def quick(cls) -> Self:
        """Return two data sets of 100 rows for two noise levels."""
        return cls(replicates=2, levels=(0.0, 0.4), balances=(1.0,), n_samples=100)

    def tasks(self) -> list[Task]:
        """Return a task for each data set and family of methods."""
        return [
            new_task(family, balance=balance, noise=level, seed=seed)
            for seed in self.seeds
            for balance in self.balances
            for level in self.levels
            for family in self.families
        ]

    def run(self, task: Task) -> Record:
        """Return the agreement of each method of the family."""
        data = paper_design(self.n_samples, noise=task["noise"], balance=task["balance"], random_state=task["seed"])
        return fit_family(task.kind, data, task["seed"])

    def setting(self, task: Task) -> dict[str, Any]:
        """Return balance and noise."""
        return {"balance": task["balance"], "noise": task["noise"]}

    def position(self, row: Mapping[str, Any]) -> tuple[float, ...]:
        """Sort by balance, equal clusters first, then by noise."""
        return -row["balance"], row["noise"]

    def draw(self, table: Table) -> Figure:
        """Draw the means with their standard errors, a panel for each balance."""
        return agreement_curves(
            table, x="noise", panel="balance", x_label="noise $\\epsilon$", panel_label="$\\lambda$"
        )


@dataclass(frozen=True)
class SampleSize(MethodComparison):
    """Agreement of all methods with the truth, by the number of rows relative to the number of features.

    Parameters
    ----------
    sizes : tuple of int, default=50, 100, 200, 400, 800
        Rows of a data set.
    noise, balance : float
        Noise level and balance of the data sets (the paper's epsilon and lambda).
    """

    name: ClassVar[str] = "sample-size"
    shared_options: ClassVar[tuple[str, ...]] = ("noise", "balance")
    down: ClassVar[tuple[str, ...]] = ("method",)
    across: ClassVar[tuple[str, ...]] = ("n_samples",)

    sizes: tuple[int, ...] = SIZES
    noise: float = 0.2
    balance: float = 0.85

    @classmethod
    def quick(cls) -> Self:
        """Return two data sets of two small sizes."""
        return cls(replicates=2, sizes=(50, 100))

    def tasks(self) -> list[Task]:
        """Return a task for each data set and family of methods."""
        return [
            new_task(family, n_samples=size, seed=seed)
            for seed in self.seeds
            for size in self.sizes
            for family in self.families
        ]

    def run(self, task: Task) -> Record:
        """Return the agreement of each method of the family."""
        seed = task["seed"]
        data = paper_design(task["n_samples"], noise=self.noise, balance=self.balance, random_state=seed)
        return fit_family(task.kind, data, seed)

    def setting(self, task: Task) -> dict[str, Any]:
        """Return the number of rows, alone and relative to the number of features."""
        size, n_features = task["n_samples"], article_topics()[0].shape[1]
        return {"n_samples": size, "rows_per_feature": round(size / n_features, 4)}

    def position(self, row: Mapping[str, Any]) -> tuple[float, ...]:
        """Sort by the number of rows."""
        return (row["n_samples"],)

    def draw(self, table: Table) -> Figure:
        """Draw the means with their standard errors."""
        return agreement_curves(table, x="rows_per_feature", x_label="rows / features, N / V", x_scale="log")


# --- criteria ---------------------------------------------------------------------------------------------------


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
        search = MMPCASearch(self.n_clusters, self.n_topics, criterion="predictive", random_state=seed, n_jobs=1).fit(
            data.X
        )
        return {name: search.results_[name].tolist() for name in ("n_clusters", "n_topics", *GRID_CRITERIA)}

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each data set and cell, with 1 for each criterion that chooses the cell."""
        rows = []
        for task, record in sorted(records.items(), key=lambda item: (-item[0]["balance"], item[0]["seed"])):
            best = {name: max(range(len(record[name])), key=record[name].__getitem__) for name in GRID_CRITERIA}
            for cell in range(len(record["n_clusters"])):
                row = {"balance": task["balance"], "seed": task["seed"]}
                row |= {name: column[cell] for name, column in record.items()}
                rows.append(row | {f"{name}_choice": int(best[name] == cell) for name in GRID_CRITERIA})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return how often each criterion is right, and its most frequent wrong choice."""
        rows = []
        for balance in dict.fromkeys(table["balance"]):
            row: dict[str, Any] = {"balance": balance}
            for name in GRID_CRITERIA:
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
            for name in GRID_CRITERIA
            for balance in dict.fromkeys(table["balance"])
        }
        return choice_maps(counts, n_clusters=self.n_clusters, n_topics=self.n_topics, truth=TRUTH)


def choices(table: Table, criterion: str, balance: float) -> Counter[tuple[int, int]]:
    """Return how often a criterion chooses each cell (Q, K)."""
    cells = zip(table["balance"], table["n_clusters"], table["n_topics"], table[f"{criterion}_choice"], strict=True)
    return Counter((q, k) for where, q, k, is_chosen in cells if where == balance and is_chosen)
