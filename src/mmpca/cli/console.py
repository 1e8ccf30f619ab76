"""Output, exit codes and warnings: results go to standard output, everything else to standard error."""

from __future__ import annotations

import atexit
import errno
import functools
import json
import logging
import math
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from mmpca.cli import INTERRUPTED, exit_on_interrupt

ERROR = 1  # typer itself exits with 2 after wrong usage

# Errors of this package are ValueErrors; the others come from the system and from missing optional libraries.
_EXPECTED_ERRORS = (ValueError, OSError, ImportError, MemoryError, OverflowError)
_ADVICE: dict[int | None, str] = {
    errno.ENOENT: "no such file. Check the path and the folder it is relative to",
    errno.EISDIR: "expected a file, but this is a folder. Give a file in it",
    errno.EACCES: "permission denied. Check who may read and write it",
}


# --- output -----------------------------------------------------------------------------------------------------


# Everything that can move the cursor, change colors or reorder a line: C0 (but not tab and newline), DEL, C1, line
# separators, bidirectional controls; and halves of surrogate pairs, which no terminal can be sent.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def literal(text: str) -> str:
    r"""Return a text without control characters, so that a terminal can only show it.

    Examples
    --------
    >>> literal("\x1b[2Joak")
    '[2Joak'
    """
    return _CONTROLS.sub("", text)


class LiteralConsole(Console):
    """A console that shows every text literally: no markup, no emoji codes, no control characters.

    Names come from files that anybody may have written. They need no escaping here: styles come from `rich.text.Text`
    and `style=`, never from markup.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything printed; only rich's own control segments keep control characters."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=literal(segment.text))


def out() -> Console:
    """Return the console for results; a new one each time, because standard output may have been redirected."""
    return LiteralConsole()


def err() -> Console:
    """Return the console for notes, progress and errors."""
    return LiteralConsole(stderr=True)


def message(head: str, text: str, style: str) -> None:
    """Print a message to standard error; wrapped on a terminal, on one line in a pipe."""
    console = err()
    console.print(Text.assemble((f"{head}:", style), " ", text), highlight=False, soft_wrap=not console.is_terminal)


def notes(texts: Iterable[str]) -> None:
    """Print notes to standard error."""
    for text in texts:
        message("note", text, "bold yellow")


def line(text: str) -> None:
    """Print one unwrapped line to standard output."""
    out().print(text, highlight=False, soft_wrap=True)


def written(files: dict[str, Path | None]) -> None:
    """Print where results were written, given the file of each result."""
    for name, path in files.items():
        if path is not None:
            line(f"{name} written to {path}")


def json_value(value: Any) -> Any:
    """Return a value for JSON: named tuples as objects, and None for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: json_value(one) for name, one in value.items()}
    return [json_value(one) for one in value] if isinstance(value, list | tuple) else value


def print_json(document: Any) -> None:
    """Print a JSON document to standard output; paths become strings, and control characters are escaped."""
    text = json.dumps(json_value(document), indent=2, ensure_ascii=False, default=str)
    line(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def duration(seconds: float) -> str:
    """Return a rounded duration, such as "40 s", "12 min" or "1.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# --- exit codes -------------------------------------------------------------------------------------------------


def with_exit_codes(command: Callable[..., None], package: str) -> Callable[..., None]:
    """Wrap a command so that expected errors and Ctrl-C end it with a message and an exit code.

    The package is imported before the command starts, while Ctrl-C still ends the process directly.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        """Run the command, and translate its errors."""
        try:
            import_module(package)
            raise_on_interrupt()
            command(*arguments, **options)
        except BrokenPipeError:
            raise  # the reader of our output has gone: nobody is left to read a message
        except _EXPECTED_ERRORS as error:
            message("error", _description(error), "bold red")
            raise typer.Exit(ERROR) from None
        except KeyboardInterrupt as interrupt:
            message("interrupted", str(interrupt) or "Nothing was written.", "bold red")
            raise typer.Exit(INTERRUPTED) from None

    return run


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again if `mmpca.cli.main` changed that, and ignore it during shutdown."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and signal.getsignal(signal.SIGINT) is exit_on_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _description(error: BaseException) -> str:
    """Return the text of an error; system errors name the file."""
    if isinstance(error, MemoryError):
        return "Not enough memory. mmpca inspect estimates what a fit needs."
    if isinstance(error, OSError) and error.strerror:
        is_standard = error.errno is not None and error.strerror == os.strerror(error.errno)
        text = f"{(is_standard and _ADVICE.get(error.errno)) or error.strerror}."
        # Every writer names its file, so a full disk without a file name concerns redirected output.
        name = error.filename or ("standard output or the temporary folder" if error.errno == errno.ENOSPC else None)
        return f"{name}: {text}" if name else text
    return str(error) or type(error).__name__


# --- warnings ---------------------------------------------------------------------------------------------------


@contextmanager
def collected_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect all warnings in a list instead of printing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def has_warning(caught: Iterable[warnings.WarningMessage], category: type[Warning]) -> bool:
    """Return True if a warning of the category was collected."""
    return any(issubclass(warning.category, category) for warning in caught)


def warning_texts(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the distinct texts of collected warnings."""
    return list(dict.fromkeys(str(warning.message) for warning in caught))


@contextmanager
def ignored_name_warnings() -> Iterator[None]:
    """Ignore scikit-learn's warning that a sparse matrix has no feature names; its columns are already in order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


@contextmanager
def muted_dask() -> Iterator[None]:
    """Mute the log of Dask's client, which would print a traceback when its scheduler is gone."""
    logger = logging.getLogger("distributed.client")

    logger.addFilter(_drop)  # a level would not last: Dask sets it on import
    try:
        yield
    finally:
        logger.removeFilter(_drop)


def _drop(record: logging.LogRecord) -> bool:
    return False
