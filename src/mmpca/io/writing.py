"""Writing counts to a file, whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
from scipy import sparse

from mmpca.errors import InputFileError
from mmpca.io.npz import write_npz
from mmpca.io.streams import ending, stem
from mmpca.io.table import CountTable, Names

_ROWS_AT_ONCE = 2**12


def write_counts(path: str | Path, table: CountTable, *, compress: bool = True) -> None:
    """Write counts as Matrix Market (``.mtx``, ``.mtx.gz``) or as SciPy's ``.npz``, by the ending of the path.

    The names of an ``.npz`` file are in it; those of ``X.mtx`` go to ``X.rows.txt`` and ``X.columns.txt`` beside it,
    where `read_counts` finds them. Each file is written under another name first and takes its place when it is
    complete, the counts last: an interrupted call leaves what was there before.

    Parameters
    ----------
    path : str or Path
    table : CountTable
        What `read_counts` returned, or counts of one's own: ``CountTable(X, None, feature_names, [])``.
    compress : bool, default=True
        Of ``.npz`` files. Without compression they are larger, but `read_counts` maps them into memory instead of
        reading them: it takes no time, and the operating system can give the memory to others and read again.

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
    if ending(path) == ".npz" and path.suffix == ".npz":
        with _replacing(path) as stream:
            write_npz(stream, table, compress=compress)
    elif ending(path) == ".mtx" and path.suffix in (".mtx", ".gz"):
        _write_matrix_market(path, table)
    else:
        raise InputFileError(f"{path}: counts are written as .mtx, .mtx.gz or .npz. Choose one of these endings.")


def _write_matrix_market(path: Path, table: CountTable) -> None:
    for names, word in ((table.row_names, "rows"), (table.feature_names, "columns")):
        if names is not None:
            _write_names(path.with_name(f"{stem(path)}.{word}.txt"), names)
    X = sparse.csr_array(table.X)
    with _replacing(path) as stream:
        if path.suffix == ".gz":
            # No time of writing in the file: the same counts give the same bytes.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
                _write_entries(cast(IO[bytes], packed), X)
        else:
            _write_entries(stream, X)


def _write_entries(stream: IO[bytes], X: sparse.csr_array) -> None:
    """Write header and entries, some rows at a time."""
    stream.write(b"%%MatrixMarket matrix coordinate integer general\n")
    stream.write(b"%d %d %d\n" % (*X.shape, X.nnz))
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = X[first : first + _ROWS_AT_ONCE].tocoo()
        entries = np.column_stack([part.row + (first + 1), part.col + 1, part.data])  # (n, 3)
        stream.write(("%d %d %d\n" * len(entries) % tuple(entries.ravel().tolist())).encode())


def _write_names(path: Path, names: Names) -> None:
    for number, name in enumerate(names, start=1):
        if not str(name).strip() or "\n" in str(name) or "\r" in str(name):
            raise InputFileError(
                f"{path}, line {number}: {name!r} cannot stand on a line of its own. Give the names without line "
                "breaks and not empty, or write .npz."
            )
    with _replacing(path) as stream:
        stream.write("".join(f"{name}\n" for name in names).encode("utf-8"))


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file in the same folder that takes the place of `path` at the end, and only then."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())  # as open() would have made it, not for the owner alone
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
