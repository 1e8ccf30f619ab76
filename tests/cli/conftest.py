"""A runner for commands, and a folder with a small model that tests share."""

import json
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from mmpca.cli.app import app

# Wide enough that no line is wrapped, and without colors.
ENV = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


class Outcome(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        """Standard error as one line, without the frame that typer draws."""
        return " ".join(self.err.replace("│", " ").split())


def run_command(*arguments):
    """Run a command in this process; an exception that did not become an exit code fails the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=ENV)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Return the folder in which commands keep finished parts, instead of the cache of the user."""
    ENV["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    return ENV["XDG_CACHE_HOME"]


@pytest.fixture(scope="session")
def mmpca_command(cache):
    return run_command


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Return a folder with simulated counts, the true labels, a model and its labels."""
    folder = tmp_path_factory.mktemp("studio")
    made = run_command("simulate", folder / "X.mtx", "--rows", 120, "--seed", 1, "--labels", folder / "truth.csv")
    assert made.code == 0, made.err
    fitted = run_command(
        *("fit", folder / "X.mtx", "--clusters", 6, "--topics", 4, "--n-init", 2, "--jobs", 1),
        *("--model", folder / "X.mmpca", "--labels", folder / "labels.csv"),
    )
    assert fitted.code == 0, fitted.err
    return folder
