"""No code block of README and documentation is left out: each is run in one way."""

import re

import pytest
from blocks import BLOCKS, DOCS, PAGES, ROOT, WAYS, blocks_of, claimed


@pytest.mark.parametrize("block", BLOCKS, ids=[block.name for block in BLOCKS])
def test_a_block_is_run_in_exactly_one_way(block):
    ways = [way for way, claims in WAYS.items() if claims(block)]
    assert len(ways) == 1, f"{block.name} ({block.kind or 'indented'}) is run by {ways or 'no test'}:\n{block.text}"


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_blocks(way):
    assert claimed(way)


def test_all_pages_are_looked_at():
    assert {page.name for page in PAGES} >= {"README.md", "CONTRIBUTING.md", "index.md", "faq.md", "application.md"}
    assert len(PAGES) >= 3 + len(list(DOCS.glob("*.md")))


def test_no_fence_is_missed():
    """Every fence of a page opens or closes one of its blocks."""
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
def test_blocks_that_nobody_runs_are_noticed(tmp_path, text, n_ways):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{text}\n")
    (block,) = blocks_of(page)
    assert sum(claims(block) for claims in WAYS.values()) == n_ways


def test_ci_builds_the_pages():
    assert re.search(r"^make docs$", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
