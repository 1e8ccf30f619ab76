"""Where to print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text


def out() -> Console:
    """Return the console of results; made anew each time, because tests and pipes exchange standard output."""
    return Console()


def err() -> Console:
    """Return the console of notes, progress and errors."""
    return Console(stderr=True)


def say(head: str, message: str, style: str) -> None:
    """Print a remark with its head on standard error; folded on a terminal, on one line in a pipe."""
    console = err()
    console.print(Text.assemble((f"{head}:", style), " ", message), highlight=False, soft_wrap=not console.is_terminal)


def note(message: str) -> None:
    """Print a remark on standard error."""
    say("note", message, "bold yellow")


def notes(messages: Iterable[str]) -> None:
    """Print remarks on standard error."""
    for message in messages:
        note(message)


def print_json(document: Any) -> None:
    """Print a document for machines on standard output: plain, on one line for each entry."""
    out().print(json.dumps(document, indent=2, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True)


def counted(number: int, what: str) -> str:
    """Return so many of something: "1 row", "2,000 rows"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def megabytes(number: float) -> str:
    """Return a size in words."""
    return f"{number / 1000:,.1f} GB" if number >= 1000 else f"{number:,.0f} MB" if number >= 1 else "under 1 MB"


def time_left(seconds: float | None) -> str:
    """Return how long something will take in words, nothing where that is not known: None or NaN."""
    return "" if seconds is None or math.isnan(seconds) else f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Return a time in words, no more exact than it is known."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
