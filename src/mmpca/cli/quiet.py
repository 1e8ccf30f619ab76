"""Warnings that the command line has seen to itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Let a sparse matrix, which has no names, pass for the named columns that it was brought into the order of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
