"""Code shared by all readers: the table they return, names of its rows and features, and assembly of its matrix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.counts import LARGEST_COUNT, as_counts, count_remedy, show_number
from mmpca.io.streams import (
    COMPRESSED_SUFFIXES,
    input_error,
    read_text,
    split_line,
    stem,
    suffix,
    text_lines,
)

Names: TypeAlias = NDArray[np.object_]
NamesOrFile: TypeAlias = str | Path | Sequence[str] | NDArray[np.generic]

# Words in the names of files beside a matrix, by preference.
_ROW_WORDS = ("rows", "row_names", "rownames", "samples", "barcodes", "obs", "documents")
_COLUMN_WORDS = ("columns", "cols", "col_names", "colnames", "feature_names", "features", "genes", "var")
_FEATURE_WORDS = (*_COLUMN_WORDS, "vocab", "words")
_GENE_WORDS = ("features", "genes")

_MISSING_VALUES = {"na", "n/a", "n.a.", "null", "none", "missing", "-", "--", ".", "?", "#n/a"}


class CountTable(NamedTuple):
    """Counts with the names of their rows and features.

    Attributes
    ----------
    X : csr_array of int32, shape (n_rows, n_features)
        Columns are sorted within rows and occur once; there are no stored zeros.
    row_names : ndarray of str objects, shape (n_rows,), or None
        Names of the rows, if the file has any.
    feature_names : ndarray of str objects, shape (n_features,), or None
        Names of the features, if the file has any.
    notes : list of str
        Remarks on how the file was interpreted or changed, one sentence each.
    feature_annotations : dict of str to ndarray of str objects, shape (n_features,), or None
        Descriptions of the features in the file, such as their taxonomy.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mmpca.io import CountTable
    >>> CountTable(sparse.csr_array([[2, 0], [1, 3]]), None, ["oak", "beech"], []).X.sum()
    np.int64(6)
    """

    X: sparse.csr_array
    row_names: Names | None
    feature_names: Names | None
    notes: list[str]
    feature_annotations: dict[str, Names] | None = None


class Request(NamedTuple):
    """A file to read and the options of `read_counts`."""

    path: Path
    row_names: NamesOrFile | None = None
    feature_names: NamesOrFile | None = None
    columns: Sequence[str] | None = None
    transpose: bool | None = None
    layer: str | None = None
    format: str | None = None  # None if it was detected
    encoding: str | None = None  # of text; detected by default
    sheet: str | None = None  # of a workbook
    block_size: int = 2**22  # bytes of text parsed at a time


# --- values -----------------------------------------------------------------------------------------------------


def parse_count(path: Path, text: str, where: str = "", **place: int) -> int:
    """Return a field of a file as a count, or raise InputFileError.

    `where` opens the message; `place` is the line or the record.
    """
    stripped = text.strip()
    if stripped.isdecimal() and len(stripped) < 10:
        return int(stripped)
    try:
        value = float(stripped.replace("_", "?"))  # only Python reads 1_000 as a number
    except ValueError:
        found, remedy = (short_repr(stripped) if stripped else "an empty field"), _text_remedy(stripped)
    else:
        found, remedy = show_number(value), count_remedy(value) or ""
        if not remedy:
            return int(value)
    message = f"{where}expected a count (a non-negative whole number), but found {found}. {remedy}"
    raise input_error(path, message, **place)


def _text_remedy(text: str) -> str:
    """Return advice on a field that is not a number."""
    if not text or text.lower() in _MISSING_VALUES:
        return "Write 0 where nothing was counted, or leave out rows with missing values."
    if re.fullmatch(r"[-+]?\d+(,\d+)+", text):
        return "Write numbers without a comma; fractions are not counts."
    return "Correct the field, or leave out columns of text; to count the words of texts, use --text-column."


# --- the matrix -------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """Entries sorted by row, in the smallest types that hold them."""

    steps: NDArray[np.unsignedinteger[Any]]  # differences between the rows that occur, starting from 0
    sizes: NDArray[np.unsignedinteger[Any]]  # number of entries in each of these rows
    columns: NDArray[np.unsignedinteger[Any]]
    counts: NDArray[np.unsignedinteger[Any]]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows that occur, in ascending order."""
        return np.cumsum(self.steps, dtype=np.int64)


class CountsBuilder:
    """Assembles a CSR matrix from entries that arrive in pieces and in any order.

    Pieces take 3 to 8 bytes per entry and are freed one by one while the matrix (8 bytes per entry) is filled, so
    peak memory stays below about twice the size of the matrix. SciPy's COO to CSR conversion needs more than that. If
    `transposed`, rows and columns are swapped.
    """

    def __init__(self, transposed: bool = False) -> None:
        self.transposed = transposed
        self.n_zeros = self.n_entries = 0
        self._pieces: list[_Piece] = []

    def add(self, rows: NDArray[Any], columns: NDArray[Any], counts: NDArray[np.int32]) -> None:
        """Add entries, all arrays of shape (n,); zeros are dropped and counted."""
        if counts.min(initial=1) == 0:
            kept = counts > 0
            self.n_zeros += int(counts.size - kept.sum())
            rows, columns, counts = rows[kept], columns[kept], counts[kept]
        if self.transposed:
            rows, columns = columns, rows
        self.n_entries += counts.size
        if counts.size:
            self._pieces.append(_make_piece(rows, columns, counts))

    def build(self, shape: tuple[int, int]) -> sparse.csr_array:
        """Return the matrix, possibly with duplicates, and free the pieces; `shape` is the one in the file."""
        n_rows, n_columns = shape[::-1] if self.transposed else shape
        indptr = np.zeros(n_rows + 1, dtype=np.int64)
        for piece in self._pieces:
            indptr[piece.rows + 1] += piece.sizes
        np.cumsum(indptr, out=indptr)
        data, indices = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.int32)
        free = indptr[:-1].copy()  # next free position of each row
        self._pieces.reverse()
        while self._pieces:
            piece = self._pieces.pop()
            rows, sizes = piece.rows, piece.sizes.astype(np.int64)
            starts = np.cumsum(sizes) - sizes
            # An entry goes to the next free position of its row, plus its rank among the entries of the row.
            positions = np.repeat(free[rows] - starts, sizes) + np.arange(piece.counts.size)
            data[positions], indices[positions] = piece.counts, piece.columns
            free[rows] += sizes
        csr = sparse.csr_array(
            (data, indices, indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr), shape=(n_rows, n_columns)
        )
        csr.sort_indices()  # in place; as_counts would copy
        return csr


def _make_piece(rows: NDArray[Any], columns: NDArray[Any], counts: NDArray[np.int32]) -> _Piece:
    """Sort and compress entries, at least one."""
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        rows, columns, counts = rows[order], columns[order], counts[order]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    sizes = np.diff(starts, append=rows.size)
    steps = np.diff(rows[starts], prepend=0)
    return _Piece(*(values.astype(np.min_scalar_type(values.max())) for values in (steps, sizes, columns, counts)))


def check_sizes(path: Path, shape: tuple[int, int], n_entries: int, line: int | None = None) -> None:
    """Raise InputFileError for sizes that would take far more memory than the entries in the file."""
    for size, what in zip(shape, ("row", "column"), strict=True):
        # Almost all rows would be empty: a mistake or an attack, with gigabytes for the row pointers alone.
        if size > min(LARGEST_COUNT, 10**6 + 100 * n_entries):
            message = f"the file declares {size} {what}s, but only {n_entries} entries. Correct the sizes."
            raise input_error(path, message, line=line)


def finish_table(
    request: Request,
    matrix: Any,
    row_names: NamesOrFile | None,
    column_names: NamesOrFile | None,
    *,
    transposed: bool,
    n_zeros: int = 0,
) -> CountTable:
    """Check a sparse matrix, (n_rows, n_features), and attach names.

    `row_names` and `column_names` are those in the file, before a transposition; `matrix` is already transposed.
    Names in the request take precedence. `n_zeros` is the number of zeros that were dropped before.
    """
    if transposed:
        row_names, column_names = column_names, row_names
    if matrix.ndim == 2:  # other shapes are an error below
        check_sizes(request.path, matrix.shape, matrix.nnz)
    try:
        counts = as_counts(matrix, name=str(request.path), empty_rows="allow")
    except TypeError as error:
        raise input_error(request.path, f"{error}") from error
    n_stored_zeros = matrix.nnz - np.count_nonzero(matrix.data[: matrix.nnz])
    notes = _matrix_notes(matrix.nnz - n_stored_zeros - counts.nnz, n_zeros + n_stored_zeros)
    if transposed:
        advice = "" if request.transpose else " If it does not, add --no-transpose."
        notes.append(f"Transposed: the file holds features by observations.{advice}")
    X = counts.to_csr()
    chosen: list[Names | None] = []
    sources = ((request.row_names, row_names, "row"), (request.feature_names, column_names, "feature"))
    for given, own, what in sources:
        source = own if given is None else given
        chosen.append(None if source is None else _fit_names(request.path, source, what, X.shape, notes))
    if request.transpose is None and not transposed:
        notes += _orientation_notes(chosen[0])
    return CountTable(X, chosen[0], chosen[1], notes + _repetition_notes(*chosen))


# Names that only features have: numbered OTUs and ASVs, their digests, Ensembl's genes, and taxa with their ranks.
_FEATURE_NAME = re.compile(
    r"(z?otu|asv)[ _.-]?\d+|[0-9a-f]{32}|ENS[A-Z]*G\d{11}(\.\d+)?|[kd]__\w.*;.*|(Bacteria|Archaea|Eukaryota);.*",
    re.IGNORECASE,
)


def _orientation_notes(row_names: Names | None) -> list[str]:
    """Return a note if the rows are named like features."""
    if row_names is None or len(row_names) < 3:
        return []
    n_features = sum(_FEATURE_NAME.fullmatch(name.strip()) is not None for name in row_names)
    if n_features < 0.9 * len(row_names):
        return []
    return [
        f"The rows are named like features, such as {short_repr(row_names[0])}. If they are features, add "
        "--transpose; otherwise, add --no-transpose."
    ]


def with_taxonomy(table: CountTable, taxonomy: Sequence[str], transposed: bool) -> CountTable:
    """Return a table with the descriptions of its features; without them if the rows of the file are not features."""
    if not transposed:
        return table._replace(notes=[*table.notes, "The column of the taxonomy describes the rows and is not read."])
    note = "The taxonomy is kept as an annotation of the features and is not counted."
    return table._replace(notes=[*table.notes, note], feature_annotations={"taxonomy": as_names(taxonomy)})


def _matrix_notes(n_duplicates: int, n_zeros: int) -> list[str]:
    """Return remarks on changes to a matrix."""
    notes = []
    if n_duplicates:
        notes.append(f"Summed {n_duplicates} duplicate {'entry' if n_duplicates == 1 else 'entries'}.")
    if n_zeros:
        notes.append(f"Dropped {n_zeros} stored {'zero' if n_zeros == 1 else 'zeros'}.")
    return notes


# --- names ------------------------------------------------------------------------------------------------------


def as_names(names: Sequence[str] | NDArray[np.generic]) -> Names:
    """Return names as an array of str objects; unlike an array of fixed-width strings, it has no common width."""
    array = np.empty(len(names), dtype=object)
    array[:] = [str(name) for name in names]
    return array


def find_names(request: Request, shape: tuple[int, int]) -> tuple[NamesOrFile | None, NamesOrFile | None, bool]:
    """Return row names, feature names and whether to transpose a matrix of the given shape.

    Names that are not in the request are looked for in files beside the matrix.
    """
    rows, features = request.row_names, request.feature_names
    if rows is None:
        rows = _find_beside(request.path, _ROW_WORDS)
    if features is None:
        features = _find_beside(request.path, _FEATURE_WORDS)
    transposed = request.transpose
    if transposed is None:
        # Programs that count RNA in cells write genes by cells, with these names.
        is_cell_counter = _is_tsv_named(rows, ("barcodes",)) and _is_tsv_named(features, _GENE_WORDS)
        transposed = is_cell_counter and features is not None and len(read_names(features)[0]) != shape[1]
    return rows, features, transposed


def find_beside(path: Path) -> tuple[Path | None, Path | None]:
    """Return the files beside a file of counts that are read as the names of its rows and of its features."""
    return _find_beside(path, _ROW_WORDS), _find_beside(path, _FEATURE_WORDS)


def _find_beside(path: Path, words: Sequence[str]) -> Path | None:
    """Return the first file of names beside a file of counts, such as "X.rows.txt" for "X.mtx"."""
    base = stem(path)
    for word in words:
        names = [f"{base}.{word}", f"{base}_{word}"]
        if base.endswith(("matrix", "counts")):  # "a_matrix.mtx" with "a_barcodes.tsv", "counts.mtx" with "rows.txt"
            names.append(base.removesuffix("matrix").removesuffix("counts") + word)
        if base.startswith("docword"):  # "docword.kos.txt" with "vocab.kos.txt"
            names.append(word + base.removeprefix("docword"))
        for name in names:
            for ending in (
                f"{kind}{packed}" for kind in (".txt", ".tsv", ".csv") for packed in ("", *COMPRESSED_SUFFIXES)
            ):
                found = path.with_name(f"{name}{ending}")
                if found != path and found.is_file():
                    return found
    return None


def _is_tsv_named(names: NamesOrFile | None, words: tuple[str, ...]) -> bool:
    return isinstance(names, (str, Path)) and suffix(Path(names)) == ".tsv" and stem(Path(names)).endswith(words)


def read_names(names: NamesOrFile) -> tuple[Names, list[str]]:
    """Return names, from a file with one per line if a path is given, and notes.

    The first of several columns is used. Gene lists have identifiers and symbols; see `gene_names`.
    """
    if not isinstance(names, (str, Path)):
        return as_names(names), []
    path = Path(names)
    notes: list[str] = []
    lines = text_lines(read_text(path, notes=notes, harmless_size=2**23, max_ratio=50))
    delimiter = {".csv": ",", ".tsv": "\t"}.get(suffix(path))
    rows = [[line] if delimiter is None else split_line(line, delimiter) for line in lines]
    for number, row in enumerate(rows, start=1):
        if not row[0].strip():
            raise input_error(path, "expected a name, but the line has none. Give every row a name.", line=number)
    if _is_tsv_named(path, _GENE_WORDS) and all(len(row) >= 2 for row in rows):
        names, remarks = gene_names(path, [row[0] for row in rows], [row[1] for row in rows])
        return names, notes + remarks
    return as_names([row[0] for row in rows]), notes


def gene_names(path: Path, identifiers: Sequence[str], symbols: Sequence[str]) -> tuple[Names, list[str]]:
    """Return the symbols of genes, or the identifiers of genes whose symbols are not unique, with a note."""
    times = Counter(symbols)
    repeated = [symbol for symbol in symbols if times[symbol] > 1]
    if not repeated:
        return as_names(symbols), []
    names = [own if times[symbol] > 1 else symbol for own, symbol in zip(identifiers, symbols, strict=True)]
    note = (
        f"{path.name}: {len(repeated)} of {len(symbols)} genes are named by their identifiers, because their symbols "
        f"are not unique. Example: {short_repr(repeated[0])}."
    )
    return as_names(names), [note]


def _fit_names(path: Path, source: NamesOrFile, what: str, shape: tuple[int, int], notes: list[str]) -> Names:
    """Return names after checking how many there are; remarks are appended to `notes`, in place."""
    names, remarks = read_names(source)
    notes += remarks
    size, other = shape if what == "row" else shape[::-1]
    is_file = isinstance(source, (str, Path))
    if len(names) == size + 1 and is_file:
        notes.append(f"{Path(str(source)).name}: the first line, {short_repr(names[0])}, was skipped as a header.")
        return names[1:]
    if len(names) != size:
        hint = " The matrix may be transposed: try transpose=True." if len(names) == other else ""
        raise input_error(
            Path(str(source)) if is_file else path,
            f"expected {size} {what} names, one for each {what} of {path.name}, but found {len(names)}.{hint} Correct "
            f"them, or pass other names as {what}_names.",
        )
    return names


def _repetition_notes(row_names: Names | None, feature_names: Names | None) -> list[str]:
    """Return a note for each kind of names that are not unique."""
    notes = []
    for names, what in ((row_names, "Row"), (feature_names, "Feature")):
        if names is not None and len(set(names)) < len(names):
            name, number = Counter(names).most_common(1)[0]
            notes.append(f"{what} names are not unique: {short_repr(name)} occurs {number} times.")
    return notes
