"""The lines of docs/cli.md and of the README run as they stand."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer

ROOT = Path(__file__).parents[2]
DOCUMENT, README = (ROOT / "docs" / "cli.md").read_text(), (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", DOCUMENT + README, flags=re.DOTALL)
SUBJECTS = ("river stone water fish boat", "engine wheel road fuel driver", "bread oven flour salt baker")


def write_reports(folder):
    """Write short texts on three subjects."""
    rng = np.random.default_rng(0)
    for name, n_texts in (("reports", 30), ("new-reports", 6)):
        (folder / name).mkdir()
        for number in range(n_texts):
            words = rng.choice(SUBJECTS[number % 3].split(), size=25)
            (folder / name / f"{number}.txt").write_text("The " + " and the ".join(words) + ".")


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_lines_of_the_documents_run(mmpca_command, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_reports(tmp_path)
    for line in block.splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "mmpca"
        done = mmpca_command(*arguments)
        assert done.code == 0, f"{line}\n{done.err}"


def test_there_are_lines_to_run():
    assert BLOCKS


# What takes long, waits for a reader or needs data of one's own is not run: its options are read as if it were.
OTHERS = [
    (page.name, line.split("#")[0].strip())
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for line in re.findall(r"^    (mmpca .*)$", page.read_text(), flags=re.MULTILINE)
]


@pytest.mark.parametrize(("page", "line"), OTHERS, ids=[f"{page}-{line}" for page, line in OTHERS])
def test_other_lines_are_understood(page, line, tmp_path, monkeypatch):
    from mmpca.cli.app import app

    monkeypatch.chdir(tmp_path)
    for name in ("sites.mtx", "sites.mmpca", "truth.csv", "cells.csv"):
        (tmp_path / name).touch()
    group = typer.main.get_command(app)
    _, name, *arguments = shlex.split(line)
    root = group.make_context("mmpca", [name])
    command = group.get_command(root, name)
    assert command is not None, f"{page}: there is no command {name}"
    command.make_context(name, arguments, parent=root)


def test_there_are_other_lines():
    assert len(OTHERS) >= 8


def test_every_command_is_in_the_document():
    from mmpca.cli.commands import COMMANDS

    for command in COMMANDS:
        assert f"| `{command.__name__}` |" in DOCUMENT
