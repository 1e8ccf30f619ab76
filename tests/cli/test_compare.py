"""``mmpca compare``."""

import csv

import pytest

SIZES = ("--clusters", 6, "--topics", 4)
FAST = ("MMPCA", "multinomial mixture", "spherical k-means")
METHODS = tuple(part for name in FAST for part in ("--method", name))


def test_methods_are_compared_and_written(mmpca_command, studio, tmp_path):
    path = tmp_path / "methods.csv"
    known = ("--labels", studio / "truth.csv", "--no-memory")
    done = mmpca_command("compare", studio / "X.mtx", *SIZES, *METHODS, *known, "--output", path)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["method"] for row in rows] == list(FAST)
    assert [list(row) for row in rows] == 3 * [["method", "ari", "nmi", "seconds"]]
    assert all(float(row["seconds"]) > 0 and 0 <= float(row["nmi"]) <= 1 for row in rows)
    assert float(rows[0]["ari"]) > 0.9
    for row in rows:
        assert row["method"] in done.out


def test_json_has_only_what_was_measured(mmpca_command, studio):
    options = ("compare", studio / "X.mtx", *SIZES, "--method", "spherical k-means", "--json")
    (row,) = mmpca_command(*options).json
    assert set(row) == {"method", "seconds", "peak_megabytes"}
    assert row["peak_megabytes"] > 0
    (row,) = mmpca_command(*options, "--no-memory").json
    assert set(row) == {"method", "seconds"}


def test_labels_are_matched_by_name(mmpca_command, studio, tmp_path):
    header, *lines = (studio / "truth.csv").read_text().splitlines()
    path = tmp_path / "reversed.csv"
    path.write_text("\n".join([header, *reversed(lines)]) + "\n")
    options = (*SIZES, "--method", "spherical k-means", "--no-memory", "--json")
    first, second = (
        mmpca_command("compare", studio / "X.mtx", *options, "--labels", labels).json[0]["ari"]
        for labels in (studio / "truth.csv", path)
    )
    assert first == second


def test_a_method_that_cannot_be_fitted_is_skipped_with_a_note(mmpca_command, studio):
    options = ("--clusters", 6, "--topics", 1, "--method", "GMM on LDA", "--method", "spherical k-means")
    done = mmpca_command("compare", studio / "X.mtx", *options, "--no-memory", "--json")
    assert [row["method"] for row in done.json] == ["spherical k-means"]
    assert "GMM on LDA" in done.error


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        (("--method", "magic"), "magic"),
        (("--topics", 1, "--method", "GMM on LDA"), "GMM on LDA"),
        (("--labels", "few.txt"), "few.txt"),
    ],
)
def test_a_comparison_without_results_is_an_error(mmpca_command, studio, tmp_path, monkeypatch, options, culprit):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("a\nb\n")
    done = mmpca_command("compare", studio / "X.mtx", "--clusters", 6, *options)
    assert (done.code, done.out) == (1, "")
    assert culprit in done.error
