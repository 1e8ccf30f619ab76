import re

import numpy as np
import pytest
from scipy import stats

from mmpca.simulate import paper_design, sparse_topics
from mmpca.simulate.corpus import article_topics


def test_the_paper_design_has_its_size_and_the_words_of_the_articles():
    data = paper_design(random_state=0)
    topics, words = article_topics()
    assert data.X.shape == (400, len(words))
    np.testing.assert_array_equal(data.X.sum(axis=1), 250)
    np.testing.assert_array_equal(data.topics, topics)
    np.testing.assert_array_equal(data.feature_names, words)
    assert data.noise == 0


def test_the_paper_design_has_the_cluster_topics_of_the_paper():
    a, b, c = 0.5 / 1.01, 0.17 / 1.01, 0.17
    expected = [
        [a, b, b, b],
        [b, a, b, b],
        [b, b, a, b],
        [b, b, b, a],
        [0.33, c, 0.33, c],
        [c, 0.33, c, 0.33],
    ]
    np.testing.assert_allclose(paper_design(10).cluster_topics, expected, rtol=1e-14)


@pytest.mark.parametrize("balance", [1.0, 0.85, 0.7])
def test_each_cluster_of_the_paper_design_is_balance_times_as_frequent_as_the_next(balance):
    weights = paper_design(10, balance=balance).weights
    assert weights.shape == (6,)
    assert weights.sum() == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(weights[:-1] / weights[1:], balance, rtol=1e-12)


def test_the_paper_design_passes_its_arguments_on():
    data = paper_design(n_samples=30, length=20, noise=0.3, balance=0.5, random_state=1)
    np.testing.assert_array_equal(data.X.sum(axis=1), np.full(30, 20))
    assert data.noise == 0.3
    again = paper_design(n_samples=30, length=20, noise=0.3, balance=0.5, random_state=1)
    np.testing.assert_array_equal(data.X.toarray(), again.X.toarray())


def test_noise_takes_the_clusters_of_the_paper_design_away():
    clear, blurred = (paper_design(2000, noise=noise, random_state=0) for noise in (0.0, 1.0))
    for data, holds_difference in ((clear, True), (blurred, False)):
        table = [data.X[data.labels == q].sum(axis=0)[data.topics[1] > 0].sum() for q in range(6)]
        shares = np.array(table) / (250 * np.bincount(data.labels))
        assert (np.ptp(shares) > 0.3) == holds_difference


@pytest.mark.parametrize("balance", [0, -0.5, 1.2, np.nan, np.inf, "even", None])
def test_the_paper_design_refuses_a_balance_that_is_no_ratio(balance):
    message = f"balance must be a positive finite number of at most 1, got {balance!r}."
    with pytest.raises(ValueError, match=re.escape(message)):
        paper_design(10, balance=balance)


@pytest.mark.parametrize("length", [0, 2.5, np.array([3, 4])])
def test_the_paper_design_refuses_a_length_that_is_not_one_positive_integer(length):
    with pytest.raises(ValueError, match="length must be an integer of at least 1, got"):
        paper_design(2, length=length)


def test_sparse_topics_follow_the_dirichlet_distribution():
    # The first margin of a symmetric Dirichlet(a) over V features is Beta(a, (V - 1) a).
    for concentration in (0.05, 1.0, 3.0):
        topics = sparse_topics(4000, 10, concentration, random_state=0)
        for feature in (0, 9):
            fit = stats.kstest(topics[:, feature], stats.beta(concentration, 9 * concentration).cdf)
            assert fit.pvalue > 0.001
        # Their covariance tells a Dirichlet from entries that were normalised separately.
        expected = -(0.1**2) / (10 * concentration + 1)
        assert np.cov(topics[:, :2].T)[0, 1] == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("concentration", [1e-320, 1e-200, 1e-5, 0.001, 0.05, 1.0, 1e8, 1e300])
def test_sparse_topics_are_distributions_with_finite_logarithms_at_any_concentration(concentration):
    topics = sparse_topics(50, 200, concentration, random_state=0)
    assert topics.shape == (50, 200)
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(np.log(topics)).all()


def test_a_tiny_concentration_puts_a_topic_on_one_feature_and_a_huge_one_on_all():
    np.testing.assert_allclose(sparse_topics(20, 50, 1e-6, random_state=0).max(axis=1), 1)
    np.testing.assert_allclose(sparse_topics(20, 50, 1e12, random_state=0), 1 / 50, rtol=1e-4)


def test_sparse_topics_repeat_for_the_same_seed_only():
    first = sparse_topics(3, 40, random_state=5)
    np.testing.assert_array_equal(first, sparse_topics(3, 40, random_state=5))
    assert not np.array_equal(first, sparse_topics(3, 40, random_state=6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5), "n_topics must be an integer of at least 1, got 0."),
        ((2, "5"), "n_features must be an integer of at least 1, got '5'."),
        ((2, 5, 0.0), "concentration must be a positive finite number, got 0.0."),
        ((2, 5, np.inf), "concentration must be a positive finite number, got inf."),
    ],
)
def test_sparse_topics_refuses_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        sparse_topics(*arguments)
