"""Reading texts from a file with one per line, a folder of files, or a column of CSV, TSV or JSON lines."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple

from mmpca.errors import InputFileError
from mmpca.io.delimited import read_records
from mmpca.io.streams import COMPRESSED_SUFFIXES, input_error, read_text, suffix, text_lines
from mmpca.io.table import Names, as_names

_TEXT_COLUMNS = ("text", "texts", "document", "content", "body", "abstract", "report")
_NAME_COLUMNS = ("id", "name", "key")
_JSON_SUFFIXES = (".jsonl", ".ndjson")


class Texts(NamedTuple):
    """Texts with their names.

    Attributes
    ----------
    texts : list of str, length n_texts
    names : ndarray of str objects, shape (n_texts,)
        Names of the files, values of a column "id", "name" or "key", or else numbers of lines or records, from 1.
    """

    texts: list[str]
    names: Names


def read_texts(path: str | Path, *, column: str | None = None) -> Texts:
    r"""Read texts from a file or a folder.

    Parameters
    ----------
    path : str or Path
        A folder with ``.txt`` files, also in subfolders; a ``.csv`` or ``.tsv`` file with a header; a ``.jsonl`` file
        with one object per line; or any other file with one text per line, empty lines ignored. Files may be
        compressed with gzip, bzip2 or xz.
    column : str, optional
        The column or key that holds the texts. By default, "text" or a similar name, or the only one.

    Returns
    -------
    Texts
        `texts`, a list of str, and `names`, an array of str objects of the same length.

    Raises
    ------
    InputFileError
        If the texts cannot be read; `path` and `line` locate the error.

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
    if os.path.isdir(path):  # unlike Path.is_dir, it never raises
        if column is not None:
            raise input_error(path, f"a folder of texts has no column {column!r}. Omit column.")
        return _read_folder(path)
    content = read_text(path)
    if suffix(path) in _JSON_SUFFIXES:
        return _read_json(path, content, column)
    if suffix(path) in (".csv", ".tsv") or column is not None:
        return _read_column(path, content, column)
    lines = [(number, line) for number, line in enumerate(text_lines(content), start=1) if line.strip()]
    return _check_texts(path, [line for _, line in lines], [number for number, _ in lines])


def _check_texts(path: Path, texts: Sequence[str], names: Sequence[object]) -> Texts:
    """Return texts with their names, or raise InputFileError if there are none."""
    if not any(text.strip() for text in texts):
        raise _no_texts(path)
    return Texts(list(texts), as_names([str(name) for name in names]))


def _no_texts(path: Path) -> InputFileError:
    return input_error(path, "there are no texts. Check the step that wrote them.")


def _read_folder(folder: Path) -> Texts:
    """Return the contents of the text files in a folder, named by their relative paths without the suffix."""
    suffixes = tuple(f".txt{packed}" for packed in ("", *COMPRESSED_SUFFIXES))
    paths = sorted(path for path in folder.rglob("*.txt*") if path.name.endswith(suffixes) and path.is_file())
    if not paths:
        counted = Counter(path.suffix or path.name for path in folder.rglob("*") if path.is_file())
        found = ", ".join(f"{number} {kind}" for kind, number in counted.most_common(3))
        others = f" (but {found})" if found else ""
        raise input_error(folder, f"there are no .txt files in the folder{others}. Pass the folder that contains them.")
    names = [path.relative_to(folder).as_posix().partition(".txt")[0] for path in paths]
    return _check_texts(folder, [read_text(path) if path.stat().st_size else "" for path in paths], names)


# --- columns ----------------------------------------------------------------------------------------------------


def _read_column(path: Path, content: str, column: str | None) -> Texts:
    """Return a column of a delimited file, whose fields may span several lines."""
    delimiter = "\t" if suffix(path) == ".tsv" else max(",;\t|", key=text_lines(content)[0].count)
    records = [fields for _, fields in read_records(path, io.StringIO(content, newline=""), delimiter)]
    if not records:
        raise _no_texts(path)
    header, body = records[0], records[1:]
    position = header.index(_choose_column(path, header, column))
    named = next((header.index(name) for name in header if name.lower() in _NAME_COLUMNS and name != column), None)
    names = range(1, len(body) + 1) if named is None else [record[named] for record in body]
    return _check_texts(path, [record[position] for record in body], list(names))


def _choose_column(path: Path, header: Sequence[str], column: str | None) -> str:
    """Return the name of the column of texts."""
    if column is not None and column in header:
        return column
    likely = [name for name in header if name.lower() in _TEXT_COLUMNS]
    if column is None and (len(likely) == 1 or len(header) == 1):
        return (likely or list(header))[0]
    wanted = "one column of texts" if column is None else f"a column {column!r}"
    shown = ", ".join(short_repr(name) for name in header[:20])
    raise input_error(
        path,
        f"expected {wanted}, but the columns are {shown}. Choose one with --text-column or, in Python, column.",
    )


# --- JSON lines -------------------------------------------------------------------------------------------------


def _read_json(path: Path, content: str, column: str | None) -> Texts:
    """Return the values of a key of the objects, one per line."""
    lines = [(number, line) for number, line in enumerate(text_lines(content), start=1) if line.strip()]
    objects = [(number, _parse_object(path, number, line)) for number, line in lines]
    if not objects:
        raise _no_texts(path)
    key = _choose_column(path, list(objects[0][1]), column)
    texts = [_text_of(path, number, item, key) for number, item in objects]
    named = next((name for name in objects[0][1] if name.lower() in _NAME_COLUMNS and name != key), None)
    names = [number if named is None else item.get(named, number) for number, item in objects]
    return _check_texts(path, texts, names)


def _parse_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise input_error(path, f"expected a JSON object ({error}). Write one per line.", line=number) from error
    if not isinstance(item, dict):
        raise input_error(path, f"expected a JSON object, but found {short_repr(item)}.", line=number)
    return item


def _text_of(path: Path, number: int, item: dict[str, Any], key: str) -> str:
    text = item.get(key)
    if not isinstance(text, str):
        found = "none" if key not in item else short_repr(text)
        raise input_error(path, f"expected a text under {key!r}, but found {found}. Correct the line.", line=number)
    return text
