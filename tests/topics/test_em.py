"""Accelerated EM: each step equals the one in plain NumPy, the objective never falls, and leaps lead to a maximum."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmpca import places
from mmpca.counts import as_counts
from mmpca.simulate import paper_design
from mmpca.topics import em


def random_problem(seed, n_rows=12, n_features=15, n_topics=3, row_prior=0.7, largest=9, smoothing=0.2):
    """Return counts with an absent feature, and a mixture to start from."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, (n_rows, n_features)) * rng.integers(0, 2, (n_rows, n_features))
    X[np.arange(n_rows), rng.integers(1, n_features, n_rows)] += 1
    X[:, 0] = 0
    rows = as_counts(X)
    problem = em.Problem(rows, rows.column_totals() > 0, row_prior, smoothing)
    return problem, em.random_mixture(problem, n_topics, rng)


def iterated(problem, mixture, n_steps):
    for _ in range(n_steps):
        mixture, _ = em.plain_step(problem, mixture)
    return mixture


PROBLEMS = st.builds(
    random_problem,
    st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 20),
    n_features=st.integers(2, 25),
    n_topics=st.integers(1, 5),
    row_prior=st.sampled_from([0.01, 0.3, 1.0, 30.0]),
    largest=st.sampled_from([1, 6, 1_000_000]),
)


@settings(max_examples=60, deadline=None)
@given(PROBLEMS)
def test_a_step_equals_the_one_in_numpy(case):
    problem, mixture = case
    expected, objective = em.plain_step(problem, mixture)
    step, value = em.Stepper(problem)(mixture, is_scored=True)
    np.testing.assert_allclose(step.theta, expected.theta, rtol=1e-10)
    np.testing.assert_allclose(step.beta_rows, expected.beta_rows, rtol=1e-10)
    assert value == pytest.approx(objective, rel=1e-11, abs=1e-9)
    unscored, nothing = em.Stepper(problem)(mixture)
    np.testing.assert_array_equal(unscored.theta, step.theta)
    assert np.isnan(nothing)


@settings(max_examples=40, deadline=None)
@given(PROBLEMS)
def test_the_objective_never_falls_and_shares_and_topics_stay_distributions(case):
    problem, mixture = case
    _, before = em.plain_step(problem, mixture)
    for _ in range(3):
        fit = em.Runner()(problem, mixture, em.Limits(max_passes=6, tol=0.0))
        mixture = fit.mixture
        assert fit.objective >= before - 1e-9 * abs(before)
        assert fit.objective == pytest.approx(em.plain_step(problem, mixture)[1], rel=1e-10, abs=1e-9)
        before = fit.objective
        np.testing.assert_allclose(mixture.theta.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(mixture.beta_rows.sum(axis=0), 1, rtol=1e-12)
        assert mixture.theta.min() > 0
        np.testing.assert_array_equal(
            mixture.beta_rows > 0, np.tile(problem.is_present[:, None], mixture.theta.shape[1])
        )


@pytest.mark.parametrize("row_prior", [0.3, 20.0])
def test_a_settled_fit_is_where_steps_lead_nowhere(row_prior):
    problem, start = random_problem(1, n_rows=30, row_prior=row_prior)
    fit = em.Runner()(problem, start, em.Limits(max_passes=3000, tol=1e-10))
    assert fit.converged
    np.testing.assert_allclose(iterated(problem, fit.mixture, 50).beta_rows, fit.mixture.beta_rows, atol=1e-7)


def test_leaps_are_ahead_of_twice_as_many_plain_steps():
    data = paper_design(n_samples=100, noise=0.3, random_state=0)
    rows = as_counts(data.X)
    problem = em.Problem(rows, rows.column_totals() > 0, 30.0, 0.05)
    mixture = em.random_mixture(problem, 4, np.random.default_rng(0))
    fit, step = em.Runner()(problem, mixture, em.Limits(max_passes=150, tol=0.0)), em.Stepper(problem)
    for _ in range(300):
        mixture, _ = step(mixture)
    assert fit.objective > step(mixture, is_scored=True)[1]


def test_logarithms_of_products_do_not_underflow():
    """Rare features and small counts: thousands of tiny factors, counts on both sides of where products end."""
    rows = as_counts(np.tile(np.arange(1, 9), (400, 1)))
    problem = em.Problem(rows, np.ones(8, dtype=bool), 1.0, 0.1)
    beta_rows = np.array([1e-80, 1e-70, 1e-50, 1e-30, 1e-20, 1e-10, 1e-5, 1.0])[:, None] * np.ones(2)
    mixture = em.Mixture(np.full((400, 2), 0.5), beta_rows)
    _, value = em.Stepper(problem)(mixture, is_scored=True)
    assert value == pytest.approx(em.plain_step(problem, mixture)[1], rel=1e-12)


def test_pieces_change_the_step_by_rounding_alone_and_threads_not_at_all(monkeypatch):
    problem, mixture = random_problem(2, n_rows=50)
    whole, value = em.Stepper(problem)(mixture, is_scored=True)
    monkeypatch.setattr(places, "PIECE_ENTRIES", 1)
    stepper = em.Stepper(problem)
    assert len(stepper._pieces) > 2
    pieced, pieced_value = stepper(mixture, is_scored=True)
    np.testing.assert_allclose(pieced.beta_rows, whole.beta_rows, rtol=1e-12)
    assert pieced_value == pytest.approx(value, rel=1e-12)
    with places.threads(3) as pool:
        threaded, threaded_value = em.Stepper(problem, places.in_threads(pool))(mixture, is_scored=True)
    np.testing.assert_array_equal(threaded.beta_rows, pieced.beta_rows)
    np.testing.assert_array_equal(threaded.theta, pieced.theta)
    assert threaded_value == pieced_value


def test_a_step_that_is_interrupted_leaves_no_thread_at_work(monkeypatch):
    problem, mixture = random_problem(2, n_rows=50)
    monkeypatch.setattr(places, "PIECE_ENTRIES", 1)
    ended = []

    def em_block(rows, first, *_):
        if first == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        ended.append(first)

    monkeypatch.setattr(em.kernels, "em_block", em_block)
    with places.threads(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            em.Stepper(problem, places.in_threads(pool))(mixture)
        n_ended = len(ended)
        time.sleep(0.3)
    assert len(ended) == n_ended


def test_permuted_rows_features_and_topics_permute_the_step():
    problem, mixture = random_problem(3)
    rng = np.random.default_rng(0)
    order, columns, topics = rng.permutation(12), rng.permutation(15), rng.permutation(3)
    other = as_counts(problem.rows.to_csr().toarray()[order][:, columns])
    turned = em.Mixture(mixture.theta[order][:, topics], mixture.beta_rows[columns][:, topics])
    expected, value = em.Stepper(problem)(mixture, is_scored=True)
    permuted = problem._replace(rows=other, is_present=problem.is_present[columns])
    step, same_value = em.Stepper(permuted)(turned, is_scored=True)
    np.testing.assert_allclose(step.theta, expected.theta[order][:, topics], rtol=1e-12)
    np.testing.assert_allclose(step.beta_rows, expected.beta_rows[columns][:, topics], rtol=1e-12)
    assert same_value == pytest.approx(value, rel=1e-12)


# --- topics held fixed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row_prior", [0.1, 1.0, 20.0])
def test_fitted_shares_are_where_a_step_leaves_them(row_prior):
    problem, mixture = random_problem(4, row_prior=row_prior)
    theta = em.fitted_shares(problem.rows, mixture.beta_rows, row_prior, tol=1e-12, max_iter=10_000)
    step, _ = em.plain_step(problem, em.Mixture(theta, mixture.beta_rows))
    np.testing.assert_allclose(step.theta, theta, atol=1e-9)


def test_single_precision_loses_nothing_beside_the_tolerance(monkeypatch):
    problem, mixture = random_problem(7, n_rows=200)
    single = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    monkeypatch.setattr(em, "LEAST_SINGLE_TOL", np.inf)
    double = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    assert 0 < np.abs(single - double).max() < 1e-6  # the tolerance is 1e-3
    np.testing.assert_allclose(single.sum(axis=1), 1.0, rtol=1e-12)


def test_each_row_has_the_shares_that_it_has_alone():
    problem, mixture = random_problem(5, n_rows=20)
    together = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    for i in range(20):
        np.testing.assert_array_equal(em.fitted_shares(problem.rows.take([i]), mixture.beta_rows, 0.5)[0], together[i])


def test_unknown_features_are_passed_over_and_rows_without_others_have_equal_shares():
    problem, mixture = random_problem(6)
    X = problem.rows.to_csr().toarray()
    X[:, 0] = 7  # no topic knows it
    X[3] = 0
    X[4, 1:] = 0
    shares = em.fitted_shares(as_counts(X, empty_rows="allow"), mixture.beta_rows, 0.5)
    known = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    np.testing.assert_allclose(shares[[3, 4]], 1 / 3, rtol=1e-12)
    np.testing.assert_array_equal(np.delete(shares, [3, 4], axis=0), np.delete(known, [3, 4], axis=0))
