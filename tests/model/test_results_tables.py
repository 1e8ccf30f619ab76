"""Tables and names: they agree with plain loops, keep names, and are in original counts for every kind of fit."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from mmpca import MMPCA
from mmpca.evaluation import stability
from mmpca.io import CountTable
from mmpca.model import results

KINDS = [{}, {"dispersion": "polya"}, {"dispersion": "shares"}, {"stabilize": "sqrt"}, {"algorithm": "vbem"}]


@pytest.fixture(scope="module")
def frame(X):
    return pd.DataFrame(X, columns=[f"wörd {v}" for v in range(X.shape[1])], index=[f"row {i}" for i in range(len(X))])


@pytest.fixture(scope="module")
def named(frame):
    return MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(frame)


def fit(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MMPCA(4, 3, **{"topics": "lda"} | options, n_init=1, random_state=0).fit(X)


# --- features ---------------------------------------------------------------------------------------------------


def plain_log_odds(X, is_inside, v):
    """Return the log-odds ratio of a feature and its standard error, from the formulas, one number at a time."""
    n, total = X[is_inside].sum(), X.sum()
    prior = n * X[:, v].sum() / total
    inside, outside = X[is_inside, v].sum() + prior, X[~is_inside, v].sum() + prior
    log_odds = math.log(inside / (2 * n - inside)) - math.log(outside / (total - n + n - outside))
    rows, prior_rows = X[:, v] > 0, prior * (X[:, v] > 0).sum() / X[:, v].sum()
    error = math.sqrt(1 / (rows[is_inside].sum() + prior_rows) + 1 / (rows[~is_inside].sum() + prior_rows))
    return log_odds, error


@pytest.mark.parametrize("options", KINDS)
def test_measures_of_clusters_are_those_of_plain_loops_in_original_counts(X, options):
    model = fit(X, **options)
    table = model.features_frame(n_features=None).query("kind == 'cluster'")
    assert len(table) == 4 * X.shape[1]
    for line in table.itertuples():
        v, is_inside = int(line.feature.removeprefix("feature ")), model.labels_ == line.number
        assert line.count == X[is_inside, v].sum()
        assert line.rows == (X[is_inside, v] > 0).sum()
        assert line.share == pytest.approx(X[is_inside, v].sum() / X[is_inside].sum())
        assert line.lift == pytest.approx(line.share / (X[:, v].sum() / X.sum()))
        log_odds, error = plain_log_odds(X, is_inside, v)
        assert line.log_odds == pytest.approx(log_odds)
        assert line.std_error == pytest.approx(error)
        assert line.z == pytest.approx(log_odds / error)


@pytest.mark.parametrize("options", KINDS)
def test_counts_of_topics_add_up_to_the_original_counts(X, options):
    topics = list(results.topic_features(fit(X, **options)))
    np.testing.assert_allclose(sum(own.counts for own in topics), X.sum(axis=0))
    np.testing.assert_allclose(sum(own.n_rows for own in topics), (X > 0).sum(axis=0))


def test_without_repetitions_the_standard_error_counts_occurrences():
    counts, every = np.array([3.0, 1.0, 0.0]), np.array([4.0, 5.0, 6.0])
    found = results.measure(counts, counts, every, every)
    prior = counts.sum() * every / every.sum()
    np.testing.assert_allclose(found.std_error**2, 1 / (counts + prior) + 1 / (every - counts + prior))


def test_one_cluster_is_named_by_its_most_frequent_features(X):
    model = MMPCA(1, 1, random_state=0).fit(X)
    frequent = np.argsort(-X.sum(axis=0), kind="stable")[:3]
    assert model.cluster_names_[0] == ", ".join(f"feature {v}" for v in frequent)


@pytest.mark.parametrize("X", [[[3], [4]], [[3, 0], [4, 0]], [[1, 0], [0, 1]]])
def test_degenerate_counts_have_finite_measures(X):
    model = MMPCA(min(2, len(X)), 1, random_state=0).fit(X)
    table = model.features_frame(n_features=None)
    assert np.isfinite(table[["share", "lift", "log_odds", "z"]].to_numpy()).all()


def test_a_word_of_a_single_row_never_leads(X):
    burst = np.zeros((len(X), 2), dtype=int)
    burst[0, 0], burst[1, 1] = 500, 1  # one row repeats a word that no other row has
    model = fit(np.hstack([X, burst]), start=np.arange(len(X)) % 4, max_epochs=0)
    alone = {"feature 25", "feature 26"}
    assert not alone & {word for words in model.clusters_frame()["features"] for word in words}
    assert not alone & {word for words in model.topics_frame()["features"] for word in words}
    assert alone <= set(model.features_frame(n_features=None)["feature"])


def test_features_do_not_depend_on_the_order_of_columns(X, frame, named):
    order = np.random.default_rng(0).permutation(X.shape[1])
    other = MMPCA(4, 3, topics=named.components_[:, order], start=named.labels_, max_epochs=0, random_state=0)
    other.fit(frame.iloc[:, order])
    assert (other.labels_ == named.labels_).all()
    assert other.clusters_frame()["features"].tolist() == named.clusters_frame()["features"].tolist()


# --- rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", KINDS)
def test_rows_have_their_labels_and_the_probabilities_and_margins_of_explain(X, options):
    model = fit(X, **options)
    table = model.rows_frame(X)
    assert table["cluster"].tolist() == model.labels_.tolist()
    for line, why in zip(table.itertuples(), model.explain(X, n_features=0), strict=True):
        assert line.runner_up == why.runner_up
        assert line.probability == pytest.approx(why.probability)
        assert line.margin == pytest.approx(why.margin)
        assert line.margin_per_count == pytest.approx(why.margin / X[why.row].sum())


def test_new_rows_are_predicted(named, frame):
    some = frame.iloc[[5, 2]]
    table = named.rows_frame(some)
    assert table["cluster"].tolist() == named.predict(some).tolist()
    assert table["row"].tolist() == ["row 5", "row 2"]


def test_a_row_without_counts_has_no_margin(named, X):
    table = named.rows_frame(sparse.csr_array(np.zeros((1, X.shape[1]), dtype=int)))
    assert table["cluster"].tolist() == [-1]
    assert table[["probability", "runner_up", "margin", "margin_per_count"]].isna().all(axis=None)


def test_with_one_cluster_there_is_no_runner_up(X):
    table = MMPCA(1, 2, random_state=0).fit(X).rows_frame(X)
    assert table["runner_up"].isna().all()
    assert (table["margin"] == np.inf).all()


def test_representative_rows_belong_to_their_cluster_and_have_names(named, frame):
    table = named.clusters_frame(frame, n_rows=2)
    for line in table.itertuples():
        assert 1 <= len(line.representative_rows) <= 2
        assert set(named.labels_[frame.index.get_indexer(line.representative_rows)]) == {line.cluster}


def test_representative_rows_are_typical_per_count_not_the_longest(X, model):
    # Every row once more, ten times as long: the evidence per count is the same, so copies stand side by side.
    doubled = np.vstack([X, 10 * X])
    own = [model.labels_, model.labels_]
    ranked = results.typical_rows(model, model._counts(doubled, reset=False), np.concatenate(own), 2 * len(X))
    for rows in ranked:
        assert [i % len(X) for i in rows[::2]] == [i % len(X) for i in rows[1::2]]


def test_a_short_row_of_the_best_word_is_not_typical(X, named):
    best = named.feature_names_in_.tolist().index(named.clusters_frame()["features"][0][0])
    short = np.zeros((1, X.shape[1]), dtype=int)
    short[0, best] = 1
    rows, labels = np.vstack([X, short]), np.append(named.labels_, 0)
    ranked = results.typical_rows(named, named._counts(sparse.csr_array(rows), reset=False), labels, len(rows))[0]
    assert ranked.index(len(X)) > 0


# --- tables -----------------------------------------------------------------------------------------------------


def test_the_table_of_clusters_adds_up(named):
    table = named.clusters_frame()
    assert table["cluster"].tolist() == [0, 1, 2, 3]
    assert table["size"].tolist() == np.bincount(named.labels_).tolist()
    assert table["share"].sum() == pytest.approx(1)
    assert table["name"].tolist() == [", ".join(words[:3]) for words in table["features"]]
    assert table["name"].tolist() == named.cluster_names_.tolist()


def test_the_table_of_topics_adds_up(named):
    table = named.topics_frame()
    assert table["share"].sum() == pytest.approx(1)
    assert (
        table["name"].tolist() == named.topic_names_.tolist() == [", ".join(words[:3]) for words in table["features"]]
    )


def test_stability_is_a_column_if_it_is_known(X, model):
    measured = stability(model, X, n_refits=2, random_state=0)
    assert model.clusters_frame(stability=measured)["stability"].tolist() == measured.clusters.tolist()
    assert model.clusters_frame(stability=[1, 0.5, 0, 1])["stability"].tolist() == [1, 0.5, 0, 1]


def test_polars_tables_hold_the_same_values(named, frame):
    pytest.importorskip("polars")
    for name in ("clusters_frame", "rows_frame"):
        ours, theirs = (getattr(named, name)(frame, backend=backend) for backend in ("pandas", "polars"))
        assert ours.to_dict("list") == theirs.to_dict(as_series=False)
    for name in ("topics_frame", "features_frame"):
        ours, theirs = (getattr(named, name)(backend=backend) for backend in ("pandas", "polars"))
        assert ours.to_dict("list") == theirs.to_dict(as_series=False)


def test_wrong_arguments_are_refused(named, frame):
    with pytest.raises(ValueError, match="backend"):
        named.topics_frame(backend="excel")
    with pytest.raises(ValueError, match="row_names"):
        named.rows_frame(frame, row_names=["a"])
    with pytest.raises(NotFittedError):
        MMPCA().clusters_frame()
    assert not hasattr(MMPCA(), "cluster_names_")


# --- names ------------------------------------------------------------------------------------------------------


def test_renamed_clusters_and_topics_keep_their_names(X):
    model = fit(X).rename({3: "rugby"}, {0: "ball games"})
    assert model.cluster_names_[3] == model.clusters_frame()["name"][3] == "rugby"
    assert model.topic_names_[0] == "ball games"
    assert set(model.rows_frame(X).query("cluster == 3")["cluster_name"]) == {"rugby"}
    automatic = fit(X).cluster_names_
    assert model.cluster_names_[:3].tolist() == automatic[:3].tolist()
    assert model.rename({3: None}).cluster_names_.tolist() == automatic.tolist()
    assert model.topic_names_[0] == "ball games"
    assert model.fit(X).topic_names_[0] != "ball games"  # another fit, other topics


@pytest.mark.parametrize("wrong", [{4: "x"}, {-1: "x"}, {True: "x"}, {"0": "x"}, {0: ""}, {0: 7}])
def test_a_wrong_name_changes_nothing(X, wrong):
    model = fit(X).rename({1: "one"})
    with pytest.raises(ValueError, match="cluster"):
        model.rename({0: "zero", **wrong})
    assert results.given_names(model, "cluster") == {1: "one"}


def test_a_data_frame_names_the_features(named, frame):
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    assert {word for words in named.clusters_frame()["features"] for word in words} <= set(frame.columns)


def test_features_are_named_by_a_pipeline_a_vectorizer_or_a_list():
    texts = ["ham ham eggs", "eggs ham", "sun sea sun", "sea sun"]
    pipeline = make_pipeline(CountVectorizer(), MMPCA(2, 2, random_state=0)).fit(texts)
    words = pipeline[0].get_feature_names_out().tolist()
    for source in (pipeline, pipeline[0], words):
        del (model := pipeline[-1].name_features(source)).__dict__["feature_names_in_"]
        assert model.name_features(source).feature_names_in_.tolist() == words
    # Nothing that the pipeline itself does warns about names now.
    assert pipeline.predict(texts).tolist() == model.labels_.tolist()
    with pytest.raises(ValueError, match="names"):
        model.name_features(words[:2])


def test_a_sparse_matrix_needs_no_names_but_an_array_should_have_them(named, X):
    assert named.predict(sparse.csr_array(X)).tolist() == named.rows_frame(sparse.csr_array(X))["cluster"].tolist()
    with pytest.warns(UserWarning, match="feature names"):
        named.predict(X)


@pytest.mark.parametrize("texts", ["a text", ["a text", "another"], pd.Series(["a", "b"]), np.array(["a", "b"])])
def test_texts_are_not_counts(texts):
    with pytest.raises(ValueError, match="TextClusters"):
        MMPCA().fit(texts)


def two_clusters():
    """Return a model of two clusters, and its six rows."""
    X = np.array([[9, 1, 1, 0], [8, 2, 1, 0], [9, 1, 2, 0], [0, 1, 1, 8], [0, 2, 1, 9], [0, 1, 1, 9]])
    return MMPCA(2, 2, random_state=0).fit(X), X


def test_no_two_clusters_have_the_same_automatic_name():
    X = np.repeat(np.array([[6, 5, 4, 3, 2, 1, 40], [40, 0, 0, 0, 0, 0, 0]]), 4, axis=0)
    model = MMPCA(3, 2, start=[0, 0, 1, 1, 2, 2, 2, 2], max_epochs=0, topics="lda", random_state=0).fit(X)
    assert len(set(model.cluster_names_)) == 3
    first = model.cluster_names_[2]
    model.rename({0: first})
    assert len(set(model.cluster_names_)) == 3
    assert model.cluster_names_[0] == first


def test_wrong_names_are_explained():
    model, _ = two_clusters()
    with pytest.raises(TypeError, match="enumerate"):
        model.rename(["a", "b"])
    with pytest.warns(UserWarning, match="0, 1"):
        model.rename({0: "same", 1: "same"})
    assert model.cluster_names_.tolist().count("same") == 2


def test_intervals_take_no_data():
    model, X = two_clusters()
    with pytest.raises(ValueError, match="level"):
        model.theta_interval(X)


def test_names_given_after_the_fit_accept_arrays_without_names(tmp_path):
    model, X = two_clusters()
    model.name_features(list("abcd"))
    model.save(tmp_path / "m.mmpca")
    for named in (model, MMPCA.load(tmp_path / "m.mmpca")):
        assert named.predict(X).tolist() == model.labels_.tolist()  # a warning would be an error here


def test_a_table_names_features_rows_and_annotations(tmp_path):
    _, X = two_clusters()
    taxa = np.array(["k__A; g__a", "k__A; g__b", "k__B; g__c", "k__B; g__d"], dtype=object)
    names = np.array(["o1", "o2", "o3", "o4"], dtype=object)
    rows = np.array([f"s{i}" for i in range(6)], dtype=object)
    table = CountTable(sparse.csr_array(X), rows, names, [], {"taxonomy": taxa})
    model = MMPCA(2, 2, random_state=0).fit(table)
    model.save(tmp_path / "m.mmpca")
    for fitted in (model, MMPCA.load(tmp_path / "m.mmpca")):
        frame = fitted.features_frame(n_features=None)
        assert dict(zip(frame["feature"], frame["taxonomy"], strict=True)) == dict(zip(names, taxa, strict=True))
        assert fitted.rows_frame(table)["row"].tolist() == rows.tolist()
        why = fitted.explain(table, [0])[0]
        assert {part.annotation for part in why.evidence_for + why.evidence_against} <= set(taxa)
        assert why.evidence_for[0].annotation == taxa[why.evidence_for[0].feature]
    shuffled = table._replace(X=table.X[:, [3, 2, 1, 0]], feature_names=names[::-1])
    assert model.predict(shuffled).tolist() == model.predict(table).tolist()
    assert MMPCA(2, 2, random_state=0).fit(X).name_features(table).feature_annotations_ == {"taxonomy": taxa}


def test_a_row_without_counts_is_in_no_cluster():
    model, X = two_clusters()
    table = model.rows_frame(np.vstack([X, np.zeros((1, 4), dtype=int)]))
    assert table["cluster"].tolist() == [*model.labels_.tolist(), -1]
    assert table["cluster_name"].isna().tolist() == [False] * 6 + [True]
