"""Topics re-estimated on the meta-observations: the bound rises, and the state that they came from stays."""

import numpy as np
import pytest

from mmpca import engine
from mmpca.engine import refit
from mmpca.engine.bound import partition_bound, responsibilities
from mmpca.engine.refit import refit_topics
from mmpca.stages import Stages


def m_step(state, gamma):
    """Return beta_kv proportional to sum_q M_qv phi_qvk."""
    pairs = zip(state.counts, gamma, strict=True)
    expected = sum(m[:, None] * responsibilities(state.beta, g) for m, g in pairs).T  # (K, V)
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
        expected = partition_bound(state.counts, state.sizes, beta=beta, alpha=alpha)
        assert bound == pytest.approx(expected, rel=1e-12)


def test_one_iteration_is_the_m_step_followed_by_the_ve_step(make_problem):
    problem = make_problem(0)
    state = problem.build()
    beta, gamma, _ = refit_topics(state, max_iter=1)
    np.testing.assert_allclose(beta, m_step(state, state.gamma), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(gamma, problem._replace(beta=beta).build().gamma, rtol=1e-5)


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
    for name in engine.State._fields[2:]:
        np.testing.assert_array_equal(getattr(state, name), getattr(before, name), err_msg=name)


def test_a_stale_state_is_not_changed_either(make_problem):
    problem = make_problem(0)
    state = problem.build()
    engine.move(state, 0, (int(problem.labels[0]) + 1) % 3)
    refit_topics(state)
    engine.check(state)
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)


def test_each_iteration_is_told_as_a_step(make_problem):
    told = []
    stages = Stages(told.append)
    stages.begin("refit", "step {step}", 10, is_sure=False)
    refit_topics(make_problem(0).build(), max_iter=7, tol=0, stages=stages)
    assert [stage.text for stage in told] == [f"step {n}" for n in range(1, 9)]


def test_refitting_does_not_depend_on_threads_or_pieces_of_the_features(make_problem, monkeypatch):
    state = make_problem(0, n_features=40).build()
    whole = refit_topics(state)
    monkeypatch.setattr(refit, "FEATURES_AT_ONCE", 7)
    alone, in_three = refit_topics(state), refit_topics(state, n_threads=3)
    for one, other, expected in zip(alone, in_three, whole, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-9)
