"""Tables with values of any kind, such as texts and labels: columns of CSV, TSV, JSON, Parquet and Excel files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from mmpca.counts import whole_numbers
from mmpca.errors import InputFileError
from mmpca.io.delimited import has_name_column, read_records
from mmpca.io.streams import check_file, first_bytes, input_error, missing_extra, read_text, suffix, text_lines
from mmpca.io.table import CountsBuilder, CountTable, Request, finish_table, parse_count

JSON_SUFFIXES = (".jsonl", ".ndjson")  # one object per line
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_PANDAS_INDEX = "__index_level_0__"


class Columns(NamedTuple):
    """Columns of equal length.

    Attributes
    ----------
    titles : list of str
    values : list of lists
        The values of each column; strings in text formats, None where a value is missing.
    numbers : list of int
        Number of each record in the file, from 1; for one JSON object per line, the number of its line.
    unit : {"record", "line"}
    has_index : bool
        Whether the first column is the index of a data frame.
    """

    titles: list[str]
    values: list[list[Any]]
    numbers: list[int]
    unit: str = "record"
    has_index: bool = False

    def column(self, title: str) -> list[Any]:
        """Return the values of the first column with a title."""
        return self.values[self.titles.index(title)]


def read_columns(
    path: Path, *, encoding: str | None = None, sheet: str | None = None, notes: list[str] | None = None
) -> Columns:
    """Read the columns of a table; remarks on its interpretation are appended to `notes`, in place."""
    check_file(path)
    if is_workbook(path):
        return _read_workbook(path, sheet, [] if notes is None else notes)
    if first_bytes(path).startswith(b"PAR1"):
        return _read_parquet(path)
    content = read_text(path, encoding=encoding, notes=notes)
    if suffix(path) in JSON_SUFFIXES:
        return _read_json_lines(path, content)
    if is_json_array(path, content):
        return _read_json_array(path, content)
    return _read_delimited(path, content)


def is_json_array(path: Path, content: str) -> bool:
    """Return True for a .json file with a list."""
    return suffix(path) == ".json" and content.lstrip().startswith("[")


# --- text -------------------------------------------------------------------------------------------------------


def _read_delimited(path: Path, content: str) -> Columns:
    """Read CSV or TSV with a header; fields may span several lines."""
    first = next((line for line in text_lines(content) if line.strip()), "")
    delimiter = "\t" if suffix(path) == ".tsv" else max(",;\t|", key=first.count)
    records = [fields for _, fields in read_records(path, io.StringIO(content, newline=""), delimiter)]
    if not records:
        raise input_error(path, "the file has no records. Check the step that wrote it.")
    # QIIME begins its header with "#" and describes the columns in a second line.
    header = [records[0][0].removeprefix("#"), *records[0][1:]]
    body = [record for record in records[1:] if not record[0].startswith("#q2:")]
    return Columns(header, [list(column) for column in zip(*body, strict=True)] or [[] for _ in header], _count(body))


def _count(body: Sequence[Any]) -> list[int]:
    return list(range(1, len(body) + 1))


def _read_json_lines(path: Path, content: str) -> Columns:
    """Read one object per line; blank lines are skipped."""
    lines = {number: line for number, line in enumerate(text_lines(content), start=1) if line.strip()}
    objects = {number: _parse_json(path, line, line_number=number) for number, line in lines.items()}
    for number, item in objects.items():
        if not isinstance(item, dict):
            raise input_error(path, f"expected a JSON object, but found {short_repr(item)}.", line=number)
    return _columns_of(list(objects.values()), list(objects), "line")


def _read_json_array(path: Path, content: str) -> Columns:
    """Read a list of objects, or of strings."""
    items = _parse_json(path, content)
    if items and all(isinstance(item, str) for item in items):
        return Columns(["text"], [items], _count(items))
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            raise input_error(path, f"expected a JSON object, but found {short_repr(item)}.", record=number)
    return _columns_of(items, _count(items), "record")


def _parse_json(path: Path, text: str, line_number: int | None = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "a JSON object" if line_number else "a JSON array"
        raise input_error(path, f"expected {what} ({error}). Correct the file.", line=line_number) from error


def _columns_of(objects: Sequence[dict[str, Any]], numbers: list[int], unit: str) -> Columns:
    titles = list(dict.fromkeys(title for item in objects for title in item))
    return Columns(titles, [[item.get(title) for item in objects] for title in titles], numbers, unit)


# --- Parquet and Excel --------------------------------------------------------------------------------------------


def _read_parquet(path: Path) -> Columns:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise missing_extra(path, package="PyArrow", extra="parquet") from None
    try:
        with parquet.ParquetFile(path) as file:
            check_n_records(path, file.metadata.num_rows)
            table = file.read()
            values = [column.to_pylist() for column in table.columns]
            about = table.schema.pandas_metadata or {}
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError for text that is not UTF-8 or not JSON
        raise input_error(
            path, f"the Parquet file is truncated or damaged ({error}). Copy or write it again."
        ) from error
    titles, numbers = table.column_names, list(range(1, table.num_rows + 1))
    # pandas writes the index of a data frame as the last column; a range is not written at all.
    index = [name for name in about.get("index_columns", ()) if isinstance(name, str)]
    if len(index) != 1 or index[0] not in titles:
        return Columns(titles, values, numbers)
    place = titles.index(index[0])
    values.insert(0, values.pop(place))
    titles.insert(0, titles.pop(place).removeprefix(_PANDAS_INDEX))
    return Columns(titles, values, numbers, has_index=True)


def check_n_records(path: Path, n_records: int) -> None:
    """Raise InputFileError for more records than a Parquet file can hold, except for runs of equal ones."""
    n_bytes = path.stat().st_size
    if n_records > 10**6 + 20 * n_bytes:
        message = (
            f"{n_bytes} bytes would unpack to {n_records} records, which is implausible for counts. Write it again."
        )
        raise input_error(path, message)


def is_workbook(path: Path) -> bool:
    """Return True for Excel's files, old (.xls) and new (.xlsx), whatever their names."""
    magic = first_bytes(path)
    if not magic.startswith(b"PK\x03\x04"):
        return magic.startswith(_OLD_EXCEL)
    try:
        with ZipFile(path) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _read_workbook(path: Path, sheet: str | None, notes: list[str]) -> Columns:
    """Read a sheet of an Excel workbook, by default the first; its first row with values is the header."""
    advice = "Save the sheet as CSV, and read that."
    if first_bytes(path).startswith(_OLD_EXCEL):
        raise input_error(path, f"this is an Excel workbook in the old format (.xls). {advice}")
    try:
        import openpyxl
    except ImportError:
        raise missing_extra(path, package="openpyxl for Excel workbooks", extra="excel") from None
    try:
        with ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > max(2**28, 200 * path.stat().st_size):
            message = f"the Excel workbook would unpack to {unpacked / 1e9:.3g} GB, which is implausible. {advice}"
            raise input_error(path, message)
        with path.open("rb") as file:
            rows = _read_sheet(path, openpyxl.load_workbook(file, read_only=True, data_only=True), sheet, notes)
    except InputFileError:
        raise
    except Exception as error:  # the package raises whatever its parsers do
        raise input_error(path, f"the Excel workbook is damaged ({error}). {advice}") from error
    if not rows:
        raise input_error(path, f"the sheet of this Excel workbook is empty. {advice}")
    width = max(1 + max((column for column, value in enumerate(row) if value is not None), default=0) for row in rows)
    header, *body = [[*row, *[None] * (width - len(row))][:width] for row in rows]
    titles = ["" if title is None else str(title) for title in header]
    return Columns(titles, [[row[column] for row in body] for column in range(width)], _count(body))


def _read_sheet(path: Path, book: Any, sheet: str | None, notes: list[str]) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet that are not blank."""
    names = book.sheetnames
    if sheet is not None and sheet not in names:
        raise input_error(path, f"there is no sheet {sheet!r}; the Excel workbook has {', '.join(map(repr, names))}.")
    if sheet is None and len(names) > 1:
        notes.append(f"{path.name}: read the first of {len(names)} sheets, {names[0]!r}. Choose another with --sheet.")
    worksheet = book[sheet or names[0]]
    worksheet.reset_dimensions()  # they may claim any size
    n_left = 10**7 + 200 * path.stat().st_size
    rows = []
    for row in worksheet.iter_rows(values_only=True):
        n_left -= len(row)
        if n_left < 0:
            raise input_error(path, "the Excel workbook has far more cells than values. Save the sheet as CSV.")
        if any(value is not None for value in row):
            rows.append(row)
    return rows


# --- counts -----------------------------------------------------------------------------------------------------


def read_wide_table(request: Request) -> CountTable:
    """Read a table with a column for each feature from an Excel workbook or a Parquet file."""
    notes: list[str] = []
    path, columns = request.path, read_columns(request.path, sheet=request.sheet, notes=notes)
    body = [[str(value)] for value in columns.values[0]]
    has_names = columns.has_index or has_name_column(columns.titles, body)
    builder = CountsBuilder(bool(request.transpose))
    for v, (title, values) in enumerate(zip(columns.titles[has_names:], columns.values[has_names:], strict=True)):
        counts = whole_numbers(np.asarray(values)) if _are_numbers(values) else None
        if counts is None:
            text = ["" if value is None else str(value) for value in values]
            parsed = [parse_count(path, one, f"column {title!r}: ", record=n) for n, one in enumerate(text, start=1)]
            counts = np.array(parsed, dtype=np.int32)
        rows = np.flatnonzero(counts)
        builder.add(rows, np.full(rows.size, v), counts[rows])
    X = builder.build((len(columns.numbers), len(columns.titles) - has_names))
    names = [str(value) for value in columns.values[0]] if has_names else None
    table = finish_table(request, X, names, columns.titles[has_names:], transposed=builder.transposed)
    table.notes[:0] = notes
    return table


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)
