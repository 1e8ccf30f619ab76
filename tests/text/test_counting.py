"""Words are counted as CountVectorizer does it; settings survive JSON; unseen words are passed over and counted."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from mmpca import MMPCA
from mmpca.text import CountTexts

TEXTS = ["The cat sat. The CAT!", "A dog; the café of a dog", "cat and dog don't agree"]

OPTIONS = [
    {},
    {"min_df": 2},
    {"min_df": 0.5, "max_df": 0.9},
    {"stop_words": "english"},
    {"ngram_range": (1, 3)},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "lowercase": False},
    {"max_df": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_counts_are_those_of_count_vectorizer(options):
    expected = CountVectorizer(**options)
    counter = CountTexts(**options)
    X = counter.fit_transform(TEXTS)
    np.testing.assert_array_equal(X.toarray(), expected.fit_transform(TEXTS).toarray())
    np.testing.assert_array_equal(counter.get_feature_names_out(), expected.get_feature_names_out())
    np.testing.assert_array_equal(counter.transform(TEXTS).toarray(), X.toarray())
    assert isinstance(X, sparse.csr_array)
    assert X.dtype == np.int32


def test_unseen_words_are_passed_over_and_counted():
    counter = CountTexts(stop_words=["the"]).fit(["cat dog"])
    counts = counter.count(["the cat the bird", "", "bird fish a", "dog dog"])
    np.testing.assert_array_equal(counts.X.toarray(), [[1, 0], [0, 0], [0, 0], [0, 2]])
    np.testing.assert_array_equal(counts.n_unseen, [1, 0, 2, 0])


def test_stop_words_are_prepared_as_the_texts_are():
    counter = CountTexts(stop_words=["Don't", "CAFÉ"], strip_accents="unicode").fit(TEXTS)
    assert not {"don", "cafe"} & set(counter.words_)


def test_short_words_are_left_out():
    assert set(CountTexts(min_length=4).fit(TEXTS).words_) == {"café", "agree"}
    assert "a" in CountTexts(min_length=1).fit(TEXTS).words_


def test_a_given_vocabulary_keeps_its_order():
    counter = CountTexts(vocabulary=["dog", "cat", "bird"])
    np.testing.assert_array_equal(counter.fit_transform(TEXTS).toarray(), [[0, 2, 0], [2, 0, 0], [1, 1, 0]])
    assert counter.get_feature_names_out().tolist() == ["dog", "cat", "bird"]


def test_words_that_no_text_can_contain_are_warned_of():
    with pytest.warns(UserWarning, match=r"2 of 3 words of the vocabulary can never be found, among them 'Cat'"):
        CountTexts(vocabulary=["dog", "Cat", "x-ray"]).fit(TEXTS)


@settings(max_examples=50, deadline=None)
@given(
    texts=st.lists(st.text(), min_size=1, max_size=5),
    new=st.lists(st.text(), max_size=5),
    options=st.sampled_from([option for option in OPTIONS if not {"min_df", "max_df"} & set(option)]),
)
def test_settings_survive_json(texts, new, options):
    counter = CountTexts(**options).fit([*texts, "one word"])
    again = CountTexts.from_settings(json.loads(json.dumps(counter.settings())))
    expected, counts = counter.count(new or ["word"]), again.count(new or ["word"])
    np.testing.assert_array_equal(counts.X.toarray(), expected.X.toarray())
    np.testing.assert_array_equal(counts.n_unseen, expected.n_unseen)
    assert again.settings() == counter.settings()


@pytest.mark.parametrize(
    "options", [{"stop_words": ("the", "a")}, {"vocabulary": np.array(["dog"])}, {"min_df": np.int64(2)}]
)
def test_settings_are_plain_whatever_the_parameters_were(options):
    counter = CountTexts(**options).fit(TEXTS)
    again = CountTexts.from_settings(json.loads(json.dumps(counter.settings())))
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), counter.transform(TEXTS).toarray())


def test_settings_before_the_fit_have_no_words():
    assert "words" not in CountTexts().settings()
    assert not hasattr(CountTexts.from_settings(CountTexts(min_df=3).settings()), "words_")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token_pattern": "(a+)+"}, "Unknown setting of texts 'token_pattern'"),
        ({"min_df": 0}, "min_df must be a number of texts of at least 1"),
        ({"max_df": 1.5}, "max_df must be"),
        ({"max_df": True}, "max_df must be"),
        ({"stop_words": "french"}, "stop_words must be"),
        ({"stop_words": [1]}, "stop_words must be"),
        ({"ngram_range": [2, 1]}, "ngram_range must be two numbers"),
        ({"ngram_range": [1, 10**9]}, "ngram_range must be"),
        ({"vocabulary": ["a", "a"]}, "vocabulary must be a list of at least one word, none repeated"),
        ({"vocabulary": []}, "vocabulary must be"),
        ({"strip_accents": "all"}, "strip_accents must be"),
        ({"lowercase": 1}, "lowercase must be True or False"),
        ({"min_length": 0}, "min_length must be"),
        ({"words": ["a", 1]}, "words must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("+", r"\+")):
        CountTexts.from_settings(CountTexts().settings() | changed)


def test_parameters_are_checked_in_fitting():
    with pytest.raises(ValueError, match="min_length must be a number of characters"):
        CountTexts(min_length="3").fit(TEXTS)


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(ValueError, match=r"a single one\. Put it into a list"):
        CountTexts().fit("a text")
    with pytest.raises(TypeError, match="text 1 is None"):
        CountTexts().fit(["a text", None])
    with pytest.raises(ValueError, match="empty vocabulary"):
        CountTexts(stop_words="english").fit(["the", "of"])


@pytest.mark.parametrize(("least", "most"), [(9, 1.0), (0.9, 0.5), (3, 2), (0.9, 1)])
def test_limits_that_leave_no_word_are_told(least, most):
    with pytest.raises(ValueError, match=rf"min_df={least} and max_df={most} leave no word: of 4 texts"):
        CountTexts(min_df=least, max_df=most).fit(["sun sea"] * 4)


def test_it_is_a_transformer_of_scikit_learn():
    counter = CountTexts(min_df=2, vocabulary=["cat"])
    assert clone(counter).get_params() == counter.get_params()
    model = make_pipeline(CountTexts(), MMPCA(2, 2, n_init=1, random_state=0)).fit(TEXTS * 5)
    assert model.predict(["cat cat bird"]).shape == (1,)
