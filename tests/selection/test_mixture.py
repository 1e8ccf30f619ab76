"""Mixtures over topic counts: kernels, EM, and the choice of the number of clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mmpca.selection import kernels, mixture


def drawn(alphas, n_rows, length=120, seed=0):
    """Return Dirichlet-multinomial counts, (N, K), and their clusters."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % len(alphas)
    counts = np.array([rng.multinomial(length, rng.dirichlet(alphas[q])) for q in labels], dtype=float)
    return counts, labels


THREE = np.array([[16.0, 2.0, 2.0], [2.0, 16.0, 2.0], [2.0, 2.0, 16.0]])


@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_kernels_agree_with_plain_numpy(seed):
    rng = np.random.default_rng(seed)
    counts, alphas = rng.gamma(0.5, 20.0, (7, 4)) + 1e-3, rng.gamma(0.3, 30.0, (3, 4)) + 1e-3
    weights, totals = rng.dirichlet(np.ones(3), 7), counts.sum(axis=1)
    joint, step = np.empty((7, 3)), np.empty((3, 4))
    kernels.log_densities(counts, totals, alphas, np.ones((7, 3), dtype=bool), joint)
    np.testing.assert_allclose(joint, mixture.plain_log_densities(counts, alphas), rtol=1e-9, atol=1e-8)
    kernels.newton_step(counts, totals, weights, alphas, 0.0, step)
    np.testing.assert_allclose(step, mixture.plain_newton_step(counts, weights, alphas), rtol=1e-5, atol=1e-6)


def test_densities_of_all_counts_sum_to_one():
    counts = np.array([[i, 4 - i] for i in range(5)], dtype=float)
    coefficients = np.array([1, 4, 6, 4, 1])
    densities = np.exp(mixture.plain_log_densities(counts, np.array([[0.7, 2.0]])))[:, 0]
    assert coefficients @ densities == pytest.approx(1.0)


def test_em_never_lowers_the_likelihood():
    counts, _ = drawn(THREE, 90)
    problem = mixture._Problem.of(counts)
    now = problem.from_labels(np.random.default_rng(1).integers(0, 3, 90).astype(np.int32), 3)
    for _ in range(15):
        new = problem.run(now, 1)
        assert new.log_likelihood >= now.log_likelihood - 1e-9
        now = new


def test_it_recovers_clusters_and_their_parameters():
    counts, labels = drawn(THREE, 900)
    fit = mixture.fit_mixture(counts, 3, np.random.default_rng(0))
    assert adjusted_rand_score(labels, fit.labels) > 0.95
    order = fit.alphas.argmax(axis=1).argsort()
    np.testing.assert_allclose(fit.alphas[order], THREE, rtol=0.3)
    np.testing.assert_allclose(fit.weights, 1 / 3, atol=0.02)


def test_the_order_of_the_rows_does_not_matter():
    counts, _ = drawn(THREE, 90)
    order = np.random.default_rng(3).permutation(90)
    one, other = (mixture.fit_mixture(x, 3, np.random.default_rng(0)) for x in (counts, counts[order]))
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-6)


def test_every_cluster_has_a_mode():
    corners = np.repeat(60.0 * np.eye(3), 30, axis=0) + 0.5  # rows of one topic each
    fit = mixture.fit_mixture(corners, 1, np.random.default_rng(0))
    assert fit.alphas.max() >= mixture.LEAST_MODE - 1e-12
    path = mixture.mixture_path(corners, np.random.default_rng(0))
    assert max(path, key=lambda q: path[q].bic) == 3


@pytest.mark.parametrize("n_clusters", [1, 3])
def test_the_path_ends_beyond_the_best_number(n_clusters):
    counts, _ = drawn(THREE[:n_clusters], 300)
    path = mixture.mixture_path(counts, np.random.default_rng(0))
    assert max(path, key=lambda q: path[q].bic) == n_clusters
    assert list(path) == list(range(1, n_clusters + mixture.PATIENCE + 1))


def test_given_numbers_are_fitted_and_no_others():
    counts, _ = drawn(THREE, 60)
    assert list(mixture.mixture_path(counts, np.random.default_rng(0), (2, 5))) == [2, 5]


@pytest.mark.parametrize("counts", [np.ones((4, 1)), np.ones((3, 5)), np.array([[9.0, 0.0]]), 1e6 * np.eye(3)])
def test_awkward_counts_have_a_path(counts):
    path = mixture.mixture_path(counts, np.random.default_rng(0))
    assert min(path) == 1
    assert all(np.isfinite(fit.log_likelihood) for fit in path.values())


def test_true_clusters_are_found_again_and_arbitrary_ones_are_not():
    counts, labels = drawn(THREE, 300)
    assert (mixture.found_again(counts, labels.astype(np.int32), np.random.default_rng(0)) > 0.8).all()
    random = np.random.default_rng(1).permutation(labels).astype(np.int32)
    assert (mixture.found_again(counts, random, np.random.default_rng(0)) < mixture.FOUND).all()
