"""Lines of README and documentation that take long are run in a short form, the others as they stand."""

import re
import shutil
import subprocess
import webbrowser
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from blocks import claimed
from short import LESS, made, run_in_full_by_ci, run_script, small_experiment, split
from typer.testing import CliRunner

from mmpca.cli.app import app
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.report import Explorer

LINES = [pytest.param(line, id=f"{block.name}-{line}") for block in claimed("shortened") for line in block.lines]
ENV = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}


def mmpca(*arguments):
    """Run a command in this process, and see that it ends well."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=ENV)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{arguments}\n{result.stderr}"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Return a folder with the files that lines speak of, as docs/cli.md makes them, smaller."""
    folder = tmp_path_factory.mktemp("sites")
    counts = folder / "sites.mtx"
    mmpca("simulate", counts, "--rows", 60, "--noise", 0.1, "--labels", folder / "truth.csv")
    numbers = ("--clusters", "5-6", "--topics", "4", "--jobs", 1)
    mmpca("select", counts, *numbers, "--model", folder / "sites.mmpca", "--results", folder / "cells.csv")
    table = read_counts(counts)
    for name in ("part", "new"):
        for number, rows in enumerate((slice(0, 25), slice(25, 60))):
            part = CountTable(table.X[rows], None, table.feature_names, [])
            write_counts(folder / f"{name}-{number}.npz", part)
    (folder / "all.mmpca").write_bytes((folder / "sites.mmpca").read_bytes())
    return folder


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a scheduler with a worker, in this process."""
    from distributed import LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    with LocalCluster(host="127.0.0.1", dashboard_address="127.0.0.1:0", **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def place(sites, tmp_path, monkeypatch):
    """Return a folder of these files to run in, where experiments are small."""
    shutil.copytree(sites, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mmpca.cli.reproduce.make", small_experiment)
    yield tmp_path
    plt.close("all")


def leave(explorer):
    """Stop a server as a reader would."""
    raise KeyboardInterrupt


def with_scheduler(line, request):
    """Return a line with the address of a scheduler that is there, if it names one."""
    if "--scheduler " not in line:
        return line
    return re.sub(r"(--scheduler) tcp://\S+:\d+", rf"\1 {request.getfixturevalue('scheduler')}", line)


def run(line, place, monkeypatch, capsys):
    """Run a line, or the commands that it makes."""
    program, arguments = split(line)
    if program == "mmpca":
        with monkeypatch.context() as patch:
            patch.setattr(webbrowser, "open", lambda address: True)
            patch.setattr(Explorer, "serve", leave)
            mmpca(*arguments, *LESS.get(arguments[0], ()))
    elif program == "":  # the dot, which reads a file into the shell
        activate(Path(arguments[0]), place)
    elif program == "make":
        run_made(made(*arguments), place, monkeypatch, capsys)
    elif program == "python":
        code = run_script(*arguments[:1], arguments[1:], place, monkeypatch)
        told = capsys.readouterr()
        # 1: what is required of results does not hold for small ones; 2: the reader's own data, "path", are missing.
        asked = code == 2 and "path" in arguments and re.search(r"no folder path|^path holds no", told.err)
        assert code in (None, 0, 1) or asked, told.err
    else:
        assert program == "test", f"nobody knows how to run {line}"
        subprocess.run(["sh", "-c", line], check=True)


def run_made(commands, place, monkeypatch, capsys):
    """Run the commands of a target that CI does not make."""
    assert commands
    if not set(commands) <= run_in_full_by_ci():
        for command in commands:
            run(command, place, monkeypatch, capsys)


@pytest.mark.parametrize("line", LINES)
def test_a_line_runs_in_its_short_form(line, place, monkeypatch, capsys, request):
    line = with_scheduler(line, request)
    before = {path.name for path in place.iterdir()}
    program, arguments = split(line)
    run(line, place, monkeypatch, capsys)
    if program == "mmpca" and arguments[0] != "explore" and "-o" not in arguments:
        assert {path.name for path in place.iterdir()} > before  # something was written
    for option in ("-o", "--output", "--out"):
        if program == "mmpca" and option in arguments:
            assert (place / arguments[arguments.index(option) + 1]).exists()


def activate(path, place):
    """Make the environment that `make demo` makes, without packages, and enter it as the line does."""
    (command,) = [line for line in made("-B", "demo", installed=()) if " -m venv " in line]
    subprocess.run([*command.split(), "--without-pip"], cwd=place, check=True)
    lines = f". {path} && command -v python"
    done = subprocess.run(["sh", "-c", lines], cwd=place, check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).parent.resolve() == (place / path).parent.resolve()


@pytest.mark.parametrize(
    "line",
    [
        "mmpca reproduce noises",
        "mmpca reproduce intro --levels 0.1",
        "mmpca reproduce noise --methods mmpca,kmeans",
        "mmpca report sites.mmpca --data other.mtx",
        "mmpca compare sites.mtx --clusters 6 --topics 4 --label truth.csv",
        "make benchmark",
        "make parity REFERENCES=path",
        "make bench OPTIONS=--onyl",
        "pip install mmpca",
    ],
)
def test_a_wrong_line_fails(line, place, monkeypatch, capsys):
    with pytest.raises((AssertionError, ValueError, SystemExit)):
        run(line, place, monkeypatch, capsys)
