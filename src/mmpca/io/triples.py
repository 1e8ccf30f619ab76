"""Triples of row, feature and count, one per line of a CSV or TSV file or one per record of a Parquet file.

PyArrow parses CSV if it is installed. Files that it rejects, and all files without it, are parsed by the csv module,
which is slower but knows the line numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import whole_numbers
from mmpca.io.columns import check_n_records, read_wide_table
from mmpca.io.delimited import Dialect, detect_dialect, find_triple_columns, lines_with_ends, read_records
from mmpca.io.streams import input_error, missing_extra, open_text, text_blocks
from mmpca.io.table import CountsBuilder, CountTable, NamesOrFile, Request, finish_table, parse_count, read_names

_N_RECORDS = 2**17  # parsed at a time

# Distinct names, and for each entry the position of its name among them.
_Encoded = tuple[Sequence[str], NDArray[Any]]


def read_triples(request: Request) -> CountTable:
    """Read triples from a delimited file."""
    dialect = detect_dialect(request.path, as_triples=request.format == "triples", encoding=request.encoding)
    columns = _find_columns(request, dialect.header, dialect.n_fields)
    table = _read_with_arrow(request, dialect, columns)
    if table is None:
        table = _read_with_csv(request, dialect, columns)
    notes = [dialect.note] if dialect.note else []
    if dialect.header is not None:
        notes += _guess_notes(request, dialect.header, "remove the column of words")
    table.notes[:0] = notes
    return table


def _guess_notes(request: Request, header: Sequence[str], remedy: str) -> list[str]:
    """Return a note if three columns are taken for triples though neither their titles nor the caller say so."""
    if request.format is not None or request.columns is not None or find_triple_columns(header) is not None:
        return []
    row, feature, count = header
    return [
        f"Read as triples, one entry per line: row {row!r}, feature {feature!r}, count {count!r}. If the columns are "
        f"features instead, {remedy}."
    ]


def _find_columns(request: Request, header: Sequence[str] | None, n_fields: int) -> tuple[int, int, int]:
    """Return the positions of row, feature and count: as requested, by their titles, or the only three."""
    path, columns, titles = request.path, request.columns, list(header or ())
    if columns is None:
        known = find_triple_columns(titles)
        if known is None and n_fields != 3:
            shown = f" ({', '.join(titles[:10])})" if titles else ""
            message = (
                f"expected three columns, row, feature and count, but found {n_fields}{shown}. Name them with columns."
            )
            raise input_error(path, message)
        return known or (0, 1, 2)
    if header is None:
        raise input_error(path, "columns were named, but the file has no header. Omit columns, or add a header.")
    if len(columns) != 3 or any(titles.count(name) != 1 for name in columns):
        raise input_error(
            path,
            f"columns must name the columns of row, feature and count, but it is {list(columns)}, and the columns are "
            f"{', '.join(titles)}. Choose three of these.",
        )
    return titles.index(columns[0]), titles.index(columns[1]), titles.index(columns[2])


class _Triples:
    """Collects triples and numbers their names in order of appearance.

    Names that the request gives are fixed: they determine the order, and other names are errors.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        codes = (self._fixed_codes("row", request.row_names), self._fixed_codes("feature", request.feature_names))
        sides = tuple(zip(("row", "feature"), codes, (request.row_names, request.feature_names), strict=True))
        # In the order of the file.
        self._sides = sides[::-1] if request.transpose else sides
        self._builder = CountsBuilder(bool(request.transpose))

    def _fixed_codes(self, what: str, given: NamesOrFile | None) -> dict[str, int]:
        if given is None:
            return {}
        names = read_names(given)[0]
        codes = {name: code for code, name in enumerate(names)}
        if len(codes) < len(names):
            raise input_error(self._request.path, f"{what}_names must be unique. Remove the duplicates.")
        return codes

    def add(
        self, rows: _Encoded, features: _Encoded, counts: NDArray[np.int32], numbers: Sequence[int], unit: str = "line"
    ) -> None:
        """Add entries; `numbers` are their lines or records, for messages."""
        indices = []
        for (names, positions), (what, codes, given) in zip((rows, features), self._sides, strict=True):
            if given is not None:
                unknown = next((position for position, name in enumerate(names) if name not in codes), None)
                if unknown is not None:
                    raise input_error(
                        self._request.path,
                        f"{names[unknown]!r} is not among the {len(codes)} given {what} names. Add it, or omit "
                        f"{what}_names.",
                        **{unit: numbers[int(np.argmax(positions == unknown))]},
                    )
            numbered = np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.int64)
            indices.append(numbered[positions])
        self._builder.add(indices[0], indices[1], counts)

    def finish(self) -> CountTable:
        """Return the table."""
        first, second = (codes for _, codes, _ in self._sides)
        if not first or not second:
            raise input_error(self._request.path, "the file holds no triples. Check the step that wrote it.")
        builder = self._builder
        X = builder.build((len(first), len(second)))
        return finish_table(
            self._request, X, list(first), list(second), transposed=builder.transposed, n_zeros=builder.n_zeros
        )


# --- delimited text ---------------------------------------------------------------------------------------------


def _read_with_arrow(request: Request, dialect: Dialect, columns: tuple[int, int, int]) -> CountTable | None:
    """Return the table, or None if PyArrow is not installed or rejects the file."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    labels = [f"f{number}" for number in range(dialect.n_fields)]
    wanted = [labels[column] for column in columns]
    text = pa.dictionary(pa.int32(), pa.string())
    triples = _Triples(request)
    with open_text(request.path, request.encoding) as stream:
        try:
            reader = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(
                    column_names=labels, skip_rows=dialect.first_line - 1, block_size=request.block_size
                ),
                arrow_csv.ParseOptions(delimiter=dialect.delimiter),
                arrow_csv.ConvertOptions(
                    column_types=dict(zip(wanted, (text, text, pa.float64()), strict=True)),
                    include_columns=wanted,
                    null_values=[],
                ),
            )
            for batch in reader:
                counts = whole_numbers(batch.column(2).to_numpy())
                if counts is None:
                    return None
                triples.add(_encoded(batch.column(0)), _encoded(batch.column(1)), counts, range(len(counts)))
        except (pa.ArrowInvalid, ValueError):  # also InputFileError: the csv module knows the line
            return None
    return triples.finish()


def _encoded(column: Any) -> _Encoded:
    """Return the names and positions of a dictionary-encoded Arrow array."""
    return [str(name) for name in column.dictionary.to_pylist()], column.indices.to_numpy(zero_copy_only=False)


def _read_with_csv(request: Request, dialect: Dialect, columns: tuple[int, int, int]) -> CountTable:
    row, feature, count = columns
    triples = _Triples(request)
    text = text_blocks(request.path, dialect.first_line, request.block_size, request.encoding)
    lines = (line for _, block in text for line in lines_with_ends(block))
    records = read_records(
        request.path, lines, dialect.delimiter, n_fields=dialect.n_fields, first_line=dialect.first_line
    )
    while batch := list(islice(records, _N_RECORDS)):
        each = np.arange(len(batch))
        where = f"column {count + 1}: "
        counts = [parse_count(request.path, fields[count], where, line=line) for line, fields in batch]
        triples.add(
            ([fields[row] for _, fields in batch], each),
            ([fields[feature] for _, fields in batch], each),
            np.array(counts, dtype=np.int32),
            [line for line, _ in batch],
        )
    return triples.finish()


# --- Parquet ----------------------------------------------------------------------------------------------------


def read_parquet(request: Request) -> CountTable:
    """Read triples from a Parquet file, or a table with a column for each feature."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise missing_extra(request.path, package="PyArrow", extra="parquet") from None
    try:
        with parquet.ParquetFile(request.path) as file:
            return _read_batches(request, file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names are decoded late
        raise input_error(
            request.path, f"the Parquet file is truncated or damaged ({error}). Copy or write it again."
        ) from error


def _read_batches(request: Request, file: Any) -> CountTable:
    header = file.schema_arrow.names
    check_n_records(request.path, file.metadata.num_rows)
    if request.columns is None and len(header) != 3 and find_triple_columns(header) is None:
        return read_wide_table(request)
    names = [header[position] for position in _find_columns(request, header, len(header))]
    triples = _Triples(request)
    first = 1
    for batch in file.iter_batches(_N_RECORDS, columns=names):
        columns = [batch.column(name) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.null_count:
                record = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                message = f"column {name!r}: a value is missing. Fill it in, or leave out the record."
                raise input_error(request.path, message, record=record)
        counts = _check_counts(request.path, names[2], columns[2], first)
        rows, features = (_encoded(column.dictionary_encode()) for column in columns[:2])
        triples.add(rows, features, counts, range(first, first + len(batch)), unit="record")
        first += len(batch)
    table = triples.finish()
    table.notes[:0] = _guess_notes(request, header, "write the table as CSV")
    return table


def _check_counts(path: Path, name: str, column: Any, first: int) -> NDArray[np.int32]:
    """Return a column of counts, (n,), or raise InputFileError for the first invalid one."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iuf":
        raise input_error(path, f"column {name!r}: expected counts, but its type is {column.type}. Write integers.")
    counts = whole_numbers(values)
    if counts is None:
        parsed = [
            parse_count(path, str(value), f"column {name!r}: ", record=n) for n, value in enumerate(values, first)
        ]
        return np.array(parsed, dtype=np.int32)
    return counts
