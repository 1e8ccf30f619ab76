"""How far a long run is: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mmpca.cli import screen
from mmpca.cli.lines import Lines
from mmpca.experiments import Progress as Standing

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def watched(name: str) -> Iterator[Callable[[Standing], None]]:
    """Give a function that is told how far a run is, and shows it on standard error."""
    console = screen.err()
    if not console.is_terminal:
        lines = Lines(SECONDS_BETWEEN_LINES, begins_at_once=True)
        yield lambda now: lines.tell(_line(name, now), is_last=now.n_done == now.n_tasks)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None, left="")

        def tell(now: Standing) -> None:
            bar.update(task, total=now.n_tasks, completed=now.n_done, left=_left(now))

        yield tell


def _line(name: str, now: Standing) -> str:
    return f"{name}: {now.n_done} of {now.n_tasks} parts done" + (f", {_left(now)}" if _left(now) else "")


def _left(now: Standing) -> str:
    return "" if now.n_done == now.n_tasks else screen.time_left(now.seconds_left)
