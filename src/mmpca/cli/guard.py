"""Exit codes, and no traceback for what is the input's fault.

0 fine; 1 the input or the result was refused; 2 the command was used in a wrong way; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import typer

from mmpca.cli.imports import spared_imports
from mmpca.cli.interrupts import raise_interrupts

FINE, REFUSED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

Command = TypeVar("Command", bound=Callable[..., Any])

# Refusals of this package are ValueErrors; the others come from the system and from libraries that are not installed.
_REFUSALS = (ValueError, OSError, ImportError, MemoryError, OverflowError)

# Of the system's errors whose own words name no remedy.
_WORDS: dict[int | None, str] = {
    errno.ENOENT: "there is no such file. Check the path, and the folder that it is relative to",
    errno.EISDIR: "expected a file, but this is a folder. Give the file in it",
    errno.EACCES: "this is not permitted. Check who may read and write it",
}


def guarded(command: Command) -> Command:
    """Let a command end with a message and an exit code where its input is refused or Ctrl-C comes."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            with spared_imports():
                _load(command)
            raise_interrupts()
            return command(*arguments, **options)
        except BrokenPipeError:
            raise  # the reader of the output has left: nobody to tell
        except _REFUSALS as error:
            _say("error", _message(error))
            raise typer.Exit(REFUSED) from None
        except KeyboardInterrupt as interrupt:
            _say("interrupted", str(interrupt) or "Nothing was written.")
            raise typer.Exit(INTERRUPTED) from None

    return run  # type: ignore[return-value]


def _load(command: Callable[..., Any]) -> None:
    """Import what a command does, which is in the file of its name, while Ctrl-C still ends the process at once."""
    if command.__module__.startswith("mmpca.cli.commands."):
        import_module(f"mmpca.cli.{command.__name__}")


def _message(error: BaseException) -> str:
    """Return what to tell of an error; the system's name the file."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. mmpca inspect tells what a fit needs."
    if isinstance(error, OSError) and error.strerror:
        is_usual = error.errno is not None and error.strerror == os.strerror(error.errno)
        told = f"{(is_usual and _WORDS.get(error.errno)) or error.strerror}."
        return f"{error.filename}: {told}" if error.filename else told
    return str(error) or type(error).__name__


def _say(head: str, message: str) -> None:
    from mmpca.cli.screen import say

    say(head, message, "bold red")
