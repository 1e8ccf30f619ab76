"""Clusters merged pairwise, down to one."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage

from mmpca import engine


def best_merge(problem, labels, n_clusters):
    """Return the least loss of any merge, found by trying all of them."""
    before = problem.scratch_bound(labels)
    losses = []
    for p in range(n_clusters):
        for q in range(p):
            merged = np.unique(np.where(labels == p, q, labels), return_inverse=True)[1]
            losses.append(before - problem.scratch_bound(merged))
    return min(losses)


@pytest.mark.parametrize("seed", range(3))
def test_every_merge_is_the_cheapest_and_every_bound_is_exact(make_problem, seed):
    problem = make_problem(seed, n_rows=30, n_clusters=5)
    path = engine.merge_path(problem.build())
    for n in range(5, 1, -1):
        labels, fewer = path.groups(n)[problem.labels], path.groups(n - 1)[problem.labels]
        assert path.bounds[n - 1] == pytest.approx(problem.scratch_bound(labels), rel=1e-10)
        loss = path.bounds[n - 1] - path.bounds[n - 2]
        assert loss == pytest.approx(best_merge(problem, labels, n), rel=1e-8, abs=1e-8)
        assert len(np.unique(fewer)) == n - 1


def test_the_linkage_is_one_that_scipy_draws(make_problem):
    problem = make_problem(0, n_rows=40, n_clusters=6)
    path = engine.merge_path(problem.build())
    assert is_valid_linkage(path.linkage)
    assert path.linkage[-1, 3] == 6
    assert sorted(dendrogram(path.linkage, no_plot=True)["leaves"]) == list(range(6))


def test_all_clusters_are_groups_of_their_own_and_one_group_has_all(make_problem):
    path = engine.merge_path(make_problem(0, n_clusters=4, n_rows=20).build())
    np.testing.assert_array_equal(path.groups(4), np.arange(4))
    np.testing.assert_array_equal(path.groups(1), np.zeros(4))


def test_one_cluster_has_nothing_to_merge(make_problem):
    state = make_problem(0, n_clusters=1).build()
    path = engine.merge_path(state)
    assert path.linkage.shape == (0, 4)
    assert path.bounds.tolist() == [engine.bound(state)]


def test_the_state_is_not_changed(make_problem):
    state, before = make_problem(0).build(), make_problem(0).build()
    engine.merge_path(state)
    np.testing.assert_array_equal(state.labels, before.labels)
    for name, value in state.clusters._asdict().items():
        np.testing.assert_array_equal(value, getattr(before.clusters, name), err_msg=name)


def test_a_state_from_sums_has_the_bound_and_the_merges_of_its_rows(make_problem):
    problem = make_problem(0, n_rows=30, n_clusters=4)
    whole = problem.build()
    sums = engine.from_sums(whole.clusters.counts, whole.clusters.sizes, beta=problem.beta, alpha=problem.alpha)
    assert engine.bound(sums) == engine.bound(whole)
    np.testing.assert_allclose(engine.merge_path(sums).linkage, engine.merge_path(whole).linkage, rtol=1e-12)


def test_merging_once_and_splitting_once_change_the_number_of_clusters_by_one(make_problem):
    problem = make_problem(0, n_rows=30, n_clusters=4)
    state = problem.build()
    merged, split = engine.merge_once(state), engine.split_once(state, tol=1e-10)
    assert (np.bincount(merged, minlength=3) > 0).all()
    assert len(np.bincount(merged)) == 3
    assert (np.bincount(split, minlength=5) > 0).all()
    assert len(np.bincount(split)) == 5
    assert problem.scratch_bound(merged) == pytest.approx(engine.merge_path(state).bounds[2], rel=1e-10)


def test_identical_rows_are_split_into_something(make_problem):
    problem = make_problem(0, n_rows=12)
    problem = problem._replace(X=np.tile(problem.X[0], (12, 1)))
    assert (np.bincount(engine.split_once(problem.build(), tol=1e-10), minlength=4) > 0).all()


@pytest.mark.parametrize("n_clusters", [0, 5, -1])
def test_a_number_of_groups_out_of_range_raises(make_problem, n_clusters):
    path = engine.merge_path(make_problem(0, n_clusters=4, n_rows=20).build())
    with pytest.raises(ValueError, match="n_clusters"):
        path.groups(n_clusters)
