"""Texts in files: a folder, a column of a table, or lines, paragraphs or the whole of a file of plain text."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import NamedTuple

from mmpca.io.columns import JSON_SUFFIXES, is_json_array, is_workbook, read_columns
from mmpca.io.streams import COMPRESSED_SUFFIXES, first_bytes, input_error, read_text, suffix, text_lines
from mmpca.io.table import Names, as_names

_TEXT_COLUMNS = ("text", "texts", "document", "content", "body", "abstract", "report")
_NAME_COLUMNS = ("id", "name", "key")
_TXT = (".txt",)
_OTHER_TEXT = (".text", ".md", ".markdown", ".rst", ".tex", ".org", ".adoc", ".asc")  # in folders without .txt
_UNITS = ("line", "paragraph", "file")


class Texts(NamedTuple):
    """Texts with their names.

    Attributes
    ----------
    texts : list of str, length n_texts
    names : ndarray of str objects, shape (n_texts,)
        Names of the files, values of the column of names, or else numbers of lines or records, from 1.
    notes : list of str
        Remarks on how the files were interpreted, one sentence each.
    """

    texts: list[str]
    names: Names
    notes: list[str]


def read_texts(
    path: str | Path,
    *,
    column: str | None = None,
    id_column: str | None = None,
    per: str | None = None,
    glob: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Texts:
    r"""Read texts from a file or a folder.

    Parameters
    ----------
    path : str or Path
        A folder with a file for each text, also in subfolders; a table with a column of texts (CSV or TSV with a
        header, Excel, Parquet, a JSON array of objects, or JSONL with one object per line); or any other file, with
        one text per line, empty lines ignored. Text files may be compressed with gzip, bzip2 or xz.
    column : str, optional
        The column or key that holds the texts. By default, "text" or a similar name, or the only one.
    id_column : str, optional
        The column or key that names the texts. By default, "id", "name" or "key", or else texts are numbered.
    per : {"line", "paragraph", "file"}, optional
        The unit that makes up one text in a plain-text file: a line (the default), a paragraph that ends at a blank
        line, or the whole file.
    glob : str, optional
        Pattern of the files to read in a folder, such as ``"*.html"``. By default, those that end in ``.txt`` or,
        if there are none, in ``.md``, ``.rst`` and the like.
    encoding : str, optional
        Encoding of text files. Detected for each file by default: UTF-8, UTF-16 or Windows-1252.
    sheet : str, optional
        The sheet of an Excel workbook. By default, the first.

    Returns
    -------
    Texts
        `texts`, a list of str; `names`, an array of str objects of the same length; and `notes`, a list of str.

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
    Texts(texts=['benign', 'malign, grade 2'], names=array(['A7', 'B2'], dtype=object), notes=[])
    """
    path = Path(path)
    if per is not None and per not in _UNITS:
        raise input_error(path, f"per must be one of {', '.join(_UNITS)}, but it is {per!r}.")
    if os.path.isdir(path):  # unlike Path.is_dir, it never raises
        for name, value in (("column", column), ("id_column", id_column), ("per", per), ("sheet", sheet)):
            if value is not None:
                raise input_error(path, f"a folder holds one file per text, so {name} does not apply. Omit it.")
        return _read_folder(path, glob, encoding)
    if glob is not None:
        raise input_error(path, "glob chooses files in a folder, but this is a file. Omit it.")
    if column is not None or id_column is not None or _is_table(path):
        return _read_column(path, column, id_column, encoding, sheet)
    return _read_plain(path, per, encoding)


def _is_table(path: Path) -> bool:
    """Return True for a file that has columns; plain text with commas has none."""
    if suffix(path) in (".csv", ".tsv", ".xlsx", ".parquet", *JSON_SUFFIXES):
        return True
    is_file = os.path.isfile(path)
    if suffix(path) == ".json":
        return is_file and is_json_array(path, first_bytes(path, 2**10).decode("latin-1"))
    return is_file and (is_workbook(path) or first_bytes(path).startswith(b"PAR1"))


def _named_texts(path: Path, texts: Sequence[str], names: Sequence[object], notes: list[str]) -> Texts:
    """Return texts with their names, or raise InputFileError if there are none."""
    if not any(text.strip() for text in texts):
        raise input_error(path, "there are no texts. Check the step that wrote them.")
    return Texts(list(texts), as_names([str(name) for name in names]), notes)


def _read_plain(path: Path, per: str | None, encoding: str | None) -> Texts:
    """Return the lines, the paragraphs or the whole of a file, named by their first lines or by the file."""
    notes: list[str] = []
    content = read_text(path, encoding=encoding, notes=notes)
    if per == "file":
        return _named_texts(path, [content], [path.name.split(".")[0]], notes)
    lines = text_lines(content)
    starts = [
        n for n, line in enumerate(lines) if line.strip() and (per != "paragraph" or not n or not lines[n - 1].strip())
    ]
    if per == "paragraph":
        ends = [*starts[1:], len(lines)]
        texts = ["\n".join(lines[start:end]).rstrip() for start, end in zip(starts, ends, strict=True)]
    else:
        texts = [lines[n] for n in starts]
    if per is None:
        notes.append(
            f"{path.name}: read as {len(texts):,} {'text' if len(texts) == 1 else 'texts'}, one per line. To choose "
            "the unit, use --per line, paragraph or file."
        )
    return _named_texts(path, texts, [n + 1 for n in starts], notes)


def _read_folder(folder: Path, glob: str | None, encoding: str | None) -> Texts:
    """Return the contents of the text files in a folder, named by their relative paths without the suffix."""
    found = sorted(path for path in folder.rglob(glob or "*") if path.is_file())
    found = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    chosen = found if glob else [path for path in found if suffix(path) in _TXT]
    chosen = chosen or [path for path in found if suffix(path) in _OTHER_TEXT]
    kinds = Counter(suffix(path) or path.name for path in found if path not in set(chosen))
    others = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common(3))
    if not chosen:
        wanted = f"files like {glob!r}" if glob else "files with texts, such as .txt or .md,"
        there = f" (but {others})" if others else ""
        raise input_error(
            folder, f"there are no {wanted} in the folder{there}. Choose files with --glob, such as '*.html'."
        )
    notes = [f"{folder.name}: other files ({others}) are not read. Choose files with --glob."] if others else []
    guesses: list[str] = []
    texts = [read_text(path, encoding=encoding, notes=guesses) if path.stat().st_size else "" for path in chosen]
    if len(guesses) > 1:
        guesses = [
            f"{folder.name}: {len(guesses)} of {len(chosen)} files are not UTF-8 and were read as Windows-1252 "
            "(cp1252). If letters look wrong, specify their encoding with --encoding."
        ]
    return _named_texts(folder, texts, _file_names(folder, chosen), notes + guesses)


def _file_names(folder: Path, paths: Sequence[Path]) -> list[str]:
    """Return the relative paths without suffixes, or with them if that makes them unique."""
    packed = "|".join(re.escape(ending) for ending in COMPRESSED_SUFFIXES)
    full = [re.sub(rf"({packed})$", "", path.relative_to(folder).as_posix(), flags=re.IGNORECASE) for path in paths]
    short = [
        re.sub(rf"{re.escape(suffix(path))}$", "", name, flags=re.IGNORECASE)
        for path, name in zip(paths, full, strict=True)
    ]
    return short if len(set(short)) == len(short) else full


def _read_column(
    path: Path, column: str | None, id_column: str | None, encoding: str | None, sheet: str | None
) -> Texts:
    """Return a column of texts, and the column of their names."""
    notes: list[str] = []
    table = read_columns(path, encoding=encoding, sheet=sheet, notes=notes)
    if not table.numbers:
        raise input_error(path, "there are no texts. Check the step that wrote them.")
    title = _choose_column(path, table.titles, column)
    texts = []
    for number, text in zip(table.numbers, table.column(title), strict=True):
        if not isinstance(text, str):
            if text is None and suffix(path) not in (*JSON_SUFFIXES, ".json"):
                text = ""  # an empty cell
            else:
                raise input_error(
                    path,
                    f"expected a text under {title!r}, but found {short_repr(text)}. Correct it.",
                    **{table.unit: number},
                )
        texts.append(text)
    if id_column is not None and id_column not in table.titles:
        raise input_error(path, f"there is no column {id_column!r} for names. {_columns_are(table.titles)}")
    likely = (name for name in table.titles if name.lower() in _NAME_COLUMNS and name != title)
    named = id_column or next(likely, None)
    names = table.numbers if named is None else table.column(named)
    names = [number if name is None else name for number, name in zip(table.numbers, names, strict=True)]
    if id_column is not None and len({str(name) for name in names}) < len(names):
        repeated, times = Counter(str(name) for name in names).most_common(1)[0]
        notes.append(f"Names in the column {id_column!r} are not unique: {short_repr(repeated)} occurs {times} times.")
    return _named_texts(path, texts, names, notes)


def _choose_column(path: Path, titles: Sequence[str], column: str | None) -> str:
    """Return the title of the column of texts."""
    if column is not None and column in titles:
        return column
    likely = [name for name in titles if name.lower() in _TEXT_COLUMNS]
    if column is None and (len(likely) == 1 or len(titles) == 1):
        return (likely or list(titles))[0]
    wanted = "one column of texts" if column is None else f"a column {column!r}"
    raise input_error(
        path,
        f"expected {wanted}. {_columns_are(titles)} Choose one with --text-column or, in Python, column.",
    )


def _columns_are(titles: Sequence[str]) -> str:
    return f"The columns are {', '.join(short_repr(title) for title in titles[:20])}."
