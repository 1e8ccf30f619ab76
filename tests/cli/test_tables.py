"""Tables as files."""

import csv
import json

import numpy as np
import pytest

from mmpca.cli.tables import print_across, write_table

TABLE = {"row": ["a,b", 'q"uote', "ü\nline"], "cluster": [0, 1, 2], "probability": [0.5, 1.0, float("nan")]}


def test_csv_is_quoted_where_necessary(tmp_path):
    write_table(tmp_path / "t.csv", TABLE)
    assert (tmp_path / "t.csv").read_text() == (
        'row,cluster,probability\n"a,b",0,0.5\n"q""uote",1,1.0\n"ü\nline",2,nan\n'
    )


FORMULAS = ['=HYPERLINK("http://x","y")', "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1+1", " =1"]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_names_that_are_formulas_in_a_spreadsheet_can_be_disarmed(tmp_path, ending, capsys):
    harmless = ["oak", "-5", "+1e3", "a=b", "", "'=1"]
    path = tmp_path / f"t{ending}"
    write_table(path, {"row": FORMULAS + harmless, "n": [-1] * 12}, safe=True)
    with path.open(newline="") as file:
        rows = [row[0] for row in csv.reader(file, delimiter="\t" if ending == ".tsv" else ",")]
    assert rows == ["row", *(f"'{name}" for name in FORMULAS), *harmless]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", FORMULAS)
def test_names_that_are_formulas_are_noted_and_kept_by_default(tmp_path, name, capsys):
    path = tmp_path / "t.csv"
    write_table(path, {"row": ["oak", name]})
    with path.open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["row", "oak", name]
    assert str(path) in capsys.readouterr().err.replace("\n", "")


def test_tsv_is_separated_by_tabs(tmp_path):
    write_table(tmp_path / "t.tsv", {"a": [1], "b": ["x"]})
    assert (tmp_path / "t.tsv").read_text() == "a\tb\n1\tx\n"


def test_json_is_a_list_of_objects_without_nan(tmp_path):
    write_table(tmp_path / "t.json", TABLE)
    records = json.loads((tmp_path / "t.json").read_text())
    assert records[0] == {"row": "a,b", "cluster": 0, "probability": 0.5}
    assert records[2]["probability"] is None


def test_parquet_is_read_back(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "t.parquet", TABLE)
    again = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert again["row"] == TABLE["row"]
    assert again["cluster"] == TABLE["cluster"]
    np.testing.assert_array_equal(again["probability"], TABLE["probability"])


# --- on the console ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [20, 60, 200])
def test_columns_that_do_not_fit_are_printed_below_and_no_number_is_cut_off(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    losses = [f"{1000 * n:,}" for n in range(1, 16)]
    print_across(["", *map(str, range(1, 16))], [["loss", *losses], ["error", *map(str, range(101, 116))]])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {line[0]: [] for line in lines if line and line[0] in ("loss", "error")}
    for line in lines:
        if line and line[0] in found:
            found[line[0]] += line[1:]
    assert found == {"loss": losses, "error": [str(n) for n in range(101, 116)]}
    assert max(map(len, lines)) < 16 if width < 100 else max(map(len, lines)) == 16
