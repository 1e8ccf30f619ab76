"""Accelerated EM: steps equal those in NumPy, the objective never falls, and extrapolation leads to a maximum."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmpca.backend import even_slices, open_threads
from mmpca.counts import as_counts
from mmpca.engine.bound import ve_step
from mmpca.monitor import Monitor
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics import em, topic_shares


def random_problem(seed, n_rows=12, n_features=15, n_topics=3, row_prior=0.7, largest=9, smoothing=0.2):
    """Return counts with an absent feature, and a mixture to start from."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, (n_rows, n_features)) * rng.integers(0, 2, (n_rows, n_features))
    X[np.arange(n_rows), rng.integers(1, n_features, n_rows)] += 1
    X[:, 0] = 0
    rows = as_counts(X)
    problem = em.Problem(rows, rows.column_totals() > 0, row_prior, smoothing)
    return problem, em.random_mixture(problem, n_topics, rng)


PROBLEMS = st.builds(
    random_problem,
    st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 20),
    n_features=st.integers(2, 25),
    n_topics=st.integers(1, 5),
    row_prior=st.sampled_from([0.01, 0.3, 1.0, 30.0]),
    largest=st.sampled_from([1, 6, 1_000_000]),
)


@settings(max_examples=40, deadline=None)
@given(PROBLEMS)
def test_a_step_equals_the_one_in_numpy(case):
    problem, mixture = case
    expected, objective = em.plain_step(problem, mixture)
    step, value = em.em_step(problem, mixture, is_scored=True)
    np.testing.assert_allclose(step.theta, expected.theta, rtol=1e-10)
    np.testing.assert_allclose(step.beta_rows, expected.beta_rows, rtol=1e-10)
    assert value == pytest.approx(objective, rel=1e-11, abs=1e-9)
    unscored, missing = em.em_step(problem, mixture)
    np.testing.assert_array_equal(unscored.theta, step.theta)
    assert np.isnan(missing)


@settings(max_examples=25, deadline=None)
@given(PROBLEMS)
def test_the_objective_never_falls_and_shares_and_topics_stay_distributions(case):
    problem, mixture = case
    _, before = em.plain_step(problem, mixture)
    for _ in range(3):
        fit = em.run_em(problem, mixture, max_passes=6, tol=0.0)
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
def test_a_converged_fit_is_a_fixed_point_of_em(row_prior):
    problem, start = random_problem(1, n_rows=30, row_prior=row_prior)
    fit = em.run_em(problem, start, max_passes=3000, tol=1e-10)
    assert fit.converged
    mixture = fit.mixture
    for _ in range(50):
        mixture, _ = em.plain_step(problem, mixture)
    np.testing.assert_allclose(mixture.beta_rows, fit.mixture.beta_rows, atol=1e-7)


def test_extrapolation_is_ahead_of_twice_as_many_plain_steps():
    data = paper_design(n_samples=100, noise=0.3, random_state=0)
    rows = as_counts(data.X)
    problem = em.Problem(rows, rows.column_totals() > 0, 30.0, 0.05)
    mixture = em.random_mixture(problem, 4, np.random.default_rng(0))
    fit = em.run_em(problem, mixture, max_passes=150, tol=0.0)
    for _ in range(300):
        mixture, _ = em.em_step(problem, mixture)
    assert fit.objective > em.em_step(problem, mixture, is_scored=True)[1]


def test_slices_change_a_step_by_rounding_only_and_threads_not_at_all():
    problem, mixture = random_problem(2, n_rows=50)
    whole, value = em.em_step(problem, mixture, is_scored=True)
    slices = even_slices(problem.rows.indptr, 5)
    sliced, sliced_value = em.em_step(problem, mixture, is_scored=True, slices=slices)
    np.testing.assert_allclose(sliced.beta_rows, whole.beta_rows, rtol=1e-12)
    assert sliced_value == pytest.approx(value, rel=1e-12)
    with open_threads(3) as threads:
        threaded, threaded_value = em.em_step(problem, mixture, is_scored=True, slices=slices, threads=threads)
    np.testing.assert_array_equal(threaded.beta_rows, sliced.beta_rows)
    np.testing.assert_array_equal(threaded.theta, sliced.theta)
    assert threaded_value == sliced_value


def test_an_interrupted_step_leaves_no_thread_at_work(monkeypatch):
    problem, mixture = random_problem(2, n_rows=50)
    ended = []

    def em_block(rows, first, *_):
        if first == 0:
            raise KeyboardInterrupt
        time.sleep(0.1)
        ended.append(first)

    monkeypatch.setattr(em.kernels, "em_block", em_block)
    with open_threads(2) as threads:
        with pytest.raises(KeyboardInterrupt):
            em.em_step(problem, mixture, slices=even_slices(problem.rows.indptr, 8), threads=threads)
        n_ended = len(ended)
        time.sleep(0.2)
    assert len(ended) == n_ended


def test_permuted_rows_features_and_topics_permute_the_step():
    problem, mixture = random_problem(3)
    rng = np.random.default_rng(0)
    order, columns, topics = rng.permutation(12), rng.permutation(15), rng.permutation(3)
    other = as_counts(problem.rows.to_csr().toarray()[order][:, columns])
    turned = em.Mixture(mixture.theta[order][:, topics], mixture.beta_rows[columns][:, topics])
    expected, value = em.em_step(problem, mixture, is_scored=True)
    permuted = problem._replace(rows=other, is_present=problem.is_present[columns])
    step, same_value = em.em_step(permuted, turned, is_scored=True)
    np.testing.assert_allclose(step.theta, expected.theta[order][:, topics], rtol=1e-12)
    np.testing.assert_allclose(step.beta_rows, expected.beta_rows[columns][:, topics], rtol=1e-12)
    assert same_value == pytest.approx(value, rel=1e-12)


def test_a_monitor_receives_the_passes_and_stops_the_run():
    problem, mixture = random_problem(4)
    reports = []
    monitor = Monitor(lambda progress: reports.append(progress.n_done) or progress.n_done >= 6)
    monitor.begin("topics", "fitting")
    fit = em.run_em(problem, mixture, max_passes=100, tol=0.0, monitor=monitor)
    assert reports[-1] == fit.n_passes >= 6
    assert not fit.converged
    assert em.run_em(problem, mixture, max_passes=100, tol=0.0, monitor=monitor).n_passes == 0


# --- fitted shares under fixed topics ---------------------------------------------------------------------------


@pytest.mark.parametrize("row_prior", [0.1, 1.0, 20.0])
def test_fitted_shares_are_a_fixed_point_of_em(row_prior):
    problem, mixture = random_problem(4, row_prior=row_prior)
    theta = em.fitted_shares(problem.rows, mixture.beta_rows, row_prior, tol=1e-12, max_iter=10_000)
    step, _ = em.plain_step(problem, em.Mixture(theta, mixture.beta_rows))
    np.testing.assert_allclose(step.theta, theta, atol=1e-9)


def test_single_precision_is_far_more_accurate_than_the_tolerance():
    problem, mixture = random_problem(7, n_rows=200)
    single = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    double = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5, dtype=np.float64)
    assert 0 < np.abs(single - double).max() < 1e-6  # the tolerance is 1e-3
    np.testing.assert_allclose(single.sum(axis=1), 1.0, rtol=1e-12)


def test_the_shares_of_a_row_do_not_depend_on_other_rows():
    problem, mixture = random_problem(5, n_rows=20)
    together = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    for i in range(20):
        np.testing.assert_array_equal(em.fitted_shares(problem.rows.take([i]), mixture.beta_rows, 0.5)[0], together[i])


def test_unknown_features_are_ignored_and_rows_without_others_have_equal_shares():
    problem, mixture = random_problem(6)
    X = problem.rows.to_csr().toarray()
    X[:, 0] = 7  # probability zero in all topics
    X[3] = 0
    X[4, 1:] = 0
    shares = em.fitted_shares(as_counts(X, empty_rows="allow"), mixture.beta_rows, 0.5)
    known = em.fitted_shares(problem.rows, mixture.beta_rows, 0.5)
    np.testing.assert_allclose(shares[[3, 4]], 1 / 3, rtol=1e-12)
    np.testing.assert_array_equal(np.delete(shares, [3, 4], axis=0), np.delete(known, [3, 4], axis=0))


# --- expected shares under fixed topics -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    topics = sparse_topics(3, 30, 0.3, random_state=1)
    theta = np.random.default_rng(1).dirichlet(np.ones(3), size=10)
    lengths = np.repeat([1, 3, 50, 1000], 10)
    return simulate_mmpca(40, topics=topics, cluster_topics=theta, lengths=lengths, random_state=1)


@pytest.mark.parametrize("prior", [0.1, 1.0, 20.0])
def test_converged_shares_equal_the_ve_step(data, prior):
    gamma = np.array([ve_step(x, beta=data.topics, alpha=prior) for x in data.X.toarray().astype(float)])
    shares = topic_shares(as_counts(data.X), data.topics, prior=prior, tol=1e-13, max_iter=100_000)
    np.testing.assert_allclose(shares, gamma / gamma.sum(axis=1, keepdims=True), atol=1e-9)


def test_shares_sum_to_one_and_are_positive(data):
    shares = topic_shares(as_counts(data.X), data.topics, prior=0.5)
    assert shares.shape == (40, 3)
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_long_rows_recover_the_shares_they_were_drawn_with(data):
    shares = topic_shares(as_counts(data.X), data.topics, prior=1.0)
    assert np.abs(shares[30:] - data.cluster_topics[data.labels[30:]]).max() < 0.1


def test_a_strong_prior_pulls_all_rows_to_equal_shares(data):
    np.testing.assert_allclose(topic_shares(as_counts(data.X), data.topics, prior=1e7), 1 / 3, atol=1e-3)


def test_a_single_topic_has_all_of_every_row(data):
    shares = topic_shares(as_counts(data.X), data.topics[:1], prior=1.0)
    np.testing.assert_array_equal(shares, np.ones((40, 1)))


def test_rows_without_counts_have_equal_shares(data):
    rows = as_counts(np.zeros((2, 30), dtype=int), empty_rows="allow")
    np.testing.assert_allclose(topic_shares(rows, data.topics, prior=0.3), np.full((2, 3), 1 / 3), rtol=1e-12)


def test_features_with_probability_zero_are_ignored(data):
    """The length of the row determines where the iteration starts and stops, so shares agree up to the tolerance."""
    X = data.X.toarray()
    topics = np.hstack([data.topics, np.zeros((3, 1))])
    unknown = np.hstack([X, np.arange(40)[:, None]])
    options = {"prior": 1.0, "tol": 1e-12, "max_iter": 10_000}
    expected = topic_shares(as_counts(X), data.topics, **options)
    np.testing.assert_allclose(topic_shares(as_counts(unknown), topics, **options), expected, atol=1e-9)


def test_shares_do_not_depend_on_the_order_of_rows_or_topics(data):
    rows, order = as_counts(data.X), np.random.default_rng(0).permutation(40)
    shares = topic_shares(rows, data.topics, prior=1.0)
    np.testing.assert_array_equal(topic_shares(rows.take(order), data.topics, prior=1.0), shares[order])
    turned = topic_shares(rows, data.topics[[2, 0, 1]], prior=1.0)
    np.testing.assert_allclose(turned, shares[:, [2, 0, 1]], rtol=1e-9)


def test_the_largest_counts_have_finite_shares(data):
    X = data.X.toarray()
    huge = as_counts(X.astype(np.int64) * ((2**31 - 1) // X.max()))
    np.testing.assert_allclose(topic_shares(huge, data.topics, prior=1.0).sum(axis=1), 1, rtol=1e-12)


def test_a_monitor_receives_every_row_from_all_threads(data):
    rows, monitor, reports = as_counts(np.tile(data.X.toarray(), (20, 1))), None, []
    monitor = Monitor(lambda progress: reports.append(progress.n_done))
    monitor.begin("starts", "topic shares", rows.n_rows)
    with open_threads(2) as threads:
        threaded = topic_shares(rows, data.topics, prior=1.0, threads=threads, monitor=monitor)
    assert reports[-1] == rows.n_rows == 800
    np.testing.assert_array_equal(threaded, topic_shares(rows, data.topics, prior=1.0))
