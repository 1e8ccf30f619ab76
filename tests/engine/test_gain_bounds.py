"""Gain bounds stay upper bounds while rows move."""

import numpy as np
import pytest

from mmpca import engine, kernels
from mmpca.backend import LocalRows
from mmpca.engine import sweep as sweeps
from mmpca.engine.bound import size_changes
from mmpca.engine.sweep import GainBounds, Proposals, Screen


def best_gain(state, i):
    return max(engine.gain(state, i, q) for q in range(state.n_clusters) if q != state.labels[i])


def bounds_of(state):
    return GainBounds(state, LocalRows(state.rows))


def look(state, bounds, rows):
    """Record upper bounds on the gains of rows, with error bounds four times as wide as usual."""
    found = Proposals.empty(len(rows), state.n_clusters)
    kernels.propose(state, Screen(0.0, 1.0, 4.0, size_changes(state.clusters.sizes)), rows, found)
    bounds.record(rows, found.upper, found.is_open)


def test_before_its_first_visit_a_row_can_gain_anything(make_problem):
    assert (bounds_of(make_problem(0).build()).upper == np.inf).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_row_gains_more_than_its_bound_after_others_have_moved(make_problem, seed):
    problem = make_problem(seed, n_rows=60, n_clusters=4, max_length=60)
    state, rng = problem.build(), np.random.default_rng(seed)
    bounds = bounds_of(state)
    for rows in np.split(rng.permutation(60), 3):  # three blocks, moves after each
        look(state, bounds, np.sort(rows))
        for i in rng.choice(60, 3, replace=False):
            if state.clusters.sizes[state.labels[i]] > 2:
                engine.move(state, i, int(rng.integers(4)))
                bounds.upper[i] = np.inf  # a row that has moved is visited again
        engine.bound(state)
        bounds.advance(state)
    bounds.end_epoch(state)
    stayed = np.flatnonzero(np.isfinite(bounds.upper) & (state.clusters.sizes[state.labels] > 1))
    assert len(stayed) > 40
    for i in stayed:
        assert best_gain(state, i) <= bounds.upper[i]


def test_an_epoch_without_a_move_changes_nothing(make_problem):
    state = make_problem(0).build()
    bounds = bounds_of(state)
    look(state, bounds, np.arange(40))
    before = bounds.upper.copy()
    bounds.end_epoch(state)
    np.testing.assert_array_equal(bounds.upper, before)


def test_after_a_reset_a_row_can_gain_anything(make_problem):
    state = make_problem(0).build()
    bounds = bounds_of(state)
    look(state, bounds, np.arange(40))
    bounds.reset()
    assert (bounds.upper == np.inf).all()


def test_a_search_that_skips_rows_ends_where_one_that_visits_all_does(make_problem, monkeypatch):
    problem = make_problem(1, n_rows=120, n_clusters=4, max_length=200)
    options = engine.SearchOptions(4, verify_factor=2.0)  # an exact verification would visit every row
    n_visited = []
    propose_moves = sweeps.propose_moves

    def counted(block, rows, *arguments):
        n_visited.append(len(rows))
        return propose_moves(block, rows, *arguments)

    monkeypatch.setattr(sweeps, "propose_moves", counted)
    state = problem.build()
    run = engine.climb(state, options, rng=np.random.default_rng(0))
    n_sparing = sum(n_visited)
    monkeypatch.setattr(GainBounds, "record", lambda *_: None)
    other = problem.build()
    again = engine.climb(other, options, rng=np.random.default_rng(0))
    assert (again.bounds, again.n_moves) == (run.bounds, run.n_moves)
    np.testing.assert_array_equal(other.labels, state.labels)
    assert n_sparing < 0.9 * (sum(n_visited) - n_sparing)
