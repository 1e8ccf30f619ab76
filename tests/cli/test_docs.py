"""The lines behind a prompt in the documentation run unchanged."""

import shlex

import numpy as np
import pytest
from blocks import DOCS, claimed
from joblib import parallel_config
from samples import write_samples

from mmpca.cli.app import COMMANDS

SUBJECTS = ("river stone water fish boat", "engine wheel road fuel driver", "bread oven flour salt baker")


def write_reports(folder):
    """Write short texts on three subjects."""
    rng = np.random.default_rng(0)
    for name, n_texts in (("reports", 30), ("new-reports", 6)):
        (folder / name).mkdir()
        for number in range(n_texts):
            words = rng.choice(SUBJECTS[number % 3].split(), size=25)
            (folder / name / f"{number}.txt").write_text("The " + " and the ".join(words) + ".")


@pytest.mark.parametrize("block", [pytest.param(block, id=block.name) for block in claimed("typed")])
def test_the_lines_of_a_block_run(mmpca_command, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (write_samples if block.page.name == "first_steps.md" else write_reports)(tmp_path)
    for line in block.lines:
        program, *arguments = shlex.split(line)
        assert program == "mmpca"
        with parallel_config("threading"):  # no new processes, which would import everything again
            done = mmpca_command(*arguments)
        assert done.code == 0, f"{line}\n{done.err}"


def test_every_command_is_documented():
    document = (DOCS / "cli.md").read_text()
    assert [command.__name__ for command in COMMANDS if f"| `{command.__name__}` |" not in document] == []
