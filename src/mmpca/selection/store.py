"""A folder that keeps what a search of the grid has finished, so that a second run goes on where the first ended.

It holds ``search.json``, which says to what data and options it belongs, and one ``.npz`` file for each finished part:
``topics-K``, ``fresh-Q-K``, and ``up-...`` and ``down-...`` for cells improved by their neighbours'. Files appear
complete or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np

from mmpca.counts import Counts
from mmpca.errors import StoreError

SCHEMA = 2
VERSION = version("mmpca")  # another may find other cells
Part = TypeVar("Part", bound=NamedTuple)
# Of entries whose values say nothing to a reader.
DIFFERENCES = {
    "data": "its counts are others (for texts, other words may have been left out)",
    "seed": "it was made with another random_state (--seed), which has to be a number, the same each time",
}


def fingerprint(rows: Counts) -> str:
    """Return a checksum of counts."""
    digest = hashlib.sha256(repr((rows.n_rows, rows.n_features)).encode())
    for array in (rows.indptr, rows.indices, rows.data):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class Store:
    """Finished parts of one search in a folder; without a folder, nothing is kept."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        # Absolute: processes that fit cells may have been started in another folder.
        self.folder = None if folder is None else Path(folder).absolute()

    def open(self, belongs_to: dict[str, Any]) -> None:
        """Make the folder, or refuse one that belongs to other data or options."""
        if self.folder is None:
            return
        content = {"schema": SCHEMA, "mmpca": VERSION} | belongs_to
        path = self.folder / "search.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._compare(json.loads(path.read_text(encoding="utf-8")), content)
            self._write(path, lambda part: part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8"))
        except (OSError, ValueError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"store must be a folder that can be written to, but {self.folder} is not: {error}. "
                "Give another folder, or None to keep nothing."
            ) from error

    def _compare(self, found: Any, expected: dict[str, Any]) -> None:
        if not isinstance(found, dict):
            raise StoreError(f"{self.folder}/search.json is not that of a search. Give another folder.")
        for name, value in expected.items():
            if found.get(name) != value:
                told = DIFFERENCES.get(name) or f"its {name} is {found.get(name)!r}, here it is {value!r}"
                raise StoreError(
                    f"store {self.folder} belongs to another search: {told}. Give another folder, or the data and "
                    "options that it was made with."
                )

    def remember(self, name: str, kind: Callable[..., Part], compute: Callable[[], Part]) -> Part:
        """Return a part from the folder, or compute it and put it there."""
        part = self.known(name, kind)
        if part is None:
            part = compute()
            self.keep(name, part)
        return part

    def known(self, name: str, kind: Callable[..., Part]) -> Part | None:
        """Return a part from the folder, None if it is not there, or not ours."""
        if self.folder is None:
            return None
        try:
            with (self.folder / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return kind(**{key: _plain(array) for key, array in arrays.items()})
        except (OSError, EOFError, TypeError, ValueError, BadZipFile):
            return None

    def keep(self, name: str, part: NamedTuple) -> None:
        """Put a part into the folder."""
        if self.folder is not None:
            arrays = {key: np.asarray(value) for key, value in part._asdict().items()}
            self._write(self.folder / f"{name}.npz", lambda temporary: _save(temporary, arrays))

    def taken_along(self, names: Iterable[str], kind: Callable[..., NamedTuple]) -> Luggage:
        """Return what is known of some parts, for a process that cannot see the folder."""
        found = {name: self.known(name, kind) for name in names}
        return Luggage({name: part for name, part in found.items() if part is not None})

    def _write(self, path: Path, write: Callable[[Path], object]) -> None:
        """Write a file beside its place and move it there."""
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            write(part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


class Luggage(Store):
    """Finished parts that travel with a call; what it adds is brought back to be kept."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        super().__init__(None)
        self.parts, self.added = dict(parts), dict[str, Any]()

    def known(self, name: str, kind: Callable[..., Part]) -> Part | None:
        """Return a part, None if it has not been finished."""
        return self.parts.get(name)

    def keep(self, name: str, part: NamedTuple) -> None:
        """Add a part."""
        self.added[name] = part


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("wb") as file:  # given a name, NumPy would add an ending of its own
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())


def _plain(array: Any) -> Any:
    """Return an array, or the Python value of one without dimensions."""
    return array.item() if array.ndim == 0 else array
