"""What a reader returns and a writer takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Names: TypeAlias = NDArray[np.object_]
NamesOrFile: TypeAlias = str | Path | Sequence[str] | NDArray[np.generic]


class CountTable(NamedTuple):
    """Counts with the names of their rows and features.

    Attributes
    ----------
    X : csr_array of int32, shape (n_rows, n_features)
        Columns are sorted within rows and occur once; no stored zeros.
    row_names : ndarray of str objects, shape (n_rows,), or None
        Names of the rows, where the file has them.
    feature_names : ndarray of str objects, shape (n_features,), or None
        Names of the features, where the file has them.
    notes : list of str
        What was done to the file's numbers on the way, a sentence each.
    """

    X: sparse.csr_array
    row_names: Names | None
    feature_names: Names | None
    notes: list[str]


class Request(NamedTuple):
    """A file to read, and what the caller says of it; see `read_counts`."""

    path: Path
    row_names: NamesOrFile | None = None
    feature_names: NamesOrFile | None = None
    columns: Sequence[str] | None = None
    transpose: bool | None = None
    layer: str | None = None
    format: str | None = None  # None: it was found out


def as_names(names: Sequence[str] | NDArray[np.generic]) -> Names:
    """Return names as an array of str objects, whose memory grows with their lengths and not with the longest."""
    array = np.empty(len(names), dtype=object)
    array[:] = [str(name) for name in names]
    return array
