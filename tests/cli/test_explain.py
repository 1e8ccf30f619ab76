"""``mmpca explain``."""

import json

import numpy as np
import pytest
from scipy import sparse

import mmpca
from mmpca import MMPCA
from mmpca.cli.explain import find_rows
from mmpca.errors import OverdispersionWarning
from mmpca.io import read_counts, write_counts


@pytest.fixture(scope="module")
def model(studio):
    """Return the model without names, which takes a sparse matrix in silence."""
    model = mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    return model


def test_json_is_the_explanation_of_the_model(mmpca_command, studio, model):
    done = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 7, "-r", 3, "-n", 2, "--json")
    whys = model.explain(read_counts(studio / "X.mtx").X, [7, 3], n_features=2)
    assert [entry["row"] for entry in done.json] == [7, 3]
    for why, entry in zip(whys, done.json, strict=True):
        assert entry["cluster"] == why.cluster
        assert entry["margin"] == why.margin
        assert entry["is_fitted"] is True
        assert [part["nats"] for part in entry["evidence_for"]] == [part.nats for part in why.evidence_for]
        assert [other["gain"] for other in entry["alternatives"]] == [other.gain for other in why.alternatives]
        assert entry["bound_margin"] == why.bound_margin._asdict()


def test_without_rows_the_least_certain_ones_are_explained(mmpca_command, studio, model):
    done = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--json")
    table = model.rows_frame(read_counts(studio / "X.mtx").X)
    table["probability"] = table["probability"].round(3)
    assert [why["row"] for why in done.json] == table.sort_values(["probability", "margin_per_count"]).index[
        :3
    ].tolist()


def test_among_rows_that_are_all_certain_the_smallest_margin_per_count_comes_first(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    empty = sparse.csr_array((2, table.X.shape[1]), dtype=table.X.dtype)
    X = sparse.csr_array(sparse.vstack([empty, 50 * table.X]))
    write_counts(tmp_path / "X.npz", table._replace(X=X, row_names=None))
    with pytest.warns(OverdispersionWarning):
        model = MMPCA(6, 4, topics="lda", n_init=1, dispersion="multinomial", temperature=1.0, random_state=0).fit(
            X[2:]
        )
    model.save(tmp_path / "m")
    found = mmpca_command("explain", tmp_path / "m", tmp_path / "X.npz", "--json").json
    rows = model.rows_frame(X)
    assert (rows["probability"][2:].round(3) == 1).all()
    assert [why["row"] for why in found] == rows["margin_per_count"].nsmallest(3).index.tolist()
    assert min(why["row"] for why in found) >= 2  # there is nothing to explain about rows without counts


def test_words_of_a_single_row_are_not_listed(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    alone = np.zeros((table.X.shape[0], 1), dtype=int)
    alone[5] = 30
    X, names = sparse.csr_array(sparse.hstack([table.X, alone])), np.append(table.feature_names, "zanzibar")
    write_counts(tmp_path / "X.npz", table._replace(X=X, feature_names=names))
    fit = ("fit", tmp_path / "X.npz", "-q", 6, "-k", 4, "--n-init", 1, "-m", tmp_path / "m", "--jobs", 1)
    assert mmpca_command(*fit).code == 0
    (why,) = mmpca_command("explain", tmp_path / "m", tmp_path / "X.npz", "-r", 5, "-n", 4, "--json").json
    listed = why["evidence_for"] + why["evidence_against"]
    assert "zanzibar" not in [part["name"] for part in listed]
    assert len(why["evidence_for"]) == 4
    total = sum(part["nats"] for part in listed) + why["from_sizes"] + why["from_others"] + why["from_variation"]
    assert total == pytest.approx(why["margin"])


def test_rows_of_another_input_are_new_rows(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    write_counts(tmp_path / "few.npz", table._replace(X=table.X[:7]))
    (why,) = mmpca_command("explain", studio / "X.mmpca", tmp_path / "few.npz", "--row", 2, "--json").json
    assert why["is_fitted"] is False


def test_the_evidence_in_a_table_adds_up_to_the_margin(mmpca_command, studio, tmp_path):
    command = ("explain", studio / "X.mmpca", studio / "X.mtx", "-r", 7, "-r", 3, "-n", 2)
    done = mmpca_command(*command, "-o", tmp_path / "why.json", "--json")
    lines = json.loads((tmp_path / "why.json").read_text())
    for why in done.json:
        own = [line for line in lines if line["row"] == why["name"]]
        assert len(own) == 2 + 2 + 2
        assert sum(line["nats"] for line in own) == pytest.approx(why["margin"])
        assert {line["gain"] for line in own} == {why["alternatives"][0]["gain"]}
        assert {line["against"] for line in own} == {why["runner_up"]}


def test_bars_point_to_the_side_of_the_evidence(mmpca_command, studio):
    lines = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 0).out.splitlines()
    bars = [line for line in lines if "│" in line]
    assert any("█│" in line for line in bars)
    assert any("│█" in line for line in bars)
    for line in bars:
        left, _, right = line.partition("│")
        assert ("█" in right) <= (" +" in left)
        assert ("█" in left) <= (" -" in left)


def test_the_name_of_the_cluster_is_shown(mmpca_command, studio):
    fitted = mmpca.load(studio / "X.mmpca")
    assert (
        f"({fitted.cluster_names_[fitted.labels_[0]]})"
        in mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 0).out
    )


def test_rows_are_found_by_name_or_by_number():
    assert find_rows(["b", "a"], ["a", "b"]) == [1, 0]
    assert find_rows(["1", "b"], ["a", "b"]) == [1, 1]
    assert find_rows(["1"], ["1", "0"]) == [0]  # a name, where names are numbers
    assert find_rows(["1"], ["0", "1"], has_names=False) == [1]


@pytest.mark.parametrize(
    ("wanted", "names"), [("c", ["a", "b"]), ("2", ["a", "b"]), ("2", ["1", "b"]), ("9" * 30, ["a"])]
)
def test_an_unknown_row_is_an_error_that_names_it(wanted, names):
    with pytest.raises(ValueError, match=wanted):
        find_rows([wanted], names)


def test_names_that_look_like_markup_are_shown_unchanged(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,a,b\n1,3,1\n0,0,2\n[b]x,4,1\n")
    assert mmpca_command("fit", path, "-q", 2, "-k", 1, "--n-init", 1, "-m", tmp_path / "m").code == 0
    assert "[b]x" in mmpca_command("explain", tmp_path / "m", path, "-r", "[b]x").out
    wrong = mmpca_command("explain", tmp_path / "m", path, "-r", "hill")
    assert wrong.code == 1
    assert "'hill'" in wrong.error
