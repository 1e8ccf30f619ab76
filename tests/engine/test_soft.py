"""Soft assignments: agree with plain NumPy and with the hard model at its ends, and never lower their bound."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, xlogy

from mmpca import engine, kernels
from mmpca.counts import as_counts
from mmpca.engine import soft
from mmpca.engine.bound import cluster_bound, mixture, partition_bound, responsibilities, ve_step
from mmpca.monitor import History, Monitor

IS_COMPILED = not numba.config.DISABLE_JIT
SIZES = {} if IS_COMPILED else {"max_rows": 12, "max_features": 10, "max_length": 100}
SHAPE = {} if IS_COMPILED else {"n_rows": 15, "n_features": 10, "n_topics": 3, "max_length": 50}
SEEDS = range(5) if IS_COMPILED else range(1)
TEMPERATURES = [0.3, 1.0, 7.0]


def examples(n, without_jit=5):
    """Return Hypothesis settings for n problems, fewer where everything is interpreted."""
    return settings(max_examples=n if IS_COMPILED else without_jit, deadline=None, derandomize=True)


class Result:
    """A fit by variational EM with its history."""

    def __init__(self, state, *, callback=None, **options):
        self.run = History(Monitor(callback))
        self.fit = soft.vbem(state, engine.SearchOptions(state.n_clusters, **options), history=self.run)
        self.labels, self.weights, self.responsibilities = self.fit.labels, self.fit.weights, self.fit.responsibilities
        self.beta, self.gamma = self.fit.state.topics.beta, self.fit.state.clusters.gamma


def csr(problem):
    return as_counts(problem.X).to_csr().astype(float)


def start(problem, shares=None, temperature=1.0):
    """Return the fit of given responsibilities, by default those of the problem's partition."""
    shares = soft.one_hot(problem.labels, problem.n_clusters) if shares is None else shares
    return soft.gather(csr(problem), shares, problem.build(), temperature=temperature, with_topics=False)


def random_shares(problem, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(problem.n_clusters, 0.5), size=len(problem.X))


def reference_bound(problem, shares, temperature=1.0):
    """Return the bound of responsibilities, everything else maximized, in plain NumPy."""
    sizes = shares.sum(axis=0)
    clusters = partition_bound(shares.T @ problem.X, sizes, beta=problem.beta, alpha=problem.alpha)
    return clusters - temperature * xlogy(shares, shares).sum()


def reference_shares(problem, shares, temperature):
    """Return the responsibilities after an E-step, in plain NumPy."""
    scores = np.empty(shares.shape)
    for q, (m, n) in enumerate(zip(shares.T @ problem.X, shares.sum(axis=0), strict=True)):
        p = mixture(problem.beta, ve_step(m, beta=problem.beta, alpha=problem.alpha))
        scores[:, q] = xlogy(problem.X, p).sum(axis=1) + np.log(n / len(shares))
    return np.exp((scores - logsumexp(scores / temperature, axis=1, keepdims=True) * temperature) / temperature)


def reference_topics(problem, shares):
    """Return beta_kv proportional to sum_q M_qv phi_qvk, in plain NumPy."""
    expected = np.zeros_like(problem.beta.T)
    for m in shares.T @ problem.X:
        gamma = ve_step(m, beta=problem.beta, alpha=problem.alpha)
        expected += m[:, None] * responsibilities(problem.beta, gamma)
    return expected.T / expected.T.sum(axis=1, keepdims=True)


def assert_monotone(result):
    assert np.diff(result.run.bounds).min(initial=0) >= 0
    assert len(result.run.bounds) == result.run.n_epochs + 1


def assert_sound(result, problem):
    """Assert what holds for every result, whatever the data."""
    assert_monotone(result)
    assert np.isfinite(result.run.bounds).all()
    np.testing.assert_allclose(result.responsibilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(result.weights, result.responsibilities.mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.beta.sum(axis=1), 1, rtol=1e-9)
    assert result.beta.min() >= 0
    assert result.gamma.min() > 0
    assert_uses_every_cluster(result.labels, problem)


def assert_uses_every_cluster(labels, problem):
    assert labels.dtype == np.int32
    assert labels.shape == (len(problem.X),)
    assert set(labels.tolist()) == set(range(problem.n_clusters))


def anneal(problem, seed=0):
    return soft.anneal(
        as_counts(problem.X),
        n_clusters=problem.n_clusters,
        beta=problem.beta,
        alpha=problem.alpha,
        rng=np.random.default_rng(seed),
    )


# --- it agrees with plain NumPy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("seed", SEEDS)
def test_an_epoch_equals_its_formulas(make_problem, seed, temperature):
    problem = make_problem(seed, **SHAPE)
    shares = random_shares(problem, seed)
    fit = start(problem, shares, temperature)
    assert fit.bound == pytest.approx(reference_bound(problem, shares, temperature), rel=1e-10)
    new = soft.epoch(csr(problem), fit, temperature=temperature)
    expected = reference_shares(problem, shares, temperature)
    np.testing.assert_allclose(new.responsibilities, expected, atol=1e-5)
    assert new.bound == pytest.approx(reference_bound(problem, new.responsibilities, temperature), rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_are_those_of_the_m_step_on_soft_meta_observations(make_problem, seed):
    problem = make_problem(seed, **SHAPE)
    shares = random_shares(problem, seed)
    fit = start(problem, shares)
    new = soft.gather(csr(problem), shares, fit.state, temperature=1.0, with_topics=True)
    np.testing.assert_allclose(new.state.topics.beta, reference_topics(problem, shares), rtol=1e-5, atol=1e-8)
    assert new.bound == pytest.approx(reference_bound(problem._replace(beta=new.state.topics.beta), shares), rel=1e-10)


def test_tempered_responsibilities_maximize_scores_plus_entropy():
    scores = np.random.default_rng(0).normal(scale=5, size=(20, 4))
    best = soft.temper(scores, 3.0)

    def value(shares):
        return (shares * scores).sum() - 3.0 * xlogy(shares, shares).sum()

    for seed in range(20):
        other = 0.95 * best + 0.05 * np.random.default_rng(seed).dirichlet(np.ones(4), size=20)
        assert value(other) < value(best)


# --- it agrees with special cases ---------------------------------------------------------------------------------


def test_clusters_that_use_few_of_the_features_are_fitted_to_the_new_topics(make_problem):
    problem = make_problem(0, n_rows=12, n_features=400, max_length=25)
    result = Result(problem.build(), max_epochs=5, tol=0.0)
    expected = reference_bound(problem._replace(beta=result.beta), result.responsibilities)
    assert result.run.bounds[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_responsibilities_have_the_bound_of_their_partition(make_problem, seed):
    problem = make_problem(seed, **SHAPE)
    assert start(problem).bound == pytest.approx(engine.bound(problem.build()), rel=1e-12)


def test_one_cluster_is_lda_on_the_sum_of_all_rows(make_problem):
    problem = make_problem(0, n_clusters=1, **SHAPE)
    result = Result(problem.build(), max_epochs=5)
    m = problem.X.sum(axis=0).astype(float)
    gamma = ve_step(m, beta=result.beta, alpha=problem.alpha)
    assert result.run.bounds[-1] == pytest.approx(cluster_bound(m, gamma, beta=result.beta, alpha=1.0), rel=1e-10)
    np.testing.assert_array_equal(result.responsibilities, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_epoch_at_temperature_zero_is_a_step_of_classification_em(make_problem, seed):
    problem = make_problem(seed, **SHAPE)
    state = problem.build()
    every = np.arange(len(problem.X))
    target = np.empty(len(every), dtype=np.int32)
    kernels.assign(state, every, target)
    new = soft.epoch(csr(problem), start(problem), temperature=1e-9)
    np.testing.assert_array_equal(new.responsibilities.argmax(axis=1), target)
    np.testing.assert_allclose(new.responsibilities.max(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_grow_apart_just_below_the_critical_temperature_and_together_above(make_problem, seed):
    problem = make_problem(seed, **{**SHAPE, "n_rows": 400 if IS_COMPILED else 100})
    X, state = csr(problem), problem.build()
    critical = soft.critical_temperature(X, state)
    assert critical >= 1
    for factor, grows in ((0.7, True), (1.5, False)):
        fit = start(problem)
        for _ in range(3):  # other directions than the first to grow die out
            fit = soft.epoch(X, fit, temperature=factor * critical)
        new = soft.epoch(X, fit, temperature=factor * critical)
        for _ in range(3):
            new = soft.epoch(X, new, temperature=factor * critical)
        assert (spread(new) > spread(fit)) == grows


def spread(fit):
    """Return how far the topic shares of the clusters are apart."""
    return np.ptp(fit.state.clusters.gamma / fit.state.clusters.gamma.sum(axis=1, keepdims=True), axis=0).max()


@pytest.mark.parametrize("first", [1.0, 1.01, 18.0, 1e300])
def test_temperatures_fall_to_one_in_steps_that_are_not_too_many(first):
    temperatures = soft.cooling(first)
    assert temperatures[0] == pytest.approx(first)
    assert temperatures[-1] == 1
    assert (np.diff(temperatures) < 0).all()
    assert len(temperatures) <= soft.MAX_TEMPERATURES


# --- it keeps its invariants --------------------------------------------------------------------------------------


@examples(60)
@given(data=st.data())
def test_the_bound_never_falls(problems, data):
    problem = data.draw(problems(**SIZES))
    assert_sound(Result(problem.build(), max_epochs=15, tol=0.0), problem)


@examples(30)
@given(data=st.data(), temperature=st.sampled_from(TEMPERATURES))
def test_the_bound_never_falls_at_any_temperature(problems, data, temperature):
    problem = data.draw(problems(**SIZES))
    fit, X = start(problem, random_shares(problem), temperature), csr(problem)
    for _ in range(5):
        new = soft.epoch(X, fit, temperature=temperature)
        assert new.bound >= fit.bound - 1e-11 * abs(fit.bound)
        fit = new


@examples(30)
@given(data=st.data())
def test_annealed_labels_use_every_cluster(problems, data):
    problem = data.draw(problems(**SIZES))
    assert_uses_every_cluster(anneal(problem), problem)


def test_a_ve_step_that_ends_in_a_lower_maximum_is_undone(make_problem, monkeypatch):
    problem = make_problem(0, **SHAPE)
    fit = start(problem)

    def go_astray(state, q, with_tables):
        state.clusters.gamma[q], state.clusters.weight[q], state.clusters.value[q] = 1.0, 0.1, -1e9

    monkeypatch.setattr(soft.kernels, "refresh_cluster", go_astray)
    same = soft.gather(csr(problem), fit.responsibilities, fit.state, temperature=1.0, with_topics=False)
    assert same.bound == pytest.approx(fit.bound, rel=1e-12)
    np.testing.assert_array_equal(same.state.clusters.gamma, fit.state.clusters.gamma)
    np.testing.assert_array_equal(same.state.clusters.weight, fit.state.clusters.weight)


def test_the_state_is_not_changed(make_problem):
    state = make_problem(0, **SHAPE).build()
    before = engine.copy(state)
    beta = state.topics.beta.copy()
    Result(state, max_epochs=5)
    np.testing.assert_array_equal(state.topics.beta, beta)
    for name, value in state.clusters._asdict().items():
        np.testing.assert_array_equal(value, getattr(before.clusters, name), err_msg=name)


def test_it_converges_to_a_point_that_an_epoch_does_not_improve(make_problem):
    problem = make_problem(0, **SHAPE)
    result = Result(problem.build(), tol=1e-6, max_epochs=1000)
    assert result.run.converged
    assert not result.run.interrupted
    assert 0 <= result.run.bounds[-1] - result.run.bounds[-2] <= 1e-6 * abs(result.run.bounds[-1])


def test_no_epoch_gives_the_start(make_problem):
    problem = make_problem(0, **SHAPE)
    result = Result(problem.build(), max_epochs=0)
    np.testing.assert_array_equal(result.labels, problem.labels)
    assert result.run.bounds == [pytest.approx(engine.bound(problem.build()))]
    assert not result.run.converged


def test_a_cluster_that_is_nowhere_most_probable_gets_the_row_nearest_to_it():
    shares = np.array([[0.9, 0.1, 0.0], [0.6, 0.3, 0.1], [0.7, 0.1, 0.2]])
    np.testing.assert_array_equal(soft.harden(shares), [0, 1, 2])
    np.testing.assert_array_equal(soft.harden(shares[:, :2]), [0, 1, 0])


def test_no_cluster_is_emptied_to_fill_another():
    shares = np.array([[0.1, 0.9, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    labels = soft.harden(shares)
    assert labels[0] == 1
    assert sorted(labels.tolist()) == [0, 1, 2]


# --- it can be watched and stopped --------------------------------------------------------------------------------


def test_the_callback_gets_every_epoch_and_stops_it(make_problem):
    reports = []
    problem = make_problem(0, **SHAPE)

    def callback(progress):
        reports.append(progress)
        return progress.epoch == 3

    result = Result(problem.build(), tol=0.0, callback=callback)
    assert result.run.interrupted
    assert not result.run.converged
    assert [report.epoch for report in reports] == [1, 2, 3]
    assert [report.n_moves for report in reports] == result.run.n_moves
    assert [report.bound for report in reports] == result.run.bounds[:-1]


def test_ctrl_c_leaves_the_last_finished_epoch(make_problem, monkeypatch):
    problem = make_problem(0, **SHAPE)
    expected = Result(problem.build(), tol=0.0, max_epochs=2)
    em_step, calls = soft.em_step, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return em_step(*arguments)

    monkeypatch.setattr(soft, "em_step", interrupted)
    result = Result(problem.build(), tol=0.0)
    assert result.run.interrupted
    assert result.run.bounds == expected.run.bounds
    np.testing.assert_array_equal(result.responsibilities, expected.responsibilities)
    np.testing.assert_array_equal(result.beta, expected.beta)


# --- it is unchanged under relabelling and permutation ------------------------------------------------------------


def test_the_order_of_rows_features_clusters_and_topics_does_not_matter(make_problem):
    problem = make_problem(0, **SHAPE)
    rng = np.random.default_rng(0)
    rows, features = (rng.permutation(n) for n in problem.X.shape)
    topics, names = rng.permutation(len(problem.beta)), rng.permutation(problem.n_clusters)
    permuted = problem._replace(
        X=problem.X[rows][:, features],
        labels=names[problem.labels[rows]],
        beta=problem.beta[topics][:, features],
    )
    result, same = (Result(each.build(), max_epochs=8, tol=0.0) for each in (problem, permuted))
    np.testing.assert_allclose(same.run.bounds, result.run.bounds, rtol=1e-9)
    np.testing.assert_allclose(same.responsibilities[:, names], result.responsibilities[rows], atol=1e-5)
    np.testing.assert_allclose(same.beta, result.beta[topics][:, features], atol=1e-6)


def test_the_same_seed_anneals_to_the_same_labels(make_problem):
    problem = make_problem(1, **SHAPE)
    np.testing.assert_array_equal(anneal(problem, seed=3), anneal(problem, seed=3))


# --- it survives awkward input ------------------------------------------------------------------------------------


def both(problem):
    assert_sound(Result(problem.build(), max_epochs=20), problem)
    assert_uses_every_cluster(anneal(problem), problem)


def test_one_row(make_problem):
    problem = make_problem(0, n_clusters=1, **SHAPE)
    both(problem._replace(X=problem.X[:1], labels=np.zeros(1, dtype=int)))


def test_identical_rows(make_problem):
    both(make_problem(0, **{**SHAPE, "twins": 1.0}))


def test_one_topic(make_problem):
    both(make_problem(0, **{**SHAPE, "n_topics": 1}))


def test_a_cluster_for_each_row(make_problem):
    problem = make_problem(0, **{**SHAPE, "n_rows": 6, "n_clusters": 6})
    both(problem)


@pytest.mark.parametrize("alpha", [1e-6 if IS_COMPILED else 0.1, 100.0])  # interpreted, an underflow warns
def test_small_and_large_priors(make_problem, alpha):
    both(make_problem(0, **{**SHAPE, "alpha": alpha}))


def test_counts_of_a_million(make_problem):
    problem = make_problem(0, **SHAPE)
    both(problem._replace(X=problem.X * 1_000_000))


def test_one_huge_row(make_problem):
    problem = make_problem(0, **SHAPE)
    X = problem.X.copy()
    X[0] *= 1_000_000
    both(problem._replace(X=X))


def test_a_cluster_without_weight_stays_empty_and_breaks_nothing(make_problem):
    problem = make_problem(0, **SHAPE)
    shares = random_shares(problem)
    shares[:, 0] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    fit = soft.epoch(csr(problem), start(problem, shares), with_topics=True)
    np.testing.assert_array_equal(fit.responsibilities[:, 0], 0)
    assert np.isfinite(fit.bound)
    assert fit.state.clusters.value[0] == pytest.approx(0, abs=1e-9)
