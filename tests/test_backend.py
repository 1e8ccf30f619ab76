"""Slices of rows, threads that work on them, rows in this process, and the limit on BLAS threads."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from mmpca import MMPCA
from mmpca.backend import (
    MAX_SLICES,
    MIN_SLICE_ENTRIES,
    SERIAL,
    LocalRows,
    column_totals,
    even_slices,
    group_sums,
    map_rows,
    one_blas_thread,
    open_threads,
    row_entries,
    row_totals,
    slices_of,
)
from mmpca.counts import as_counts

# --- slices of rows ---------------------------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=40), n_wanted=st.integers(1, 10))
def test_slices_cover_all_rows_in_order_and_have_similar_sizes(sizes, n_wanted):
    ends = np.concatenate([[0], np.cumsum(sizes)])
    slices = even_slices(ends, n_wanted)
    assert 1 <= len(slices) <= n_wanted
    assert [row for one in slices for row in range(one.start, one.stop)] == list(range(len(sizes)))
    assert all(one.start < one.stop for one in slices)
    largest = max(ends[one.stop] - ends[one.start] for one in slices)
    assert largest <= ends[-1] / n_wanted + max(sizes)


def test_no_rows_have_no_slices():
    assert even_slices(np.zeros(1, dtype=np.int64), 8) == []


def test_the_number_of_slices_grows_with_the_entries_up_to_a_limit_and_falls_with_the_features():
    def n_slices(n_entries, n_features=10):
        ends = np.linspace(0, n_entries, 101).astype(np.int64)  # of a hundred rows; nothing else is read
        return len(slices_of(as_counts(np.eye(1, n_features, dtype=int))._replace(indptr=ends)))

    numbers = [n_slices(n_entries) for n_entries in 2 ** np.arange(0, 40)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (1, MAX_SLICES)
    assert n_slices(2 * MIN_SLICE_ENTRIES) == 2
    assert n_slices(2 * MIN_SLICE_ENTRIES, MIN_SLICE_ENTRIES) == 1


def test_sums_over_slices_are_those_over_all_rows(threads):
    n_rows = 3 * MIN_SLICE_ENTRIES // 8
    rows = as_counts(np.random.default_rng(0).integers(1, 9, (n_rows, 8)))
    some = np.random.default_rng(1).permutation(n_rows)[5:]
    slices = slices_of(rows, some)
    assert len(slices) > 1

    def add(at, sums):
        sums += rows.take(some[at]).column_totals()

    np.testing.assert_array_equal(threads.sum_slices(add, slices, (8,)), rows.take(some).column_totals())


# --- threads ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=[1, 3])
def threads(request):
    with open_threads(request.param) as threads:
        yield threads


def test_results_come_in_the_order_of_their_items(threads):
    items = [3, 1, 2, 9, 0]
    assert threads.map(lambda item: -item, items) == [-3, -1, -2, -9, 0]
    assert list(threads.imap(lambda item: -item, items)) == [-3, -1, -2, -9, 0]
    assert threads.map(lambda item: -item, []) == []


def test_without_a_pool_a_result_is_computed_when_it_is_asked_for():
    made = []
    results = SERIAL.imap(made.append, [3, 1, 2])
    next(results)
    assert made == [3]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_kernel_sees_every_row_once_in_matching_slices(threads, size):
    source, target = np.arange(30), np.zeros(30)

    def double(values, results):
        assert len(values) <= size
        results += 2 * values

    threads.for_rows(double, source, target, size=size)
    np.testing.assert_array_equal(target, 2 * source)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_is_raised_when_no_thread_works_any_more(error):
    n_running, first_failed = 0, threading.Event()

    def work(item):
        nonlocal n_running
        if item == 0:
            first_failed.set()
            raise error
        n_running += 1
        first_failed.wait(timeout=600)
        n_running -= 1

    with open_threads(2) as threads:
        with pytest.raises(error):
            threads.map(work, range(20))
        assert n_running == 0


# --- rows in this process ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [np.arange(6), np.array([4, 0, 0, 2])])
def test_local_rows_compute_the_same_as_numpy(threads, rows):
    X = np.random.default_rng(0).poisson(1.0, (6, 5)) + np.eye(6, 5, dtype=int)
    X[5, 0] = 1
    backend = LocalRows(as_counts(X)).with_threads(threads)
    assert (backend.n_rows, backend.n_features) == (6, 5)
    np.testing.assert_array_equal(map_rows(backend, row_totals, rows), X[rows].sum(axis=1))
    np.testing.assert_array_equal(map_rows(backend, row_entries, rows), (X[rows] > 0).sum(axis=1))
    np.testing.assert_array_equal(backend.map_reduce(column_totals, rows), X[rows].sum(axis=0))
    groups = np.arange(len(rows)) % 2
    sums = backend.map_reduce(group_sums, rows, groups, shared=(3,))
    np.testing.assert_array_equal(sums, [X[rows][groups == q].sum(axis=0) for q in range(3)])
    np.testing.assert_array_equal(backend.take(rows).to_csr().toarray(), X[rows])
    tasks = [(rows, 1), (rows[:2], 2)]
    results = backend.map(lambda counts, factor: factor * counts.row_totals(), tasks)
    for (some, factor), result in zip(tasks, results, strict=True):
        np.testing.assert_array_equal(result, factor * X[some].sum(axis=1))
        np.testing.assert_array_equal(
            backend.apply(lambda counts, factor: factor * counts.row_totals(), some, factor), result
        )


def test_all_rows_are_taken_without_a_copy():
    counts = as_counts(np.eye(4, dtype=int))
    assert LocalRows(counts).take(np.arange(4)) is counts


# --- the limit on BLAS threads ----------------------------------------------------------------------------------


def n_blas_threads():
    """Return the numbers of threads of all BLAS libraries in this process."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def three_blas_threads():
    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.usefixtures("three_blas_threads")
def test_the_limit_holds_until_the_last_caller_leaves():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # before the second, as threads do
    assert n_blas_threads() == {1}
    second.__exit__(None, None, None)
    assert n_blas_threads() == {3}


LOADED_LATER = """
from threadpoolctl import threadpool_info
from mmpca.backend import one_library_thread

def numbers_of_threads():
    with one_library_thread("openmp"):
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]

before = numbers_of_threads()
import sklearn.cluster
print(before, numbers_of_threads())
"""


def test_libraries_that_are_loaded_later_are_limited_too(start_python):
    process = start_python("-c", LOADED_LATER, env=os.environ | {"OMP_NUM_THREADS": "3"})
    assert process.communicate() == ("[] [1]\n", "")


@pytest.mark.usefixtures("three_blas_threads")
def test_an_error_lifts_the_limit():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert n_blas_threads() == {3}


@pytest.mark.usefixtures("three_blas_threads")
def test_a_fit_runs_under_the_limit_and_lifts_it():
    seen = {}

    def look(progress):
        if progress.stage not in seen:
            seen[progress.stage] = n_blas_threads()

    X = np.random.default_rng(0).poisson(3.0, (20, 4)) + 1
    MMPCA(2, 2, topics="lda", refit_topics=True, n_init=1, random_state=0).fit(X, callback=look)
    assert {"topics", "shares", "starts", "refit"} < seen.keys()
    assert {stage for stage, n_threads in seen.items() if n_threads == {3}} == {"done"}
    assert n_blas_threads() == {3}
