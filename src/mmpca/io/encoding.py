"""Names as numbers, and triples of names and counts as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.io.builder import CountsBuilder
from mmpca.io.faults import refusal
from mmpca.io.names import SideFiles, named_table, read_names
from mmpca.io.table import CountTable, Names, NamesOrFile, Request, as_names


class Labels(NamedTuple):
    """Names of the entries of a batch, each name once."""

    names: Sequence[str]
    positions: NDArray[np.integer]  # (n,): which name each entry has


class Places(NamedTuple):
    """Where the entries of a batch stand in the file."""

    unit: str  # "line" or "record"
    numbers: Sequence[int]


class Triples:
    """Triples of row, feature and count on their way into a matrix.

    Parameters
    ----------
    request : Request
        Names that are given are the only ones there can be, and fix the order; otherwise names are numbered in the
        order in which they come.
    """

    def __init__(self, request: Request) -> None:
        self._path = request.path
        self._transposed = bool(request.transpose)
        rows = _Codes(request.path, request.row_names, "row")
        features = _Codes(request.path, request.feature_names, "feature")
        # By the order of the columns in the file.
        self._sides = (features, rows) if self._transposed else (rows, features)
        self._builder = CountsBuilder(self._transposed)

    def add(self, rows: Labels, features: Labels, counts: NDArray[np.int32], places: Places) -> None:
        """Take a batch of triples."""
        first, second = self._sides
        self._builder.add(first.encode(rows, places), second.encode(features, places), counts)

    def finish(self) -> CountTable:
        """Return the matrix with its names."""
        first, second = self._sides
        if not first.numbers or not second.numbers:
            raise refusal(self._path, "the file holds no triples. Check the step that wrote it.")
        X = self._builder.finish(self._path, (len(first.numbers), len(second.numbers)))
        rows, features = (second, first) if self._transposed else (first, second)
        sides = SideFiles(rows.names(), features.names(), self._transposed)
        return named_table(self._path, X, sides, self._builder.notes())


class _Codes:
    """Numbers of names."""

    def __init__(self, path: Path, given: NamesOrFile | None, what: str) -> None:
        self._path, self._what, self._is_closed = path, what, given is not None
        known: Sequence[str] = [] if given is None else read_names(given)[0].tolist()
        self.numbers: dict[str, int] = {name: number for number, name in enumerate(known)}
        if len(self.numbers) < len(known):
            raise refusal(path, f"the {what} names that are given must be unique. Remove repetitions.")

    def encode(self, labels: Labels, places: Places) -> NDArray[np.int64]:
        """Return the number of each entry's name, (n,)."""
        if self._is_closed:
            self._check_known(labels, places)
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in labels.names]
        return np.array(numbers, dtype=np.int64)[labels.positions]

    def names(self) -> Names:
        """Return the names in the order of their numbers."""
        return as_names(list(self.numbers))

    def _check_known(self, labels: Labels, places: Places) -> None:
        for position, name in enumerate(labels.names):
            if name not in self.numbers:
                entry = int(np.argmax(labels.positions == position))
                raise refusal(
                    self._path,
                    f"{name!r} is not among the {len(self.numbers)} {self._what} names that are given. Add it to them, "
                    "or leave them out.",
                    **{places.unit: places.numbers[entry]},
                )
