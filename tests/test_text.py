"""Texts are read from lines, folders and columns; words are counted like CountVectorizer does."""

import gzip
import json
import sys
import unicodedata
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from mmpca.errors import CountsError, InputFileError, UnsegmentedTextWarning
from mmpca.text import CountTexts, read_texts

TEXT_LISTS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0")).map(lambda text: f"t {text}"),
    min_size=1,
    max_size=5,
)
quiet = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def write(path, content):
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


def assert_texts(read, texts, names):
    assert read.texts == texts
    assert read.names.tolist() == names


def test_one_text_on_each_line_without_empty_lines(tmp_path):
    path = write(tmp_path / "texts.txt", "\ufeffone two\n\n  \nthree, four\u2028five\r\nsix")
    assert_texts(read_texts(path), ["one two", "three, four\u2028five", "six"], ["1", "4", "5"])


def test_compressed_lines(tmp_path):
    (tmp_path / "texts.txt.gz").write_bytes(gzip.compress("één\ntwee\n".encode()))
    assert_texts(read_texts(tmp_path / "texts.txt.gz"), ["één", "twee"], ["1", "2"])


def test_folders_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "inner").mkdir()
    write(tmp_path / "b.txt", "two\nlines")
    write(tmp_path / "a.v1.txt", "one")
    write(tmp_path / "inner" / "c.txt", "")
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"four"))
    write(tmp_path / "notes.md", "not a text")
    write(tmp_path / "e.TXT", "five")
    read = read_texts(str(tmp_path))
    assert_texts(read, ["one", "two\nlines", "four", "five", ""], ["a.v1", "b", "d", "e", "inner/c"])


def test_names_come_from_a_column_or_count_records(tmp_path):
    path = write(tmp_path / "x.csv", 'ID,when,Text\na1,2020,"x, y\nz"\na2,2021,w\n')
    assert_texts(read_texts(path), ["x, y\nz", "w"], ["a1", "a2"])
    assert_texts(read_texts(path, column="when"), ["2020", "2021"], ["a1", "a2"])
    path = write(tmp_path / "x.tsv", 'anything\nx, y\n""\nz\n')
    assert_texts(read_texts(path), ["x, y", "", "z"], ["1", "2", "3"])
    path = write(tmp_path / "x.tsv", "anything\nx, y\n\nz\n")
    assert_texts(read_texts(path), ["x, y", "z"], ["1", "2"])
    path = write(tmp_path / "x.jsonl", '{"key": 7, "body": "x"}\n\n{"key": 8, "body": ""}\n')
    assert_texts(read_texts(path), ["x", ""], ["7", "8"])
    path = write(tmp_path / "x.jsonl", '{"n": 7, "body": "x"}\n\n{"n": 8, "body": "y"}\n')
    assert_texts(read_texts(path), ["x", "y"], ["1", "3"])


def test_long_texts_in_a_column_are_read(tmp_path):
    path = write(tmp_path / "x.csv", f"text\n{'word ' * 50_000}\n")
    assert len(read_texts(path).texts[0]) == 250_000


@quiet
@given(texts=TEXT_LISTS)
def test_json_lines_round_trip(tmp_path, texts):
    path = write(tmp_path / "x.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert read_texts(path).texts == texts


@quiet
@given(texts=TEXT_LISTS)
def test_columns_round_trip(tmp_path, texts):
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    path = write(tmp_path / "x.csv", "number;report\n" + "".join(f"{n};{text}\n" for n, text in enumerate(quoted)))
    assert read_texts(path).texts == texts


BAD = {
    "no text": ("x.txt", "\n \n", None),
    "ragged": ("x.csv", "id,text\na,b\nc,d,e\n", 3),
    "ragged below a text of two lines": ("x.csv", 'id,text\na,"b\nb"\nc,d,e\n', 4),
    "open quotes": ("x.csv", 'id,text\na,b\nc,"d\ne\n', 3),
    "header alone": ("x.csv", "id,text\n", None),
    "blank lines alone": ("x.csv", "\n\n", None),
    "no column of texts": ("x.csv", "when,where\na,b\n", None),
    "two columns of texts": ("x.csv", "text,body\na,b\n", None),
    "not JSON": ("x.jsonl", '{"text": "a"}\n{"text": b}\n', 2),
    "JSON of another kind": ("x.jsonl", '{"text": "a"}\n["b"]\n', 2),
    "key is missing": ("x.jsonl", '{"text": "a"}\n{"txt": "b"}\n', 2),
    "value is not a text": ("x.jsonl", '{"text": "a"}\n{"text": 5}\n', 2),
    "no objects": ("x.jsonl", "\n", None),
    "nested beyond reason": ("x.jsonl", "[" * 100_000, 1),
}


def assert_rejected(path, line=None, *, at=None, **options):
    with pytest.raises(InputFileError) as caught:
        read_texts(path, **options)
    assert (caught.value.path, caught.value.line) == (at or path, line)


@pytest.mark.parametrize(("name", "content", "line"), BAD.values(), ids=BAD)
def test_bad_texts_are_rejected(tmp_path, name, content, line):
    assert_rejected(write(tmp_path / name, content), line)


def test_other_encodings_missing_files_and_empty_folders_are_rejected(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("липы\nдни\n".encode("cp1251"))
    assert_rejected(path, 1)
    assert_rejected(tmp_path, 1, at=path)
    assert_rejected(tmp_path / "none.txt")
    (tmp_path / "empty").mkdir()
    assert_rejected(tmp_path / "empty")
    assert_rejected(tmp_path, column="text")
    assert_rejected(write(tmp_path / "x.csv", "a,b\n1,2\n"), column="texte")


# --- counting words ---------------------------------------------------------------------------------------------


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
        {"max_features": 0},
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


def test_a_data_frame_is_not_a_list_of_texts():
    with pytest.raises(ValueError, match="columns 'text'"):
        CountTexts().fit_transform(pd.DataFrame({"text": TEXTS, "id": range(3)}))
    assert CountTexts().fit(pd.DataFrame({"text": TEXTS})["text"]).words_.size


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_are_matched_however_they_are_encoded(form):
    encode = partial(unicodedata.normalize, form)
    counter = CountTexts(stop_words=[encode("très")]).fit(["café crème", "très bien"])
    assert counter.words_.tolist() == ["bien", "café", "crème"]
    assert counter.transform([encode("Café, très crème café")]).toarray().tolist() == [[0, 2, 1]]
    given = CountTexts(vocabulary=[encode("café")])
    assert given.fit_transform([encode("CAFÉ")]).toarray().tolist() == [[1]]


def test_only_the_most_frequent_words_are_counted():
    assert CountTexts(max_features=2).fit(["sun sun sea", "sea boat sun"]).words_.tolist() == ["sea", "sun"]


def test_stop_words_of_many_languages(monkeypatch):
    texts = ["Der Hund und die Katze", "Die Katze schläft nicht"]
    for language in ("german", "German", "de"):
        counter = CountTexts(stop_words=language).fit(texts)
        assert counter.words_.tolist() == ["hund", "katze", "schläft"]
    settings = json.loads(json.dumps(counter.settings()))
    with pytest.raises(ValueError, match="stop_words"):
        CountTexts(stop_words="klingon").fit(texts)
    monkeypatch.setitem(sys.modules, "stop_words", None)
    with pytest.raises(ImportError, match="languages"):
        CountTexts(stop_words="german").fit(texts)
    assert CountTexts.from_settings(settings).count(["der Hund"]).n_unseen.tolist() == [0]


def test_a_tokenizer_finds_the_words():
    counter = CountTexts(tokenizer=lambda text: text.split("|"), stop_words=["的"], min_length=1, ngram_range=(1, 2))
    assert counter.fit(["我|喜欢|的|茶|。"]).words_.tolist() == sorted(["我", "喜欢", "茶", "我 喜欢", "喜欢 茶"])
    assert clone(counter).tokenizer is counter.tokenizer
    settings = json.loads(json.dumps(counter.settings()))
    with pytest.raises(ValueError, match="tokenizer"):
        CountTexts.from_settings(settings)
    again = CountTexts.from_settings(settings, tokenizer=counter.tokenizer)
    assert again.transform(["茶|茶"]).toarray().sum() == 2


UNSEGMENTED = ["今天天气很好。我们去公园散步。", "昨天晚上我们一起吃饭看电影。"]


@pytest.mark.parametrize(
    ("texts", "is_warned"),
    [
        (UNSEGMENTED, True),
        (["私は昨日友達と映画を見ました。", "明日は雨が降るでしょう。"], True),
        (["今天 天气 很 好", "我们 去 公园 散步"], False),
        (["The name 北京市海淀区 is used in a long English sentence about cities", "cities"], False),
        (["plain words", "other words"], False),
    ],
)
def test_texts_without_spaces_are_noticed(texts, is_warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CountTexts().fit(texts)
    assert any(warning.category is UnsegmentedTextWarning for warning in caught) == is_warned


def test_with_a_tokenizer_there_is_no_warning():
    CountTexts(tokenizer=list, min_length=1).fit(UNSEGMENTED)


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


def test_stop_words_of_several_languages_are_combined():
    pytest.importorskip("stop_words")
    texts = ["the boat und das haus", "und the sea"]
    both = CountTexts(stop_words=["english", "german"]).fit(texts)
    assert both.words_.tolist() == ["boat", "haus", "sea"]
    assert CountTexts.from_settings(both.settings()).transform(texts).sum() == 3
    as_words = CountTexts(stop_words=["english", "und"]).fit(texts)  # a word that is no language: a list of words
    assert "the" in as_words.words_
