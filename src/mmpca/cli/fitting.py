"""A fit that is watched: a bar on a terminal, plain lines in a pipe, and warnings as notes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from mmpca.cli import screen
from mmpca.cli.lines import Lines
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning
from mmpca.stages import Listener, Stage

FULL_BAR = 1.0 + 1e-9  # more than there is: a bar that has been full once would stop its clock


class Fit(NamedTuple):
    """How a fit went; its notes leave out the overdispersion, which commands tell in the words of their options."""

    seconds: float
    is_interrupted: bool
    notes: list[str]


def watched_fit(fit: Callable[..., object], console: Console) -> Fit:
    """Call what fits a model with a listener, telling the console how it goes; Ctrl-C keeps the best that there is."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, watch(console) as tell:
        warnings.simplefilter("always")
        fit(on_stage=tell)
    seconds = time.perf_counter() - started
    is_interrupted = any(issubclass(warning.category, InterruptedSearchWarning) for warning in caught)
    told = (str(warning.message) for warning in caught if not issubclass(warning.category, OverdispersionWarning))
    return Fit(seconds, is_interrupted, list(dict.fromkeys(told)))


@contextmanager
def watch(console: Console) -> Iterator[Listener]:
    """Give a function that is told how far the fit is, and shows it."""
    if console.is_terminal:
        with _bar(console) as tell:
            yield tell
    else:
        yield StageLines()


class StageLines:
    """Says at times how far the fit is; of a fit that has lasted for a while, each new stage as it begins.

    That may take long, and where rows are on a cluster there may be nothing to tell before it ends.
    """

    def __init__(self) -> None:
        self.lines, self.began, self.name = Lines(), monotonic(), ""

    def __call__(self, now: Stage) -> None:
        """Print a line if it is time for one."""
        if now.name == "done":
            return
        if now.name != self.name and monotonic() - self.began >= self.lines.seconds:
            self.lines.hurry()
        self.name = now.name
        left = screen.time_left(now.seconds_left)
        self.lines.tell(f"{now.text}; {now.share:.0%} done, {left}".replace("%", " %").removesuffix(", "))


@contextmanager
def _bar(console: Console) -> Iterator[Listener]:
    """Show a bar of the whole fit, what it does, and the time that it has taken and will take."""
    columns = (
        BarColumn(bar_width=16, table_column=Column(min_width=16)),
        TextColumn("{task.percentage:>3.0f} %", table_column=Column(min_width=5)),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.fields[left]}", table_column=Column(min_width=16)),
        # Where the terminal is narrow, the end of this is cut off.
        TextColumn("{task.description}", style="dim", table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=FULL_BAR, left="")

        def tell(now: Stage) -> None:
            progress.update(task, description=now.text, completed=now.share, left=screen.time_left(now.seconds_left))

        yield tell
