"""What is finished is on disk, whole, and not run again."""

import json
from typing import NamedTuple

import pytest
from rich.console import Console

from ledger import Ledger, run_all


class Square(NamedTuple):
    """A task that counts its runs in a folder, and fails at a number."""

    number: int
    folder: str
    fails_at: int = -1

    @property
    def key(self):
        return f"square-{self.number}"

    def run(self):
        with open(f"{self.folder}/runs-{self.number}", "a") as file:
            file.write("x")
        if self.number == self.fails_at:
            raise RuntimeError("stopped")
        return {"value": self.number**2}


def tasks(folder, **options):
    return [Square(number, str(folder), **options) for number in range(4)]


def n_runs(folder):
    return [len(path.read_text()) for path in sorted(folder.glob("runs-*"))]


def run(some, ledger, n_jobs=1):
    return run_all(some, ledger, n_jobs=n_jobs, console=Console(quiet=True))


def test_results_come_in_the_order_of_the_tasks(tmp_path):
    some = tasks(tmp_path)
    results = run(some, Ledger(tmp_path / "results"))
    assert list(results) == some
    assert [numbers["value"] for numbers in results.values()] == [0, 1, 4, 9]


def test_a_second_run_computes_nothing_and_says_the_same(tmp_path):
    first = run(tasks(tmp_path), Ledger(tmp_path / "results"))
    assert run(tasks(tmp_path), Ledger(tmp_path / "results")) == first
    assert n_runs(tmp_path) == [1, 1, 1, 1]


def test_a_run_goes_on_where_the_last_one_failed(tmp_path):
    ledger = Ledger(tmp_path / "results")
    with pytest.raises(RuntimeError, match="stopped"):
        run(tasks(tmp_path, fails_at=2), ledger)
    assert ledger.read(tasks(tmp_path)[1]) == {"value": 1}
    assert ledger.read(tasks(tmp_path)[2]) is None
    run(tasks(tmp_path), ledger)
    assert n_runs(tmp_path) == [1, 1, 2, 1]


def test_a_write_that_is_cut_off_leaves_no_result(tmp_path, monkeypatch):
    ledger, task = Ledger(tmp_path), Square(3, str(tmp_path))

    def cut_off(*_):
        raise OSError("disk full")

    monkeypatch.setattr("ledger.os.replace", cut_off)
    with pytest.raises(OSError, match="disk full"):
        ledger.write(task, {"value": 9})
    assert ledger.read(task) is None


def test_results_of_another_revision_are_counted(tmp_path):
    some = tasks(tmp_path)
    run(some[:3], Ledger(tmp_path / "results", "old"))
    new = Ledger(tmp_path / "results", "new")
    run(some, new)
    assert new.n_of_other_revisions(some) == 3
    assert json.loads(new.path(some[3]).read_text())["revision"] == "new"
