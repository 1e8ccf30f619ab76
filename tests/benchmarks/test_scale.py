"""Requirements on large fits, and a cost model that recovers the lines its data were made from."""

import pytest

import scale
from measure import EpochTimer
from mmpca.monitor import Monitor, Progress
from scale import Run, large_runs, overhead_of, scale_rows
from scale_model import (
    PARTS,
    Line,
    Measured,
    Overhead,
    Shape,
    Size,
    fit_lines,
    measured,
    project,
    table_of_lines,
    table_of_projections,
)
from scale_tasks import StageTimer

SHAPE = Shape(50_000, 30, 30)
TRUTH = {
    "before": Line(0.5, 1e-8, "entry"),
    "main directions": Line(1.0, 9e-7, "grouped entry"),
    "topics of a sample": Line(7.0, 0.0, "nothing"),
    "topics of all rows": Line(0.5, 1.5e-6, "entry"),
    "starts on a sample": Line(4.0, 20.0, "round of starts"),
    "search over all rows": Line(0.2, 4e-7, "entry", "block"),
    "final step": Line(6.0, 5e-8, "entry"),
}


def run_of(n_rows, n_workers=1):
    size = Size(n_rows, 81 * n_rows, n_workers)
    return Measured(size, {name: line(size) for name, line in TRUTH.items()})


def test_every_part_has_a_line():
    assert set(TRUTH) == set(PARTS)


def test_lines_are_recovered_from_runs_on_one_and_two_workers():
    runs = [run_of(n_rows, n_workers) for n_rows in (100_000, 300_000, 1_000_000) for n_workers in (1, 2)]
    for name, line in fit_lines(runs).items():
        assert line[:2] == pytest.approx(TRUTH[name][:2], rel=1e-6), name


def test_a_part_without_time_has_a_zero_line():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000)]
    for run in runs:
        run.seconds["main directions"] = 0.0
    assert fit_lines(runs)["main directions"][:2] == (0.0, 0.0)


def test_main_directions_stop_growing_at_their_largest_sample():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)]
    line = fit_lines(runs)["main directions"]
    assert line(Size(10**9, 81e9)) == pytest.approx(1.0 + 9e-7 * 40_000_000)


def test_the_fixed_time_of_the_search_is_per_block():
    line, sizes = TRUTH["search over all rows"], [Size(n_rows, 0) for n_rows in (100_000, 300_000, 1_000_000, 10**9)]
    assert [size.n_blocks for size in sizes] == [25, 65, 64, 64]
    assert [line(size) for size in sizes] == pytest.approx([5.0, 13.0, 12.8, 12.8])


def test_on_one_worker_the_starts_are_part_of_the_fixed_time():
    line = fit_lines([run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)])["starts on a sample"]
    assert (line.fixed, line.rate) == (pytest.approx(24.0), 0.0)


def test_a_worker_has_one_task_per_block_and_pass_and_each_costs_its_overhead():
    none, some = Overhead(0.0, 0.0), Overhead(0.002, 0.0005)
    few, many = (project(10**9, n_workers, TRUTH, SHAPE, some) for n_workers in (10, 100))
    assert many.n_tasks > 100 * 3 * 64
    assert 5 * few.n_tasks < many.n_tasks < 10 * few.n_tasks  # apart from tasks that read the parts
    assert project(10**9, 100, TRUTH, SHAPE, none).tasks == 0
    assert many.tasks == pytest.approx(0.0005 * many.n_tasks + 0.002 * (many.n_tasks - 3 * 1000) / 100)
    assert many.rows == pytest.approx(few.rows / 10)


def test_more_clusters_gather_more_rows_for_trial_splits():
    one, two = (project(10**8, 1, TRUTH, SHAPE._replace(n_clusters=n), Overhead(0, 0)).gathered for n in (30, 60))
    assert two > 1.5 * one > 1e-9


def test_runs_without_timed_stages_are_not_used():
    assert measured(100_000, {"clock": 3.0, "entries": 8_100_000}) is None
    numbers = {
        "stages": {"before": 1.0, "topics: main directions": 2.0, "topics: grouping rows": 3.0},
        "entries": 10,
        "workers": 2,
    }
    found = measured(100_000, numbers)
    assert found.size == Size(100_000, 10, 2)
    assert (found.seconds["before"], found.seconds["main directions"], found.seconds["final step"]) == (1.0, 5.0, 0.0)


def test_the_last_of_repeated_large_runs_counts():
    runs = [Run(n, "1 thread", {"stages": {"before": s}, "entries": n}) for n, s in ((10, 1), (10**5, 2), (10**5, 3))]
    (found,) = large_runs(runs, ("1 thread",))
    assert found.seconds["before"] == 3
    assert overhead_of(runs) is None
    assert overhead_of([*runs, Run(0, scale.TASKS, {"alone": 1.0, "each": 2.0})]) == Overhead(1.0, 2.0)


@pytest.mark.parametrize("name", scale.WAYS)
def test_the_memory_of_every_run_of_a_million_rows_is_checked(name):
    def memory(n_rows, gigabytes):
        rows = scale_rows([Run(n_rows, name, {"clock": 1.0, "gigabytes": gigabytes})])
        return [row.holds for row in rows if row.benchmark == "memory"]

    assert memory(1_000_000, 15.9) == [True]
    assert memory(1_000_000, 16.1) == [False]
    assert memory(100_000, 99.0) == []


def test_a_speedup_is_required_of_one_size_only():
    runs = [Run(n, way, {"clock": s}) for n in (10_000, 100_000) for way, s in (("1 thread", 3), ("2 threads", 2))]
    small, large = scale_rows(runs)
    assert (small.value, small.holds) == (1.5, None)
    assert (large.value, large.holds) == (1.5, False)


def test_stages_are_timed_from_their_begin_to_the_next():
    timer = StageTimer(clock=iter([0.0, 2.0, 5.0, 9.0]).__next__)
    monitor = Monitor(timer)
    monitor.begin("topics", "topics of a sample", 3)
    monitor.step(1, "first pass")
    monitor.begin("search", "all rows")
    monitor.end()
    assert timer.seconds == {"before": 2.0, "topics of a sample": 3.0, "search": 4.0}


def test_epochs_are_timed_from_the_last_report_of_the_one_before():
    timer = EpochTimer(clock=iter([0.0, 2.0, 5.0, 6.0, 9.0]).__next__)
    for epoch in (0, 1, 1, 2):
        timer(Progress("search", "", epoch=epoch))
    assert timer.stop().tolist() == [5.0, 4.0]


def test_the_tables_have_a_row_for_each_part_and_projection():
    runs = [run_of(n_rows) for n_rows in (100_000, 300_000, 1_000_000)]
    lines = fit_lines(runs)
    assert table_of_lines(lines, runs, SHAPE, "1 thread").row_count == len(PARTS) + 1
    assert table_of_projections(lines, SHAPE, Overhead(0.002, 0.0005)).row_count == 4 * 3
