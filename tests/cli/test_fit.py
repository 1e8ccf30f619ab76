"""``mmpca fit``: one input, several files, and a Dask cluster."""

import csv
import os
import re
import signal
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import mmpca
from mmpca.cli.progress import LineProgress
from mmpca.errors import ClusterError
from mmpca.io import CountTable, read_counts, write_counts

FIT = ("--clusters", 6, "--topics", 4, "--n-init", 2, "--jobs", 1)
SMALL = ("-q", 3, "-k", 2, "--n-init", 1, "--jobs", 1)


def column(path, name, kind=int):
    with open(path, newline="") as file:
        return [kind(row[name]) for row in csv.DictReader(file)]


@pytest.fixture
def sites(tmp_path):
    """Return a table of four rows, one of them without counts."""
    path = tmp_path / "sites.csv"
    path.write_text("site,a,b,c\nhill,3,1,0\nsea,0,0,0\nlake,0,2,5\nbog,4,1,0\n")
    return path


def test_a_fit_equals_that_of_python(studio):
    table = read_counts(studio / "X.mtx")
    here = mmpca.MMPCA(6, 4, n_init=2, random_state=0).fit(table.X)
    there = mmpca.load(studio / "X.mmpca")
    assert there.bound_ == here.bound_
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.feature_names_in_.tolist() == table.feature_names.tolist()


def test_the_table_of_labels_has_rows_clusters_and_probabilities(studio):
    model = mmpca.load(studio / "X.mmpca")
    path = studio / "labels.csv"
    assert column(path, "row", str) == [str(i) for i in range(120)]
    assert column(path, "cluster") == model.labels_.tolist()
    del model.feature_names_in_
    own = model.leave_one_out_proba(read_counts(studio / "X.mtx").X)[np.arange(120), model.labels_]
    np.testing.assert_allclose(column(path, "probability", float), own, atol=6e-7)
    assert adjusted_rand_score(column(studio / "truth.csv", "cluster"), model.labels_) > 0.8


def test_the_result_is_shown(mmpca_command, studio, tmp_path):
    target = tmp_path / "again.mmpca"
    done = mmpca_command("fit", studio / "X.mtx", *FIT, "-m", target)
    model = mmpca.load(target)
    for shown in (f"{model.bound_:,.1f}", f"{model.icl_:,.1f}", f"{model.overdispersion_:.2f}", str(target)):
        assert shown in done.out
    for kind, number in (("cluster", 6), ("topic", 4)):
        table = model.features_frame(n_features=1)
        words = table.loc[table["kind"] == kind, "feature"].tolist()
        assert len(words) == number
        assert all(f" {word}" in done.out for word in words)


def test_json_describes_the_model(mmpca_command, studio):
    document = mmpca_command("fit", studio / "X.mtx", *SMALL, "--json").json
    assert (document["n_clusters"], document["n_topics"]) == (3, 2)
    assert sum(cluster["rows"] for cluster in document["clusters"]) == 120
    assert len(document["labels"]) == 120
    assert np.asarray(document["cluster_topics"]).shape == (3, 2)
    for kind, number in (("cluster", 3), ("topic", 2)):
        assert [group[kind] for group in document[f"{kind}s"]] == list(range(number))
        assert all(group["name"] == ", ".join(group["features"][:3]) for group in document[f"{kind}s"])
    assert document["interrupted"] is False
    assert document["model"] is None


def test_options_reach_the_model(mmpca_command, studio, tmp_path):
    path = tmp_path / "model"
    options = {
        "algorithm": "cvem",
        "start": "random",
        "dispersion": "multinomial",
        "stabilize": "sqrt",
        "seed": 5,
        "n-init": 1,
        "jobs": 2,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    assert mmpca_command("fit", studio / "X.mtx", "-q", 3, "-k", 2, "-m", path, *flags).code == 0
    parameters = mmpca.load(path).get_params()
    for name, value in options.items():
        assert parameters[{"seed": "random_state", "jobs": "n_jobs"}.get(name, name.replace("-", "_"))] == value
    assert (parameters["n_clusters"], parameters["n_topics"]) == (3, 2)


def test_square_roots_exclude_a_model_of_the_variance(mmpca_command, studio):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 2, "-k", 2, "--dispersion", "polya", "--stabilize", "sqrt")
    assert done.code == 1
    assert "stabilize" in done.error


@pytest.mark.parametrize(
    ("factor", "options"), [(1, []), (7, ["--dispersion", "multinomial"]), (99, ["--stabilize", "sqrt"])]
)
def test_overdispersed_counts_are_noted_once(mmpca_command, studio, tmp_path, factor, options):
    table = read_counts(studio / "X.mtx")
    common = np.argsort(-table.X.sum(axis=0))[:200]
    X = factor * table.X[:, common]
    write_counts(tmp_path / "bursts.npz", table._replace(X=X, feature_names=table.feature_names[common]))
    done = mmpca_command(
        "fit", tmp_path / "bursts.npz", "-q", 6, "-k", 4, "--n-init", 1, "--jobs", 1, "--json", *options
    )
    assert (done.json["overdispersion"] > 3) == (factor > 1)
    advice = [note for note in done.json["notes"] if "overdispersion" in note]
    # The advice names an option that is left to try.
    assert [("--dispersion polya" in note) for note in advice] == [True] * (factor > 1)
    assert "overdispersion" not in done.err


def test_rows_without_counts_are_an_error_or_dropped(mmpca_command, sites, tmp_path):
    fit = ("fit", sites, "-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1)
    done = mmpca_command(*fit, "-o", tmp_path / "labels.csv")
    assert done.code == 1
    assert str(sites) in done.error
    assert "'sea'" in done.error
    assert not (tmp_path / "labels.csv").exists()
    done = mmpca_command(*fit, "--drop-empty", "--json")
    assert [record["row"] for record in done.json["labels"]] == ["hill", "lake", "bog"]
    assert done.err != ""


def test_more_clusters_than_rows_are_an_error(mmpca_command, studio):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 500, "-k", 2)
    assert done.code == 1
    assert "500" in done.error


# --- interruptions ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals differ on Windows")
def test_ctrl_c_during_the_search_keeps_the_best_clusters_so_far(start_python, studio, tmp_path):
    model, labels = tmp_path / "cut.mmpca", tmp_path / "cut.csv"
    options = ("-q", 6, "-k", 4, "--start", "random", "--n-init", 3000, "--jobs", 1, "-m", model, "-o", labels)
    code = (  # many lines of progress
        "from functools import partial; from mmpca.cli import main, progress; "
        "progress.LineProgress = partial(progress.LineProgress, interval=0.1); main()"
    )
    process = start_python("-c", code, "fit", studio / "X.mtx", *options)
    while not re.match(r"start \d\d", process.stderr.readline()):  # the tenth start
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert str(model) in out
    assert column(labels, "cluster") == mmpca.load(model).labels_.tolist()


@pytest.fixture
def interrupted_after_topics(monkeypatch):
    """Make the next fit end as by Ctrl-C when its topics are learned."""

    def interrupt(display, progress):
        if progress.stage not in ("reading", "topics"):
            raise KeyboardInterrupt

    monkeypatch.setattr(LineProgress, "__call__", interrupt)


# --- several files ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a scheduler with one worker, in this process; commands connect to it by TCP."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def parts(studio, tmp_path_factory):
    """Return files of 50 and 70 of the rows."""
    table = read_counts(studio / "X.mtx")
    folder = tmp_path_factory.mktemp("parts")
    paths = [folder / "part0.npz", folder / "part1.npz"]
    for path, rows in zip(paths, (slice(0, 50), slice(50, 120)), strict=True):
        write_counts(path, CountTable(table.X[rows], None, table.feature_names, []))
    return paths


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Return files of 10 and 20 short rows."""
    X = np.random.default_rng(0).poisson(np.tile([[6, 1, 2], [1, 5, 2], [2, 1, 7]], (10, 3))) + 1
    folder = tmp_path_factory.mktemp("few")
    paths = [folder / "few0.npz", folder / "few1.npz"]
    for path, rows in zip(paths, (slice(0, 10), slice(10, 30)), strict=True):
        write_counts(path, CountTable(sparse.csr_array(X[rows]), None, None, []))
    return paths


@pytest.fixture(params=["threads", "cluster"])
def where(request):
    """Return the options of a fit in threads of this process, and on a cluster."""
    return () if request.param == "threads" else ("--scheduler", request.getfixturevalue("scheduler"))


def test_files_are_fitted_and_predicted_as_one_matrix(mmpca_command, studio, parts, where, tmp_path):
    model, labels = tmp_path / "parts.mmpca", tmp_path / "labels.csv"
    done = mmpca_command("fit", *parts, *FIT, *where, "--model", model, "--labels", labels)
    assert done.code == 0, done.err
    assert "reading" in done.err
    assert labels.read_text() == (studio / "labels.csv").read_text()
    one = mmpca_command("predict", studio / "X.mmpca", studio / "X.mtx", "--json", "--probabilities").json
    several = mmpca_command("predict", model, *parts, *where, "--json", "--probabilities").json
    assert several["labels"] == one["labels"]
    labels_only = mmpca_command("predict", model, *parts, *where, "--json").json["labels"]
    assert labels_only == [
        {key: row[key] for key in ("row", "cluster", "cluster_name", "probability")} for row in one["labels"]
    ]


def test_empty_rows_of_files_are_an_error_or_dropped(mmpca_command, where, parts, tmp_path):
    table = read_counts(parts[0])
    holes = tmp_path / "holes.npz"
    X = table.X.tolil()
    X[3] = 0
    write_counts(holes, table._replace(X=X.tocsr()))
    done = mmpca_command("fit", parts[1], holes, *SMALL, *where)
    assert done.code == 1
    assert str(holes) in done.error
    assert "'3'" in done.error
    done = mmpca_command("fit", holes, parts[1], *SMALL, *where, "--drop-empty", "--json")
    assert [row["row"] for row in done.json["labels"]] == [str(i) for i in range(120) if i != 3]


def test_a_checkpoint_is_resumed_anywhere_and_belongs_to_one_fit(mmpca_command, scheduler, studio, parts, tmp_path):
    path = tmp_path / "fit.npz"
    fitted = mmpca_command("fit", *parts, *FIT, "--scheduler", scheduler, "--checkpoint", path, "--json")
    assert fitted.code == 0, fitted.err
    assert str(path) not in fitted.err
    again = mmpca_command("fit", studio / "X.mtx", *FIT, "--checkpoint", path, "--json")
    assert (again.code, again.json["bound"]) == (0, fitted.json["bound"])
    assert str(path) in again.error
    for other in (("fit", studio / "X.mtx", *FIT, "--seed", 1), ("fit", *parts[::-1], *FIT)):
        done = mmpca_command(*other, "--checkpoint", path)
        assert done.code == 1
        assert str(path) in done.error


@pytest.mark.parametrize("n_files", [1, 2])
@pytest.mark.usefixtures("interrupted_after_topics")
def test_after_an_interruption_the_checkpoint_is_named(mmpca_command, parts, tmp_path, n_files):
    path = tmp_path / "fit.npz"
    done = mmpca_command("fit", *parts[:n_files], *FIT, "--checkpoint", path)
    assert done.code == 130
    assert str(path) in done.error
    assert path.exists()


@pytest.mark.parametrize("n_files", [1, 2])
@pytest.mark.parametrize(("error", "code"), [(ClusterError("all workers are gone"), 1), (KeyboardInterrupt, 130)])
def test_the_model_is_written_before_the_labels(mmpca_command, few, tmp_path, monkeypatch, n_files, error, code):
    model, labels = tmp_path / "kept.mmpca", tmp_path / "labels.csv"

    def fail(*_):
        raise error

    monkeypatch.setattr("mmpca.distributed.fitting.score_rows", fail)
    done = mmpca_command("fit", *few[:n_files], *SMALL, "--model", model, "--labels", labels)
    assert done.code == code
    assert str(model) in done.error
    assert len(mmpca.load(model).labels_) == (10 if n_files == 1 else 30)
    assert not labels.exists()
    # Without --labels, probabilities are not computed.
    assert mmpca_command("fit", *few[:n_files], *SMALL, "--model", model).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "culprit"),
    [
        (("--algorithm", "vbem"), 1, "vbem"),
        (("--text",), 1, "part0.npz"),
        (("--row-names", "names.txt"), 2, "--row-names"),
        (("--min-rows", 2), 1, "--min-rows"),
    ],
)
def test_what_several_files_do_not_support_is_an_error(mmpca_command, parts, arguments, code, culprit):
    done = mmpca_command("fit", *parts, *SMALL, *arguments)
    assert done.code == code
    assert culprit in done.error


def test_a_missing_file_is_named(mmpca_command, where, parts, tmp_path):
    missing = tmp_path / "missing.npz"
    done = mmpca_command("fit", parts[0], missing, *SMALL, *where)
    assert done.code == 1
    assert str(missing) in done.error


def test_a_missing_dask_names_the_package_to_install(mmpca_command, parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = mmpca_command("fit", *parts, *SMALL, "--scheduler", "tcp://127.0.0.1:9")
    assert done.code == 1
    assert "mmpca[dask]" in done.error


# --- what the user knows ----------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path):
    """Return a table of twelve places of two kinds, the first of them without counts."""
    lines = ["nowhere,0,0,0,0"] + [f"{kind}{i},{row}" for i in range(6) for kind, row in KINDS.items()]
    path = tmp_path / "places.csv"
    path.write_text("place,fern,moss,crab,kelp\n" + "\n".join(lines) + "\n")
    return path


KINDS = {"hill": "5,4,0,1", "sea": "0,1,5,4"}


@pytest.mark.parametrize(
    "known", ["place,kind\nsea2,sea\nhill1,\nsea3,-1\n", "x\n" * 0 + "\n" * 5 + "\nsea\n" + "\n" * 6]
)
def test_known_labels_fix_rows_and_name_clusters(places, mmpca_command, tmp_path, known):
    path = tmp_path / ("known.csv" if "," in known else "known.txt")
    path.write_text(known)
    wanted = ("fit", places, "-q", 2, "-k", 2, "--drop-empty", "--known-labels", path, "-o", tmp_path / "labels.csv")
    done = mmpca_command(*wanted, "--json")
    assert done.code == 0, done.err
    rows, names = (column(tmp_path / "labels.csv", title, str) for title in ("row", "cluster_name"))
    assert {row for row, name in zip(rows, names, strict=True) if name == "sea"} == {f"sea{i}" for i in range(6)}


def test_known_labels_can_be_numbers_and_may_not_all_be_unknown(places, mmpca_command, tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("place,cluster\nsea2,1\nelsewhere,0\n")
    done = mmpca_command(
        "fit", places, *("-q", 2, "-k", 2, "--drop-empty", "--known-labels", path), "-o", tmp_path / "labels.csv"
    )
    assert done.code == 0, done.err
    assert "1 record of other rows" in done.error
    labels = dict(
        zip(column(tmp_path / "labels.csv", "row", str), column(tmp_path / "labels.csv", "cluster"), strict=True)
    )
    assert labels["sea2"] == labels["sea0"] == 1
    path.write_text("place,cluster\nsea2,-1\n")
    assert mmpca_command("fit", places, "-q", 2, "-k", 2, "--drop-empty", "--known-labels", path).code == 1


@pytest.mark.parametrize("is_file", [False, True])
def test_seeded_topics_come_first(places, mmpca_command, tmp_path, is_file):
    (tmp_path / "seeds.json").write_text('{"coast": ["kelp", "crab"], "land": ["moss"]}')
    given = [tmp_path / "seeds.json"] if is_file else ["coast=kelp, crab", "land=moss"]
    seeds = [word for text in given for word in ("--seed-topics", text)]
    done = mmpca_command("fit", places, "-q", 2, "-k", 2, "--drop-empty", *seeds, "-m", tmp_path / "places.mmpca")
    assert done.code == 0, done.err
    assert mmpca.load(tmp_path / "places.mmpca").topic_names_.tolist() == ["coast", "land"]


@pytest.mark.parametrize(("seeds", "code"), [("coast", 2), ("coast=whale", 1), ("seeds.json", 1), ("list.json", 1)])
def test_wrong_seeds_are_an_error(places, mmpca_command, tmp_path, monkeypatch, seeds, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text('["kelp"]')
    assert mmpca_command("fit", places, "-q", 2, "-k", 2, "--drop-empty", "--seed-topics", seeds).code == code


def test_a_file_that_is_no_earlier_result_is_never_overwritten(places, mmpca_command, tmp_path):
    """`report --labels` reads labels, so it is easy to write over them with `fit --labels`."""
    truth, model = tmp_path / "truth.csv", tmp_path / "places.mmpca"
    truth.write_text("row,cluster\nsea0,sea\n")
    model.write_text("my notes")
    for option, path in (("--labels", truth), ("--model", model)):
        before = path.read_text()
        assert mmpca_command("fit", places, "-q", 2, "-k", 2, "--drop-empty", option, path).code == 2
        assert path.read_text() == before
    for _ in range(2):  # results are overwritten
        again = ("-m", tmp_path / "own.mmpca", "-o", tmp_path / "own.csv")
        assert mmpca_command("fit", places, "-q", 2, "-k", 2, "--drop-empty", *again).code == 0
