"""Triples of row, feature and count in Parquet files, one batch of records after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.io.encoding import Places, Triples
from mmpca.io.faults import as_counts, first_fault, missing_extra, number_fault, refusal
from mmpca.io.streams import check_file
from mmpca.io.table import CountTable, Request
from mmpca.io.triples import arrow_labels, find_columns

_RECORDS_AT_ONCE = 2**17


def read_parquet(request: Request) -> CountTable:
    """Read triples from a Parquet file."""
    check_file(request.path)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise missing_extra(request.path, package="PyArrow", extra="parquet") from None
    try:
        with parquet.ParquetFile(request.path) as file:
            return _read(request, file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names are decoded when they are looked at
        raise refusal(
            request.path, f"the Parquet file is truncated or damaged ({error}). Copy or write it again."
        ) from error


def _read(request: Request, file: Any) -> CountTable:
    header = file.schema_arrow.names
    places = find_columns(request, header, len(header))
    triples = Triples(request)
    first = 1
    for batch in file.iter_batches(_RECORDS_AT_ONCE, columns=[header[place] for place in places]):
        columns = [batch.column(header[place]) for place in places]
        for name, column in zip((header[place] for place in places), columns, strict=True):
            _check_complete(request, name, column, first)
        counts = _counts(request, header[places[2]], columns[2], first)
        rows, features = (arrow_labels(column.dictionary_encode()) for column in columns[:2])
        triples.add(rows, features, counts, Places("record", range(first, first + len(batch))))
        first += len(batch)
    return triples.finish()


def _check_complete(request: Request, name: str, column: Any, first: int) -> None:
    """Refuse a column in which something is missing."""
    if column.null_count:
        record = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise refusal(
            request.path, f"column {name!r}: a value is missing. Fill it, or leave out the record.", record=record
        )


def _counts(request: Request, name: str, column: Any, first: int) -> NDArray[np.int32]:
    """Return a column of counts, (n,), or refuse its first fault."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iuf":
        raise refusal(
            request.path, f"column {name!r}: expected counts, but its type is {column.type}. Write whole numbers."
        )
    counts = as_counts(values)
    if counts is None:
        position = first_fault(values)
        raise refusal(
            request.path, f"column {name!r}: {number_fault(float(values[position]))}", record=first + position
        )
    return counts
