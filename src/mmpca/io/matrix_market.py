"""Matrix Market files and UCI bags of words: a header with sizes, then one entry per line.

Files are parsed in blocks, because `scipy.io.mmread` on a whole file needs several times the memory of the result.
SciPy's parser ignores text after a number and does not survive binary data, so blocks are checked before they are
passed to it. Other blocks are parsed line by line, which finds the line of an error.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as short_repr
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.counts import whole_numbers
from mmpca.io.streams import blocks, decode, input_error, open_stream, read_line, stem
from mmpca.io.table import (
    CountsBuilder,
    CountTable,
    Request,
    check_sizes,
    find_beside,
    find_names,
    finish_table,
    parse_count,
)
from mmpca.store import write_atomically, write_text

_BANNER = "%%MatrixMarket matrix coordinate integer general"
_LONGEST_LINE = 2**16  # bytes, comments included
_FIELDS = ("integer", "unsigned-integer", "real", "double", "pattern")

# Fields of a line by their number: a value, "row column", or "row column count".
_NUMBER = rb"\d++(?:\.\d*+)?+(?:[eE][+-]?+\d++)?+"
_PATTERNS = {1: (_NUMBER,), 2: (rb"\d++", rb"\d++"), 3: (rb"\d++", rb"\d++", _NUMBER)}

_Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.int32]]  # rows and columns from 0, counts; (n,) each


class _Header(NamedTuple):
    """The sizes at the top of a file."""

    shape: tuple[int, int]
    n_entries: int
    first_line: int  # number of the first line of entries
    n_fields: int = 3  # per line: row, column and count; 2 without the count, 1 for a dense matrix
    is_symmetric: bool = False


def read_matrix_market(request: Request) -> CountTable:
    """Read a Matrix Market file and the files of names beside it."""
    with open_stream(request.path) as stream:
        return _read_entries(request, stream, _read_header(request.path, stream))


def read_uci(request: Request) -> CountTable:
    """Read a UCI bag of words: the numbers of documents, words and entries on a line each, then the entries."""
    path = request.path
    with open_stream(path) as stream:
        sizes = []
        for number, what in enumerate(("documents", "words", "entries"), start=1):
            line = decode(path, read_line(path, stream, number, _LONGEST_LINE), number)
            if not (line.strip().isascii() and line.strip().isdigit() and len(line) < 20):
                raise input_error(
                    path,
                    f"expected the number of {what} alone on the line, but found {short_repr(line.strip())}. The "
                    "header of a UCI bag of words has three lines: documents, words, entries.",
                    line=number,
                )
            sizes.append(int(line))
        header = _Header((sizes[0], sizes[1]), sizes[2], first_line=4)
        _check_header(path, header, line=1)
        return _read_entries(request, stream, header)


def _read_entries(request: Request, stream: IO[bytes], header: _Header) -> CountTable:
    rows, features, transposed = find_names(request, header.shape)
    builder = CountsBuilder(transposed)
    n_read = 0
    for line, content in blocks(request.path, stream, header.first_line, request.block_size, _LONGEST_LINE):
        values = _parse_block(content, header)
        if values is None:
            values = _parse_lines(request.path, content, line, header)
        for entries in _place(values, n_read, header):
            builder.add(*entries)
        n_read += values[-1].size
    if n_read != header.n_entries:
        reason = "it was cut off" if n_read < header.n_entries else "something was appended to it"
        raise input_error(
            request.path,
            f"the header declares {header.n_entries} entries, but the file has {n_read}: perhaps {reason}. Write or "
            "copy it again, or correct the header.",
        )
    X = builder.build(header.shape)
    first, second = (features, rows) if transposed else (rows, features)
    return finish_table(request, X, first, second, transposed=transposed, n_zeros=builder.n_zeros)


# --- the header -------------------------------------------------------------------------------------------------


def _read_header(path: Path, stream: IO[bytes]) -> _Header:
    """Read the banner, comments and the line of sizes."""
    from scipy.io import mminfo

    first, number = stream.readline(1024), 2
    while (sizes := read_line(path, stream, number, _LONGEST_LINE)) and (not sizes.strip() or sizes.startswith(b"%")):
        decode(path, sizes, number)
        number += 1
    for line, content in ((1, first), (number, sizes)):  # SciPy does not survive binary data
        decode(path, content, line)
    # The standard allows capitals, SciPy does not.
    banner = first.lower().replace(b"%%matrixmarket", b"%%MatrixMarket", 1)
    try:
        n_rows, n_columns, n_entries, kind, field, symmetry = mminfo(io.BytesIO(banner + sizes))
    except (ValueError, OverflowError) as error:
        is_in_banner = "Line 1:" in str(error)
        found = short_repr((first if is_in_banner else sizes).decode().strip())
        expected = f'a banner such as "{_BANNER}"' if is_in_banner else 'the sizes, "rows columns entries"'
        raise input_error(
            path,
            f"expected {expected}, but found {found} ({error}). Check the format, or correct the header.",
            line=1 if is_in_banner else number,
        ) from None
    allowed = {banner.split()[1].decode(): ("matrix",), field: _FIELDS, symmetry: ("general", "symmetric")}
    for word, words in allowed.items():
        if word not in words:
            message = f"a matrix of counts cannot be {word!r}: expected one of {', '.join(words)}. Convert it."
            raise input_error(path, message, line=1)
    is_dense, is_symmetric = kind == "array", symmetry == "symmetric"
    if is_symmetric and n_rows != n_columns:
        message = f"a symmetric matrix must be square, but its shape is {(n_rows, n_columns)}. Correct the header."
        raise input_error(path, message, line=number)
    header = _Header(
        (n_rows, n_columns),
        n_rows * (n_rows + 1) // 2 if is_dense and is_symmetric else n_entries,
        first_line=number + 1,
        n_fields=1 if is_dense else 2 if field == "pattern" else 3,
        is_symmetric=is_symmetric,
    )
    _check_header(path, header, line=number)
    return header


def _check_header(path: Path, header: _Header, line: int) -> None:
    """Raise InputFileError for impossible sizes, before memory is allocated for them."""
    for size, what in zip(header.shape, ("row", "column"), strict=True):
        if size == 0:
            message = f"the header declares 0 {what}s. A count matrix has at least one."
            raise input_error(path, message, line=line)
    check_sizes(path, header.shape, header.n_entries, line)


# --- the entries ------------------------------------------------------------------------------------------------


def _place(values: tuple[NDArray[Any], ...], n_read: int, header: _Header) -> Iterator[_Entries]:
    """Yield parsed values as entries, including those implied by symmetry."""
    rows, columns, counts = values if len(values) == 3 else _place_dense(values[0], n_read, header)
    yield rows, columns, counts
    if header.is_symmetric:
        is_mirrored = rows != columns
        yield columns[is_mirrored], rows[is_mirrored], counts[is_mirrored]


def _place_dense(values: NDArray[np.int32], n_read: int, header: _Header) -> _Entries:
    """Return the nonzero values of a dense matrix, stored by columns; a symmetric one has its lower triangle only."""
    values = values[: max(0, header.n_entries - n_read)]  # too many are an error later
    filled = np.flatnonzero(values)
    positions = n_read + filled
    if header.is_symmetric:
        # Counted from its end, the triangle begins with columns of 1, 2, 3, ... values.
        positions = header.n_entries - 1 - positions
        last = np.floor(np.sqrt(2.0 * positions + 0.25) - 0.5).astype(np.int64)
        last -= last * (last + 1) // 2 > positions  # the root is rounded
        last += (last + 1) * (last + 2) // 2 <= positions
        columns, rows = (header.shape[0] - 1 - index for index in (last, positions - last * (last + 1) // 2))
    else:
        columns, rows = np.divmod(positions, header.shape[0])
    return rows, columns, values[filled]


def _parse_block(content: bytes, header: _Header) -> tuple[NDArray[Any], ...] | None:
    """Parse a block with SciPy: rows, columns and counts, or values only; None if it has anything but entries."""
    from scipy.io import mmread

    if not content.endswith(b"\n"):
        content += b"\n"
    n_lines = _count(content, b"\n")
    if _has_only_integers(content, n_lines, header.n_fields):
        field = b"integer" if header.n_fields != 2 else b"pattern"
    elif re.fullmatch(rb"(?:[ \t]*+%b[ \t]*+\r?+\n)*+" % rb"[ \t]++".join(_PATTERNS[header.n_fields]), content):
        field = b"real" if header.n_fields != 2 else b"pattern"
    else:
        return None
    if header.n_fields == 1:
        banner = b"%%%%MatrixMarket matrix array %b general\n%d 1\n" % (field, n_lines)
    else:
        banner = b"%%%%MatrixMarket matrix coordinate %b general\n%d %d %d\n" % (field, *header.shape, n_lines)
    try:
        parsed: Any = mmread(io.BytesIO(banner + content))
    except (ValueError, OverflowError):
        return None
    counts = whole_numbers(parsed.ravel() if header.n_fields == 1 else parsed.data)
    if counts is None:
        return None
    return (counts,) if header.n_fields == 1 else (parsed.row, parsed.col, counts)


def _has_only_integers(content: bytes, n_lines: int, n_fields: int) -> bool:
    """Return True if a block has only digits and white space, and the right number of fields."""
    if content.translate(None, b"0123456789 \t\r\n"):
        return False
    n_separators = _count(content, b" ") + _count(content, b"\t")
    # With the right number of fields in total, a line with too many implies one with too few, which SciPy rejects.
    # Dense matrices have no such check.
    is_single = n_separators == (n_fields - 1) * n_lines
    return is_single or (n_fields > 1 and len(content.split()) == n_fields * n_lines)


def _count(content: bytes, character: bytes) -> int:
    """Count a frequent character, several times faster than `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(content, dtype=np.uint8) == character[0]))


def _parse_lines(path: Path, content: bytes, first_line: int, header: _Header) -> tuple[NDArray[Any], ...]:
    """Parse a block line by line, skipping comments, or raise InputFileError for the first invalid line."""
    parsed = [
        _parse_line(path, line, number, header)
        for number, line in enumerate(decode(path, content, first_line).split("\n"), first_line)
        if line.strip() and not line.startswith("%")
    ]
    n_values = 1 if header.n_fields == 1 else 3
    table = np.array(parsed, dtype=np.int32).reshape(-1, n_values).T
    return (table[0],) if n_values == 1 else (table[0] - 1, table[1] - 1, table[2])


def _parse_line(path: Path, line: str, number: int, header: _Header) -> tuple[int, ...]:
    """Return row and column, counted from 1, and count of a line."""
    fields = line.split()
    if len(fields) != header.n_fields:
        expected = {1: "1 number", 2: '2 numbers, "row column"', 3: '3 numbers, "row column count"'}[header.n_fields]
        raise input_error(
            path,
            f"expected {expected}, but found {len(fields)} in {short_repr(line.strip())}. Correct the line, or write "
            "the file again.",
            line=number,
        )
    if header.n_fields == 1:
        return (parse_count(path, fields[0], line=number),)
    indices = [
        _parse_index(path, text, number, size, what)
        for text, size, what in zip(fields[:2], header.shape, ("row", "column"), strict=True)
    ]
    return (*indices, 1 if header.n_fields == 2 else parse_count(path, fields[2], line=number))


def _parse_index(path: Path, text: str, number: int, size: int, what: str) -> int:
    """Return an index, counted from 1, or raise InputFileError."""
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        message = f"expected a {what} number, but found {short_repr(text)}. Correct the line."
        raise input_error(path, message, line=number)
    index = int(text) if len(text) < 20 else size + 1
    if not 1 <= index <= size:
        advice = "Numbers start at 1: add 1 if yours start at 0." if index == 0 else "Correct the line or the header."
        message = f"{what} {short_repr(text)} is out of range: the header declares {size} {what}s. {advice}"
        raise input_error(path, message, line=number)
    return index


# --- writing ----------------------------------------------------------------------------------------------------


def write_matrix_market(path: Path, table: CountTable) -> None:
    """Write ``.mtx`` or ``.mtx.gz``, and the names to files beside it; the counts come last."""
    texts: dict[Path, str | None] = {}
    for names, word in ((table.row_names, "rows"), (table.feature_names, "columns")):
        target = path.with_name(f"{stem(path)}.{word}.txt")
        lines = None if names is None else [_check_name(target, n, name) for n, name in enumerate(names, start=1)]
        texts[target] = None if lines is None else "".join(f"{line}\n" for line in lines)
    _check_beside(path, texts)
    for target, text in texts.items():
        if text is None:
            target.unlink(missing_ok=True)
        else:
            write_text(target, text)
    X = table.X

    def write(stream: IO[bytes]) -> None:
        """Write the entries, compressed if the name says so."""
        if path.suffix == ".gz":
            # Without a time stamp, equal counts give equal bytes.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
                _write_entries(cast(IO[bytes], packed), X)
        else:
            _write_entries(stream, X)

    write_atomically(path, write)


def _check_beside(path: Path, texts: Mapping[Path, str | None]) -> None:
    """Raise InputFileError for files of names beside counts that belong to others and would be read with the new ones.

    The names written along with an older version of the counts are replaced, or removed if the new counts have none.
    """
    twin = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
    is_old = path.exists() and not twin.exists()
    for (target, text), found in zip(texts.items(), find_beside(path), strict=True):
        if found is None or (found != target and text is not None):  # the names that are written take precedence
            continue
        if found == target and (is_old or (text is not None and target.read_bytes() == text.encode())):
            continue
        raise input_error(
            found,
            f"these names belong to something else, but would be read as those of {path.name}. Remove the file, or "
            f"choose another output, such as {stem(path)}.npz.",
        )


def _check_name(path: Path, number: int, name: object) -> str:
    """Return a name that fits on a single line, or raise InputFileError."""
    text = str(name)
    if not text.strip() or "\n" in text or "\r" in text:
        message = f"{text!r} cannot be written on a line. Names must not be empty or have line breaks; or write .npz."
        raise input_error(path, message, line=number)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise input_error(path, f"{text!a} cannot be written as UTF-8. Rename it.", line=number) from error
    return text


def _write_entries(stream: IO[bytes], X: sparse.csr_array, n_rows: int = 2**12) -> None:
    """Write header and entries, `n_rows` rows at a time."""
    stream.write(b"%b\n%d %d %d\n" % (_BANNER.encode(), *X.shape, X.nnz))
    for first in range(0, X.shape[0], n_rows):
        part = X[first : first + n_rows].tocoo()
        entries = np.column_stack([part.row + (first + 1), part.col + 1, part.data])  # (n, 3)
        stream.write(("%d %d %d\n" * len(entries) % tuple(entries.ravel().tolist())).encode())
