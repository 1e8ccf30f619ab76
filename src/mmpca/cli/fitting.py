"""A fit that is watched: a bar on a terminal, plain lines in a pipe, and warnings as notes."""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any, NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mmpca import engine
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning
from mmpca.model import MMPCA

SECONDS_BETWEEN_LINES = 5.0


class Fit(NamedTuple):
    """How a fit went; its notes leave out the overdispersion, which commands tell in the words of their options."""

    seconds: float
    is_interrupted: bool
    notes: list[str]


def watched_fit(model: MMPCA, X: Any, console: Console) -> Fit:
    """Fit the model, in place, telling the console how it goes; Ctrl-C keeps the best state that there is."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, _watch(console) as watch:
        warnings.simplefilter("always")
        model.fit(X, callback=watch)
    seconds = time.perf_counter() - started
    is_interrupted = any(issubclass(warning.category, InterruptedSearchWarning) for warning in caught)
    told = (str(warning.message) for warning in caught if not issubclass(warning.category, OverdispersionWarning))
    return Fit(seconds, is_interrupted, list(dict.fromkeys(told)))


def _watch(console: Console) -> _Bar | _Lines:
    return _Bar(console) if console.is_terminal else _Lines(console)


class _Bar:
    """The search's progress as a bar: of the rows that the present epoch has visited."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=console, transient=True)
        self.task = self.progress.add_task("fitting", total=None, state="learning topics")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def __call__(self, number: int, now: engine.Progress) -> None:
        state = f"start {number + 1}, epoch {now.epoch}, {now.n_moves:,} moves, bound {now.bound:,.1f}"
        # One row more than there are: a bar that has been full once would stop its clock.
        self.progress.update(self.task, total=now.n_rows + 1, completed=now.n_done, state=state)


class _Lines:
    """The search's progress as a line every few seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.next_line = time.monotonic() + SECONDS_BETWEEN_LINES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, number: int, now: engine.Progress) -> None:
        if time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            line = f"start {number + 1}, epoch {now.epoch}: {now.n_done} of {now.n_rows} rows, bound {now.bound:.1f}"
            self.console.print(line, highlight=False)
