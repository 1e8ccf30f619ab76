"""States are built, copied and relabelled consistently, and `check` notices every way in which they are not."""

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation

from mmpca import engine
from mmpca.counts import as_counts


def assert_same_state(state, other):
    np.testing.assert_array_equal(state.labels, other.labels)
    for name, value in state.clusters._asdict().items():
        np.testing.assert_array_equal(value, getattr(other.clusters, name), err_msg=name)


def test_a_built_state_holds_the_sums_of_its_clusters(make_problem):
    problem = make_problem(0)
    state = problem.build()
    for q in range(problem.n_clusters):
        members = problem.X[problem.labels == q]
        assert state.clusters.sizes[q] == len(members)
        assert state.clusters.totals[q] == members.sum()
        np.testing.assert_array_equal(state.clusters.counts[q], members.sum(axis=0))
    assert state.n_clusters == problem.n_clusters
    assert not state.clusters.moved.any()
    assert not state.clusters.drift.any()
    engine.check(state)


def test_a_built_state_keeps_no_hold_on_the_labels_that_it_was_given(make_problem):
    problem = make_problem(0)
    labels = problem.labels.astype(np.int32)
    state = problem.build(labels)
    engine.move(state, 0, (labels[0] + 1) % problem.n_clusters)
    np.testing.assert_array_equal(labels, problem.labels)


def test_topics_in_any_memory_order_and_float_type_build_the_same_state(make_problem):
    problem = make_problem(0)
    beta = problem.beta.astype(np.float32)
    expected = problem._replace(beta=beta.astype(np.float64)).build()
    for same in (beta, np.asfortranarray(beta), np.repeat(beta, 2, axis=1)[:, ::2]):
        assert_same_state(problem._replace(beta=same).build(), expected)


def test_a_cluster_for_each_row_is_lda(make_problem):
    problem = make_problem(0, n_rows=12, n_clusters=12, max_length=60)
    n_topics = len(problem.beta)
    lda = LatentDirichletAllocation(
        n_topics, doc_topic_prior=problem.alpha, max_doc_update_iter=100_000, mean_change_tol=1e-12
    ).fit(problem.X)
    lda.components_ = lda.exp_dirichlet_component_ = problem.beta  # topics that are known, not estimated
    gamma = problem.build(np.arange(12)).clusters.gamma
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), lda.transform(problem.X), rtol=1e-5)


def test_a_built_state_forgets_where_ve_steps_may_start_only_under_a_prior_below_one(make_problem):
    problem = make_problem(0)
    labels, common = problem.labels, {"n_clusters": problem.n_clusters, "beta": problem.beta}
    near = np.random.default_rng(0).gamma(1.0, size=problem.build().clusters.gamma.shape) + 1.0
    for alpha, is_same in ((1.0, False), (0.5, True)):
        cold = engine.build(as_counts(problem.X), labels, **common, alpha=alpha)
        warm = engine.build(as_counts(problem.X), labels, **common, alpha=alpha, gamma=near)
        assert np.array_equal(warm.clusters.gamma, cold.clusters.gamma) == is_same


def test_a_copy_changes_without_its_original(make_problem):
    problem = make_problem(0)
    state, untouched = problem.build(), problem.build()
    other = engine.copy(state)
    assert_same_state(other, state)
    for array in (other.labels, *other.clusters):
        array[...] = 7
    assert_same_state(state, untouched)


def test_a_copy_shares_the_data_and_the_topics(make_problem):
    state = make_problem(0).build()
    other = engine.copy(state)
    assert other.rows is state.rows
    assert other.topics.beta is state.topics.beta
    assert other.topics.beta_rows is state.topics.beta_rows


def test_a_relabelled_state_is_the_state_built_from_these_labels(make_problem):
    problem = make_problem(0)
    state = problem.build()
    labels = np.roll(problem.labels, 1)
    engine.relabel(state, labels)
    assert_same_state(state, problem.build(labels))


def test_where_the_ve_steps_start_does_not_matter_to_a_relabelled_state(make_problem):
    problem = make_problem(0)
    state = problem.build()
    labels = np.roll(problem.labels, 1)
    engine.relabel(state, labels, np.random.default_rng(0).gamma(2.0, 50.0, size=state.clusters.gamma.shape))
    np.testing.assert_allclose(state.clusters.gamma, problem.build(labels).clusters.gamma, rtol=1e-5)
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(labels), rel=1e-12)


# --- check --------------------------------------------------------------------------------------------------------


def test_check_accepts_a_state_that_moves_have_left_stale(make_problem):
    problem = make_problem(0)
    state = problem.build()
    engine.move(state, 0, (problem.labels[0] + 1) % problem.n_clusters)
    engine.check(state)
    assert state.clusters.moved.any()


def corrupt_sizes(state):
    state.clusters.sizes[1] += 1


def corrupt_labels(state):
    state.labels[np.flatnonzero(state.labels == 1)[0]] = 0


def corrupt_counts(state):
    state.clusters.counts[1, 3] += 1


def corrupt_totals(state):
    state.clusters.totals[1] += 1


def corrupt_value(state):
    state.clusters.value[1] *= 1 + 1e-8


def lose_value(state):
    state.clusters.value[1] = np.nan


def corrupt_gamma(state):
    state.clusters.gamma[1] = state.clusters.gamma[1, ::-1]


def empty_a_cluster(state):
    engine.relabel(state, np.zeros(len(state.labels)))


@pytest.mark.parametrize(
    ("corrupt", "cluster"),
    [
        (corrupt_sizes, 1),
        (corrupt_labels, 0),
        (empty_a_cluster, 1),
        (corrupt_counts, 1),
        (corrupt_totals, 1),
        (corrupt_value, 1),
        (lose_value, 1),
        (corrupt_gamma, 1),
    ],
)
def test_check_names_the_cluster_of_a_corrupt_state(make_problem, corrupt, cluster):
    state = make_problem(0).build()
    corrupt(state)
    with pytest.raises(AssertionError, match=f"^cluster {cluster}:"):
        engine.check(state)
