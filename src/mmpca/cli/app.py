"""The app that gathers the commands."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from mmpca.cli.commands import COMMANDS
from mmpca.cli.guard import guarded

OBJECTS_BETWEEN_COLLECTIONS = 100_000


def new_app(commands: Sequence[Callable[..., None]]) -> typer.Typer:
    """Return the app of some commands."""
    made = typer.Typer(
        name="mmpca",
        help="""Cluster count data through a mixture of multinomial PCA.

    A first path: mmpca demo, then mmpca inspect, select, fit, predict and explain on data of your own;
    mmpca COMMAND --help shows examples.

    Exit codes: 0 fine; 1 input or result refused; 2 wrong usage; 130 interrupted.
    """,
        rich_markup_mode="rich",
        pretty_exceptions_show_locals=False,
    )
    made.callback(invoke_without_command=True)(_root)
    for command in commands:
        made.command()(guarded(command))
    return made


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


app = new_app(COMMANDS)


def commands_of(arguments: Sequence[str]) -> Sequence[Callable[..., None]]:
    """Return the commands that arguments can mean: one where it is named first, or else all."""
    return [command for command in COMMANDS if arguments[:1] == [command.__name__]] or COMMANDS


def run() -> None:
    """Run the command that the process was started with."""
    # In a process this short, looking for garbage among modules as they load, and at the end, is a tenth of its time.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    # So would making ready the options of commands that are not asked for.
    new_app(commands_of(sys.argv[1:]))()
