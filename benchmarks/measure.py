"""What every benchmark needs: a row of the table, the shortest of several times, timed epochs, a fresh process.

What runs on one thread is timed in seconds of the processor, which other jobs on the machine do not lengthen as they
do those of the clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmpca import engine

Array = NDArray[np.float64]
Prepared = TypeVar("Prepared")

CHILD = Path(__file__).with_name("child.py")


class Limits(NamedTuple):
    """What a value is required to be, both ends included."""

    at_least: float = -np.inf
    at_most: float = np.inf

    def __str__(self) -> str:
        if self.at_most == np.inf:
            return f">= {self.at_least:g}"
        if self.at_least == -np.inf:
            return f"<= {self.at_most:g}"
        return f"{self.at_least:g} to {self.at_most:g}"

    def hold(self, value: float) -> bool:
        """Tell whether a value is within the limits; NaN is not."""
        return bool(self.at_least <= value <= self.at_most)


class Row(NamedTuple):
    """One line of the table."""

    benchmark: str
    measure: str
    value: float
    required: Limits | None = None  # None: reported only
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the requirement holds; None without one."""
        return None if self.required is None else self.required.hold(self.value)


def best_seconds(call: Callable[[Prepared], object], prepare: Callable[[], Prepared], repeats: int) -> float:
    """Return the shortest time of `call(prepare())` in several repeats; preparing is not timed."""
    seconds = []
    for _ in range(repeats):
        prepared = prepare()
        start = process_time()
        call(prepared)
        seconds.append(process_time() - start)
    return min(seconds)


def best_of_each(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the shortest time of each call; they take turns, so that a slow spell of the machine meets all of them."""
    shortest = [np.inf] * len(calls)
    for _ in range(repeats):
        for number, call in enumerate(calls):
            start = process_time()
            call()
            shortest[number] = min(shortest[number], process_time() - start)
    return shortest


class TimedRun(NamedTuple):
    """A search with the time of each of its epochs."""

    run: engine.Run
    labels: NDArray[np.int32]
    seconds: Array  # of each epoch, the shortest of several repeats


def timed_search(
    state: engine.State,
    *,
    seed: int,
    repeats: int,
    clock: Callable[[], float] = process_time,
    **options: Any,
) -> TimedRun:
    """Run the same greedy search several times from copies of a state; `options` are those of the search.

    An epoch ends at the callback of its last block, so that it counts the bound of the epoch before, and not its own;
    the last one, which looks twice before it declares convergence, counts both passes.
    """
    shortest, run, labels = None, None, None
    for _ in range(repeats):
        copy, ends = engine.copy(state), dict[int, float]()
        start = clock()
        run = engine.search(
            copy,
            rng=np.random.default_rng(seed),
            callback=lambda progress, ends=ends: ends.update({progress.epoch: clock()}),
            **options,
        )
        seconds = np.diff([start, *ends.values()])
        shortest = seconds if shortest is None else np.minimum(shortest, seconds)
        labels = copy.labels
    return TimedRun(run, labels, shortest)


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the exponent with which times grow, fitted by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def in_fresh_process(task: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, float]:
    """Run a task of `child.py` in a Python process of its own; return the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, str(CHILD), task, *arguments],
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers
