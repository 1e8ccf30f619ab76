"""Rows in parts answer as rows at hand do."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mmpca import places
from mmpca.counts import as_counts
from mmpca.distributed.crews import Threads
from mmpca.distributed.sources import load
from mmpca.places import Here, column_totals, group_sums, joined, row_entries, row_totals

ROWS = [np.arange(300), np.array([5, 17, 120, 121, 299]), np.array([250, 3, 77, 4])]


@pytest.fixture(scope="module")
def parts(X, blocks):
    return load(blocks(X, 4), Threads(ThreadPoolExecutor(2), 2)).parts


@pytest.fixture(scope="module")
def here(X):
    return Here(as_counts(X))


def test_sizes_are_those_of_all_rows(parts, here):
    assert (parts.n_rows, parts.n_features) == (here.n_rows, here.n_features)


@pytest.mark.parametrize("rows", ROWS, ids=["all", "some", "unordered"])
@pytest.mark.parametrize("call", [row_totals, row_entries])
def test_answers_come_in_the_order_of_the_rows(parts, here, rows, call):
    np.testing.assert_array_equal(joined(parts, call, rows), joined(here, call, rows))


@pytest.mark.parametrize("rows", ROWS, ids=["all", "some", "unordered"])
def test_sums_are_those_of_all_parts(parts, here, rows):
    groups = rows % 3
    np.testing.assert_array_equal(
        parts.total(group_sums, rows, groups, shared=(3,)), here.total(group_sums, rows, groups, shared=(3,))
    )


def test_column_totals_are_those_of_all_parts(parts, here):
    np.testing.assert_array_equal(parts.total(column_totals, ROWS[0]), here.total(column_totals, ROWS[0]))


@pytest.mark.parametrize("rows", ROWS, ids=["all", "some", "unordered"])
def test_rows_are_brought_in_the_given_order(parts, here, X, rows):
    np.testing.assert_array_equal(parts.take(rows).to_csr().toarray(), X[rows].toarray())
    np.testing.assert_array_equal(here.take(rows).to_csr().toarray(), X[rows].toarray())
    together = parts.together(lambda counts, power: counts.to_csr().toarray() ** power, rows, 2)
    np.testing.assert_array_equal(together, X[rows].toarray() ** 2)


def test_several_calls_are_answered_in_their_order(parts, here, X):
    def scaled(counts, first, factor, last):
        return first, counts.to_csr().toarray() * factor, last

    factor = {place: place.keep(3) for place in (parts, here)}
    for place in (parts, here):
        answers = place.several(scaled, [(rows, "first", factor[place], [at]) for at, rows in enumerate(ROWS)])
        for at, (rows, (first, values, last)) in enumerate(zip(ROWS, answers, strict=True)):
            assert (first, last) == ("first", [at])
            np.testing.assert_array_equal(values, 3 * X[rows].toarray())


def test_what_is_kept_is_shared(parts):
    kept = parts.keep({"factor": 3})
    answer = joined(
        parts, lambda part, rows, shared, for_rows: np.full(len(rows), shared["factor"]), ROWS[0], shared=(kept,)
    )
    np.testing.assert_array_equal(answer, np.full(300, 3))


def test_one_thread_visits_all_pieces():
    seen = []
    places.one_thread(lambda a, b: seen.append((a.tolist(), b.tolist())), np.arange(5), np.arange(5) + 10, size=2)
    assert seen == [([0, 1], [10, 11]), ([2, 3], [12, 13]), ([4], [14])]
