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
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.engine import loop
from mmpca.engine.regroup import Regrouping

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
    regrouping: float  # of merging and splitting clusters between them, likewise


def timed_search(
    state: engine.State,
    *,
    seed: int,
    repeats: int,
    clock: Callable[[], float] = process_time,
    **options: Any,
) -> TimedRun:
    """Run the same greedy search several times from copies of a state; `options` are those of the search.

    An epoch counts the visits of all rows, the refreshes and the exact bound after it; the last one, which looks twice
    before it declares convergence, counts both passes.
    """
    seconds, regrouping = np.inf, np.inf
    for _ in range(repeats):
        copy, watch = engine.copy(state), _StopWatch(clock)
        with (
            patch.object(Regrouping, "improve", watch.timed(Regrouping.improve, is_epoch=False)),
            patch.object(loop, "_epoch", watch.timed(loop._epoch, is_epoch=True)),
        ):
            run = engine.search(copy, rng=np.random.default_rng(seed), **options)
        seconds, regrouping = np.minimum(seconds, watch.epochs), min(regrouping, watch.regrouping)
    return TimedRun(run, copy.labels, np.asarray(seconds), float(regrouping))


class _StopWatch:
    """Times epochs and regroupings; the epochs within a regrouping belong to that."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.epochs, self.regrouping, self.is_regrouping = clock, list[float](), 0.0, False

    def timed(self, call: Callable[..., Any], *, is_epoch: bool) -> Callable[..., Any]:
        """Return the call with its time noted."""

        def timed_call(*arguments: Any) -> Any:
            if is_epoch and self.is_regrouping:
                return call(*arguments)
            start, self.is_regrouping = self.clock(), not is_epoch
            answer = call(*arguments)
            self.is_regrouping = False
            if is_epoch:
                self.epochs.append(self.clock() - start)
            else:
                self.regrouping += self.clock() - start
            return answer

        return timed_call


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
