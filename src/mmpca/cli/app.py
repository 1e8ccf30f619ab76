"""The app that gathers the commands."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated

import typer

from mmpca.cli.commands import COMMANDS
from mmpca.cli.guard import guarded

OBJECTS_BETWEEN_COLLECTIONS = 100_000

app = typer.Typer(
    name="mmpca",
    help="""Cluster count data through a mixture of multinomial PCA.

    A first path: mmpca demo, then mmpca inspect, select, fit, predict and explain on data of your own;
    mmpca COMMAND --help shows examples.

    Exit codes: 0 fine; 1 input or result refused; 2 wrong usage; 130 interrupted.
    """,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
for _command in COMMANDS:
    app.command()(guarded(_command))


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    if version:
        from mmpca import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def run() -> None:
    """Run the command that the process was started with."""
    # In a process this short, looking for garbage among modules as they load, and at the end, is a tenth of its time.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    app()
