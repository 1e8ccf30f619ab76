"""Count how often each criterion finds the true numbers of clusters and topics: `make selection-study`.

The first study is the paper's table: its design, balanced or not, with and without noise. The second varies the truth,
the number of features, the length of the rows and the topics. The default criterion searches each data set without
being given any numbers; the other criteria choose among the cells of a grid, which `--default-only` skips. The third
study has rows that differ within their clusters by more than multinomial noise, a homogeneous cluster and clusters of
very unequal size; the fourth has few samples of abundances with bursts. Both use only the default criterion. Finished
searches are stored, so a second run continues where the first stopped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from measure import RESULTS
from mmpca.errors import OverdispersionWarning
from mmpca.selection import CRITERIA, GRID_CRITERIA, MMPCASearch
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.store import Store
from tasks import Numbers, run_all

BALANCES, NOISES = (1.0, 0.85, 0.7), (0.0, 0.2)
TRUTHS, WIDTHS, LENGTHS, CONCENTRATIONS = ((3, 3), (4, 2), (8, 5), (10, 6)), (300, 2000), (80, 400), (0.05, 0.5)
REQUIRED = {(1.0, 0.0, "icl"): 0.95, (0.85, 0.0, "icl"): 0.9} | {
    (balance, noise, criterion): 0.95 if noise == 0 else 0.9
    for balance in BALANCES
    for noise in NOISES
    for criterion in ("shares", "predictive")
}
# Rows with varying topic shares (concentration), Dirichlet-multinomial rows (concentration), negative binomial features
# (shape).
DEPARTURES = (("shares", 100.0), ("shares", 20.0), ("shares", 5.0), ("polya", 100.0), ("polya", 30.0), ("negbin", 0.5))
LEAST_RIGHT = 10 / 12
# Samples, clusters, features, and the kind and strength of bursts.
ABUNDANCES = (
    (60, 3, 120, "negbin", 1.0), (60, 3, 300, "negbin", 0.5), (60, 3, 120, "polya", 60.0),
    (60, 3, 120, "lognormal", 0.8), (120, 4, 120, "negbin", 1.0), (200, 5, 200, "polya", 60.0),
    (400, 5, 200, "negbin", 1.0), (60, 1, 120, "negbin", 1.0), (150, 1, 120, "polya", 60.0),
)  # fmt: skip


class Paper(NamedTuple):
    """A data set of the paper's design; the search is not given any numbers."""

    balance: float
    noise: float
    seed: int

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"paper-b{self.balance:g}-e{self.noise:g}-s{self.seed}"

    @property
    def grid(self) -> tuple[range, range]:
        """The numbers of clusters and topics that the paper compares."""
        return range(2, 9), range(2, 6)

    def draw(self) -> sparse.csr_array:
        """Return the rows."""
        return paper_design(noise=self.noise, balance=self.balance, random_state=1000 + self.seed).X

    def run(self) -> Numbers:
        """Return the choice of the default criterion."""
        return default_choice(self.draw(), self.seed)


class Other(NamedTuple):
    """A data set with another truth and uniformly drawn topic proportions; the search is not given any numbers."""

    n_clusters: int
    n_topics: int
    n_features: int
    length: int
    concentration: float
    seed: int

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return "other-" + "-".join(f"{value:g}" for value in self)

    @property
    def grid(self) -> tuple[range, range]:
        """Numbers of clusters and topics around the truth."""
        q, k = self.n_clusters, self.n_topics
        return range(max(1, q - 3), q + 4), range(max(1, k - 2), k + 3)

    def draw(self) -> sparse.csr_array:
        """Return the rows."""
        rng = np.random.default_rng([self.seed, *map(int, self[:4]), int(100 * self.concentration)])
        return simulate_mmpca(
            400,
            topics=sparse_topics(self.n_topics, self.n_features, concentration=self.concentration, random_state=rng),
            cluster_topics=rng.dirichlet(np.ones(self.n_topics), self.n_clusters),
            lengths=np.maximum(1, rng.poisson(self.length, 400)),
            random_state=rng,
        ).X

    def run(self) -> Numbers:
        """Return the choice of the default criterion."""
        return default_choice(self.draw(), self.seed)


class OnGrid(NamedTuple):
    """A grid search of a data set, for all criteria that need a grid."""

    data: Paper | Other

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"{self.data.key}-grid"

    def run(self) -> Numbers:
        """Return the choice of each criterion that needs a grid, and the time of the search."""
        start = process_time()
        search = MMPCASearch(*self.data.grid, criterion="predictive", random_state=self.data.seed).fit(self.data.draw())
        numbers = {"seconds": process_time() - start}
        for criterion in GRID_CRITERIA:
            best = int(search.results_[criterion].argmax())
            numbers[f"{criterion}_q"] = int(search.results_["n_clusters"][best])
            numbers[f"{criterion}_k"] = int(search.results_["n_topics"][best])
        return numbers


class Departure(NamedTuple):
    """A data set whose rows do not follow the model, or whose clusters are of one size or of very different sizes."""

    kind: str  # "shares", "polya", "negbin", "one" or "unequal"
    value: float
    seed: int

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"departure-{self.kind}-{self.value:g}-s{self.seed}"

    @property
    def truth(self) -> tuple[int, int]:
        """The numbers of clusters and topics."""
        return (1, 1) if self.kind == "one" else (5, 4)

    def draw(self, n_samples: int = 400, n_features: int = 500, length: int = 200) -> sparse.csr_array:
        """Return the rows: one cluster around each of four topics, and one in the middle of them."""
        rng = np.random.default_rng([self.seed, int(10 * self.value), *self.kind.encode()])
        topics = 0.9 * sparse_topics(4, n_features, random_state=rng) + 0.1 / n_features
        cluster_topics = np.vstack([0.1 + 0.6 * np.eye(4), np.full((1, 4), 0.25)])
        weights = {"one": np.eye(5)[4], "unequal": 0.5 ** np.arange(5)}.get(self.kind, np.ones(5))
        shares = cluster_topics[rng.choice(5, p=weights / weights.sum(), size=n_samples)]
        if self.kind == "shares":
            shares = np.array([rng.dirichlet(self.value * row) for row in shares])
        profiles = shares @ topics
        if self.kind == "polya":
            profiles = np.array([rng.dirichlet(self.value * row) for row in profiles])
        if self.kind == "negbin":
            return sparse.csr_array(rng.negative_binomial(self.value, self.value / (self.value + length * profiles)))
        return sparse.csr_array(rng.multinomial(length, profiles))

    def run(self) -> Numbers:
        """Return the choice of the default criterion."""
        return default_choice(self.draw(), self.seed)


class Abundance(NamedTuple):
    """Samples of about 2,000 counts with bursts, in clusters of one size that differ in two fifths of the features."""

    n_samples: int
    n_clusters: int
    n_features: int
    kind: str  # "negbin" (value: 1 / shape), "polya" (concentration) or "lognormal" (standard deviation)
    value: float
    seed: int

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"abundance-{self.n_samples}-{self.n_clusters}-{self.n_features}-{self.kind}-{self.value:g}-s{self.seed}"

    def draw(self) -> sparse.csr_array:
        """Return the rows."""
        n, q, v = self[:3]
        rng = np.random.default_rng([self.seed, n, q, v])
        base = np.exp(rng.normal(0, 1.5, v))
        base /= base.sum()
        profiles = np.array([base * np.exp(rng.normal(0, 1, v) * (rng.random(v) < 0.4)) for _ in range(q)])
        profiles = (profiles / profiles.sum(axis=1, keepdims=True))[np.arange(n) % q]
        totals = 2000 * np.exp(rng.normal(0, 0.4, n))
        means = totals[:, None] * profiles
        if self.kind == "negbin":
            return sparse.csr_array(rng.negative_binomial(1 / self.value, 1 / (1 + self.value * means)))
        if self.kind == "lognormal":
            return sparse.csr_array(
                rng.poisson(means * np.exp(rng.normal(0, self.value, means.shape) - self.value**2 / 2))
            )
        drawn = [rng.multinomial(int(t), rng.dirichlet(self.value * p)) for t, p in zip(totals, profiles, strict=True)]
        return sparse.csr_array(np.array(drawn))

    def run(self) -> Numbers:
        """Return the choice of the default criterion."""
        return default_choice(self.draw(), self.seed)


def default_choice(X: sparse.csr_array, seed: int) -> Numbers:
    """Return the choice of a search without numbers, and its time."""
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)
        best = MMPCASearch(random_state=seed).fit(X).best_params_
    return {
        "shares_seconds": process_time() - start,
        "shares_q": best["n_clusters"],
        "shares_k": best["n_topics"],
    }


def compared(results: Mapping[Any, Numbers]) -> list[str]:
    """Return the criteria that have chosen numbers for all data sets."""
    return [criterion for criterion in CRITERIA if all(f"{criterion}_q" in numbers for numbers in results.values())]


def share_right(found: Sequence[Numbers], criterion: str, truth: tuple[int, int]) -> float:
    """Return the share of data sets on which a criterion is right."""
    return float(np.mean([(numbers[f"{criterion}_q"], numbers[f"{criterion}_k"]) == truth for numbers in found]))


def paper_table(results: dict[Paper, Numbers]) -> tuple[Table, bool]:
    """Return the first study, and whether its requirements hold."""
    criteria = compared(results)
    table = Table(
        "balance",
        "noise",
        "data sets",
        *criteria,
        "required",
        "holds",
        title="the paper's design: share of correct choices",
    )
    holds = True
    for balance, noise in product(BALANCES, NOISES):
        found = [numbers for task, numbers in results.items() if (task.balance, task.noise) == (balance, noise)]
        shares = {criterion: share_right(found, criterion, (6, 4)) for criterion in criteria}
        needed = {c: REQUIRED[balance, noise, c] for c in criteria if (balance, noise, c) in REQUIRED}
        is_met = all(shares[criterion] >= least for criterion, least in needed.items())
        holds &= is_met
        table.add_row(
            f"{balance:g}", f"{noise:g}", str(len(found)), *(f"{shares[c]:.2f}" for c in criteria),
            ", ".join(f"{c} >= {least:g}" for c, least in needed.items()), "yes" if is_met else "[bold red]no[/]",
        )  # fmt: skip
    return table, holds


def other_table(results: dict[Other, Numbers]) -> tuple[Table, bool]:
    """Return the second study by each of its factors, and whether `predictive` is right as often as `icl`."""
    criteria = compared(results)
    table = Table("factor", "value", "data sets", *criteria, title="other truths: share of correct choices")
    factors = {"(Q, K)": lambda t: (t.n_clusters, t.n_topics), "features": lambda t: t.n_features,
               "length": lambda t: t.length, "topics": lambda t: t.concentration, "all": lambda _: ""}  # fmt: skip
    right = {
        c: [(x[f"{c}_q"], x[f"{c}_k"]) == (t.n_clusters, t.n_topics) for t, x in results.items()] for c in criteria
    }
    for name, value_of in factors.items():
        values = [value_of(task) for task in results]
        for value in dict.fromkeys(values):
            at = [p for p, other in enumerate(values) if other == value]
            table.add_row(name, str(value), str(len(at)), *(f"{np.mean(np.array(right[c])[at]):.2f}" for c in criteria))
    return table, sum(right.get("predictive", [])) >= sum(right.get("icl", []))


def departure_table(results: dict[Departure, Numbers]) -> tuple[Table, bool]:
    """Return the third study, and whether its requirements hold."""
    table = Table("rows", "data sets", "chosen (clusters, topics)", "right", title="departures from the model")
    right = {task: (x["shares_q"], x["shares_k"]) == task.truth for task, x in results.items()}
    for kind, value in dict.fromkeys((task.kind, task.value) for task in results):
        own = [task for task in results if (task.kind, task.value) == (kind, value)]
        chosen = ", ".join(f"({results[task]['shares_q']:g}, {results[task]['shares_k']:g})" for task in own)
        table.add_row(f"{kind} {value:g}", str(len(own)), chosen, str(sum(right[task] for task in own)))
    departs = [task for task in results if (task.kind, task.value) in DEPARTURES]
    others = [task for task in results if task not in departs]
    table.add_row("all departures", str(len(departs)), "", str(sum(right[task] for task in departs)))
    holds = sum(right[task] for task in departs) >= LEAST_RIGHT * len(departs) and all(right[task] for task in others)
    return table, holds


def abundance_table(results: dict[Abundance, Numbers]) -> tuple[Table, bool]:
    """Return the fourth study, and whether nine of ten numbers of clusters are right."""
    table = Table("samples", "clusters", "features", "bursts", "clusters chosen", "right", title="few samples, bursts")
    right = {task: results[task]["shares_q"] == task.n_clusters for task in results}
    for cell in dict.fromkeys(task[:5] for task in results):
        own = [task for task in results if task[:5] == cell]
        chosen = ", ".join(f"{results[task]['shares_q']:g}" for task in own)
        n_right = f"{sum(right[task] for task in own)} of {len(own)}"
        table.add_row(*map(str, cell[:3]), f"{cell[3]} {cell[4]:g}", chosen, n_right)
    return table, sum(right.values()) >= 0.9 * len(right)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="data sets per cell of the paper's table (default: 20)")
    parser.add_argument(
        "--other-seeds", type=int, default=3, help="data sets for each of the 32 other truths (default: 3)"
    )
    parser.add_argument(
        "--departure-seeds", type=int, default=2, help="data sets for each departure from the model (default: 2)"
    )
    parser.add_argument(
        "--abundance-seeds", type=int, default=4, help="data sets for each kind of abundances (default: 4)"
    )
    parser.add_argument("--default-only", action="store_true", help="skip the criteria that need a grid")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--results", type=Path, default=RESULTS / "selection", help="folder of finished results")
    return parser.parse_args(arguments)


def main() -> int:
    """Run unfinished tasks and print all studies; return 1 if a requirement fails."""
    options = parse()
    console, store = Console(width=None if sys.stdout.isatty() else 120), Store(options.results, "selection")
    paper = [Paper(*cell, seed) for seed in range(options.seeds) for cell in product(BALANCES, NOISES)]
    cells = product(TRUTHS, WIDTHS, LENGTHS, CONCENTRATIONS)
    others = [Other(*cell[0], *cell[1:], seed) for cell in cells for seed in range(options.other_seeds)]
    kinds = (*DEPARTURES, ("one", 0.0), ("unequal", 0.0))
    departures = [Departure(*kind, seed) for kind in kinds for seed in range(options.departure_seeds)]
    abundances = [Abundance(*cell, seed) for cell in ABUNDANCES for seed in range(options.abundance_seeds)]
    holds = True
    tables = ((departures, departure_table), (abundances, abundance_table), (paper, paper_table), (others, other_table))
    for tasks, table_of in tables:
        if tasks:
            found: dict[Any, Numbers] = dict(run_all(tasks, store, n_jobs=options.jobs, console=console))
            if hasattr(tasks[0], "grid") and not options.default_only:
                grids = run_all([OnGrid(task) for task in tasks], store, n_jobs=options.jobs, console=console)
                found = {task: found[task] | grids[OnGrid(task)] for task in tasks}
            table, is_met = table_of(found)
            console.print(table)
            holds &= is_met
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
