"""The progress display of all long commands: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console

from mmpca.cli.console import duration, err

if TYPE_CHECKING:
    from mmpca.monitor import Callback, Progress


@contextmanager
def progress_display(console: Console | None = None) -> Iterator[Callback]:
    """Provide a callback that shows the progress it receives, by default on standard error."""
    console = console or err()
    if console.is_terminal:
        with _bar(console) as show:
            yield show
    else:
        yield LineProgress(console)


class LineProgress:
    """Prints a line per stage, and one every `interval` seconds within a stage.

    A stage that begins less than `stage_interval` seconds after the last line is not shown. `clock` returns seconds.
    """

    def __init__(
        self,
        console: Console,
        *,
        interval: float = 5.0,
        stage_interval: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.console, self.interval, self.stage_interval, self.clock = console, interval, stage_interval, clock
        self.stage, self.last_line = "", -math.inf

    def __call__(self, progress: Progress) -> None:
        """Print a line if one is due."""
        elapsed = self.clock() - self.last_line
        if progress.stage == "done" or elapsed < (
            self.interval if progress.stage == self.stage else self.stage_interval
        ):
            return
        self.stage, self.last_line = progress.stage, self.clock()
        percent = "" if progress.share is None else f"{progress.share:.0%}"
        details = ", ".join(filter(None, [percent, _time_left(progress)]))
        text = f"{progress.text} ({details})" if details else progress.text
        self.console.print(text, highlight=False, soft_wrap=True)


@contextmanager
def _bar(console: Console) -> Iterator[Callback]:
    """Show a bar of the running stage, the time since the beginning and the time left in the stage."""
    from rich import progress as bars
    from rich.table import Column

    columns = (
        bars.BarColumn(bar_width=16, table_column=Column(min_width=16)),
        bars.TextColumn("{task.fields[percent]:>4}", table_column=Column(min_width=4)),
        bars.TimeElapsedColumn(table_column=Column(min_width=7)),
        bars.TextColumn("{task.fields[left]}", table_column=Column(min_width=16)),
        # Last, because a narrow terminal cuts off the end.
        bars.TextColumn("{task.description}", style="dim", markup=False, table_column=Column(no_wrap=True)),
    )
    with bars.Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("", total=None, percent="", left="")

        def show(progress: Progress) -> None:
            """Update the bar."""
            share = progress.share
            # The total is a little more than 1: a task that has once been complete stops its clock.
            display.tasks[0].total = None if share is None else 1.0 + 1e-9
            display.update(
                task,
                description=progress.text,
                completed=share or 0.0,
                percent="" if share is None else f"{share:.0%}",
                left=_time_left(progress),
            )

        yield show


def _time_left(progress: Progress) -> str:
    return "" if progress.seconds_left is None else f"about {duration(progress.seconds_left)} left"
