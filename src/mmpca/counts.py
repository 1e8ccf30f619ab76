"""What a count matrix is, and every check that one has to pass.

:func:`as_counts` turns whatever a user calls a count matrix into :class:`Counts`: arrays of fixed types that
the compiled kernels read. What is not a count is refused here, with its place, so that no other room checks
again.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from reprlib import repr as short_repr
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mmpca.errors import CountsError

__all__ = ["LARGEST_COUNT", "Counts", "as_counts", "no_rows", "square_root", "stacked", "transposition_hint"]

LARGEST_COUNT = 2**31 - 1
_MOST_ENTRIES = 2**31 - 1  # whose places fit into the 32 bits of SciPy's usual indices

# Entries looked at in one go: temporaries stay in the cache, and the sum of a chunk is exact in float64.
_CHUNK = 2**17

# Rows that decide what fractional values look like.
_SAMPLE_ROWS = 100


class Counts(NamedTuple):
    """A matrix of counts by rows, in the one form that the kernels are compiled for.

    Columns are sorted within each row and occur once; all entries are positive. The arrays are contiguous,
    aligned, writeable and of native byte order, so that compiled functions see a single signature. They may
    be the caller's own: never write to them.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_rows + 1,)
        Row `i` holds the entries `indptr[i]` to `indptr[i + 1] - 1`.
    indices : ndarray of int32, shape (nnz,)
        Column of each entry.
    data : ndarray of int32, shape (nnz,)
        Count of each entry, at least 1.
    n_features : int
        Number of columns.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.int32]
    n_features: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    @property
    def nnz(self) -> int:
        """Number of entries that are not zero."""
        return self.indices.size

    def row_totals(self, weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sum of each row, shape (n_rows,); of its counts times the weights of their features, if given.

        Weights are whole numbers, shape (n_features,): the sums have their type, and wrap around where it ends.
        """
        totals = np.zeros(self.n_rows, dtype=np.int64 if weights is None else weights.dtype)
        for first, last in _row_blocks(self.indptr):
            start, stop = self.indptr[first], self.indptr[last]
            # reduceat wants strictly growing starts: rows without entries keep their zero.
            filled = first + np.flatnonzero(np.diff(self.indptr[first : last + 1]))
            block: NDArray[Any] = self.data[start:stop]
            if weights is not None:
                block = block.astype(weights.dtype) * weights[self.indices[start:stop]]
            totals[filled] = np.add.reduceat(block, self.indptr[filled] - start, dtype=totals.dtype)
        return totals

    def column_totals(self) -> NDArray[np.int64]:
        """Return the sum of each column, shape (n_features,); zero for a feature that never occurs."""
        totals = np.zeros(self.n_features, dtype=np.int64)
        for part in _chunks(self.nnz):
            sums = np.bincount(self.indices[part], weights=self.data[part], minlength=self.n_features)
            totals += sums.astype(np.int64)
        return totals

    def take(self, rows: ArrayLike | slice) -> "Counts":
        """Return the given rows (indices, a mask or a slice) in the given order.

        Rows that follow each other, given by a slice, share their entries with these counts; others are copied.
        """
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                return self._stretch(start, max(start, stop))
            rows = np.arange(start, stop, step)
        selected = np.arange(self.n_rows)[np.asarray(rows)]
        first = self.indptr[selected]
        sizes = self.indptr[selected + 1] - first
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        taken = Counts(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int32), self.n_features)
        for start, stop in _row_blocks(indptr):
            to = slice(indptr[start], indptr[stop])
            at = np.repeat(first[start:stop] - indptr[start:stop], sizes[start:stop]) + np.arange(to.start, to.stop)
            taken.indices[to], taken.data[to] = self.indices[at], self.data[at]
        return taken

    def _stretch(self, first: int, last: int) -> "Counts":
        """Return rows that follow each other, sharing their entries."""
        start, stop = self.indptr[first], self.indptr[last]
        indptr = self.indptr[first : last + 1] - start
        return Counts(indptr, self.indices[start:stop], self.data[start:stop], self.n_features)

    def group_sums(self, groups: NDArray[np.integer[Any]], n_groups: int) -> NDArray[np.float64]:
        """Return the sums of the rows of each group, shape (n_groups, n_features), `groups` being those of the rows."""
        sums = np.zeros((n_groups, self.n_features))
        # SciPy makes doubles of the entries that it adds up: of no more at a time than there are sums.
        for first, last in _row_blocks(self.indptr, max(_CHUNK, sums.size)):
            block = self._stretch(first, last)
            places = groups[first:last], np.arange(block.n_rows)
            members = sparse.csr_array((np.ones(block.n_rows), places), shape=(n_groups, block.n_rows))
            sums += (members @ block.to_csr()).toarray()
        return sums

    def to_csr(self) -> sparse.csr_array:
        """Return the counts as a SciPy array that shares `indices` and `data`.

        SciPy wants one type for both index arrays: `indptr` is cast, and `indices` only where there are more
        than 2**31 - 1 entries.
        """
        indptr = self.indptr.astype(np.int32) if self.nnz <= _MOST_ENTRIES else self.indptr
        csr = sparse.csr_array((self.data, self.indices, indptr), shape=(self.n_rows, self.n_features))
        csr.has_canonical_format = True
        return csr


def no_rows(n_features: int) -> Counts:
    """Return counts of no row."""
    return Counts(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), n_features)


def stacked(parts: Sequence[Counts]) -> Counts:
    """Return the rows of several counts below each other.

    Examples
    --------
    >>> stacked([as_counts([[1, 2]]), as_counts([[0, 3], [4, 0]])]).to_csr().toarray()
    array([[1, 2],
           [0, 3],
           [4, 0]], dtype=int32)
    """
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0] + [part.nnz for part in parts])
    return Counts(
        np.concatenate([[0], *(part.indptr[1:] + start for part, start in zip(parts, first, strict=False))]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
        parts[0].n_features,
    )


def as_counts(X: Any, *, name: str = "X", empty_rows: Literal["error", "allow"] = "error") -> Counts:
    """Return `X` as counts, or say where and why it is not a matrix of counts.

    The arrays of `X` are shared where they already have the right form; `X` itself is never changed, and a
    sparse one never made dense. Whole numbers are accepted in any real type. Duplicate entries of a sparse
    matrix are summed (in a Boolean one, joined) and explicit zeros dropped. Columns without counts are fine.

    Parameters
    ----------
    X : array-like, sparse matrix, sparse array or data frame, shape (n_rows, n_features)
        Non-negative whole numbers up to 2**31 - 1.
    name : str, default="X"
        What messages call the matrix.
    empty_rows : {"error", "allow"}, default="error"
        Whether a row without any count is refused.

    Returns
    -------
    Counts
        The same numbers, in canonical form.

    Raises
    ------
    CountsError
        If `X` is not a matrix of counts; the message names the first such entry, row and column from 0.
    TypeError
        If `X` holds something other than numbers.

    Examples
    --------
    >>> from mmpca.counts import as_counts
    >>> counts = as_counts([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    >>> counts.data
    array([2, 1, 3], dtype=int32)
    >>> counts.row_totals()
    array([3, 3])
    >>> as_counts([[2, 0], [1, -1]])
    Traceback (most recent call last):
    mmpca.errors.CountsError: Negative values in data: X must hold counts (non-negative whole numbers),
    but X[1, 1] = -1. Remove or clip negative values, or undo a centring or scaling step.
    """
    matrix = _as_matrix(X, name)
    counts = _from_sparse(matrix, name) if sparse.issparse(matrix) else _from_dense(matrix, name)
    if empty_rows == "error":
        _check_no_empty_rows(counts, name)
    return counts


def square_root(counts: Counts) -> Counts:
    """Return the square roots of the counts, rounded to whole numbers.

    Square roots stabilise the variance of overdispersed counts. No entry becomes zero: the root of 1 is 1.

    Examples
    --------
    >>> from mmpca.counts import as_counts, square_root
    >>> square_root(as_counts([[1, 2, 3, 100]])).data
    array([ 1,  1,  2, 10], dtype=int32)
    """
    roots = np.empty_like(counts.data)
    for part in _chunks(counts.nnz):
        np.rint(np.sqrt(counts.data[part]), out=roots[part], casting="unsafe")
    return counts._replace(data=roots)


def transposition_hint(counts: Counts) -> str | None:
    """Return a hint if the matrix looks as if its rows were the features, else None.

    Features (words, genes, species) have very uneven totals; observations have rather even ones, and none is
    empty. So the hint is given only if all of this holds: there are at least 10 columns and more rows than
    columns, no column is empty, and the coefficient of variation of the row totals, leaving out empty rows,
    exceeds 1 and is more than three times that of the column totals. A few empty rows alone are no sign:
    pruning a vocabulary leaves some.
    """
    if not 10 <= counts.n_features < counts.n_rows:
        return None
    rows, columns = counts.row_totals(), counts.column_totals()
    if columns.min() == 0 or _variation(rows[rows > 0]) <= max(1.0, 3 * _variation(columns)):
        return None
    return (
        f"The matrix may be transposed: its {counts.n_rows} rows have far more uneven totals than its "
        f"{counts.n_features} columns, as features have. Rows must be the observations: else pass X.T."
    )


def _variation(totals: NDArray[np.int64]) -> float:
    """Return the coefficient of variation of positive totals."""
    return float(totals.std() / totals.mean())


def _chunks(length: int, width: int = 1) -> Iterator[slice]:
    """Yield the slices that cut rows of the given width into chunks of about `_CHUNK` entries."""
    step = max(1, _CHUNK // width)
    return (slice(start, start + step) for start in range(0, length, step))


def _row_blocks(indptr: NDArray[np.int64], n_entries: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the first and one past the last row of blocks that hold about so many entries each, `_CHUNK` by default."""
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], n_entries or _CHUNK))
    return pairwise(np.unique(np.append(cuts, indptr.size - 1)).tolist())


def _counts(csr: sparse.csr_array) -> Counts:
    """Return canonical CSR with positive int32 data as counts, sharing what has the right type already."""
    indptr, indices, data = (
        np.require(array, dtype, ["C", "A", "W", "E"])
        for array, dtype in ((csr.indptr, np.int64), (csr.indices, np.int32), (csr.data, np.int32))
    )
    return Counts(indptr, indices, data, csr.shape[1])


# --- the matrix: two dimensions, real numbers -----------------------------------------------------


def _as_matrix(X: Any, name: str) -> Any:
    """Return `X` as a sparse or dense matrix of real numbers."""
    matrix: Any = X if sparse.issparse(X) else _frame_or_array(X, name)
    _check_no_text(matrix, name)
    _check_shape(matrix.shape, name)
    kind = matrix.dtype.kind
    if kind == "c":
        raise CountsError(f"Complex data not supported: {name} must hold counts, but its type is {matrix.dtype}.")
    if kind == "O":
        return _numbers(matrix, name)
    if kind in "UST":
        raise CountsError(
            f"{name} must hold numbers, but its type is {matrix.dtype}. Convert digits with "
            f"{name}.astype(float), and count words with mmpca.text.CountTexts."
        )
    if kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, but its type is {matrix.dtype}. Give the counts themselves.")
    return matrix


def _check_no_text(matrix: Any, name: str) -> None:
    """Refuse a path or texts, which are read and counted elsewhere."""
    first = matrix.ravel()[0] if isinstance(matrix, np.ndarray) and matrix.ndim < 2 and matrix.size else None
    if not isinstance(first, str | os.PathLike):
        return
    found = short_repr(str(first)) if matrix.ndim == 0 else "a list of texts or paths"
    raise CountsError(
        f"{name} must be a matrix of counts, but it is {found}. Read a file with mmpca.io.read_counts(path).X; count "
        "words with mmpca.text.CountTexts."
    )


def _frame_or_array(X: Any, name: str) -> Any:
    """Return a data frame with sparse columns as a sparse matrix, and anything else as a dense array."""
    if np.ma.is_masked(X):
        raise CountsError(f"{name} has masked entries. Fill them first, e.g. with {name}.filled(0).")
    try:
        # pandas offers `sparse` only where all columns are sparse.
        if hasattr(getattr(X, "sparse", None), "to_coo"):
            return X.sparse.to_coo()
        return np.asarray(X)
    except ValueError as error:
        raise CountsError(
            f"{name} cannot be read as a matrix ({error}). Give rows of equal length, and a sparse data "
            "frame the fill value 0."
        ) from error


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise unless there are two dimensions, with at least one row and one column."""
    if len(shape) < 2:
        what = "scalar" if len(shape) == 0 else "1D"
        raise CountsError(
            f"Expected 2D array, got {what} array instead: {name} has shape {shape}. Reshape your data with "
            "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if a single sample."
        )
    if len(shape) > 2:
        raise CountsError(f"Expected 2D array, but {name} has shape {shape}. Flatten it to rows and features.")
    for size, what, unit in zip(shape, ("sample", "feature"), ("row", "column"), strict=True):
        if size == 0:
            raise CountsError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required. "
                f"Check the step that selected the {unit}s of {name}."
            )
    if shape[1] > LARGEST_COUNT:
        raise CountsError(f"{name} has {shape[1]} columns, but at most {LARGEST_COUNT} are possible.")


def _numbers(objects: NDArray[np.object_], name: str) -> NDArray[np.float64]:
    """Return an array of Python objects as floats; objects: (n_rows, n_features)."""
    try:
        return objects.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _object_error(objects, name) or error from error


def _object_error(objects: NDArray[np.object_], name: str) -> Exception | None:
    """Return the error for the first object that is not a real number."""
    for (i, v), value in np.ndenumerate(objects):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError) as error:
            if np.iscomplexobj(value):
                return CountsError(f"Complex data not supported: {name}[{i}, {v}] = {value}.")
            kind = TypeError if isinstance(error, TypeError) else CountsError
            return kind(
                f"{name} must hold counts, but {name}[{i}, {v}] = {short_repr(value)} is not a number "
                f"({error}). Convert, fill or drop such entries; leave out columns of names or text."
            )
    return None


# --- the form: by rows, sorted, each place once ---------------------------------------------------


def _from_dense(X: NDArray[Any], name: str) -> Counts:
    """Return the counts of a dense array; X: (n_rows, n_features)."""
    n_rows, n_features = X.shape
    nnz = np.count_nonzero(X)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    indices, data = np.empty(nnz, dtype=np.int32), np.empty(nnz, dtype=np.int32)
    filled = 0
    for part in _chunks(n_rows, n_features):
        block = X[part]
        rows, columns = np.nonzero(block)
        stop = filled + rows.size
        if not _store_counts(block[rows, columns], data[filled:stop]):
            sample = sparse.csr_array(X[:_SAMPLE_ROWS].astype(np.float64))
            raise _value_error(X, lambda position: divmod(position, n_features), sample, name)
        indices[filled:stop] = columns
        indptr[1:][part] = filled + np.cumsum(np.bincount(rows, minlength=len(block)))
        filled = stop
    return Counts(indptr, indices, data, n_features)


def _from_sparse(X: Any, name: str) -> Counts:
    """Return the counts of a sparse matrix or array of any format."""
    csr = _by_rows(X, name)
    data = _whole_numbers(csr.data)
    if data is None:
        sample = csr[:_SAMPLE_ROWS].astype(np.float64)
        raise _value_error(csr.data, lambda position: _place(csr, position), sample, name)
    if X.dtype == np.bool_:
        np.minimum(data, 1, out=data)  # duplicates: true and true is true
    has_zeros = data.min(initial=1) == 0
    # Zeros are eliminated in place, so on a copy: these may be the caller's arrays.
    csr = sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=has_zeros)
    if has_zeros:
        csr.eliminate_zeros()
    return _counts(csr)


def _by_rows(X: Any, name: str) -> sparse.csr_array:
    """Return a sparse matrix as CSR, columns sorted and duplicates summed, sharing arrays that are so."""
    if X.format in ("csr", "csc"):
        X = _checked_view(X, name)
    elif X.format == "coo":
        X = _widened(X)  # SciPy sums duplicates on the way to CSR
    csr = sparse.csr_array(X)
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()
    if not csr.has_canonical_format and _exceeding(csr.data).size == 0:
        wide = csr.data.astype(_wide(csr.dtype))
        csr = sparse.csr_array((wide, csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
        csr.sum_duplicates()
    return csr


def _checked_view(X: Any, name: str) -> Any:
    """Return a new CSR or CSC object on the arrays of `X`, once its indices are known to be sound.

    A new object, because SciPy's checks trim arrays and store flags in the object that they look at, and
    because flags stored in `X` may be out of date.
    """
    kind = sparse.csr_array if X.format == "csr" else sparse.csc_array
    try:
        view = kind((X.data, X.indices, X.indptr), shape=X.shape)
        view.check_format(full_check=True)
    except ValueError as error:
        raise CountsError(
            f"{name} is not a sound {X.format.upper()} matrix: {error}. Build it again from rows, columns "
            "and counts with scipy.sparse.coo_array."
        ) from error
    return view


def _widened(coo: Any) -> Any:
    """Return a COO matrix in a type in which the sums of its duplicates cannot wrap around."""
    data, (rows, columns) = coo.data, coo.coords
    exceeding = _exceeding(data)
    if exceeding.size == 0:
        data = data.astype(_wide(data.dtype), copy=False)
    else:
        # Refused in any case: keep the first such entry, for the message to name.
        first = exceeding[np.lexsort((columns[exceeding], rows[exceeding]))[:1]]
        data, rows, columns = data[first], rows[first], columns[first]
    return sparse.coo_array((data, (rows, columns)), shape=coo.shape)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type to sum duplicates in."""
    return np.promote_types(dtype, np.float64) if dtype.kind == "f" else np.dtype(np.int64)


def _exceeding(data: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of integers so large that sums of them could wrap around."""
    if data.dtype.kind not in "iu" or data.dtype.itemsize < 8:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero((data > LARGEST_COUNT) | (data < -LARGEST_COUNT))


def _place(csr: sparse.csr_array, position: int) -> tuple[int, int]:
    """Return row and column of the entry at a position of `data`."""
    return int(np.searchsorted(csr.indptr, position, side="right")) - 1, int(csr.indices[position])


# --- the values: whole, not negative, below 2**31 -------------------------------------------------


def _whole_numbers(values: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return values as int32, unchanged if they are, or None if one of them is not a count."""
    if values.dtype == np.int32:
        return values if values.min(initial=0) >= 0 else None
    data = np.empty(values.size, dtype=np.int32)
    sound = all(_store_counts(values[part], data[part]) for part in _chunks(values.size))
    return data if sound else None


def _store_counts(values: NDArray[Any], out: NDArray[np.int32]) -> bool:
    """Write values to `out`, in place; return whether all of them are counts."""
    with np.errstate(invalid="ignore"):
        np.copyto(out, values, casting="unsafe")
    # NaN, infinity, fractions and numbers beyond 2**31 - 1 all come back different from the cast.
    return bool((out == values).all() and out.min(initial=0) >= 0)


class _Fault(NamedTuple):
    """A way of not being a count: which values have it, the remedy, and what the message begins with."""

    marks: Callable[[NDArray[Any]], NDArray[np.bool_]]
    remedy: str
    opening: str = ""


_MISSING = _Fault(
    np.isnan,
    "Missing values are not supported: drop their rows or columns, or write 0 where nothing was counted.",
)
_INFINITE = _Fault(
    np.isinf,
    "Infinite values come from a division by zero or the logarithm of zero: give the raw counts.",
)
_NEGATIVE = _Fault(
    lambda values: values < 0,
    "Remove or clip negative values, or undo a centring or scaling step.",
    "Negative values in data: ",
)
_FRACTION = _Fault(
    lambda values: values != np.floor(values),
    "Give raw counts rather than normalised, tf-idf or log-transformed values; if these are meant as counts, "
    "round them with numpy.rint.",
)
_TOO_LARGE = _Fault(
    lambda values: values >= LARGEST_COUNT + 1,  # a power of two: exact in float32
    f"The largest possible count is {LARGEST_COUNT}: check the unit, or divide by a common factor and round.",
)


def _value_error(
    values: NDArray[Any], place: Callable[[int], tuple[int, int]], sample: sparse.csr_array, name: str
) -> CountsError:
    """Return the error for values of which at least one is not a count.

    values: (nnz,) or (n_rows, n_features), row by row; `place` gives row and column of a position in them;
    `sample` holds the first rows.
    """
    # In order of precedence, wherever they stand: centred data are fractional too.
    faults = (_MISSING, _INFINITE, _NEGATIVE, _FRACTION, _TOO_LARGE)
    fault, position = next((f, p) for f in faults if (p := _first(f.marks, values)) is not None)
    i, v = place(position)
    value = _shown(values[i, v] if values.ndim == 2 else values[position])
    hint = _scale_hint(sample) if fault is _FRACTION else ""
    return CountsError(
        f"{fault.opening}{name} must hold counts (non-negative whole numbers), but {name}[{i}, {v}] = "
        f"{value}. {fault.remedy}{hint}"
    )


def _shown(value: Any) -> str:
    """Return a number as a message shows it: -2 for -2.0."""
    if np.isnan(value):
        return "NaN"
    return str(int(value)) if abs(float(value)) < 1e16 and value == np.floor(value) else str(value)


def _first(marks: Callable[[NDArray[Any]], NDArray[np.bool_]], values: NDArray[Any]) -> int | None:
    """Return the position, row by row, of the first marked value."""
    width = values.shape[1] if values.ndim == 2 else 1
    for part in _chunks(len(values), width):
        marked = marks(values[part])
        if marked.any():
            return int(part.start * width + marked.argmax())
    return None


def _scale_hint(sample: sparse.csr_array) -> str:
    """Return what fractional, non-negative values look like, if they look like anything; sample: (n, v)."""
    if not _FRACTION.marks(sample.data).any():
        return ""
    rows = "The rows" if sample.shape[0] < _SAMPLE_ROWS else f"The first {_SAMPLE_ROWS} rows"
    if _all_near_one(sample.sum(axis=1)):
        return f" {rows} sum to one: these look like proportions."
    if _all_near_one(sample.power(2).sum(axis=1)):
        return f" {rows} have Euclidean length one: these look like tf-idf weights."
    if _all_near_each_other(sample.sum(axis=1)):
        return f" {rows} have equal sums: these look like normalised counts."
    if sample.data.max() > np.log1p(LARGEST_COUNT):
        return ""
    unlogged = sample.expm1()
    distance = np.abs(unlogged.data - np.rint(unlogged.data))
    # What single precision leaves of a logarithm: a relative error of about 1e-6.
    if np.all(distance <= np.minimum(1e-6 * (1 + unlogged.data), 0.1)):
        return " exp(x) - 1 is whole everywhere: these look like log1p values, which numpy.expm1 undoes."
    if _all_near_each_other(unlogged.sum(axis=1)):
        return f" {rows} of exp(x) - 1 have equal sums: these look like log1p values of normalised counts."
    return ""


def _all_near_one(totals: NDArray[Any]) -> bool:
    """Return whether all totals but those of empty rows are nearly one."""
    return bool(np.all(np.abs(totals[totals > 0] - 1) <= 1e-3))


def _all_near_each_other(totals: NDArray[Any]) -> bool:
    """Return whether all totals but those of empty rows, at least two, are nearly the same."""
    filled = totals[totals > 0]
    return bool(filled.size > 1 and np.ptp(filled) <= 1e-3 * filled.max())


# --- the rows: none empty -------------------------------------------------------------------------


def _check_no_empty_rows(counts: Counts, name: str) -> None:
    """Raise if a row has no count at all."""
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    if empty.size == 0:
        return
    shown = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
    what = "1 empty row" if empty.size == 1 else f"{empty.size} empty rows"
    hint = transposition_hint(counts)
    raise CountsError(
        f"{name} has {what} (n_samples = {counts.n_rows}, n_features = {counts.n_features}): {shown}. A row "
        f"without counts belongs to no cluster: drop such rows with {name} = {name}[numpy.asarray({name}.sum("
        f"axis=1)).ravel() > 0].{' ' + hint if hint else ''}"
    )
