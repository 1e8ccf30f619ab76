"""States are built, copied and relabelled consistently, and `check` notices every way in which they are not."""

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation

from mmpca import engine

OWN = set(engine.State._fields) - {"rows", "alpha", "beta", "beta_rows"}


def assert_same_state(state, other, names=OWN):
    for name in names:
        np.testing.assert_array_equal(getattr(state, name), getattr(other, name), err_msg=name)


def test_a_built_state_holds_the_sums_of_its_clusters(make_problem):
    problem = make_problem(0)
    state = problem.build()
    for q in range(problem.n_clusters):
        members = problem.X[problem.labels == q]
        assert state.sizes[q] == len(members)
        assert state.totals[q] == members.sum()
        np.testing.assert_array_equal(state.counts[q], members.sum(axis=0))
    assert state.n_clusters == problem.n_clusters
    assert not state.moved.any()
    assert not state.drift.any()
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
    gamma = problem.build(np.arange(12)).gamma
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), lda.transform(problem.X), rtol=1e-5)


def test_a_copy_changes_without_its_original(make_problem):
    problem = make_problem(0)
    state, untouched = problem.build(), problem.build()
    other = engine.copy(state)
    assert_same_state(other, state)
    for name in OWN:
        getattr(other, name)[...] = 7
    assert_same_state(state, untouched)


def test_a_copy_shares_the_data_and_the_topics(make_problem):
    state = make_problem(0).build()
    other = engine.copy(state)
    assert other.rows is state.rows
    assert other.beta is state.beta
    assert other.beta_rows is state.beta_rows


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
    engine.relabel(state, labels, np.random.default_rng(0).gamma(2.0, 50.0, size=state.gamma.shape))
    np.testing.assert_allclose(state.gamma, problem.build(labels).gamma, rtol=1e-5)
    assert engine.bound(state) == pytest.approx(problem.scratch_bound(labels), rel=1e-12)


# --- check --------------------------------------------------------------------------------------------------------


def test_check_accepts_a_state_that_moves_have_left_stale(make_problem):
    problem = make_problem(0)
    state = problem.build()
    engine.move(state, 0, (problem.labels[0] + 1) % problem.n_clusters)
    engine.check(state)
    assert state.moved.any()


def corrupt_sizes(state):
    state.sizes[1] += 1


def corrupt_labels(state):
    state.labels[np.flatnonzero(state.labels == 1)[0]] = 0


def corrupt_counts(state):
    state.counts[1, 3] += 1


def corrupt_totals(state):
    state.totals[1] += 1


def corrupt_value(state):
    state.value[1] *= 1 + 1e-8


def lose_value(state):
    state.value[1] = np.nan


def corrupt_gamma(state):
    state.gamma[1] = state.gamma[1, ::-1]


def empty_a_cluster(state):
    engine.relabel(state, np.zeros(len(state.labels)))


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (corrupt_sizes, r"cluster 1 has \d+ rows, not \d+"),
        (corrupt_labels, r"cluster 0 has \d+ rows, not \d+"),
        (empty_a_cluster, "cluster 1 has 0 rows, not 0"),
        (corrupt_counts, "the counts of cluster 1 are not the sum of its rows"),
        (corrupt_totals, r"the total of cluster 1 is [\d.]+, not [\d.]+"),
        (corrupt_value, r"J of cluster 1 is -[\d.]+, not -[\d.]+"),
        (lose_value, r"J of cluster 1 is nan, not -[\d.]+"),
        (corrupt_gamma, r"J of cluster 1 is -[\d.]+, not -[\d.]+"),
    ],
)
def test_check_notices_a_corrupt_state_and_says_what_is_wrong(make_problem, corrupt, message):
    state = make_problem(0).build()
    corrupt(state)
    with pytest.raises(AssertionError, match=f"^{message}$"):
        engine.check(state)
