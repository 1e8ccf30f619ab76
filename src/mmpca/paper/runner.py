"""Run the tasks of an experiment in parallel processes, save each one when it is finished, and write the results."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from mmpca.io.delimited import format_columns
from mmpca.monitor import Callback, Monitor
from mmpca.paper.experiment import Experiment, Record, Table, Task
from mmpca.plots.style import save_figure
from mmpca.store import Store, write_atomically

PACKAGE = Path(__file__).parents[1]
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")  # whose versions may change a result
DISPLAY = ("cli", "plots", "report")  # packages that no result depends on


def run_tasks(
    experiment: Experiment, folder: str | os.PathLike[str], *, n_jobs: int = 1, callback: Callback | None = None
) -> dict[Task, Record]:
    """Run the tasks of an experiment that are not finished yet, and return the records of all of them, in order.

    Finished tasks are saved, and a later run resumes from there. The records depend neither on the number of processes
    nor on earlier interruptions.

    Parameters
    ----------
    experiment : Experiment
    folder : path
        Tasks are saved in its subfolder "tasks".
    n_jobs : int, default=1
        Number of processes; experiments that measure time use one.
    callback : callable, optional
        Called with a :class:`mmpca.monitor.Progress`. If it returns a true value, the run stops after the tasks that
        have begun.

    Returns
    -------
    dict of Task to Record

    Raises
    ------
    StoreError
        The folder holds results of another experiment, of other options or of other code.
    """
    store = Store(Path(folder) / "tasks", "experiment")
    store.open(
        {"experiment": experiment.name, "mmpca": version("mmpca"), "code": code_hash()}
        | {name: version(name) for name in LIBRARIES}
        | experiment.identity(),
        explain={"code": "the code of mmpca has changed since it was created"},
    )
    tasks = experiment.tasks()
    records = {task: json.loads(str(part["record"])) for task in tasks if (part := store.read(task.key)) is not None}
    missing = [task for task in tasks if task not in records]
    n_processes = 1 if experiment.is_timed else min(effective_n_jobs(n_jobs), max(1, len(missing)))
    monitor = Monitor(callback)
    earlier = f", {len(records)} finished earlier" if records else ""
    monitor.begin("tasks", f"{experiment.name}: {len(missing)} tasks{earlier}", n_steps=len(missing))
    work = (delayed(_run)(experiment, task, store) for task in missing if not monitor.is_stopped)
    for task, record in Parallel(n_jobs=n_processes, return_as="generator_unordered")(work):
        records[task] = record
        monitor.step()
    monitor.end()
    return {task: records[task] for task in tasks if task in records}


def _run(experiment: Experiment, task: Task, store: Store) -> tuple[Task, Record]:
    """Run a task and save its record."""
    # One BLAS thread: processes share the cores, and the order of sums must not depend on their number.
    with _Interruption() as interruption, warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # baselines that do not converge are part of the result
        record = experiment.run(task)
    if interruption.has_happened:
        raise KeyboardInterrupt
    store.write(task.key, {"record": json.dumps(record)})
    return task, record


class _Interruption:
    """Remembers whether Ctrl-C was pressed: an interrupted search returns its best state, which must not be saved."""

    def __init__(self) -> None:
        self.has_happened = False
        self.handler: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # signals arrive only there
            self.handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self.handler is not None:
            signal.signal(signal.SIGINT, self.handler)

    def _interrupt(self, *_: Any) -> None:
        self.has_happened = True
        raise KeyboardInterrupt


@cache
def code_hash(package: Path = PACKAGE) -> str:
    """Return a hash of all code that results depend on."""
    digest = hashlib.sha256()
    for path in sorted(path.relative_to(package) for path in package.rglob("*.py")):
        if path.parts[0] not in DISPLAY and path.name != "figures.py":
            digest.update(path.as_posix().encode() + b"\0" + (package / path).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


# --- results as files -------------------------------------------------------------------------------------------


def write_output(
    experiment: Experiment, records: Mapping[Task, Record], folder: str | os.PathLike[str]
) -> tuple[Table, list[Path]]:
    """Write the table of finished tasks as CSV, and the figure as PNG and SVG.

    Parameters
    ----------
    experiment : Experiment
    records : mapping of Task to Record
        From :func:`run_tasks`.
    folder : path

    Returns
    -------
    table : Table
    files : list of Path
    """
    table = experiment.table(records)
    path = Path(folder) / f"{experiment.name}.csv"
    write_csv(path, table)
    return table, [path, *save_figure(experiment.draw(table), Path(folder) / experiment.name)]


def write_csv(path: Path, table: Table) -> None:
    """Write a table as CSV, atomically."""
    write_atomically(path, lambda file: file.write(format_columns(table)))
