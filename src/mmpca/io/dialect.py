"""How a delimited file is laid out: its delimiter, whether it has a header and a column of names."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from reprlib import repr as short_repr
from typing import NamedTuple

from mmpca.io.faults import refusal
from mmpca.io.streams import beginning, decode, ending, text_lines

_DELIMITERS = ("\t", ",", ";", "|", " ")
_PROMISED = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_SAMPLE_LINES = 50

_ROW_WORDS = {"row", "i", "doc", "document", "sample", "site", "cell", "barcode", "observation", "id", "text", "plot"}
_FEATURE_WORDS = {"feature", "column", "j", "word", "term", "token", "species", "taxon", "otu", "asv", "gene", "item"}
_COUNT_WORDS = {"count", "n", "value", "freq", "frequency", "abundance", "number", "tf", "x"}
_INDEX_WORDS = _ROW_WORDS | {"name", "names", "index", "rowname", "rownames", "otu id", "feature"}


class Dialect(NamedTuple):
    """The layout of a delimited file."""

    delimiter: str
    header: list[str] | None  # None: the first line holds counts already
    has_names: bool  # whether the first column names the rows
    n_fields: int  # of every line below the header
    n_skipped: int  # comment lines before the header
    first_row: list[str]  # below the header

    @property
    def first_line(self) -> int:
        """Number of the first line of data, from 1."""
        return self.n_skipped + (self.header is not None) + 1


def read_dialect(path: Path) -> Dialect:
    """Find out how a delimited file is laid out, from its first lines."""
    lines, n_skipped = _sample(path)
    delimiter = _delimiter(path, lines, n_skipped)
    rows = [split_line(line, delimiter) for line in lines]
    header = rows[0] if _is_header(rows[0]) else None
    body = rows[1:] if header is not None else rows
    if not body:
        raise refusal(
            path,
            "expected counts below the header, but the file ends there. Add them; if these are texts, give their "
            "folder, or say so: --text, in Python mmpca.text.CountTexts.",
            line=n_skipped + 2,
        )
    n_fields = len(body[0])
    if header is not None and len(header) == n_fields - 1:
        header = [""] + header  # R leaves out the name of the column of names
    if header is not None and len(header) != n_fields:
        raise refusal(
            path,
            f"expected {len(header)} fields, as in the header, but found {n_fields}. Correct the line or the header; "
            "if these are texts, one on each line, say so: --text, in Python mmpca.text.read_texts.",
            line=n_skipped + 2,
        )
    return Dialect(delimiter, header, _has_names(header, body), n_fields, n_skipped, body[0])


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line."""
    if '"' not in line:
        return line.split(delimiter)  # however long it is
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return line.split(delimiter)


def triple_columns(header: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the columns that a header calls row, feature and count; None if it does not, or calls several so."""
    words = [_word(name) for name in header]
    found = [[p for p, word in enumerate(words) if word in kind] for kind in (_ROW_WORDS, _FEATURE_WORDS, _COUNT_WORDS)]
    return (found[0][0], found[1][0], found[2][0]) if all(len(places) == 1 for places in found) else None


def is_number(text: str) -> bool:
    """Tell whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _word(name: str) -> str:
    """Return what a header's field says at its core: "doc" of "Doc_ID" and of "docs"."""
    word = name.strip().lower().removeprefix("#").strip().replace("-", "_")
    for suffix in ("_id", "id", "_name", "s"):
        if len(word) > len(suffix) + 1:
            word = word.removesuffix(suffix)
    return word


def _sample(path: Path) -> tuple[list[str], int]:
    """Return the first lines after comments, without line ends, and how many comments come before."""
    content = beginning(path)
    is_cut = len(content) == 2**16
    if is_cut and b"\n" in content:
        content = content[: content.rindex(b"\n") + 1]  # whole lines, whole characters
    elif is_cut:
        content = beginning(path, 2**26)
    lines = text_lines(decode(path, content))
    n_skipped = 0
    while n_skipped < len(lines) and lines[n_skipped].startswith("# "):
        n_skipped += 1
    sample = [line for line in islice(lines, n_skipped, n_skipped + _SAMPLE_LINES) if line.strip()]
    if not sample:
        raise refusal(path, "the file holds no data. Check the step that wrote it.")
    return sample, n_skipped


def _delimiter(path: Path, lines: list[str], n_skipped: int) -> str:
    """Return the delimiter that the ending promises if it fits, else the one that makes most sense of the lines."""
    rows = {delimiter: [split_line(line, delimiter) for line in lines] for delimiter in _DELIMITERS}
    promised = _PROMISED.get(ending(path))
    if promised is not None and len({len(row) for row in rows[promised]}) == 1 < len(rows[promised][0]):
        return promised
    best = max(_DELIMITERS, key=lambda delimiter: _merit(rows[delimiter]))  # of equals the first
    if max(len(row) for row in rows[best]) == 1:
        raise refusal(
            path,
            f"expected columns separated by tab, comma, semicolon, bar or space, but found "
            f"{short_repr(lines[-1])}. For raw texts see mmpca.text.",
            line=n_skipped + 1,
        )
    return best


def _merit(rows: list[list[str]]) -> tuple[int, int, int]:
    """Return how many lines have the same number of fields, of several; how many fields are numbers; that number."""
    sizes = Counter(len(row) for row in rows if len(row) > 1)
    size, n_lines = sizes.most_common(1)[0] if sizes else (1, 0)
    return n_lines, sum(is_number(field) for row in rows for field in row), size


def _is_header(fields: Sequence[str]) -> bool:
    """Tell whether a first line names columns: something in it, besides the names of a triple, is no number."""
    if len(fields) == 3 and fields[0].strip() and is_number(fields[2]):
        return False
    return not fields[0].strip() or any(not is_number(field) and field.strip() for field in fields[1:])


def _has_names(header: Sequence[str] | None, body: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first column names the rows: by what it is called, or because most of it is no numbers."""
    if header is not None and (not header[0].strip() or _word(header[0]) in _INDEX_WORDS):
        return True
    return 2 * sum(not is_number(row[0]) for row in body) > len(body)
