"""Every kind of input gives the same counts, and anything that is not a count is rejected with row and column."""

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

from mmpca.counts import (
    LARGEST_COUNT,
    Counts,
    as_counts,
    count_remedy,
    effective_counts,
    no_rows,
    scale_hint,
    square_root,
    stacked,
    transposition_hint,
)
from mmpca.errors import CountsError
from mmpca.topics import kernels

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


@pytest.fixture(scope="module")
def large():
    """Return a table of several chunks (of 131,072 entries each), with some empty rows."""
    X = np.random.default_rng(0).poisson(1.5, (500, 700))
    X[:3], X[200:250], X[-4:] = 0, 0, 0
    return X


# --- one form for all inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_sparse_input_gives_the_same_counts(form, family, dtype):
    X = getattr(sparse, f"{form}_{family}")(DENSE.astype(dtype))
    assert_same_counts(as_counts(X), EXPECTED)


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
        pd.DataFrame(DENSE, columns=["indices", "sparse", "data", "slice"]),
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


def test_out_of_date_flags_of_a_sparse_matrix_are_ignored():
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
    np.testing.assert_array_equal(counts.column_entries(), (X > 0).sum(axis=0))
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


# --- methods ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "float32", "object"])
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc", "coo"])
def test_input_of_several_chunks_gives_the_same_counts(large, form, dtype):
    X = large.astype(dtype)
    counts = as_counts(X if dtype == "object" else in_form(X, form), empty_rows="allow")
    np.testing.assert_array_equal(counts.to_csr().toarray(), large)
    np.testing.assert_array_equal(counts.row_totals(), large.sum(axis=1))
    np.testing.assert_array_equal(counts.column_totals(), large.sum(axis=0))
    np.testing.assert_array_equal(counts.column_entries(), (large > 0).sum(axis=0))
    np.testing.assert_array_equal(square_root(counts).to_csr().toarray(), np.rint(np.sqrt(large)))
    order = np.random.default_rng(0).permutation(500)
    np.testing.assert_array_equal(counts.take(order).to_csr().toarray(), large[order])


def test_weighted_totals_are_exact_and_wrap_around(large):
    X, weights = large.copy(), np.random.default_rng(0).integers(2**64, size=700, dtype=np.uint64)
    X[5, 2] = LARGEST_COUNT
    totals = as_counts(X, empty_rows="allow").row_totals(weights)
    for i in (0, 5, 300, 499):
        assert totals[i] == sum(int(x) * int(w) for x, w in zip(X[i], weights, strict=True)) % 2**64


def test_stacked_counts_are_the_rows_of_all():
    parts = [EXPECTED.take(slice(0, 1)), no_rows(4), EXPECTED.take([2, 1])]
    assert_same_counts(stacked(parts), EXPECTED.take([0, 2, 1]))
    assert stacked(parts[:1]) is parts[0]


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


def test_taking_a_row_that_does_not_exist_is_an_error():
    with pytest.raises(IndexError):
        EXPECTED.take([3])


def test_consecutive_rows_share_their_entries():
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


@pytest.mark.parametrize("rate", [1e-15, 1e-6, 0.003, 1.0, 80.0, 1e3, 1e9])
def test_effective_counts_are_sums_of_probabilities_of_a_new_burst(rate):
    """The j-th further count of a burst counts a / (a + j)."""
    X = np.array([[1, 2, 3, 17, 250, 1], [40, 1, 5, 0, 1, 2]])
    found = effective_counts(as_counts(X), np.full(6, rate)).to_csr().toarray()
    for i, v in np.argwhere(X):
        a = X[i].sum() * rate
        worth = (a / (a + np.arange(X[i, v]))).sum()
        assert abs(found[i, v] - worth) <= 0.5 + 1e-9
    np.testing.assert_array_equal(found > 0, X > 0)


def test_effective_counts_stay_between_one_and_the_count():
    X = np.tile(np.random.default_rng(0).integers(1, 10**6, (50, 1)), 20)
    rates = np.concatenate([[0.0, np.inf], 10.0 ** np.linspace(-14, 9, 18)])
    found = effective_counts(as_counts(X), rates).to_csr().toarray()
    assert (found[:, 0] == 1).all()
    np.testing.assert_array_equal(found[:, 1], X[:, 1])
    assert ((found >= 1) & (found <= X)).all()
    assert (np.diff(found[:, 2:], axis=1) >= 0).all()  # larger rates, larger counts


def test_square_roots_are_rounded_and_keep_the_pattern():
    counts = as_counts([[1, 2, 3, 6, 7, 0, LARGEST_COUNT]])
    roots = square_root(counts)
    assert roots.data.tolist() == [1, 1, 2, 2, 3, 46341]
    assert_same_counts(roots, counts._replace(data=roots.data))
    assert counts.data.tolist() == [1, 2, 3, 6, 7, LARGEST_COUNT]


# --- errors -----------------------------------------------------------------------------------------------------


def assert_rejected(X, row=None, column=None, error=CountsError, **options):
    with pytest.raises(error) as caught:
        as_counts(X, **options)
    if error is CountsError:
        assert (caught.value.row, caught.value.column) == (row, column)
    return str(caught.value)


def in_form(X, form):
    if form in ("dense", "fortran"):
        return np.asarray(X, order="C" if form == "dense" else "F")
    return X.astype(object) if form == "object" else sparse.coo_array(X).asformat(form)


INVALID = {
    "negative": -2,
    "fraction": 0.5,
    "missing": np.nan,
    "infinite": np.inf,
    "minus infinity": -np.inf,
    "too large": 2.0**31,
}


@pytest.mark.parametrize("value", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc", "coo", "object"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_value_that_is_not_a_count_is_located(value, form, dtype):
    X = np.array([[1, 0, 2, 5], [0, 3, 0, 0], [4, value, 0, value], [value, 1, 0, 1]], dtype=dtype)
    assert_rejected(in_form(X, form), 2, 1)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_value_in_a_late_chunk_is_located(large, form):
    X = large.astype(float)
    X[490, 123] = X[495, 1] = 0.5
    assert_rejected(in_form(X, form), 490, 123)


@pytest.mark.parametrize("value", INVALID.values(), ids=INVALID)
def test_each_kind_of_invalid_value_has_its_own_remedy(value):
    remedies = {count_remedy(other) for other in INVALID.values()}
    assert None not in remedies
    assert len(remedies) == 5  # both infinities share one
    assert count_remedy(value) in assert_rejected([[1, value]], 0, 1)
    assert count_remedy(0) is count_remedy(3.0) is count_remedy(LARGEST_COUNT) is None


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_negative_integers_are_located(dtype, form):
    X = np.array([[1, 2], [3, -4]], dtype=dtype)
    assert "counts[1, 1] = -4" in assert_rejected(in_form(X, form), 1, 1, name="counts")


@pytest.mark.parametrize("form", ["dense", "csr", "coo"])
@pytest.mark.parametrize("dtype", ["uint32", "int64", "uint64"])
def test_integers_over_the_largest_count_are_located(form, dtype):
    X = np.array([[1, 2], [LARGEST_COUNT, LARGEST_COUNT + 1]], dtype=dtype)
    assert_rejected(in_form(X, form), 1, 1)


@pytest.mark.parametrize("value", [1e300, 2**32 + 5, np.uint64(2**64 - 1)])
def test_values_far_over_the_largest_count_are_located(value):
    assert_rejected(np.array([[1, value]]), 0, 1)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_duplicates_whose_sum_is_too_large_are_located(form, dtype):
    data = np.array([1, LARGEST_COUNT, 1], dtype=dtype)
    if form == "coo":
        X = sparse.coo_array((data, ([0, 1, 1], [0, 1, 1])))
    else:
        X = compressed(data, [0, 1, 1], [0, 1, 3], getattr(sparse, f"{form}_array"), shape=(2, 2))
    assert_rejected(X, 1, 1)


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize(("dtype", "huge"), [("int64", 2**62), ("uint64", 2**63)])
def test_duplicates_whose_sum_would_wrap_around_are_located(form, dtype, huge):
    data = np.array([huge, huge, huge, huge, 1], dtype=dtype)
    if form == "coo":
        X = sparse.coo_array((data, ([1, 1, 0, 0, 0], [1, 1, 1, 1, 0])), shape=(2, 2))
    else:
        X = compressed(data, [1, 1, 1, 1, 0], [0, 3, 5], shape=(2, 2))
    assert_rejected(X, 0, 1)


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([0.5, -1, np.nan, 1e10], 2),
        ([0.5, -1, np.inf, 1e10], 2),
        ([0.5, 2, -1, 1e10], 2),
        ([1e10, 2, 1, 0.5], 3),
    ],
)
def test_the_error_that_explains_the_others_comes_first(values, row):
    for X in (np.array([values]).T, sparse.csr_array(np.array([values]).T)):
        assert_rejected(X, row, 0)


RAW = np.random.default_rng(0).poisson(2.0, (20, 30)) + np.eye(20, 30)
PROPORTIONS = RAW / RAW.sum(axis=1, keepdims=True)
SCALES = {
    "proportions": PROPORTIONS,
    "tf-idf": RAW / np.linalg.norm(RAW, axis=1, keepdims=True),
    "normalized": 1e4 * PROPORTIONS,
    "log1p": np.log1p(RAW),
    "log1p of normalized": np.log1p(1e4 * PROPORTIONS),
}


def hint_for(X):
    return scale_hint(sparse.csr_array(X))


@pytest.mark.parametrize("X", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_fractions_get_a_hint_where_they_come_from(X, dtype, form):
    hint = hint_for(X)
    assert hint
    assert assert_rejected(in_form(X.astype(dtype), form), 0, int(X[0].nonzero()[0][0])).endswith(hint)
    assert sum(hint == hint_for(other) for other in SCALES.values()) == 1


def test_hints_look_at_the_first_rows_only():
    X = np.tile(PROPORTIONS, (10, 1))
    X[150] = 7
    assert assert_rejected(X, 0, 0).endswith(hint_for(X[:100]))


@pytest.mark.parametrize(
    "X",
    [RAW + 0.25, RAW * np.pi, 1e6 * RAW + 0.5, np.vstack([np.ones((100, 2)), [[1.5, 1]]])],
    ids=["shifted", "scaled", "large", "after the sample"],
)
def test_other_fractions_get_no_hint(X):
    assert hint_for(X[:100]) == ""
    with pytest.raises(CountsError) as caught:
        as_counts(X)
    assert str(caught.value).endswith(count_remedy(0.5))


@pytest.mark.parametrize(
    ("X", "error", "row", "column"),
    [
        (np.ones((2, 2), dtype=complex), CountsError, None, None),
        (sparse.csr_array(np.ones((2, 2), dtype=complex)), CountsError, None, None),
        (np.array([[1, 2j]], dtype=object), CountsError, 0, 1),
        ([["a", "b"]], CountsError, None, None),
        (np.array([[b"1"]]), CountsError, None, None),
        (np.array([[1, "a"]], dtype=object), CountsError, 0, 1),
        (np.array([[1, {"a": 1}]], dtype=object), TypeError, None, None),
        (np.array([[1, pd.NA]], dtype=object), TypeError, None, None),
        (np.array([[1, 10**400]], dtype=object), CountsError, 0, 1),
        (np.array([[1, None]], dtype=object), CountsError, 0, 1),
        (pd.DataFrame({"n": [1], "word": ["a"]}), CountsError, 0, 1),
        (np.zeros((1, 1), dtype="M8[s]"), TypeError, None, None),
        (np.zeros((1, 1), dtype="i4,i4"), TypeError, None, None),
        ([[1, 2], [3]], CountsError, None, None),
        (np.ma.masked_equal([[1, 2], [3, 4]], 4), CountsError, 1, 1),
        (list(np.ma.masked_equal([[1, 2], [3, 4]], 4)), CountsError, 1, 1),
        (pd.DataFrame({"a": [1, 2]}).astype(pd.SparseDtype("int64", 1)), CountsError, None, None),
    ],
    ids=["complex", "sparse complex", "complex object", "texts", "bytes", "text object", "dictionary", "pandas NA"]
    + [
        "huge integer",
        "None",
        "frame with words",
        "dates",
        "records",
        "ragged",
        "masked",
        "masked rows",
        "sparse frame of ones",
    ],
)
def test_input_that_does_not_hold_numbers_is_rejected(X, error, row, column):
    assert_rejected(X, row, column, error=error)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "UInt8", "boolean"])
def test_missing_values_of_types_that_belong_to_pandas_are_located(dtype):
    assert_rejected(pd.DataFrame({"a": [1, 0], "b": [1, None]}).astype(dtype), 1, 1)


@pytest.mark.parametrize(
    "X",
    [
        3,
        [1, 2, 3],
        sparse.coo_array(np.arange(3)),
        pd.Series([1, 2]),
        np.ones((1, 2, 3)),
        np.ones((0, 3)),
        np.ones((3, 0)),
        sparse.csr_array((3, 0)),
        sparse.coo_array((1, 2**31)),
    ],
    ids=["number", "list", "sparse vector", "series", "three dimensions", "no rows", "no columns", "sparse, no columns"]
    + ["too many columns"],
)
def test_input_of_the_wrong_shape_is_rejected(X):
    assert_rejected(X)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("attribute", "position", "value"),
    [("indices", 0, 9), ("indices", 0, -1), ("indptr", 1, 6), ("indptr", 0, 1)],
)
def test_a_sparse_matrix_with_invalid_indices_is_rejected(kind, attribute, position, value):
    X = kind(np.ones((3, 3)))
    getattr(X, attribute)[position] = value
    if attribute == "indptr":
        X.indptr[2] = 5
    assert_rejected(X)


@pytest.mark.parametrize("form", ["dense", "csr", "csc", "coo"])
def test_the_first_empty_row_is_located(form):
    X = np.ones((12, 2), dtype=int)
    X[[1, 3]] = 0
    assert_rejected(in_form(X, form), 1)
    counts = as_counts(in_form(X, form), empty_rows="allow")
    np.testing.assert_array_equal(counts.row_totals(), X.sum(axis=1))


def test_a_row_of_stored_zeros_is_empty():
    assert_rejected(compressed([1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 3, 4]), 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, pd.DataFrame])
def test_the_printed_remedy_for_empty_rows_works(kind):
    X = kind(np.array([[1, 2], [0, 0], [0, 3]]))
    remedy = re.search(r"X = (X\[.*> 0\])", assert_rejected(X, 1))[1]
    kept = eval(remedy, {"numpy": np, "X": X})
    np.testing.assert_array_equal(as_counts(kept).to_csr().toarray(), [[1, 2], [0, 3]])


@pytest.mark.parametrize(
    "X",
    [
        "counts.npz",
        Path("counts.npz"),
        ["sun and sea", "sun"],
        ("a.npz", "b.npz"),
        [Path("a.npz")],
        np.array(["sun"]),
        pd.Series(["sun and sea"]),
    ],
    ids=["str", "path", "list", "tuple", "paths", "array", "series"],
)
def test_paths_and_texts_are_referred_to_the_functions_that_read_them(X):
    message = assert_rejected(X)
    assert "mmpca.io.read_counts" in message
    assert "mmpca.text.CountTexts" in message


# --- rows that look like features -------------------------------------------------------------------------------


@pytest.fixture
def documents():
    """Return 40 documents of similar lengths over 300 words with Zipf's frequencies, a few of them never used."""
    frequencies = 1 / np.arange(1, 301)
    return np.random.default_rng(0).multinomial(100, frequencies / frequencies.sum(), size=40)


def test_a_transposed_matrix_gets_a_hint(documents):
    hint = transposition_hint(as_counts(documents.T, empty_rows="allow"))
    assert hint
    with pytest.raises(CountsError) as caught:
        as_counts(documents.T)
    assert str(caught.value).endswith(hint)


def test_a_matrix_that_is_not_transposed_gets_no_hint(documents):
    assert transposition_hint(as_counts(documents)) is None
    tall = np.tile(documents[:, documents.any(axis=0)], (20, 1)) * np.arange(1, 801)[:, None]
    assert transposition_hint(as_counts(tall)) is None
    documents[5] = 0
    assert transposition_hint(as_counts(documents, empty_rows="allow")) is None


@pytest.mark.parametrize(
    "X",
    [np.ones((1, 1)), np.ones((50, 20)), np.zeros((50, 20)), np.arange(1, 51)[:, None] ** 3, np.eye(50, 20)],
    ids=["one entry", "constant", "nothing", "one column", "identity"],
)
def test_plain_matrices_get_no_hint(X):
    assert transposition_hint(as_counts(X, empty_rows="allow")) is None


# --- sums by group and large files ------------------------------------------------------------------------------


def test_sums_by_group_are_those_of_the_dense_rows(large):
    groups = np.arange(500) % 3
    expected = [large[groups == group].sum(axis=0) for group in range(3)]
    np.testing.assert_array_equal(as_counts(large, empty_rows="allow").group_sums(groups, 3), expected)
    assert no_rows(4).group_sums(np.zeros(0, dtype=int), 2).tolist() == np.zeros((2, 4)).tolist()


def test_sums_by_group_make_no_copy_of_the_counts():
    counts, groups = as_counts(np.ones((1000, 2000), dtype=np.int32)), np.arange(1000) % 2
    assert peak_memory(lambda: counts.group_sums(groups, 2)) < 4_000_000  # 16 million in doubles


def test_entries_beyond_the_range_of_32_bits_are_found(tmp_path):
    first = 2**31 + 7  # entries of a first row that is never read: only the ends of the files are written
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
    kernels.fold_in(large, np.arange(1, large.n_rows), beta_rows, np.ones(beta_rows.shape[1]), 1e-9, 100, gamma)
    kernels.fold_in(EXPECTED, np.arange(EXPECTED.n_rows), beta_rows, np.ones(beta_rows.shape[1]), 1e-9, 100, alone)
    np.testing.assert_array_equal(gamma[1:], alone)
