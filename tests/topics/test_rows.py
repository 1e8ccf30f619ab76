"""Rows in topic space: the kernel's fixed point is the one in plain NumPy."""

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.engine.bound import responsibilities, ve_step
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import topic_shares


@pytest.fixture(scope="module")
def data():
    topics = sparse_topics(3, 30, 0.3, random_state=1)
    theta = np.random.default_rng(1).dirichlet(np.ones(3), size=10)
    lengths = np.repeat([1, 3, 50, 1000], 10)
    return simulate_mmpca(40, topics=topics, cluster_topics=theta, lengths=lengths, random_state=1)


def fixed_point(x, beta, prior, tol, max_iter):
    """Return gamma after the iteration that the kernel is documented to make."""
    gamma = np.full(len(beta), prior + x.sum() / len(beta))
    for _ in range(max_iter):
        previous, gamma = gamma, prior + x @ responsibilities(beta, gamma)
        if np.abs(gamma - previous).max() <= tol * (x.sum() + 1):
            break
    return gamma


def shares_of(gamma):
    return gamma / gamma.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("prior", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("tol", "max_iter"), [(1e-6, 200), (1e-2, 200), (0.0, 1), (0.0, 7)])
def test_shares_equal_the_fixed_point_in_numpy(data, prior, tol, max_iter):
    X = data.X.toarray().astype(float)
    expected = [fixed_point(x, data.topics, prior, tol, max_iter) for x in X]
    shares = topic_shares(as_counts(data.X), data.topics, prior=prior, tol=tol, max_iter=max_iter)
    np.testing.assert_allclose(shares, shares_of(np.array(expected)), rtol=1e-9)


@pytest.mark.parametrize("prior", [0.1, 1.0, 20.0])
def test_shares_iterated_long_enough_equal_the_ve_step(data, prior):
    gamma = np.array([ve_step(x, beta=data.topics, alpha=prior) for x in data.X.toarray().astype(float)])
    shares = topic_shares(as_counts(data.X), data.topics, prior=prior, tol=1e-13, max_iter=100_000)
    np.testing.assert_allclose(shares, shares_of(gamma), atol=1e-9)


def test_shares_sum_to_one_and_are_positive(data):
    shares = topic_shares(as_counts(data.X), data.topics, prior=0.5)
    assert shares.shape == (40, 3)
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_long_rows_have_nearly_the_shares_that_they_were_drawn_with(data):
    shares = topic_shares(as_counts(data.X), data.topics, prior=1.0)
    assert np.abs(shares[30:] - data.cluster_topics[data.labels[30:]]).max() < 0.1


def test_a_strong_prior_pulls_all_rows_to_equal_shares(data):
    shares = topic_shares(as_counts(data.X), data.topics, prior=1e7)
    np.testing.assert_allclose(shares, 1 / 3, atol=1e-3)


def test_one_topic_has_all_of_every_row(data):
    shares = topic_shares(as_counts(data.X), data.topics[:1], prior=1.0)
    np.testing.assert_array_equal(shares, np.ones((40, 1)))


def test_rows_without_counts_have_equal_shares(data):
    rows = as_counts(np.zeros((2, 30), dtype=int), empty_rows="allow")
    np.testing.assert_allclose(topic_shares(rows, data.topics, prior=0.3), np.full((2, 3), 1 / 3), rtol=1e-12)


def test_features_that_no_topic_knows_are_passed_over(data):
    """A row keeps its length for where the iteration starts and stops, so the shares agree but for that."""
    X = data.X.toarray()
    topics = np.hstack([data.topics, np.zeros((3, 1))])
    unknown = np.hstack([X, np.arange(40)[:, None]])
    options = {"prior": 1.0, "tol": 1e-12, "max_iter": 10_000}
    expected = topic_shares(as_counts(X), data.topics, **options)
    np.testing.assert_allclose(topic_shares(as_counts(unknown), topics, **options), expected, atol=1e-9)


def test_shares_do_not_depend_on_the_order_of_rows_or_topics(data):
    rows, order = as_counts(data.X), np.random.default_rng(0).permutation(40)
    shares = topic_shares(rows, data.topics, prior=1.0)
    np.testing.assert_array_equal(topic_shares(rows.take(order), data.topics, prior=1.0), shares[order])
    turned = topic_shares(rows, data.topics[[2, 0, 1]], prior=1.0)
    np.testing.assert_allclose(turned, shares[:, [2, 0, 1]], rtol=1e-9)


def test_the_largest_counts_have_finite_shares(data):
    X = data.X.toarray()
    huge = as_counts(X.astype(np.int64) * ((2**31 - 1) // X.max()))
    shares = topic_shares(huge, data.topics, prior=1.0)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
