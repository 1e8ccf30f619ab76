"""The public functions: detect the format of a file of counts, read it, and write counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from mmpca.counts import as_counts, is_number
from mmpca.io.binary import HDF5_MAGIC, read_10x, read_biom, read_h5ad, read_npz, write_npz
from mmpca.io.columns import is_workbook, read_wide_table
from mmpca.io.delimited import detect_dialect, find_triple_columns, read_table
from mmpca.io.matrix_market import read_matrix_market, read_uci, write_matrix_market
from mmpca.io.streams import (
    beginning,
    check_file,
    detect_encoding,
    encoding_notes,
    first_bytes,
    input_error,
    missing_extra,
    open_text,
    suffix,
)
from mmpca.io.table import CountTable, NamesOrFile, Request
from mmpca.io.triples import read_parquet, read_triples
from mmpca.store import write_atomically

_READERS: dict[str, Callable[[Request], CountTable]] = {
    "mtx": read_matrix_market,
    "npz": read_npz,
    "table": read_table,
    "triples": read_triples,
    "parquet": read_parquet,
    "uci": read_uci,
    "h5ad": read_h5ad,
    "biom": read_biom,
    "10x": read_10x,
    "xlsx": read_wide_table,
}
_TEXT_SUFFIXES = ("", ".csv", ".tsv", ".tab", ".txt", ".dat")


def read_counts(
    path: str | Path,
    *,
    format: str | None = None,
    row_names: NamesOrFile | None = None,
    feature_names: NamesOrFile | None = None,
    columns: Sequence[str] | None = None,
    transpose: bool | None = None,
    layer: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> CountTable:
    r"""Read a matrix of counts, with the names of its rows and features.

    Parameters
    ----------
    path : str or Path
        The file, or a folder with ``matrix.mtx.gz``, ``features.tsv.gz`` and ``barcodes.tsv.gz``. Text formats may be
        compressed with gzip, bzip2 or xz.
    format : {"mtx", "npz", "table", "triples", "parquet", "uci", "h5ad", "biom", "10x", "xlsx"}, optional
        Detected by default, see `detect_format`.
    row_names, feature_names : path or sequence of str, optional
        The names, or a file with one name per line. By default, names come from the file itself or, for "mtx" and
        "uci", from a file beside it, such as ``X.rows.txt`` and ``X.columns.txt``, ``barcodes.tsv.gz`` and
        ``features.tsv.gz``, or ``vocab.kos.txt`` beside ``docword.kos.txt``. For triples, they determine the order,
        and names that do not occur get empty rows or columns.
    columns : sequence of three str, optional
        For triples: the columns that hold row, feature and count. By default, they are recognized by their titles,
        or there are only three.
    transpose : bool, optional
        Whether the file holds features by observations. Assumed by default for "biom" and "10x", for tables that
        begin with "#OTU ID" or end with a column "taxonomy", and for "mtx" with files named ``barcodes`` and
        ``features`` or ``genes`` beside it.
    layer : str, optional
        For "h5ad": the layer that holds the counts, or "raw". By default, ``X``.
    encoding : str, optional
        For "table" and "triples": the encoding. Detected by default: UTF-8, UTF-16 or Windows-1252.
    sheet : str, optional
        For "xlsx": the sheet that holds the counts. By default, the first.

    Returns
    -------
    CountTable
        `X` (csr_array of int32, shape (n_rows, n_features)), `row_names`, `feature_names`, `notes` on how the file
        was interpreted, and `feature_annotations`, such as a taxonomy.

    Raises
    ------
    InputFileError
        If the file cannot be read; `path` and `line` locate the error. For Parquet files, `line` is the record.
    CountsError
        If the file holds a matrix that is not a matrix of counts; `row` and `column` locate the error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mmpca.io import read_counts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "species.csv"
    ...     _ = path.write_text("site,oak,beech\nhill,2,0\nvalley,1,3\n")
    ...     table = read_counts(path)
    >>> table.X.toarray()
    array([[2, 0],
           [1, 3]], dtype=int32)
    >>> table.row_names
    array(['hill', 'valley'], dtype=object)
    """
    path = find_matrix(Path(path)) or Path(path)
    check_file(path)
    if format is not None and format not in _READERS:
        raise input_error(path, f"format must be one of {', '.join(_READERS)}, but it is {format!r}.")
    for names, what in ((row_names, "row_names"), (feature_names, "feature_names")):
        if names is not None and not isinstance(names, (str, Path)) and not hasattr(names, "__len__"):
            raise input_error(path, f"{what} must be names or the path of a file, but it is {names!r}.")
    request = Request(path, row_names, feature_names, columns, transpose, layer, format, encoding, sheet)
    if format is None:
        format = detect_format(path, encoding=encoding)
        if columns is not None and format == "table":
            format = "triples"
    if columns is not None and format not in ("triples", "parquet"):
        raise input_error(path, f"columns are for triples, but the format is {format!r}. Omit them.")
    if layer is not None and format != "h5ad":
        raise input_error(path, f"layers are for h5ad files, but the format is {format!r}. Omit the layer.")
    if sheet is not None and format != "xlsx":
        raise input_error(path, f"sheets are for Excel workbooks, but the format is {format!r}. Omit the sheet.")
    if format not in ("table", "triples"):
        return _READERS[format](request)
    found = detect_encoding(beginning(path, 2**20)) if encoding is None else encoding
    table = _READERS[format](request._replace(encoding=found))
    if encoding is None:
        table.notes[:0] = encoding_notes(path, found)
    return table


def find_matrix(folder: Path) -> Path | None:
    """Return the matrix file in a 10x Genomics folder; None if the path is not such a folder."""
    if not os.path.isdir(folder):  # unlike Path.is_dir, it never raises
        return None
    return next((path for name in ("matrix.mtx.gz", "matrix.mtx") if (path := folder / name).is_file()), None)


def write_counts(path: str | Path, table: CountTable, *, compress: bool = True) -> None:
    """Write counts as Matrix Market (``.mtx``, ``.mtx.gz``) or SciPy's ``.npz``, depending on the suffix.

    An ``.npz`` file includes the names; those of ``X.mtx`` go to ``X.rows.txt`` and ``X.columns.txt`` beside it, where
    `read_counts` finds them; such files of older counts are replaced, or removed if there are no names now. Each file
    is written atomically, the counts last.

    Parameters
    ----------
    path : str or Path
        File to write; an existing one is replaced.
    table : CountTable
        From `read_counts`, or made from your own counts: ``CountTable(X, None, feature_names, [])``.
    compress : bool, default=True
        Whether to compress ``.npz`` files. Uncompressed ones are larger, but `read_counts` maps them into memory
        instead of reading them: this takes no time, and the operating system can reclaim the memory.

    Raises
    ------
    InputFileError
        If the suffix is not supported, the names do not fit, or names beside ``X.mtx`` belong to something else.
    CountsError
        If `X` does not hold counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy import sparse
    >>> from mmpca.io import CountTable, read_counts, write_counts
    >>> X = sparse.csr_array([[2, 0], [1, 3]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_counts(Path(folder) / "X.mtx.gz", CountTable(X, None, ["oak", "beech"], []))
    ...     read_counts(Path(folder) / "X.mtx.gz").feature_names
    array(['oak', 'beech'], dtype=object)
    """
    path = Path(path)
    X = as_counts(table.X, name=f"The table for {path}", empty_rows="allow").to_csr()
    for names, size, what in zip(table[1:3], X.shape, ("row", "feature"), strict=True):
        if names is not None and len(names) != size:
            raise input_error(
                path, f"expected {size} {what} names for as many {what}s, but the table has {len(names)}."
            )
    table = table._replace(X=X)
    if suffix(path) == ".npz" and path.suffix == ".npz":
        write_atomically(path, lambda stream: write_npz(stream, table, compress=compress))
    elif suffix(path) == ".mtx" and path.suffix in (".mtx", ".gz"):
        write_matrix_market(path, table)
    else:
        raise input_error(path, "counts can be written as .mtx, .mtx.gz or .npz. Choose one of these suffixes.")


# --- detection --------------------------------------------------------------------------------------------------


def detect_format(path: str | Path, *, encoding: str | None = None) -> str:
    r"""Detect the format of a file of counts, by its content first and then by its suffix.

    Parameters
    ----------
    path : str or Path
    encoding : str, optional
        Encoding of a text file; detected by default.

    Returns
    -------
    str
        "mtx" (Matrix Market), "npz" (SciPy), "table" (CSV or TSV, a column for each feature), "triples" (CSV or TSV,
        a line for each entry), "parquet" (either), "xlsx" (Excel, a column for each feature), "uci" (bag of words),
        "h5ad", "biom" or "10x" (10x Genomics HDF5).

    Raises
    ------
    InputFileError
        If the file cannot be read or has none of these formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mmpca.io import detect_format
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "counts.txt"
    ...     _ = path.write_text("doc,word,count\n1,apple,2\n1,pear,1\n")
    ...     detect_format(path)
    'triples'
    """
    path = Path(path)
    check_file(path)
    magic = first_bytes(path)
    if is_workbook(path):
        return "xlsx"
    if magic.startswith(b"PK\x03\x04"):
        if suffix(path) in (".npz", ""):
            return "npz"
        message = f"expected a file of counts, but this is a zip archive ({path.suffix}). Export the counts as CSV."
        raise input_error(path, message)
    if magic.startswith(HDF5_MAGIC):
        return _detect_hdf5_format(path)
    if magic.startswith(b"PAR1"):
        return "parquet"
    return _detect_text_format(path, encoding)


def _detect_hdf5_format(path: Path) -> str:
    """Distinguish AnnData, BIOM and 10x Genomics by the suffix, or by the groups in the file."""
    if suffix(path) in (".h5ad", ".biom"):
        return suffix(path).removeprefix(".")
    try:
        import h5py
    except ImportError:
        raise missing_extra(path, package="h5py", extra="anndata") from None
    try:
        with h5py.File(path) as file:
            groups = set(file)
            is_10x = "matrix" in file or (len(file) == 1 and "barcodes" in next(iter(file.values())))
    except OSError as error:
        raise input_error(path, f"the HDF5 file is truncated or damaged ({error}). Copy it again.") from error
    if {"obs", "var"} <= groups:
        return "h5ad"
    if {"observation", "sample"} <= groups:
        return "biom"
    if is_10x:
        return "10x"
    message = (
        f"expected AnnData, BIOM or 10x Genomics counts in this HDF5 file, but found the groups {sorted(groups)}. "
        "Convert it to one of them."
    )
    raise input_error(path, message)


def _detect_text_format(path: Path, encoding: str | None) -> str:
    with open_text(path, encoding) as stream:
        start = stream.read(2**16)
    if start.lower().startswith(b"%%matrixmarket"):
        return "mtx"
    if start.lstrip().startswith(b"{") and (suffix(path) == ".biom" or b"Biological Observation Matrix" in start):
        return "biom"
    if suffix(path) in (".mtx", ".npz", ".parquet", ".h5ad", ".biom", ".xlsx"):
        return suffix(path).removeprefix(".")  # its reader explains what is wrong
    if suffix(path) not in _TEXT_SUFFIXES:
        if suffix(path) == ".json":
            raise input_error(
                path,
                "expected a JSON array of texts or of objects, as pandas writes with to_json(orient='records'). "
                "Convert the file to this form; for counts, use CSV.",
            )
        raise input_error(
            path,
            f"the suffix {suffix(path)!r} is unknown. If the file holds texts, use --text or, in Python, "
            f"mmpca.text.read_texts; if it holds counts, specify the format: {', '.join(_READERS)}.",
        )
    lines = start.split(b"\n", 3)[:3]
    if len(lines) == 3 and all(len(line.split()) == 1 and line.strip().isdigit() for line in lines):
        return "uci"  # three sizes on a line each
    dialect = detect_dialect(path, encoding=encoding)
    if dialect.header is not None and find_triple_columns(dialect.header) is not None:
        return "triples"
    return "triples" if dialect.n_fields == 3 and not is_number(dialect.first_row[1]) else "table"
