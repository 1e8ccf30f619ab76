"""Reading counts from a file of any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from mmpca.io.detection import FORMATS, detect_format
from mmpca.io.faults import refusal
from mmpca.io.streams import check_file
from mmpca.io.table import CountTable, NamesOrFile, Request

_Reader = Callable[[Request], CountTable]

# Imported when needed: most need a package of their own.
_READERS = {
    "mtx": ("matrix_market", "read_matrix_market"),
    "uci": ("matrix_market", "read_uci"),
    "npz": ("npz", "read_npz"),
    "table": ("delimited", "read_table"),
    "triples": ("triples", "read_triples"),
    "parquet": ("parquet", "read_parquet"),
    "h5ad": ("h5ad", "read_h5ad"),
    "biom": ("biom", "read_biom"),
}


def read_counts(
    path: str | Path,
    *,
    format: str | None = None,
    row_names: NamesOrFile | None = None,
    feature_names: NamesOrFile | None = None,
    columns: Sequence[str] | None = None,
    transpose: bool | None = None,
    layer: str | None = None,
) -> CountTable:
    r"""Read a matrix of counts, with the names of its rows and features.

    Parameters
    ----------
    path : str or Path
        The file; gz, bz2 and xz are decompressed on the way where the format is text.
    format : {"mtx", "npz", "table", "triples", "parquet", "uci", "h5ad", "biom"}, optional
        By default it is found out, see `detect_format`.
    row_names, feature_names : path or sequence of str, optional
        A file with one name on each line, or the names. By default those of the file itself, or for "mtx" and "uci"
        of a file beside it, such as ``X.rows.txt`` and ``X.columns.txt``, ``barcodes.tsv.gz`` and
        ``features.tsv.gz``, or ``vocab.kos.txt`` beside ``docword.kos.txt``. For triples they fix the order, and
        names that never occur get empty rows or columns.
    columns : sequence of three str, optional
        For triples: the columns that hold row, feature and count. By default they are known by their names, or are
        the three that there are.
    transpose : bool, optional
        Whether the file holds features by observations. By default it is assumed of "biom", of tables that begin with
        "#OTU ID", and of "mtx" with the ``barcodes`` and ``features`` of a cell counter beside it.
    layer : str, optional
        For "h5ad": the layer that holds the counts, or "raw"; by default ``X``.

    Returns
    -------
    CountTable
        `X` (csr_array of int32, shape (n_rows, n_features)), `row_names`, `feature_names` and `notes` of what was done.

    Raises
    ------
    InputFileError
        If the file is not what it should be; the message names the line where there are lines.

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
    path = Path(path)
    check_file(path)
    if format is not None and format not in FORMATS:
        raise refusal(path, f"the format must be one of {', '.join(FORMATS)}, but {format!r} was given.")
    request = Request(path, row_names, feature_names, columns, transpose, layer, format)
    if format is None:
        format = "triples" if columns is not None and _is_text(path) else detect_format(path)
    _check_applies(request, format)
    return _reader(format)(request)


def _is_text(path: Path) -> bool:
    return detect_format(path) in ("table", "triples")


def _check_applies(request: Request, format: str) -> None:
    """Refuse options that the format has no use for."""
    if request.columns is not None and format not in ("triples", "parquet"):
        raise refusal(request.path, f"columns are for triples, but the format is {format!r}. Leave them out.")
    if request.layer is not None and format != "h5ad":
        raise refusal(request.path, f"layers are for h5ad files, but the format is {format!r}. Leave it out.")


def _reader(format: str) -> _Reader:
    module, name = _READERS[format]
    reader: _Reader = getattr(import_module(f"mmpca.io.{module}"), name)
    return reader
