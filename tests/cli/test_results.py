"""``mmpca tables`` and ``mmpca rename``."""

import csv
import shutil

import pandas as pd
import pytest

import mmpca


@pytest.fixture
def model(studio, tmp_path):
    """Return a copy of the model that a test may change."""
    return shutil.copy(studio / "X.mmpca", tmp_path / "X.mmpca")


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_tables_hold_what_the_model_says(mmpca_command, studio, model, tmp_path):
    done = mmpca_command("tables", model, studio / "X.mtx", "-o", tmp_path / "new" / "results", "--features", 4)
    assert done.code == 0, done.err
    folder, fitted = tmp_path / "new" / "results", mmpca.load(model)
    assert sorted(path.name for path in folder.iterdir()) == ["clusters.csv", "features.csv", "rows.csv", "topics.csv"]
    clusters, rows = read(folder / "clusters.csv"), read(folder / "rows.csv")
    assert [line["name"] for line in clusters] == fitted.cluster_names_.tolist()
    assert [int(line["cluster"]) for line in rows] == fitted.labels_.tolist()
    assert [line["cluster_name"] for line in rows] == fitted.cluster_names_[fitted.labels_].tolist()
    for line in clusters:
        members = {row["row"] for row in rows if row["cluster"] == line["cluster"]}
        assert len(members) == int(line["size"])
        assert set(line["representative_rows"].split("; ")) <= members
    assert len(read(folder / "features.csv")) == 4 * (6 + 4)
    assert len(read(folder / "topics.csv")) == 4


def test_tables_as_parquet_hold_lists(mmpca_command, studio, model, tmp_path):
    assert mmpca_command("tables", model, studio / "X.mtx", "-o", tmp_path, "--as", "parquet").code == 0
    table = pd.read_parquet(tmp_path / "clusters.parquet")
    assert [list(words) for words in table["features"]] == mmpca.load(model).clusters_frame()["features"].tolist()


def test_tables_do_not_overwrite_their_input(mmpca_command, model, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    done = mmpca_command("tables", model, tmp_path / "rows.csv", "-o", tmp_path)
    assert done.code == 2
    assert (tmp_path / "rows.csv").read_text() == "a,b\n1,2\n"


def test_new_names_reach_labels_and_tables(mmpca_command, studio, model, tmp_path):
    automatic = mmpca.load(model).cluster_names_[2]
    done = mmpca_command("rename", model, "2=rugby", "0= Board games ")
    assert done.code == 0, done.err
    assert "rugby" in done.out
    assert mmpca_command("rename", model, "1=ball games", "--topics").code == 0
    mmpca_command("predict", model, studio / "X.mtx", "--labels", tmp_path / "labels.csv")
    names = {line["cluster"]: line["cluster_name"] for line in read(tmp_path / "labels.csv")}
    assert (names["2"], names["0"]) == ("rugby", "Board games")
    assert mmpca.load(model).topic_names_[1] == "ball games"
    mmpca_command("rename", model, "2=")
    assert mmpca.load(model).cluster_names_[[0, 2]].tolist() == ["Board games", automatic]


@pytest.mark.parametrize(
    ("name", "code"), [("rugby", 2), ("=rugby", 2), ("x=rugby", 2), ("-1=rugby", 2), ("6=rugby", 1)]
)
def test_a_wrong_name_is_an_error_and_the_model_stays(mmpca_command, model, name, code):
    before = model.read_bytes()
    assert mmpca_command("rename", model, "--", "0=fine", name).code == code
    assert model.read_bytes() == before


def test_rows_are_moved_by_name_or_number(mmpca_command, studio, model):
    before = mmpca.load(model).labels_.tolist()
    target = (before[7] + 1) % 6
    done = mmpca_command("edit", model, studio / "X.mtx", "--move", f"7={target}", "--no-refit")
    assert done.code == 0, done.err
    before[7] = target
    assert mmpca.load(model).labels_.tolist() == before
    assert mmpca_command("edit", model, studio / "X.mtx", "--move", "7").code == 2
    assert mmpca_command("edit", model, studio / "X.mtx", "--move", "no such row=1").code == 1
