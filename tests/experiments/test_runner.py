"""Tasks are run once, kept at once, and the same whoever runs them."""

import json
import math
import os
import signal
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor
from toy import TimedToy, Toy

from mmpca.errors import StoreError
from mmpca.experiments import Ledger, run_tasks
from mmpca.experiments.experiment import new_task
from mmpca.experiments.ledger import code_hash
from mmpca.experiments.runner import _Clock


@pytest.fixture(autouse=True, scope="module")
def no_processes_left():
    """End the processes of these tests: they would go on in the folder that they were started in."""
    yield
    get_reusable_executor().shutdown(wait=True)


def lines(path):
    return path.read_text().split() if path.exists() else []


def test_all_tasks_are_run_in_their_order(tmp_path):
    records = run_tasks(Toy(), Ledger(tmp_path / "new" / "folder"))
    assert list(records) == Toy().tasks()
    assert [record["value"] for record in records.values()] == [2 * seed / 3 for seed in range(4) for _ in range(2)]


def test_what_is_finished_is_not_run_again(tmp_path):
    ledger, trace = Ledger(tmp_path / "out"), tmp_path / "trace"
    first = run_tasks(Toy(trace=str(trace)), ledger)
    removed = next(iter(first))
    (ledger.folder / "tasks" / f"{removed.key}.json").unlink()
    trace.unlink()
    assert run_tasks(Toy(trace=str(trace)), ledger) == first
    assert lines(trace) == [removed.key]


def test_a_damaged_file_is_made_anew(tmp_path):
    ledger = Ledger(tmp_path)
    first = run_tasks(Toy(), ledger)
    for task, content in zip(first, ("", "{", "[]", '{"record": {}}'), strict=False):
        (tmp_path / "tasks" / f"{task.key}.json").write_text(content)
    assert run_tasks(Toy(), ledger) == first


def test_more_replicates_go_into_the_same_folder(tmp_path):
    ledger, trace = Ledger(tmp_path / "out"), tmp_path / "trace"
    run_tasks(Toy(replicates=2), ledger)
    assert len(run_tasks(Toy(replicates=3, trace=str(trace)), ledger)) == 6
    assert lines(trace) == ["short_seed-2", "long_seed-2"]


def test_a_folder_of_other_options_is_refused(tmp_path):
    run_tasks(Toy(), Ledger(tmp_path))
    with pytest.raises(
        StoreError, match=r"results of another run: its factor is 2, here it is 3\. Give another folder"
    ):
        run_tasks(Toy(factor=3), Ledger(tmp_path))


def test_a_folder_of_another_version_is_refused(tmp_path):
    run_tasks(Toy(), Ledger(tmp_path))
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mmpca": "0.0.0"}))
    with pytest.raises(StoreError, match=r"its mmpca is '0\.0\.0'"):
        run_tasks(Toy(), Ledger(tmp_path))


@pytest.mark.parametrize("name", ["code", "scikit-learn"])
def test_a_folder_of_other_code_is_refused(name, tmp_path):
    run_tasks(Toy(), Ledger(tmp_path))
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: "other"}))
    with pytest.raises(StoreError, match=rf"its {name} is 'other', .* or the code and options that it was made with"):
        run_tasks(Toy(), Ledger(tmp_path))


def test_the_hash_of_the_code_knows_every_room_but_those_that_show(tmp_path):
    hashes = []
    for number, changed in enumerate(("", "kernels.py", "engine/loop.py", "cli/fit.py", "plots/model.py")):
        package = tmp_path / str(number)
        for name in ("kernels.py", "engine/loop.py", "cli/fit.py", "plots/model.py"):
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("changed = True" if name == changed else "")
        hashes.append(code_hash(package))
    same, kernel, room, command, plot = hashes
    assert len({same, kernel, room}) == 3
    assert command == plot == same


def test_experiments_that_measure_time_have_one_process(tmp_path):
    found = run_tasks(TimedToy(), Ledger(tmp_path), n_jobs=2)
    assert {record["value"] for record in found.values()} == {os.getpid()}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="must go to a folder that can be written to"):
        run_tasks(Toy(), Ledger(tmp_path / "file"))


def test_processes_find_the_same(tmp_path):
    assert run_tasks(Toy(), Ledger(tmp_path / "two"), n_jobs=2) == run_tasks(Toy(), Ledger(tmp_path / "one"))


def test_processes_of_an_earlier_run_write_where_this_one_says(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run_tasks(Toy(), Ledger(Path("out")), n_jobs=2)
        assert len(list((tmp_path / name / "out" / "tasks").iterdir())) == 8


def test_what_ctrl_c_has_cut_short_is_not_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Toy(interrupted=2), Ledger(tmp_path))
    assert sorted(path.name for path in (tmp_path / "tasks").iterdir()) == [
        "long_seed-0.json", "long_seed-1.json", "short_seed-0.json", "short_seed-1.json"
    ]  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert all(record["value"] is not None for record in run_tasks(Toy(), Ledger(tmp_path)).values())


def test_time_left_goes_by_replicates_first_and_by_the_kind_of_task_next():
    tasks = [new_task("a", rows=rows, seed=seed) for seed in (0, 1) for rows in (10, 20)] + [new_task("b", seed=0)]
    clock = _Clock(tasks, {}, 1)
    assert math.isnan(clock.seconds_left())
    clock.book(tasks[0], 1.0)
    assert clock.seconds_left() == 4.0
    clock.book(tasks[1], 5.0)
    assert clock.seconds_left() == 1.0 + 5.0 + 3.0  # as their replicates, and as the mean
    for task, seconds in zip(tasks[2:], (2.0, 4.0, 6.0), strict=True):
        clock.book(task, seconds)
    assert clock.seconds_left() == 0.0


def test_progress_counts_what_was_finished_before_and_tells_the_time_left(tmp_path):
    seen = []
    run_tasks(Toy(replicates=1), Ledger(tmp_path), callback=seen.append)
    assert [now.n_done for now in seen] == [0, 1, 2]
    assert math.isnan(seen[0].seconds_left)
    assert seen[1].seconds_left > 0
    assert seen[2].seconds_left == 0
    seen.clear()
    run_tasks(Toy(replicates=2), Ledger(tmp_path), callback=seen.append)
    assert [now.n_done for now in seen] == [2, 3, 4]
    assert seen[0].seconds_left > 0
