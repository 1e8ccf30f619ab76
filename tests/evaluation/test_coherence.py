"""Coherence agrees with its definition and with gensim; diversity counts shared features."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from mmpca.evaluation import topic_coherence, topic_diversity

WORDS = [f"w{v:02d}" for v in range(12)]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).poisson(0.8, size=(60, 12))


@pytest.fixture(scope="module")
def topics():
    return np.random.default_rng(1).dirichlet(np.ones(12), size=3)


def gensim_coherence(X, topics, measure, n_words):
    """Return the coherence of gensim's CoherenceModel, with a window longer than any text."""
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

    texts = [[WORDS[v] for v in np.repeat(np.arange(12), row)] for row in X]
    dictionary = Dictionary(texts)
    leading = [[WORDS[v] for v in np.argsort(-topic)[:n_words]] for topic in topics]
    how = (
        {"corpus": [dictionary.doc2bow(text) for text in texts]}
        if measure == "u_mass"
        else {"texts": texts, "window_size": 10_000, "processes": 1}
    )
    return CoherenceModel(topics=leading, dictionary=dictionary, coherence=measure, **how).get_coherence_per_topic()


@pytest.mark.filterwarnings("ignore")  # warnings of gensim
def test_umass_agrees_with_gensim(X, topics):
    # gensim adds 1e-12 to the probability of a pair, not a row to its number.
    found = topic_coherence(topics, X, measure="umass", n_words=6, smoothing=1e-12 * len(X))
    np.testing.assert_allclose(found, gensim_coherence(X, topics, "u_mass", 6), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_npmi_agrees_with_gensim(X, topics):
    found = topic_coherence(topics, X, measure="npmi", n_words=6)
    np.testing.assert_allclose(found, gensim_coherence(X, topics, "c_npmi", 6), rtol=1e-8, atol=1e-9)


def test_coherence_agrees_with_its_definition_pair_by_pair(X, topics):
    has = X > 0
    for measure in ("npmi", "umass"):
        expected = []
        for topic in topics:
            values = []
            for b, a in combinations(np.argsort(-topic)[:4], 2):
                together, n = (has[:, a] & has[:, b]).sum(), len(X)
                first, second = has[:, b].sum(), has[:, a].sum()
                if measure == "npmi":
                    values.append(np.log(together * n / first / second) / -np.log(together / n))
                else:
                    values.append(np.log((together + 1) / first))
            expected.append(np.mean(values))
        np.testing.assert_allclose(topic_coherence(topics, X, measure=measure, n_words=4), expected)


def test_sparse_and_dense_counts_give_the_same(X, topics):
    for form in (sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_array_equal(topic_coherence(topics, form(X)), topic_coherence(topics, X))


def test_counts_beyond_one_and_the_order_of_rows_do_not_matter(X, topics):
    np.testing.assert_allclose(topic_coherence(topics, np.minimum(X, 1)[::-1]), topic_coherence(topics, X))


def test_features_of_every_row_are_independent():
    assert topic_coherence([[0.5, 0.5, 0.0]], [[1, 2, 1], [3, 1, 0]]) == [0.0]


def test_features_without_rows_are_skipped(X, topics):
    wide, empty = np.insert(topics, 5, 1.0, axis=1), np.insert(X, 5, 0, axis=1)
    np.testing.assert_allclose(topic_coherence(wide, empty), topic_coherence(topics, X))


def test_a_topic_of_one_feature_has_no_coherence():
    assert np.isnan(topic_coherence([[1.0, 0.0], [0.5, 0.5]], [[1, 0], [1, 1]]))[0]


def test_diversity_counts_shared_features_once(topics):
    assert topic_diversity(topics, n_words=1) == len(set(topics.argmax(axis=1))) / 3
    assert topic_diversity(np.vstack([topics[0]] * 4), n_words=5) == 0.25
    assert topic_diversity(np.eye(4), n_words=3) == 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"measure": "c_v"},
        {"n_words": 1},
        {"smoothing": 0},
        {"X": [[1, 2]]},
        {"topics": -np.eye(12)},
        {"topics": np.zeros((2, 12))},
        {"topics": [0.5] * 12},
    ],
)
def test_invalid_arguments_are_refused_by_name(X, topics, arguments):
    with pytest.raises(ValueError, match=rf"\b{next(iter(arguments))}\b"):
        topic_coherence(**({"topics": topics, "X": X} | arguments))
