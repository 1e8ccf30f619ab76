"""Count matrices: their internal form, and all checks of input that should be counts.

:func:`as_counts` turns any matrix that a user may pass into :class:`Counts`, the arrays that the compiled kernels
read. Input that does not hold counts is rejected here, with row and column, so no other module checks again.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from reprlib import repr as short_repr
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import digamma

from mmpca.errors import CountsError

LARGEST_COUNT = 2**31 - 1

# Entries per chunk: temporaries stay in the cache, and the sum of a chunk is exact in float64.
_CHUNK = 2**17

_SMALL_SHAPE = 1e-12  # of a negative binomial; below, even a count of 2**31 is worth one
_LARGE_SHAPE = 1e4  # above, the expansion of digamma is exact to 1e-13

_N_SAMPLE_ROWS = 100  # rows inspected to guess where fractions come from


class Counts(NamedTuple):
    """A matrix of counts by rows, in the one form that the kernels are compiled for.

    Columns are sorted within each row and occur once; all entries are positive. The arrays are contiguous, aligned,
    writeable and in native byte order, so compiled functions need only one signature. They may belong to the caller:
    never write to them.

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
        """Number of nonzero entries."""
        return self.indices.size

    def row_totals(self, weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sum of each row, shape (n_rows,), optionally weighted.

        Weights are integers, shape (n_features,); the sums have the same type and wrap around on overflow.
        """
        totals = np.zeros(self.n_rows, dtype=np.int64 if weights is None else weights.dtype)
        for first, last in _row_blocks(self.indptr):
            start, stop = self.indptr[first], self.indptr[last]
            # reduceat needs strictly increasing starts, so rows without entries are left at zero.
            filled = first + np.flatnonzero(np.diff(self.indptr[first : last + 1]))
            block: NDArray[Any] = self.data[start:stop]
            if weights is not None:
                block = block.astype(weights.dtype) * weights[self.indices[start:stop]]
            totals[filled] = np.add.reduceat(block, self.indptr[filled] - start, dtype=totals.dtype)
        return totals

    def column_totals(self) -> NDArray[np.int64]:
        """Return the sum of each column, shape (n_features,)."""
        totals = np.zeros(self.n_features, dtype=np.int64)
        for part in _chunks(self.nnz):
            sums = np.bincount(self.indices[part], weights=self.data[part], minlength=self.n_features)
            totals += sums.astype(np.int64)
        return totals

    def column_entries(self) -> NDArray[np.int64]:
        """Return the number of rows in which each column occurs, shape (n_features,)."""
        entries = np.zeros(self.n_features, dtype=np.int64)
        for part in _chunks(self.nnz):  # all at once, bincount would copy the indices as 64-bit integers
            entries += np.bincount(self.indices[part], minlength=self.n_features)
        return entries

    def take(self, rows: ArrayLike | slice) -> "Counts":
        """Return rows selected by indices, a mask or a slice.

        Nothing is copied for all rows in their order, or for a slice of consecutive rows.
        """
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                indptr = self.indptr[start : max(start, stop) + 1]
                entries = slice(indptr[0], indptr[-1])
                return Counts(indptr - indptr[0], self.indices[entries], self.data[entries], self.n_features)
            rows = np.arange(start, stop, step)
        every = np.arange(self.n_rows)
        selected = every[np.asarray(rows)]
        if np.array_equal(selected, every):
            return self
        first = self.indptr[selected]
        sizes = self.indptr[selected + 1] - first
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        taken = Counts(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int32), self.n_features)
        for start, stop in _row_blocks(indptr):
            to = slice(indptr[start], indptr[stop])
            at = np.repeat(first[start:stop] - indptr[start:stop], sizes[start:stop]) + np.arange(to.start, to.stop)
            taken.indices[to], taken.data[to] = self.indices[at], self.data[at]
        return taken

    def group_sums(self, groups: NDArray[np.integer[Any]], n_groups: int) -> NDArray[np.float64]:
        """Return the sum of the rows of each group, shape (n_groups, n_features); groups: (n_rows,)."""
        sums = np.zeros((n_groups, self.n_features))
        # SciPy converts the entries to doubles: limit how many at a time to the size of the result.
        for first, last in _row_blocks(self.indptr, max(_CHUNK, sums.size)):
            block = self.take(slice(first, last))
            members = sparse.csr_array(
                (np.ones(block.n_rows), (groups[first:last], np.arange(block.n_rows))), shape=(n_groups, block.n_rows)
            )
            sums += (members @ block.to_csr()).toarray()
        return sums

    def to_csr(self) -> sparse.csr_array:
        """Return a SciPy array of int32, shape (n_rows, n_features), that shares `indices` and `data`.

        SciPy requires one type for both index arrays, so `indptr` is cast; with more than 2**31 - 1 entries, `indices`
        is cast instead.
        """
        indptr = self.indptr.astype(np.int32) if self.nnz < 2**31 else self.indptr
        csr = sparse.csr_array((self.data, self.indices, indptr), shape=(self.n_rows, self.n_features))
        csr.has_canonical_format = True
        return csr


def no_rows(n_features: int) -> Counts:
    """Return counts with zero rows."""
    return Counts(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), n_features)


def stacked(parts: Sequence[Counts]) -> Counts:
    """Stack counts vertically.

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
    """Check a matrix of counts and convert it to :class:`Counts`.

    Arrays of `X` that already have the right form are shared; `X` itself is never changed, and a sparse matrix is
    never made dense. Whole numbers are accepted in any real type. Duplicate entries of a sparse matrix are summed (in
    a Boolean one, combined by "or"), and stored zeros are dropped. Columns without counts are allowed.

    Parameters
    ----------
    X : array-like, sparse matrix, sparse array or data frame, shape (n_rows, n_features)
        Non-negative whole numbers up to 2**31 - 1.
    name : str, default="X"
        Name of the matrix in error messages.
    empty_rows : {"error", "allow"}, default="error"
        Whether a row without any counts is an error.

    Returns
    -------
    Counts
        The same numbers in canonical form.

    Raises
    ------
    CountsError
        If `X` is not a matrix of counts; `row` and `column` locate the first invalid entry.
    TypeError
        If the values of `X` are not numbers.

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
    but X[1, 1] = -1. Remove or clip negative values, or undo a centering or scaling step.
    """
    matrix = _as_matrix(X, name)
    counts = _from_sparse(matrix, name) if sparse.issparse(matrix) else _from_dense(matrix, name)
    if empty_rows == "error" and not np.diff(counts.indptr).all():
        raise _empty_rows_error(counts, name)
    return counts


def square_root(counts: Counts) -> Counts:
    """Return the square roots of the counts, rounded to whole numbers.

    Square roots stabilize the variance of overdispersed counts. No entry becomes zero: the root of 1 is 1.

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


def effective_counts(counts: Counts, rates: NDArray[np.float64]) -> Counts:
    r"""Return how many independent counts each count is worth if its feature comes in bursts, as whole numbers.

    A count x with a negative binomial distribution of shape a is worth

    .. math:: t = a (\psi(x + a) - \psi(a)) = \sum_{j=0}^{x-1} \frac{a}{a + j},

    the slope in :math:`\log a` of its log-likelihood: one for the first of a burst, less for every further one. The
    shape is the row's total times the rate of the feature. Effective counts are between 1 and x; they are rounded to
    whole numbers, so that sums over rows stay exact in any order, like those of counts.

    Parameters
    ----------
    counts : Counts of shape (n_rows, n_features)
    rates : array of shape (n_features,)
        Shape of each feature in a row with total 1; infinite for features without bursts, whose counts stay the same.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts, effective_counts
    >>> effective_counts(as_counts([[9, 9, 9]]), np.array([0.0, 1 / 27, np.inf])).data
    array([1, 3, 9], dtype=int32)
    """
    totals = counts.row_totals().astype(np.float64)
    effective = np.empty_like(counts.data)
    for first, last in _row_blocks(counts.indptr):
        part = slice(counts.indptr[first], counts.indptr[last])
        lengths = np.repeat(totals[first:last], np.diff(counts.indptr[first : last + 1]))
        worth = _worth(counts.data[part].astype(np.float64), lengths * rates[counts.indices[part]])
        np.rint(np.clip(worth, 1.0, counts.data[part]), out=effective[part], casting="unsafe")
    return counts._replace(data=effective)


def _worth(x: NDArray[np.float64], a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a (digamma(x + a) - digamma(a)); 1 for a shape of zero, x for an infinite one."""
    worth = np.where(a > _SMALL_SHAPE, x, 1.0)
    small, large = (a > _SMALL_SHAPE) & (a <= _LARGE_SHAPE), (a > _LARGE_SHAPE) & np.isfinite(a)
    worth[small] = a[small] * (digamma(x[small] + a[small]) - digamma(a[small]))
    # The difference of two nearly equal numbers would lose digits: expand both around infinity.
    y, b = x[large], a[large]
    worth[large] = b * np.log1p(y / b) + 0.5 * y / (y + b) + y * (y + 2 * b) / (12 * b * (y + b) ** 2)
    return worth


class Units(NamedTuple):
    """The units of a fit: counts themselves, their square roots or effective counts.

    Attributes
    ----------
    stabilize : {None, "sqrt"}
    rates : array of shape (n_features,) or None
        Rates of effective counts, None for counts without bursts.
    """

    stabilize: str | None = None
    rates: NDArray[np.float64] | None = None

    def convert(self, counts: Counts) -> Counts:
        """Return counts in these units."""
        if self.rates is not None:
            return effective_counts(counts, self.rates)
        return square_root(counts) if self.stabilize == "sqrt" else counts


def in_units(counts: Counts, units: Units) -> Counts:
    """Return counts in other units; a function, to be sent to the workers that hold the counts."""
    return units.convert(counts)


def transposition_hint(counts: Counts) -> str | None:
    """Return a hint if the rows look like features rather than observations, None otherwise.

    Features (words, genes, species) have very uneven totals; observations have fairly even ones, and none is empty.
    The hint requires all of the following: there are at least 10 columns and more rows than columns, no column is
    empty, and the coefficient of variation of the totals of nonempty rows exceeds 1 and is more than three times
    that of the column totals. A few empty rows alone mean nothing: pruning a vocabulary leaves some.
    """
    if not 10 <= counts.n_features < counts.n_rows:
        return None
    rows, columns = counts.row_totals(), counts.column_totals()
    if columns.min() == 0:
        return None
    row_variation, column_variation = (float(totals.std() / totals.mean()) for totals in (rows[rows > 0], columns))
    if row_variation <= max(1.0, 3 * column_variation):
        return None
    return (
        f"The matrix may be transposed: the totals of its {counts.n_rows} rows vary far more than those of its "
        f"{counts.n_features} columns, which is typical of features. Rows must be observations; if they are not, "
        "pass X.T."
    )


def _chunks(length: int, width: int = 1) -> Iterator[slice]:
    """Yield slices that cut `length` rows of the given width into chunks of about `_CHUNK` entries."""
    step = max(1, _CHUNK // width)
    return (slice(start, start + step) for start in range(0, length, step))


def _row_blocks(indptr: NDArray[np.int64], n_entries: int = _CHUNK) -> Iterator[tuple[int, int]]:
    """Yield first and last (exclusive) row of blocks with about `n_entries` entries each."""
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], n_entries))
    return pairwise(np.unique(np.append(cuts, indptr.size - 1)).tolist())


# --- the matrix: two dimensions, real numbers -------------------------------------------------------------------


def _as_matrix(X: Any, name: str) -> Any:
    """Return `X` as a sparse matrix or dense array of real numbers, with at least one row and one column."""
    matrix = X = in_memory(X)
    if not sparse.issparse(X):
        _check_unmasked(X, name)
        _check_columns(X, name)
        try:
            # pandas offers `sparse` only if all columns are sparse.
            matrix = X.sparse.to_coo() if hasattr(getattr(X, "sparse", None), "to_coo") else _dense(X)
        except ValueError as error:
            raise CountsError(
                f"{name} cannot be read as a matrix ({error}). All rows must have the same length, and a sparse data "
                "frame must have the fill value 0."
            ) from error
    if matrix.ndim != 2:
        raise _dimensions_error(matrix, name)
    for size, what, unit in zip(matrix.shape, ("sample", "feature"), ("row", "column"), strict=True):
        if size == 0:
            raise CountsError(
                f"Found array with 0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is required. "
                f"Check the step that selected the {unit}s of {name}."
            )
    if matrix.shape[1] > LARGEST_COUNT:
        raise CountsError(f"{name} has {matrix.shape[1]} columns, but at most {LARGEST_COUNT} are supported.")
    if matrix.dtype.kind == "O":
        return _numbers(matrix, name)
    if matrix.dtype.kind not in "biuf":
        raise _type_error(matrix.dtype, name)
    return matrix


def _dense(X: Any) -> NDArray[Any]:
    """Return a dense table as an array; in a pandas data frame, missing values of any type become NaN."""
    if hasattr(X, "iloc") and X.ndim == 2 and not all(isinstance(dtype, np.dtype) for dtype in X.dtypes):
        with suppress(TypeError, ValueError):  # text; a later check raises an error with its location
            numbers: NDArray[np.float64] = X.to_numpy(np.float64, na_value=np.nan)
            return numbers
    return np.asarray(X)


def _dimensions_error(matrix: Any, name: str) -> CountsError:
    """Return the error for input without two dimensions, such as a path or a list of texts."""
    shape = matrix.shape
    if matrix.ndim > 2:
        return CountsError(f"Expected 2D array, but {name} has shape {shape}. Flatten it to rows and features.")
    first = matrix.ravel()[0] if isinstance(matrix, np.ndarray) and matrix.size else None
    if isinstance(first, str | bytes | os.PathLike):
        found = short_repr(str(first)) if matrix.ndim == 0 else "a list of texts or paths"
        return CountsError(
            f"{name} must be a matrix of counts, but it is {found}. Read a file with mmpca.io.read_counts(path).X. "
            "mmpca.TextClusters clusters texts, and mmpca.TextClusters.load loads such a model; mmpca.text.CountTexts "
            "counts words without clustering."
        )
    kind = "scalar" if matrix.ndim == 0 else "1D"
    return CountsError(
        f"Expected 2D array, got {kind} array instead: {name} has shape {shape}. Reshape your data with "
        "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if it is a single sample."
    )


def _type_error(dtype: np.dtype[Any], name: str) -> Exception:
    """Return the error for values of a type that is not a real number."""
    if dtype.kind == "c":
        return CountsError(f"Complex data not supported: {name} must hold counts, but its type is {dtype}.")
    if dtype.kind in "UST":
        return CountsError(
            f"{name} must hold numbers, but its type is {dtype}. Convert digits with {name}.astype(float), and count "
            "words with mmpca.text.CountTexts."
        )
    return TypeError(f"{name} must hold numbers, but its type is {dtype}. Pass the counts themselves.")


def in_memory(X: Any) -> Any:
    """Load a table whose values are stored elsewhere, with its names; return anything else unchanged.

    Such tables are sparse matrices of backed AnnData objects, xarray arrays, polars lazy frames, and DuckDB relations
    and other tables that offer Arrow streams but no arrays.
    """
    package = type(X).__module__.partition(".")[0]
    if package == "anndata":
        if hasattr(X, "obs"):
            raise CountsError(
                "X must be a matrix of counts, but it is an AnnData object. Pass adata.X or a layer, or call "
                "mmpca.anndata.cluster(adata, ...)."
            )
        return X.to_memory() if hasattr(X, "to_memory") else X
    if package == "xarray" and getattr(X, "ndim", 0) == 2:
        return X.to_pandas()
    if package == "polars" and hasattr(X, "collect"):
        return X.collect()
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__"):
        import pyarrow as pa

        return pa.table(X)
    return X


def _check_columns(X: Any, name: str) -> None:
    """Raise CountsError if a table has a text column."""
    if not hasattr(X, "columns") or not len(X):
        return
    # In pandas, `slice` is a column if there is one of this name.
    first = X.slice(0, 1) if callable(getattr(X, "slice", None)) else X[:1]
    values = np.asarray(first, dtype=object).ravel()
    for column, value in enumerate(values):
        if isinstance(value, str) and not is_number(value):
            title = list(getattr(X, "column_names", X.columns))[column]
            index = f"make it the index, as in data.set_index({title!r})" if hasattr(X, "set_index") else "leave it out"
            raise CountsError(
                f"{name} must hold counts, but the column {title!r} holds text, such as {short_repr(value)}. If it "
                f"names the rows, {index}; to cluster its texts, use mmpca.TextClusters().fit(data, column={title!r}).",
                row=0,
                column=column,
            )


def is_number(text: str) -> bool:
    """Return True if a string is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_unmasked(X: Any, name: str) -> None:
    """Raise CountsError if entries of a masked array, or of a list of masked rows, are masked.

    Converting to an ordinary array would expose the values behind the mask, so this check must come first.
    """
    if isinstance(X, list | tuple):
        masks = ((i, np.ma.getmaskarray(row)) for i, row in enumerate(X) if np.ma.is_masked(row))
        i, mask = next(masks, (None, None))
    elif np.ma.is_masked(X) and X.ndim > 0:
        masked = np.ma.getmaskarray(X)
        i = int(masked.reshape(len(X), -1).any(axis=1).argmax())
        mask = masked[i]
    else:
        return
    if i is None or mask is None:
        return
    v = int(mask.argmax())
    raise CountsError(
        f"{name} must hold counts, but {name}[{i}, {v}] is masked. Drop its row or column, or fill masked entries with "
        f"counts, for example with {name}.filled(0) if nothing was counted there.",
        row=i,
        column=v,
    )


def _numbers(objects: NDArray[np.object_], name: str) -> NDArray[np.float64]:
    """Convert an array of Python objects to floats, or raise for the first object that is not a number."""
    try:
        return objects.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        for (i, v), value in np.ndenumerate(objects):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError) as error:
                if np.iscomplexobj(value):
                    message = f"Complex data not supported: {name}[{i}, {v}] = {value}."
                else:
                    message = (
                        f"{name} must hold counts, but {name}[{i}, {v}] = {short_repr(value)} is not a number "
                        f"({error}). Convert, fill or drop such entries; leave out columns of names or text."
                    )
                    if isinstance(error, TypeError):
                        raise TypeError(message) from error
                raise CountsError(message, row=i, column=v) from error
        raise


# --- the form: by rows, sorted, no duplicates -------------------------------------------------------------------


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
        counts = whole_numbers(block[rows, columns])
        if counts is None:
            sample = sparse.csr_array(X[:_N_SAMPLE_ROWS].astype(np.float64))
            raise _value_error(X, lambda position: divmod(position, n_features), sample, name)
        indices[filled:stop], data[filled:stop] = columns, counts
        indptr[1:][part] = filled + np.cumsum(np.bincount(rows, minlength=len(block)))
        filled = stop
    return Counts(indptr, indices, data, n_features)


def _from_sparse(X: Any, name: str) -> Counts:
    """Return the counts of a sparse matrix or array of any format, sharing its arrays where possible."""
    is_boolean = X.dtype == np.bool_
    if X.format == "coo":
        X = _widened(X)  # SciPy sums duplicates during the conversion to CSR
    elif X.format in ("csr", "csc"):
        # Check a new object on the same arrays: SciPy trims arrays and sets flags on the object that it checks, and
        # the flags of the caller's matrix may be out of date.
        kind = sparse.csr_array if X.format == "csr" else sparse.csc_array
        try:
            X = kind((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        except ValueError as error:
            raise CountsError(
                f"{name} is not a valid {X.format.upper()} matrix: {error}. Rebuild it from rows, columns and counts "
                "with scipy.sparse.coo_array."
            ) from error
    csr = sparse.csr_array(X)
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()
    if not csr.has_canonical_format and _overflowing(csr.data).size == 0:
        wide = csr.data.astype(_wide(csr.dtype))
        csr = sparse.csr_array((wide, csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
        csr.sum_duplicates()
    data = whole_numbers(csr.data)
    if data is None:

        def locate(position: int) -> tuple[int, int]:
            return int(np.searchsorted(csr.indptr, position, side="right")) - 1, int(csr.indices[position])

        raise _value_error(csr.data, locate, csr[:_N_SAMPLE_ROWS].astype(np.float64), name)
    if is_boolean:
        np.minimum(data, 1, out=data)  # duplicates combine by "or"
    csr.data = data
    if data.min(initial=1) == 0:
        csr = csr.copy()  # eliminate_zeros works in place, and these may be the caller's arrays
        csr.eliminate_zeros()
    indptr, indices, data = (
        np.require(array, dtype, ["C", "A", "W", "E"])
        for array, dtype in ((csr.indptr, np.int64), (csr.indices, np.int32), (csr.data, np.int32))
    )
    return Counts(indptr, indices, data, csr.shape[1])


def _widened(coo: Any) -> Any:
    """Return a COO matrix in a type in which sums of duplicates cannot wrap around."""
    data, (rows, columns) = coo.data, coo.coords
    overflowing = _overflowing(data)
    if overflowing.size == 0:
        data = data.astype(_wide(data.dtype), copy=False)
    else:
        # This is an error in any case; keep the first such entry for the message.
        first = overflowing[np.lexsort((columns[overflowing], rows[overflowing]))[:1]]
        data, rows, columns = data[first], rows[first], columns[first]
    return sparse.coo_array((data, (rows, columns)), shape=coo.shape)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which duplicates are summed."""
    return np.promote_types(dtype, np.float64) if dtype.kind == "f" else np.dtype(np.int64)


def _overflowing(data: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of integers so large that sums of them could wrap around."""
    if data.dtype.kind not in "iu" or data.dtype.itemsize < 8:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero((data > LARGEST_COUNT) | (data < -LARGEST_COUNT))


# --- the values: whole, not negative, below 2**31 ---------------------------------------------------------------


def whole_numbers(values: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return real numbers as int32, without a copy if possible, or None if one of them is not a count; (n,)."""
    if values.dtype == np.int32:
        return values if values.min(initial=0) >= 0 else None
    counts = np.empty(values.size, dtype=np.int32)
    for part in _chunks(values.size):
        with np.errstate(invalid="ignore"):
            np.copyto(counts[part], values[part], casting="unsafe")
        # The cast changes NaN, infinity, fractions and numbers beyond 2**31 - 1.
        if not (counts[part] == values[part]).all() or counts[part].min() < 0:
            return None
    return counts


def _is_fraction(values: Any) -> Any:
    return values != np.floor(values)


# Reasons why a number is not a count, with advice, in order of precedence: centered data are also fractional.
_PROBLEMS: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (np.isnan, "Missing values are not supported: drop their rows or columns, or write 0 where nothing was counted."),
    (np.isinf, "Infinite values come from a division by zero or the logarithm of zero: use the raw counts."),
    (lambda values: values < 0, "Remove or clip negative values, or undo a centering or scaling step."),
    (
        _is_fraction,
        "Use raw counts rather than normalized, tf-idf or log-transformed values; if these are meant to be counts, "
        "round them with numpy.rint.",
    ),
    (
        lambda values: values >= LARGEST_COUNT + 1,  # a power of two: exact in float32
        f"The largest supported count is {LARGEST_COUNT}: check the unit, or divide by a common factor and round.",
    ),
)


def count_remedy(value: float) -> str | None:
    """Return advice on a number that is not a count, None for a count."""
    return next((remedy for is_problem, remedy in _PROBLEMS if is_problem(value)), None)


def show_number(value: Any) -> str:
    """Format a number for a message: -2 for -2.0."""
    if np.isnan(value):
        return "NaN"
    return str(int(value)) if abs(float(value)) < 1e16 and value == np.floor(value) else str(value)


def _value_error(
    values: NDArray[Any], locate: Callable[[int], tuple[int, int]], sample: sparse.csr_array, name: str
) -> CountsError:
    """Return the error for values that are not all counts.

    values: (nnz,) or (n_rows, n_features), row by row; `locate` maps a position in them to row and column;
    `sample` holds the first rows.
    """
    found = ((remedy, _first(is_problem, values)) for is_problem, remedy in _PROBLEMS)
    remedy, position = next((remedy, position) for remedy, position in found if position is not None)
    i, v = locate(position)
    value = values[i, v] if values.ndim == 2 else values[position]
    opening = "Negative values in data: " if np.isfinite(value) and value < 0 else ""  # scikit-learn's words
    hint = scale_hint(sample) if _is_fraction(value) and value > 0 else ""
    return CountsError(
        f"{opening}{name} must hold counts (non-negative whole numbers), but {name}[{i}, {v}] = "
        f"{show_number(value)}. {remedy}{hint}",
        row=i,
        column=v,
    )


def _first(is_problem: Callable[[NDArray[Any]], NDArray[np.bool_]], values: NDArray[Any]) -> int | None:
    """Return the position, row by row, of the first value with a problem."""
    width = values.shape[1] if values.ndim == 2 else 1
    for part in _chunks(len(values), width):
        marked = is_problem(values[part])
        if marked.any():
            return int(part.start * width + marked.argmax())
    return None


def scale_hint(sample: sparse.csr_array) -> str:
    """Return a guess about where fractional, non-negative values come from; sample: (n, v)."""
    if not _is_fraction(sample.data).any():
        return ""
    rows = "The rows" if sample.shape[0] < _N_SAMPLE_ROWS else f"The first {_N_SAMPLE_ROWS} rows"
    if _all_one(sample.sum(axis=1)):
        return f" {rows} sum to one: these look like proportions."
    if _all_one(sample.power(2).sum(axis=1)):
        return f" {rows} have Euclidean length one: these look like tf-idf weights."
    if _all_equal(sample.sum(axis=1)):
        return f" {rows} have equal sums: these look like normalized counts."
    if sample.data.max() > np.log1p(LARGEST_COUNT):
        return ""
    unlogged = sample.expm1()
    distance = np.abs(unlogged.data - np.rint(unlogged.data))
    # Single precision leaves a logarithm with a relative error of about 1e-6.
    if np.all(distance <= np.minimum(1e-6 * (1 + unlogged.data), 0.1)):
        return " exp(x) - 1 is a whole number everywhere: these look like log1p values, which numpy.expm1 undoes."
    if _all_equal(unlogged.sum(axis=1)):
        return f" {rows} of exp(x) - 1 have equal sums: these look like log1p values of normalized counts."
    return ""


def _all_one(totals: NDArray[Any]) -> bool:
    """Return True if the totals of all nonempty rows are nearly one."""
    return bool(np.all(np.abs(totals[totals > 0] - 1) <= 1e-3))


def _all_equal(totals: NDArray[Any]) -> bool:
    """Return True if the totals of all nonempty rows, at least two, are nearly equal."""
    filled = totals[totals > 0]
    return bool(filled.size > 1 and np.ptp(filled) <= 1e-3 * filled.max())


def _empty_rows_error(counts: Counts, name: str) -> CountsError:
    """Return the error for rows without counts."""
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    shown = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
    what = "1 empty row" if empty.size == 1 else f"{empty.size} empty rows"
    hint = transposition_hint(counts)
    return CountsError(
        f"{name} has {what} (n_samples = {counts.n_rows}, n_features = {counts.n_features}): {shown}. A row "
        f"without counts belongs to no cluster: drop such rows with {name} = {name}[numpy.asarray({name}.sum("
        f"axis=1)).ravel() > 0].{' ' + hint if hint else ''}",
        row=int(empty[0]),
    )
