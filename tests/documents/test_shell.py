"""Shell lines of README and documentation: quick ones run on small data, long ones are parsed with their options."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from blocks import ROOT, claimed
from typer.testing import CliRunner

from mmpca.cli.app import app
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.paper import make

LINES = [pytest.param(line, id=f"{block.name}-{line}") for block in claimed("checked") for line in block.lines]
PARSED = ("compare", "explore", "reproduce")  # commands that take long or wait for a reader; run by tests/cli
ENV = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}
USAGE_ERROR = typer.BadParameter.__base__  # of click, which newer versions of typer contain
INSTALLED = (".venv/installed", ".venv/installed-dev")


# --- data -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Return a folder with small versions of the files that the pages mention."""
    folder = tmp_path_factory.mktemp("sites")
    counts = folder / "sites.mtx"
    run_mmpca("simulate", counts, "--rows", 60, "--noise", 0.1, "--labels", folder / "truth.csv")
    sizes = ("--clusters", "5-6", "--topics", "4", "--jobs", 1)
    run_mmpca("select", counts, *sizes, "--model", folder / "sites.mmpca", "--results", folder / "cells.csv")
    table = read_counts(counts)
    for name in ("part", "new"):
        for number, rows in enumerate((slice(0, 25), slice(25, 60))):
            write_counts(folder / f"{name}-{number}.npz", CountTable(table.X[rows], None, table.feature_names, []))
    shutil.copy(folder / "sites.mmpca", folder / "all.mmpca")
    return folder


@pytest.fixture
def folder(sites, tmp_path, monkeypatch):
    """Work in a copy of these files."""
    shutil.copytree(sites, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a Dask scheduler with one worker in this process."""
    from distributed import LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    with LocalCluster(host="127.0.0.1", dashboard_address="127.0.0.1:0", **options) as cluster:
        yield cluster.scheduler_address


# --- checking a line --------------------------------------------------------------------------------------------


def check(line):
    """Run a line if that is quick, and else check that it could run."""
    program, *arguments = shlex.split(line)
    program = Path(program).name
    if program == "make":
        for command in made(*arguments):
            check_made(command)
    else:
        assert program == "mmpca", f"unknown program in {line}"
        (parse_mmpca if arguments[0] in PARSED else run_mmpca)(*arguments)


def run_mmpca(*arguments):
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=ENV)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{arguments}\n{result.stderr}"


def parse_mmpca(*arguments):
    """Parse a command without running it; an experiment is created, and must have something to do."""
    group = typer.main.get_command(app)
    with group.make_context("mmpca", list(arguments)) as context:
        name, command, rest = group.resolve_command(context, list(arguments))
        given = command.make_context(name, rest, parent=context).params
    if name == "reproduce":
        options = {key: given[key] for key in ("replicates", "seed", "levels")}
        experiment = make(given["name"].value, quick=given["quick"], families=given["methods"], **options)
        assert experiment.tasks()


def made(*arguments, installed=INSTALLED):
    """Return the commands that ``make`` would run once these files exist."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for argument in arguments:
        if "=" in argument:
            assert f"$({argument.partition('=')[0]})" in makefile, f"the Makefile does not use {argument}"
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}  # of a make that runs the tests
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    existing = [option for file in installed for option in ("-o", file)]
    command = ["make", "--no-print-directory", "-n", *existing, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\\\n", " ").splitlines()


def check_made(command):
    """Check a command of the Makefile: scripts exist, import and accept their arguments."""
    program, *arguments = shlex.split(command)
    if Path(program).name == "mmpca" and arguments[0] in PARSED:
        parse_mmpca(*arguments)
    if Path(program).name == "python" and arguments[0] != "-m":
        script = ROOT / arguments[0]
        assert script.is_file()
        spec = importlib.util.spec_from_file_location(script.stem, script)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as error:  # the tests do not need the libraries that benchmarks compare with
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"{script.name}: {error}")
        if script.parent.name == "benchmarks":
            module.parse(arguments[1:])


# --- tests ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of libraries that benchmarks compare with
@pytest.mark.parametrize("line", [line for line in LINES if not line.values[0].startswith(". ")])
def test_a_line_runs_or_could_run(line, folder, request):
    if "--scheduler " in line:
        line = re.sub(r"(--scheduler) tcp://\S+:\d+", rf"\1 {request.getfixturevalue('scheduler')}", line)
    check(line)
    words = shlex.split(line)
    if words[0] == "mmpca" and words[1] not in PARSED:
        for option in {"-o", "--output", "--labels", "--model"} & set(words):
            assert (folder / words[words.index(option) + 1]).exists()


@pytest.mark.parametrize("line", [line for line in LINES if line.values[0].startswith(". ")])
def test_the_environment_of_make_demo_can_be_activated(line, tmp_path):
    (command,) = [made_line for made_line in made("-B", "demo", installed=()) if " -m venv " in made_line]
    subprocess.run([*command.split(), "--without-pip"], cwd=tmp_path, check=True)
    shell = ["sh", "-c", f"{line} && command -v python"]
    done = subprocess.run(shell, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).parent.resolve() == (tmp_path / ".venv" / "bin").resolve()


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
def test_a_wrong_line_fails(line, folder):
    with pytest.raises((AssertionError, ValueError, SystemExit, USAGE_ERROR)):
        check(line)
