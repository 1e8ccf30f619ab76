"""Docstrings of SciPy that are not read: as it loads, it takes two hundred of them apart to add notes.

That is a tenth of the time until a command starts, for what only a person who asks for help sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from typing import Any

ADDED_TO = ("Notes", "Extended Summary")


@contextmanager
def unread_docstrings() -> Iterator[None]:
    """Let SciPy's modules that are loaded meanwhile add nothing to docstrings; what else they ask of them is done."""
    try:
        module: Any = import_module("scipy._lib._docscrape")
        read = module.FunctionDoc
    except (ImportError, AttributeError):  # a private part: where it has moved, starting takes longer, and nothing else
        yield
        return
    module.FunctionDoc = unread(read)
    try:
        yield
    finally:
        module.FunctionDoc = read


def unread(reader: Any) -> Any:
    """Return a reader of docstrings that begins to read when it is asked for more than to add a note."""

    class Unread(reader):
        def __init__(self, function: Any, *arguments: Any, **options: Any) -> None:
            self._unread: Any = (function, arguments, options)

        def __getattr__(self, name: str) -> Any:
            if "_unread" not in vars(self):
                raise AttributeError(name)
            function, arguments, options = self._unread
            del self._unread
            super().__init__(function, *arguments, **options)
            return getattr(self, name)

        def __getitem__(self, section: str) -> Any:
            return [] if "_unread" in vars(self) and section in ADDED_TO else super().__getitem__(section)

        def __str__(self) -> str:
            if "_unread" in vars(self):
                return f"\n{getdoc(self._unread[0]) or ''}"  # a line for the signature, as the reader has it
            return str(super().__str__())

    return Unread
