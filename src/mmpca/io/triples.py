"""Triples of row, feature and count, one on each line of a CSV or TSV file, in blocks of lines.

PyArrow reads them where it is installed. What it stumbles on, and all files without it, are read line by
line, which is slower and knows the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mmpca.io.dialect import Dialect, read_dialect, split_line, triple_columns
from mmpca.io.encoding import Labels, Places, Triples
from mmpca.io.faults import as_counts, refusal, text_fault
from mmpca.io.streams import blocks, decode, open_stream, text_lines
from mmpca.io.table import CountTable, Request

_LINES_AT_ONCE = 2**18


def read_triples(request: Request) -> CountTable:
    """Read triples from delimited text."""
    dialect = read_dialect(request.path)
    columns = find_columns(request, dialect.header, dialect.n_fields)
    table = _read_by_arrow(request, dialect, columns)
    table = _read_by_line(request, dialect, columns) if table is None else table
    return table._replace(notes=[*_guess(request, dialect.header), *table.notes])


def _guess(request: Request, header: Sequence[str] | None) -> list[str]:
    """Return a note where nothing but the number of columns says that these are triples."""
    is_known = header is not None and triple_columns(header) is not None
    if request.format is not None or request.columns is not None or header is None or is_known:
        return []
    row, feature, count = header
    return [
        f"Read as triples, a line for each entry: {row!r} for the row, {feature!r} for the feature, {count!r} for the "
        f"count. If the columns are features, leave out {feature!r}, which holds words."
    ]


def find_columns(request: Request, header: Sequence[str] | None, n_fields: int) -> tuple[int, int, int]:
    """Return the columns of row, feature and count: those asked for, else by their names, else the three there are."""
    if request.columns is not None:
        return _asked_for(request, header)
    known = None if header is None else triple_columns(header)
    if known is not None:
        return known
    if n_fields != 3:
        shown = "" if header is None else f" ({', '.join(header[:10])})"
        raise refusal(
            request.path,
            f"expected three columns, row, feature and count, but found {n_fields}{shown}. Name them with columns.",
        )
    return 0, 1, 2


def _asked_for(request: Request, header: Sequence[str] | None) -> tuple[int, int, int]:
    names = list(request.columns or ())
    if len(names) != 3:
        raise refusal(request.path, f"columns must name three: row, feature and count, but there are {len(names)}.")
    if header is None:
        raise refusal(request.path, "columns are named, but the file has no header. Leave them out, or add a header.")
    for name in names:
        if list(header).count(name) != 1:
            raise refusal(
                request.path, f"expected one column {name!r}, but the columns are {', '.join(header)}. Choose of these."
            )
    first, second, third = (list(header).index(name) for name in names)
    return first, second, third


# --- by PyArrow -----------------------------------------------------------------------------------


def _read_by_arrow(request: Request, dialect: Dialect, columns: tuple[int, int, int]) -> CountTable | None:
    """Return the table; None if PyArrow is not there, or finds anything that is not as it should be."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    labels = [f"f{number}" for number in range(dialect.n_fields)]
    wanted = [labels[column] for column in columns]
    text = pa.dictionary(pa.int32(), pa.string())
    triples = Triples(request)
    with open_stream(request.path) as stream:
        try:
            reader = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(column_names=labels, skip_rows=dialect.first_line - 1, block_size=2**22),
                arrow_csv.ParseOptions(delimiter=dialect.delimiter),
                arrow_csv.ConvertOptions(
                    column_types=dict(zip(wanted, (text, text, pa.float64()), strict=True)),
                    include_columns=wanted,
                    null_values=[],
                ),
            )
            for batch in reader:
                counts = as_counts(batch.column(2).to_numpy())
                if counts is None:
                    return None
                rows, features = (arrow_labels(batch.column(side)) for side in (0, 1))
                triples.add(rows, features, counts, Places("record", range(len(counts))))
        except (pa.ArrowInvalid, ValueError):  # refusals too: the other reader knows the line
            return None
    return triples.finish()


def arrow_labels(column: Any) -> Labels:
    """Return a dictionary-encoded Arrow array of names."""
    names = [str(name) for name in column.dictionary.to_pylist()]
    return Labels(names, column.indices.to_numpy(zero_copy_only=False))


# --- by line --------------------------------------------------------------------------------------


def _read_by_line(request: Request, dialect: Dialect, columns: tuple[int, int, int]) -> CountTable:
    triples = Triples(request)
    lines = _lines(request.path, dialect)
    while part := list(islice(lines, _LINES_AT_ONCE)):
        rows, features, counts = zip(*_fields(request.path, part, dialect, columns), strict=True)
        each = np.arange(len(part))
        values = np.array([float(count) for count in counts]).astype(np.int32)
        places = Places("line", [number for number, _ in part])
        triples.add(Labels(rows, each), Labels(features, each), values, places)
    return triples.finish()


def _lines(path: Path, dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of data that are not empty."""
    with open_stream(path) as stream:
        for _ in range(dialect.first_line - 1):
            stream.readline()
        for block in blocks(stream, dialect.first_line):
            lines = text_lines(decode(path, block.content, block.first_line))
            yield from ((number, line) for number, line in enumerate(lines, start=block.first_line) if line.strip())


def _fields(
    path: Path, lines: Sequence[tuple[int, str]], dialect: Dialect, columns: tuple[int, int, int]
) -> Iterator[tuple[str, str, str]]:
    """Yield row, feature and count of each line, or refuse the first line that has none."""
    for number, line in lines:
        row = split_line(line, dialect.delimiter)
        if len(row) != dialect.n_fields:
            raise refusal(
                path,
                f"expected {dialect.n_fields} fields, but found {len(row)}. Every line must have as many as the first; "
                "names with the delimiter in them need quotes.",
                line=number,
            )
        if (fault := text_fault(row[columns[2]])) is not None:
            raise refusal(path, f"column {columns[2] + 1}: {fault}", line=number)
        yield row[columns[0]], row[columns[1]], row[columns[2]]
