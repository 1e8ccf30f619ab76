"""What README and documentation show works as it stands."""

import doctest
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
# Pages that are generated from scripts and docstrings, whose code runs elsewhere.
GENERATED = {"_build", "api", "gallery"}
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in GENERATED),
]
BLOCKS = [
    pytest.param(page, block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
]
SESSIONS = [pytest.param(page, id=page.stem) for page in PAGES if "```pycon" in page.read_text()]
LINKS = [
    pytest.param(page, target, id=f"{page.stem}-{target}")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
    for target in sorted(set(re.findall(r"\]\(([^)\s]+)\)", page.read_text())))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_code_block_of_the_documents_runs(page, block, capsys):
    exec(compile(block, page.name, "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page_give_what_they_show(page):
    code = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), flags=re.DOTALL))
    session = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=told.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(told)
    assert session.examples


def test_every_error_of_the_questions_page_is_provoked_there():
    errors = (DOCS / "faq.md").read_text().split("\n## ")[1:-1]
    assert len(errors) >= 12
    for section in errors:
        assert "Traceback (most recent call last):\n" in section, section.splitlines()[0]


def test_the_readme_has_code_to_run_and_names_the_two_commands():
    assert "```python" in README
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_a_link_leads_somewhere(page, target):
    address = urlsplit(target)
    if address.scheme:
        assert address.scheme == "https"
        assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", address.netloc)
        return
    place = page.parent / address.path
    if place.parent.name == "gallery":  # made from the examples
        place = ROOT / "examples" / place.with_suffix(".py").name.replace("index.py", "GALLERY_HEADER.rst")
    assert place.exists()


def test_every_page_is_made_of_sections_and_begins_with_its_title():
    for page in PAGES:
        assert page.read_text().startswith("# "), page


def test_every_make_target_that_the_documents_name_exists():
    makefile = (ROOT / "Makefile").read_text()
    documents = [*PAGES, ROOT / "CONTRIBUTING.md"]
    for page in documents:
        for target in re.findall(r"(?:`|^    |\n    )make ([a-z][a-z-]+)", page.read_text()):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), (page.name, target)
