"""What rows can gain at the most stays an upper bound while rows move."""

import numpy as np
import pytest

from mmpca import engine, kernels
from mmpca.engine import sweeps
from mmpca.engine.bound import size_changes
from mmpca.engine.outlook import Outlook
from mmpca.engine.settle import Proposals
from mmpca.places import Here


def best_gain(state, i):
    return max(engine.gain(state, i, q) for q in range(state.n_clusters) if q != state.labels[i])


def outlook_of(state):
    return Outlook(state, Here(state.rows))


def look(state, outlook, rows):
    """Book what rows can gain at the most now, the errors of expansions four times as large as usual."""
    found = Proposals.empty(len(rows), state.n_clusters)
    kernels.propose(state, size_changes(state.sizes), 0.0, 1.0, 4.0, rows, found)
    outlook.book(rows, found.upper)


def test_before_a_row_is_looked_at_it_can_gain_anything(make_problem):
    assert (outlook_of(make_problem(0).build()).upper == np.inf).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_row_gains_more_than_it_can_at_the_most_after_others_have_moved(make_problem, seed):
    problem = make_problem(seed, n_rows=60, n_clusters=4, max_length=60)
    state, rng = problem.build(), np.random.default_rng(seed)
    outlook = outlook_of(state)
    for rows in np.split(rng.permutation(60), 3):  # three blocks, moves after each
        look(state, outlook, np.sort(rows))
        for i in rng.choice(60, 3, replace=False):
            if state.sizes[state.labels[i]] > 2:
                engine.move(state, i, int(rng.integers(4)))
                outlook.upper[i] = np.inf  # a row that has moved is looked at again
        engine.bound(state)
        outlook.advance(state)
    outlook.end_epoch(state)
    stayed = np.flatnonzero(np.isfinite(outlook.upper) & (state.sizes[state.labels] > 1))
    assert len(stayed) > 40
    for i in stayed:
        assert best_gain(state, i) <= outlook.upper[i]


def test_an_epoch_without_a_move_changes_nothing(make_problem):
    state = make_problem(0).build()
    outlook = outlook_of(state)
    look(state, outlook, np.arange(40))
    before = outlook.upper.copy()
    outlook.end_epoch(state)
    np.testing.assert_array_equal(outlook.upper, before)


def test_a_forgotten_outlook_is_open_again(make_problem):
    state = make_problem(0).build()
    outlook = outlook_of(state)
    look(state, outlook, np.arange(40))
    outlook.forget()
    assert (outlook.upper == np.inf).all()


def test_a_search_that_passes_over_rows_ends_where_one_that_visits_all_does(make_problem, monkeypatch):
    monkeypatch.setattr(sweeps, "EXACT_CHECK_WORK", 0)  # or the last look would visit every row
    problem = make_problem(1, n_rows=120, n_clusters=4, max_length=200)
    n_visited = []
    propose = kernels.propose
    monkeypatch.setattr(kernels, "propose", lambda *a: (n_visited.append(len(a[5])), propose(*a))[1])
    state = problem.build()
    run = engine.search(state, rng=np.random.default_rng(0))
    n_sparing = sum(n_visited)
    monkeypatch.setattr(Outlook, "book", lambda *_: None)
    other = problem.build()
    assert engine.search(other, rng=np.random.default_rng(0)) == run
    np.testing.assert_array_equal(other.labels, state.labels)
    assert n_sparing < 0.9 * (sum(n_visited) - n_sparing)
