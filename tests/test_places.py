"""Pieces of rows, and what is done with them in threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmpca import places
from mmpca.counts import as_counts
from mmpca.places import even_pieces, in_threads, in_turn, n_pieces, one_thread, pieces_of, summed, threads


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=40),
    n_wanted=st.integers(1, 10),
)
def test_pieces_follow_each_other_and_none_is_empty_or_much_larger_than_the_others(sizes, n_wanted):
    ends = np.concatenate([[0], np.cumsum(sizes)])
    pieces = even_pieces(ends, n_wanted)
    assert 1 <= len(pieces) <= n_wanted
    assert [row for piece in pieces for row in range(piece.start, piece.stop)] == list(range(len(sizes)))
    assert all(piece.start < piece.stop for piece in pieces)
    largest = max(ends[piece.stop] - ends[piece.start] for piece in pieces)
    assert largest <= ends[-1] / n_wanted + max(sizes)


def test_no_rows_have_no_pieces():
    assert even_pieces(np.zeros(1, dtype=np.int64), 8) == []


@pytest.mark.parametrize(
    ("n_entries", "n_features", "expected"),
    [(0, 10, 1), (2**15, 10, 2), (2**15, 2**12, 2), (2**15, 2**14, 1), (2**40, 10, 8)],
)
def test_there_are_as_many_pieces_as_are_worth_sums_of_their_own(n_entries, n_features, expected):
    assert n_pieces(n_entries, n_features) == expected


def test_some_rows_are_summed_in_pieces_as_at_once(monkeypatch):
    rows = as_counts(np.random.default_rng(0).poisson(1.0, (60, 8)) + 1)
    some = np.array([3, 50, 7, 8, 20, 21, 22, 59, 0])
    monkeypatch.setattr(places, "PIECE_ENTRIES", 1)
    pieces = pieces_of(rows, some)
    assert len(pieces) > 1

    def add(at, sums):
        sums += rows.take(some[at]).column_totals()

    expected = rows.take(some).column_totals()
    np.testing.assert_array_equal(summed(add, pieces, (8,), one_thread), expected)
    with threads(2) as pool:
        np.testing.assert_array_equal(summed(add, pieces, (8,), in_threads(pool)), expected)


def test_answers_come_in_turn_and_one_thread_makes_one_at_a_time():
    made = []

    def make(item):
        made.append(item)
        return -item

    answers = in_turn(make, [3, 1, 2], one_thread)
    assert next(answers) == -3
    assert made == [3]
    assert list(answers) == [-1, -2]
    with threads(3) as pool:
        assert list(in_turn(lambda item: -item, [3, 1, 2], in_threads(pool))) == [-3, -1, -2]
