"""docs/experiments.md: its commands are real, its figures are there, and its tables can be made anew."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from mmpca.experiments import EXPERIMENTS, Ledger, make, write_output
from mmpca.experiments.methods import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "experiments.md").read_text()
COMMANDS = re.findall(r"^    mmpca reproduce (.*)$", DOCUMENT, flags=re.MULTILINE)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return the script that refreshes the document, to work on a copy."""
    spec = importlib.util.spec_from_file_location("draw_experiments", DOCS / "draw_experiments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DOCUMENT", tmp_path / "experiments.md")
    monkeypatch.setattr(module, "FIGURES", tmp_path / "experiments")
    (tmp_path / "experiments.md").write_text(DOCUMENT)
    return module


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_document_name_experiments_and_methods(command):
    name, *options = shlex.split(command)
    assert name in EXPERIMENTS
    assert "--quick" not in options
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert set(given.get("--methods", "mmpca").split(",")) <= set(FAMILIES)
    replicates = int(given["--replicates"]) if "--replicates" in given else None
    assert make(name, replicates=replicates).replicates >= 10


def test_figures_of_the_document_are_there():
    figures = re.findall(r"!\[.*?\]\((.*?)\)", DOCUMENT)
    assert figures
    assert all((DOCS / figure).stat().st_size > 0 for figure in figures)


def test_tables_and_figures_are_put_into_the_document(script, tmp_path, monkeypatch):
    experiment = make("noise", quick=True, families=("mmpca", "mixtures"))
    found = {"ari": 0.4321, "nmi": 0.5}
    records = {task: dict.fromkeys(FAMILIES[task.kind], found) for task in experiment.tasks()}
    folder = tmp_path / "results" / "noise"
    Ledger(folder).open(experiment)
    write_output(experiment, records, folder)
    monkeypatch.setattr("sys.argv", ["draw_experiments.py", str(tmp_path / "results")])
    script.main()
    text = (tmp_path / "experiments.md").read_text()
    assert "| 1.000 | MMPCA | 0.432 | 0.432 |\n| 1.000 | multinomial mixture | 0.432 | 0.432 |" in text
    assert "Behind MMPCA" in text
    assert "| 1.000 | multinomial mixture | 0.000 (0.000) | 0.000 (0.000) |" in text
    assert (tmp_path / "experiments" / "noise.svg").exists()
    before, after = (re.sub(r"(begin noise -->).*?(<!-- end noise)", "", t, flags=re.DOTALL) for t in (DOCUMENT, text))
    assert before == after  # all else is as it was


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["one", "two"]])
def test_a_folder_without_results_is_told(arguments, script, monkeypatch):
    monkeypatch.setattr("sys.argv", ["draw_experiments.py", *arguments])
    with pytest.raises(SystemExit, match=r"Name a folder with results such as noise/noise\.csv"):
        script.main()
