"""``mmpca predict``."""

import csv

import numpy as np
import pytest
from scipy import sparse

import mmpca
from mmpca.io import CountTable, read_counts, write_counts


@pytest.fixture(scope="module")
def model(studio):
    """Return the model without names, which takes a sparse matrix in silence."""
    model = mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    return model


def test_predictions_are_those_of_the_model(mmpca_command, studio, model, tmp_path):
    path = tmp_path / "p.csv"
    done = mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx", "--labels", path, "--probabilities")
    assert (done.code, done.err) == (0, "")
    X = read_counts(studio / "X.mtx").X
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == model.predict(X).tolist()
    found = [[float(row[f"cluster_{q}"]) for q in range(6)] for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=6e-7)
    np.testing.assert_allclose([float(row["probability"]) for row in rows], np.max(found, axis=1), atol=1e-12)


def test_features_are_matched_by_name(mmpca_command, studio, model, tmp_path):
    table = read_counts(studio / "X.mtx")
    order = np.random.default_rng(0).permutation(table.X.shape[1])[:-17]
    X = sparse.csr_array(table.X[:, order])
    names = table.feature_names[order].astype(object)
    names[0] = "never seen"
    write_counts(tmp_path / "new.npz", CountTable(X, None, names, []))
    done = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.npz", "--json")
    kept = table.X.tolil()
    kept[:, np.setdiff1d(np.arange(917), order[1:])] = 0
    assert [record["cluster"] for record in done.json["labels"]] == model.predict(kept.tocsr()).tolist()
    assert len(done.json["notes"]) == 2  # on the unknown feature and on the missing ones


def test_matching_by_position_is_noted(mmpca_command, studio, tmp_path):
    write_counts(tmp_path / "new.npz", read_counts(studio / "X.mtx")._replace(feature_names=None))
    new = tmp_path / "new.npz"
    for inputs in ([new], [new, new]):  # read in two ways
        done = mmpca_command("predict", studio / "X.mmpca", *inputs, "--json")
        assert sum("position" in note for note in done.json["notes"]) == 1


def test_rows_that_the_model_does_not_know_are_noted(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    X = table.X[:5].tolil()
    X[2] = 0
    write_counts(tmp_path / "new.npz", table._replace(X=X.tocsr()))
    one = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.npz", "--json").json
    two = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.npz", tmp_path / "new.npz", "--json").json
    assert len(one["notes"]) == len(two["notes"]) == 1
    assert [row["cluster"] for row in two["labels"]] == 2 * [row["cluster"] for row in one["labels"]]


def test_a_long_table_is_shortened_on_the_screen(mmpca_command, studio):
    done = mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx")
    *_, last = done.out.splitlines()
    assert done.out.count("\n") < 60
    assert "80" in last  # rows that are not shown


def test_an_input_without_matching_features_is_named(mmpca_command, studio, tmp_path):
    bare, other = tmp_path / "bare.npz", tmp_path / "other.csv"
    write_counts(bare, CountTable(read_counts(studio / "X.mtx").X[:, :9], None, None, []))
    other.write_text("site,oak,elm\nhill,1,2\n")
    for path in (bare, other):
        done = mmpca_command("predict", studio / "X.mmpca", path)
        assert done.code == 1
        assert str(path) in done.error


def test_texts_for_a_model_of_counts_are_an_error(mmpca_command, studio, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("black holes\n")
    done = mmpca_command("predict", studio / "X.mmpca", path, "--text")
    assert done.code == 1
    assert str(path) in done.error


def test_outliers_get_cluster_minus_one_on_request(mmpca_command, studio, model, tmp_path):
    table = read_counts(studio / "X.mtx")
    X = sparse.csr_array(sparse.vstack([table.X[:5], sparse.csr_array(np.ones((1, table.X.shape[1]), dtype=int))]))
    write_counts(tmp_path / "new.npz", table._replace(X=X, row_names=None))
    labels = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.npz", "--outliers", 0.001, "--json").json
    found = [record["outlier_score"] for record in labels["labels"]]
    np.testing.assert_allclose(found, model.outlier_scores(X), atol=6e-7)
    assert [record["cluster"] for record in labels["labels"]] == model.predict(X, outliers=0.001).tolist()
    assert labels["labels"][-1]["cluster"] == -1
