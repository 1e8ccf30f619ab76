"""What an experiment is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

Figure = Any  # matplotlib's, which only the plots know
Record = dict[str, Any]  # what a task finds; JSON can hold it
Table = dict[str, list[Any]]  # columns of equal length

SEED = 1000  # of the first data set; the rivals' defaults were chosen on data sets of the seeds 0 and 1


@dataclass(frozen=True)
class Task:
    """A part of an experiment that is run at a stroke and kept when it is finished.

    Parameters
    ----------
    kind : str
        What the task does. Tasks of a kind whose settings differ by the seed alone take about equally long, which tells
        how much time is left.
    settings : tuple of pairs of str and value
        All that the task depends on, beside what its experiment's identity says: numbers and strings by name.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...]

    @property
    def key(self) -> str:
        """The name of its file, without the ending."""
        words = [self.kind, *(f"{name}-{value}" for name, value in self.settings)]
        return "_".join("".join(c if c.isalnum() or c in "-." else "-" for c in word) for word in words)

    @property
    def group(self) -> tuple[Any, ...]:
        """What it has in common with the tasks that are its replicates."""
        return (self.kind, *(setting for setting in self.settings if setting[0] != "seed"))

    def __getitem__(self, name: str) -> Any:
        """Return a setting by its name."""
        return dict(self.settings)[name]


def new_task(kind: str, **settings: Any) -> Task:
    """Return a task with settings given by name.

    Examples
    --------
    >>> new_task("lda", noise=0.2, seed=3).key
    'lda_noise-0.2_seed-3'
    """
    return Task(kind, tuple(settings.items()))


class Experiment(ABC):
    """One experiment with its options; a frozen dataclass, because it travels to other processes."""

    name: ClassVar[str]
    is_timed: ClassVar[bool] = False  # measures time, so that tasks may not disturb each other

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """Return the experiment in a size that takes less than two minutes."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the options that change what a task of the same settings finds; JSON can hold them.

        Results of experiments that differ in nothing else, such as the number of replicates, may share a folder.
        """

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return all tasks, replicate by replicate, so that an unfinished run has something of everything."""

    @abstractmethod
    def run(self, task: Task) -> Record:
        """Run one task; the same record whenever and in whatever process it runs, times apart."""

    @abstractmethod
    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return all results, for the CSV file."""

    @abstractmethod
    def summary(self, table: Table) -> Table:
        """Return what to read at a glance, for the screen."""

    def gaps(self, table: Table) -> Table | None:
        """Return how far methods are behind MMPCA on the same data, where methods are compared."""
        return None

    @abstractmethod
    def draw(self, table: Table) -> Figure:
        """Draw the results."""


def columns(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return records that have the same fields as columns.

    Examples
    --------
    >>> columns([{"noise": 0.0, "ari": 1.0}, {"noise": 0.5, "ari": 0.8}])
    {'noise': [0.0, 0.5], 'ari': [1.0, 0.8]}
    """
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
