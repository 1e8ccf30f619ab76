"""Rows in parts answer as rows at hand do."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mmpca import places
from mmpca.counts import as_counts
from mmpca.distributed.crews import Cluster, Threads, _dealt
from mmpca.distributed.sources import load
from mmpca.places import Here, column_totals, group_sums, joined, row_entries, row_totals

ROWS = [np.arange(300), np.array([5, 17, 120, 121, 299]), np.array([250, 3, 77, 4])]


@pytest.fixture(scope="module", params=["threads", "cluster"])
def parts(X, blocks, request):
    if request.param == "cluster":
        yield load(blocks(X, 4), Cluster(request.getfixturevalue("client"))).parts
    else:
        with ThreadPoolExecutor(2) as pool:
            yield load(blocks(X, 4), Threads(pool, 2)).parts


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


def test_rows_may_be_asked_for_twice(parts, here, X):
    rows = np.concatenate([[0], np.arange(parts.first[1] - 1)])  # as many as the first part has
    np.testing.assert_array_equal(parts.take(rows).to_csr().toarray(), X[rows].toarray())
    np.testing.assert_array_equal(joined(parts, row_totals, rows), joined(here, row_totals, rows))


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


def test_nobody_goes_on_while_a_thread_still_works():
    ended = []

    def kernel(numbers):
        if numbers[0] == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        ended.append(int(numbers[0]))

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            places.in_threads(pool)(kernel, np.arange(50), size=1)
        n_ended = len(ended)
        time.sleep(0.3)
    assert len(ended) == n_ended < 49  # those that had not begun were taken back


def test_answers_to_items_come_in_their_order():
    with ThreadPoolExecutor(3) as pool:
        assert places.each_of(lambda item: item * 2, [3, "a", (1,)], places.in_threads(pool)) == [6, "aa", (1, 1)]
    assert places.each_of(str, [], places.one_thread) == []


@pytest.mark.parametrize(
    ("numbers", "n_groups", "expected"),
    [([0, 1, 2, 3, 4], 2, [[0, 2, 4], [1, 3]]), ([7], 3, [[7]]), ([], 2, []), ([5, 6], 1, [[5, 6]])],
)
def test_numbers_are_dealt_to_groups_that_are_not_empty(numbers, n_groups, expected):
    assert _dealt(numbers, n_groups) == expected


def test_parts_of_a_worker_are_in_a_group(X, client, blocks):
    crew = Cluster(client)
    parts = load(blocks(X, 5), crew).parts
    parts.total(column_totals, ROWS[0])
    groups, holders = crew.groups(parts.futures), client.who_has(parts.futures)
    assert sorted(number for group in groups for number in group) == list(range(5))
    for group in groups:
        assert set.intersection(*(set(holders[parts.futures[number].key]) for number in group))
    lost = client.submit(time.sleep, 5, pure=False)  # there is no result yet
    assert crew.groups([lost, *parts.futures[:1]]) == [[0], [1]]


def test_a_call_costs_a_task_for_each_worker_however_many_the_parts_are(X, client, blocks, monkeypatch):
    crew = Cluster(client)
    parts = load(blocks(X, 7), crew).parts
    parts.total(column_totals, ROWS[0])  # all of them are there
    submitted, submit = [], crew.submit
    monkeypatch.setattr(crew, "submit", lambda call, *arguments: submitted.append(call) or submit(call, *arguments))
    joined(parts, row_totals, ROWS[0])
    assert 1 <= len(submitted) <= 2
    submitted.clear()
    parts.take(ROWS[0])
    assert 1 <= len(submitted) <= 2
