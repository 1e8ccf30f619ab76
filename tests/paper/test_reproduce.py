"""``mmpca reproduce``: experiments by name, and a run that is killed and resumed."""

import signal
import sys

import pytest
from typer.testing import CliRunner

from mmpca.cli.app import app
from mmpca.cli.options import ExperimentName, name_list
from mmpca.cli.reproduce import reproduce
from mmpca.paper import EXPERIMENTS, make, run_tasks, write_output

INTRO = ("intro", "--quick", "--replicates", "2", "--jobs", "1")


KILLED = """
import os, signal, sys
from pathlib import Path
from mmpca.paper import make, run_tasks

def kill(progress):
    if progress.n_done == 1:
        os.kill(os.getpid(), signal.SIGKILL)

run_tasks(make("intro", quick=True, replicates=2), Path(sys.argv[1]), n_jobs=1, callback=kill)
"""


def saved(folder):
    return list(folder.glob("tasks/*.npz"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_run_resumes_with_the_same_results(start_python, tmp_path):
    folder = tmp_path / "killed"
    killed = start_python("-c", KILLED, folder)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in saved(folder)}
    assert len(before) == 1
    assert not (folder / "intro.csv").exists()

    again = CliRunner().invoke(app, ["reproduce", *INTRO, "--out", str(folder)])
    assert again.exit_code == 0, again.output
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())  # not run again

    experiment = make("intro", quick=True, replicates=2)
    whole = tmp_path / "whole"
    write_output(experiment, run_tasks(experiment, whole), whole)
    for name in ("intro.csv", "intro.svg"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert (folder / "intro.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "option"), [("intro", {"methods": ("mmpca",)}), ("runtime", {"levels": (0.2,)})])
def test_the_command_rejects_options_of_other_experiments(name, option, tmp_path):
    with pytest.raises(ValueError, match=f"--{next(iter(option))}"):
        reproduce(ExperimentName(name), out=tmp_path / "out", jobs=1, **option)
    assert not (tmp_path / "out").exists()


def test_a_method_given_twice_is_run_once():
    assert name_list("mmpca, lda,mmpca") == ("mmpca", "lda")


@pytest.mark.parametrize(
    ("name", "options"),
    [("noises", {}), ("intro", {"levels": (0.1,)}), ("noise", {"families": ("mmpca", "kmeans")})],
)
def test_unknown_experiments_options_and_methods_raise(name, options):
    with pytest.raises(ValueError, match=str(next(iter(options), name)).replace("families", "kmeans")):
        make(name, **options)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_keys_of_tasks_are_unique(name):
    tasks = make(name).tasks()
    assert len({task.key for task in tasks}) == len(tasks)


def test_the_command_knows_all_experiments():
    assert [name.value for name in ExperimentName] == list(EXPERIMENTS)
