"""``mmpca explore``: the report with all rows, served to this machine."""

from __future__ import annotations

import webbrowser
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
        if in_browser:
            webbrowser.open(explorer.url)
        try:
            explorer.serve()
        except KeyboardInterrupt:
            screen.note("Stopped.")
