"""The code and links of README and documentation work."""

import doctest
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from blocks import DOCS, PAGES, ROOT, claimed
from samples import write_samples

import mmpca
from mmpca.text import read_texts

README = (ROOT / "README.md").read_text()
FIRST_STEPS = [block for block in claimed("run") if block.page.name == "first_steps.md"]  # which need files
RUN = [pytest.param(block, id=block.name) for block in claimed("run") if block not in FIRST_STEPS]
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


def test_every_path_of_the_first_steps_runs_in_six_lines_prints_and_ends_with_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_samples(tmp_path)
    assert len(FIRST_STEPS) == 5
    found = {}
    for block in FIRST_STEPS:
        imports, _, steps = block.text.partition("\n\n")
        assert all(line.startswith(("import ", "from ")) for line in imports.splitlines())
        assert len(steps.splitlines()) <= 6, block.name
        exec(compile(block.text, block.name, "exec"), names := {})
        assert capsys.readouterr().out, block.name
        found |= names
        assert re.search(r"\.mmpca", steps)
        assert "savefig" in steps
    assert {path.stem for path in tmp_path.glob("*.mmpca")} == {"reviews", "reports", "otu", "cells", "counts"}
    # The quirks were read as meant: Windows-1252, ids, OTUs in rows, their taxonomy.
    assert "café" in mmpca.load("reviews.mmpca").feature_names_in_
    assert any("größe" in text for text in read_texts("reports").texts)
    assert "k__Bacteria; g__Genus0" in mmpca.load("otu.mmpca").feature_annotations_["taxonomy"]
    assert found["table"].X.shape == (40, 8)


def test_everything_that_r_calls_exists():
    fitted = mmpca.MMPCA(2, 2, random_state=0).fit([[5, 1], [1, 5], [4, 1], [1, 4]])
    known = {*dir(mmpca), *dir(fitted), *dir(mmpca.TextClusters), "MMPCA", "TextClusters", "load"} | {
        "row",
        "cluster",
        "cluster_name",
    }
    for block in claimed("named"):
        assert set(re.findall(r"\$(\w+)", block.text)) <= known


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
