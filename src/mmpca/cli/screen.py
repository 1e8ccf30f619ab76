"""Where to print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console


def out() -> Console:
    """Return the console of results; made anew each time, because tests and pipes exchange standard output."""
    return Console()


def err() -> Console:
    """Return the console of notes, progress and errors."""
    return Console(stderr=True)


def note(message: str) -> None:
    """Print a remark on standard error."""
    console = err()
    console.print("[bold yellow]note:[/]", end=" ", highlight=False)
    console.print(message, markup=False, highlight=False, soft_wrap=True)


def notes(messages: Iterable[str]) -> None:
    """Print remarks on standard error."""
    for message in messages:
        note(message)


def print_json(document: Any) -> None:
    """Print a document for machines on standard output: plain, on one line for each entry."""
    out().print(json.dumps(document, indent=2, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True)


def megabytes(number: float) -> str:
    """Return a size in words."""
    return f"{number / 1000:,.1f} GB" if number >= 1000 else f"{number:,.0f} MB" if number >= 1 else "under 1 MB"


def duration(seconds: float) -> str:
    """Return a time in words, no more exact than it is known."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
