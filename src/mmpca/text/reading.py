"""Texts from a file with one on each line, a folder of files, or a column of CSV, TSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple

from mmpca.io.faults import refusal
from mmpca.io.streams import COMPRESSED_ENDINGS, decode, ending, open_stream, text_lines
from mmpca.io.table import Names, as_names

_TEXT_COLUMNS = ("text", "texts", "document", "content", "body", "abstract", "report")
_NAME_COLUMNS = ("id", "name", "key")
_JSON_ENDINGS = (".jsonl", ".ndjson")


class Texts(NamedTuple):
    """Texts with their names.

    Attributes
    ----------
    texts : list of str, length n_texts
    names : ndarray of str objects, shape (n_texts,)
        Names of files, values of a column "id", "name" or "key", or else numbers of lines or records, from 1.
    """

    texts: list[str]
    names: Names


def read_texts(path: str | Path, *, column: str | None = None) -> Texts:
    r"""Read texts from a file or a folder.

    Parameters
    ----------
    path : str or Path
        A folder, whose ``.txt`` files are taken with those of the folders within; a ``.csv`` or ``.tsv`` file with a
        header; a ``.jsonl`` file with an object on each line; or any other file with a text on each line, empty lines
        left out. Files may be compressed by gz, bz2 or xz.
    column : str, optional
        The column, or the key, that holds the texts; by default "text" or a like name, or the only one there is.

    Returns
    -------
    Texts
        `texts` and `names`.

    Raises
    ------
    InputFileError
        If there are no texts to be read; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mmpca.text import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "reports.csv"
    ...     _ = path.write_text("id,text\nA7,benign\nB2,\"malign, grade 2\"\n")
    ...     read_texts(path)
    Texts(texts=['benign', 'malign, grade 2'], names=array(['A7', 'B2'], dtype=object))
    """
    path = Path(path)
    if path.is_dir():
        if column is not None:
            raise refusal(path, f"a folder of texts has no column {column!r}. Leave it out.")
        return _read_folder(path)
    content = _read(path)
    if ending(path) in _JSON_ENDINGS:
        return _read_json(path, content, column)
    if ending(path) in (".csv", ".tsv") or column is not None:
        return _read_delimited(path, content, column)
    lines = [(number, line) for number, line in enumerate(text_lines(content), start=1) if line.strip()]
    return _texts(path, [line for _, line in lines], [number for number, _ in lines])


def _texts(path: Path, texts: Sequence[str], names: Sequence[object]) -> Texts:
    """Return texts with their names, unless there are none."""
    if not any(text.strip() for text in texts):
        raise refusal(path, "there are no texts in it. Check the step that wrote it.")
    return Texts(list(texts), as_names([str(name) for name in names]))


def _read(path: Path) -> str:
    with open_stream(path) as stream:
        return decode(path, stream.read())


def _read_folder(folder: Path) -> Texts:
    """Return the contents of the text files of a folder, named by their paths in it without the ending."""
    endings = tuple(f".txt{packed}" for packed in ("", *COMPRESSED_ENDINGS))
    paths = sorted(path for path in folder.rglob("*.txt*") if path.name.endswith(endings) and path.is_file())
    if not paths:
        there = Counter(path.suffix or path.name for path in folder.rglob("*") if path.is_file())
        found = ", ".join(f"{number} {suffix}" for suffix, number in there.most_common(3))
        others = f" (there are {found})" if found else ""
        raise refusal(folder, f"there are no .txt files in the folder{others}. Give the folder that holds them.")
    names = [path.relative_to(folder).as_posix().partition(".txt")[0] for path in paths]
    return _texts(folder, [_read(path) if path.stat().st_size else "" for path in paths], names)


# --- columns --------------------------------------------------------------------------------------


def _read_delimited(path: Path, content: str, column: str | None) -> Texts:
    """Return a column of a delimited file; its fields may go over several lines."""
    header_line = text_lines(content)[0]
    delimiter = "\t" if ending(path) == ".tsv" else max(",;\t|", key=header_line.count)
    with _fields_of_any_length():
        records = list(_records(path, content, delimiter))
    header, body = records[0], records[1:]
    place = header.index(_column(path, header, column))
    named = next((header.index(name) for name in header if name.lower() in _NAME_COLUMNS and name != column), None)
    names = range(1, len(body) + 1) if named is None else [record[named] for record in body]
    return _texts(path, [record[place] for record in body], list(names))


@contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """Let the csv module read texts beyond 128 kB."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _records(path: Path, content: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the records of a delimited file, all as long as the first."""
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    n_fields, first_line = None, 1
    try:
        for record in reader:
            n_fields = n_fields or len(record)
            if len(record) not in (0, n_fields):
                raise refusal(
                    path,
                    f"expected {n_fields} fields, as in the header, but found {len(record)}. Texts with the delimiter "
                    "or line breaks in them need quotes.",
                    line=first_line,
                )
            if record:
                yield record
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise refusal(path, f"cannot be read from here on: {error}. Check the quotes.", line=first_line) from error


def _column(path: Path, header: Sequence[str], column: str | None) -> str:
    """Return the name of the column of texts."""
    if column is not None and column in header:
        return column
    likely = [name for name in header if name.lower() in _TEXT_COLUMNS]
    if column is None and (len(likely) == 1 or len(header) == 1):
        return (likely or list(header))[0]
    wanted = "one column of texts" if column is None else f"a column {column!r}"
    shown = ", ".join(short_repr(name) for name in header[:20])
    raise refusal(
        path, f"expected {wanted}, but the columns are {shown}. Name one of them: --text-column, in Python column."
    )


# --- JSON lines -----------------------------------------------------------------------------------


def _read_json(path: Path, content: str, column: str | None) -> Texts:
    """Return the values of a key, of the object on each line."""
    lines = [(number, line) for number, line in enumerate(text_lines(content), start=1) if line.strip()]
    objects = [(number, _parse_object(path, number, line)) for number, line in lines]
    if not objects:
        raise refusal(path, "there are no texts in it. Check the step that wrote it.")
    key = _column(path, list(objects[0][1]), column)
    texts = [_text_of(path, number, item, key) for number, item in objects]
    named = next((name for name in objects[0][1] if name.lower() in _NAME_COLUMNS and name != key), None)
    names = [number if named is None else item.get(named, number) for number, item in objects]
    return _texts(path, texts, names)


def _parse_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"expected a JSON object ({error}). Write one on each line.", line=number) from error
    if not isinstance(item, dict):
        raise refusal(path, f"expected a JSON object, but found {short_repr(item)}.", line=number)
    return item


def _text_of(path: Path, number: int, item: dict[str, Any], key: str) -> str:
    text = item.get(key)
    if not isinstance(text, str):
        found = "none" if key not in item else short_repr(text)
        raise refusal(path, f"expected a text under {key!r}, but found {found}. Correct the line.", line=number)
    return text
