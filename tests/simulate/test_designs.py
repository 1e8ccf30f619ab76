import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from mmpca.simulate import paper_design, sparse_topics
from mmpca.simulate.designs import ARTICLES, article_topics, read_article, tokenize


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


def test_the_paper_design_uses_its_arguments():
    data = paper_design(n_samples=30, length=20, noise=0.3, balance=0.5, random_state=1)
    np.testing.assert_array_equal(data.X.sum(axis=1), np.full(30, 20))
    assert data.noise == 0.3
    again = paper_design(n_samples=30, length=20, noise=0.3, balance=0.5, random_state=1)
    np.testing.assert_array_equal(data.X.toarray(), again.X.toarray())


def test_full_noise_removes_the_clusters_of_the_paper_design():
    clear, blurred = (paper_design(2000, noise=noise, random_state=0) for noise in (0.0, 1.0))
    for data, holds_difference in ((clear, True), (blurred, False)):
        table = [data.X[data.labels == q].sum(axis=0)[data.topics[1] > 0].sum() for q in range(6)]
        shares = np.array(table) / (250 * np.bincount(data.labels))
        assert (np.ptp(shares) > 0.3) == holds_difference


@pytest.mark.parametrize("balance", [0, -0.5, 1.2, np.nan, np.inf, "even", None])
def test_a_balance_outside_zero_to_one_raises(balance):
    with pytest.raises(ValueError, match="balance"):
        paper_design(10, balance=balance)


@pytest.mark.parametrize("length", [0, 2.5, np.array([3, 4])])
def test_a_length_that_is_not_one_positive_integer_raises(length):
    with pytest.raises(ValueError, match="length"):
        paper_design(2, length=length)


def test_sparse_topics_follow_the_dirichlet_distribution():
    # The first margin of a symmetric Dirichlet(a) over V features is Beta(a, (V - 1) a).
    for concentration in (0.05, 1.0, 3.0):
        topics = sparse_topics(4000, 10, concentration, random_state=0)
        for feature in (0, 9):
            fit = stats.kstest(topics[:, feature], stats.beta(concentration, 9 * concentration).cdf)
            assert fit.pvalue > 0.001
        # The covariance distinguishes a Dirichlet from independently normalized entries.
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
    ("name", "value"), [("n_topics", 0), ("n_features", "5"), ("concentration", 0.0), ("concentration", np.inf)]
)
def test_invalid_arguments_of_sparse_topics_raise(name, value):
    with pytest.raises(ValueError, match=name):
        sparse_topics(**{"n_topics": 2, "n_features": 5, name: value})


# --- the articles -----------------------------------------------------------------------------------------------

RAW_LENGTHS = {"royal_birth": 370, "black_holes": 1400, "uk_politics": 460, "cancer_medicine": 980}


def test_the_articles_have_the_order_of_the_paper():
    assert ARTICLES == ("royal_birth", "black_holes", "uk_politics", "cancer_medicine")


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_is_about_as_long_as_that_of_the_paper(name):
    n_words = len(read_article(name).split())
    assert n_words == pytest.approx(RAW_LENGTHS[name], rel=0.01)


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_is_plain_prose_without_contractions(name):
    text = read_article(name)
    assert text.isascii()
    assert "n't" not in text
    assert text.rstrip().endswith(".")


def test_tokenize_keeps_lower_case_words_of_three_letters_that_are_not_stop_words():
    assert tokenize("It is The END, of an A1b2cde-fgh; end!") == ["end", "cde", "fgh", "end"]
    assert tokenize("") == []


def test_the_vocabulary_is_about_as_large_as_that_of_the_paper():
    topics, words = article_topics()
    assert 905 <= len(words) <= 925
    assert topics.shape == (4, len(words))


def test_the_vocabulary_is_sorted_and_free_of_repeats_short_words_and_stop_words():
    words = article_topics()[1].tolist()
    assert words == sorted(set(words))
    assert all(len(word) >= 3 and word.isalpha() and word.islower() for word in words)
    assert ENGLISH_STOP_WORDS.isdisjoint(words)


def test_at_most_one_word_in_twenty_is_shared_by_two_articles():
    topics, _ = article_topics()
    assert ((topics > 0).sum(axis=0) > 1).mean() <= 0.05


def test_topics_are_the_relative_word_frequencies_of_the_articles():
    topics, words = article_topics()
    for topic, name in zip(topics, ARTICLES, strict=True):
        tokens = tokenize(read_article(name))
        expected = [tokens.count(word) / len(tokens) for word in words]
        np.testing.assert_allclose(topic, expected, rtol=1e-14)
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-14)


def test_every_word_belongs_to_a_topic():
    assert (article_topics()[0].sum(axis=0) > 0).all()


def test_the_cached_arrays_cannot_be_changed_by_a_caller():
    for array in article_topics():
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's error for a read-only array
            array[0] = array[-1]
