"""Finished tasks are stored and not run again."""

from typing import NamedTuple

import pytest
from rich.console import Console

from mmpca.store import Store
from tasks import run_all


class Square(NamedTuple):
    """A task that counts its runs in a folder, and fails for one number."""

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
            raise RuntimeError
        return {"value": self.number**2}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs four tasks with a store of results."""

    def run_four(fails_at=-1):
        tasks = [Square(number, str(tmp_path), fails_at) for number in range(4)]
        return run_all(tasks, Store(tmp_path / "results", "squares"), n_jobs=1, console=Console(quiet=True))

    return run_four


def n_runs(folder):
    return [len(path.read_text()) for path in sorted(folder.glob("runs-*"))]


def test_results_come_in_the_order_of_the_tasks(run):
    results = run()
    assert [task.number for task in results] == [0, 1, 2, 3]
    assert [numbers["value"] for numbers in results.values()] == [0, 1, 4, 9]


def test_a_second_run_computes_nothing_and_returns_the_same(run, tmp_path):
    assert run() == run()
    assert n_runs(tmp_path) == [1, 1, 1, 1]


def test_a_run_continues_where_the_last_one_failed(run, tmp_path):
    with pytest.raises(RuntimeError):
        run(fails_at=2)
    assert len(run(fails_at=-1)) == 4
    assert n_runs(tmp_path) == [1, 1, 2, 1]
