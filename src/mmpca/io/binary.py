"""Matrices in binary files: SciPy's ``.npz``, AnnData (``.h5ad``) and BIOM; nothing is unpickled.

Large arrays of an ``.npz`` file that are not compressed are mapped into memory instead of read: the operating system
loads the pages that are used, and drops them again when memory gets short. AnnData and BIOM are read by their own
packages.
"""

from __future__ import annotations

import json
import lzma
import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.errors import CountsError, InputFileError
from mmpca.io.streams import beginning, first_bytes, input_error, missing_extra, read_text
from mmpca.io.table import CountTable, Request, as_names, finish_table, gene_names, with_taxonomy
from mmpca.store import ZIP_ERRORS

CHECKED_VALUES = 10_000  # values read to recognize a layer of counts
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"

_WRITE_AGAIN = "Write it again with scipy.sparse.save_npz(path, X.tocsr())."
_MAX_RATIO = 200  # of unpacked to packed size; count matrices compress well, but not like this
_ALIGNMENT = 64  # bytes; NumPy's header before an array is a multiple of it
_LOCAL_HEADER, _ZIP64_FIELD = 30, 20  # bytes before and after the name of a member of an archive
_PADDING_KIND = 0xD935  # identifier of the extra field for padding


# --- npz --------------------------------------------------------------------------------------------------------


def read_npz(request: Request, *, mapped_size: int = 2**26, harmless_size: int = 2**28) -> CountTable:
    """Read a sparse matrix written by `scipy.sparse.save_npz` or `write_counts`.

    Arrays of at least `mapped_size` bytes are mapped into memory if they are not compressed. Archives that unpack to
    more than `harmless_size` bytes must not be compressed too well.
    """
    path, transposed = request.path, bool(request.transpose)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_ratio(path, archive, harmless_size)
            infos = archive.infolist()
            members = {
                info.filename.removesuffix(".npy"): _read_array(path, archive, info, mapped_size) for info in infos
            }
    except InputFileError:
        raise
    except (*ZIP_ERRORS, zlib.error, lzma.LZMAError) as error:
        raise input_error(
            path, f"the archive is truncated or damaged ({error}). Copy it again, or: {_WRITE_AGAIN}"
        ) from error
    if len(members) < len(infos):
        raise input_error(path, f"the archive has two arrays of one name. {_WRITE_AGAIN}")
    matrix = _build_matrix(path, members)
    row_names, feature_names = (
        members[key].ravel() if key in members else None for key in ("row_names", "feature_names")
    )
    return finish_table(request, matrix.T if transposed else matrix, row_names, feature_names, transposed=transposed)


def _check_ratio(path: Path, archive: zipfile.ZipFile, harmless_size: int) -> None:
    """Raise InputFileError for an archive that would unpack to far more than a matrix of counts."""
    packed, unpacked = path.stat().st_size, sum(info.file_size for info in archive.infolist())
    if unpacked > max(harmless_size, _MAX_RATIO * packed):
        raise input_error(
            path,
            f"{packed / 1e6:.3g} MB would unpack to {unpacked / 1e9:.3g} GB, which is implausible for counts. If you "
            "trust the file, load it with SciPy and write it again without compression.",
        )


def _read_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, mapped_size: int) -> NDArray[Any]:
    """Return one array of an archive."""
    try:
        if info.compress_type == zipfile.ZIP_STORED and info.file_size >= mapped_size:
            return _map_array(path, archive, info)
        with archive.open(info) as stream:
            _check_array_size(stream, info.file_size)
        with archive.open(info) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, MemoryError, struct.error) as error:
        raise input_error(
            path, f"{info.filename} is not a NumPy array, or it is truncated or damaged ({error}). {_WRITE_AGAIN}"
        ) from error


def _check_array_size(stream: IO[bytes], size: int) -> None:
    """Raise ValueError for an array that claims to be larger than its member, before memory is allocated for it."""
    shape, _, dtype = _read_array_header(stream)
    if not dtype.hasobject and dtype.itemsize * math.prod(shape) > size:  # objects are an error later
        raise ValueError(f"its header declares the shape {shape}, but it has {size} bytes")


def _read_array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array, and leave the stream at its first byte."""
    is_first_version = np.lib.format.read_magic(stream) == (1, 0)
    return (np.lib.format.read_array_header_1_0 if is_first_version else np.lib.format.read_array_header_2_0)(stream)


def _map_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array that is mapped copy-on-write; it is copied if its position in the file is not aligned."""
    with archive.open(info) as stream:
        shape, is_fortran, dtype = _read_array_header(stream)
        header_size = stream.tell()
    if dtype.hasobject or dtype.itemsize * math.prod(shape) != info.file_size - header_size:
        raise ValueError("it holds Python objects, or its size is not the one in its header")
    # The archive's directory does not say how long the header in front of a member is.
    with path.open("rb") as file:
        file.seek(info.header_offset + _LOCAL_HEADER - 4)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
    offset = info.header_offset + _LOCAL_HEADER + name_length + extra_length + header_size
    mapped = np.memmap(path, dtype, "c", offset, shape, "F" if is_fortran else "C")
    return np.require(mapped, requirements=["A", "W", "E"])


def _build_matrix(path: Path, members: dict[str, NDArray[Any]]) -> Any:
    """Return the arrays of an archive as a sparse matrix."""
    if "format" not in members:
        found = ", ".join(members) or "nothing"
        raise input_error(path, f"expected a SciPy sparse matrix, but the file holds {found}. {_WRITE_AGAIN}")
    kind = "".join(members["format"].ravel()[:1].astype(str).tolist())
    kinds = {"csr": sparse.csr_array, "csc": sparse.csc_array, "coo": sparse.coo_array}
    if kind not in kinds:
        raise input_error(path, f"expected a csr, csc or coo matrix, but found {kind!r}. {_WRITE_AGAIN}")
    needed = ("data", "row", "col", "shape") if kind == "coo" else ("data", "indices", "indptr", "shape")
    for name in needed:
        if name not in members:
            raise input_error(path, f"the array {name!r} is missing. {_WRITE_AGAIN}")
    for name in needed[1:]:
        if members[name].dtype.kind not in "iu":
            raise input_error(
                path, f"the array {name!r} must hold integers, but it is {members[name].dtype}. {_WRITE_AGAIN}"
            )
    data, first, second, shape = (members[name].ravel() for name in needed)
    try:
        n_rows, n_columns = (int(size) for size in shape)
        arrays = (data, (first, second)) if kind == "coo" else (data, first, second)
        return kinds[kind](arrays, shape=(n_rows, n_columns))
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise input_error(path, f"its arrays are not a valid {kind} matrix: {error}. {_WRITE_AGAIN}") from error


def write_npz(stream: IO[bytes], table: CountTable, *, compress: bool = True) -> None:
    """Write a table to an open file that `scipy.sparse.load_npz` can also read."""
    X = table.X
    members: dict[str, Any] = {"format": np.array(b"csr"), "shape": np.array(X.shape), "_is_array": np.array(True)}
    members |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    for key, names in (("row_names", table.row_names), ("feature_names", table.feature_names)):
        if names is not None:
            members[key] = np.array(names, dtype=str)
    if compress:
        np.savez_compressed(stream, **members)
        return
    members["data"] = X.data.astype(np.int32, copy=False)  # the type that a fit can share
    # np.savez does not align arrays, so this writes the archive itself.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # without a time stamp, equal counts give equal bytes
            start = stream.tell() + _LOCAL_HEADER + len(info.filename) + _ZIP64_FIELD
            # A field that readers skip fills the header up, so that the array begins at a multiple of the alignment.
            n_padding = -(start + 4) % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_KIND, n_padding) + bytes(n_padding)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


# --- AnnData and BIOM -------------------------------------------------------------------------------------------


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
            names = _matrices(file)
            element = _find_element(path, file, names, layer)
            groups = ("obs", "raw/var" if element.name == "/raw/X" else "var")
            _check_storage(path, element, *(file[group] for group in groups))
            matrix = read_elem(element)
            with_counts = [name for name, place in names.items() if name != (layer or "X") and _has_counts(file[place])]
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
        hint = "no other layer of the file has counts"
        if with_counts:
            hint = f"for counts, use --layer: {', '.join(repr(name) for name in with_counts)}"
        message = f"{error} This is the layer {layer or 'X'!r}; {hint}."
        raise CountsError(message, row=error.row, column=error.column) from error


def _has_counts(element: Any) -> bool:
    """Return True if the first values of a matrix in an HDF5 file are whole numbers."""
    try:
        values = np.asarray(element["data"][:CHECKED_VALUES] if hasattr(element, "keys") else element[:1])
        return bool(values.size and (values >= 0).all() and (values % 1 == 0).all())
    except Exception:  # whatever h5py raises for a damaged layer, which nobody asked for
        return False


def _matrices(file: Any) -> dict[str, str]:
    """Return the names by which matrices of an AnnData file can be chosen, and where they are."""
    own = {name: place for name, place in (("X", "X"), ("raw", "raw/X")) if place in file}
    return {name: f"layers/{name}" for name in file.get("layers", ())} | own


def _find_element(path: Path, file: Any, names: dict[str, str], layer: str | None) -> Any:
    """Return the element of an AnnData file that holds the counts."""
    if (layer or "X") not in names:
        shown = ", ".join(repr(name) for name in names) or "no matrix"
        message = f"there is no layer {layer or 'X'!r}; the file has {shown}. Choose one with --layer."
        raise input_error(path, message)
    return file[names[layer or "X"]]


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
    read = finish_table(request, matrix.T if transposed else matrix, features, samples, transposed=transposed)
    described = table.metadata(axis="observation") or ()
    taxonomy = [(about or {}).get("taxonomy") for about in described]
    if not any(taxonomy):
        return read
    texts = ["; ".join(ranks) if isinstance(ranks, list | tuple) else str(ranks or "") for ranks in taxonomy]
    return with_taxonomy(read, texts, transposed)


def read_10x(request: Request) -> CountTable:
    """Read gene counts from a 10x Genomics HDF5 file, which holds genes by cells, and transpose them."""
    path, transposed = request.path, request.transpose is not False
    try:
        import h5py
    except ImportError:
        raise missing_extra(path, package="h5py", extra="anndata") from None
    try:
        with h5py.File(path) as file:
            (group,) = file.values() if "matrix" not in file else (file["matrix"],)
            _check_storage(path, group)
            arrays = tuple(group[name][:] for name in ("data", "indices", "indptr"))
            n_genes, n_cells = (int(size) for size in group["shape"][:])
            genes = group.get("features", group)
            keys = ("id", "name") if "features" in group else ("genes", "gene_names")
            identifiers, symbols = ([name.decode() for name in genes[key][:]] for key in keys)
            cells = [name.decode() for name in group["barcodes"][:]]
        # The columns of the file are cells, so its arrays are the rows of the transposed matrix.
        matrix = sparse.csr_array(arrays, shape=(n_cells, n_genes))
        matrix.check_format(full_check=True)
    except InputFileError:
        raise
    except Exception as error:  # h5py raises all kinds of errors on damaged files
        message = f"this is not a 10x Genomics HDF5 file, or it is truncated or damaged ({error}). Copy it again."
        raise input_error(path, message) from error
    names, notes = gene_names(path, identifiers, symbols)
    table = finish_table(request, matrix if transposed else matrix.T, names, cells, transposed=transposed)
    table.notes[:0] = notes
    return table


def _check_storage(path: Path, *elements: Any, harmless_size: int = 2**28, max_ratio: int = 2000) -> None:
    """Raise InputFileError for datasets that claim to be far larger than what is stored of them."""

    def check(_: str, item: Any) -> None:
        """Raise the error for one dataset; groups have no size."""
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
