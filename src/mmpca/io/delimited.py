"""CSV and TSV files: their layout, their records, tables with a column for each feature, and writing columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import is_number, whole_numbers
from mmpca.io.streams import decode, input_error, open_text, read_line, split_line, suffix, text_blocks, text_lines
from mmpca.io.table import CountsBuilder, CountTable, Request, check_sizes, finish_table, parse_count, with_taxonomy

_DELIMITERS = ("\t", ",", ";", "|", " ")
_EXPECTED_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_N_SAMPLE_LINES = 50
LEAST_NUMBERS = 0.2  # of the fields of a table separated by spaces

_ROW_WORDS = {"row", "i", "doc", "document", "sample", "site", "cell", "barcode", "observation", "id", "text", "plot"}
_FEATURE_WORDS = {"feature", "column", "j", "word", "term", "token", "species", "taxon", "otu", "asv", "gene", "item"}
_COUNT_WORDS = {"count", "n", "value", "freq", "frequency", "abundance", "number", "tf", "x"}
_INDEX_WORDS = _ROW_WORDS | {"name", "names", "index", "rowname", "rownames", "otu", "otu id", "asv", "feature"}
# Titles of the names in tables with a row for each feature, and of a last column that describes the features.
_FEATURE_TITLES = {
    "#otu id",
    "otu id",
    "otu_id",
    "#otuid",
    "otuid",
    "#asv id",
    "asv id",
    "asv_id",
    "feature id",
    "#name",
}
_TAXONOMY_TITLES = {"taxonomy", "taxon", "consensus lineage", "consensuslineage", "lineage", "classification"}


# --- layout -----------------------------------------------------------------------------------------------------


class Dialect(NamedTuple):
    """The layout of a delimited file."""

    delimiter: str
    header: list[str] | None  # None if the first line already holds counts
    has_names: bool  # whether the first column names the rows
    n_fields: int  # on every line below the header
    n_skipped: int  # comment lines before the header
    first_row: list[str]  # below the header
    note: str = ""  # on a first line that may or may not be a header
    taxonomy_at: int | None = None  # the column that describes the rows, which are features: 1, or -1 for the last

    @property
    def first_line(self) -> int:
        """Number of the first line of data, counted from 1."""
        return self.n_skipped + (self.header is not None) + 1

    @property
    def n_counts(self) -> int:
        """Number of columns that hold counts."""
        return self.n_fields - self.has_names - (self.taxonomy_at is not None)

    def counts_of(self, fields: list[str]) -> list[str]:
        """Return the fields, or the titles, that belong to counts."""
        first = self.has_names + (self.taxonomy_at == 1)
        return fields[first : first + self.n_counts]

    @property
    def has_features_as_rows(self) -> bool:
        """Whether titles say that the rows are features."""
        return self.taxonomy_at is not None or (
            self.header is not None and self.header[0].strip().lower() in _FEATURE_TITLES
        )


def detect_dialect(path: Path, *, as_triples: bool = False, encoding: str | None = None) -> Dialect:
    """Detect the layout of a delimited file, which holds triples for sure if `as_triples`, from its first lines."""
    lines, n_skipped = _sample_lines(path, encoding)
    delimiter = _detect_delimiter(path, lines, n_skipped)
    rows = [split_line(line, delimiter) for line in lines]
    _check_not_prose(path, rows, delimiter)
    is_numbered = _is_numbered(rows, as_triples)
    header = rows[0] if is_numbered or _is_header(rows[0]) or _is_short_header(lines[0], rows) else None
    body = rows[1:] if header is not None else rows
    if not body:
        raise input_error(
            path,
            "expected counts below the header, but the file ends there. Add them; if the file holds texts, use --text "
            "or, in Python, mmpca.text.read_texts.",
            line=n_skipped + 2,
        )
    n_fields = len(body[0])
    if header is not None and len(header) == n_fields - 1:
        header = ["", *header]  # R leaves out the title of the column of names
    if header is not None and len(header) != n_fields:
        raise input_error(
            path,
            f"expected {len(header)} fields, as in the header, but found {n_fields}. Correct the line or the header; "
            "if the file holds one text per line, use --text or, in Python, mmpca.text.read_texts.",
            line=n_skipped + 2,
        )
    has_names = has_name_column(header, body)
    taxonomy_at = None
    if header is not None and has_names:
        taxonomy_at = next((at for at in (-1, 1) if n_fields > 2 and _is_taxonomy(header, body, at)), None)
    shown = ", ".join(rows[0][:4]) + (", ..." if len(rows[0]) > 4 else "")
    note = ""
    if is_numbered:
        note = f"The first line ({shown}) was read as a header. If it holds counts, add a header above it."
    elif header is None and _is_ascending(rows[0][has_names:]):
        note = (
            f"The first line ({shown}) was read as counts. If these numbers are titles of the columns, replace them "
            "with words."
        )
    elif header is not None and has_names and _is_unnamed(header[0]):
        note = f"The first column, {header[0].strip()!r}, was read as the names of the rows."
    elif header is not None and n_fields == 3 and not has_names and _are_sorted(body):
        note = "Read as a table with three features. If its columns are row, feature and count, choose format triples."
    return Dialect(delimiter, header, has_names, n_fields, n_skipped, body[0], note, taxonomy_at)


def _check_not_prose(path: Path, rows: Sequence[Sequence[str]], delimiter: str) -> None:
    """Raise InputFileError for lines of words, which are not a table separated by spaces."""
    fields = [field for row in rows[1:] or rows for field in row]
    if delimiter == " " and sum(map(is_number, fields)) < LEAST_NUMBERS * len(fields):
        raise input_error(
            path,
            "expected a table of counts, but found text. If the file holds texts, use --text for one per line, or "
            "--per paragraph or --per file; in Python, use mmpca.text.read_texts.",
            line=1,
        )


def find_triple_columns(header: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the positions of row, feature and count by their titles, None unless there is one of each."""
    words = [_normalize(name) for name in header]
    found = [[p for p, word in enumerate(words) if word in kind] for kind in (_ROW_WORDS, _FEATURE_WORDS, _COUNT_WORDS)]
    return (found[0][0], found[1][0], found[2][0]) if all(len(positions) == 1 for positions in found) else None


def _normalize(title: str) -> str:
    """Return the essential word of a title: "doc" for "Doc_ID" and for "docs"."""
    word = title.strip().lower().removeprefix("#").strip().replace("-", "_")
    for ending in ("_id", "id", "_name", "s"):
        if len(word) > len(ending) + 1:
            word = word.removesuffix(ending)
    return word


def _sample_lines(path: Path, encoding: str | None) -> tuple[list[str], int]:
    """Return the first lines after leading comments and blank lines, and the number of those."""
    sample: list[str] = []
    n_skipped = n_bytes = 0
    with open_text(path, encoding) as stream:
        # Very long lines: at least a header and a line below it.
        while len(sample) < _N_SAMPLE_LINES and (n_bytes < 2**16 or len(sample) < 2):
            number = n_skipped + len(sample) + 1
            if not (content := read_line(path, stream, number)):
                break
            line = decode(path, content, number).removesuffix("\n").removesuffix("\r")
            is_hint = re.fullmatch('"?sep=.?"?', line)  # names the delimiter to Excel
            if not sample and (line.startswith("# ") or not line.strip() or is_hint):
                n_skipped += 1
            else:
                sample.append(line)
                n_bytes += len(content)
    if not sample:
        raise input_error(path, "the file holds no data. Check the step that wrote it.")
    return [line for line in sample if line.strip()], n_skipped


def _detect_delimiter(path: Path, lines: list[str], n_skipped: int) -> str:
    """Return the delimiter that the suffix suggests if it fits, else the one that gives the most regular fields."""
    rows = {delimiter: [split_line(line, delimiter) for line in lines] for delimiter in _DELIMITERS}
    expected = _EXPECTED_DELIMITERS.get(suffix(path))
    if expected is not None and len({len(row) for row in rows[expected]}) == 1 < len(rows[expected][0]):
        return expected
    best = max(_DELIMITERS, key=lambda delimiter: _regularity(rows[delimiter]))  # the first one in a tie
    if max(len(row) for row in rows[best]) == 1:
        raise input_error(
            path,
            f"expected columns separated by tab, comma, semicolon, bar or space, but found "
            f"{short_repr(lines[-1])}. If the file holds texts, use --text or, in Python, mmpca.text.read_texts.",
            line=n_skipped + 1,
        )
    return best


def _regularity(rows: list[list[str]]) -> tuple[int, int, int]:
    """Return the number of lines with the most common number of fields, of fields that are numbers, and of fields."""
    sizes = Counter(len(row) for row in rows if len(row) > 1)
    size, n_lines = sizes.most_common(1)[0] if sizes else (1, 0)
    return n_lines, sum(is_number(field) for row in rows for field in row), size


def _is_header(fields: Sequence[str]) -> bool:
    """Return True if a first line holds titles: a field that is not a number, except in the names of a triple."""
    if len(fields) == 3 and fields[0].strip() and is_number(fields[2]):
        return False
    return not fields[0].strip() or any(not is_number(field) and field.strip() for field in fields[1:])


def _is_short_header(line: str, rows: Sequence[Sequence[str]]) -> bool:
    """Return True for a first line as R writes it, with titles for all columns but that of the names."""
    if {len(row) for row in rows[1:]} != {len(rows[0]) + 1}:
        return False
    return line.startswith('"') or not any(is_number(row[0]) for row in rows[1:])


def _is_numbered(rows: Sequence[Sequence[str]], as_triples: bool) -> bool:
    """Return True if the first line has numbers as titles: 0, 1, 2, ..., as pandas writes, or any after a title.

    A word is the title of the names if it is one of those used for that, or if the names below it are numbers.
    """
    titles = [field.strip() for field in rows[0]]
    names = [row[0].strip() for row in rows[1:]]
    if not as_triples and names and len(titles) > 2 and not is_number(titles[0]):
        is_title = _normalize(titles[0]) in _INDEX_WORDS | _FEATURE_WORDS or titles[0].lower() in _FEATURE_TITLES
        is_title |= all(is_number(name) for name in names)
        is_table = len(titles) > 3 or len(set(names)) == len(names)  # triples repeat the names of rows
        if is_title and is_table and all(is_number(title) for title in titles[1:]):
            return True
    if titles and not is_number(titles[0]) and not as_triples:
        titles = titles[1:]  # without the title of the names
    if len(rows) == 1 or len(titles) < 2 or titles != [str(number) for number in range(len(titles))]:
        return False
    # "0,1,2" may also say that feature 1 was counted twice in row 0.
    return not as_triples or not all(is_number(field) for field in rows[1][:2])


def _is_ascending(fields: Sequence[str]) -> bool:
    """Return True if the numbers of a line ascend as numbered titles do and counts hardly ever do."""
    if len(fields) < 3 or not all(field.strip().isdecimal() for field in fields):
        return False
    steps = np.diff([float(field) for field in fields])
    return bool(np.all(steps == 1) or (len(fields) >= 5 and np.all(steps > 0)))


def _are_sorted(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first column never descends: row numbers of triples hardly ever do, counts soon do."""
    first = [float(row[0]) for row in rows if is_number(row[0])]
    return len(first) >= 5 and first == sorted(first)


def _is_unnamed(title: str) -> bool:
    """Return True for the title that pandas gives to an index it has written and read again."""
    return title.strip().lower().startswith("unnamed: ")


def _is_taxonomy(header: Sequence[str], body: Sequence[Sequence[str]], at: int) -> bool:
    """Return True if a column describes the rows, by its title and because it is not made of numbers."""
    return header[at].strip().lower() in _TAXONOMY_TITLES and not any(is_number(row[at]) for row in body)


def has_name_column(header: Sequence[str] | None, body: Sequence[Sequence[str]]) -> bool:
    """Return True if the first column names the rows, by its title or because most of its fields are not numbers."""
    if header is not None and (
        not header[0].strip() or _is_unnamed(header[0]) or _normalize(header[0]) in _INDEX_WORDS
    ):
        return True
    return 2 * sum(not is_number(row[0]) for row in body) > len(body)


# --- records ----------------------------------------------------------------------------------------------------


def read_records(
    path: Path, lines: Iterable[str], delimiter: str, *, n_fields: int = 0, first_line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of each record, or raise InputFileError for a malformed one; skip empty lines.

    Lines have their ends, and a quoted field may span several of them. The number of fields is that of the first
    record unless `n_fields` is given. `first_line` is the number of the first line.
    """
    limit = csv.field_size_limit(2**31 - 1)  # texts may be longer than the default of 128 kB
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = first_line
    try:
        for fields in reader:
            if fields:
                n_fields = n_fields or len(fields)
                if len(fields) != n_fields:
                    raise input_error(
                        path,
                        f"expected {n_fields} fields, but found {len(fields)}. All lines must have the same number of "
                        "fields; quote fields that contain the delimiter or line breaks.",
                        line=line,
                    )
                yield line, fields
            line = first_line + reader.line_num
    except csv.Error as error:
        raise input_error(path, f"the record cannot be parsed: {error}. Check the quotes.", line=line) from error
    finally:
        csv.field_size_limit(limit)


def lines_with_ends(text: str) -> Iterator[str]:
    """Yield the lines of a text with their ends; whitespace on blank lines is dropped."""
    return (f"{line}\n" if line.strip() else "\n" for line in text.removesuffix("\n").split("\n"))


def format_columns(columns: Mapping[str, Sequence[Any]], delimiter: str = ",") -> bytes:
    r"""Format columns of equal length as a CSV or TSV file with a header.

    The encoding is UTF-8; bytes of names that are not UTF-8 are kept.

    Examples
    --------
    >>> format_columns({"row": ["a,b", "c"], "cluster": [0, 1]})
    b'row,cluster\n"a,b",0\nc,1\n'
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue().encode("utf-8", errors="surrogateescape")


# --- tables -----------------------------------------------------------------------------------------------------


def read_table(request: Request) -> CountTable:
    """Read a table with or without a header, and with or without a first column of names."""
    path, dialect = request.path, detect_dialect(request.path, encoding=request.encoding)
    transposed = dialect.has_features_as_rows if request.transpose is None else request.transpose
    builder = CountsBuilder(transposed)
    names: list[str] = []
    taxonomy: list[str] = []
    n_rows = 0
    for line, text in text_blocks(path, dialect.first_line, request.block_size, request.encoding):
        counts = _parse_block(path, text, line, dialect, names, taxonomy)  # (n, v)
        rows, columns = np.nonzero(counts)
        builder.add(rows + n_rows, columns, counts[rows, columns])
        n_rows += len(counts)
        check_sizes(path, (n_rows, 1), builder.n_entries)
    X = builder.build((n_rows, dialect.n_counts))
    header = None if dialect.header is None else dialect.counts_of(dialect.header)
    table = finish_table(request, X, names if dialect.has_names else None, header, transposed=transposed)
    if dialect.note:
        table.notes.insert(0, dialect.note)
    return table if dialect.taxonomy_at is None else with_taxonomy(table, taxonomy, transposed)


def _parse_block(
    path: Path, text: str, first_line: int, dialect: Dialect, names: list[str], taxonomy: list[str]
) -> NDArray[np.int32]:
    """Return the counts of a block, (n, v), and append names and descriptions of its rows to the lists, in place."""
    lines = [line for line in text_lines(text) if line.strip()]
    n_features = dialect.n_counts
    if not lines:
        return np.empty((0, n_features), dtype=np.int32)
    if dialect.has_names:
        pairs = [_split_name(line, dialect.delimiter) for line in lines]
        names += [name for name, _ in pairs]
        lines = [rest for _, rest in pairs]
    if dialect.taxonomy_at is not None:
        split = _split_name if dialect.taxonomy_at == 1 else _split_last
        pairs = [split(line, dialect.delimiter) for line in lines]
        taxonomy += [own for own, _ in pairs]
        lines = [rest for _, rest in pairs]
    counts = None
    if all(lines):  # loadtxt skips lines without fields, which names alone leave
        try:
            values = np.loadtxt(lines, np.float64, delimiter=dialect.delimiter, comments=None, quotechar='"', ndmin=2)
            counts = whole_numbers(values.ravel()) if values.shape == (len(lines), n_features) else None
        except ValueError:
            pass
    if counts is None:
        raise _find_error(path, text, first_line, dialect)
    return counts.reshape(-1, n_features)


def _split_name(line: str, delimiter: str) -> tuple[str, str]:
    """Return the first field of a line and the rest of the line."""
    if not line.startswith('"'):
        name, _, rest = line.partition(delimiter)
        return name, rest
    name = split_line(line, delimiter)[0]
    # The line has two quotes more than the name, and doubles those within it.
    return name, line[len(name) + name.count('"') + 2 :].removeprefix(delimiter)


def _split_last(line: str, delimiter: str) -> tuple[str, str]:
    """Return the last field of a line and the line without it."""
    if not line.endswith('"'):
        rest, _, last = line.rpartition(delimiter)
        return last, rest
    last = split_line(line, delimiter)[-1]
    return last, line[: -len(last) - last.count('"') - 2].removesuffix(delimiter)


def _find_error(path: Path, text: str, first_line: int, dialect: Dialect) -> Exception:
    """Raise InputFileError for the first invalid field of a block that could not be parsed."""
    records = read_records(
        path, lines_with_ends(text), dialect.delimiter, n_fields=dialect.n_fields, first_line=first_line
    )
    for line, fields in records:
        first = dialect.has_names + (dialect.taxonomy_at == 1)
        for column, field in enumerate(dialect.counts_of(fields), start=first):
            title = "" if dialect.header is None else f" ({dialect.header[column]})"
            parse_count(path, field, f"column {column + 1}{title}: ", line=line)
    return input_error(path, "the lines from here on cannot be read as a table of counts.", line=first_line)
