"""Help, wrong usage, and what a process imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mmpca
from mmpca.cli.app import COMMANDS

NAMES = [command.__name__ for command in COMMANDS]


def test_the_help_lists_all_commands(mmpca_command):
    done = mmpca_command("--help")
    assert done.code == 0
    assert [name for name in NAMES if f" {name} " not in done.out] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_has_an_example(mmpca_command, name):
    done = mmpca_command(name, "--help")
    assert done.code == 0
    description = done.out.split("Options")[0].split("\n", 3)[3]
    assert f"mmpca {name} " in description


def test_options_of_a_bundle_become_options_of_the_command(mmpca_command):
    shown = mmpca_command("predict", "--help").out
    assert "--text-column" in shown
    assert "--min-rows" not in shown


def test_the_version_is_printed(mmpca_command):
    done = mmpca_command("--version")
    assert (done.code, done.out.strip()) == (0, mmpca.__version__)


def test_without_a_command_the_help_is_printed_as_after_wrong_usage(mmpca_command):
    done = mmpca_command()
    assert done.code == 2
    assert "Usage:" in done.out


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["nosuch"], "nosuch"),
        (["demo", "--nosuch"], "--nosuch"),
        (["demo", "extra"], "extra"),
        (["demo", "--noise", "1.5"], "--noise"),
        (["demo", "--noise", "much"], "--noise"),
        (["demo", "--balance", "0"], "--balance"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", "4294967296"], "--seed"),
        (["demo", "--jobs", "0"], "--jobs"),
        (["fit"], "input"),
        (["fit", "X.mtx"], "--clusters"),
        *((["fit", "X.mtx", "-k", "2", f"--clusters={n}"], "--clusters") for n in ("2-4", "0", "few", "-1", "2.5")),
        (["fit", "X.mtx", "-q", "2", "-k", "two"], "--topics"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--n-init", "0"], "--n-init"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--start", "best"], "--start"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--algorithm", "magic"], "--algorithm"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--labels", "labels.xls"], "labels.xls"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--labels", "nosuch/labels.csv"], "nosuch"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--model", "nosuch/model"], "nosuch"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--checkpoint", "nosuch/fit.npz"], "nosuch"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--model", "."], "--model"),
        (["convert", "X.mtx", "X.csv"], "X.csv"),
        (["simulate", "X.txt"], "X.txt"),
        (["simulate", "X.npz", "--noise", "2"], "--noise"),
        (["simulate", "X.npz", "-q", "3"], "--topics"),
        *((["select", "X.mtx", f"--clusters={list_}"], "--clusters") for list_ in ("", "2-", "x", "8-2", "2;4", "-3")),
        (["predict", "m.mmpca"], "input"),
        (["explain", "m", "X.mtx", "--features", "-1"], "--features"),
        (["inspect", "X.mtx", "--format", "pdf"], "--format"),
        (["inspect", "X.mtx", "--per", "page"], "--per"),
        (["report", "m", "-o", "nosuch/page.html"], "nosuch"),
        (["explore", "m", "--port", "70000"], "--port"),
        (["reproduce", "noise", "--levels", "2"], "--levels"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_names_the_culprit(mmpca_command, arguments, culprit):
    done = mmpca_command(*arguments)
    assert done.code == 2
    assert culprit in done.error


@pytest.mark.parametrize("code", ["import mmpca", "import mmpca.cli", "help"])
def test_nothing_heavy_is_imported_before_a_command_runs(code):
    if code == "help":
        code = f"""
from mmpca.cli.app import app
for arguments in [["--help"], *([name, "--help"] for name in {NAMES})]:
    app(arguments, standalone_mode=False)
"""
    heavy = "{'numpy', 'numba', 'sklearn', 'scipy', 'pandas', 'mmpca.io', 'mmpca.model'}"
    done = run_python(f"{code}\nimport sys\nprint('imported:', sorted({heavy} & set(sys.modules)))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported: []"


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "mmpca", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == mmpca.__version__


@pytest.mark.parametrize(("typed", "offered"), [("mmpca pre", "predict"), ("mmpca fit --algo", "--algorithm")])
def test_shells_complete_commands_and_options(typed, offered):
    script = Path(sys.executable).with_name("mmpca")
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment = os.environ | words | {"_MMPCA_COMPLETE": "complete_bash"}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [offered]


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError):
        mmpca.Nosuch  # noqa: B018
