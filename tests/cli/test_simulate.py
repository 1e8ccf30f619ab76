"""``mmpca simulate``."""

import csv
import json

import numpy as np

from mmpca.io import read_counts
from mmpca.simulate import paper_design


def test_the_default_is_the_design_of_the_paper(studio):
    data = paper_design(120, random_state=1)
    table = read_counts(studio / "X.mtx")
    np.testing.assert_array_equal(table.X.toarray(), data.X.toarray())
    assert table.feature_names.tolist() == data.feature_names.tolist()
    with open(studio / "truth.csv", newline="") as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == data.labels.tolist()


def test_a_random_design_has_the_given_sizes_and_repeats_with_its_seed(mmpca_command, tmp_path):
    options = ("--rows", 30, "--features", 40, "-q", 3, "-k", 2, "--length", 20)
    for name in ("a.npz", "b.npz"):
        done = mmpca_command(
            "simulate", tmp_path / name, *options, "--seed", 4, "--labels", tmp_path / "t.json", "--json"
        )
        assert (done.json["rows"], done.json["features"]) == (30, 40)
    first, again = (read_counts(tmp_path / name).X.toarray() for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(first, again)
    assert (first.sum(axis=1) == 20).all()
    assert {record["cluster"] for record in json.loads((tmp_path / "t.json").read_text())} <= {0, 1, 2}
