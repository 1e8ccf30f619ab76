"""``mmpca reproduce``: tables and figures of the paper's experiments, however often they are interrupted."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest

from mmpca.experiments import Ledger, make, run_tasks, write_output
from mmpca.experiments.experiment import Task

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
    assert summary["balance 1, noise 0.4"][1] == pytest.approx(0.5 + (1000 + 1001) / 2 / 1e4)
    assert [path.name for path in output.files] == ["noise.csv", "noise.png", "noise.svg"]


def invented(task: Task):
    from mmpca.experiments.methods import FAMILIES

    ari = 0.5 + task["seed"] / 1e4
    return {method: {"ari": ari, "nmi": ari / 2} for method in FAMILIES[task.kind]}
