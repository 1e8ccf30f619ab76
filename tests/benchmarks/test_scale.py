"""Runs of large fits are judged by what they are required, and the lines through them are those they were made of."""

import io
import re

import pytest
from rich.console import Console

import scale
from scale import Run, heading, judged, large_runs, overhead_of
from scale_model import (
    PARTS,
    Line,
    Measured,
    Overhead,
    Shape,
    Size,
    carried,
    fitted_lines,
    measured,
    table_of_clusters,
    table_of_lines,
)
from scale_tasks import StageWatch

SHAPE = Shape(50_000, 30, 30)
TRUTH = {
    "before": Line(0.5, 1e-8, "entry"),
    "main directions": Line(1.0, 9e-7, "grouped entry"),
    "topics of a sample": Line(7.0, 0.0, "nothing"),
    "topics of all rows": Line(0.5, 1.5e-6, "entry"),
    "starts on a sample": Line(4.0, 20.0, "round of starts"),
    "search of all rows": Line(0.2, 4e-7, "entry", "block"),
    "end": Line(6.0, 5e-8, "entry"),
}


def run_of(n_rows, n_workers=1):
    size = Size(n_rows, 81 * n_rows, n_workers)
    return Measured(size, {name: line(size) for name, line in TRUTH.items()})


def test_every_part_has_a_line():
    assert set(TRUTH) == set(PARTS)


def test_lines_are_found_again_in_runs_on_one_and_two_workers():
    runs = [run_of(n_rows, n_workers) for n_rows in (100_000, 300_000, 1_000_000) for n_workers in (1, 2)]
    for name, line in fitted_lines(runs).items():
        assert line[:2] == pytest.approx(TRUTH[name][:2], rel=1e-6), name


def test_a_part_that_takes_no_time_is_fitted_by_none():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000)]
    for run in runs:
        run.seconds["main directions"] = 0.0
    assert fitted_lines(runs)["main directions"][:2] == (0.0, 0.0)


def test_what_stops_growing_is_not_carried_on():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)]
    line = fitted_lines(runs)["main directions"]
    assert line(Size(10**9, 81e9)) == pytest.approx(1.0 + 9e-7 * 40_000_000)


def test_the_tables_of_the_search_are_made_once_a_block():
    line, sizes = TRUTH["search of all rows"], [Size(n_rows, 0) for n_rows in (100_000, 300_000, 1_000_000, 10**9)]
    assert [size.n_blocks for size in sizes] == [25, 65, 64, 64]
    assert [line(size) for size in sizes] == pytest.approx([5.0, 13.0, 12.8, 12.8])


def test_on_one_worker_starts_cannot_be_told_from_what_is_fixed():
    line = fitted_lines([run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)])["starts on a sample"]
    assert (line.fixed, line.rate) == (pytest.approx(24.0), 0.0)


def test_a_worker_has_one_task_a_block_and_look_and_each_costs_its_overhead():
    none, some = Overhead(0.0, 0.0), Overhead(0.002, 0.0005)
    few, many = (carried(10**9, n_workers, TRUTH, SHAPE, some) for n_workers in (10, 100))
    assert many.n_tasks > 100 * 3 * 64
    assert 5 * few.n_tasks < many.n_tasks < 10 * few.n_tasks  # but for those that read the parts
    assert carried(10**9, 100, TRUTH, SHAPE, none).tasks == 0
    assert many.tasks == pytest.approx(0.0005 * many.n_tasks + 0.002 * (many.n_tasks - 3 * 1000) / 100)
    assert many.rows == pytest.approx(few.rows / 10)


def test_rows_of_trial_splits_travel():
    one, two = (carried(10**8, 1, TRUTH, SHAPE._replace(n_clusters=n), Overhead(0, 0)).together for n in (30, 60))
    assert two > 1.5 * one > 1e-9


def test_runs_without_stages_are_not_fitted():
    assert measured(100_000, {"clock": 3.0, "entries": 8_100_000}) is None
    numbers = {"stages": {"before": 1.0, "directions": 2.0, "groups": 3.0}, "entries": 10, "workers": 2}
    found = measured(100_000, numbers)
    assert found.size == Size(100_000, 10, 2)
    assert (found.seconds["before"], found.seconds["main directions"], found.seconds["end"]) == (1.0, 5.0, 0.0)


def test_the_last_of_repeated_large_runs_counts():
    runs = [Run(n, "1 thread", {"stages": {"before": s}, "entries": n}) for n, s in ((10, 1), (10**5, 2), (10**5, 3))]
    (found,) = large_runs(runs, ("1 thread",))
    assert found.seconds["before"] == 3
    assert overhead_of(runs) is None
    assert overhead_of([*runs, Run(0, scale.TASKS, {"alone": 1.0, "each": 2.0})]) == Overhead(1.0, 2.0)


@pytest.mark.parametrize("name", scale.WAYS)
def test_the_memory_of_every_run_of_a_million_rows_is_judged(name):
    def memory(n_rows, gigabytes):
        rows = judged([Run(n_rows, name, {"clock": 1.0, "gigabytes": gigabytes})])
        return [row.holds for row in rows if "memory" in row.measure]

    assert memory(1_000_000, 15.9) == [True]
    assert memory(1_000_000, 16.1) == [False]
    assert memory(100_000, 99.0) == []


def test_the_heading_of_a_rival_tells_how_many_rows_it_saw():
    assert heading(Run(10**6, "online LDA, one pass", {"rows": 10**5})) == "online LDA, one pass over 100,000 rows"
    assert heading(Run(10**6, "1 thread", {})) == "1 thread"


def test_stages_are_timed_from_where_they_begin_to_the_next(monkeypatch):
    from mmpca.stages import Stages

    times = iter([0.0, 2.0, 5.0, 9.0])
    monkeypatch.setattr("scale_tasks.perf_counter", lambda: next(times))
    watch = StageWatch()
    stages = Stages(watch)
    stages.begin("sample", "pass {step}", 3)
    stages.step()
    stages.begin("search", "all rows")
    stages.end()
    assert watch.seconds == {"before": 2.0, "sample": 3.0, "search": 4.0}
    assert watch.sum(("sample", "search", "groups")) == 7.0


def test_tables_tell_what_lines_are_wrong_by_and_what_they_make_of_more_rows():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)]
    runs[1].seconds["topics of all rows"] += 100.0
    console = Console(width=250, record=True, file=io.StringIO())
    lines = fitted_lines(runs)
    console.print(table_of_lines(lines, runs, SHAPE, "1 thread"))
    console.print(table_of_clusters(lines, SHAPE, Overhead(0.002, 0.0005)))
    told = console.export_text()
    assert "through 3 runs, 1 left to check them" in told
    (whole,) = [line for line in told.splitlines() if "whole" in line]
    assert re.search(r"-\d+\.\d s, -\d+%", whole)
    assert "1,000,000,000" in told
    assert "0.50 ms a task" in told
