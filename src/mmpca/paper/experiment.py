"""The interface of an experiment: tasks to run, a table of all results, summaries and a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

Figure = Any  # matplotlib's, which only the figures know
Record = dict[str, Any]  # the result of a task, as JSON values
Table = dict[str, list[Any]]  # columns of equal length

SEED = 1000  # of the first data set; the baselines' defaults were chosen on data sets of seeds 0 and 1


@dataclass(frozen=True)
class Task:
    """A unit of work, run in one go and saved when it is finished.

    Parameters
    ----------
    kind : str
        The kind of work.
    settings : tuple of pairs of str and value
        Everything the result depends on, apart from the identity of the experiment: numbers and strings by name.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...]

    @property
    def key(self) -> str:
        """A name for the task that is valid as a file name."""
        words = [self.kind, *(f"{name}-{value}" for name, value in self.settings)]
        return "_".join("".join(c if c.isalnum() or c in "-." else "-" for c in word) for word in words)

    def __getitem__(self, name: str) -> Any:
        """Return a setting by name."""
        return dict(self.settings)[name]


def new_task(kind: str, **settings: Any) -> Task:
    """Return a task with the given settings.

    Examples
    --------
    >>> new_task("lda", noise=0.2, seed=3).key
    'lda_noise-0.2_seed-3'
    """
    return Task(kind, tuple(settings.items()))


@dataclass(frozen=True)
class Experiment(ABC):
    """An experiment with its options; a frozen dataclass, because it is sent to other processes.

    Parameters
    ----------
    replicates : int
        Number of data sets for each setting; the default is that of the paper.
    seed : int, default=1000
        Seed of the first data set and of the fits to it; later data sets use the following integers.
    """

    name: ClassVar[str]
    is_timed: ClassVar[bool] = False  # measures time, so its tasks must not run in parallel
    # Options that change the result of a task without being in its settings. Experiments that differ only in others,
    # such as the number of replicates, can share a folder.
    shared_options: ClassVar[tuple[str, ...]] = ()

    replicates: int = 1
    seed: int = SEED

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """Return a version of the experiment that takes less than two minutes."""

    @property
    def seeds(self) -> range:
        """The seeds of the data sets."""
        return range(self.seed, self.seed + self.replicates)

    def identity(self) -> dict[str, Any]:
        """Return everything, as JSON values, that changes the result of a task without being in its settings."""
        return {name: getattr(self, name) for name in self.shared_options}

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return all tasks, replicate by replicate, so that an unfinished run covers every setting."""

    @abstractmethod
    def run(self, task: Task) -> Record:
        """Run one task; apart from times, the record does not depend on the process or the order of tasks."""

    @abstractmethod
    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return the table of all results, for the CSV file."""

    @abstractmethod
    def summary(self, table: Table) -> Table:
        """Return a short table for the console and the documentation."""

    def gaps(self, table: Table) -> Table | None:
        """Return how far the other methods are behind MMPCA on the same data; None if no methods are compared."""
        return None

    @abstractmethod
    def draw(self, table: Table) -> Figure:
        """Draw the results."""


# --- tables -----------------------------------------------------------------------------------------------------


def columns(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows with the same fields as a table.

    Examples
    --------
    >>> columns([{"noise": 0.0, "ari": 1.0}, {"noise": 0.5, "ari": 0.8}])
    {'noise': [0.0, 0.5], 'ari': [1.0, 0.8]}
    """
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def group_means(table: Table, value: str, *, rows: Sequence[str], across: Sequence[str]) -> Table:
    """Return the mean of a column by group, with some grouping columns down and some across.

    Examples
    --------
    >>> table = {"method": ["a", "b", "a", "b"], "noise": [0.0, 0.0, 0.5, 0.5], "ari": [1.0, 0.9, 0.8, 0.7]}
    >>> group_means(table, "ari", rows=("method",), across=("noise",))
    {'method': ['a', 'b'], 'noise 0': [1.0, 0.9], 'noise 0.5': [0.8, 0.7]}
    """
    return _pivot(table, value, rows, across, lambda numbers: float(np.mean(numbers)))


def paired_gaps(
    table: Table, value: str, reference: str, *, rows: Sequence[str], across: Sequence[str], pair: str = "seed"
) -> Table | None:
    """Return how far methods are behind a reference method on the same data, as "mean (standard error)".

    `rows` and `across` are as in `group_means`, with "method" among the rows; `pair` identifies a data set within a
    group. None if the table lacks the reference or has no other method.

    Examples
    --------
    >>> table = {"method": ["a", "b"] * 2, "seed": [1, 1, 2, 2], "noise": [0.5] * 4, "ari": [1.0, 0.9, 0.8, 0.5]}
    >>> paired_gaps(table, "ari", "a", rows=("method",), across=("noise",))
    {'method': ['b'], 'noise 0.5': ['0.200 (0.100)']}
    """
    names = [*(name for name in (*rows, *across) if name != "method"), pair]
    data_sets = list(zip(*(table[name] for name in names), strict=True))
    lines = list(zip(data_sets, table["method"], table[value], strict=True))
    best = {data: number for data, method, number in lines if method == reference}
    kept = [place for place, (data, method, _) in enumerate(lines) if method != reference and data in best]
    if not kept:
        return None
    others = {name: [column[place] for place in kept] for name, column in table.items()}
    others["behind"] = [best[lines[place][0]] - lines[place][2] for place in kept]
    return _pivot(others, "behind", rows, across, _mean_and_error)


def _mean_and_error(numbers: Sequence[float]) -> str:
    error = f" ({np.std(numbers, ddof=1) / np.sqrt(len(numbers)):.3f})" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):.3f}{error}"


def _pivot(
    table: Table, value: str, rows: Sequence[str], across: Sequence[str], aggregate: Callable[[list[float]], Any]
) -> Table:
    """Return an aggregate of each group's values, with some grouping columns down and some across."""
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = {}
    for line in zip(*(table[name] for name in (*rows, *across)), table[value], strict=True):
        down, along, number = line[: len(rows)], line[len(rows) : -1], line[-1]
        groups.setdefault(down, {}).setdefault(along, []).append(number)
    result: Table = {name: [down[place] for down in groups] for place, name in enumerate(rows)}
    for along in dict.fromkeys(key for parts in groups.values() for key in parts):
        values = (f"{part:g}" if isinstance(part, float) else str(part) for part in along)
        head = ", ".join(f"{name} {part}" for name, part in zip(across, values, strict=True))
        result[head] = [aggregate(parts[along]) if along in parts else None for parts in groups.values()]
    return result
