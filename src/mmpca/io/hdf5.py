"""AnnData (``.h5ad``) and BIOM files, read by their own packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mmpca.errors import CountsError, InputFileError
from mmpca.io.streams import beginning, first_bytes, input_error, missing_extra, read_text
from mmpca.io.table import CountTable, Request, as_names, finish_table

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def read_h5ad(request: Request) -> CountTable:
    """Read `X`, a layer or the raw counts of an AnnData file; nothing else in it is loaded."""
    path, layer, transposed = request.path, request.layer, bool(request.transpose)
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError:
        raise missing_extra(path, package="AnnData", extra="anndata") from None
    try:
        with h5py.File(path) as file:
            element = _find_element(path, file, layer)
            groups = ("obs", "raw/var" if layer == "raw" else "var")
            _check_storage(path, element, *(file[group] for group in groups))
            matrix = read_elem(element)
            rows, features = (as_names(read_elem(file[group]).index) for group in groups)
    except InputFileError:
        raise
    except Exception as error:  # AnnData and h5py raise all kinds of errors on damaged files
        raise input_error(
            path, f"this is not an AnnData file, or it is truncated or damaged ({error}). Write or copy it again."
        ) from error
    if not sparse.issparse(matrix):
        matrix = sparse.csr_array(np.atleast_2d(np.asarray(matrix)))
    try:
        return finish_table(request, matrix.T if transposed else matrix, rows, features, transposed=transposed)
    except CountsError as error:
        message = f"{error} This is {layer or 'X'}; if the counts are in another layer, name it with layer."
        raise CountsError(message, row=error.row, column=error.column) from error


def _find_element(path: Path, file: Any, layer: str | None) -> Any:
    """Return the element of an AnnData file that holds the counts."""
    element = {None: "X", "raw": "raw/X"}.get(layer, f"layers/{layer}")
    if element not in file:
        found = [name for name in ("X", "raw/X") if name in file]
        found += [f"layer {name!r}" for name in file.get("layers", ())]
        raise input_error(
            path, f"there is no {element}; the file has {', '.join(found) or 'no matrix'}. Choose a layer."
        )
    return file[element]


def read_biom(request: Request) -> CountTable:
    """Read a BIOM table, version 1 (JSON) or 2 (HDF5), and transpose it unless requested otherwise."""
    path, transposed = request.path, request.transpose is not False
    try:
        from biom import load_table
    except ImportError:
        raise missing_extra(path, package="biom-format", extra="biom") from None
    is_hdf5 = first_bytes(path).startswith(HDF5_MAGIC)
    if not is_hdf5 and not beginning(path, 64).lstrip().startswith(b"{"):
        raise input_error(path, "a BIOM table is JSON or HDF5, but this is neither. For text, use the format table.")
    try:
        if is_hdf5:
            _check_indices(path)
        else:
            _check_claim(path, read_text(path))
        table = load_table(str(path))
    except InputFileError:
        raise
    except Exception as error:  # the package raises whatever its parsers do
        raise input_error(
            path, f"this is not a BIOM table, or it is truncated or damaged ({error}). Write or copy it again."
        ) from error
    matrix = table.matrix_data.tocsr()
    features, samples = (as_names(table.ids(axis=axis)) for axis in ("observation", "sample"))
    return finish_table(request, matrix.T if transposed else matrix, features, samples, transposed=transposed)


def _check_storage(path: Path, *elements: Any, harmless_size: int = 2**28, max_ratio: int = 2000) -> None:
    """Raise InputFileError for datasets that claim to be far larger than what is stored of them."""

    def check(_: str, item: Any) -> None:
        n_bytes, n_stored = getattr(item, "nbytes", 0), item.id.get_storage_size() if hasattr(item, "nbytes") else 0
        if n_bytes > max(harmless_size, max_ratio * n_stored):
            raise input_error(
                path,
                f"{item.name} would unpack from {n_stored} bytes to {n_bytes / 1e9:.3g} GB, which is implausible for "
                "counts. Write it again as a sparse matrix.",
            )

    for element in elements:
        check("", element)
        if hasattr(element, "visititems"):
            element.visititems(check)


def _check_claim(path: Path, text: str) -> None:
    """Raise InputFileError for a JSON table whose shape does not agree with its lists of rows and columns."""
    content = json.loads(text)
    shape, found = content["shape"], [len(content["rows"]), len(content["columns"])]
    if shape != found:
        raise input_error(
            path, f"the table declares the shape {shape}, but names {found[0]} rows and {found[1]} columns."
        )


def _check_indices(path: Path) -> None:
    """Raise ValueError for indices out of range, which would crash the process inside the package."""
    import h5py

    with h5py.File(path) as file:
        _check_storage(path, file)
        n_features, n_samples = (int(size) for size in file.attrs["shape"])
        for axis, kind in (("observation", sparse.csr_array), ("sample", sparse.csc_array)):
            stored = file[f"{axis}/matrix"]
            arrays = tuple(stored[name][:] for name in ("data", "indices", "indptr"))
            kind(arrays, shape=(n_features, n_samples)).check_format(full_check=True)
