"""SciPy's sparse matrices in `.npz` files, names of rows and features beside them, nothing pickled.

Arrays that are not compressed are not read but mapped: the operating system brings in the pages that are looked at, and
takes them away again where memory is short.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.io.builder import canonical
from mmpca.io.faults import check_array, refusal
from mmpca.io.names import given_or_own, named_table
from mmpca.io.streams import check_file
from mmpca.io.table import CountTable, Request

_WRITE_AGAIN = "Write it again with scipy.sparse.save_npz(path, X.tocsr())."
_NAMES = ("row_names", "feature_names")

# Counts compress well, but not like this: what would unpack to more is refused before memory is taken.
_LARGEST_RATIO, _HARMLESS_BYTES = 200, 2**28

_MAPPED_BYTES = 2**26  # of an array at least: smaller ones are quicker to read
_ALIGNMENT = 64  # bytes, of mapped arrays; the header that NumPy writes before an array is a multiple of it
_LOCAL_HEADER, _LARGE_SIZES = 30, 20  # bytes before the name of a member of an archive, and after it
_PADDING_KIND = 0xD935  # of an extra field that only fills up


def read_npz(request: Request) -> CountTable:
    """Read a sparse matrix as `scipy.sparse.save_npz` or `write_counts` wrote it."""
    members = _read_members(request.path)
    transposed = bool(request.transpose)
    X, notes = canonical(request.path, _matrix(request.path, members), transposed)
    own = [members.get(name) for name in _NAMES]
    return named_table(request.path, X, given_or_own(request, own[0], own[1], transposed), notes)


def write_npz(stream: IO[bytes], table: CountTable, *, compress: bool = True) -> None:
    """Write a table into an open file, readable by `scipy.sparse.load_npz` too."""
    X = sparse.csr_array(table.X)
    members: dict[str, Any] = {"format": np.array(b"csr"), "shape": np.array(X.shape), "_is_array": np.array(True)}
    members |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    for key, names in zip(_NAMES, (table.row_names, table.feature_names), strict=True):
        if names is not None:
            members[key] = np.array(names, dtype=str)
    if compress:
        np.savez_compressed(stream, **members)
    else:
        members["data"] = X.data.astype(np.int32, copy=False)  # as it will be wanted
        _write_aligned(stream, members)


def _write_aligned(stream: IO[bytes], members: dict[str, Any]) -> None:
    """Write an archive without compression whose arrays can be mapped into memory."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # without the time of writing: the same counts give the same bytes
            start = stream.tell() + _LOCAL_HEADER + len(info.filename) + _LARGE_SIZES
            n_filling = -(start + 4) % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_KIND, n_filling) + bytes(n_filling)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


# --- the matrix -----------------------------------------------------------------------------------


def _matrix(path: Path, members: dict[str, NDArray[Any]]) -> Any:
    """Return the sparse matrix that the members describe, its data as int32."""
    kind = _kind(path, members)
    needed = ("data", "row", "col") if kind == "coo" else ("data", "indices", "indptr")
    absent = [name for name in ("shape", *needed) if name not in members]
    if absent:
        raise refusal(path, f"expected the arrays of a {kind} matrix, but {absent[0]!r} is missing. {_WRITE_AGAIN}")
    data, first, second = (members[name] for name in needed)
    counts = check_array(path, data.ravel(), "data")
    try:
        n_rows, n_columns = (int(size) for size in members["shape"])
        shape = (n_rows, n_columns)
        if kind == "coo":
            return sparse.coo_array((counts, (first, second)), shape=shape)
        return (sparse.csr_array if kind == "csr" else sparse.csc_array)((counts, first, second), shape=shape)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise refusal(path, f"its arrays make no sound {kind} matrix: {error}. {_WRITE_AGAIN}") from error


def _kind(path: Path, members: dict[str, NDArray[Any]]) -> str:
    """Return csr, csc or coo."""
    if "format" not in members:
        found = ", ".join(members) or "nothing"
        raise refusal(path, f"expected a sparse matrix of SciPy, but the file holds {found}. {_WRITE_AGAIN}")
    kind = members["format"].ravel()[:1].astype(str).tolist()
    if kind not in (["csr"], ["csc"], ["coo"]):
        raise refusal(path, f"expected a csr, csc or coo matrix, but found {kind}. {_WRITE_AGAIN}")
    return str(kind[0])


# --- the archive ----------------------------------------------------------------------------------


def _read_members(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(path, archive)
            return {info.filename.removesuffix(".npy"): _read_array(path, archive, info) for info in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise refusal(
            path, f"the archive is truncated or damaged ({error}). Copy it again, or: {_WRITE_AGAIN}"
        ) from error


def _check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that would unpack to far more than matrices of counts do."""
    size = sum(info.file_size for info in archive.infolist())
    if size > max(_HARMLESS_BYTES, _LARGEST_RATIO * path.stat().st_size):
        raise refusal(
            path,
            f"{path.stat().st_size / 1e6:.3g} MB would unpack to {size / 1e9:.3g} GB, more than counts ever do. If you "
            "trust the file, load it with SciPy and write it again without compression.",
        )


def _read_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one array, if its size is as its header says and it holds no Python objects."""
    with archive.open(info) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, is_fortran, dtype = read_header(stream)
        except ValueError as error:
            raise refusal(path, f"{info.filename} is no NumPy array ({error}). {_WRITE_AGAIN}") from error
        if dtype.hasobject:
            raise refusal(path, f"{info.filename} holds Python objects, which could run code. {_WRITE_AGAIN}")
        n_bytes = dtype.itemsize * int(np.prod(shape, dtype=object))
        n_stored = info.file_size - stream.tell()
        if any(size < 0 for size in shape) or n_stored != n_bytes:
            raise refusal(path, f"{info.filename} has {n_stored} bytes, not as its header says. {_WRITE_AGAIN}")
        if info.compress_type == zipfile.ZIP_STORED and n_bytes >= _MAPPED_BYTES:
            values = _mapped(path, info, dtype, stream.tell(), n_bytes)
        else:
            values = np.frombuffer(bytearray(stream.read()), dtype=dtype)  # writeable
    if len(values) * dtype.itemsize != n_bytes:
        raise refusal(path, f"{info.filename} is cut short. {_WRITE_AGAIN}")
    return values.reshape(shape, order="F" if is_fortran else "C")


def _mapped(path: Path, info: zipfile.ZipInfo, dtype: np.dtype[Any], n_before: int, n_bytes: int) -> NDArray[Any]:
    """Return the values of a member that is not compressed, mapped; what is written to them stays in memory.

    Where they do not lie as the processor wants them, as in files that others wrote, they are copied.
    """
    with path.open("rb") as file:
        file.seek(info.header_offset + _LOCAL_HEADER - 4)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        start = info.header_offset + _LOCAL_HEADER + name_length + extra_length + n_before
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if start + n_bytes > len(whole):
        raise refusal(path, f"{info.filename} is cut short. {_WRITE_AGAIN}")
    return np.require(np.frombuffer(whole, dtype, n_bytes // dtype.itemsize, start), requirements=["A", "W"])
