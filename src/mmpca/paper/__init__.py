"""Reproduction of the paper: its experiments, their figures, and synthetic medical reports.

An experiment is a list of tasks, the result of one task, a table and a figure. To add one, derive a frozen dataclass
from `Experiment`, in a module of its own or beside a related one, and add it to `EXPERIMENTS`.
"""

from dataclasses import fields, replace
from typing import Any

from mmpca.paper.comparison import FAMILIES, Noise, SampleSize, Selection
from mmpca.paper.design import Design
from mmpca.paper.experiment import Experiment, Record, Table, Task
from mmpca.paper.pathology import Reports, pathology_reports
from mmpca.paper.reports import BiopsyReports
from mmpca.paper.runner import run_tasks, write_output
from mmpca.paper.runs import Intro, Runtime

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Record",
    "Reports",
    "Table",
    "Task",
    "make",
    "pathology_reports",
    "run_tasks",
    "write_output",
]

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.name: kind for kind in (Design, Intro, Noise, Selection, SampleSize, Runtime, BiopsyReports)
}


def make(name: str, *, quick: bool = False, **options: Any) -> Experiment:
    """Return an experiment with its options.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    quick : bool, default=False
        Whether to start from the defaults of a small version, which takes less than two minutes.
    **options
        Fields of the experiment; an option that is None keeps its default.

    Returns
    -------
    Experiment

    Raises
    ------
    ValueError
        The experiment, an option, or a family of methods does not exist.

    Examples
    --------
    >>> from mmpca.paper import make
    >>> make("noise", replicates=10).replicates
    10
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"The experiment must be one of {', '.join(EXPERIMENTS)}, but it is {name!r}.")
    kind = EXPERIMENTS[name]
    given = {option: value for option, value in options.items() if value is not None}
    known = [field.name for field in fields(kind)]
    for option in given:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; its options are {', '.join(known)}.")
    for family in given.get("families", ()):
        if family not in FAMILIES:
            raise ValueError(f"Methods must be among {', '.join(FAMILIES)}, but one is {family!r}.")
    return replace(kind.quick() if quick else kind(), **given)
