"""BIOM tables: features by samples, read by the biom-format package and transposed."""

from __future__ import annotations

from scipy import sparse

from mmpca.io.builder import canonical
from mmpca.io.faults import check_array, missing_extra, refusal
from mmpca.io.names import given_or_own, named_table
from mmpca.io.streams import beginning, check_file
from mmpca.io.table import CountTable, Request, as_names


def read_biom(request: Request) -> CountTable:
    """Read a BIOM table, version 1 (JSON) or 2 (HDF5)."""
    check_file(request.path)
    try:
        from biom import load_table
    except ImportError:
        raise missing_extra(request.path, package="biom-format", extra="biom") from None
    if not beginning(request.path, 64).lstrip().startswith((b"{", b"\x89HDF")):
        raise refusal(request.path, "a BIOM table is JSON or HDF5, but this is neither. Read text as a table.")
    try:
        table = load_table(str(request.path))
    except Exception as error:  # it raises whatever its parsers do
        raise refusal(
            request.path, f"this is no BIOM table, or it is truncated or damaged ({error}). Write or copy it again."
        ) from error
    transposed = request.transpose is not False
    matrix = table.matrix_data.tocsr()
    counts = check_array(request.path, matrix.data, "the table")
    stored = sparse.csr_array((counts, matrix.indices, matrix.indptr), shape=matrix.shape)
    X, notes = canonical(request.path, stored, transposed)
    features, samples = (as_names(table.ids(axis=axis)) for axis in ("observation", "sample"))
    return named_table(request.path, X, given_or_own(request, features, samples, transposed), notes)
