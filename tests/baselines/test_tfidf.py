from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import NMFClustering, SphericalKMeans
from mmpca.baselines.base import kmeans_partitions, random_partition, unit_tfidf
from mmpca.baselines.tfidf import mean_directions, run_spherical, spread_rows
from mmpca.counts import as_counts

TINY_X = np.array([[7, 1, 0], [5, 2, 1], [9, 1, 1], [0, 3, 8], [1, 1, 5], [2, 8, 1], [1, 4, 1]])


def test_tfidf_agrees_with_its_definition():
    frequencies = (TINY_X > 0).sum(axis=0)
    weighted = TINY_X * (np.log((1 + 7) / (1 + frequencies)) + 1)
    expected = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)
    np.testing.assert_allclose(unit_tfidf(as_counts(TINY_X)).toarray(), expected)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_finds_the_best_of_all_partitions_of_a_tiny_case(n_clusters):
    units = unit_tfidf(as_counts(TINY_X)).toarray()
    tried = [np.array(y) for y in product(range(n_clusters), repeat=7) if len(set(y)) == n_clusters]
    # The cosines of the rows with their mean direction add up to the length of their sum.
    best = max(sum(np.linalg.norm(units[y == q].sum(axis=0)) for q in range(n_clusters)) for y in tried)
    assert SphericalKMeans(n_clusters, random_state=0).fit(TINY_X).objective_ == pytest.approx(best)


def test_centers_are_the_mean_directions_of_their_rows(make_blocks):
    sample = make_blocks()
    model = SphericalKMeans(3, random_state=0).fit(sample.X)
    units = unit_tfidf(as_counts(sample.X))
    assert model.converged_
    np.testing.assert_allclose(model.cluster_centers_, mean_directions(units, model.labels_, 3))
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_decreases_and_no_cluster_is_empty(seed):
    rows = as_counts(np.random.default_rng(seed).integers(0, 3, size=(30, 8)) + np.eye(30, 8, dtype=int) + 1)
    units = unit_tfidf(rows)
    # With equal directions, all clusters but one are empty at first.
    centers = np.repeat(spread_rows(units, 1, seed), 9, axis=0)
    run = run_spherical(units, centers, max_iter=100)
    assert np.all(np.diff(run.history) >= -1e-12)
    assert len(np.unique(run.labels)) == 9


def test_a_run_ends_after_max_iter_assignments(make_blocks):
    model = SphericalKMeans(3, max_iter=1, n_init=1, random_state=0).fit(make_blocks(1, shortest=3, longest=5).X)
    assert model.n_iter_ == 1
    assert not model.converged_


def test_start_partitions_use_every_cluster(make_blocks):
    rows = as_counts(make_blocks(n_rows=10).X)
    identical = as_counts(np.tile([3, 1], (10, 1)))
    for n_clusters in (1, 2, 9, 10):
        for labels in [*kmeans_partitions(rows, n_clusters, [0, 1]), *kmeans_partitions(identical, n_clusters, [0, 1])]:
            assert len(np.unique(labels)) == n_clusters
        sizes = np.bincount(random_partition(10, n_clusters, 0))
        assert sizes.size == n_clusters
        assert sizes.max() - sizes.min() <= 1


def test_kmeans_starts_find_well_separated_clusters(make_blocks):
    sample = make_blocks()
    for labels in kmeans_partitions(as_counts(sample.X), 3, [0, 1]):
        assert adjusted_rand_score(sample.labels, labels) > 0.9


# --- non-negative matrix factorization --------------------------------------------------------------------------


def test_one_component_leaves_the_error_of_the_best_rank_one(make_blocks):
    X = make_blocks(n_rows=15).X
    values = np.linalg.svd(unit_tfidf(as_counts(X)).toarray(), compute_uv=False)
    # The leading singular vectors of a non-negative matrix are non-negative.
    model = NMFClustering(1, tol=1e-10, random_state=0).fit(X)
    assert model.reconstruction_error_ == pytest.approx(np.sqrt(np.sum(values[1:] ** 2)), rel=1e-6)


def test_error_and_labels_follow_from_weights_and_components(make_blocks):
    X = make_blocks().X
    model = NMFClustering(3, random_state=0).fit(X)
    residual = unit_tfidf(as_counts(X)).toarray() - model.weights_ @ model.components_
    assert model.reconstruction_error_ == pytest.approx(np.linalg.norm(residual))
    np.testing.assert_array_equal(model.labels_, model.weights_.argmax(axis=1))
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_rows_without_common_features_are_separated_exactly():
    X = np.kron(np.eye(3, dtype=int), [[2, 1], [4, 2], [6, 3]])
    model = NMFClustering(3, random_state=0).fit(X)
    assert len(set(model.labels_.reshape(3, 3)[:, 0])) == 3
    assert np.all(model.labels_.reshape(3, 3) == model.labels_.reshape(3, 3)[:, :1])
    assert model.reconstruction_error_ == pytest.approx(0, abs=1e-3)


def test_more_starts_do_not_raise_the_error(make_blocks):
    X = make_blocks(1, shortest=5, longest=10).X
    one, many = (NMFClustering(4, n_init=n, random_state=0).fit(X).reconstruction_error_ for n in (1, 6))
    assert many <= one


def test_reports_that_it_did_not_converge(make_blocks):
    assert not NMFClustering(3, max_iter=1, n_init=1, random_state=0).fit(make_blocks().X).converged_


def test_an_invalid_tolerance_raises():
    with pytest.raises(ValueError, match="tol"):
        NMFClustering(2, tol=-1).fit([[1], [2]])
