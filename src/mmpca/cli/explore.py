"""``mmpca explore``: browse a model and its rows on this machine."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import console, options
from mmpca.cli.options import PageOptions, ReadOptions
from mmpca.cli.report import read_contents


def explore(
    model: options.Model,
    page: PageOptions = PageOptions(),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 chooses a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the browser.")] = False,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Browse a model: the page of mmpca report, and all rows with search and explanations.

    The page is served to this machine only, at an address with a secret token, until Ctrl-C.

    For example:

      mmpca explore counts.mmpca --data counts.mtx --browser
    """
    from mmpca.report import Explorer

    fitted, contents = read_contents(model, page, read)
    with Explorer(fitted, title=page.title, port=port, **contents) as explorer:
        console.line(explorer.url)
        console.notes(["This address is private to you and works until Ctrl-C."])
        with _browser(explorer.url) if browser else nullcontext():
            try:
                explorer.serve()
            except KeyboardInterrupt:
                console.notes(["Stopped."])


@contextmanager
def _browser(url: str) -> Iterator[None]:
    """Open a URL in the browser through a temporary file that redirects to it.

    The URL holds a secret, and the arguments of the browser's process are visible to every user of the machine.
    """
    descriptor, name = tempfile.mkstemp(prefix="mmpca-", suffix=".html")  # mode 0600
    path, target = Path(name), html.escape(url)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html><html lang="en"><meta charset="utf-8"><title>mmpca explore</title>'
                f'<meta http-equiv="refresh" content="0; url={target}"><p><a href="{target}">Open</a></p></html>\n'
            )
        webbrowser.open(path.as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)
