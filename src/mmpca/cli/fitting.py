"""A fit that is watched: a bar on a terminal, plain lines in a pipe, and warnings as notes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mmpca import engine
from mmpca.cli.lines import Lines
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning
from mmpca.model.starts import Callback


class Fit(NamedTuple):
    """How a fit went; its notes leave out the overdispersion, which commands tell in the words of their options."""

    seconds: float
    is_interrupted: bool
    notes: list[str]


def watched_fit(fit: Callable[..., object], console: Console) -> Fit:
    """Call what fits a model with a callback, telling the console how it goes; Ctrl-C keeps the best that there is."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, _watch(console) as watch:
        warnings.simplefilter("always")
        fit(callback=watch)
    seconds = time.perf_counter() - started
    is_interrupted = any(issubclass(warning.category, InterruptedSearchWarning) for warning in caught)
    told = (str(warning.message) for warning in caught if not issubclass(warning.category, OverdispersionWarning))
    return Fit(seconds, is_interrupted, list(dict.fromkeys(told)))


@contextmanager
def _watch(console: Console) -> Iterator[Callback]:
    """Give a function that is told how far the search is, and shows it."""
    if console.is_terminal:
        with _bar(console) as tell:
            yield tell
    else:
        lines = Lines()
        yield lambda number, now: lines.tell(
            f"start {number + 1}, epoch {now.epoch}: {now.n_done} of {now.n_rows} rows, bound {now.bound:.1f}"
        )


@contextmanager
def _bar(console: Console) -> Iterator[Callback]:
    """Show the search's progress as a bar: of the rows that the present epoch has visited."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("fitting", total=None, state="learning topics")

        def tell(number: int, now: engine.Progress) -> None:
            state = f"start {number + 1}, epoch {now.epoch}, {now.n_moves:,} moves, bound {now.bound:,.1f}"
            # One row more than there are: a bar that has been full once would stop its clock.
            progress.update(task, total=now.n_rows + 1, completed=now.n_done, state=state)

        yield tell
