"""From counts to a model file and labels, and from there to new rows."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mmpca
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.model import read_model
from mmpca.simulate import paper_design


def column(path, name, kind=int):
    with open(path, newline="") as file:
        return [kind(row[name]) for row in csv.DictReader(file)]


# --- fit --------------------------------------------------------------------------------------------------------


def test_a_fit_from_the_command_line_is_that_of_python(studio):
    X = read_counts(studio / "X.mtx").X
    here = mmpca.MMPCA(6, 4, n_init=2, random_state=0).fit(X)
    there = mmpca.load(studio / "X.mmpca")
    assert there.bound_ == here.bound_
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.components_, here.components_)


def test_labels_and_names_of_a_fit_are_those_of_its_model(studio):
    model = mmpca.load(studio / "X.mmpca")
    assert column(studio / "labels.csv", "cluster") == model.labels_.tolist()
    assert column(studio / "labels.csv", "row", str) == [str(i) for i in range(120)]
    assert model.feature_names_in_.tolist() == read_counts(studio / "X.mtx").feature_names.tolist()
    assert adjusted_rand_score(column(studio / "truth.csv", "cluster"), model.labels_) > 0.8


def test_a_fit_shows_bound_clusters_topics_and_where_it_wrote(mmpca_command, studio, tmp_path):
    target = tmp_path / "again.mmpca"
    done = mmpca_command("fit", studio / "X.mtx", "-q", 6, "-k", 4, "--n-init", 2, "--jobs", 1, "-m", target)
    model = mmpca.load(studio / "X.mmpca")
    assert done.code == 0
    assert (
        f"bound {model.bound_:,.1f} (no single move improves it), ICL {model.icl_:,.1f}, best of 2 starts" in done.out
    )
    assert "Clusters: size" in done.out
    assert "Topics: most probable features" in done.out
    assert f"model written to {target}" in done.out
    assert target.exists()


def test_a_fit_in_json_is_json_alone(mmpca_command, studio):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 3, "-k", 2, "--n-init", 1, "--jobs", 1, "--json")
    assert done.code == 0
    document = done.json
    assert document["n_clusters"] == 3
    assert sum(cluster["rows"] for cluster in document["clusters"]) == 120
    assert len(document["labels"]) == 120
    assert np.asarray(document["cluster_topics"]).shape == (3, 2)
    assert document["interrupted"] is False


@pytest.mark.parametrize(
    "options", [["--algorithm", "cvem"], ["--start", "random"], ["--stabilize", "sqrt"], ["--seed", "5"]]
)
def test_options_of_a_fit_reach_the_model(mmpca_command, studio, tmp_path, options):
    path = tmp_path / "model"
    done = mmpca_command("fit", studio / "X.mtx", "-q", 3, "-k", 2, "--n-init", 1, "--jobs", 2, "-m", path, *options)
    assert done.code == 0, done.err
    name, value = options[0].removeprefix("--").replace("seed", "random_state"), options[1]
    parameters = mmpca.load(path).get_params()
    assert str(parameters[name]) == value
    assert parameters["n_jobs"] == 2


def test_a_fit_without_outputs_says_that_nothing_was_written(mmpca_command, studio):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1)
    assert "Nothing was written: add --model and --labels" in done.out


@pytest.mark.parametrize(
    ("factor", "options", "told"),
    [
        (1, [], "(1 if the counts vary as the model expects, texts have about 2)"),
        (7, [], "counts vary so many times more than the model expects; try --stabilize sqrt, or more clusters"),
        (99, ["--stabilize", "sqrt"], "more than the model expects; try more clusters or topics"),
    ],
)
def test_a_fit_tells_its_overdispersion_and_what_to_do_about_it(mmpca_command, studio, tmp_path, factor, options, told):
    table = read_counts(studio / "X.mtx")
    write_counts(tmp_path / "burst.npz", table._replace(X=factor * table.X))
    fit = ("fit", tmp_path / "burst.npz", "-q", 6, "-k", 4, "--n-init", 1, "--jobs", 1, *options)
    done = mmpca_command(*fit)
    assert done.code == 0
    assert "The counts vary" not in done.err  # it would be said twice
    document = mmpca_command(*fit, "--json").json
    assert f"overdispersion {document['overdispersion']:.2f}" in done.out
    assert told in done.out
    assert [told in note for note in document["notes"]] == ([] if factor == 1 else [True])


@pytest.mark.parametrize("drop", [False, True])
def test_rows_without_counts_are_refused_or_dropped(mmpca_command, tmp_path, drop):
    path, labels = tmp_path / "sites.csv", tmp_path / "labels.json"
    path.write_text("site,a,b,c\nhill,3,1,0\nsea,0,0,0\nlake,0,2,5\nbog,4,1,0\n")
    done = mmpca_command(
        *("fit", path, "-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1, "-o", labels),
        *(["--drop-empty"] if drop else []),
    )
    if drop:
        assert done.code == 0
        assert "1 rows without counts were left out" in done.err
        assert [record["row"] for record in json.loads(labels.read_text())] == ["hill", "lake", "bog"]
    else:
        assert done.code == 1
        assert "1 of 4 rows have no counts, the first is 'sea'" in done.err
        assert "--drop-empty" in done.err
        assert not labels.exists()


SLOW_FIT = """
import sys, threading, time
from mmpca import engine
from mmpca.cli.app import app
said = threading.Event()
from mmpca.cli.lines import Lines
tell = Lines.tell
def slow(self, line):
    tell(self, line)
    if line.startswith("start 1,"):
        if not said.is_set():
            said.set()
            print("searching", file=sys.stderr, flush=True)
        time.sleep(0.5)
Lines.tell = slow
app(sys.argv[1:])
"""


def test_ctrl_c_keeps_what_was_found_and_says_so(studio, tmp_path):
    model, labels = tmp_path / "cut.mmpca", tmp_path / "cut.csv"
    arguments = [
        "fit",
        studio / "X.mtx",
        "-q",
        "6",
        "-k",
        "4",
        "--start",
        "random",
        "--jobs",
        "1",
        "-m",
        model,
        "-o",
        labels,
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_FIT, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr.readline().strip() == "searching"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "The search was interrupted" in err
    assert "Traceback" not in err
    assert f"model written to {model}" in out
    assert column(labels, "cluster") == mmpca.load(model).labels_.tolist()


# --- predict ----------------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model(mmpca_command, studio, tmp_path):
    done = mmpca_command(
        "predict", studio / "X.mmpca", studio / "X.mtx", "--labels", tmp_path / "p.csv", "--probabilities"
    )
    assert done.code == 0, done.err
    assert done.err == ""
    X, model = read_counts(studio / "X.mtx").X, mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    assert column(tmp_path / "p.csv", "cluster") == model.predict(X).tolist()
    for q, probabilities in enumerate(model.predict_proba(X).T):
        np.testing.assert_allclose(column(tmp_path / "p.csv", f"cluster_{q}", float), probabilities, atol=6e-7)


def test_features_are_matched_by_name_unseen_ones_counted_and_missing_ones_zero(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    order = np.random.default_rng(0).permutation(table.X.shape[1])[:-17]
    X = table.X[:, order].tolil()
    X[0, 0] += 5
    names = table.feature_names[order].astype(object)
    names[0] = "never seen"
    write_counts(tmp_path / "new.npz", CountTable(X.tocsr(), None, names, []))
    done = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.npz", "--json")
    assert done.code == 0, done.err
    assert "1 features that the model does not know were left out, and" in done.err
    assert "18 of the model's 917 features do not occur: taken as zero" in done.err
    model = mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    kept = table.X.tolil()
    kept[:, np.setdiff1d(np.arange(917), order[1:])] = 0
    assert [record["cluster"] for record in done.json["labels"]] == model.predict(kept.tocsr()).tolist()
    assert done.json["notes"] != []


def test_a_table_is_printed_where_no_file_is_asked_for(mmpca_command, studio):
    done = mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx")
    assert "and 80 more rows: --labels FILE writes them all" in done.out


def test_an_input_without_names_must_have_as_many_features(mmpca_command, studio, tmp_path):
    write_counts(tmp_path / "bare.npz", CountTable(read_counts(studio / "X.mtx").X[:, :9], None, None, []))
    done = mmpca_command("predict", studio / "X.mmpca", tmp_path / "bare.npz")
    assert done.code == 1
    assert "there are 9 features, but the model has 917, and the input has no names" in done.err


def test_an_input_with_other_names_altogether_is_refused(mmpca_command, studio, tmp_path):
    (tmp_path / "other.csv").write_text("site,oak,elm\nhill,1,2\n")
    done = mmpca_command("predict", studio / "X.mmpca", tmp_path / "other.csv")
    assert done.code == 1
    assert "none of the features has a name that the model knows" in done.err


def test_texts_for_a_model_of_counts_are_refused(mmpca_command, studio, tmp_path):
    (tmp_path / "new.txt").write_text("black holes\n")
    done = mmpca_command("predict", studio / "X.mmpca", tmp_path / "new.txt", "--text")
    assert done.code == 1
    assert "the model was fitted to counts and knows no words" in done.err


# --- explain ----------------------------------------------------------------------------------------------------


def test_rows_are_explained_by_number(mmpca_command, studio):
    done = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 7, "-r", 3, "-n", 2, "--json")
    assert done.code == 0, done.err
    assert [why["row"] for why in done.json] == [7, 3]
    model = mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    whys = model.explain(read_counts(studio / "X.mtx").X, [7, 3], n_features=2)
    for why, told in zip(whys, done.json, strict=True):
        assert told["cluster"] == why.cluster
        assert told["margin"] == why.margin
        assert [part["nats"] for part in told["evidence_for"]] == [part.nats for part in why.evidence_for]

        assert [other["gain"] for other in told["alternatives"]] == [other.gain for other in why.alternatives]
        assert told["bound_margin"] == why.bound_margin._asdict()
        assert told["is_fitted"] is True


def test_new_rows_are_not_taken_for_fitted_ones(mmpca_command, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    write_counts(tmp_path / "few.npz", table._replace(X=table.X[:7]))
    done = mmpca_command("explain", studio / "X.mmpca", tmp_path / "few.npz", "--row", 2)
    assert "row 2 as a new row would be put into cluster" in done.out


def test_an_explanation_is_written_as_a_table(mmpca_command, studio, tmp_path):
    command = ("explain", studio / "X.mmpca", studio / "X.mtx", "-r", 7, "-r", 3, "-n", 2)
    assert (
        f"2 explanations written to {tmp_path / 'why.json'}" in mmpca_command(*command, "-o", tmp_path / "why.json").out
    )
    lines = json.loads((tmp_path / "why.json").read_text())
    for why in mmpca_command(*command, "--json").json:
        own = [line for line in lines if line["row"] == why["name"]]
        assert [line["feature"] for line in own[-2:]] == ["all other features", "sizes of the clusters"]
        assert sum(line["nats"] for line in own) == pytest.approx(why["margin"])
        assert {line["gain"] for line in own} == {why["alternatives"][0]["gain"]}
        assert {line["against"] for line in own} == {why["runner_up"]}


def test_the_least_sure_rows_are_explained_by_default(mmpca_command, studio):
    done = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--json")
    model = mmpca.load(studio / "X.mmpca")
    del model.feature_names_in_
    top = np.sort(model.predict_proba(read_counts(studio / "X.mtx").X), axis=1)
    assert [why["row"] for why in done.json] == np.argsort(top[:, -1] - top[:, -2], kind="stable")[:3].tolist()


def test_an_explanation_is_shown_as_a_table(mmpca_command, studio):
    done = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 0)
    model = read_model(studio / "X.mmpca").model
    assert f"row 0 is in cluster {model.labels_[0]}: clear, probability 1.000" in done.out
    for word in ("feature", "count", "nats", "all other features", "sizes of the clusters", "log-odds", "gain"):
        assert word in done.out


def test_what_speaks_against_a_cluster_leans_to_the_left(mmpca_command, studio):
    lines = mmpca_command("explain", studio / "X.mmpca", studio / "X.mtx", "--row", 0).out.splitlines()
    bars = [line for line in lines if "│" in line]
    assert any("█│" in line for line in bars)
    assert any("│█" in line for line in bars)
    for line in bars:
        against, _, favour = line.partition("│")
        assert ("█" in favour) <= (" +" in against)
        assert ("█" in against) <= (" -" in against)


def test_rows_go_by_name_first(mmpca_command, studio, tmp_path):
    (tmp_path / "sites.csv").write_text("site,a,b\n1,3,1\n0,0,2\n[b]x,4,1\n")
    assert mmpca_command("fit", tmp_path / "sites.csv", "-q", 2, "-k", 1, "--n-init", 1, "-m", tmp_path / "m").code == 0
    done = mmpca_command("explain", tmp_path / "m", tmp_path / "sites.csv", "-r", "1", "-r", "[b]x", "--json")
    assert [(why["row"], why["name"]) for why in done.json] == [(0, "1"), (2, "[b]x")]
    shown = mmpca_command("explain", tmp_path / "m", tmp_path / "sites.csv", "-r", "[b]x")
    assert "[b]x is in cluster" in shown.out
    for word in ("hill", "2"):  # where names are numbers, a number is a name
        wrong = mmpca_command("explain", tmp_path / "m", tmp_path / "sites.csv", "-r", word)
        assert wrong.code == 1
        assert f"There is no row '{word}': rows go by their names, '1' to '[b]x'." in wrong.err


# --- simulate, convert ------------------------------------------------------------------------------------------


def test_the_design_of_the_paper_is_simulated(studio):
    data = paper_design(120, random_state=1)
    table = read_counts(studio / "X.mtx")
    np.testing.assert_array_equal(table.X.toarray(), data.X.toarray())
    assert table.feature_names.tolist() == data.feature_names.tolist()
    assert column(studio / "truth.csv", "cluster") == data.labels.tolist()


def test_random_designs_have_the_sizes_asked_for(mmpca_command, tmp_path):
    options = ("--rows", 30, "--features", 40, "-q", 3, "-k", 2, "--length", 20)
    for name in ("a.npz", "b.npz"):
        done = mmpca_command("simulate", tmp_path / name, *options, "--seed", 4, "--labels", tmp_path / "t.json")
        assert done.code == 0, done.err
    first, again = (read_counts(tmp_path / name).X.toarray() for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (30, 40)
    assert (first.sum(axis=1) == 20).all()
    assert {record["cluster"] for record in json.loads((tmp_path / "t.json").read_text())} <= {0, 1, 2}


def test_half_a_random_design_is_wrong_usage(mmpca_command, tmp_path):
    done = mmpca_command("simulate", tmp_path / "a.npz", "-q", 3)
    assert done.code == 2
    assert "need both --clusters and --topics" in done.err


@pytest.mark.parametrize("ending", [".npz", ".mtx", ".mtx.gz"])
def test_converted_counts_are_the_same_counts(mmpca_command, tmp_path, ending):
    (tmp_path / "sites.csv").write_text("site,oak,elm\nhill,1,2\nlake,0,3\n")
    done = mmpca_command("convert", tmp_path / "sites.csv", tmp_path / f"out{ending}")
    assert done.code == 0, done.err
    assert "2 rows x 2 features written to" in done.out
    table = read_counts(tmp_path / f"out{ending}")
    assert table.X.toarray().tolist() == [[1, 2], [0, 3]]
    assert table.row_names.tolist() == ["hill", "lake"]
    assert table.feature_names.tolist() == ["oak", "elm"]


def test_a_transposed_table_is_turned(mmpca_command, tmp_path):
    (tmp_path / "sites.csv").write_text("species,hill,lake,bog\noak,1,2,3\nelm,0,3,1\n")
    assert mmpca_command("convert", tmp_path / "sites.csv", tmp_path / "out.npz", "--transpose").code == 0
    assert read_counts(tmp_path / "out.npz").row_names.tolist() == ["hill", "lake", "bog"]


# --- processes --------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_early_is_no_error(studio):
    command = f"{sys.executable} -m mmpca predict {studio / 'X.mmpca'} {studio / 'X.mtx'} --json | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    assert "Traceback" not in done.stderr
