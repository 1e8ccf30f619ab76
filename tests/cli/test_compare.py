"""``mmpca compare``: all methods on one input."""

import csv
import json

import pytest

from mmpca.evaluation import all_methods

FAST = ("--method", "MMPCA", "--method", "multinomial mixture", "--method", "spherical k-means")
SIZES = ("--clusters", 6, "--topics", 4)


def test_all_methods_are_compared_and_written(mmpca_command, studio, monkeypatch):
    monkeypatch.setattr("mmpca.cli.compare.all_methods", faster)
    path = studio / "methods.csv"
    known = ("--labels", studio / "truth.csv", "--no-memory")
    done = mmpca_command("compare", studio / "X.mtx", *SIZES, *known, "--output", path)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["method"] for row in rows] == list(all_methods(6, 4))
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert all(-1 <= float(row["ari"]) <= 1 and 0 <= float(row["nmi"]) <= 1 for row in rows)
    assert float(rows[0]["ari"]) > 0.9
    assert f"table written to {path}" in done.out
    for row in rows:
        assert row["method"] in done.out


def faster(n_clusters, n_topics, random_state):
    """Return all methods with as few starts as they can have."""
    methods = all_methods(n_clusters, n_topics, random_state)
    for method in methods.values():
        few = {name: 1 for name in method.get_params() if name in ("n_init", "n_init_lda")}
        method.set_params(**few)
    return methods


def test_machines_get_json_without_what_was_not_measured(mmpca_command, studio):
    done = mmpca_command("compare", studio / "X.mtx", *SIZES, *FAST, "--no-memory", "--json")
    assert done.code == 0, done.err
    assert [row["method"] for row in done.json] == ["MMPCA", "multinomial mixture", "spherical k-means"]
    assert all(set(row) == {"method", "seconds"} for row in done.json)


def test_memory_is_measured_unless_it_is_not_wanted(mmpca_command, studio):
    done = mmpca_command("compare", studio / "X.mtx", *SIZES, "--method", "spherical k-means", "--json")
    (row,) = done.json
    assert set(row) == {"method", "seconds", "peak_megabytes"}
    assert row["peak_megabytes"] > 0


def test_labels_go_by_the_names_of_rows(mmpca_command, studio, tmp_path):
    lines = (studio / "truth.csv").read_text().splitlines()
    path = tmp_path / "shuffled.csv"
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    options = (*SIZES, "--method", "MMPCA", "--no-memory", "--json")
    first, second = (
        mmpca_command("compare", studio / "X.mtx", *options, "--labels", labels).json[0]["ari"]
        for labels in (studio / "truth.csv", path)
    )
    assert first == second


def test_a_method_that_refuses_the_data_is_left_out_with_a_note(mmpca_command, studio):
    options = ("--clusters", 6, "--topics", 1, "--method", "GMM on LDA", "--method", "multinomial mixture")
    done = mmpca_command("compare", studio / "X.mtx", *options, "--no-memory", "--json")
    assert done.code == 0
    assert [row["method"] for row in json.loads(done.out)] == ["multinomial mixture"]
    assert "GMM on LDA was left out: n_topics must be" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "magic"), "a method must be one of MMPCA, GMM on LDA"),
        (("--topics", 1, "--method", "GMM on LDA"), "no method could be fitted. GMM on LDA was left out"),
        (("--labels", "few.txt"), "there are 2 entries, but 120 rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(mmpca_command, studio, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("a\nb\n")
    done = mmpca_command("compare", studio / "X.mtx", "--clusters", 6, *options)
    assert done.code == 1
    assert message in done.err
