"""One zip file with a JSON manifest and arrays: written at a stroke, read without trust.

Members are stored, never compressed, so that a file cannot ask for more memory than its own size; nothing is extracted
to disk, and no array is unpickled. What the manifest says in detail is the business of :mod:`mmpca.model.files`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mmpca.errors import ModelFileError

MANIFEST = "manifest.json"
# A manifest is mostly names of features: five million of them fit.
LARGEST_MANIFEST = 64 * 2**20
MOST_MEMBERS = 64
DTYPES = ("<f8", "<i4", "<i8")

Arrays = dict[str, NDArray[Any]]
Manifest = dict[str, Any]

_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>[\x00-\xff]{2})"
    rb"\{'descr': '(?P<dtype>[<>|][A-Za-z]\d{1,4})', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n"
)
# All that zipfile is known to raise on damaged archives.
_ZIP_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, struct.error)


# --- writing ----------------------------------------------------------------------------------------------------


def check_folder(path: Path) -> None:
    """Raise FileNotFoundError unless the folder of a file that is to be written is there."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder: make it, or give another path", str(folder))


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], None]) -> None:
    """Let `write` fill a file that takes the place of `path` only when it is complete and on disk.

    A crash leaves the old file as it was, and at the worst a hidden file with the ending ``.part`` beside it.
    """
    target = Path(os.path.realpath(path))
    check_folder(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder's entries to disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_archive(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a manifest and arrays; their shapes, types and checksums are added to the manifest as ``arrays``."""
    members = {name: _npy(array) for name, array in arrays.items()}
    listing = {
        name: {
            "shape": list(arrays[name].shape),
            "dtype": arrays[name].dtype.newbyteorder("<").str,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in members.items()
    }
    text = json.dumps({**manifest, "arrays": listing}, allow_nan=False, ensure_ascii=False, indent=1)
    content = text.encode("utf-8", errors="surrogatepass")
    if len(content) > LARGEST_MANIFEST:
        raise ModelFileError(
            f"The manifest would take {len(content):,} bytes, but at most {LARGEST_MANIFEST:,} are allowed: "
            "the names of the features are too long. Shorten them, or fit without names."
        )

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            # ZipInfo without a date: equal models give equal files.
            archive.writestr(zipfile.ZipInfo(MANIFEST), content)
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(_member(name)), data)

    write_atomically(path, write)


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _npy(array: NDArray[Any]) -> bytes:
    """Return an array as the bytes of a ``.npy`` file, little-endian and by rows."""
    buffer = io.BytesIO()
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


# --- reading ----------------------------------------------------------------------------------------------------


def read_archive(
    path: str | os.PathLike[str], check_manifest: Callable[[Manifest], None] = lambda manifest: None
) -> tuple[Manifest, Arrays]:
    """Return the manifest and the arrays of an archive, every byte of which was accounted for.

    Parameters
    ----------
    path : path
    check_manifest : callable, optional
        Called with the manifest before anything else is read; it raises on versions that it does not know.

    Raises
    ------
    ModelFileError
        If the file is damaged, or holds anything else than the manifest lists.
    """
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, os.fstat(file.fileno()).st_size)
                manifest = _parse(_content(archive, members.pop(MANIFEST)))
                check_manifest(manifest)
                return manifest, _read_arrays(archive, members, manifest.get("arrays"))
        except ModelFileError:
            raise
        except _ZIP_ERRORS as error:
            raise ModelFileError(
                f"This is not a model file, or it is cut short or damaged ({error}). Give a file that mmpca fit or "
                "model.save wrote; if it is one, copy it again, or save the model again."
            ) from error


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, once none of them can surprise."""
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise ModelFileError(f"The file has {len(infos)} members, but a model has at most {MOST_MEMBERS}.")
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        raise ModelFileError("The file has two members of the same name: it was not written by mmpca.")
    if MANIFEST not in members:
        raise ModelFileError(f"The file has no {MANIFEST}: it is a zip file, but not a model file of mmpca.")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ModelFileError(f"Member {_shown(info.filename)} is compressed or encrypted; model files never are.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("The members claim to be larger than the whole file: it was made to use up memory.")
    if members[MANIFEST].file_size > LARGEST_MANIFEST:
        raise ModelFileError(f"The manifest is larger than the {LARGEST_MANIFEST:,} bytes that are allowed.")
    return members


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    content = archive.read(info)
    if len(content) != info.file_size:
        raise ModelFileError(f"Member {_shown(info.filename)} is cut short. Copy the file again.")
    return content


def _parse(content: bytes) -> Manifest:
    """Return the manifest as a dictionary; JSON with NaN, doubled keys or bottomless nesting is refused."""
    try:
        text = content.decode("utf-8", errors="surrogatepass")
        manifest = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{MANIFEST} cannot be read: {error}.") from error
    if not isinstance(manifest, dict):
        raise ModelFileError(f"{MANIFEST} must hold an object, but it holds a {type(manifest).__name__}.")
    return manifest


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def _read_arrays(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], listing: Any) -> Arrays:
    """Return the arrays that the manifest lists, which must be all other members."""
    if not isinstance(listing, dict) or not all(isinstance(entry, dict) for entry in listing.values()):
        raise ModelFileError(f"{MANIFEST} must list the arrays as an object of objects.")
    expected = {_member(name): name for name in listing}
    for name in sorted(set(members) - set(expected)):
        raise ModelFileError(f"The file has a member {_shown(name)} that the manifest does not list.")
    for name in sorted(set(expected) - set(members)):
        raise ModelFileError(f"Member {_shown(name)} is missing. Copy the file again, or save the model again.")
    return {
        name: _read_array(name, _content(archive, members[member]), listing[name]) for member, name in expected.items()
    }


def _read_array(name: str, content: bytes, entry: dict[str, Any]) -> NDArray[Any]:
    """Return one array, after its type, shape, size and checksum agreed with the manifest."""
    shape, dtype = entry.get("shape"), entry.get("dtype")
    if dtype not in DTYPES:
        raise ModelFileError(f"Array {_shown(name)} has the type {_shown(dtype)}, but only {', '.join(DTYPES)} occur.")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ModelFileError(f"Array {_shown(name)} has the shape {_shown(shape)}, which is not a list of sizes.")
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise ModelFileError(f"Array {_shown(name)} does not have the checksum that the manifest gives: it is damaged.")
    header = _header(name, content)
    found = header["dtype"].decode(), header["shape"].decode().replace(" ", "").strip(",")
    if found != (dtype, ",".join(map(str, shape))):
        raise ModelFileError(
            f"Array {_shown(name)} should have shape {tuple(shape)} and type {dtype}, but its own header says "
            f"({_shown(found[1])}) and {_shown(found[0])}."
        )
    # Python's integers: sizes that overflow must not agree by accident.
    n_entries = int(np.prod(np.array(shape, dtype=object))) if shape else 1
    if len(content) - header.end() != n_entries * np.dtype(dtype).itemsize:
        raise ModelFileError(f"Array {_shown(name)} does not have as many bytes as its shape {tuple(shape)} needs.")
    native = np.dtype(dtype).newbyteorder("=")
    return np.frombuffer(content, dtype, offset=header.end()).reshape(shape).astype(native)


def _header(name: str, content: bytes) -> re.Match[bytes]:
    """Return the header of a ``.npy`` array; NumPy would take any Python literal here, this takes what NumPy writes."""
    found = _NPY_HEADER.match(content)
    if found is None or found.end() != 10 + int.from_bytes(found["length"], "little"):
        raise ModelFileError(f"Array {_shown(name)} is not a .npy array of version 1.0, by rows, without objects.")
    return found


def _shown(value: object) -> str:
    """Return a short form of something that a stranger wrote, control characters escaped."""
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
