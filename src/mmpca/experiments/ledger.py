"""A folder of finished tasks, so that a second run goes on where the first was killed.

It holds ``experiment.json``, which says to what experiment, options and code it belongs, and ``tasks`` with a file for
each finished task. Files appear complete or not at all.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple

from mmpca.errors import StoreError
from mmpca.experiments.experiment import Experiment, Record, Task
from mmpca.model.archive import write_atomically

SCHEMA = 1
NAME = "experiment.json"
PACKAGE = Path(__file__).parents[1]
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")  # whose versions may change a number
SHOWING = ("cli", "plots", "report")  # rooms that no number comes from


class Finished(NamedTuple):
    """A finished task.

    Attributes
    ----------
    record : dict
        What it found.
    seconds : float
        How long it took.
    """

    record: Record
    seconds: float


class Ledger:
    """Finished tasks of one experiment in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # other processes may have been started elsewhere

    def open(self, experiment: Experiment) -> None:
        """Make the folder, or refuse one that belongs to another experiment or to other options."""
        expected = {"schema": SCHEMA, "experiment": experiment.name, "mmpca": version("mmpca"), "code": code_hash()}
        expected |= {name: version(name) for name in LIBRARIES}
        expected |= json.loads(json.dumps(experiment.identity()))  # tuples come back as lists
        path = self.folder / NAME
        try:
            (self.folder / "tasks").mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._compare(json.loads(path.read_text(encoding="utf-8")), expected)
            else:
                _write(path, expected)
        except (OSError, ValueError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"results must go to a folder that can be written to, but {self.folder} is not: {error}. "
                "Give another folder."
            ) from error

    def _compare(self, found: Any, expected: dict[str, Any]) -> None:
        if not isinstance(found, dict):
            raise StoreError(f"{self.folder / NAME} is not that of an experiment. Give another folder.")
        for name in {**expected, **found}:
            if found.get(name) != expected.get(name):
                raise StoreError(
                    f"the folder {self.folder} holds results of another run: its {name} is {found.get(name)!r}, here "
                    f"it is {expected.get(name)!r}. Give another folder, or the code and options that it was made with."
                )

    def read(self, task: Task) -> Finished | None:
        """Return what a task found; None if it is not finished."""
        try:
            content = json.loads(self._path(task).read_text(encoding="utf-8"))
            return Finished(content["record"], content["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or not ours: it is run anew

    def write(self, task: Task, finished: Finished) -> None:
        """Keep what a task found, all or nothing."""
        _write(self._path(task), finished._asdict())

    def _path(self, task: Task) -> Path:
        return self.folder / "tasks" / f"{task.key}.json"


@cache
def code_hash(package: Path = PACKAGE) -> str:
    """Return a hash of the code that numbers come from: results of other code are not mixed with this one's."""
    paths = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    digest = hashlib.sha256()
    for path in paths:
        if path.parts[0] not in SHOWING:
            digest.update(path.as_posix().encode() + b"\0" + (package / path).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _write(path: Path, content: dict[str, Any]) -> None:
    def write(file: IO[bytes]) -> None:
        file.write((json.dumps(content) + "\n").encode())

    write_atomically(path, write)
