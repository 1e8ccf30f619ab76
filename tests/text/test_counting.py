"""Words are counted like CountVectorizer does; settings survive JSON; words outside the vocabulary are counted."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from mmpca.errors import CountsError
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


def test_words_outside_the_vocabulary_are_counted():
    counter = CountTexts(stop_words=["the"]).fit(["cat dog"])
    counts = counter.count(["the cat the bird", "", "bird fish a", "dog dog"])
    np.testing.assert_array_equal(counts.X.toarray(), [[1, 0], [0, 0], [0, 0], [0, 2]])
    np.testing.assert_array_equal(counts.n_unseen, [1, 0, 2, 0])


def test_stop_words_are_preprocessed_like_the_texts():
    counter = CountTexts(stop_words=["Don't", "CAFÉ"], strip_accents="unicode").fit(TEXTS)
    assert not {"don", "cafe"} & set(counter.words_)


def test_short_words_are_ignored():
    assert set(CountTexts(min_length=4).fit(TEXTS).words_) == {"café", "agree"}
    assert "a" in CountTexts(min_length=1).fit(TEXTS).words_


def test_a_given_vocabulary_keeps_its_order():
    counter = CountTexts(vocabulary=["dog", "cat", "bird"])
    np.testing.assert_array_equal(counter.fit_transform(TEXTS).toarray(), [[0, 2, 0], [2, 0, 0], [1, 1, 0]])
    assert counter.get_feature_names_out().tolist() == ["dog", "cat", "bird"]


def test_words_that_cannot_be_found_cause_a_warning():
    with pytest.warns(UserWarning, match="Cat"):
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
    "changed",
    [
        {"token_pattern": "(a+)+"},
        {"min_df": 0},
        {"max_df": 1.5},
        {"max_df": True},
        {"max_df": float("nan")},
        {"stop_words": "french"},
        {"stop_words": [1]},
        {"ngram_range": [2, 1]},
        {"ngram_range": [1, 10**9]},
        {"ngram_range": None},
        {"vocabulary": ["a", "a"]},
        {"vocabulary": []},
        {"strip_accents": "all"},
        {"lowercase": 1},
        {"min_length": 0},
        {"words": ["a", 1]},
    ],
    ids=str,
)
def test_invalid_settings_are_rejected_by_name(changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        CountTexts.from_settings(CountTexts().settings() | changed)


def test_parameters_are_checked_in_fit():
    with pytest.raises(ValueError, match="min_length"):
        CountTexts(min_length="3").fit(TEXTS)


def test_input_that_is_not_a_list_of_texts_is_rejected():
    with pytest.raises(ValueError, match="list"):
        CountTexts().fit("a text")
    with pytest.raises(TypeError, match="text 1 "):
        CountTexts().fit(["a text", None])


def test_texts_without_any_words_are_rejected():
    with pytest.raises(CountsError):
        CountTexts(stop_words="english").fit(["the", "of"])


@pytest.mark.parametrize(("least", "most"), [(9, 1.0), (0.9, 0.5), (3, 2), (0.9, 1)])
def test_limits_that_leave_no_word_are_rejected(least, most):
    with pytest.raises(CountsError, match=f"min_df={least} and max_df={most} "):
        CountTexts(min_df=least, max_df=most).fit(["sun sea"] * 4)


def test_it_is_a_transformer_of_scikit_learn():
    counter = CountTexts(min_df=2, vocabulary=["cat"])
    assert clone(counter).get_params() == counter.get_params()
    pipeline = make_pipeline(CountTexts(), TfidfTransformer()).fit(TEXTS)
    assert pipeline.transform(["cat cat bird"]).shape == (1, len(pipeline[0].words_))
