"""Inputs in several files, on this machine and on a cluster."""

import sys

import numpy as np
import pytest
from scipy import sparse

from mmpca import load
from mmpca.distributed.crews import Threads
from mmpca.errors import ClusterError
from mmpca.io import CountTable, read_counts, write_counts

FIT = ("--clusters", 6, "--topics", 4, "--n-init", 2, "--jobs", 1)


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a scheduler with a worker, in this process: the command connects to it by TCP."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def parts(studio, tmp_path_factory):
    """Return files of 50 and 70 of the rows, with names."""
    X = read_counts(studio / "X.mtx").X
    names = np.array([f"word{v}" for v in range(X.shape[1])], dtype=object)
    folder = tmp_path_factory.mktemp("parts")
    paths = []
    for number, rows in enumerate((slice(0, 50), slice(50, 120))):
        paths.append(folder / f"part{number}.npz")
        write_counts(paths[-1], CountTable(X[rows], None, names, []))
    return paths


@pytest.mark.parametrize("place", ["threads", "cluster"])
def test_files_are_fitted_and_predicted_as_their_rows_in_one(place, mmpca_command, studio, parts, request, tmp_path):
    where = () if place == "threads" else ("--scheduler", request.getfixturevalue("scheduler"))
    model, labels = tmp_path / "parts.mmpca", tmp_path / "labels.csv"
    fitted = mmpca_command("fit", *parts, *FIT, *where, "--model", model, "--labels", labels, "--json")
    assert fitted.code == 0, fitted.err
    assert labels.read_text() == (studio / "labels.csv").read_text()
    assert all(name.startswith("word") for name in fitted.json["clusters"][0]["features"])
    told = mmpca_command("predict", model, *parts, *where, "--json", "--probabilities")
    assert told.code == 0, told.err
    one = mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx", "--json", "--probabilities")
    assert told.json["labels"] == one.json["labels"]


@pytest.mark.parametrize("place", ["threads", "cluster"])
def test_a_pipe_is_told_how_many_files_are_read(place, mmpca_command, parts, request, monkeypatch):
    monkeypatch.setattr("mmpca.cli.lines.SECONDS_BETWEEN_LINES", 0.0)
    where = () if place == "threads" else ("--scheduler", request.getfixturevalue("scheduler"))
    told = mmpca_command("fit", *parts, *FIT, *where, "--json").err.splitlines()
    assert {"reading: 1 of 2 files", "reading: 2 of 2 files"} <= set(told)
    assert any(line.startswith("overdispersion; ") for line in told)


def test_features_of_files_are_matched_by_name(mmpca_command, scheduler, parts, tmp_path):
    model = tmp_path / "parts.mmpca"
    assert mmpca_command("fit", *parts, *FIT, "--model", model).code == 0
    table = read_counts(parts[0])
    turned = tmp_path / "turned.npz"
    names = [*table.feature_names[::-1], "unheard"]
    X = np.hstack([table.X.toarray()[:, ::-1], np.full((50, 1), 3)])
    X[7, :-1] = 0
    write_counts(turned, CountTable(sparse.csr_array(X), None, np.array(names, dtype=object), []))
    told = mmpca_command("predict", model, turned, parts[1], "--scheduler", scheduler, "--json")
    plain = mmpca_command("predict", model, *parts, "--json").json["labels"]
    assert told.code == 0, told.err
    assert [row for row in told.json["labels"] if row["row"] != "7"] == [row for row in plain if row["row"] != "7"]
    assert "turned.npz: 1 features that the model does not know were left out" in told.err
    assert "1 rows have no counts that the model knows" in told.err


def test_empty_rows_are_refused_or_left_out_with_their_numbers(mmpca_command, scheduler, parts, tmp_path):
    table = read_counts(parts[0])
    holes = tmp_path / "holes.npz"
    X = table.X.tolil()
    X[3] = 0
    write_counts(holes, table._replace(X=X.tocsr()))
    where = ("--scheduler", scheduler)
    refused = mmpca_command("fit", holes, parts[1], *FIT, *where)
    assert refused.code == 1
    told = "rows have no counts, the first is '3': no cluster fits them. Leave them out with --drop-empty."
    assert f"{holes}: 1 of 50 {told}" in refused.err
    several = mmpca_command("fit", parts[1], holes, holes, *FIT)
    assert f"{holes}: 1 of 50 rows have no counts, the first is '3', and 1 rows of 1 other file: no" in several.err
    fitted = mmpca_command("fit", holes, parts[1], *FIT, *where, "--drop-empty", "--json")
    assert fitted.code == 0, fitted.err
    assert [row["row"] for row in fitted.json["labels"]] == [str(i) for i in range(120) if i != 3]
    assert "1 rows without counts were left out" in fitted.err


def test_a_checkpoint_is_kept_and_one_of_another_fit_refused(mmpca_command, scheduler, studio, parts, tmp_path):
    path = tmp_path / "fit.npz"
    fitted = mmpca_command("fit", *parts, *FIT, "--scheduler", scheduler, "--checkpoint", path, "--json")
    assert fitted.code == 0, fitted.err
    with np.load(path) as kept:
        assert kept["beta"].shape[0] == 4
    # On this machine the same rows go on from it.
    again = mmpca_command("fit", studio / "X.mtx", *FIT, "--checkpoint", path, "--json")
    assert (again.code, again.json["bound"]) == (0, fitted.json["bound"])
    assert f"went on from {path}" in " ".join(again.err.split())
    assert "went on from" not in fitted.err
    other = mmpca_command("fit", studio / "X.mtx", *FIT, "--seed", 1, "--checkpoint", path)
    assert other.code == 1
    assert "belongs to another fit: its random_state is 0, here it is 1" in other.err
    turned = mmpca_command("fit", *parts[::-1], *FIT, "--checkpoint", path)
    assert turned.code == 1
    assert "belongs to another fit: its rows are others, or in another order" in turned.err


@pytest.mark.parametrize("n_files", [1, 2])
def test_who_interrupts_a_fit_is_told_of_its_checkpoint(mmpca_command, parts, tmp_path, monkeypatch, n_files):
    path = tmp_path / "fit.npz"

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mmpca.model.estimator.search", interrupt)
    done = mmpca_command("fit", *parts[:n_files], *FIT, "--checkpoint", path)
    assert done.code == 130
    assert "Nothing was written" not in done.err
    assert f"No model was written. The same command goes on from {path}." in " ".join(done.err.split())
    assert path.exists()


@pytest.mark.parametrize("n_files", [1, 2])
@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ClusterError("all workers are gone"), 1, "error: all workers are gone"),
        (KeyboardInterrupt, 130, "interrupted: The model was written to "),
    ],
)
def test_a_model_outlives_its_labels(mmpca_command, parts, tmp_path, monkeypatch, n_files, error, code, told):
    model, labels = tmp_path / "kept.mmpca", tmp_path / "labels.csv"

    def fail(*_):
        raise error

    for room in ("fit", "parts"):
        monkeypatch.setattr(f"mmpca.cli.{room}.own_probabilities", fail)
    done = mmpca_command("fit", *parts[:n_files], *FIT, "--model", model, "--labels", labels)
    assert done.code == code
    assert told in done.err
    assert f"The model was written to {model}, the labels were not." in done.err
    assert len(load(model).labels_) == (50 if n_files == 1 else 120)
    assert not labels.exists()
    # Who does not ask for labels does not wait for their probabilities.
    assert mmpca_command("fit", *parts[:n_files], *FIT, "--model", model).code == 0


def test_probabilities_of_all_clusters_stay_where_the_rows_are(mmpca_command, studio, parts, tmp_path, monkeypatch):
    gathered, gather = [], Threads.gather
    monkeypatch.setattr(Threads, "gather", lambda crew, futures: note(gathered, gather(crew, futures)))
    monkeypatch.setattr("mmpca.model.prediction.ROWS_AT_ONCE", 7)
    monkeypatch.setattr("mmpca.cli.probabilities.ROWS_AT_ONCE", 7)
    model, labels = tmp_path / "parts.mmpca", tmp_path / "labels.csv"
    assert mmpca_command("fit", *parts, *FIT, "--model", model, "--labels", labels).code == 0
    assert labels.read_text() == (studio / "labels.csv").read_text()
    shapes = {one.shape for one in gathered if isinstance(one, np.ndarray)}
    assert {(50,), (70,)} <= shapes
    assert not {(50, 6), (70, 6)} & shapes
    gathered.clear()
    told = mmpca_command("predict", model, *parts, "--json").json["labels"]
    assert not {(50, 6), (70, 6)} & {one.shape for one in gathered if isinstance(one, np.ndarray)}
    assert told == mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx", "--json").json["labels"]
    whole = mmpca_command("predict", model, *parts, "--json", "--probabilities").json["labels"]
    assert told == [{name: row[name] for name in ("row", "cluster", "probability")} for row in whole]


def note(notes, values):
    for value in values:
        notes += value if isinstance(value, list) else [value]  # a thread answers for all of its parts
    return values


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--algorithm", "vbem"), 1, "algorithm must be 'greedy' for rows in parts, but it is 'vbem'"),
        (("--text",), 1, "words are counted over all texts at once"),
        (("--row-names", "names.txt"), 2, "--row-names names the rows of one file"),
        (("--checkpoint", "nowhere/fit.npz"), 2, "does not exist"),
    ],
)
def test_what_cannot_be_done_in_parts_is_told(mmpca_command, parts, arguments, code, message):
    refused = mmpca_command("fit", *parts, *FIT, *arguments)
    assert refused.code == code
    assert message in " ".join(refused.err.replace("│", " ").split())


def test_options_of_texts_are_refused_for_counts_in_parts(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,oak,ash\nhill,3,1\nlake,0,12\n")
    done = mmpca_command("fit", path, path, "-q", 2, "-k", 2, "--min-rows", 2)
    assert done.code == 1
    assert f"{path}: --min-rows is for texts" in done.err


def test_a_file_that_a_worker_does_not_find_is_named(mmpca_command, scheduler, parts, tmp_path):
    missing = tmp_path / "missing.npz"
    refused = mmpca_command("fit", parts[0], missing, *FIT, "--scheduler", scheduler)
    assert refused.code == 1
    assert f"{missing}: there is no such file on" in refused.err
    assert "all workers of a cluster need to see the files under the same one" in refused.err


def test_no_scheduler_and_no_dask_are_told_with_the_remedy(mmpca_command, parts, monkeypatch):
    monkeypatch.setattr("mmpca.distributed.crews.CONNECTING_SECONDS", 1)
    nobody = mmpca_command("fit", *parts, *FIT, "--scheduler", "tcp://127.0.0.1:9")
    assert nobody.code == 1
    assert "There is no scheduler at tcp://127.0.0.1:9" in nobody.err
    monkeypatch.setitem(sys.modules, "distributed", None)
    missing = mmpca_command("predict", parts[0], *parts, "--scheduler", "tcp://127.0.0.1:9")
    assert missing.code == 1
    fitted = mmpca_command("fit", *parts, *FIT, "--scheduler", "tcp://127.0.0.1:9")
    assert 'pip install "mmpca[dask]"' in fitted.err
