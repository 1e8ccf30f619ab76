"""Every kind of input gives the same counts, and everything that is not a count is refused with its place."""

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import mmpca.counts
from mmpca import kernels
from mmpca.counts import LARGEST_COUNT, Counts, as_counts, no_rows, square_root, transposition_hint
from mmpca.errors import CountsError

DENSE = np.array([[2, 0, 1, 0], [0, 0, 0, 7], [1, 3, 0, 1]])
EXPECTED = Counts(
    indptr=np.array([0, 2, 3, 6], dtype=np.int64),
    indices=np.array([0, 2, 3, 0, 1, 3], dtype=np.int32),
    data=np.array([2, 1, 7, 1, 3, 1], dtype=np.int32),
    n_features=4,
)
NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMBERS += ["float32", "float64", "longdouble"]


def assert_same_counts(counts, expected):
    assert counts.n_features == expected.n_features
    for array, wanted in zip(counts[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(array, wanted)
        assert type(array) is np.ndarray
        assert array.dtype == wanted.dtype
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable


def with_int64_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def compressed(data, indices, indptr, kind=sparse.csr_array, shape=(3, 4)):
    return kind((np.array(data), np.array(indices), np.array(indptr)), shape=shape)


def small_chunks(monkeypatch):
    monkeypatch.setattr(mmpca.counts, "_CHUNK", 3)


@pytest.fixture(params=[False, True], ids=["one chunk", "many chunks"])
def _chunks(request, monkeypatch):
    if request.param:
        small_chunks(monkeypatch)


# --- one form for all inputs ---------------------------------------------------------------------


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_sparse_input_gives_the_same_counts(form, family, dtype):
    X = getattr(sparse, f"{form}_{family}")(DENSE.astype(dtype))
    assert_same_counts(as_counts(X), EXPECTED)


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("dtype", [*NUMBERS, "float16", "object", ">i4", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_input_gives_the_same_counts(dtype, order):
    assert_same_counts(as_counts(np.asarray(DENSE, dtype=dtype, order=order)), EXPECTED)


@pytest.mark.parametrize(
    "X",
    [
        DENSE.tolist(),
        np.repeat(DENSE, 2, axis=1)[:, ::2],
        np.ma.masked_array(DENSE),
        pd.DataFrame(DENSE),
        pd.DataFrame(DENSE, columns=["indices", "sparse", "data", "b"]),
        pd.DataFrame(DENSE).astype({0: "float32", 1: "uint8"}),
        pd.DataFrame(DENSE).astype("Int64"),
        pd.DataFrame(DENSE).astype(object),
        pd.DataFrame(DENSE).astype(pd.SparseDtype("int64", 0)),
        pd.DataFrame(DENSE).astype(pd.SparseDtype("float64", 0)),
        pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(DENSE)),
    ],
    ids=["list", "strided", "unmasked", "frame", "frame with awkward names", "mixed frame", "nullable frame"]
    + ["object frame", "sparse frame", "sparse float frame", "frame of a sparse array"],
)
def test_tables_give_the_same_counts(X):
    assert_same_counts(as_counts(X), EXPECTED)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", ["int32", "int8", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("data", "indices", "indptr"),
    [
        ([2, 1, 7, 1, 3, 1], [0, 2, 3, 0, 1, 3], [0, 2, 3, 6]),
        ([1, 2, 7, 1, 3, 1], [2, 0, 3, 3, 1, 0], [0, 2, 3, 6]),
        ([1, 1, 1, 7, 1, 3, 1], [0, 0, 2, 3, 0, 1, 3], [0, 3, 4, 7]),
        ([1, 1, 1, 4, 3, 1, 3, 1], [2, 0, 0, 3, 3, 3, 1, 0], [0, 3, 5, 8]),
        ([5, 1, -3, 7, 1, 3, 1], [0, 2, 0, 3, 0, 1, 3], [0, 3, 4, 7]),
        ([2, 0, 1, 7, 1, 3, 0, 1], [0, 1, 2, 3, 0, 1, 2, 3], [0, 3, 4, 8]),
        ([2, 4, 1, -4, 7, 1, 3, 1], [0, 1, 2, 1, 3, 0, 1, 3], [0, 4, 5, 8]),
    ],
    ids=[
        "canonical",
        "unsorted",
        "duplicates",
        "unsorted duplicates",
        "negative duplicates",
        "explicit zeros",
    ]
    + ["duplicates that cancel"],
)
def test_csr_in_any_form_gives_the_same_counts_and_stays_unchanged(kind, dtype, index, data, indices, indptr):
    X = compressed(np.array(data, dtype=dtype), indices, indptr, kind)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    held = [X.data, X.indices, X.indptr]
    attributes = set(vars(X))

    assert_same_counts(as_counts(X), EXPECTED)

    for now, hold, copy in zip([X.data, X.indices, X.indptr], held, before, strict=True):
        assert now is hold
        np.testing.assert_array_equal(now, copy)
    assert set(vars(X)) == attributes


def test_out_of_date_flags_of_a_sparse_matrix_are_not_believed():
    X = compressed([1, 2, 7, 1, 3, 1], [2, 0, 3, 3, 1, 0], [0, 2, 3, 6])
    X.has_canonical_format = True
    assert_same_counts(as_counts(X), EXPECTED)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32"])
@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_sums_of_duplicates_do_not_wrap_around_in_a_narrow_type(form, dtype):
    n_duplicates = 300
    data = np.full(n_duplicates, 100, dtype=dtype)
    if form == "coo":
        place = np.zeros(n_duplicates, dtype=int)
        X = sparse.coo_array((data, (place, place)), shape=(1, 1))
    else:
        kind = getattr(sparse, f"{form}_array")
        X = compressed(data, np.zeros(n_duplicates, dtype=int), [0, n_duplicates], kind, (1, 1))
    np.testing.assert_array_equal(as_counts(X).data, [30_000])
    assert X.nnz == n_duplicates


def test_boolean_input_is_zero_or_one():
    presence = (DENSE > 0).astype(np.int32)
    for X in (DENSE > 0, sparse.csr_array(DENSE > 0), sparse.coo_matrix(DENSE > 0)):
        np.testing.assert_array_equal(as_counts(X).to_csr().toarray(), presence)


@pytest.mark.parametrize("form", ["coo", "csr"])
def test_boolean_duplicates_are_joined(form):
    coo = sparse.coo_array((np.array([True, True]), ([0, 0], [1, 1])), shape=(1, 2))
    X = coo if form == "coo" else compressed([True, True], [1, 1], [0, 2], shape=(1, 2))
    np.testing.assert_array_equal(as_counts(X).data, [1])


def test_entries_beyond_the_last_row_are_ignored():
    X = compressed([2, 1, 7, 1, 3, 1], [0, 2, 3, 0, 1, 3], [0, 2, 3, 6])
    X.data, X.indices = np.append(X.data, [9, 9]), np.append(X.indices, [0, 0])
    assert_same_counts(as_counts(X), EXPECTED)
    assert X.data.size == 8


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_canonical_arrays_are_shared(kind):
    X = compressed(EXPECTED.data, EXPECTED.indices, EXPECTED.indptr.astype(np.int32), kind)
    counts = as_counts(X)
    assert np.shares_memory(counts.data, X.data)
    assert np.shares_memory(counts.indices, X.indices)


def test_arrays_of_the_right_type_are_shared_where_others_are_not():
    X = with_int64_indices(compressed(EXPECTED.data, EXPECTED.indices, EXPECTED.indptr))
    counts = as_counts(X)
    assert np.shares_memory(counts.data, X.data)
    assert np.shares_memory(counts.indptr, X.indptr)
    assert not np.shares_memory(counts.indices, X.indices)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_read_only_input_gives_writeable_counts(dtype):
    X = sparse.csr_array(DENSE.astype(dtype))
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    assert_same_counts(as_counts(X), EXPECTED)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok", "lil"])
def test_sparse_input_is_never_made_dense(form):
    n_rows, n_features = 20_000, 10_000
    rng = np.random.default_rng(0)
    entries = (np.ones(500), (rng.integers(n_rows, size=500), rng.integers(n_features, size=500)))
    X = sparse.coo_array(entries, shape=(n_rows, n_features)).asformat(form)
    assert peak_memory(lambda: as_counts(X, empty_rows="allow")) < n_rows * n_features / 20


def test_a_sparse_frame_is_never_made_dense():
    X = pd.DataFrame.sparse.from_spmatrix(sparse.eye_array(20_000, 100, dtype=np.int8).tocsr())
    assert peak_memory(lambda: as_counts(X, empty_rows="allow")) < 20_000 * 100 / 2


def test_canonical_input_is_checked_without_large_temporaries():
    X = sparse.csr_array(np.ones((1000, 2000), dtype=np.int32))
    assert peak_memory(lambda: as_counts(X)) < 100_000


def peak_memory(call):
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


tables = hnp.arrays(
    dtype=st.sampled_from(["int8", "uint16", "int32", "int64", "float32", "float64", "bool"]),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
    elements=st.integers(0, 1) | st.just(0),
    fill=st.just(0),
) | hnp.arrays(
    dtype=st.sampled_from(["int32", "uint32", "int64", "float64"]),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
    elements=st.integers(0, 5) | st.integers(0, LARGEST_COUNT),
)


@given(X=tables, form=st.sampled_from(["dense", "csr", "csc", "coo", "lil"]))
def test_counts_and_dense_table_are_the_same_numbers(X, form):
    counts = as_counts(X if form == "dense" else sparse.coo_array(X).asformat(form), empty_rows="allow")
    csr = counts.to_csr()
    np.testing.assert_array_equal(csr.toarray(), X)
    np.testing.assert_array_equal(counts.row_totals(), X.sum(axis=1, dtype=np.int64))
    np.testing.assert_array_equal(counts.column_totals(), X.sum(axis=0, dtype=np.int64))
    assert (counts.n_rows, counts.n_features, counts.nnz) == (*X.shape, np.count_nonzero(X))
    assert_same_counts(as_counts(csr, empty_rows="allow"), counts)


@given(st.data())
def test_duplicates_in_any_order_are_summed(data):
    place = st.tuples(st.integers(0, 3), st.integers(0, 2))
    places = np.array(data.draw(st.lists(place, min_size=1, max_size=30)))
    values = np.array(data.draw(st.lists(st.integers(0, 100), min_size=len(places), max_size=len(places))))
    wanted = np.zeros((4, 3), dtype=np.int64)
    np.add.at(wanted, tuple(places.T), values)

    coo = sparse.coo_array((values.astype(np.int8), tuple(places.T)), shape=(4, 3))
    np.testing.assert_array_equal(as_counts(coo, empty_rows="allow").to_csr().toarray(), wanted)

    order = np.argsort(places[:, 0], kind="stable")
    indptr = np.searchsorted(places[order, 0], np.arange(5))
    csr = compressed(values[order].astype(np.int8), places[order, 1], indptr, shape=(4, 3))
    np.testing.assert_array_equal(as_counts(csr, empty_rows="allow").to_csr().toarray(), wanted)


# --- what counts can do --------------------------------------------------------------------------


def test_totals_are_exact_over_many_chunks(monkeypatch):
    X = np.random.default_rng(0).poisson(0.5, (50, 7))
    X[:3], X[20:25], X[-4:] = 0, 0, 0
    small_chunks(monkeypatch)
    counts = as_counts(X, empty_rows="allow")
    np.testing.assert_array_equal(counts.row_totals(), X.sum(axis=1))
    np.testing.assert_array_equal(counts.column_totals(), X.sum(axis=0))


def test_weighted_totals_are_exact_and_wrap_around_where_their_type_ends(monkeypatch):
    rng = np.random.default_rng(0)
    X, weights = rng.poisson(0.5, (50, 7)), rng.integers(2**64, size=7, dtype=np.uint64)
    X[3, 2], X[-4:] = LARGEST_COUNT, 0
    small_chunks(monkeypatch)
    totals = as_counts(X, empty_rows="allow").row_totals(weights)
    expected = [sum(int(x) * int(w) for x, w in zip(row, weights, strict=True)) % 2**64 for row in X]
    assert totals.tolist() == expected


def test_totals_of_huge_counts_do_not_overflow():
    counts = as_counts(np.full((1000, 2), LARGEST_COUNT))
    assert counts.row_totals().tolist() == [2 * LARGEST_COUNT] * 1000
    assert counts.column_totals().tolist() == [1000 * LARGEST_COUNT] * 2


def test_columns_without_counts_are_fine():
    assert as_counts([[1, 0, 2], [3, 0, 0]]).column_totals().tolist() == [4, 0, 2]


SLICES = [slice(1, None), slice(0, 2), slice(None, None, 2), slice(None, None, -1), slice(2, 1), slice(-1, 9)]


@pytest.mark.parametrize("rows", [[2, 0], [-1], [1, 1, 0], np.array([True, False, True]), [], *SLICES])
def test_taking_rows_agrees_with_indexing_a_dense_table(rows):
    rows = np.asarray(rows, dtype=int) if isinstance(rows, list) else rows
    assert_same_counts(EXPECTED.take(rows), as_counts_of_any_shape(DENSE[rows]))


def as_counts_of_any_shape(X):
    csr = sparse.csr_array(X.astype(np.int32))
    return Counts(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data, X.shape[1])


def test_taking_a_row_that_is_not_there_is_an_error():
    with pytest.raises(IndexError):
        EXPECTED.take([3])


def test_rows_that_follow_each_other_share_their_entries():
    taken = EXPECTED.take(slice(1, None))
    assert np.shares_memory(taken.data, EXPECTED.data)
    assert np.shares_memory(taken.indices, EXPECTED.indices)
    assert not np.shares_memory(EXPECTED.take([1, 2]).data, EXPECTED.data)
    counts = as_counts(np.ones((1000, 2000), dtype=np.int32))
    assert peak_memory(lambda: counts.take(slice(0, 999))) < 100_000


def test_csr_shares_entries_with_the_counts():
    csr = EXPECTED.to_csr()
    assert np.shares_memory(csr.data, EXPECTED.data)
    assert np.shares_memory(csr.indices, EXPECTED.indices)
    np.testing.assert_array_equal(csr.toarray(), DENSE)


@pytest.mark.usefixtures("_chunks")
def test_square_roots_are_rounded_and_keep_the_pattern():
    counts = as_counts([[1, 2, 3, 6, 7, 0, LARGEST_COUNT]])
    roots = square_root(counts)
    assert roots.data.tolist() == [1, 1, 2, 2, 3, 46341]
    assert_same_counts(roots, counts._replace(data=roots.data))
    assert counts.data.tolist() == [1, 2, 3, 6, 7, LARGEST_COUNT]


# --- what is refused -----------------------------------------------------------------------------

FAULTS = {
    "negative": (
        -2,
        r"^Negative values in data: X must hold counts .*X\[2, 1\] = -2\. .*centring or scaling",
    ),
    "fraction": (0.5, r"^X must hold counts .* but X\[2, 1\] = 0\.5\. Give raw counts .* round them"),
    "missing": (
        np.nan,
        r"^X must hold counts .* but X\[2, 1\] = NaN\. Missing values are not supported: drop",
    ),
    "infinite": (
        np.inf,
        r"^X must hold counts .* but X\[2, 1\] = inf\. Infinite values .* give the raw counts",
    ),
    "minus infinity": (-np.inf, r"X\[2, 1\] = -inf\."),
    "too large": (
        2.0**31,
        r"X\[2, 1\] = 2147483648\. The largest possible count is 2147483647: check the unit",
    ),
}


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc", "coo", "object"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_value_that_is_not_a_count_is_named(fault, form, dtype):
    value, message = FAULTS[fault]
    X = np.array([[1, 0, 2, 5], [0, 3, 0, 0], [4, value, 0, value], [value, 1, 0, 1]], dtype=dtype)
    with pytest.raises(CountsError, match=message):
        as_counts(in_form(X, form))


def in_form(X, form):
    if form in ("dense", "fortran"):
        return np.asarray(X, order="C" if form == "dense" else "F")
    return X.astype(object) if form == "object" else sparse.coo_array(X).asformat(form)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_negative_integers_are_named(dtype, form):
    X = np.array([[1, 2], [3, -4]], dtype=dtype)
    with pytest.raises(CountsError, match=r"Negative values in data: counts must .* counts\[1, 1\] = -4\."):
        as_counts(in_form(X, form), name="counts")


@pytest.mark.parametrize("form", ["dense", "csr", "coo"])
@pytest.mark.parametrize("dtype", ["uint32", "int64", "uint64"])
def test_integers_over_the_largest_count_are_named(form, dtype):
    X = np.array([[1, 2], [LARGEST_COUNT, LARGEST_COUNT + 1]], dtype=dtype)
    with pytest.raises(CountsError, match=r"X\[1, 1\] = 2147483648\. The largest possible count"):
        as_counts(in_form(X, form))


def test_a_float_far_over_the_largest_count_is_named():
    with pytest.raises(CountsError, match=r"X\[0, 1\] = 1e\+300\. The largest possible count"):
        as_counts([[1, 1e300]])


def test_an_integer_that_would_wrap_around_is_named():
    with pytest.raises(CountsError, match=rf"X\[0, 1\] = {2**32 + 5}\."):
        as_counts(np.array([[1, 2**32 + 5]]))
    with pytest.raises(CountsError, match=rf"X\[0, 1\] = {2**64 - 1}\."):
        as_counts(np.array([[1, 2**64 - 1]], dtype=np.uint64))


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_duplicates_whose_sum_is_too_large_are_named(form, dtype):
    data = np.array([1, LARGEST_COUNT, 1], dtype=dtype)
    if form == "csc":
        X = compressed(data, [0, 1, 1], [0, 1, 3], sparse.csc_array, (2, 2))
    else:
        X = compressed(data, [0, 1, 1], [0, 1, 3], shape=(2, 2))
    X = sparse.coo_array((data, ([0, 1, 1], [0, 1, 1]))) if form == "coo" else X
    with pytest.raises(CountsError, match=r"X\[1, 1\] = 2147483648\. The largest possible count"):
        as_counts(X)


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize(("dtype", "huge"), [("int64", 2**62), ("uint64", 2**63)])
def test_duplicates_whose_sum_would_wrap_around_are_named(form, dtype, huge):
    data = np.array([huge, huge, huge, huge, 1], dtype=dtype)
    if form == "coo":
        X = sparse.coo_array((data, ([1, 1, 0, 0, 0], [1, 1, 1, 1, 0])), shape=(2, 2))
    else:
        X = compressed(data, [1, 1, 1, 1, 0], [0, 3, 5], shape=(2, 2))
    with pytest.raises(CountsError, match=rf"X\[0, 1\] = {huge}\. The largest possible count"):
        as_counts(X)


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, -1, np.nan, 1e10], r"X\[2, 0\] = NaN"),
        ([0.5, -1, np.inf, 1e10], r"X\[2, 0\] = inf"),
        ([0.5, 2, -1, 1e10], r"Negative values in data: .*X\[2, 0\] = -1\."),
        ([1e10, 2, 1, 0.5], r"X\[3, 0\] = 0\.5"),
    ],
)
def test_the_fault_that_explains_the_others_comes_first(values, message):
    for X in (np.array([values]).T, sparse.csr_array(np.array([values]).T)):
        with pytest.raises(CountsError, match=message):
            as_counts(X)


RAW = np.random.default_rng(0).poisson(2.0, (20, 30)) + np.eye(20, 30)
PROPORTIONS = RAW / RAW.sum(axis=1, keepdims=True)
LOOKS = {
    "proportions": (PROPORTIONS, "The rows sum to one: these look like proportions."),
    "many rows": (np.tile(PROPORTIONS, (10, 1)), "The first 100 rows sum to one"),
    "tf-idf": (
        RAW / np.linalg.norm(RAW, axis=1, keepdims=True),
        "length one: these look like tf-idf weights.",
    ),
    "normalised": (1e4 * PROPORTIONS, "equal sums: these look like normalised counts."),
    "log1p": (np.log1p(RAW), "exp(x) - 1 is whole everywhere: these look like log1p values"),
    "both": (np.log1p(1e4 * PROPORTIONS), "these look like log1p values of normalised counts."),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_fractions_that_look_like_something_are_told_what(look, dtype, form):
    X, message = LOOKS[look]
    with pytest.raises(CountsError, match=re.escape(message)):
        as_counts(in_form(X.astype(dtype), form))


@pytest.mark.parametrize(
    "X",
    [RAW + 0.25, RAW * np.pi, 1e6 * RAW + 0.5, np.vstack([np.ones((100, 2)), [[1.5, 1]]])],
    ids=["shifted", "scaled", "large", "after the sample"],
)
def test_fractions_that_look_like_nothing_get_no_hint(X):
    with pytest.raises(CountsError, match=r"round them with numpy\.rint\.$"):
        as_counts(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones((2, 2), dtype=complex), CountsError, "^Complex data not supported: X .* complex128"),
        (sparse.csr_array(np.ones((2, 2), dtype=complex)), CountsError, "Complex data not supported"),
        (np.array([[1, 2j]], dtype=object), CountsError, r"Complex data not supported: X\[0, 1\] = 2j"),
        ([["a", "b"]], CountsError, r"X must hold numbers, but its type is <U1\. Convert"),
        (np.array([[b"1"]]), CountsError, r"X must hold numbers, but its type is \|S1\. Convert"),
        (
            np.array([[1, "a"]], dtype=object),
            CountsError,
            r"X\[0, 1\] = 'a' is not a number .*Convert, fill or",
        ),
        (np.array([[1, {"a": 1}]], dtype=object), TypeError, "argument must be .* string.* number"),
        (np.array([[1, pd.NA]], dtype=object), TypeError, r"X\[0, 1\] = <NA> is not a number"),
        (np.array([[1, 10**400]], dtype=object), CountsError, r"X\[0, 1\] = 1\d+\.\.\.\d+ is not a number"),
        (np.array([[1, None]], dtype=object), CountsError, r"X\[0, 1\] = NaN"),
        (pd.DataFrame({"n": [1], "word": ["a"]}), CountsError, r"X\[0, 1\] = 'a' is not a number"),
        (np.zeros((1, 1), dtype="M8[s]"), TypeError, "X must hold numbers, but its type is datetime64"),
        (np.zeros((1, 1), dtype="i4,i4"), TypeError, "X must hold numbers, but its type is"),
        ([[1, 2], [3]], CountsError, "X cannot be read as a matrix .* Give rows of equal length"),
        (np.ma.masked_equal(DENSE, 3), CountsError, r"X has masked entries\. Fill them .* X\.filled\(0\)"),
        (
            pd.DataFrame({"a": [1, 2]}).astype(pd.SparseDtype("int64", 1)),
            CountsError,
            "cannot be read as a matrix .* fill value 0",
        ),
    ],
)
def test_input_that_does_not_hold_numbers_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        as_counts(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (3, "got scalar array instead: .*Reshape your data"),
        ([1, 2, 3], r"got 1D array instead: X has shape \(3,\)\. Reshape your data"),
        (sparse.coo_array(np.arange(3)), "got 1D array instead: .*Reshape your data"),
        (pd.Series([1, 2]), "Reshape your data"),
        (np.ones((1, 2, 3)), r"X has shape \(1, 2, 3\)\. Flatten it"),
        (np.ones((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\. .*rows of X"),
        (np.ones((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\. .*columns"),
        (sparse.csr_array((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (sparse.coo_array((1, 2**31)), "X has 2147483648 columns, but at most 2147483647 are possible"),
    ],
)
def test_input_of_the_wrong_shape_is_refused(X, message):
    with pytest.raises(CountsError, match=message):
        as_counts(X)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("attribute", "position", "value"),
    [("indices", 0, 9), ("indices", 0, -1), ("indptr", 1, 6), ("indptr", 0, 1)],
)
def test_a_sparse_matrix_with_broken_indices_is_refused(kind, attribute, position, value):
    X = kind(np.ones((3, 3)))
    getattr(X, attribute)[position] = value
    if attribute == "indptr":
        X.indptr[2] = 5
    with pytest.raises(CountsError, match=r"X is not a sound CS[RC] matrix: .* Build it again"):
        as_counts(X)


@pytest.mark.parametrize("form", ["dense", "csr", "csc", "coo"])
def test_empty_rows_are_counted_and_named(form):
    X = np.ones((12, 2), dtype=int)
    X[[1, 3]] = 0
    with pytest.raises(CountsError, match=r"X has 2 empty rows .*: 1, 3\. A row without counts .* drop such"):
        as_counts(in_form(X, form))
    X[4:9] = 0
    with pytest.raises(CountsError, match=r"X has 7 empty rows .*: 1, 3, 4, 5, 6, \.\.\.\. A row"):
        as_counts(in_form(X, form))
    counts = as_counts(in_form(X, form), empty_rows="allow")
    np.testing.assert_array_equal(counts.row_totals(), X.sum(axis=1))


def test_a_row_of_explicit_zeros_is_empty():
    X = compressed([1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 3, 4])
    with pytest.raises(CountsError, match=r"X has 1 empty row \(n_samples = 3, n_features = 4\): 1\."):
        as_counts(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, pd.DataFrame])
def test_the_remedy_for_empty_rows_works_as_printed(kind):
    X = kind(np.array([[1, 2], [0, 0], [0, 3]]))
    with pytest.raises(CountsError) as caught:
        as_counts(X)
    remedy = re.search(r"drop such rows with X = (.*?> 0\])\.", str(caught.value))[1]
    kept = eval(remedy, {"numpy": np, "X": X})
    np.testing.assert_array_equal(as_counts(kept).to_csr().toarray(), [[1, 2], [0, 3]])


# --- rows that look like features ----------------------------------------------------------------


@pytest.fixture
def documents():
    """Forty documents of similar lengths over 300 words with Zipf's frequencies, a few of them never used."""
    frequencies = 1 / np.arange(1, 301)
    return np.random.default_rng(0).multinomial(100, frequencies / frequencies.sum(), size=40)


def test_a_transposed_matrix_gets_a_hint(documents):
    with pytest.raises(CountsError, match=r"empty rows .* may be transposed: its 300 rows .* 40 columns.*X\.T"):
        as_counts(documents.T)


def test_a_matrix_the_right_way_round_gets_no_hint(documents):
    assert transposition_hint(as_counts(documents)) is None
    tall = np.tile(documents[:, documents.any(axis=0)], (20, 1)) * np.arange(1, 801)[:, None]
    assert transposition_hint(as_counts(tall)) is None
    documents[5] = 0
    with pytest.raises(CountsError) as caught:
        as_counts(documents)
    assert "transposed" not in str(caught.value)


@pytest.mark.parametrize(
    "X",
    [np.ones((1, 1)), np.ones((50, 20)), np.zeros((50, 20)), np.arange(1, 51)[:, None] ** 3, np.eye(50, 20)],
    ids=["one entry", "constant", "nothing", "one column", "identity"],
)
def test_plain_matrices_get_no_hint(X):
    assert transposition_hint(as_counts(X, empty_rows="allow")) is None


@pytest.mark.usefixtures("_chunks")
def test_sums_by_group_are_those_of_the_dense_rows():
    X, groups = np.random.default_rng(0).poisson(0.5, (50, 7)), np.arange(50) % 3
    X[:3], X[20:25], X[-4:] = 0, 0, 0
    expected = [X[groups == group].sum(axis=0) for group in range(3)]
    np.testing.assert_array_equal(as_counts(X, empty_rows="allow").group_sums(groups, 3), expected)
    assert no_rows(4).group_sums(np.zeros(0, dtype=int), 2).tolist() == np.zeros((2, 4)).tolist()


def test_sums_by_group_make_no_copy_of_the_counts():
    counts, groups = as_counts(np.ones((1000, 2000), dtype=np.int32)), np.arange(1000) % 2
    assert peak_memory(lambda: counts.group_sums(groups, 2)) < 4_000_000  # 16 million in doubles


def test_entries_beyond_the_range_of_32_bits_are_found(tmp_path):
    first = 2**31 + 7  # entries of a first row that nobody looks at: the files are empty but for their ends
    end = {"indices": EXPECTED.indices, "data": EXPECTED.data}
    files = {name: np.memmap(tmp_path / name, np.int32, "w+", shape=(first + len(end[name]),)) for name in end}
    for name, file in files.items():
        file[first:] = end[name]
    arrays = {name: np.asarray(file) for name, file in files.items()}
    large = Counts(np.concatenate([[0], first + EXPECTED.indptr]), **arrays, n_features=EXPECTED.n_features)
    assert_same_counts(large.take(slice(1, None)), EXPECTED)
    assert_same_counts(large.take([3, 1]), EXPECTED.take([2, 0]))
    beta_rows = np.random.default_rng(0).dirichlet(np.ones(EXPECTED.n_features), 2).T.copy()
    gamma, alone = np.empty((large.n_rows, 2)), np.empty((EXPECTED.n_rows, 2))
    kernels.fold_in(large, np.arange(1, large.n_rows), beta_rows, 1.0, 1e-9, 100, gamma)
    kernels.fold_in(EXPECTED, np.arange(EXPECTED.n_rows), beta_rows, 1.0, 1e-9, 100, alone)
    np.testing.assert_array_equal(gamma[1:], alone)


@pytest.mark.parametrize("X", ["counts.npz", Path("counts.npz")], ids=["str", "path"])
def test_a_path_is_told_where_it_is_read(X):
    with pytest.raises(CountsError, match=r"it is 'counts.npz'\. Read a file with mmpca.io.read_counts"):
        as_counts(X)


@pytest.mark.parametrize(
    "X",
    [["sun and sea", "sun"], ("a.npz", "b.npz"), [Path("a.npz")], np.array(["sun"]), pd.Series(["sun and sea"])],
    ids=["list", "tuple", "paths", "array", "series"],
)
def test_texts_are_told_where_they_are_counted(X):
    with pytest.raises(CountsError, match=r"list of texts or paths\. .* count words with mmpca.text.CountTexts"):
        as_counts(X)
