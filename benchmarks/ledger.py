"""Tasks whose results are safe on disk as soon as they are finished, so that a second run goes on with the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

Numbers = dict[str, float]


class Task(Protocol):
    """What can be run and has a name of its own; tasks travel to other processes."""

    @property
    def key(self) -> str:
        """The name of its file, without the ending."""
        ...

    def run(self) -> Numbers:
        """Return its results."""
        ...


AnyTask = TypeVar("AnyTask", bound=Task)


class Ledger:
    """A folder with a file for each finished task; `revision` is that of the code that finishes them."""

    def __init__(self, folder: Path, revision: str | None = None) -> None:
        self.folder, self.revision = folder, revision

    def path(self, task: Task) -> Path:
        """Return the file of a task."""
        return self.folder / f"{task.key}.json"

    def read(self, task: Task) -> Numbers | None:
        """Return the results of a task; None if it is not finished."""
        content = self._content(task)
        return None if content is None else content["numbers"]

    def write(self, task: Task, numbers: Numbers) -> None:
        """Store the results of a task, all or nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(task)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(json.dumps({"revision": self.revision, "numbers": numbers}) + "\n", encoding="utf-8")
        os.replace(part, path)

    def n_of_other_revisions(self, tasks: Sequence[Task]) -> int:
        """Return how many of the finished tasks another state of the code has finished."""
        contents = [self._content(task) for task in tasks]
        return sum(content is not None and content["revision"] != self.revision for content in contents)

    def _content(self, task: Task) -> dict | None:
        path = self.path(task)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def run_all(tasks: Sequence[AnyTask], ledger: Ledger, *, n_jobs: int, console: Console) -> dict[AnyTask, Numbers]:
    """Run the tasks that are not finished yet in parallel processes; return the results of all."""
    missing = [task for task in tasks if ledger.read(task) is None]
    if len(missing) < len(tasks):
        n_done, n_other = len(tasks) - len(missing), ledger.n_of_other_revisions(tasks)
        console.print(
            f"{n_done} of {len(tasks)} tasks were finished before, {n_other} of them by another revision of the code; "
            f"remove {ledger.folder} to begin anew"
        )
    finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(_run)(task, ledger) for task in missing)
    for _ in track(finished, "running", total=len(missing), console=console, disable=not missing):
        pass
    return {task: ledger.read(task) for task in tasks}


def _run(task: Task, ledger: Ledger) -> None:
    ledger.write(task, task.run())
