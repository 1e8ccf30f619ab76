"""The code blocks of README and documentation, and the test that runs each kind."""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"_build", "api", "gallery"}  # pages made from scripts and docstrings, whose code runs elsewhere
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in GENERATED),
]
PROGRAMS = ("mmpca", "make", ".")  # the first word of a shell line without a prompt


class Block(NamedTuple):
    """A fenced or indented block of code."""

    page: Path
    line: int  # its first line, from 1
    kind: str  # the word after the fence; empty for an indented block
    text: str

    @property
    def name(self) -> str:
        """Its place, for the names of tests."""
        return f"{self.page.name}:{self.line}"

    @property
    def lines(self) -> list[str]:
        """Its shell lines, without prompts and comments."""
        lines = (re.sub(r"(^|\s)#.*", "", line).removeprefix("$ ").strip() for line in self.text.splitlines())
        return [line for line in lines if line]


def blocks_of(page: Path) -> list[Block]:
    """Return all code blocks of a page."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [
        Block(page, token.map[0] + 1, token.info.strip(), token.content)
        for token in tokens
        if token.type in ("fence", "code_block")
    ]


def is_shell(block: Block) -> bool:
    """Return True for a block of shell lines without prompts."""
    return block.kind == "" and all(line.split()[0] in PROGRAMS for line in block.lines)


WAYS = {
    "run": lambda block: block.kind == "python",  # tests/test_readme.py
    "compared": lambda block: block.kind == "pycon",  # tests/test_readme.py, with the output it shows
    "named": lambda block: block.kind == "r",  # tests/test_readme.py: all that it calls exists
    "typed": lambda block: block.kind == "console",  # tests/cli/test_docs.py, unchanged
    "checked": is_shell,  # tests/documents/test_shell.py: run if that is quick, else parsed
    "built": lambda block: re.fullmatch(r"\{(toctree|eval-rst)\}", block.kind) is not None,  # make docs; no code
}
BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def claimed(way: str) -> list[Block]:
    """Return the blocks that are run in one of the `WAYS`."""
    return [block for block in BLOCKS if WAYS[way](block)]
