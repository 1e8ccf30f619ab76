"""What the README shows works as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(page, block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_code_block_of_the_documents_runs(page, block, capsys):
    exec(compile(block, page.name, "exec"), {})
    assert capsys.readouterr().out


def test_the_readme_has_code_to_run_and_names_the_two_commands():
    assert "```python" in README
    assert "make demo" in README
    assert "make test" in README


def test_every_file_that_the_readme_links_to_exists():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_target_that_the_documents_name_exists():
    makefile = (ROOT / "Makefile").read_text()
    documents = README + (ROOT / "CONTRIBUTING.md").read_text()
    for target in re.findall(r"\bmake ([a-z][a-z-]+)", documents):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
