"""``mmpca select``."""

import csv
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

import mmpca

GRID = ("--clusters", "5-7", "--topics", "3,4", "--criterion", "predictive", "--jobs", 1)


@pytest.fixture(scope="module")
def selected(mmpca_command, studio):
    """Return the outcome of a search with all its outputs."""
    outputs = ("--model", studio / "best.mmpca", "--labels", studio / "best.csv", "--results", studio / "cells.csv")
    done = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", *outputs)
    assert done.code == 0, done.err
    return done


def test_model_labels_and_cells_are_written(selected, studio):
    model = mmpca.load(studio / "best.mmpca")
    assert (model.n_clusters, model.n_topics) == (6, 4)
    cells = list(csv.DictReader((studio / "cells.csv").read_text().splitlines()))
    assert [(cell["n_topics"], cell["n_clusters"]) for cell in cells] == [(k, q) for k in "34" for q in "567"]
    labels = [int(row["cluster"]) for row in csv.DictReader((studio / "best.csv").read_text().splitlines())]
    assert labels == model.labels_.tolist()
    for name in ("best.mmpca", "best.csv", "cells.csv"):
        assert str(studio / name) in selected.out


def test_a_second_run_resumes_from_the_store(selected, mmpca_command, studio):
    again = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", "--json").json
    assert (again["n_clusters"], again["n_topics"]) == (6, 4)
    assert len(again["cells"]) == 6
    assert again["reason"] in selected.out
    assert len(again["labels"]) == 120


def test_a_store_of_another_seed_is_named(selected, mmpca_command, studio):
    other = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", "--seed", 5)
    assert other.code == 1
    assert str(studio / "store") in other.error


def test_progress_is_printed(selected):
    assert selected.err.count("%") >= 1  # stages of less than a second are left out


@pytest.mark.parametrize("has_store", [False, True])
def test_an_interruption_before_the_first_cell_names_the_store(
    mmpca_command, studio, tmp_path, monkeypatch, cache, has_store
):
    def interrupt(display, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("mmpca.cli.progress.LineProgress.__call__", interrupt)
    store = ("--store", tmp_path / "cells") if has_store else ()
    done = mmpca_command("select", studio / "X.mtx", *GRID, *store, "--seed", 9)
    assert (done.code, done.out) == (130, "")
    assert str(tmp_path / "cells" if has_store else cache) in done.error


def test_without_numbers_the_search_starts_at_one_and_ends_inside(mmpca_command, studio):
    done = mmpca_command("select", studio / "X.mtx", "--json", "--jobs", 1).json
    numbers = [cell["n_clusters"] for cell in done["cells"]]
    assert numbers[0] == 1
    assert done["n_clusters"] < numbers[-1]
    assert done["topics"][0]["n_topics"] == 1
    assert done["n_topics"] < done["topics"][-1]["n_topics"]
    low, high = done["plateau"]
    assert low <= done["n_clusters"] <= high
    assert len(done["hierarchy"]) == done["n_clusters"] - 1


def test_the_reason_and_the_hierarchy_are_printed(mmpca_command, studio):
    given = ("select", studio / "X.mtx", "-q", "3", "-k", "4", "--jobs", 1)
    shown, document = mmpca_command(*given).out, mmpca_command(*given, "--json").json
    assert document["reason"] in shown
    first = document["hierarchy"][0]
    assert f"{first[0]} with {first[1]}" in shown


def test_a_tiny_table_can_be_searched_without_numbers(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,oak,ash,fir\na,9,1,0\nb,8,0,1\nc,1,9,2\nd,0,7,1\ne,1,0,9\n")
    for criterion in ("shares", "predictive"):
        done = mmpca_command("select", path, "--criterion", criterion, "--json", "--jobs", 1)
        assert done.code == 0, done.err
        assert len(done.json["labels"]) == 5


@pytest.mark.parametrize("numbers", ["4,2", "0-2", "2-500"])
def test_a_grid_that_cannot_be_fitted_is_an_error(mmpca_command, studio, numbers):
    done = mmpca_command("select", studio / "X.mtx", "--clusters", numbers, "--topics", "2")
    assert (done.code, done.out) == (1, "")


def test_finished_parts_are_kept_in_the_cache_until_the_search_ends(mmpca_command, studio, cache, monkeypatch):
    def interrupt(display, progress):
        if progress.stage == "cells" and progress.n_done:
            raise KeyboardInterrupt

    given = ("select", studio / "X.mtx", "-q", "3,4", "-k", 3, "--criterion", "icl", "--jobs", 1, "--seed", 3, "--json")
    with monkeypatch.context() as patch:
        patch.setattr("mmpca.cli.progress.LineProgress.__call__", interrupt)
        stopped = mmpca_command(*given)
    assert stopped.code == 130
    (folder,) = (path.parent for path in Path(cache).rglob("topics-3.npz"))
    assert str(folder) in stopped.err
    resumed = mmpca_command(*given)
    assert resumed.code == 0
    assert str(folder) in resumed.err
    assert not folder.exists()
    whole = mmpca_command(*given, "--store", studio / "own").json
    bounds = [[cell["bound"] for cell in found["cells"]] for found in (resumed.json, whole)]
    assert bounds[0] == bounds[1]


def children_of(pid):
    """Return the processes that a process has started; its threads may end while they are listed."""
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            children += map(int, (task / "children").read_text().split())
    return children


def command_of(pid):
    """Return the command line of a process, or nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_a_terminated_search_ends_its_workers(start_python, studio, tmp_path, ctrl_c):
    grid = ("-q", "2-12", "-k", "2-9", "--criterion", "icl", "--jobs", 2, "--store", tmp_path / "store")
    old = signal.signal(signal.SIGINT, ctrl_c)  # ignored by background jobs of scripts, which inherit it
    search = start_python("-m", "mmpca", "select", studio / "X.mtx", *grid)
    signal.signal(signal.SIGINT, old)
    workers, deadline = [], time.monotonic() + 120
    while len(workers) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        commands = {pid: command_of(pid) for pid in children_of(search.pid)}
        workers = [pid for pid, command in commands.items() if command and b"tracker" not in command]
    assert len(workers) >= 2
    search.send_signal(signal.SIGTERM)
    assert search.wait(30) == -signal.SIGTERM, search.stderr.read()
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, workers))
