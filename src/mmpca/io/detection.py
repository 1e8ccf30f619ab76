"""Which format a file has: by its first bytes, and by its ending where these leave it open."""

from __future__ import annotations

from pathlib import Path

from mmpca.io.dialect import is_number, read_dialect, triple_columns
from mmpca.io.faults import missing_extra, refusal
from mmpca.io.streams import beginning, check_file, ending, first_bytes

FORMATS = ("mtx", "npz", "table", "triples", "parquet", "uci", "h5ad", "biom")

_HDF5 = b"\x89HDF\r\n\x1a\n"
_TEXT_ENDINGS = ("", ".csv", ".tsv", ".tab", ".txt", ".dat")


def detect_format(path: str | Path) -> str:
    r"""Return the format of a file of counts.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    str
        "mtx" (Matrix Market), "npz" (SciPy), "table" (CSV or TSV, a column for each feature), "triples" (CSV or TSV
        with a line for each entry), "parquet" (triples), "uci" (bag of words), "h5ad" or "biom".

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
    if magic.startswith(b"PK\x03\x04"):
        return _zip_format(path)
    if magic.startswith(_HDF5):
        return _hdf5_format(path)
    if magic.startswith(b"PAR1"):
        return "parquet"
    return _text_format(path)


def _zip_format(path: Path) -> str:
    if ending(path) in (".npz", ""):
        return "npz"
    raise refusal(
        path, f"expected a file of counts, but this is a zip archive ({path.suffix}). Export the counts as CSV."
    )


def _hdf5_format(path: Path) -> str:
    """Tell AnnData from BIOM, by the ending or else by the groups in the file."""
    if ending(path) in (".h5ad", ".biom"):
        return ending(path).removeprefix(".")
    try:
        import h5py
    except ImportError:
        raise missing_extra(path, package="h5py", extra="anndata") from None
    try:
        with h5py.File(path) as file:
            groups = set(file)
    except OSError as error:
        raise refusal(path, f"the HDF5 file is truncated or damaged ({error}). Copy it again.") from error
    if {"obs", "var"} <= groups:
        return "h5ad"
    if {"observation", "sample"} <= groups:
        return "biom"
    raise refusal(
        path,
        f"expected AnnData or BIOM in this HDF5 file, but found the groups {sorted(groups)}. Convert it to either.",
    )


def _text_format(path: Path) -> str:
    start = beginning(path)
    if start.lower().startswith(b"%%matrixmarket"):
        return "mtx"
    if start.lstrip().startswith(b"{") and (ending(path) == ".biom" or b"Biological Observation Matrix" in start):
        return "biom"
    expected = {".mtx": "mtx", ".npz": "npz", ".parquet": "parquet", ".h5ad": "h5ad", ".biom": "biom"}.get(ending(path))
    if expected is not None:
        return expected  # its reader says what is wrong
    if ending(path) not in _TEXT_ENDINGS:
        raise refusal(path, f"files ending in {ending(path)!r} are not known. Give the format: {', '.join(FORMATS)}.")
    return "uci" if _is_bag_of_words(start) else _delimited_format(path)


def _is_bag_of_words(start: bytes) -> bool:
    """Tell whether three lines of one number come first."""
    lines = start.split(b"\n", 3)[:3]
    return len(lines) == 3 and all(len(line.split()) == 1 and line.strip().isdigit() for line in lines)


def _delimited_format(path: Path) -> str:
    """Tell triples from a table: by the names of the columns, or by names in the first two of three columns."""
    dialect = read_dialect(path)
    if dialect.header is not None and triple_columns(dialect.header) is not None:
        return "triples"
    return "triples" if dialect.n_fields == 3 and not is_number(dialect.first_row[1]) else "table"
