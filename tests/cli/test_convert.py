"""``mmpca convert``."""

import pytest

from mmpca.io import read_counts


@pytest.mark.parametrize("ending", [".npz", ".mtx", ".mtx.gz"])
def test_converted_counts_are_the_same_counts(mmpca_command, tmp_path, ending):
    (tmp_path / "sites.csv").write_text("site,oak,elm\nhill,1,2\nlake,0,3\n")
    done = mmpca_command("convert", tmp_path / "sites.csv", tmp_path / f"out{ending}", "--json")
    assert (done.json["rows"], done.json["features"]) == (2, 2)
    table = read_counts(tmp_path / f"out{ending}")
    assert table.X.toarray().tolist() == [[1, 2], [0, 3]]
    assert table.row_names.tolist() == ["hill", "lake"]
    assert table.feature_names.tolist() == ["oak", "elm"]


def test_a_transposed_table_is_turned(mmpca_command, tmp_path):
    (tmp_path / "sites.csv").write_text("species,hill,lake,bog\noak,1,2,3\nelm,0,3,1\n")
    assert mmpca_command("convert", tmp_path / "sites.csv", tmp_path / "out.npz", "--transpose").code == 0
    assert read_counts(tmp_path / "out.npz").row_names.tolist() == ["hill", "lake", "bog"]


def test_counts_without_names_replace_counts_with_names(mmpca_command, tmp_path):
    (tmp_path / "named.csv").write_text("site,oak,fir\nhill,2,1\nvalley,1,3\n")
    (tmp_path / "plain.csv").write_text("4,2\n1,5\n")
    for name in ("named.csv", "plain.csv"):
        assert mmpca_command("convert", tmp_path / name, tmp_path / "out.mtx").code == 0
    table = read_counts(tmp_path / "out.mtx")
    assert (table.row_names, table.feature_names) == (None, None)
