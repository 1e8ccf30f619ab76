"""Known labels of rows, and other columns, from files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from mmpca.cli import screen
from mmpca.errors import InputFileError
from mmpca.io.streams import read_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_COLUMNS = ("label", "labels", "class", "cluster")
ROW_COLUMN = "row"  # of the tables that fit, predict and simulate write


def read_labels(path: Path, names: Sequence[str] | None) -> list[str]:
    """Return labels from a column of a table, or from the lines of another file.

    Parameters
    ----------
    path : Path
        A ``.csv`` or ``.tsv`` file with a header, of which the column "label", "labels", "class" or "cluster" is
        taken, or else the last; or any other file, with a label on each line.
    names : sequence of str, optional
        Names of the rows: labels of a table whose column "row" has the same names are brought into their order. A
        table that has only some of them, or more, or one twice, is refused; one that has none of them goes by order.
    """
    if path.suffix not in DELIMITERS:
        return read_lines(path)
    table = read_columns(path)
    column = next((name for name in LABEL_COLUMNS if name in table), list(table)[-1])
    labels = table[column]
    rows = table.get(ROW_COLUMN)
    if names is None or rows is None or rows == list(names):
        return labels
    if set(rows).isdisjoint(names):
        screen.note(
            f'{path}: no name in the column "{ROW_COLUMN}", such as {rows[0]!r}, is one of the data\'s, such as '
            f"{names[0]!r}; labels are taken in order."
        )
        return labels
    _check_same_names(path, rows, names)
    by_name = dict(zip(rows, labels, strict=True))
    return [by_name[name] for name in names]


def _check_same_names(path: Path, rows: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a table of which it is not certain which label is whose."""
    in_table, in_data = set(rows), set(names)
    faults = (
        (_first_again(rows), 'stands more than once in its column "row"'),
        (_first_again(names), "is the name of more than one row of the data"),
        (next((name for name in names if name not in in_table), None), 'is missing from its column "row"'),
        (next((name for name in rows if name not in in_data), None), "is missing from the data"),
    )
    for name, told in faults:
        if name is not None:
            raise InputFileError(
                f"{path}: the row {name!r} {told}, and so it is open which label is whose. Give each row of the "
                f'data once, by its name, or remove the column "{ROW_COLUMN}" to have labels taken in order.'
            )


def _first_again(names: Sequence[str]) -> str | None:
    """Return the first name that was there before."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def read_columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of a CSV or TSV file with a header."""
    if path.suffix not in DELIMITERS:
        raise InputFileError(f"{path}: the table must end in .csv or .tsv.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            records = [record for record in csv.reader(file, delimiter=DELIMITERS[path.suffix]) if record]
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputFileError(f"{path}: this is no table of text in UTF-8 ({error}).") from error
    if len(records) < 2:
        raise InputFileError(f"{path}: the table needs a header and at least one record.")
    head, *lines = records
    for number, line in enumerate(lines, start=2):
        if len(line) != len(head):
            raise InputFileError(f"{path}: record {number} has {len(line)} fields, but the header has {len(head)}.")
    return {name: [line[place] for line in lines] for place, name in enumerate(head)}


def fitting(path: Path, values: list[str], n_rows: int) -> list[str]:
    """Return the entries of a file, or refuse another number of them than there are rows."""
    if len(values) != n_rows:
        raise InputFileError(
            f"{path}: there are {len(values):,} entries, but {n_rows:,} rows. Give one for each row, in their order."
        )
    return values
