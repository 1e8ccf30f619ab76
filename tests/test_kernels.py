"""Every kernel equals the NumPy that it stands for. The whole file also runs with NUMBA_DISABLE_JIT=1."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mmpca import engine, kernels
from mmpca.engine.bound import (
    assignment_scores,
    cluster_bound,
    expected_log_theta,
    information,
    loose_spread,
    mixture,
    responsibilities,
    screened_gain,
    size_changes,
    topic_curvature,
    ve_step,
)
from mmpca.engine.bound import exact_change as plain_change
from mmpca.engine.bound import spread as plain_spread
from mmpca.engine.state import exact_changes
from mmpca.engine.sweep import Proposals, Screen
from mmpca.model.dispersion import plain_deviations
from mmpca.topics import kernels as topic_kernels

IS_COMPILED = not numba.config.DISABLE_JIT
SIZES = {} if IS_COMPILED else {"max_rows": 20, "max_features": 20}
UNIQUE_MAXIMUM = (1.0, 1.0, 3.0, (1.0, 9.0))  # priors under which the maximum over gamma is unique
EVERY_MOVE = 1e300  # an error factor under which no move is dropped

properties = settings(max_examples=60 if IS_COMPILED else 20, deadline=None, derandomize=True)


def column_names(state):
    """Return the tables' columns by name: C and U, (V, Q)."""
    return state.clusters.tables[:, : state.n_clusters], state.clusters.tables[:, state.n_clusters :]


def screened(state, rows, *, min_gain=0.0, factor=1.0, verify_factor=1.0):
    """Return the proposals for rows."""
    found = Proposals.empty(len(rows), state.n_clusters)
    kernels.propose(state, Screen(min_gain, factor, verify_factor, size_changes(state.clusters.sizes)), rows, found)
    return found


def expand(state, i, *, min_gain=0.0, factor=1.0):
    """Return the best cluster, the estimates and their two errors of row i."""
    found = screened(state, np.array([i]), min_gain=min_gain, factor=factor)
    others = np.where(np.arange(state.n_clusters) == state.labels[i], -np.inf, found.estimate[0])
    best = int(others.argmax()) if others.max() > -np.inf else -1
    return best, found.estimate[0], found.below[0], found.above[0]


def propose(state, **options):
    """Return the proposed cluster of every row, whether it is left open, and the upper bound on its gain."""
    return screened(state, np.arange(len(state.labels)), **options)[:3]


def exact_change(state, i, q):
    """Return the exact change of one end of a move."""
    return exact_changes(state, q, np.array([i]))[0]


# --- compilation --------------------------------------------------------------------------------------------------


if IS_COMPILED:

    @pytest.mark.parametrize("module", [kernels, topic_kernels], ids=["search", "topics"])
    def test_no_kernel_inherits_its_arithmetic_from_the_one_that_compiles_it_first(module):
        compiled = [value for value in vars(module).values() if isinstance(value, numba.core.dispatcher.Dispatcher)]
        assert len(compiled) > 8
        assert all("fastmath" in function.targetoptions for function in compiled)


# --- special functions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [(kernels.digamma, special.digamma), (kernels.trigamma, lambda x: special.polygamma(1, x))],
    ids=["digamma", "trigamma"],
)
def test_special_functions_agree_with_scipy(kernel, reference):
    x = np.concatenate([np.geomspace(1e-3, 1e8, 2000), np.arange(1.0, 30.0), np.arange(0.5, 30.0)])
    # Digamma has a root at 1.46, where only its absolute error can be small.
    np.testing.assert_allclose([kernel(value) for value in x], reference(x), rtol=1e-13, atol=1e-14)


def test_special_functions_have_their_known_values():
    assert kernels.digamma(1.0) == pytest.approx(-np.euler_gamma, rel=1e-14)
    assert kernels.digamma(0.5) == pytest.approx(-np.euler_gamma - 2 * np.log(2), rel=1e-14)
    assert kernels.trigamma(1.0) == pytest.approx(np.pi**2 / 6, rel=1e-14)
    assert kernels.trigamma(0.5) == pytest.approx(np.pi**2 / 2, rel=1e-14)


# --- matrices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 9))
def test_a_positive_definite_matrix_is_replaced_by_its_inverse(n):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n + 2))
    matrix = root @ root.T
    inverse = matrix.copy()
    assert kernels.invert_positive(inverse)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize(
    "matrix",
    [[[0.0]], [[-1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[np.nan]], [[1.0, np.nan], [np.nan, 1.0]]],
    ids=["zero", "negative", "indefinite", "singular", "nan", "nan outside the diagonal"],
)
def test_a_matrix_that_is_not_positive_definite_is_refused(matrix):
    assert not kernels.invert_positive(np.array(matrix))


# --- one cluster --------------------------------------------------------------------------------------------------


@properties
@given(data=st.data())
def test_a_refreshed_cluster_is_at_the_maximum_of_its_bound(problems, data):
    state = data.draw(problems(alphas=UNIQUE_MAXIMUM, **SIZES)).build()
    for m, gamma, weight, value in zip(
        state.clusters.counts, state.clusters.gamma, state.clusters.weight, state.clusters.value, strict=True
    ):
        expected = ve_step(m, beta=state.topics.beta, alpha=state.topics.alpha)
        top = cluster_bound(m, expected, beta=state.topics.beta, alpha=state.topics.alpha)
        assert value == pytest.approx(top, rel=1e-13, abs=1e-10)
        # Where the bound is flat, it says little about gamma: 1e-11 nats below the maximum may be 1e-4 away from it.
        np.testing.assert_allclose(gamma, expected, rtol=1e-3, atol=1e-3)
        assert gamma.sum() == pytest.approx(expected.sum(), rel=1e-12)
        np.testing.assert_allclose(weight, np.exp(expected_log_theta(gamma)), rtol=1e-11)


@properties
@given(data=st.data())
def test_curvature_coupling_and_tables_are_those_of_the_clusters_gamma(problems, data):
    state = data.draw(problems(alphas=UNIQUE_MAXIMUM, **SIZES)).build()
    log_mixture, spread = column_names(state)
    for q, (m, gamma) in enumerate(zip(state.clusters.counts, state.clusters.gamma, strict=True)):
        curvature = topic_curvature(m, gamma, beta=state.topics.beta, alpha=state.topics.alpha)
        scale = np.abs(curvature).max()
        np.testing.assert_allclose(state.clusters.curvature[q], curvature, rtol=1e-6, atol=1e-8 * scale)
        np.testing.assert_allclose(
            state.clusters.coupling[q], curvature - information(gamma), rtol=1e-6, atol=1e-8 * scale
        )
        p = mixture(state.topics.beta, gamma)
        has_probability = p > 0
        np.testing.assert_allclose(log_mixture[has_probability, q], np.log(p[has_probability]), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(log_mixture[~has_probability, q], 0)
        expected = plain_spread(m, gamma, beta=state.topics.beta, alpha=state.topics.alpha)
        np.testing.assert_allclose(spread[:, q] ** 2, expected**2, rtol=1e-6, atol=1e-8 * scale)


def test_with_many_topics_the_tables_bound_the_second_order_term_from_the_diagonal(make_problem):
    n_topics = kernels.EXACT_SPREAD_TOPICS + 3
    state = make_problem(0, n_rows=12, n_features=50, n_topics=n_topics, n_clusters=2).build()
    _, spread = column_names(state)
    for q, (m, gamma) in enumerate(zip(state.clusters.counts, state.clusters.gamma, strict=True)):
        topics = {"beta": state.topics.beta, "alpha": state.topics.alpha}
        np.testing.assert_allclose(spread[:, q], loose_spread(m, gamma, **topics), rtol=1e-5, atol=1e-8)
        assert (spread[:, q] >= plain_spread(m, gamma, **topics) * (1 - 1e-6)).all()


def test_more_features_than_a_tile_give_the_same_values(make_problem):
    n_features = 2 * kernels.TILE + 7 if IS_COMPILED else kernels.TILE + 7
    problem = make_problem(0, n_rows=8, n_features=n_features, n_topics=3, n_clusters=2, max_length=2000)
    state = problem.build()
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(problem.labels), rel=1e-12)
    _, spread = column_names(state)
    for q in range(2):
        phi = responsibilities(state.topics.beta, state.clusters.gamma[q])
        curvature = topic_curvature(
            state.clusters.counts[q], state.clusters.gamma[q], beta=state.topics.beta, alpha=1.0
        )
        np.testing.assert_allclose(spread[:, q] ** 2, np.einsum("vk,kl,vl->v", phi, curvature, phi), rtol=1e-8)


def test_a_refresh_without_tables_leaves_them_alone(make_problem):
    problem = make_problem(0)
    state, before = problem.build(), problem.build()
    kernels.move_row(state, 0, (problem.labels[0] + 1) % 3)
    for q in range(3):
        kernels.refresh_cluster(state, q, False)
    np.testing.assert_array_equal(state.clusters.tables, before.clusters.tables)
    np.testing.assert_array_equal(state.clusters.coupling, before.clusters.coupling)
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)


def test_a_small_change_renews_the_first_order_and_many_small_ones_the_second(make_problem):
    problem = make_problem(0, n_rows=300, max_length=10)
    problem.X[:100] = 0
    problem.X[:100, 0] = 1  # a hundred rows of one token
    state = problem.build(np.minimum(np.arange(300) // 100, 2))
    second_order = state.clusters.coupling[1].copy()
    for n_moved in range(1, 60):
        kernels.move_row(state, n_moved, 1)
        kernels.refresh_cluster(state, 1, True)
        fresh = problem.build(state.labels)
        np.testing.assert_allclose(state.clusters.tables[:, 1], fresh.clusters.tables[:, 1], rtol=1e-6)
        if not np.array_equal(state.clusters.coupling[1], second_order):
            break
    assert n_moved - 1 <= kernels.SECOND_ORDER_SHARE * state.clusters.totals[1] < n_moved
    np.testing.assert_allclose(state.clusters.coupling[1], fresh.clusters.coupling[1], rtol=1e-4, atol=1e-9)
    assert state.clusters.aged[1] == 0


# --- one row against one cluster ----------------------------------------------------------------------------------


def test_a_moved_row_leaves_its_topic_counts_as_drift_behind(make_problem):
    problem = make_problem(0)
    state = problem.build()
    old, new = int(problem.labels[0]), (int(problem.labels[0]) + 1) % 3
    kernels.move_row(state, 0, new)
    d = problem.X[0].astype(float)
    for q, sign in ((old, -1), (new, 1)):
        s = d @ responsibilities(state.topics.beta, state.clusters.gamma[q])
        np.testing.assert_allclose(state.clusters.drift[q], sign * s, rtol=1e-9)
        np.testing.assert_array_equal(state.clusters.counts[q], problem.X[state.labels == q].sum(axis=0))
        assert state.clusters.moved[q] == d.sum()
        assert state.clusters.totals[q] == state.clusters.counts[q].sum()
        assert state.clusters.sizes[q] == (state.labels == q).sum()
    (third,) = {0, 1, 2} - {old, new}
    assert state.clusters.moved[third] == 0
    assert not state.clusters.drift[third].any()


# The second problem has so many absent features that clusters are evaluated on their own features alone.
@pytest.mark.parametrize(("n_features", "absent"), [(12, 0.0), (80, 0.9)])
@pytest.mark.parametrize("seed", range(5))
def test_the_exact_change_is_that_of_the_maximum_when_a_row_comes_or_goes(make_problem, seed, n_features, absent):
    problem = make_problem(seed, n_rows=10, n_features=n_features, max_length=30, absent=absent)
    state = problem.build()
    for i, d in enumerate(problem.X):
        for q in range(3):
            sign = -1 if problem.labels[i] == q else 1
            expected = plain_change(d, state.clusters.counts[q], beta=problem.beta, alpha=problem.alpha, sign=sign)
            assert exact_change(state, i, q) == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize(("n_features", "absent"), [(12, 0.0), (80, 0.9)])
def test_exact_changes_of_many_rows_are_those_of_each_alone(make_problem, n_features, absent):
    state = make_problem(0, n_rows=20, n_features=n_features, max_length=30, absent=absent).build()
    rows = np.random.default_rng(0).permutation(20)
    for q in range(3):
        changes = exact_changes(state, q, rows)
        np.testing.assert_allclose(changes, [exact_change(state, i, q) for i in rows], rtol=1e-9, atol=1e-9)


def test_an_evaluation_that_stops_early_says_how_much_larger_the_change_may_be(make_problem):
    state = make_problem(0, n_rows=30, n_features=40, max_length=200).build()
    rows, n_early = np.arange(30), 0
    for q in range(3):
        exact, changes = exact_changes(state, q, rows), np.empty(30)
        for margin in (1e-3, 1.0, 100.0):
            error = exact + margin
            kernels.exact_changes(state, q, rows, changes, error, kernels.VE_DEFICIT)
            n_early += np.count_nonzero(error)
            assert (changes <= exact + 1e-9).all()
            assert (exact <= changes + error + 1e-9).all()
            assert (changes + error < exact + margin)[error > 0].all()
        error = exact - 1e-3  # the change is large enough: no evaluation may stop before its end
        kernels.exact_changes(state, q, rows, changes, error, kernels.VE_DEFICIT)
        assert not error.any()
        np.testing.assert_allclose(changes, exact, atol=1e-9)
    assert n_early > 0


def test_an_exact_change_changes_nothing(make_problem):
    problem = make_problem(0)
    state, before = problem.build(), problem.build()
    exact_change(state, 0, 1)
    for name, value in state.clusters._asdict().items():
        np.testing.assert_array_equal(value, getattr(before.clusters, name), err_msg=name)


def test_the_change_of_sizes_is_that_of_n_log_n():
    sizes = np.array([1, 2, 30])
    for old in range(3):
        for new in {0, 1, 2} - {old}:
            after = sizes.copy()
            after[old] -= 1
            after[new] += 1
            expected = special.xlogy(after, after).sum() - special.xlogy(sizes, sizes).sum()
            leave, join = size_changes(sizes)
            change = leave[old] + join[new]
            assert change == pytest.approx(expected, rel=1e-12, abs=1e-13)


# --- sweeps -------------------------------------------------------------------------------------------------------


def test_an_expanded_row_has_the_gains_of_all_moves(make_problem):
    problem = make_problem(0)
    state = problem.build()
    for i in range(len(problem.labels)):
        old = problem.labels[i]
        best, estimate, below, above = expand(state, i, factor=EVERY_MOVE)
        moves = [q for q in range(3) if q != old]
        for q in moves:
            gain, gain_below, gain_above = kernels.expanded_gain(state, i, q)
            assert estimate[q] == pytest.approx(gain, rel=1e-12, abs=1e-10)
            assert below[q] + below[old] == pytest.approx(EVERY_MOVE * gain_below)
            assert above[q] + above[old] == pytest.approx(EVERY_MOVE * gain_above)
        assert best == max(moves, key=estimate.__getitem__)


def test_a_move_is_screened_by_a_bound_on_its_second_order_gain(make_problem):
    problem = make_problem(0)
    state = problem.build()
    log_mixture, spread = column_names(state)
    first, second = problem.X @ log_mixture, problem.X @ spread  # (N, Q) each
    leave, join = size_changes(state.clusters.sizes)
    for i, old in enumerate(problem.labels):
        upper = [
            screened_gain(first[i, old], first[i, q], second[i, old], second[i, q]) + leave[old] + join[q]
            for q in range(3)
        ]
        expanded = [q for q in range(3) if q != old and expand(state, i)[1][q] > -np.inf]
        assert all(upper[q] > 0 for q in expanded)


def test_a_row_without_a_promising_move_is_not_expanded(make_problem):
    state = make_problem(0).build()
    best, estimate, _, _ = expand(state, 0, min_gain=1e9)
    assert best == -1
    np.testing.assert_array_equal(np.delete(estimate, state.labels[0]), -np.inf)


def test_the_best_expanded_move_is_proposed_if_it_gains(make_problem):
    problem = make_problem(0, n_rows=100, n_clusters=5)
    state = problem.build()
    target, _, _ = propose(state)
    for i, q in enumerate(problem.labels):
        gains = [-np.inf if new == q else kernels.expanded_gain(state, i, new)[0] for new in range(5)]
        assert target[i] == (np.argmax(gains) if max(gains) > 0 and state.clusters.sizes[q] > 1 else -1)


def test_a_proposal_that_is_not_left_open_is_the_best_move_or_none_gains(make_problem):
    problem = make_problem(0, n_rows=100, n_clusters=5)
    state = problem.build()
    target, is_open, _ = propose(state, factor=4.0)
    assert 0 < is_open.sum() < len(is_open)
    for i in np.flatnonzero(~is_open):
        gains = [engine.gain(state, i, q) for q in range(5)]
        assert target[i] == (np.argmax(gains) if max(gains) > 0 else -1)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_no_row_gains_more_than_its_upper_bound(make_problem, factor):
    problem = make_problem(0, n_rows=100, n_clusters=5)
    state = problem.build()
    _, _, upper = propose(state, factor=factor, verify_factor=4.0)
    assert 0 < (upper < 0.0).sum() < 100
    for i in range(100):
        assert max(engine.gain(state, i, q) for q in range(5) if q != problem.labels[i]) <= upper[i]


def test_a_huge_error_factor_leaves_every_row_open_that_may_move(make_problem):
    problem = make_problem(0, is_lopsided=True)
    _, is_open, _ = propose(problem.build(), factor=EVERY_MOVE)
    may_move = np.bincount(problem.labels)[problem.labels] > 1
    np.testing.assert_array_equal(is_open, may_move)


def test_no_row_is_left_open_to_a_stale_cluster(make_problem):
    problem = make_problem(0)
    state = problem.build()
    for i in np.flatnonzero(problem.labels == 0)[:2]:
        kernels.move_row(state, i, 1)
    _, is_open, _ = propose(state, factor=EVERY_MOVE)
    assert not is_open.any()  # clusters 0 and 1 are stale, and every move has one of them


def test_a_row_that_is_alone_gets_no_proposal(make_problem):
    problem = make_problem(0, is_lopsided=True)
    target, is_open, _ = propose(problem.build(), min_gain=-1e9)
    lonely = np.bincount(problem.labels)[problem.labels] == 1
    assert lonely.sum() == 2
    assert (target[lonely] == -1).all()
    assert not is_open[lonely].any()
    assert (target[~lonely] >= 0).all()


def test_a_tie_between_clusters_goes_to_the_first(make_problem):
    problem = make_problem(0, n_rows=9)
    X = np.vstack([problem.X[:3], problem.X[3:5], problem.X[3:5]])
    twins = problem._replace(X=X, labels=np.array([0, 0, 0, 1, 1, 2, 2]))
    target, _, _ = propose(twins.build(), min_gain=-1e9)
    np.testing.assert_array_equal(target[:3], 1)


def test_proposed_moves_are_applied_in_order_until_a_refresh_is_due(make_problem):
    problem = make_problem(0, n_rows=60)
    state = problem.build()
    block, (target, _, _) = np.arange(60), propose(state)
    first = np.flatnonzero(target >= 0)[0]
    is_touched = np.zeros(3, dtype=np.bool_)
    start, stale, n_moves = kernels.apply(state, block, target, is_touched, 0, 0.0, 0.0)
    assert (start, n_moves) == (first, 1)
    assert state.labels[first] == target[first]
    assert stale in (problem.labels[first], target[first])
    assert set(np.flatnonzero(is_touched)) == {problem.labels[first], target[first]}
    engine.check(state)


def test_applied_moves_raise_the_bound_and_leave_a_consistent_state(make_problem):
    problem = make_problem(0, n_rows=60)
    state = problem.build()
    before = engine.bound(state)
    target, _, _ = propose(state)
    start, stale, n_moves = kernels.apply(state, np.arange(60), target, np.zeros(3, dtype=np.bool_), 0, 0.0, np.inf)
    while stale >= 0:
        kernels.refresh_cluster(state, stale, True)
        start, stale, more = kernels.apply(
            state, np.arange(60), target, np.zeros(3, dtype=np.bool_), start, 0.0, np.inf
        )
        n_moves += more
    assert start == 60
    has_moved = state.labels != problem.labels
    assert n_moves == has_moved.sum() > 0
    np.testing.assert_array_equal(state.labels[has_moved], target[has_moved])
    engine.check(state)
    assert engine.bound(state) > before


def test_without_proposals_nothing_is_applied(make_problem):
    problem = make_problem(0)
    state = problem.build()
    target = np.full(40, -1, dtype=np.int32)
    done = kernels.apply(state, np.arange(40), target, np.zeros(3, dtype=np.bool_), 0, 0.0, 0.2)
    assert done == (40, -1, 0)
    np.testing.assert_array_equal(state.labels, problem.labels)


def test_the_last_row_of_a_cluster_is_not_moved_away(make_problem):
    problem = make_problem(0, is_lopsided=True)
    state = problem.build()
    target = np.zeros(40, dtype=np.int32)
    kernels.apply(state, np.arange(40), target, np.zeros(3, dtype=np.bool_), 0, -1e9, 1e9)
    np.testing.assert_array_equal(state.labels, problem.labels)


def test_rows_are_assigned_to_the_cluster_that_fits_best_with_all_parameters_fixed(make_problem):
    problem = make_problem(0, n_rows=80, n_clusters=4)
    state = problem.build()
    target, (gamma, sizes) = np.empty(80, dtype=np.int32), (state.clusters.gamma, state.clusters.sizes)
    kernels.assign(state, np.arange(80), target)
    scores = [assignment_scores(d, gamma, sizes, beta=problem.beta) for d in problem.X.astype(float)]
    np.testing.assert_array_equal(target, np.argmax(scores, axis=1))


def test_a_row_stays_where_it_fits_as_well_as_elsewhere(make_problem):
    problem = make_problem(0, n_rows=4, n_clusters=2, twins=1.0)._replace(labels=np.array([0, 1, 0, 1]))
    target = np.empty(4, dtype=np.int32)
    kernels.assign(problem.build(), np.arange(4), target)
    np.testing.assert_array_equal(target, problem.labels)


def test_reassigned_rows_leave_no_cluster_empty(make_problem):
    problem = make_problem(0)
    state = problem.build()
    order = np.random.default_rng(0).permutation(40)
    n_moves = kernels.reassign(state, order, np.zeros(40, dtype=np.int32))
    last = [order[problem.labels[order] == q][-1] for q in (1, 2)]
    np.testing.assert_array_equal(np.sort(np.flatnonzero(state.labels)), np.sort(last))
    assert n_moves == (problem.labels > 0).sum() - 2
    engine.check(state)


# --- rows beside their clusters -----------------------------------------------------------------------------------


@properties
@given(data=st.data())
def test_deviations_of_rows_from_their_clusters_are_those_of_dense_rows(problems, data):
    state = data.draw(problems(**SIZES)).build()
    profiles = np.random.default_rng(0).dirichlet(np.ones(state.rows.n_features), state.n_clusters)
    every, found = np.arange(len(state.labels)), np.empty(len(state.labels))
    kernels.row_deviations(state.rows, profiles, (profiles**2).sum(axis=1), every, state.labels, found)
    expected = plain_deviations(state.rows, state.labels, profiles)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    some = every[::2].copy()
    kernels.row_deviations(
        state.rows, profiles, (profiles**2).sum(axis=1), some, state.labels[some], found[: len(some)]
    )
    np.testing.assert_allclose(found[: len(some)], expected[some], rtol=1e-9, atol=1e-9)
