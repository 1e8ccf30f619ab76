"""The code and links of README and documentation work."""

import doctest
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from blocks import DOCS, PAGES, ROOT, claimed

README = (ROOT / "README.md").read_text()
RUN = [pytest.param(block, id=block.name) for block in claimed("run")]
SESSIONS = {page: [block.text for block in claimed("compared") if block.page == page] for page in PAGES}
LINKS = [
    pytest.param(page, target, id=f"{page.stem}-{target}")
    for page in PAGES
    for target in sorted(set(re.findall(r"\]\(([^)\s]+)\)", page.read_text())))
]


@pytest.mark.parametrize("block", RUN)
def test_a_python_block_runs_and_prints(block, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # for the files it writes
    if '__name__ == "__main__"' in block.text:  # its worker processes import it
        (tmp_path / "script.py").write_text(block.text)
        done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True)
        assert done.stdout, done.stderr
        return
    exec(compile(block.text, block.name, "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page, texts in SESSIONS.items() if texts])
def test_the_sessions_of_a_page_print_what_they_show(page):
    session = doctest.DocTestParser().get_doctest("\n".join(SESSIONS[page]), {}, page.name, str(page), 0)
    output = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert session.examples


def test_every_section_of_the_faq_raises_its_error():
    errors = (DOCS / "faq.md").read_text().split("\n## ")[1:-1]
    assert len(errors) >= 12
    for section in errors:
        assert "Traceback (most recent call last):\n" in section, section.splitlines()[0]


def test_the_readme_has_code_and_names_the_first_two_commands():
    assert "```python" in README
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_a_link_has_a_target(page, target):
    address = urlsplit(target)
    if address.scheme:
        assert address.scheme == "https"
        assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", address.netloc)
        return
    path = page.parent / address.path
    if path.parent.name == "gallery":  # generated from the examples
        path = ROOT / "examples" / path.with_suffix(".py").name.replace("index.py", "GALLERY_HEADER.rst")
    assert path.exists()


def test_every_page_begins_with_its_title():
    for page in PAGES:
        assert page.read_text().startswith("# "), page


def test_every_documented_make_target_exists():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        for target in re.findall(r"(?:`|^    |\n    )make ([a-z][a-z-]+)", page.read_text()):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), (page.name, target)
