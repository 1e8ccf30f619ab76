"""Atomic file writes, and folders of finished work from which a later run resumes."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from mmpca.errors import StoreError, StoreWarning, warn

Arrays = dict[str, NDArray[Any]]


# --- files ------------------------------------------------------------------------------------------------------


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError unless the folder of a file that will be written exists."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "The folder does not exist: create it, or choose another path", str(folder)
        )


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` with a temporary file, then rename that file to `path`.

    A crash leaves the old file untouched, and at worst a hidden file ending in ``.part`` beside it. An existing file
    keeps its mode and owner. A pipe or a character device such as ``/dev/null`` is written into rather than replaced,
    as is the file of another owner, which only a privileged process could recreate.

    Raises
    ------
    OSError
        The file cannot be written; `filename` is its path.
    """
    check_writable(path)
    try:
        old = _stat(path)
        if old is None or (stat.S_ISREG(old.st_mode) and _can_recreate(old)):
            _replace(Path(os.path.realpath(path)), old, write)
        else:
            _overwrite(path, write)
    except OSError as error:
        if error.errno is None:  # NumPy reports a short write without a number
            raise OSError(errno.EIO, str(error), os.fspath(path)) from error
        if error.filename is None or os.fspath(error.filename).endswith(".part"):
            error.filename = os.fspath(path)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a file can be written: its folder exists, and an existing file is writable.

    Call this before long work, so that hours are not lost to a wrong path.
    """
    old, name = _stat(path), os.fspath(path)
    if old is None:
        check_folder(os.path.realpath(path))
    elif stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    elif stat.S_ISREG(old.st_mode):
        os.close(os.open(path, os.O_WRONLY))  # a read-only file could be replaced, but somebody protected it
    elif not (stat.S_ISFIFO(old.st_mode) or stat.S_ISCHR(old.st_mode)):
        raise OSError(errno.EINVAL, "This is a socket or a disk, not a file: choose another path", name)


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return the status of the file that a path leads to; None if there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _can_recreate(old: os.stat_result) -> bool:
    """Return True if this process may create a file with the owner of an existing one."""
    if not hasattr(os, "geteuid"):
        return True
    groups = {os.getegid(), *os.getgroups()}
    return os.geteuid() == 0 or (old.st_uid == os.geteuid() and old.st_gid in groups)


def _replace(target: Path, old: os.stat_result | None, write: Callable[[IO[bytes]], object]) -> None:
    """Write a new file beside the target, with the mode and owner of an old one, and rename it."""
    # The name of the target is left out: with it, a long name would become too long.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        # Nobody else may read a file that replaces a private one, not even while it is being written.
        with open(part, "xb", opener=partial(os.open, mode=0o666 if old is None else 0o600)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            if hasattr(os, "chown"):
                os.chown(part, old.st_uid, old.st_gid)
            os.chmod(part, stat.S_IMODE(old.st_mode))  # after chown, which clears some bits
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _overwrite(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Write a temporary file, and copy its bytes into an existing file, pipe or device."""
    with tempfile.TemporaryFile() as whole:
        write(whole)
        whole.seek(0)
        with open(path, "wb") as file:
            shutil.copyfileobj(whole, file)


def _sync_folder(folder: Path) -> None:
    """Flush the folder's entries to disk, where the operating system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write named arrays, numbers and strings to an ``.npz`` file atomically."""
    values: dict[str, Any] = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    write_atomically(path, lambda file: np.savez(file, **values))


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Return the arrays of an ``.npz`` file that :func:`write_arrays` wrote; nothing is unpickled.

    Raises
    ------
    OSError
        The file is missing or cannot be opened.
    ValueError
        The file is damaged, not an ``.npz`` file, or not a regular file.
    """
    with open_regular(path) as file:
        try:
            with ZipFile(file) as archive:
                members = stored_members(archive, os.fstat(file.fileno()).st_size)
                return {name.removesuffix(".npy"): parse_array(content()) for name, content in members.items()}
        except ZIP_ERRORS as error:
            raise ValueError(f"{os.fspath(path)} is damaged, or not an .npz file: {error}") from error


# --- archives -----------------------------------------------------------------------------------------------------

# Everything that zipfile is known to raise on damaged archives.
ZIP_ERRORS = (BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, struct.error, OSError)
# NumPy would evaluate any Python literal in a header; this accepts only what NumPy writes for plain arrays in C order.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>[\x00-\xff]{2})"
    rb"\{'descr': '(?P<dtype>[<>|][bifuUS]\d{1,9})', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n"
)


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; raise ValueError for pipes and devices, which may block or never end."""
    if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{os.fspath(path)} is a pipe or a device, not a file")
    return open(path, "rb")


def stored_members(archive: ZipFile, file_size: int) -> dict[str, Callable[[], bytes]]:
    """Return a function for each member of an archive that reads it and compares its checksum.

    Raise ValueError unless the names differ and all members are stored without compression: then they cannot take
    more memory than the file has bytes.
    """
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        raise ValueError("it has two members with the same name")
    for info in infos:
        if info.compress_type != ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ValueError(f"member {info.filename!a} is compressed or encrypted")
    if sum(info.file_size for info in infos) > file_size:
        raise ValueError("the members claim to be larger than the whole file")
    return {name: partial(archive.read, info) for name, info in members.items()}


def parse_array(content: bytes) -> NDArray[Any]:
    """Return the array in the content of an ``.npy`` file; raise ValueError unless header and size agree exactly."""
    header = _NPY_HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header["length"], "little"):
        raise ValueError("not a .npy array of version 1.0 in C order without objects")
    dtype = np.dtype(header["dtype"].decode())
    shape = tuple(int(size) for size in header["shape"].decode().replace(" ", "").split(",") if size)
    # math.prod is exact: sizes that overflow 64 bits must not match by accident.
    if len(content) - header.end() != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and type {dtype.str} needs a different number of bytes")
    return np.frombuffer(content, dtype, offset=header.end()).reshape(shape).astype(dtype.newbyteorder("="))


# --- identity ---------------------------------------------------------------------------------------------------


def first_difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Return the first name whose values differ, None if all are equal."""
    return next((name for name in {**expected, **found} if found.get(name) != expected.get(name)), None)


def digest(identity: Mapping[str, Any]) -> str:
    """Return a checksum of an identity: the same for equal values in any process."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def _create(path: Path, text: str) -> bool:
    """Write a file unless it exists already; another process may create it at the same time."""
    if path.exists():
        return False
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        write_text(part, text)
        os.link(part, path)  # unlike a renaming, this fails if the file exists
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return False
    finally:
        part.unlink(missing_ok=True)
    return True


def cache_folder() -> Path:
    """Return the user's cache folder for this package, by the convention of the platform."""
    if os.name == "nt":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        given = Path(os.environ.get("XDG_CACHE_HOME", ""))
        root = given if given.is_absolute() else Path.home() / ".cache"
    return root / "mmpca"


class Store:
    """A folder of finished parts that all belong to one computation.

    The folder holds ``<kind>.json``, the identity of the computation, and one ``.npz`` file for each finished part.
    Every part carries its name and a checksum of the identity, so a part of another computation is never used.

    Parameters
    ----------
    folder : path or None
        Created by :meth:`open`; without a folder, nothing is kept.
    kind : str
        Kind of computation, such as "search"; it names the identity file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder, "search")
    ...     store.open({"seed": 0})
    ...     store.write("cell-6-4", {"bound": -3.5, "labels": [0, 1]})
    ...     float(store.read("cell-6-4")["bound"]), store.read("cell-7-4")
    (-3.5, None)
    """

    def __init__(self, folder: str | os.PathLike[str] | None, kind: str) -> None:
        # Absolute, because worker processes may have another working directory.
        self.folder = None if folder is None else Path(folder).absolute()
        self.kind = kind
        self._digest = ""

    def open(self, identity: Mapping[str, Any], explain: Mapping[str, str] | None = None) -> None:
        """Create the folder, or raise StoreError if it belongs to another computation.

        Parameters
        ----------
        identity : mapping of str to JSON value
            Data, options and versions that the parts depend on.
        explain : mapping of str to str, optional
            Messages to show when these entries differ, for values that mean nothing to a user.
        """
        identity = json.loads(json.dumps(identity))  # tuples come back as lists
        self._digest = digest(identity)
        if self.folder is None:
            return
        path = self.folder / f"{self.kind}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not _create(path, json.dumps({**identity, "checksum": self._digest}, indent=1) + "\n"):
                self._check_identity(path, identity, explain or {})
        except OSError as error:
            raise StoreError(
                f"Cannot write to the folder {self.folder}: {error}. Choose another folder.", path=self.folder
            ) from error

    def _check_identity(self, path: Path, identity: Mapping[str, Any], explain: Mapping[str, str]) -> None:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.pop("checksum", None) != digest(found):
            raise StoreError(
                f"{path} is damaged, or was written by another version of mmpca. Delete this file and start again: "
                "finished parts that belong to the same computation will be used.",
                path=path,
            )
        name = first_difference(found, identity)
        if name is None:
            return
        reason = explain.get(name) or f"its {name} is {found.get(name)!r}, but this one's is {identity.get(name)!r}"
        raise StoreError(
            f"The folder {self.folder} belongs to another {self.kind}: {reason}. Choose another folder, or use the "
            "data and options it was created with.",
            path=path,
        )

    def read(self, name: str) -> Arrays | None:
        """Return a finished part, None if it is missing.

        A part that is damaged, or left by another computation, counts as missing, with a StoreWarning.
        """
        if self.folder is None:
            return None
        path = self.folder / f"{name}.npz"
        try:
            arrays = read_arrays(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            warn(f"{error}. It will be recomputed.", StoreWarning)
            return None
        if str(arrays.pop("identity", "")) != self._identity_of(name):
            warn(f"{path} belongs to another {self.kind}. It will be recomputed and replaced.", StoreWarning)
            return None
        return arrays

    def _identity_of(self, name: str) -> str:
        return f"{self._digest} {name}"

    def write(self, name: str, part: Mapping[str, Any]) -> None:
        """Keep a finished part."""
        if self.folder is not None:
            write_arrays(self.folder / f"{name}.npz", {**part, "identity": self._identity_of(name)})
