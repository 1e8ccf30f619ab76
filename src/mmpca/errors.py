"""Exceptions and warnings that a caller may want to catch.

Errors carry their location as attributes, so that callers need not parse messages.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path


class CountsError(ValueError):
    """The input is not a valid count matrix.

    Attributes
    ----------
    row, column : int or None
        Position of the offending value, counted from 0; None if the error concerns the whole row, column or matrix.
    """

    def __init__(self, message: str, *, row: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.row, self.column = row, column


class _FileError(ValueError):
    """An error about a file, or about one of its lines."""

    def __init__(self, message: str, *, path: str | os.PathLike[str] | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.path, self.line = None if path is None else Path(path), line


class InputFileError(_FileError):
    """A file cannot be read in the expected format.

    Attributes
    ----------
    path : Path or None
        The file.
    line : int or None
        The offending line, counted from 1.
    """


class ModelFileError(_FileError):
    """A file is not a model that this version of mmpca can read.

    Attributes
    ----------
    path : Path or None
        The file.
    """


class StoreError(_FileError):
    """A checkpoint or a folder of results is damaged, cannot be written, or belongs to another computation.

    Attributes
    ----------
    path : Path or None
        The file or folder.
    """


class ClusterError(ConnectionError):
    """Workers of a Dask cluster were lost, along with data that only they held."""


class InterruptedSearchWarning(UserWarning):
    """The search was interrupted; the model holds the best state found so far."""


class StoreWarning(UserWarning):
    """A finished part of a computation cannot be used, and is recomputed."""


class SuspiciousCountsWarning(UserWarning):
    """A column or a row looks like an identifier, another measurement or a total rather than counts.

    A fit uses it like any other. Remove it from the data, or ignore this warning if it does hold counts.
    """


class UnsegmentedTextWarning(UserWarning):
    """Texts in Chinese or Japanese are not divided into words, so whole phrases are counted as words."""


class OverdispersionWarning(UserWarning):
    """Counts vary much more within clusters than the model expects."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the first caller outside mmpca and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mmpca", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
