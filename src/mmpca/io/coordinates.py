"""Blocks of text lines "row column count", as Matrix Market and the UCI bags of words have them.

Blocks of digits go to SciPy's fast reader, under a header made for them; it ignores whatever follows a number and does
not survive binary data, so it gets nothing else. Other numbers go to NumPy's strict reader, and what that refuses is
read line by line, to name the line.
"""

from __future__ import annotations

import io
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import mmread

from mmpca.io.faults import as_counts, refusal, text_fault
from mmpca.io.streams import Block, decode

_DIGITS_AND_SPACE = b"0123456789 \t\r\n"


class Layout(NamedTuple):
    """What the header of a file promises."""

    shape: tuple[int, int]
    n_entries: int
    has_counts: bool = True  # False: places only, each counted once


class Entries(NamedTuple):
    """Places from 0 and counts, (n,) each."""

    rows: NDArray[Any]
    columns: NDArray[Any]
    counts: NDArray[np.int32]


def parse_block(path: Path, block: Block, layout: Layout) -> Entries:
    """Return the entries of a block, or refuse the file with the first line that is not one."""
    entries = _parse_digits(block.content, layout)
    if entries is None:
        entries = _parse_numbers(block.content, layout)
    return _parse_lines(path, block, layout) if entries is None else entries


def _parse_digits(content: bytes, layout: Layout) -> Entries | None:
    """Return the entries by SciPy's reader; None if the block holds anything but entries of digits."""
    n_lines = _count(content, b"\n") + (not content.endswith(b"\n"))
    n_fields = 2 + layout.has_counts
    n_separators = _count(content, b" ") + _count(content, b"\t")
    # With n fields a line on average, a line with more would leave one with fewer, which the reader refuses.
    is_plain = n_separators == (n_fields - 1) * n_lines or len(content.split()) == n_fields * n_lines
    if not is_plain or content.translate(None, _DIGITS_AND_SPACE):
        return None
    field = b"integer" if layout.has_counts else b"pattern"
    header = b"%%%%MatrixMarket matrix coordinate %b general\n%d %d %d\n" % (field, *layout.shape, n_lines)
    try:
        coo: Any = mmread(io.BytesIO(header + content))
    except (ValueError, OverflowError):
        return None
    counts = as_counts(coo.data)
    return None if counts is None else Entries(coo.row, coo.col, counts)


def _count(content: bytes, character: bytes) -> int:
    """Return how often a character occurs, several times faster than `bytes.count` where it does so often."""
    return int(np.count_nonzero(np.frombuffer(content, dtype=np.uint8) == character[0]))


def _parse_numbers(content: bytes, layout: Layout) -> Entries | None:
    """Return the entries by NumPy's reader; None if the block holds anything but entries."""
    if not content.strip():
        return _empty_entries()
    try:
        text = io.StringIO(content.decode("ascii"))
        table = np.loadtxt(text, dtype=np.float64, comments=None, ndmin=2)
    except ValueError:
        return None
    if table.shape[1] != 2 + layout.has_counts:
        return None
    places = as_counts(table[:, :2].ravel())
    counts = as_counts(table[:, 2]) if layout.has_counts else np.ones(len(table), dtype=np.int32)
    if places is None or counts is None:
        return None
    rows, columns = places.reshape(-1, 2).T
    if min(rows.min(), columns.min()) < 1 or rows.max() > layout.shape[0] or columns.max() > layout.shape[1]:
        return None
    return Entries(rows - 1, columns - 1, counts)


def _empty_entries() -> Entries:
    nothing = np.empty(0, dtype=np.int32)
    return Entries(nothing, nothing, nothing)


def _parse_lines(path: Path, block: Block, layout: Layout) -> Entries:
    """Return the entries line by line, past empty lines and comments, or refuse the first faulty line."""
    lines = decode(path, block.content, block.first_line).split("\n")
    parsed = [
        _parse_line(path, line, number, layout)
        for number, line in enumerate(lines, start=block.first_line)
        if line.strip() and not line.startswith("%")
    ]
    if not parsed:
        return _empty_entries()
    rows, columns, counts = np.array(parsed, dtype=np.int32).T
    return Entries(rows - 1, columns - 1, counts)


def _parse_line(path: Path, line: str, number: int, layout: Layout) -> tuple[int, int, int]:
    """Return row, column (from 1) and count of a line, or refuse it."""
    fields = line.split()
    n_expected = 2 + layout.has_counts
    if len(fields) != n_expected:
        what = '"row column count"' if layout.has_counts else '"row column"'
        raise refusal(
            path,
            f"expected {n_expected} numbers, {what}, but found {len(fields)} in {short_repr(line.strip())}. "
            "Correct the line, or write the file again.",
            line=number,
        )
    row, column = (
        _parse_index(path, text, number, size, what)
        for text, size, what in zip(fields[:2], layout.shape, ("row", "column"), strict=True)
    )
    if not layout.has_counts:
        return row, column, 1
    if (fault := text_fault(fields[2])) is not None:
        raise refusal(path, fault, line=number)
    return row, column, int(float(fields[2]))


def _parse_index(path: Path, text: str, number: int, size: int, what: str) -> int:
    """Return an index from 1, or refuse its line."""
    index = int(text) if text.isascii() and text.removeprefix("-").isdigit() else None
    if index is None:
        raise refusal(path, f"expected a {what} number, but found {short_repr(text)}. Correct the line.", line=number)
    if not 1 <= index <= size:
        hint = " Numbers start at 1: add 1 if yours start at 0." if index == 0 else ""
        raise refusal(
            path,
            f"{what} {index} is out of range: the header promises {size} {what}s.{hint or ' Correct line or header.'}",
            line=number,
        )
    return index
