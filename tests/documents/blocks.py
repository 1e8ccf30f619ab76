"""The code blocks of README and documentation, and the way in which each of them is run."""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages that are generated from scripts and docstrings, whose code runs elsewhere.
GENERATED = {"_build", "api", "gallery"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in GENERATED),
]
PROGRAMS = ("mmpca", "make", ".")  # what lines without a prompt may begin with


class Block(NamedTuple):
    """A block of code as Markdown has it."""

    page: Path
    line: int  # where it begins, counted from 1
    kind: str  # what stands behind the fence; empty for an indented block
    text: str

    @property
    def name(self) -> str:
        """Where it is, for the names of tests."""
        return f"{self.page.name}:{self.line}"

    @property
    def lines(self) -> list[str]:
        """Lines of a shell, without prompt and comments."""
        lines = (re.sub(r"(^|\s)#.*", "", line).removeprefix("$ ").strip() for line in self.text.splitlines())
        return [line for line in lines if line]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, fenced or indented, wherever they stand."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [
        Block(page, token.map[0] + 1, token.info.strip(), token.content)
        for token in tokens
        if token.type in ("fence", "code_block")
    ]


def is_shell(block: Block) -> bool:
    """Tell whether an indented block is made of lines of a shell, of programs that are known."""
    return block.kind == "" and all(line.split()[0] in PROGRAMS for line in block.lines)


WAYS = {
    "run": lambda block: block.kind == "python",  # test_readme.py, as it stands
    "compared": lambda block: block.kind == "pycon",  # test_readme.py, with what it shows
    "typed": lambda block: block.kind == "console",  # cli/test_docs.py, every line as it stands
    "shortened": is_shell,  # test_short.py, every line with less of everything
    "built": lambda block: re.fullmatch(r"\{(toctree|eval-rst)\}", block.kind) is not None,  # no code: by make docs
}
BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def claimed(way: str) -> list[Block]:
    """Return the blocks that are run in a certain way."""
    return [block for block in BLOCKS if WAYS[way](block)]
