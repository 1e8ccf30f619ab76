"""The lines of docs/cli.md run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", DOCUMENT, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_lines_of_the_document_run_in_an_empty_folder(mmpca_command, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in block.splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "mmpca"
        done = mmpca_command(*arguments)
        assert done.code == 0, f"{line}\n{done.err}"


def test_there_are_lines_to_run():
    assert BLOCKS


def test_every_command_is_in_the_document():
    from mmpca.cli.commands import COMMANDS

    for command in COMMANDS:
        assert f"| `{command.__name__}` |" in DOCUMENT
