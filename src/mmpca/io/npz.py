"""SciPy's sparse matrices in ``.npz`` files, with names of rows and features; nothing is unpickled.

Large arrays that are not compressed are mapped into memory instead of read: the operating system loads the pages that
are used, and drops them again when memory gets short.
"""

from __future__ import annotations

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

from mmpca.errors import InputFileError
from mmpca.io.streams import input_error
from mmpca.io.table import CountTable, Request, finish_table

_WRITE_AGAIN = "Write it again with scipy.sparse.save_npz(path, X.tocsr())."
_MAX_RATIO = 200  # of unpacked to packed size; count matrices compress well, but not like this
_ALIGNMENT = 64  # bytes; NumPy's header before an array is a multiple of it
_LOCAL_HEADER, _ZIP64_FIELD = 30, 20  # bytes before and after the name of a member of an archive
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
)
_PADDING_KIND = 0xD935  # identifier of the extra field for padding


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
    except (*_ZIP_ERRORS, OSError, ValueError) as error:
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
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if not dtype.hasobject and dtype.itemsize * math.prod(shape) > size:  # objects are an error later
        raise ValueError(f"its header declares the shape {shape}, but it has {size} bytes")


def _map_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array that is mapped copy-on-write; it is copied if its position in the file is not aligned."""
    with archive.open(info) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("unsupported version of the .npy format")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        header_size = stream.tell()
    if dtype.hasobject or dtype.itemsize * math.prod(shape) != info.file_size - header_size:
        raise ValueError("it holds Python objects, or its size is not the one in its header")
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
            n_padding = -(start + 4) % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_KIND, n_padding) + bytes(n_padding)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
