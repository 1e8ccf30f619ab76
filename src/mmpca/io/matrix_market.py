"""Matrix Market files and UCI bags of words, in blocks: lists of places and counts under a header of sizes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as short_repr
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.io.builder import CountsBuilder
from mmpca.io.coordinates import Entries, Layout, parse_block
from mmpca.io.faults import LARGEST_COUNT, as_counts, refusal, text_fault
from mmpca.io.names import SideFiles, named_table, side_files
from mmpca.io.streams import Block, blocks, decode, open_stream
from mmpca.io.table import CountTable, Request

_BANNER = "%%MatrixMarket matrix coordinate integer general"
_FIELDS = ("integer", "unsigned-integer", "real", "double", "pattern")


class _Header(NamedTuple):
    """What stands before the entries."""

    is_dense: bool
    is_symmetric: bool
    layout: Layout
    n_lines: int  # of the header itself


def read_matrix_market(request: Request) -> CountTable:
    """Read a Matrix Market file with the names beside it."""
    with open_stream(request.path) as stream:
        header = _read_header(request.path, stream)
        sides = side_files(request, header.layout.shape)
        builder = CountsBuilder(sides.transposed)
        for entries in _entries(request.path, stream, header):
            builder.add(*entries)
    return _finish(request, builder, header.layout, sides)


def read_uci(request: Request) -> CountTable:
    """Read a UCI bag of words: three lines with the numbers of documents, words and entries, then the entries."""
    with open_stream(request.path) as stream:
        sizes = [_read_size(request.path, stream, line) for line in (1, 2, 3)]
        layout = Layout((sizes[0], sizes[1]), sizes[2])
        _check_sizes(request.path, layout, line=1)
        sides = side_files(request, layout.shape)
        builder = CountsBuilder(sides.transposed)
        for entries in _coordinates(request.path, stream, layout, first_line=4):
            builder.add(*entries)
    return _finish(request, builder, layout, sides)


def _finish(request: Request, builder: CountsBuilder, layout: Layout, sides: SideFiles) -> CountTable:
    X = builder.finish(request.path, layout.shape)
    return named_table(request.path, X, sides, builder.notes())


# --- the header -----------------------------------------------------------------------------------


def _read_header(path: Path, stream: IO[bytes]) -> _Header:
    """Read banner, comments and the line of sizes."""
    kind, field, symmetry = _read_banner(path, stream)
    number = 2
    while (line := decode(path, stream.readline(), number)) and (not line.strip() or line.startswith("%")):
        number += 1
    if not line:
        raise refusal(path, "the file ends before the line of sizes. Write or copy it again.", line=number)
    sizes = _whole_numbers(line)
    is_dense = kind == "array"
    if len(sizes) != (2 if is_dense else 3):
        expected = '"rows columns"' if is_dense else '"rows columns entries"'
        raise refusal(
            path,
            f"expected the sizes, {expected}, but found {short_repr(line.strip())}. Correct the header.",
            line=number,
        )
    shape, is_symmetric = (sizes[0], sizes[1]), symmetry == "symmetric"
    if is_symmetric and shape[0] != shape[1]:
        raise refusal(path, f"a symmetric matrix must be square, not {shape}. Correct the header.", line=number)
    n_values = shape[0] * (shape[0] + 1) // 2 if is_symmetric else shape[0] * shape[1]
    layout = Layout(shape, n_values if is_dense else sizes[2], field != "pattern")
    _check_sizes(path, layout, line=number)
    return _Header(is_dense, is_symmetric, layout, number)


def _read_banner(path: Path, stream: IO[bytes]) -> tuple[str, str, str]:
    """Return format, field and symmetry."""
    line = decode(path, stream.readline(1024))
    words = line.lower().split()
    if not words or words[0] != "%%matrixmarket" or len(words) != 5 or words[1] != "matrix":
        raise refusal(
            path,
            f'expected the first line of a Matrix Market file, such as "{_BANNER}", but found '
            f"{short_repr(line.strip())}. Check the format, or mend the header.",
            line=1,
        )
    kind, field, symmetry = words[2:]
    for word, allowed in (
        (kind, ("coordinate", "array")),
        (field, _FIELDS),
        (symmetry, ("general", "symmetric")),
    ):
        if word not in allowed:
            raise refusal(
                path,
                f"a matrix of counts cannot be {word!r}: expected one of {', '.join(allowed)}. Convert it.",
                line=1,
            )
    return kind, field, symmetry


def _read_size(path: Path, stream: IO[bytes], number: int) -> int:
    """Return the number that stands alone on a line of the header of a bag of words."""
    line = decode(path, stream.readline(), number)
    sizes = _whole_numbers(line)
    if len(sizes) != 1:
        what = ("documents", "words", "entries")[number - 1]
        raise refusal(
            path,
            f"expected the number of {what} alone on the line, but found {short_repr(line.strip())}. The header of "
            "a UCI bag of words has three lines: documents, words, entries.",
            line=number,
        )
    return sizes[0]


def _whole_numbers(line: str) -> list[int]:
    """Return the numbers of a line, an empty list if it holds anything else."""
    words = line.split()
    return [int(word) for word in words] if all(word.isascii() and word.isdigit() for word in words) else []


def _check_sizes(path: Path, layout: Layout, line: int) -> None:
    """Refuse sizes that cannot be, before memory is taken for them."""
    for size, what in zip(layout.shape, ("row", "column"), strict=True):
        if size == 0:
            raise refusal(path, f"the header promises 0 {what}s. A count matrix has at least one.", line=line)
        # Most of such rows would be empty: a mistake or an attack, and gigabytes for the row pointers alone.
        if size > min(LARGEST_COUNT, 10**6 + 100 * layout.n_entries):
            raise refusal(
                path, f"the header promises {size} {what}s for {layout.n_entries} entries. Correct it.", line=line
            )


# --- the entries ----------------------------------------------------------------------------------


def _entries(path: Path, stream: IO[bytes], header: _Header) -> Iterator[Entries]:
    """Yield the entries of a Matrix Market file, those that symmetry implies included."""
    read = _dense if header.is_dense else _coordinates
    for entries in read(path, stream, header.layout, header.n_lines + 1):
        yield entries
        if header.is_symmetric:
            mirrored = entries.rows != entries.columns
            yield Entries(*(array[mirrored] for array in (entries.columns, entries.rows, entries.counts)))


def _coordinates(path: Path, stream: IO[bytes], layout: Layout, first_line: int) -> Iterator[Entries]:
    """Yield the entries of a file of coordinates, as many as its header promises."""
    n_read = 0
    for block in blocks(stream, first_line):
        entries = parse_block(path, block, layout)
        n_read += entries.counts.size
        yield entries
    _check_number(path, n_read, layout.n_entries, "entries")


def _dense(path: Path, stream: IO[bytes], layout: Layout, first_line: int) -> Iterator[Entries]:
    """Yield the entries of a dense file: one value on each line, column after column, or those below the diagonal."""
    n_read = 0
    is_triangle = layout.n_entries < layout.shape[0] * layout.shape[1]
    for block in blocks(stream, first_line):
        counts = _values(path, block)
        filled = np.flatnonzero(counts)
        places = n_read + filled
        n_read += counts.size
        if n_read <= layout.n_entries:
            if is_triangle:
                columns, rows = (index[places] for index in np.triu_indices(layout.shape[0]))
            else:
                columns, rows = np.divmod(places, layout.shape[0])
            yield Entries(rows, columns, counts[filled])
    _check_number(path, n_read, layout.n_entries, "values")


def _values(path: Path, block: Block) -> NDArray[np.int32]:
    """Return the numbers of a block, one on each line, or refuse the first faulty line; (n,)."""
    text = decode(path, block.content, block.first_line)
    if not text.strip():
        return np.empty(0, dtype=np.int32)
    try:
        table = np.loadtxt(io.StringIO(text), dtype=np.float64, comments="%", ndmin=2)
        counts = as_counts(table.ravel()) if table.shape[1] == 1 else None
    except ValueError:
        counts = None
    if counts is not None:
        return counts
    for number, line in enumerate(text.split("\n"), start=block.first_line):
        if line.strip() and not line.startswith("%") and (fault := text_fault(line)) is not None:
            raise refusal(path, fault, line=number)
    raise refusal(path, "expected one value on each line. Write the file again.", line=block.first_line)


def _check_number(path: Path, n_read: int, n_promised: int, what: str) -> None:
    """Refuse a file with fewer or more entries than its header promises."""
    if n_read != n_promised:
        reason = "it was cut off" if n_read < n_promised else "it was appended to"
        raise refusal(
            path,
            f"the header promises {n_promised} {what}, but the file has {n_read}: perhaps {reason}. Write or copy it "
            "again, or correct the header.",
        )
