"""CSV and TSV tables: a line for each row, a field for each feature, in blocks of lines."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmpca.io.builder import CountsBuilder
from mmpca.io.dialect import Dialect, read_dialect, split_line
from mmpca.io.faults import as_counts, refusal, text_fault
from mmpca.io.names import given_or_own, named_table
from mmpca.io.streams import Block, blocks, decode, open_stream, text_lines
from mmpca.io.table import CountTable, Request


def read_table(request: Request) -> CountTable:
    """Read a table, with a header or without, with a first column of names or without."""
    dialect = read_dialect(request.path)
    is_otu_table = dialect.header is not None and dialect.header[0].strip().lower() == "#otu id"
    transposed = is_otu_table if request.transpose is None else request.transpose
    builder = CountsBuilder(transposed)
    names: list[str] = []
    n_rows = 0
    with open_stream(request.path) as stream:
        for _ in range(dialect.first_line - 1):
            stream.readline()
        for block in blocks(stream, dialect.first_line):
            counts = _parse_block(request.path, block, dialect, names)  # (n, v)
            rows, columns = np.nonzero(counts)
            builder.add(rows + n_rows, columns, counts[rows, columns])
            n_rows += len(counts)
    X = builder.finish(request.path, (n_rows, dialect.n_fields - dialect.has_names))
    header = None if dialect.header is None else dialect.header[dialect.has_names :]
    sides = given_or_own(request, names if dialect.has_names else None, header, transposed)
    return named_table(request.path, X, sides, builder.notes())


def _parse_block(path: Path, block: Block, dialect: Dialect, names: list[str]) -> NDArray[np.int32]:
    """Return the counts of a block's lines, (n, v); their names are appended to `names`, in place."""
    lines = [line for line in text_lines(decode(path, block.content, block.first_line)) if line.strip()]
    n_features = dialect.n_fields - dialect.has_names
    if not lines:
        return np.empty((0, n_features), dtype=np.int32)
    fields = lines
    if dialect.has_names:
        pairs = [_split_name(line, dialect.delimiter) for line in lines]
        names += [name for name, _ in pairs]
        fields = [rest for _, rest in pairs]
    counts = _numbers(fields, dialect.delimiter, n_features)
    if counts is None:
        raise _line_refusal(path, block, dialect)
    return counts


def _split_name(line: str, delimiter: str) -> tuple[str, str]:
    """Return the first field of a line, and the rest."""
    if not line.startswith('"'):
        name, _, rest = line.partition(delimiter)
        return name, rest
    name = split_line(line, delimiter)[0]
    # Quotes, and quotes doubled within them, are part of the line but not of the name.
    return name, line[len(name) + name.count('"') + 2 :].removeprefix(delimiter)


def _numbers(lines: list[str], delimiter: str, n_features: int) -> NDArray[np.int32] | None:
    """Return lines of counts, (n, v), or None if there is anything else in them."""
    try:
        table = np.loadtxt(
            io.StringIO("\n".join(lines)), dtype=np.float64, delimiter=delimiter, comments=None, quotechar='"', ndmin=2
        )
    except ValueError:
        return None
    # A line without any field, as a name alone leaves it, is skipped by the reader.
    if table.shape != (len(lines), n_features):
        return None
    counts = as_counts(table.ravel())
    return None if counts is None else counts.reshape(table.shape)


def _line_refusal(path: Path, block: Block, dialect: Dialect) -> Exception:
    """Return the error for the first faulty line of a block."""
    lines = text_lines(decode(path, block.content, block.first_line))
    for number, line in enumerate(lines, start=block.first_line):
        if not line.strip():
            continue
        fields = split_line(line, dialect.delimiter)
        if len(fields) != dialect.n_fields:
            return refusal(
                path,
                f"expected {dialect.n_fields} fields, but found {len(fields)}. Every line must have as many fields as "
                "the first; names with the delimiter in them need quotes.",
                line=number,
            )
        for column, field in enumerate(fields[dialect.has_names :], start=dialect.has_names):
            if (fault := text_fault(field)) is not None:
                title = f" ({dialect.header[column]})" if dialect.header is not None else ""
                return refusal(path, f"column {column + 1}{title}: {fault}", line=number)
    return refusal(path, "the lines from here on cannot be read as a table of counts.", line=block.first_line)
