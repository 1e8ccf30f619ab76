"""Mixtures over topic counts: kernels, EM, and the choice of the number of clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mmpca.counts import as_counts
from mmpca.selection import kernels, mixture


def drawn(alphas, n_rows, length=120, seed=0):
    """Return Dirichlet-multinomial counts, (N, K), and their clusters."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % len(alphas)
    counts = np.array([rng.multinomial(length, rng.dirichlet(alphas[q])) for q in labels], dtype=float)
    return counts, labels


THREE = np.array([[16.0, 2.0, 2.0], [2.0, 16.0, 2.0], [2.0, 2.0, 16.0]])


@given(st.integers(0, 2**31), st.sampled_from([1, 4, 90]))  # with 90 topics, products of small terms may overflow
@settings(max_examples=20, deadline=None)
def test_kernels_agree_with_plain_numpy(seed, n_topics):
    rng = np.random.default_rng(seed)
    counts, alphas = rng.gamma(0.5, 20.0, (7, n_topics)) + 1e-3, rng.gamma(0.3, 30.0, (3, n_topics)) + 1e-3
    weights, totals = rng.dirichlet(np.ones(3), 7), counts.sum(axis=1)
    joint, step = np.empty((7, 3)), np.empty((3, n_topics))
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


# --- noise of topic shares --------------------------------------------------------------------------------------


def bursty(n_rows=200, seed=0):
    """Draw negative binomial counts in three clusters, one for each topic; return them and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(100, 0.5), 3)
    shares = (0.2 + 0.4 * np.eye(3))[np.arange(n_rows) % 3]
    return as_counts(rng.negative_binomial(0.5, 0.5 / (0.5 + 2000 * shares @ topics))), topics


def test_rows_without_bursts_and_overlap_have_no_additional_noise():
    rng = np.random.default_rng(0)
    beta = np.repeat(np.eye(4), 25, axis=1) / 25
    rows = as_counts(rng.multinomial(200, rng.dirichlet(np.ones(4), 300) @ beta))
    assert mixture.noise_factor(rows, beta, rng) == pytest.approx(1.0, abs=0.1)


def test_topics_that_overlap_add_noise():
    rng = np.random.default_rng(0)
    beta = 0.3 * np.repeat(np.eye(4), 25, axis=1) / 25 + 0.7 / 100
    rows = as_counts(rng.multinomial(1000, rng.dirichlet(np.ones(4), 300) @ beta))
    assert mixture.noise_factor(rows, beta, rng) > 3.0


def test_the_noise_factor_is_that_of_shares_around_their_truth():
    rng = np.random.default_rng(0)
    beta, theta = np.repeat(np.eye(3), 60, axis=1) / 60, np.array([0.2, 0.3, 0.5])
    rows = as_counts(np.array([rng.multinomial(3000, rng.dirichlet(100 * theta @ beta)) for _ in range(400)]))
    shares = mixture.topic_counts(rows, beta) / 3000
    actual = ((shares - theta) ** 2).sum(axis=1).mean() / ((1 - theta @ theta) / 3000)
    assert mixture.noise_factor(rows, beta, rng) == pytest.approx(actual, rel=0.15)


def test_the_right_number_is_found_among_bursts_only_if_their_noise_is_known():
    rows, topics = bursty()
    factor = mixture.noise_factor(rows, topics, np.random.default_rng(0))
    best = {}
    for name, value in (("counts", 1.0), ("scaled", factor)):
        path = mixture.mixture_path(mixture.topic_counts(rows, topics, value), np.random.default_rng(0))
        best[name] = max(path, key=lambda q: path[q].bic)
    assert best["scaled"] == 3 != best["counts"]


def test_topic_counts_add_up_to_the_scaled_totals():
    rows, topics = bursty(20)
    np.testing.assert_allclose(mixture.topic_counts(rows, topics, 7.0).sum(axis=1), rows.row_totals() / 7.0)


@pytest.mark.parametrize("X", [[[5, 0, 0]], [[1, 0, 0], [0, 1, 0]], [[4, 0, 3], [0, 2, 2]]])
def test_awkward_rows_have_a_noise_factor(X):
    beta = np.array([[0.6, 0.4, 0.0], [0.0, 0.3, 0.7]])
    assert 1.0 <= mixture.noise_factor(as_counts(X), beta, np.random.default_rng(0)) < np.inf
    assert mixture.noise_factor(as_counts(X), np.full((1, 3), 1 / 3), np.random.default_rng(0)) == 1.0


def test_errors_of_a_path_are_those_of_sums_of_differences_between_rows():
    counts, _ = drawn(THREE, 60)
    path = mixture.mixture_path(counts, np.random.default_rng(0), (2, 3))
    scores = {n: np.log(np.exp(one.joint).sum(axis=1)) for n, one in path.items()}
    assert scores[3].sum() == pytest.approx(path[3].log_likelihood)
    expected = np.sqrt(60) * (scores[3] - scores[2]).std()
    np.testing.assert_allclose(mixture.errors_against(3, path), [expected, 0.0])


def test_clusters_of_all_rows_are_those_of_the_sample_and_none_is_empty():
    rng = np.random.default_rng(0)
    counts = np.vstack([rng.multinomial(60, rng.dirichlet(alpha), 60) for alpha in ([9, 1, 1], [1, 9, 1], [1, 1, 9])])
    found = mixture.fit_mixture(counts[::2].astype(float), 3, rng)
    labels = mixture.labels_of(counts.astype(float), found, rng)
    np.testing.assert_array_equal(labels[::2], found.labels)
    assert set(mixture.labels_of(counts[:3].astype(float), found, rng)) == {0, 1, 2}
