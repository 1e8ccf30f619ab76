"""Run many tasks in parallel and store the finished ones, so that a second run continues where the first stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

from measure import revision
from mmpca.store import Store

Numbers = dict[str, float]


class Task(Protocol):
    """Something that can be run in another process and has a unique name."""

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        ...

    def run(self) -> Numbers:
        """Return its results."""
        ...


AnyTask = TypeVar("AnyTask", bound=Task)


def run_all(tasks: Sequence[AnyTask], store: Store, *, n_jobs: int, console: Console) -> dict[AnyTask, Numbers]:
    """Run the tasks that are not in the store yet in parallel processes; return the results of all.

    A result also records the revision of the code that computed it. Results of another revision are used, but counted
    in a message.
    """
    store.open({})
    finished = [task for task in tasks if store.read(task.key) is not None]
    missing = [task for task in tasks if task not in finished]
    if finished:
        n_other = sum(str(store.read(task.key)["revision"]) != str(revision()) for task in finished)
        console.print(
            f"{len(finished)} of {len(tasks)} tasks are already finished, {n_other} of them by another revision of the "
            f"code; delete {store.folder} to run them again"
        )
    running = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(_run)(task, store) for task in missing)
    for _ in track(running, "running", total=len(missing), console=console, disable=not missing):
        pass
    return {task: numbers_of(task, store) for task in tasks}


def numbers_of(task: Task, store: Store) -> Numbers:
    """Return the results of a finished task."""
    return {name: float(value) for name, value in store.read(task.key).items() if name != "revision"}


def _run(task: Task, store: Store) -> None:
    store.write(task.key, {**task.run(), "revision": str(revision())})
