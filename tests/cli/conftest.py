"""How commands are run in these tests, and a small model that they share."""

import json
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from mmpca.cli.app import app

# Wide enough that no line is folded, and without colours.
ENV = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}


class Outcome(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def run_command(*arguments):
    """Run a command in this process; an exception that it did not turn into an exit code fails the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=ENV)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def mmpca_command():
    return run_command


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Return a folder with simulated counts, their truth, a model and its labels."""
    folder = tmp_path_factory.mktemp("studio")
    made = run_command("simulate", folder / "X.mtx", "--rows", 120, "--seed", 1, "--labels", folder / "truth.csv")
    assert made.code == 0, made.err
    fitted = run_command(
        *("fit", folder / "X.mtx", "--clusters", 6, "--topics", 4, "--n-init", 2, "--jobs", 1),
        *("--model", folder / "X.mmpca", "--labels", folder / "labels.csv"),
    )
    assert fitted.code == 0, fitted.err
    return folder
