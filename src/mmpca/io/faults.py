"""What is wrong with a file or a value, in words: where, what was expected, what came, what to do."""

from __future__ import annotations

import re
from pathlib import Path
from reprlib import repr as short_repr

import numpy as np
from numpy.typing import NDArray

from mmpca.errors import InputFileError

LARGEST_COUNT = 2**31 - 1
EXPECTED = "expected a count (a non-negative whole number)"
MISSING = {"na", "n/a", "n.a.", "null", "none", "missing", "-", "--", ".", "?", "#n/a"}


def refusal(path: Path, message: str, *, line: int | None = None, record: int | None = None) -> InputFileError:
    """Return the error for a file; lines and records are counted from 1."""
    place = f", line {line}" if line is not None else f", record {record}" if record is not None else ""
    return InputFileError(f"{path}{place}: {message}")


def missing_extra(path: Path, *, package: str, extra: str) -> InputFileError:
    """Return the error for a file whose format needs a package that is not installed."""
    return refusal(path, f"this format is read by {package}, which is not installed: pip install 'mmpca[{extra}]'")


def as_counts(values: NDArray[np.generic]) -> NDArray[np.int32] | None:
    """Return numbers of any real type as int32, or None if one of them is not a count; values: (n,).

    Those that are int32 already are not copied.
    """
    with np.errstate(invalid="ignore"):
        counts = values.astype(np.int32, copy=False)
    if counts is values:
        return counts if counts.min(initial=0) >= 0 else None
    # NaN, infinity, fractions and numbers beyond 2**31 - 1 all come back different from the cast.
    is_sound = bool((counts == values).all()) and counts.min(initial=0) >= 0
    return counts if is_sound else None


def first_fault(values: NDArray[np.generic]) -> int:
    """Return the position of the first number that is not a count; values: (n,), at least one of them none."""
    with np.errstate(invalid="ignore"):
        counts = values.astype(np.int32)
    return int(np.argmax((counts != values) | (counts < 0)))


def number_fault(value: float) -> str | None:
    """Return why a number is not a count, and what to do; None if it is one."""
    if np.isnan(value):
        return f"{EXPECTED}, but found NaN. Write 0 where nothing was counted, or leave out rows with missing values."
    if np.isinf(value):
        return f"{EXPECTED}, but found an infinite value. Give the raw counts."
    if value < 0:
        return f"{EXPECTED}, but found {value:g}. Remove negative values, or undo a centring or scaling step."
    if value != np.floor(value):
        return f"{EXPECTED}, but found {value:g}. Give raw counts rather than normalised or log-transformed values."
    if value > LARGEST_COUNT:
        return f"{EXPECTED}, but found {value:.0f}. The largest possible count is {LARGEST_COUNT}: check the unit."
    return None


def text_fault(text: str) -> str | None:
    """Return why a field of a file is not a count, and what to do; None if it is one."""
    stripped = text.strip()
    if not stripped:
        return f"{EXPECTED}, but the field is empty. Write 0 where nothing was counted."
    try:
        value = float(stripped.replace("_", "no number"))  # Python alone reads 1_000 as a number
    except ValueError:
        return f"{EXPECTED}, but found {short_repr(stripped)}. {_remedy(stripped)}"
    return number_fault(value)


def _remedy(text: str) -> str:
    """Return what to do about a field that is no number."""
    if text.lower() in MISSING:
        return "Write 0 where nothing was counted, or leave out rows with missing values."
    if re.fullmatch(r"[-+]?\d+(,\d+)+", text):
        return "Write numbers without a comma; fractions are no counts."
    return "Correct the field, or leave out columns of text; if it is the texts that count, name their --text-column."


def check_array(path: Path, values: NDArray[np.generic], where: str) -> NDArray[np.int32]:
    """Return the values of a binary file as int32, or refuse it with the first fault; values: (n,)."""
    if values.dtype.kind not in "biuf":
        raise refusal(path, f"{EXPECTED}, but {where} holds values of type {values.dtype}. Save integer counts.")
    counts = as_counts(values)
    if counts is None:
        position = first_fault(values)
        fault = number_fault(float(values[position]))
        raise refusal(path, f"{fault} It is stored value {position + 1} of {where}.")
    return counts
