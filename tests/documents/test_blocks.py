"""Every code block of README and documentation is run by exactly one test."""

import re

import pytest
from blocks import BLOCKS, DOCS, PAGES, ROOT, WAYS, blocks_of, claimed


def test_every_block_is_run_in_exactly_one_way():
    n_ways = {block.name: sum(claims(block) for claims in WAYS.values()) for block in BLOCKS}
    assert [name for name, n in n_ways.items() if n != 1] == []


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_blocks(way):
    assert claimed(way)


def test_all_pages_are_included():
    assert {page.name for page in PAGES} >= {"README.md", "CONTRIBUTING.md", "index.md", "faq.md", "application.md"}
    assert len(PAGES) >= 3 + len(list(DOCS.glob("*.md")))


def test_every_fence_opens_or_closes_a_block():
    for page in PAGES:
        n_fences = len(re.findall(r"^\s*(?:```|~~~)", page.read_text(), flags=re.MULTILINE))
        assert n_fences == 2 * sum(bool(block.kind) for block in blocks_of(page)), page.name


@pytest.mark.parametrize(
    ("text", "n_ways"),
    [
        ("```python\nprint(1)\n```", 1),
        ("    mmpca demo  # a comment\n    make test", 1),
        ("    L(Q, K) = 1", 0),
        ("```\nmmpca fit x\n```", 1),
        ("```bash\nmmpca fit x\n```", 0),
        ("- a list\n\n      pip install mmpca", 0),
    ],
)
def test_blocks_that_no_test_runs_are_noticed(tmp_path, text, n_ways):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{text}\n")
    (block,) = blocks_of(page)
    assert sum(claims(block) for claims in WAYS.values()) == n_ways


def test_ci_builds_the_pages():
    assert re.search(r"^make .*\bdocs\b", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
