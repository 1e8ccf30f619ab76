"""Shared by all benchmarks: rows of the result table with their requirements, timing, and fresh processes.

Single-threaded code is timed in CPU seconds, which other jobs on the machine affect less than wall time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import mmpca
from mmpca.monitor import Progress

Array = NDArray[np.float64]
Prepared = TypeVar("Prepared")

CHILD = Path(__file__).with_name("child.py")
RESULTS = Path(__file__).with_name("results")
WIDTH = 160  # of tables if the output is not a terminal


# --- results ----------------------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """A required range, both ends included."""

    at_least: float = -np.inf
    at_most: float = np.inf

    def __str__(self) -> str:
        if self.at_most == np.inf:
            return f">= {self.at_least:g}"
        if self.at_least == -np.inf:
            return f"<= {self.at_most:g}"
        return f"{self.at_least:g} to {self.at_most:g}"

    def hold(self, value: float) -> bool:
        """Return True if a value is within the limits; NaN is not."""
        return bool(self.at_least <= value <= self.at_most)


class Row(NamedTuple):
    """One row of the result table."""

    benchmark: str
    measure: str
    value: float
    required: Limits | None = None  # None: reported only
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the requirement holds; None without one."""
        return None if self.required is None else self.required.hold(self.value)


def result_table(rows: Sequence[Row], title: str) -> Table:
    """Return results as a table for the terminal."""
    table = Table(title=title)
    table.add_column("benchmark")
    table.add_column("measure", overflow="fold", ratio=3)
    for name in ("value", "required"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds")
    table.add_column("note", overflow="fold", ratio=2)
    for row in rows:
        required = "" if row.required is None else str(row.required)
        table.add_row(row.benchmark, row.measure, f"{row.value:.3g}", required, check_mark(row.holds), row.note)
    return table


def check_mark(holds: bool | None) -> str:
    """Return a colored yes or no, empty without a requirement."""
    return {None: "", True: "[green]yes[/]", False: "[bold red]no[/]"}[holds]


def save_results(rows: Sequence[Row], **settings: object) -> Path:
    """Write results, settings and versions to a new JSON file; return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bench-{datetime.now():%Y%m%d-%H%M%S}.json"
    content = {
        **settings,
        "revision": revision(),
        "versions": {name: version(name) for name in ("mmpca", "numpy", "scipy", "scikit-learn", "numba")},
        "rows": [
            row._asdict() | {"required": None if row.required is None else str(row.required), "holds": row.holds}
            for row in rows
        ],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def revision() -> str | None:
    """Return the commit of the installed package; None outside of a checkout."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=Path(mmpca.__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


# --- timing -----------------------------------------------------------------------------------------------------


def best_seconds(call: Callable[[Prepared], object], prepare: Callable[[], Prepared], repeats: int) -> float:
    """Return the shortest time of `call(prepare())`; preparing is not timed."""
    seconds = []
    for _ in range(repeats):
        prepared = prepare()
        start = process_time()
        call(prepared)
        seconds.append(process_time() - start)
    return min(seconds)


def best_of_each(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the shortest time of each call; the calls take turns, so a slow phase of the machine affects them all."""
    shortest = [np.inf] * len(calls)
    for _ in range(repeats):
        for number, call in enumerate(calls):
            start = process_time()
            call()
            shortest[number] = min(shortest[number], process_time() - start)
    return shortest


class EpochTimer:
    """A callback that times the epochs of a search; call `stop` when the search has returned.

    An epoch ends with the last report of its blocks. The bound and the refreshes after it are counted with the next
    epoch, or with the last one when the search returns.
    """

    def __init__(self, clock: Callable[[], float] = process_time) -> None:
        self._clock, self._began, self._ends = clock, clock(), dict[int, float]()

    def __call__(self, progress: Progress) -> None:
        """Record the time of a report of an epoch."""
        if progress.epoch:
            self._ends[progress.epoch] = self._clock()

    def stop(self) -> Array:
        """Return the seconds of each epoch."""
        if not self._ends:
            return np.zeros(0)
        self._ends[max(self._ends)] = self._clock()
        return np.diff([self._began, *(end for _, end in sorted(self._ends.items()))])


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the exponent with which times grow, fitted by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


# --- fresh processes --------------------------------------------------------------------------------------------


def in_fresh_process(task: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a task of `child.py` in its own Python process; return the numbers it prints."""
    done = subprocess.run(
        [sys.executable, str(CHILD), task, *arguments],
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    numbers: dict[str, Any] = json.loads(done.stdout)
    return numbers
