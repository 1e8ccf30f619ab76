"""``mmpca explore``: the report with all rows, served to this machine."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from mmpca.cli import screen
from mmpca.cli.options import InputOptions
from mmpca.cli.report import Sources, read_all
from mmpca.report import Explorer


def run(
    model_path: Path, *, sources: Sources, title: str | None, port: int, in_browser: bool, how: InputOptions
) -> None:
    """Load, read and answer until Ctrl-C."""
    model, given = read_all(model_path, sources=sources, how=how)
    with Explorer(model, title=title, port=port, **given) as explorer:
        screen.out().print(explorer.url, highlight=False, markup=False, soft_wrap=True)
        screen.note("This address is for you alone and lasts until Ctrl-C.")
        with _opened(explorer.url) if in_browser else nullcontext():
            try:
                explorer.serve()
            except KeyboardInterrupt:
                screen.note("Stopped.")


@contextmanager
def _opened(url: str) -> Iterator[None]:
    """Open an address in the browser through a file that only its owner can read, and delete the file in the end.

    The arguments of a command are seen by everybody on the machine, and the address holds a secret.
    """
    descriptor, name = tempfile.mkstemp(prefix="mmpca-", suffix=".html")  # with mode 0600
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_redirection(url))
        webbrowser.open(path.as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)


def _redirection(url: str) -> str:
    """Return a page that leads to an address."""
    target = html.escape(url)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>mmpca explore</title>'
        f'<meta http-equiv="refresh" content="0; url={target}"><p><a href="{target}">To the page</a></p></html>\n'
    )
