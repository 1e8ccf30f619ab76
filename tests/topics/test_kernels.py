"""Each compiled function equals the NumPy expression named in its docstring."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mmpca.counts import as_counts
from mmpca.topics import em, kernels


def random_rows(seed, n_rows=12, n_features=15, largest=9):
    """Return counts without an empty row."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, (n_rows, n_features)) * rng.integers(0, 2, (n_rows, n_features))
    X[np.arange(n_rows), rng.integers(0, n_features, n_rows)] += 1
    return as_counts(X)


def random_topics(seed, n_features=15, n_topics=3):
    """Return topics, (V, K)."""
    return np.ascontiguousarray(np.random.default_rng(seed).dirichlet(np.ones(n_features), n_topics).T)


CASES = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 5), st.sampled_from([1, 6, 1_000_000])
).map(lambda case: (random_rows(case[0], n_rows=case[1], largest=case[3]), random_topics(case[0], n_topics=case[2])))


def test_digamma_agrees_with_scipy():
    x = np.concatenate([np.geomspace(1e-8, 1e12, 400), np.linspace(0.5, 20, 400)])
    found = np.array([kernels.digamma(value) for value in x])
    np.testing.assert_allclose(found, special.digamma(x), rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(CASES)
def test_expected_counts_are_those_of_em_rounded(case):
    rows, beta_rows = case
    X, scale = rows.to_csr().toarray().astype(float), 2.0**20
    theta = np.random.default_rng(0).dirichlet(np.ones(beta_rows.shape[1]), rows.n_rows)
    joint = theta[:, None] * beta_rows  # (N, V, K)
    expected = X[:, :, None] * joint / joint.sum(axis=2, keepdims=True)
    counts = np.zeros_like(beta_rows)
    kernels.gather_topics(rows, 0, rows.n_rows, theta, beta_rows, scale, counts)
    np.testing.assert_allclose(counts / scale, expected.sum(axis=0), rtol=1e-12, atol=rows.n_rows / scale)
    np.testing.assert_array_equal(counts, np.rint(counts))


@settings(max_examples=40, deadline=None)
@given(CASES)
def test_products_and_positions_are_those_of_the_matrices(case):
    rows, basis = case
    X, scale = rows.to_csr().toarray().astype(float), 2.0**10
    positions = X @ basis / X.sum(axis=1, keepdims=True)
    some = np.arange(rows.n_rows)[::2]
    points, counts = np.empty((len(some), basis.shape[1])), np.zeros_like(basis)
    kernels.project(rows, some, basis, points)
    np.testing.assert_allclose(points, positions[some], rtol=1e-12)
    kernels.gather_products(rows, some, basis, scale, counts)
    np.testing.assert_array_equal(counts, X[some].T @ np.floor(points * scale + 0.5))


def test_a_row_without_counts_is_at_the_origin():
    rows = as_counts([[0, 0], [3, 1]], empty_rows="allow")
    points = np.full((2, 1), np.nan)
    kernels.project(rows, np.arange(2), np.array([[1.0], [5.0]]), points)
    np.testing.assert_array_equal(points, [[0.0], [2.0]])


def test_rows_are_added_to_the_nearest_center():
    rows, basis = random_rows(0, n_rows=50), np.random.default_rng(0).standard_normal((15, 2))
    centers = np.array([[0.0, 0.1], [0.1, -0.1], [0.1, -0.1]])
    X = rows.to_csr().toarray()
    positions = X @ basis / X.sum(axis=1, keepdims=True)
    nearest = ((positions[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)  # the first, if there are ties
    counts = np.zeros((15, 3))
    kernels.gather_nearest(rows, np.arange(50), basis, centers, counts)
    np.testing.assert_array_equal(counts, np.stack([X[nearest == k].sum(axis=0) for k in range(3)], axis=1))
    assert set(nearest.tolist()) == {0, 1}


@settings(max_examples=30, deadline=None)
@given(
    CASES,
    st.sampled_from([0.1, 1.0, 20.0]),
    st.booleans(),
    st.sampled_from([(1e-6, 200), (1e-2, 200), (0.0, 1), (0.0, 7)]),
)
def test_fitted_and_expected_shares_equal_those_in_numpy(case, prior, is_even, limits):
    rows, beta_rows = case
    tol, max_iter = limits
    theta = np.empty((rows.n_rows, beta_rows.shape[1]))
    own = np.empty((np.diff(rows.indptr).max(), beta_rows.shape[1]))
    kernels.fit_shares(rows, 0, rows.n_rows, beta_rows, prior, tol, max_iter, own, theta)
    expected = em.plain_fitted_shares(rows, beta_rows, prior, tol=tol, max_iter=max_iter)
    np.testing.assert_allclose(theta, expected, rtol=1e-7, atol=1e-10)
    gamma, alpha = np.empty_like(theta), prior * np.arange(1.0, 1.0 + beta_rows.shape[1]) ** (not is_even)
    kernels.fold_in(rows, np.arange(rows.n_rows), beta_rows, alpha, tol, max_iter, gamma)
    expected = em.plain_topic_shares(rows, beta_rows.T, prior=alpha, tol=tol, max_iter=max_iter)
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), expected, rtol=1e-7, atol=1e-10)


def test_logarithms_of_products_do_not_underflow():
    """Thousands of tiny factors, and counts on both sides of the limit up to which products are used."""
    rows = as_counts(np.tile(np.arange(1, 9), (400, 1)))
    problem = em.Problem(rows, np.ones(8, dtype=bool), 1.0, 0.1)
    beta_rows = np.array([1e-80, 1e-70, 1e-50, 1e-30, 1e-20, 1e-10, 1e-5, 1.0])[:, None] * np.ones(2)
    mixture = em.Mixture(np.full((400, 2), 0.5), beta_rows)
    _, value = em.em_step(problem, mixture, is_scored=True)
    assert value == pytest.approx(em.plain_step(problem, mixture)[1], rel=1e-12)
