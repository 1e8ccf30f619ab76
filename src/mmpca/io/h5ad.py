"""AnnData files: observations by variables, read by AnnData itself, one matrix of the file only."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mmpca.errors import InputFileError
from mmpca.io.builder import canonical
from mmpca.io.faults import check_array, missing_extra, refusal
from mmpca.io.names import given_or_own, named_table
from mmpca.io.streams import check_file
from mmpca.io.table import CountTable, Request, as_names


def read_h5ad(request: Request) -> CountTable:
    """Read `X`, a layer or the raw counts of an AnnData file."""
    check_file(request.path)
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError:
        raise missing_extra(request.path, package="AnnData", extra="anndata") from None
    try:
        with h5py.File(request.path) as file:
            matrix = read_elem(_element(request, file))
            is_raw = request.layer == "raw"
            rows, features = (read_elem(file[group]).index for group in ("obs", "raw/var" if is_raw else "var"))
    except InputFileError:
        raise
    except Exception as error:  # AnnData and h5py raise whatever the damage leads to
        raise refusal(
            request.path, f"this is no AnnData file, or it is truncated or damaged ({error}). Write or copy it again."
        ) from error
    return _table(request, matrix, rows, features)


def _element(request: Request, file: Any) -> Any:
    """Return the element of the file that holds the counts."""
    place = {None: "X", "raw": "raw/X"}.get(request.layer, f"layers/{request.layer}")
    if place not in file:
        raise refusal(
            request.path,
            f"there is no {place}, but {', '.join(_places(file)) or 'no matrix at all'}. Choose the layer.",
        )
    return file[place]


def _places(file: Any) -> list[str]:
    """Return the matrices that a file has."""
    layers = [f"layer {name!r}" for name in file.get("layers", ())]
    return [name for name in ("X", "raw/X") if name in file] + layers


def _table(request: Request, matrix: Any, rows: Any, features: Any) -> CountTable:
    path, transposed = request.path, bool(request.transpose)
    compressed: Any = matrix if sparse.issparse(matrix) else sparse.csr_array(np.atleast_2d(np.asarray(matrix)))
    where = request.layer or "X"
    counts = check_array(path, compressed.data, f"{where}; counts may be in another layer (layer=...)")
    kind = sparse.csc_array if compressed.format == "csc" else sparse.csr_array
    X, notes = canonical(
        path, kind((counts, compressed.indices, compressed.indptr), shape=compressed.shape), transposed
    )
    sides = given_or_own(request, as_names(rows), as_names(features), transposed)
    return named_table(path, X, sides, notes)
