"""Counts that arrive in pieces, in any order, as CSR in little more memory than that takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.io.faults import LARGEST_COUNT, refusal


class _Piece(NamedTuple):
    """Entries sorted by row, in the smallest types that hold them."""

    steps: NDArray[np.unsignedinteger[Any]]  # from each row that occurs to the next, the first from 0
    sizes: NDArray[np.unsignedinteger[Any]]  # entries of each of these rows
    columns: NDArray[np.unsignedinteger[Any]]
    counts: NDArray[np.unsignedinteger[Any]]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows that occur, once each, ascending."""
        return np.cumsum(self.steps, dtype=np.int64)


class CountsBuilder:
    """Collects entries and returns them as one matrix.

    Pieces are kept sorted by row and in small types, 3 to 8 bytes an entry and 2 to 6 for every row of a piece, and
    given back one by one while the matrix (8 bytes an entry) is filled: its peak stays below about twice the matrix.

    Parameters
    ----------
    transposed : bool
        Whether rows and columns change places.
    """

    def __init__(self, transposed: bool = False) -> None:
        self._transposed = transposed
        self._pieces: list[_Piece] = []
        self.n_zeros = 0
        self.n_duplicates = 0

    def add(self, rows: NDArray[Any], columns: NDArray[Any], counts: NDArray[np.int32]) -> None:
        """Take entries, all arrays of shape (n,); zeros are dropped and counted."""
        if counts.min(initial=1) == 0:
            kept = counts > 0
            self.n_zeros += int(counts.size - kept.sum())
            rows, columns, counts = rows[kept], columns[kept], counts[kept]
        if self._transposed:
            rows, columns = columns, rows
        if counts.size:
            self._pieces.append(_piece(rows, columns, counts))

    def finish(self, path: Path, shape: tuple[int, int]) -> sparse.csr_array:
        """Return the matrix; `shape` is that of the file, before rows and columns change places."""
        n_rows, n_columns = shape[::-1] if self._transposed else shape
        sizes = np.zeros(n_rows + 1, dtype=np.int64)
        for piece in self._pieces:
            sizes[piece.rows + 1] += piece.sizes
        indptr = np.cumsum(sizes)
        csr = sparse.csr_array((*self._fill(indptr), _smallest_index(indptr)), shape=(n_rows, n_columns))
        self.n_duplicates = _sum_duplicates(path, csr)
        return csr

    def notes(self) -> list[str]:
        """Return what was done to the entries."""
        return _notes(self.n_duplicates, self.n_zeros, self._transposed)

    def _fill(self, indptr: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return data and indices, (nnz,) each; every piece is given back once it has been copied."""
        data, indices = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.int32)
        free = indptr[:-1].copy()  # the next free place of each row
        self._pieces.reverse()
        while self._pieces:
            piece = self._pieces.pop()
            rows, sizes = piece.rows, piece.sizes.astype(np.int64)
            starts = np.cumsum(sizes) - sizes
            places = np.repeat(free[rows] - starts, sizes) + np.arange(piece.counts.size)
            data[places], indices[places] = piece.counts, piece.columns
            free[rows] += sizes
        return data, indices


def canonical(path: Path, matrix: Any, transposed: bool) -> tuple[sparse.csr_array, list[str]]:
    """Return a sparse matrix of int32 counts in the form of a `CountTable`, and notes.

    The arrays of the matrix may be changed: they must be the reader's own.
    """
    if matrix.format == "coo":  # SciPy would sum duplicates on the way, in int32
        builder = CountsBuilder(transposed)
        rows, columns = matrix.coords
        builder.add(rows, columns, matrix.data)
        return builder.finish(path, matrix.shape), builder.notes()
    try:
        matrix.check_format(full_check=True)  # places out of range would be written to, unchecked
    except ValueError as error:
        raise refusal(path, f"its arrays make no sound {matrix.format} matrix: {error}. Write it again.") from error
    csr = sparse.csr_array(matrix.T if transposed else matrix)
    nnz = csr.nnz
    if csr.data.min(initial=1) == 0:  # what is mapped into memory is not written to without need
        csr.eliminate_zeros()
    n_zeros = nnz - csr.nnz
    return csr, _notes(_sum_duplicates(path, csr), n_zeros, transposed)


def _sum_duplicates(path: Path, csr: sparse.csr_array) -> int:
    """Sort the columns of each row and sum entries of the same place, in place; return how many were too many."""
    csr.sort_indices()
    if csr.has_canonical_format:
        return 0
    nnz = csr.nnz
    csr.data = csr.data.astype(np.int64)  # sums cannot wrap around
    csr.sum_duplicates()
    if (largest := int(csr.data.max())) > LARGEST_COUNT:
        i, v = (int(index[csr.data.argmax()]) for index in csr.tocoo().coords)
        raise refusal(
            path,
            f"repeated entries of row {i + 1}, column {v + 1} sum to {largest}, but the largest possible count is "
            f"{LARGEST_COUNT}. Check the unit, or whether the file was appended to itself.",
        )
    csr.data = csr.data.astype(np.int32)
    return nnz - csr.nnz


def _notes(n_duplicates: int, n_zeros: int, transposed: bool) -> list[str]:
    """Return what was done to a matrix, a sentence each."""
    notes = []
    if n_duplicates:
        notes.append(f"{_entries(n_duplicates, 'repeated')} summed with the first of their place.")
    if n_zeros:
        notes.append(f"{_entries(n_zeros, 'stored zero')} dropped.")
    if transposed:
        notes.append("Transposed: the file holds features by observations.")
    return notes


def _piece(rows: NDArray[Any], columns: NDArray[Any], counts: NDArray[np.int32]) -> _Piece:
    """Return entries as a piece."""
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        rows, columns, counts = rows[order], columns[order], counts[order]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    sizes = np.diff(starts, append=rows.size)
    steps = np.diff(rows[starts], prepend=0)
    return _Piece(*(_smallest(values) for values in (steps, sizes, columns, counts)))


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(values.max()))


def _smallest_index(indptr: NDArray[np.int64]) -> NDArray[Any]:
    """Return row pointers in the type of the column indices where they fit, as SciPy wants them."""
    return indptr.astype(np.int32) if indptr[-1] <= LARGEST_COUNT else indptr


def _entries(number: int, what: str) -> str:
    return f"1 {what} entry was" if number == 1 else f"{number} {what} entries were"
