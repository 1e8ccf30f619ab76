"""``mmpca reproduce``: tables and figures of the paper's experiments, however often they are interrupted."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from mmpca.cli.commands.reproduce import Name
from mmpca.cli.commands.reproduce import reproduce as command
from mmpca.experiments import EXPERIMENTS, Ledger, make, run_tasks, write_output
from mmpca.experiments.experiment import Task
from mmpca.experiments.runtime import least_seconds, nearest_growth

INTRO = ("intro", "--quick", "--replicates", "3", "--jobs", "1")


def reproduce(*arguments, **options):
    command = [sys.executable, "-m", "mmpca", "reproduce", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for_a_finished_task(folder, process, seconds=120):
    end = time.monotonic() + seconds
    while not list(folder.glob("tasks/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_run_goes_on_and_changes_no_number(tmp_path):
    folder = tmp_path / "killed"
    process = reproduce(*INTRO, "--out", str(folder))
    wait_for_a_finished_task(folder, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    n_kept = len(list(folder.glob("tasks/*.json")))
    assert 1 <= n_kept < 3
    assert not (folder / "intro.csv").exists()

    again = reproduce(*INTRO, "--out", str(folder))
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert err.splitlines()[0].startswith(f"intro: {n_kept} of 3 parts done")
    assert "written:" in out

    experiment = make("intro", quick=True, replicates=3)
    whole = tmp_path / "whole"
    write_output(experiment, run_tasks(experiment, Ledger(whole)), whole)
    for name in ("intro.csv", "intro.svg"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert (folder / "intro.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_names_and_options_are_refused():
    with pytest.raises(ValueError, match=r"must be one of intro, noise.*, but it is 'noises'"):
        make("noises")
    with pytest.raises(ValueError, match="intro has no option 'levels'"):
        make("intro", levels=(0.1,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("intro", "--methods", "mmpca"), "--methods is for noise and sample-size, but the experiment is intro"),
        (("runtime", "--levels", "0.2"), "--levels is for noise, but the experiment is runtime"),
    ],
)
def test_options_of_other_experiments_are_refused_in_the_words_of_the_command(arguments, message, tmp_path):
    process = reproduce(*arguments, cwd=tmp_path)
    _, err = process.communicate()
    assert process.returncode != 0
    assert message in " ".join(err.split())


def test_a_method_that_is_named_twice_is_run_once(monkeypatch):
    seen = {}
    monkeypatch.setattr("mmpca.cli.reproduce.run", lambda name, **options: seen.update(options["given"]))
    command(Name.noise, methods="mmpca, lda,mmpca")
    assert seen["families"] == ("mmpca", "lda")


def test_noise_has_a_row_for_each_data_set_and_method_in_a_fixed_order(tmp_path):
    experiment = make("noise", quick=True)
    records = {task: invented(task) for task in reversed(experiment.tasks())}
    output = write_output(experiment, records, tmp_path)
    with (tmp_path / "noise.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 14
    assert [row["method"] for row in rows[:3]] == ["true parameters", "MMPCA", "GMM on LDA"]
    assert [float(row["noise"]) for row in rows] == [0.0] * 28 + [0.4] * 28
    summary = experiment.summary(output.table)
    assert summary["noise 0.4"][1] == pytest.approx(0.5 + (1000 + 1001) / 2 / 1e4)
    assert [path.name for path in output.files] == ["noise.csv", "noise.png", "noise.svg"]


def invented(task: Task):
    from mmpca.experiments.methods import FAMILIES

    ari = 0.5 + task["seed"] / 1e4
    return {method: {"ari": ari, "nmi": ari / 2} for method in FAMILIES[task.kind]}


def test_some_of_the_methods_are_enough(tmp_path):
    experiment = make("sample-size", quick=True, families=("mmpca", "lda-space-mmpca"))
    assert {task.kind for task in experiment.tasks()} == {"mmpca", "lda-space-mmpca"}
    output = write_output(experiment, {task: invented(task) for task in experiment.tasks()}, tmp_path)
    assert set(output.table["method"]) == {"MMPCA", "GMM on LDA (mmpca)", "k-means on LDA (mmpca)"}
    with pytest.raises(ValueError, match=r"methods must be names out of ceiling, mmpca, .*, but one is 'kmeans'"):
        make("noise", families=("mmpca", "kmeans"))


def test_sample_size_is_drawn_by_rows_for_each_feature(tmp_path):
    experiment = make("sample-size", quick=True)
    table = write_output(experiment, {task: invented(task) for task in experiment.tasks()}, tmp_path).table
    assert sorted(set(table["rows_per_feature"])) == [round(50 / 917, 4), round(100 / 917, 4)]
    assert list(experiment.summary(table)) == ["method", "n_samples 50", "n_samples 100"]
    assert (tmp_path / "sample-size.svg").stat().st_size > 0


def test_selection_counts_how_often_each_cell_is_chosen(tmp_path):
    experiment = make("selection", quick=True)
    cells = [(q, k) for k in experiment.n_topics for q in experiment.n_clusters]

    def found(task):
        # icl is right on the first data set only, the other criterion always.
        icl = (6, 4) if task["seed"] == 1000 else (5, 4)
        return {
            "n_clusters": [q for q, _ in cells],
            "n_topics": [k for _, k in cells],
            "icl": [float(cell == icl) for cell in cells],
            "predictive": [float(cell == (6, 4)) for cell in cells],
        }

    output = write_output(experiment, {task: found(task) for task in experiment.tasks()}, tmp_path)
    summary = experiment.summary(output.table)
    assert summary["balance"] == [1.0, 0.85, 0.7]
    assert summary["data sets"] == [2, 2, 2]
    assert (summary["icl right"], summary["predictive right"]) == ([1, 1, 1], [2, 2, 2])
    assert summary["icl instead"] == ["(5, 4) x 1"] * 3
    assert len(output.table["icl"]) == 6 * 9


def test_selection_searches_the_grid():
    experiment = replace(make("selection", quick=True, n_clusters=(2, 3), n_topics=(2,)), n_samples=40)
    record = experiment.run(experiment.tasks()[0])
    assert (record["n_clusters"], record["n_topics"]) == ([2, 3], [2, 2])
    assert all(len(record[name]) == 2 for name in ("icl", "predictive"))


def test_runtime_times_every_part_and_fits_exponents(tmp_path):
    experiment = make("runtime", quick=True, sizes=(20, 30, 40, 60, 80), repeats=1, replicates=2)
    tasks = experiment.tasks()
    times = [experiment.run(task) for task in tasks[:2]]  # the others borrow them
    assert all(seconds > 0 for record in times for seconds in record.values())
    records = {task: dict(times[number % 2]) for number, task in enumerate(tasks)}
    for task, record in records.items():
        record["its search"] = task["n_samples"] ** 1.5
        record["its topics"] = 1.0 - task["n_samples"] / 1000
        record["one random start"] = 0.5 + task["n_samples"] ** (1.0 if task["seed"] == 1000 else 1.2) / 20
    output = write_output(experiment, records, tmp_path)
    summary = experiment.summary(output.table)
    assert summary["part"][:4] == ["MMPCA, whole fit", "its topics", "its search", "one random start"]
    assert summary["part"][4:6] == ["one start as published", "an epoch as published"]
    assert summary["part"][6:] == ["LDA, scikit-learn's", "LDA, as the rivals run it"]
    assert summary["exponent"][2] == pytest.approx(1.5)
    assert summary["exponent beyond it"][2] == "1.50 (1.50 to 1.50)"
    assert summary["fixed, s"][2] == pytest.approx(0.0, abs=1e-6)
    assert (summary["fixed, s"][1], summary["exponent beyond it"][1]) == (None, None)  # it does not grow
    assert summary["exponent"][3] < 1.0
    assert summary["fixed, s"][3] == pytest.approx(0.5, abs=0.05)
    assert summary["exponent beyond it"][3].endswith("(1.00 to 1.20)")  # one seed grows linearly, the other faster
    assert experiment.is_timed  # and so alone in its process, whatever --jobs says


def test_what_takes_long_is_measured_once(monkeypatch):
    times = iter([5.0, 0.7, 0.5, 0.6])
    monkeypatch.setattr("mmpca.experiments.runtime._seconds", lambda part: next(times))
    assert least_seconds(print, 3) == 5.0
    assert least_seconds(print, 3) == 0.5


def test_a_growth_is_told_only_where_it_can_be():
    sizes = [50, 100, 200, 400, 800]
    growth = nearest_growth(sizes, [0.1, 0.2, 0.4, 0.8, 1.6])
    assert growth.fixed == pytest.approx(0.0, abs=1e-9)
    assert growth.exponent == pytest.approx(1.0, abs=0.005)
    assert nearest_growth(sizes[:4], [0.1, 0.2, 0.4, 0.8]) is None
    assert nearest_growth(sizes, [0.5, 0.5, 0.4, 0.4, 0.4]) is None


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_names_of_tasks_are_all_different(name):
    tasks = make(name).tasks()
    assert len({task.key for task in tasks}) == len(tasks)


def test_the_command_knows_all_experiments():
    assert [name.value for name in Name] == list(EXPERIMENTS)
