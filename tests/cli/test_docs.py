"""Lines behind a prompt run as they stand, on whatever page they are."""

import shlex

import numpy as np
import pytest
from blocks import DOCS, claimed

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
def test_the_lines_of_the_documents_run(mmpca_command, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_reports(tmp_path)
    for line in block.lines:
        program, *arguments = shlex.split(line)
        assert program == "mmpca"
        done = mmpca_command(*arguments)
        assert done.code == 0, f"{line}\n{done.err}"


def test_every_command_is_in_the_document():
    from mmpca.cli.commands import COMMANDS

    document = (DOCS / "cli.md").read_text()
    for command in COMMANDS:
        assert f"| `{command.__name__}` |" in document


def test_what_a_checkpoint_keeps_is_told_in_the_same_words_everywhere():
    from mmpca import MMPCA
    from mmpca.cli.commands.fit import fit as command
    from mmpca.distributed import fit
    from mmpca.model.searching import SAMPLED_ROWS

    option = command.__annotations__["checkpoint"]
    for page in (MMPCA.fit.__doc__, fit.__doc__, str(option), (DOCS / "cli.md").read_text()):
        words = " ".join(page.split())
        assert f"of a greedy search of more than {SAMPLED_ROWS:,} rows" in words
        assert "labels after each epoch" in words
