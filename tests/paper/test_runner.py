"""Tasks are run once, saved immediately, and independent of the process that runs them."""

import json
import os
import signal
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor
from toy import TimedToy, Toy

from mmpca.errors import StoreError, StoreWarning
from mmpca.paper import run_tasks
from mmpca.paper.runner import code_hash


@pytest.fixture(autouse=True, scope="module")
def no_workers_left():
    """Shut down the worker processes, which would keep the folder they were started in."""
    yield
    get_reusable_executor().shutdown(wait=True)


def saved(folder):
    """Return the names of the saved tasks."""
    return sorted(path.stem for path in (folder / "tasks").glob("*.npz"))


def logged(path):
    """Return the keys of the tasks that were run."""
    return path.read_text().split() if path.exists() else []


def test_all_tasks_are_run_and_returned_in_order(tmp_path):
    records = run_tasks(Toy(), tmp_path / "new" / "folder")
    assert list(records) == Toy().tasks()
    assert [record["value"] for record in records.values()] == [2 * seed / 3 for seed in range(4) for _ in range(2)]


def test_finished_tasks_are_not_run_again(tmp_path):
    folder, log = tmp_path / "out", tmp_path / "log"
    first = run_tasks(Toy(log=str(log)), folder)
    removed = next(iter(first))
    (folder / "tasks" / f"{removed.key}.npz").unlink()
    log.unlink()
    assert run_tasks(Toy(log=str(log)), folder) == first
    assert logged(log) == [removed.key]


def test_a_damaged_task_is_run_again(tmp_path):
    first = run_tasks(Toy(), tmp_path)
    damaged = next(iter(first))
    (tmp_path / "tasks" / f"{damaged.key}.npz").write_bytes(b"PK")
    with pytest.warns(StoreWarning, match=damaged.key):
        assert run_tasks(Toy(), tmp_path) == first


def test_more_replicates_extend_the_same_folder(tmp_path):
    folder, log = tmp_path / "out", tmp_path / "log"
    run_tasks(Toy(replicates=2), folder)
    assert len(run_tasks(Toy(replicates=3, log=str(log)), folder)) == 6
    assert logged(log) == ["short_seed-2", "long_seed-2"]


def test_a_folder_of_other_options_raises(tmp_path):
    run_tasks(Toy(), tmp_path)
    with pytest.raises(StoreError) as raised:
        run_tasks(Toy(factor=3), tmp_path)
    assert raised.value.path.parent == tmp_path / "tasks"


@pytest.mark.parametrize("name", ["mmpca", "code", "scikit-learn"])
def test_a_folder_of_other_code_or_versions_raises(name, tmp_path):
    run_tasks(Toy(), tmp_path)
    path = tmp_path / "tasks" / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: "other"}))
    with pytest.raises(StoreError) as raised:
        run_tasks(Toy(), tmp_path)
    assert raised.value.path == path


def test_a_file_instead_of_a_folder_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        run_tasks(Toy(), tmp_path / "file")


def test_the_code_hash_covers_all_code_except_the_display(tmp_path):
    display = ["cli/fit.py", "plots/model.py", "paper/figures.py"]
    names = ["kernels.py", "engine/search.py", "paper/runs.py", *display]

    def hash_with(changed):
        package = tmp_path / (changed or "unchanged").replace("/", "-")
        for name in names:
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("changed = True" if name == changed else "")
        return code_hash(package)

    unchanged = hash_with("")
    for name in names:
        assert (hash_with(name) == unchanged) == (name in display)


def test_experiments_that_measure_time_use_one_process(tmp_path):
    found = run_tasks(TimedToy(), tmp_path, n_jobs=2)
    assert {record["value"] for record in found.values()} == {os.getpid()}


def test_worker_processes_give_the_same_records(tmp_path):
    assert run_tasks(Toy(), tmp_path / "two", n_jobs=2) == run_tasks(Toy(), tmp_path / "one")


def test_reused_worker_processes_write_to_the_current_folder(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run_tasks(Toy(), Path("out"), n_jobs=2)
        assert len(saved(tmp_path / name / "out")) == 8


def test_an_interrupted_task_is_not_saved(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Toy(interrupted=2), tmp_path)
    assert saved(tmp_path) == ["long_seed-0", "long_seed-1", "short_seed-0", "short_seed-1"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert all(record["value"] is not None for record in run_tasks(Toy(), tmp_path).values())


def test_progress_counts_the_tasks_of_this_run(tmp_path):
    reports = []
    run_tasks(Toy(replicates=1), tmp_path, callback=reports.append)
    assert [report.n_done for report in reports if report.stage == "tasks"] == [0, 1, 2]
    assert reports[-1].stage == "done"
    reports.clear()
    run_tasks(Toy(replicates=3), tmp_path, callback=reports.append)
    assert [(report.n_done, report.n_steps) for report in reports[:-1]] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_true_answer_of_the_callback_stops_the_run_and_keeps_what_was_found(tmp_path):
    records = run_tasks(Toy(), tmp_path, callback=lambda progress: progress.n_done >= 3)
    assert list(records) == Toy().tasks()[: len(records)]
    assert 3 <= len(records) < len(Toy().tasks())
    assert len(saved(tmp_path)) == len(records)
