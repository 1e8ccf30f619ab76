"""BIOM tables: features by samples, read by the biom-format package and transposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import sparse

from mmpca.io.builder import canonical
from mmpca.io.faults import check_array, missing_extra, refusal
from mmpca.io.names import given_or_own, named_table
from mmpca.io.streams import beginning, check_file, first_bytes
from mmpca.io.table import CountTable, Request, as_names

_HDF5 = b"\x89HDF"


def read_biom(request: Request) -> CountTable:
    """Read a BIOM table, version 1 (JSON) or 2 (HDF5)."""
    table = _load(request.path)
    transposed = request.transpose is not False
    matrix = table.matrix_data.tocsr()
    counts = check_array(request.path, matrix.data, "the table")
    stored = sparse.csr_array((counts, matrix.indices, matrix.indptr), shape=matrix.shape)
    X, notes = canonical(request.path, stored, transposed)
    features, samples = (as_names(table.ids(axis=axis)) for axis in ("observation", "sample"))
    return named_table(request.path, X, given_or_own(request, features, samples, transposed), notes)


def _load(path: Path) -> Any:
    """Return the table as the package has it."""
    check_file(path)
    try:
        from biom import load_table
    except ImportError:
        raise missing_extra(path, package="biom-format", extra="biom") from None
    if not beginning(path, 64).lstrip().startswith((b"{", _HDF5)):
        raise refusal(path, "a BIOM table is JSON or HDF5, but this is neither. Read text as a table.")
    try:
        if first_bytes(path).startswith(_HDF5):
            _check_places(path)
        return load_table(str(path))
    except Exception as error:  # it raises whatever its parsers do
        raise refusal(
            path, f"this is no BIOM table, or it is truncated or damaged ({error}). Write or copy it again."
        ) from error


def _check_places(path: Path) -> None:
    """Raise if the stored matrices point out of themselves: the package would follow, and the process crash."""
    import h5py

    with h5py.File(path) as file:
        n_features, n_samples = (int(size) for size in file.attrs["shape"])
        for axis, kind in (("observation", sparse.csr_array), ("sample", sparse.csc_array)):
            stored = file[f"{axis}/matrix"]
            arrays = tuple(stored[name][:] for name in ("data", "indices", "indptr"))
            kind(arrays, shape=(n_features, n_samples)).check_format(full_check=True)
