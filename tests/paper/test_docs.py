"""docs/experiments.md: its commands are valid, its figures exist, and its tables can be updated."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from mmpca.paper import EXPERIMENTS, make, write_output
from mmpca.paper.comparison import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "experiments.md").read_text()
COMMANDS = re.findall(r"^    mmpca reproduce (.*)$", DOCUMENT, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def script():
    """Return the script that updates the page, as a module."""
    spec = importlib.util.spec_from_file_location("draw_experiments", DOCS / "draw_experiments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_experiments_and_methods(command):
    name, *options = shlex.split(command)
    assert name in EXPERIMENTS
    assert "--quick" not in options
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert set(given.get("--methods", "mmpca").split(",")) <= set(FAMILIES)
    replicates = int(given["--replicates"]) if "--replicates" in given else None
    assert name == "design" or make(name, replicates=replicates).replicates >= 10


def test_figures_exist():
    figures = re.findall(r"!\[.*?\]\((.*?)\)", DOCUMENT)
    assert figures
    assert all((DOCS / figure).stat().st_size > 0 for figure in figures)


def test_tables_and_figures_are_updated_and_the_rest_is_kept(script, tmp_path):
    experiment = make("noise", quick=True, families=("mmpca", "mixtures"))
    found = {"ari": 0.4321, "nmi": 0.5}
    records = {task: dict.fromkeys(FAMILIES[task.kind], found) for task in experiment.tasks()}
    folder, page = tmp_path / "results", tmp_path / "page.md"
    (folder / "noise").mkdir(parents=True)
    write_output(experiment, records, folder / "noise")
    page.write_text(DOCUMENT)
    script.update([folder], page)
    text = page.read_text()
    assert "| method | 1, 0 | 1, 0.4 |\n" in text
    assert "| MMPCA | 0.432 | 0.432 |\n| multinomial mixture | 0.432 | 0.432 |" in text
    assert (tmp_path / "page" / "noise.svg").exists()
    assert (tmp_path / "page" / "noise.csv").read_text().startswith("balance,method,noise 0,noise 0.4\n")
    assert (
        "multinomial mixture,0.000 (0.000),0.000 (0.000)" in (tmp_path / "page" / "noise-behind-mmpca.csv").read_text()
    )
    before, after = (re.sub(r"(begin noise -->).*?(<!-- end noise)", "", t, flags=re.DOTALL) for t in (DOCUMENT, text))
    assert before == after


def test_a_method_is_taken_from_the_last_folder_that_has_it_with_its_own_number_of_data_sets(script, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(DOCUMENT)
    for folder, families, replicates, ari in (
        ("old", ("ceiling", "mmpca"), 3, 0.8),
        ("new", ("mmpca",), 2, 0.6),
    ):
        experiment = make("sample-size", replicates=replicates, families=families)
        found = {"ari": ari, "nmi": ari}
        records = {task: dict.fromkeys(FAMILIES[task.kind], found) for task in experiment.tasks()}
        (tmp_path / folder / "sample-size").mkdir(parents=True)
        write_output(experiment, records, tmp_path / folder / "sample-size")
    script.update([tmp_path / "old", tmp_path / "new"], page)
    section = page.read_text().partition("<!-- begin sample-size -->")[2].partition("<!-- end")[0]
    assert "Data sets for each setting: 3 (true parameters); 2 (MMPCA).\n" in section
    assert f"| true parameters |{' 0.800 |' * 5}\n| MMPCA |{' 0.600 |' * 5}\n" in section
    assert "true parameters,-0.200 (0.000)" in (tmp_path / "page" / "sample-size-behind-mmpca.csv").read_text()
    assert (tmp_path / "page" / "sample-size.svg").stat().st_size > 0


def test_data_sets_can_be_added_to_those_of_earlier_runs(script, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(DOCUMENT)
    for folder, seed, replicates, ari in (("first", 1000, 3, 0.8), ("second", 1002, 2, 0.6)):
        experiment = make("sample-size", seed=seed, replicates=replicates, families=("mmpca",))
        records = {task: {"MMPCA": {"ari": ari, "nmi": ari}} for task in experiment.tasks()}
        (tmp_path / folder / "sample-size").mkdir(parents=True)
        write_output(experiment, records, tmp_path / folder / "sample-size")
    script.update([tmp_path / "first"], page)
    script.update([tmp_path / "page" / "runs", tmp_path / "second"], page, adds=True)
    runs = script.read_table(script.result_table(tmp_path / "page" / "runs", "sample-size"))
    assert dict(zip(runs["seed"], runs["ari"], strict=True)) == {1000: 0.8, 1001: 0.8, 1002: 0.6, 1003: 0.6}
    assert len(runs["seed"]) == 4 * 5  # sizes
    script.update([tmp_path / "page" / "runs"], page, adds=True)  # as if the second folder had another experiment
    assert (tmp_path / "page" / "sample-size.svg").stat().st_size > 0


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["one", "two"]])
def test_a_folder_without_results_is_an_error(arguments, script, monkeypatch):
    monkeypatch.setattr("sys.argv", ["draw_experiments.py", *arguments])
    with pytest.raises(SystemExit) as stopped:
        script.main()
    assert stopped.value.code
