"""From texts to named clusters, tables, files and predictions with one object."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mmpca
from mmpca import MMPCA, TextClusters
from mmpca.errors import ModelFileError
from mmpca.model import read_model
from mmpca.text import CountTexts, read_texts

SUBJECTS = {
    "sport": "match coach goal team league striker keeper season referee stadium",
    "food": "soup bread butter kitchen oven pepper garlic onion recipe plate",
    "sea": "harbor boat sail anchor tide captain wave crew island storm",
}


@pytest.fixture(scope="module")
def frame():
    """Return 60 texts on three subjects in a data frame, with ids and a word that occurs once."""
    rng = np.random.default_rng(0)
    texts = [f"The {' and the '.join(rng.choice(SUBJECTS[name].split(), 12))}." for name in [*SUBJECTS] * 20]
    texts[7] += " Zanzibar" * 50
    return pd.DataFrame({"id": [f"T{i}" for i in range(60)], "body": texts, "subject": [*SUBJECTS] * 20})


@pytest.fixture(scope="module")
def clusters(frame):
    return TextClusters(3, 3, stop_words="english", random_state=0).fit(frame, column="body", ids="id")


@pytest.fixture(scope="module")
def quick(clusters, frame):
    """Return the same model with topics from a single source and the probabilities of the published model."""
    return clone(clusters).set_params(options={"topics": "lda", "temperature": 1}).fit(frame, column="body", ids="id")


def test_texts_of_one_subject_share_a_cluster_that_is_named_by_its_words(clusters, frame):
    for subject, words in SUBJECTS.items():
        labels = np.unique(clusters.labels_[frame["subject"] == subject])
        assert len(labels) == 1
        name = clusters.cluster_names_[labels[0]].split(", ")
        assert len(name) == 3
        assert set(name) <= set(words.split())


def test_it_equals_counting_and_clustering(clusters, frame):
    X = CountTexts(stop_words="english", min_df=2).fit_transform(frame["body"])
    model = MMPCA(3, 3, random_state=0).fit(X)
    assert clusters.labels_.tolist() == model.labels_.tolist()
    np.testing.assert_array_equal(clusters.predict_proba(frame["body"]), model.predict_proba(X))
    np.testing.assert_array_equal(clusters.transform(frame["body"]), model.transform(X))
    assert "zanzibar" not in clusters.counter_.words_


def test_tables_have_ids_and_excerpts(clusters, frame):
    table = clusters.clusters_frame(n_rows=2)
    texts = dict(zip(frame["id"], frame["body"], strict=True))
    labels = dict(zip(frame["id"], clusters.labels_.tolist(), strict=True))
    for line in table.itertuples():
        assert len(line.representative_rows) == 2
        assert [labels[name] for name in line.representative_rows] == [line.cluster] * 2
        assert [text[:40] for text in line.excerpts] == [texts[name][:40] for name in line.representative_rows]
        assert max(len(text) for text in line.excerpts) <= 200
    rows = clusters.rows_frame()
    assert rows["row"].tolist() == frame["id"].tolist()
    assert rows["cluster"].tolist() == clusters.labels_.tolist()
    assert len(clusters.topics_frame()) == 3
    assert set(clusters.features_frame()["feature"]) <= set(clusters.counter_.words_)


@pytest.mark.parametrize("library", ["polars", "lazy polars", "pyarrow", "duckdb", "list", "series"])
def test_any_container_gives_the_same_labels(quick, frame, library):
    column = {"column": "body"}
    if library == "polars":
        texts = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    elif library == "lazy polars":
        texts = pytest.importorskip("polars").LazyFrame(frame.to_dict("list"))
    elif library == "pyarrow":
        texts = pytest.importorskip("pyarrow").table(frame.to_dict("list"))
    elif library == "duckdb":
        texts = pytest.importorskip("duckdb").connect().from_df(frame)
    else:
        texts, column = frame["body"].tolist() if library == "list" else frame.set_index("id")["body"], {}
    again = clone(quick).fit(texts, **column)
    assert again.labels_.tolist() == quick.labels_.tolist()
    assert again.predict(texts, **column).tolist() == quick.predict(frame["body"]).tolist()
    assert again.rows_frame()["row"].tolist() == (frame["id"].tolist() if library == "series" else list(range(60)))
    if column:
        again.fit(texts, column="body", ids="id", labels="subject")
        assert again.cluster_names_[again.labels_].tolist() == frame["subject"].tolist()
        assert again.rows_frame()["row"].tolist() == frame["id"].tolist()


def test_a_saved_model_needs_nothing_else(clusters, frame, tmp_path):
    path = tmp_path / "texts.mmpca"
    clusters.rename({1: "one"}).save(path)
    loaded = TextClusters.load(path)
    new = ["A boat in the storm", "Garlic bread!", "zzz"]
    assert loaded.predict(new).tolist() == clusters.predict(new).tolist()
    assert loaded.cluster_names_.tolist() == clusters.cluster_names_.tolist()
    assert loaded.cluster_names_[1] == "one"
    assert loaded.clusters_frame()["features"].tolist() == clusters.clusters_frame()["features"].tolist()
    with pytest.raises(ValueError, match="texts"):
        loaded.rows_frame()
    assert (
        loaded.rows_frame(frame, column="body")["cluster_name"].tolist()
        == clusters.rows_frame()["cluster_name"].tolist()
    )
    assert clone(loaded).fit(frame, column="body").labels_.tolist() == clusters.labels_.tolist()
    clusters.rename({1: None})


def test_the_command_line_writes_and_reads_the_same_files(clusters, frame, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in zip(frame["id"], frame["body"], strict=True):
        (folder / f"{name}.txt").write_text(text)
    given = read_texts(folder)
    again = clone(clusters).fit(given)
    assert again.rows_frame()["row"].tolist() == given.names.tolist()
    again.save(tmp_path / "texts.mmpca")
    assert read_model(tmp_path / "texts.mmpca").text == again.counter_.settings()


def test_a_model_of_counts_is_not_one_of_texts(tmp_path):
    MMPCA(2, 2, random_state=0).fit([[5, 1], [1, 5], [4, 1]]).save(tmp_path / "counts.mmpca")
    with pytest.raises(ModelFileError):
        TextClusters.load(tmp_path / "counts.mmpca")


def test_texts_without_known_words_are_in_no_cluster(frame):
    texts = [*frame["body"], "", "unique words only"]
    with pytest.warns(UserWarning, match="-1"):
        clusters = TextClusters(3, 3, stop_words="english", random_state=0).fit(texts)
    assert clusters.labels_[-2:].tolist() == [-1, -1]
    assert (clusters.labels_[:-2] >= 0).all()
    assert clusters.predict(["", "boat"]).tolist() == [-1, clusters.labels_[2]]
    table = clusters.rows_frame()
    assert table["cluster"].tolist() == clusters.labels_.tolist()
    assert table["cluster_name"].isna().tolist() == [False] * 60 + [True] * 2
    assert table["probability"].isna().sum() == 2


def test_a_tokenizer_is_passed_again(frame, tmp_path):
    counter = CountTexts(tokenizer=str.split, min_df=2)
    clusters = TextClusters(3, 3, counter=counter, random_state=0).fit(frame, column="body")
    clusters.save(tmp_path / "texts.mmpca")
    with pytest.raises(ValueError, match="tokenizer"):
        TextClusters.load(tmp_path / "texts.mmpca")
    loaded = TextClusters.load(tmp_path / "texts.mmpca", tokenizer=str.split)
    assert loaded.predict(frame, column="body").tolist() == clusters.predict(frame, column="body").tolist()


def test_options_reach_the_model(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clusters = TextClusters(3, 3, options={"dispersion": "polya", "n_init": 1}, random_state=0)
        clusters.fit(frame, column="body")
    assert clusters.model_.dispersion_ == "polya"
    with pytest.raises(TypeError, match="colour"):
        TextClusters(options={"colour": 1}).fit(frame, column="body")
    with pytest.raises(ValueError, match="n_init"):
        TextClusters(options={"n_init": 0}).fit(frame, column="body")


def test_wrong_input_is_explained(clusters, frame):
    for wrong in ({}, {"column": "text"}):
        with pytest.raises(ValueError, match="'body'"):
            TextClusters().fit(frame, **wrong)
    with pytest.raises(ValueError, match="column"):
        clusters.predict(["a"], column="body")
    with pytest.raises(ValueError, match="list"):
        clusters.predict("a text")
    with pytest.raises(TypeError, match="1"):
        TextClusters().fit(["a", None])
    with pytest.raises(ValueError, match="stop_words"):
        TextClusters(stop_words="english", counter=CountTexts()).fit(["a"])
    with pytest.raises(NotFittedError):
        TextClusters().predict(["a"])
    assert not hasattr(TextClusters(), "cluster_names_")


def test_it_is_public():
    assert mmpca.TextClusters is TextClusters


def test_labels_of_empty_texts_survive_a_file(frame, tmp_path):
    texts = ["", *frame["body"][:30], "unknown", *frame["body"][30:]]
    with pytest.warns(UserWarning, match="-1"):
        clusters = TextClusters(3, 3, stop_words="english", random_state=0).fit(texts)
    clusters.save(tmp_path / "texts.mmpca")
    loaded = TextClusters.load(tmp_path / "texts.mmpca")
    assert loaded.labels_.tolist() == clusters.labels_.tolist()
    assert np.flatnonzero(loaded.labels_ == -1).tolist() == [0, 31]


def test_it_explains_texts_and_offers_the_attributes_of_the_model(clusters, frame):
    why = clusters.explain(rows=[4])[0]
    assert (why.row, why.cluster, why.is_fitted) == (4, clusters.labels_[4], True)
    assert {part.name for part in why.evidence_for} <= set(SUBJECTS["food"].split())
    assert clusters.bound_ == clusters.model_.bound_
    assert clusters.cluster_topics_ is clusters.model_.cluster_topics_
    assert not hasattr(clusters, "unknown_")
    lower, upper = clusters.theta_interval(0.8)
    assert lower.shape == upper.shape == (3, 3)
    assert clusters.merge_path().linkage.shape == (2, 4)


def test_a_text_without_words_cannot_be_explained(clusters):
    with pytest.raises(ValueError, match="'b'"):
        clusters.explain(pd.Series(["boat", "zzz"], index=["a", "b"]), [1])
    assert [why.row for why in clusters.explain(["zzz", "boat"])] == [1]


def test_the_page_shows_the_texts_of_the_fit(frame, clusters, tmp_path):
    pytest.importorskip("jinja2")
    page = clusters.report(tmp_path / "page.html", labels=frame["subject"].tolist())
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert "T7" in page.html
    assert "sport" in page.html
    with pytest.raises(ValueError, match="60"):
        clusters.report(labels=["a"])
    clusters.save(tmp_path / "texts.mmpca")
    assert "T7" not in TextClusters.load(tmp_path / "texts.mmpca").report().html


def test_texts_over_time_leave_out_those_without_words(frame):
    data = pd.concat([frame, pd.DataFrame({"id": ["empty"], "body": ["?"]})], ignore_index=True)
    data["date"] = pd.date_range("2024-01-01", periods=61, freq="D")
    with pytest.warns(UserWarning, match="empty"):
        own = TextClusters(3, 3, stop_words="english", random_state=0).fit(data, column="body", ids="id")
    X = own.counter_.transform(frame["body"])
    expected = own.model_.clusters_over(data["date"][:60], X, bins="M")
    pd.testing.assert_frame_equal(own.clusters_over(data["date"], bins="M"), expected)
    pd.testing.assert_frame_equal(own.clusters_over("date", data, column="body", bins="M"), expected)
    assert expected.loc[expected["kind"] == "cluster", "size"].sum() == 60
    with pytest.raises(ValueError, match="61"):
        own.clusters_over(data["date"][:60])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_texts_over_time_take_their_dates_from_tables_of_other_libraries(frame, clusters, library):
    data = frame.assign(date=pd.date_range("2024-01-01", periods=60, freq="D"))
    module = pytest.importorskip(library)
    table = module.from_pandas(data) if library == "polars" else module.Table.from_pandas(data)
    expected = clusters.clusters_over(data["date"], bins="M")
    pd.testing.assert_frame_equal(clusters.clusters_over("date", table, column="body", bins="M"), expected)
    pd.testing.assert_frame_equal(clusters.clusters_over(table["date"], bins="M"), expected)


def test_texts_that_no_cluster_explains_are_outliers(clusters):
    mixed = "match soup harbor coach bread boat goal butter sail team kitchen anchor league oven tide"
    strange = [" ".join([mixed] * 4), "zzz", "the boat and the harbor and the sail"]
    assert clusters.predict(strange, outliers=0.01).tolist()[:2] == [-1, -1]
    assert clusters.predict(strange)[0] >= 0
    assert clusters.predict(strange, outliers=0.01)[2] == clusters.predict(strange)[2]
    assert clusters.outlier_labels(0.0).tolist() == clusters.labels_.tolist()
    assert (clusters.outlier_labels(1.0) == -1).all()


def test_a_path_instead_of_texts_is_an_error_that_names_the_reader(tmp_path):
    for path in (tmp_path, str(tmp_path)):
        with pytest.raises(ValueError, match="read_texts"):
            TextClusters(2, 2).fit(path)
    with pytest.raises(ValueError, match=r"\[text\]"):
        TextClusters(2, 2).fit("A boat in the harbor.")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_text_is_named_by_its_id(frame, missing):
    data = frame.copy()
    data["body"] = data["body"].astype(object)
    data.loc[7, "body"] = missing
    with pytest.raises(TypeError, match="'T7'"):
        TextClusters(3, 3).fit(data, column="body", ids="id")


def test_a_wrong_column_of_ids_is_an_error_that_lists_the_columns(frame):
    with pytest.raises(ValueError, match="'subject'"):
        TextClusters(3, 3).fit(frame, column="body", ids="nr")


def test_a_model_of_texts_loaded_as_counts_says_how_to_predict_texts(clusters, tmp_path):
    clusters.save(tmp_path / "texts.mmpca")
    model = MMPCA.load(tmp_path / "texts.mmpca")
    assert model.labels_.tolist() == clusters.labels_.tolist()
    with pytest.raises(ValueError, match=r"TextClusters\.load"):
        model.predict(["a boat"])


# --- what the user knows ----------------------------------------------------------------------------------------


def test_known_labels_and_seeded_topics_name_clusters_and_topics(frame):
    data = pd.concat([pd.DataFrame({"id": ["empty"], "body": ["?"], "subject": ["food"]}), frame], ignore_index=True)
    data["known"] = data["subject"].where(data.index < 8)
    options = {"column": "body", "ids": "id", "seed_topics": {"meals": ["soup", "oven"]}}
    with pytest.warns(UserWarning, match="empty"):
        informed = TextClusters(3, 3, stop_words="english", random_state=0).fit(data, labels="known", **options)
    assert informed.labels_[0] == -1
    assert informed.cluster_names_[informed.labels_[1:]].tolist() == data["subject"][1:].tolist()
    assert informed.topic_names_[0] == "meals"
    with pytest.warns(UserWarning, match="empty"):
        same = TextClusters(3, 3, stop_words="english", random_state=0).fit(data, labels=data["known"][::-1], **options)
    np.testing.assert_array_equal(same.labels_, informed.labels_)
    with pytest.raises(ValueError, match="subject"):
        TextClusters(3, 3).fit(data, column="body", labels="topic")


def test_clusters_of_texts_can_be_edited_and_texts_moved_by_id(frame, tmp_path):
    own = TextClusters(3, 3, stop_words="english", random_state=0).fit(frame, column="body", ids="id")
    sport, food = own.labels_[:2].tolist()
    report = own.edit(move={"T0": food}, merge=[], refit=False)
    assert own.labels_[0] == food
    assert report.bound_after < report.bound_before
    assert own.rows_frame()["cluster"][0] == food
    assert own.explain(rows=["T0"])[0].row == 0
    own.save(tmp_path / "own.mmpca")
    loaded = TextClusters.load(tmp_path / "own.mmpca")
    loaded.edit(frame, column="body", ids="id", merge=[sport, food])
    assert loaded.get_params()["n_clusters"] == len(loaded.cluster_names_) == 2
