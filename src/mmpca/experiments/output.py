"""The results of an experiment as files: one CSV, and the figure as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

from mmpca.experiments.experiment import Experiment, Record, Table, Task
from mmpca.io.columns import delimited
from mmpca.model.archive import write_atomically
from mmpca.plots.saving import save_figure


class Output(NamedTuple):
    """What was written.

    Attributes
    ----------
    table : dict of list
        All results.
    files : list of Path
        The table and the figure.
    """

    table: Table
    files: list[Path]


def write_output(experiment: Experiment, records: Mapping[Task, Record], folder: Path) -> Output:
    """Write the table and the figure of finished tasks into a folder, older ones are replaced."""
    table = experiment.table(records)
    path = folder / f"{experiment.name}.csv"
    write_csv(path, table)
    return Output(table, [path, *save_figure(experiment.draw(table), folder / experiment.name)])


def write_csv(path: Path, table: Table) -> None:
    """Write columns as CSV, whole or not at all."""
    content = delimited(table)

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_atomically(path, write)
