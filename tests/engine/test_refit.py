"""Topics re-estimated on the meta-observations: the bound rises, and the state that they came from stays."""

import numpy as np
import pytest
from scipy.stats import dirichlet

from mmpca import engine
from mmpca.backend import SERIAL, open_threads
from mmpca.engine.bound import partition_bound, responsibilities
from mmpca.engine.refit import estimate_prior, most_likely_prior, refit_topics, replace_topics
from mmpca.monitor import Monitor


def m_step(state, gamma):
    """Return beta_kv proportional to sum_q M_qv phi_qvk."""
    pairs = zip(state.clusters.counts, gamma, strict=True)
    expected = sum(m[:, None] * responsibilities(state.topics.beta, g) for m, g in pairs).T  # (K, V)
    return expected / expected.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_refitted_topics_is_higher_and_is_theirs(make_problem, seed, alpha):
    problem = make_problem(seed, alpha=alpha)
    state = problem.build()
    beta, _, bound = refit_topics(state)
    assert bound > engine.bound(state)
    np.testing.assert_allclose(beta.sum(axis=1), 1, rtol=1e-12)
    assert (beta >= 0).all()
    if alpha >= 1:  # the maximum over gamma is unique
        expected = partition_bound(state.clusters.counts, state.clusters.sizes, beta=beta, alpha=alpha)
        assert bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_use_few_of_the_features_are_refitted_to_the_new_topics(make_problem, seed):
    problem = make_problem(seed, n_rows=12, n_features=400, max_length=25)
    state = problem.build()
    assert (2 * (state.clusters.counts > 0).sum(axis=1) < 400).all()
    beta, gamma, bound = refit_topics(state)
    expected = partition_bound(state.clusters.counts, state.clusters.sizes, beta=beta, alpha=problem.alpha)
    assert bound == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gamma, problem._replace(beta=beta).build().clusters.gamma, rtol=1e-4, atol=1e-4)


def test_one_iteration_is_the_m_step_followed_by_the_ve_step(make_problem):
    problem = make_problem(0)
    state = problem.build()
    beta, gamma, _ = refit_topics(state, max_iter=1)
    np.testing.assert_allclose(beta, m_step(state, state.clusters.gamma), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(gamma, problem._replace(beta=beta).build().clusters.gamma, rtol=1e-5)


def test_more_iterations_never_lower_the_bound(make_problem):
    state = make_problem(0).build()
    bounds = [refit_topics(state, max_iter=n, tol=0)[2] for n in range(12)]
    assert bounds[0] == pytest.approx(engine.bound(state), rel=1e-12)
    assert np.diff(bounds).min() > 0


def test_a_single_topic_becomes_the_frequencies_of_the_features(make_problem):
    problem = make_problem(0, n_topics=1)
    beta, _, _ = refit_topics(problem.build())
    np.testing.assert_allclose(beta[0], problem.X.sum(axis=0) / problem.X.sum(), rtol=1e-12)


def test_a_topic_that_no_token_uses_stays_what_it_was(make_problem):
    problem = make_problem(0, n_features=25, absent=0.3)
    unused = (problem.X.sum(axis=0) == 0) / (problem.X.sum(axis=0) == 0).sum()
    beta, _, _ = refit_topics(problem._replace(beta=np.vstack([problem.beta, unused])).build())
    np.testing.assert_array_equal(beta[-1], unused)
    np.testing.assert_allclose(beta.sum(axis=1), 1, rtol=1e-12)


def test_the_order_of_topics_and_features_does_not_matter(make_problem):
    problem = make_problem(0)
    rng = np.random.default_rng(0)
    topics, features = (rng.permutation(n) for n in problem.beta.shape)
    beta, gamma, bound = refit_topics(problem.build(), max_iter=5)
    permuted = problem._replace(X=problem.X[:, features], beta=problem.beta[topics][:, features])
    same_beta, same_gamma, same_bound = refit_topics(permuted.build(), max_iter=5)
    np.testing.assert_allclose(same_beta, beta[topics][:, features], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(same_gamma, gamma[:, topics], rtol=1e-5)
    assert same_bound == pytest.approx(bound, rel=1e-11)


def test_the_state_is_not_changed(make_problem):
    state = make_problem(0).build()
    before = engine.copy(state)
    refit_topics(state)
    np.testing.assert_array_equal(state.labels, before.labels)
    for name, value in state.clusters._asdict().items():
        np.testing.assert_array_equal(value, getattr(before.clusters, name), err_msg=name)


def test_a_stale_state_is_not_changed_either(make_problem):
    problem = make_problem(0)
    state = problem.build()
    engine.move(state, 0, (int(problem.labels[0]) + 1) % 3)
    refit_topics(state)
    engine.check(state)
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)


def test_each_iteration_is_reported_as_a_step(make_problem):
    reports = []
    refit_topics(make_problem(0).build(), max_iter=7, tol=0, monitor=Monitor(reports.append))
    assert [report.n_done for report in reports] == list(range(8))
    assert {report.n_steps for report in reports} == {7}


def test_a_request_to_stop_keeps_the_topics_found_so_far(make_problem):
    state = make_problem(0).build()
    _, _, bound = refit_topics(state, tol=0, monitor=Monitor(lambda progress: progress.n_done == 2))
    assert bound == refit_topics(state, tol=0, max_iter=2)[2]


def test_refitting_does_not_depend_on_threads_or_slices_of_the_features(make_problem):
    state = make_problem(0, n_features=40).build()
    whole = refit_topics(state)
    alone = refit_topics(state, threads=SERIAL, features_at_once=7)
    with open_threads(3) as threads:
        in_three = refit_topics(state, threads=threads, features_at_once=7)
    for one, other, expected in zip(alone, in_three, whole, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-9)


# --- the prior --------------------------------------------------------------------------------------------------


def test_the_most_likely_prior_is_that_of_the_shares_it_generated():
    alpha = np.array([0.5, 2.0, 7.0])
    theta = np.random.default_rng(0).dirichlet(alpha, 20_000)
    found = most_likely_prior(np.log(theta), np.ones(3))
    np.testing.assert_allclose(found, alpha, rtol=0.05)
    likelihood = [dirichlet.logpdf(theta.T, prior).sum() for prior in (found, found * 1.01, found / 1.01)]
    assert likelihood[0] == max(likelihood)


@pytest.mark.parametrize("seed", range(5))
def test_an_estimated_prior_raises_the_bound_to_a_maximum(make_problem, seed):
    state = make_problem(seed, n_rows=60, n_clusters=7).build()
    alpha, gamma, bound = estimate_prior(state)
    counts, sizes = state.clusters.counts, state.clusters.sizes

    def bound_of(prior):
        return engine.bound(engine.from_sums(counts, sizes, beta=state.topics.beta, alpha=prior, gamma=gamma))

    assert bound > engine.bound(state)
    assert bound == pytest.approx(bound_of(alpha), rel=1e-9)
    for k in range(len(alpha)):
        for factor in (0.7, 1.4):  # EM ends a little before the maximum
            assert bound_of(np.clip(alpha * factor ** (np.arange(len(alpha)) == k), 1e-2, 1e4)) < bound + 1e-3


def test_topics_are_replaced_in_place_by_refitted_ones(make_problem):
    problem = make_problem(0)
    state = problem._replace(beta=problem.beta.copy()).build()
    beta, _, bound = refit_topics(state, max_iter=7)
    replace_topics(state, max_iter=7)
    np.testing.assert_array_equal(state.topics.beta, beta)
    np.testing.assert_array_equal(state.topics.beta_rows, beta.T)
    engine.check(state)
    assert engine.bound(state) == pytest.approx(bound, rel=1e-12)
