import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from mmpca.simulate.corpus import ARTICLES, article_topics, read_article, tokenise

RAW_LENGTHS = {"royal_birth": 370, "black_holes": 1400, "uk_politics": 460, "cancer_medicine": 980}


def test_the_articles_stand_in_the_order_of_the_paper():
    assert ARTICLES == ("royal_birth", "black_holes", "uk_politics", "cancer_medicine")


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_is_about_as_long_as_the_one_of_the_paper(name):
    n_words = len(read_article(name).split())
    assert n_words == pytest.approx(RAW_LENGTHS[name], rel=0.01)


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_is_plain_prose_without_contractions(name):
    text = read_article(name)
    assert text.isascii()
    assert "n't" not in text
    assert text.rstrip().endswith(".")


def test_tokenise_keeps_lower_case_words_of_three_letters_that_are_no_stop_words():
    assert tokenise("It is The END, of an A1b2cde-fgh; end!") == ["end", "cde", "fgh", "end"]
    assert tokenise("") == []


def test_the_vocabulary_is_as_large_as_the_one_of_the_paper():
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
        tokens = tokenise(read_article(name))
        expected = [tokens.count(word) / len(tokens) for word in words]
        np.testing.assert_allclose(topic, expected, rtol=1e-14)
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-14)


def test_every_word_belongs_to_a_topic():
    assert (article_topics()[0].sum(axis=0) > 0).all()


def test_the_cached_arrays_cannot_be_changed_by_a_caller():
    for array in article_topics():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]
