"""Names of rows and features: given, in files of their own beside the counts, or in the file of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import NamedTuple

from scipy import sparse

from mmpca.io.dialect import split_line
from mmpca.io.faults import refusal
from mmpca.io.streams import COMPRESSED_ENDINGS, decode, ending, open_stream, stem, text_lines
from mmpca.io.table import CountTable, Names, NamesOrFile, Request, as_names

_ROW_WORDS = ("rows", "row_names", "rownames", "samples", "barcodes", "obs", "documents")
_FEATURE_WORDS = (
    "columns",
    "cols",
    "col_names",
    "colnames",
    "feature_names",
    "features",
    "genes",
    "var",
    "vocab",
    "words",
)
_ENDINGS = (".txt", ".tsv", ".csv")

# Of the folders that cell counters write: the matrix is features by cells.
_CELL_WORDS, _GENE_WORDS = ("barcodes",), ("features", "genes")


class SideFiles(NamedTuple):
    """Names for a matrix, and whether it has to be transposed to have them."""

    row_names: NamesOrFile | None
    feature_names: NamesOrFile | None
    transposed: bool


# --- finding --------------------------------------------------------------------------------------


def side_files(request: Request, shape: tuple[int, int]) -> SideFiles:
    """Return the names that belong to a matrix file: those given, else files beside it; shape: as in the file."""
    rows, features = request.row_names, request.feature_names
    if rows is None:
        rows = _beside(request.path, _ROW_WORDS)
    if features is None:
        features = _beside(request.path, _FEATURE_WORDS)
    transposed = request.transpose
    if transposed is None:
        transposed = _is_cell_counter(rows, features) and _length(features) != shape[1]
    return SideFiles(rows, features, transposed)


def given_or_own(
    request: Request, row_names: NamesOrFile | None, feature_names: NamesOrFile | None, transposed: bool
) -> SideFiles:
    """Return the names that are given, else those of the file itself, which change places with its sides."""
    if transposed:
        row_names, feature_names = feature_names, row_names
    return SideFiles(
        row_names if request.row_names is None else request.row_names,
        feature_names if request.feature_names is None else request.feature_names,
        transposed,
    )


def _beside(path: Path, words: Sequence[str]) -> Path | None:
    """Return the first file of names beside a file of counts: "X.rows.txt" for "X.mtx"."""
    base = stem(path)
    for word in words:
        names = [f"{base}.{word}", f"{base}_{word}"]
        if base.endswith(("matrix", "counts")):  # "a_matrix.mtx" with "a_barcodes.tsv", "counts.mtx" with "rows.txt"
            names.append(base.removesuffix("matrix").removesuffix("counts") + word)
        if base.startswith("docword"):  # "docword.kos.txt" with "vocab.kos.txt"
            names.append(word + base.removeprefix("docword"))
        for found in (candidate for name in names for candidate in _candidates(path.parent, name)):
            if found != path and found.is_file():
                return found
    return None


def _candidates(folder: Path, name: str) -> Iterable[Path]:
    return (folder / f"{name}{kind}{packed}" for kind in _ENDINGS for packed in ("", *COMPRESSED_ENDINGS))


def _is_cell_counter(rows: NamesOrFile | None, features: NamesOrFile | None) -> bool:
    """Tell whether both files carry the names that programs which count the RNA of cells give them."""
    return _is_called(rows, _CELL_WORDS) and _is_called(features, _GENE_WORDS)


def _is_called(names: NamesOrFile | None, words: Sequence[str]) -> bool:
    return isinstance(names, (str, Path)) and ending(Path(names)) == ".tsv" and stem(Path(names)).endswith(tuple(words))


def _length(names: NamesOrFile | None) -> int:
    return 0 if names is None else len(read_names(names)[0])


# --- reading --------------------------------------------------------------------------------------


def read_names(names: NamesOrFile) -> tuple[Names, list[str]]:
    """Return names that are given, or one on each line of a file, and notes.

    Of several columns the first is taken. A cell counter's features have identifiers and symbols: symbols are taken
    where none is repeated.
    """
    if not isinstance(names, (str, Path)):
        return as_names(names), []
    path = Path(names)
    rows = _read_rows(path)
    if _is_called(path, _GENE_WORDS) and all(len(row) >= 2 for row in rows):
        symbols = [row[1] for row in rows]
        if len(set(symbols)) == len(symbols):
            return as_names(symbols), []
        return as_names([row[0] for row in rows]), [f"{path.name}: identifiers taken, because symbols are repeated."]
    return as_names([row[0] for row in rows]), []


def _read_rows(path: Path) -> list[list[str]]:
    """Return the fields of each line of a file of names."""
    with open_stream(path) as stream:
        lines = text_lines(decode(path, stream.read()))
    rows = [_fields(line, ending(path)) for line in lines]
    for number, row in enumerate(rows, start=1):
        if not row[0].strip():
            raise refusal(path, "expected a name, but the line has none. Give every row a name.", line=number)
    return rows


def _fields(line: str, kind: str) -> list[str]:
    if kind == ".csv":
        return split_line(line, ",")
    return line.split("\t") if kind == ".tsv" else [line]


# --- fitting to a matrix --------------------------------------------------------------------------


def named_table(path: Path, X: sparse.csr_array, sides: SideFiles, notes: list[str]) -> CountTable:
    """Return a matrix, as it is after any transposition, with its names."""
    names = [
        None if given is None else _fitting(path, given, size, what, X.shape, notes)
        for given, size, what in zip(sides[:2], X.shape, ("row", "feature"), strict=True)
    ]
    return CountTable(X, names[0], names[1], notes + repetition_notes(*names))


def _fitting(path: Path, given: NamesOrFile, size: int, what: str, shape: tuple[int, int], notes: list[str]) -> Names:
    """Return names, as many as there are rows or features, or refuse them."""
    names, remarks = read_names(given)
    notes += remarks
    if len(names) == size + 1 and isinstance(given, (str, Path)):
        notes.append(f"{Path(given).name}: the first line, {short_repr(names[0])}, is taken as a header.")
        return names[1:]
    if len(names) != size:
        other = shape[1] if what == "row" else shape[0]
        hint = " The matrix may be transposed: try transpose=True." if len(names) == other else ""
        raise refusal(
            Path(given) if isinstance(given, (str, Path)) else path,
            f"expected {size} {what} names, one for each {what} of {path.name}, but found {len(names)}.{hint} Correct "
            f"them, or give others with {what}_names.",
        )
    return names


def repetition_notes(row_names: Names | None, feature_names: Names | None) -> list[str]:
    """Return a note for each kind of names that are not unique."""
    notes = []
    for names, what in ((row_names, "row"), (feature_names, "feature")):
        if names is not None and len(set(names)) < len(names):
            name, number = Counter(names).most_common(1)[0]
            notes.append(f"Names of {what}s are repeated: {short_repr(name)} stands {number} times.")
    return notes
