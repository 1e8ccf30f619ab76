"""All tasks of an experiment, in parallel processes, each kept as soon as it is finished."""

from __future__ import annotations

import signal
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, Self

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from mmpca.experiments.experiment import Experiment, Record, Task
from mmpca.experiments.ledger import Finished, Ledger


class Progress(NamedTuple):
    """Where an experiment stands.

    Attributes
    ----------
    n_done, n_tasks : int
        Finished tasks, those of earlier runs included, and all.
    seconds_left : float
        NaN before the first task of this run or an earlier one is finished.
    """

    n_done: int
    n_tasks: int
    seconds_left: float


def run_tasks(
    experiment: Experiment,
    ledger: Ledger,
    *,
    n_jobs: int = 1,
    callback: Callable[[Progress], object] | None = None,
) -> dict[Task, Record]:
    """Run the tasks that are not finished yet, and return what all of them found.

    What is found depends neither on `n_jobs` nor on how often the run was stopped before.

    Parameters
    ----------
    experiment : Experiment
    ledger : Ledger
        Where finished tasks are kept.
    n_jobs : int, default=1
        Processes; -1 for all cores. Experiments that measure time have one.
    callback : callable, optional
        Called with a `Progress` at the beginning and after each task.

    Returns
    -------
    dict of Task to record
        In the order of the tasks.
    """
    ledger.open(experiment)
    tasks = experiment.tasks()
    known = {task: finished for task in tasks if (finished := ledger.read(task)) is not None}
    missing = [task for task in tasks if task not in known]
    n_processes = 1 if experiment.is_timed else min(effective_n_jobs(n_jobs), max(1, len(missing)))
    clock = _Clock(missing, known, n_processes)
    tell = callback or (lambda progress: None)
    tell(Progress(len(known), len(tasks), clock.seconds_left()))
    work = (delayed(_run)(experiment, task, ledger) for task in missing)
    for task, finished in Parallel(n_jobs=n_processes, return_as="generator_unordered")(work):
        known[task] = finished
        clock.book(task, finished.seconds)
        tell(Progress(len(known), len(tasks), clock.seconds_left()))
    return {task: known[task].record for task in tasks}


def _run(experiment: Experiment, task: Task, ledger: Ledger) -> tuple[Task, Finished]:
    """Run a task and keep what it found."""
    start = perf_counter()
    # One thread: processes share the cores, sums their order.
    with _Interruptions() as interruptions, warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # rivals that do not converge are part of the result
        record = experiment.run(task)
    if interruptions.have_come:
        raise KeyboardInterrupt
    finished = Finished(record, perf_counter() - start)
    ledger.write(task, finished)
    return task, finished


class _Interruptions:
    """Remembers whether Ctrl-C came: a search that it cuts short returns what it has, and that may not be kept."""

    def __init__(self) -> None:
        self.have_come = False
        self.before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other can see to signals
            self.before = signal.signal(signal.SIGINT, self._come)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _come(self, *told: Any) -> None:
        self.have_come = True
        raise KeyboardInterrupt


class _Clock:
    """Tells how much time is left, from how long replicates took, or else tasks of the same kind, or else any."""

    def __init__(self, missing: list[Task], known: dict[Task, Finished], n_processes: int) -> None:
        self.n_processes = n_processes
        self.n_left: dict[tuple[Any, ...], int] = defaultdict(int)
        self.taken: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for task in missing:
            self.n_left[task.group] += 1
        for task, finished in known.items():
            self._take(task, finished.seconds)

    def book(self, task: Task, seconds: float) -> None:
        """Book a finished task."""
        self.n_left[task.group] -= 1
        self._take(task, seconds)

    def _take(self, task: Task, seconds: float) -> None:
        for like in (task.group, (task.kind,), ()):
            self.taken[like].append(seconds)

    def seconds_left(self) -> float:
        """Return an estimate; NaN if nothing is known."""
        if not any(self.n_left.values()):
            return 0.0
        return sum(n * self._usual(group) for group, n in self.n_left.items() if n) / self.n_processes

    def _usual(self, group: tuple[Any, ...]) -> float:
        known = [self.taken[like] for like in (group, group[:1], ()) if like in self.taken]
        return sum(known[0]) / len(known[0]) if known else float("nan")
