"""The typer application with all commands."""

from __future__ import annotations

import functools
import inspect as introspection
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from mmpca.cli.compare import compare
from mmpca.cli.console import with_exit_codes
from mmpca.cli.data import convert, inspect, simulate
from mmpca.cli.demo import demo
from mmpca.cli.explain import explain
from mmpca.cli.fit import fit
from mmpca.cli.options import BUNDLES, check_outputs, files_of
from mmpca.cli.predict import predict
from mmpca.cli.report import explore, report
from mmpca.cli.reproduce import reproduce
from mmpca.cli.results import edit, rename, tables
from mmpca.cli.select import select

# Commands in the order in which a new user needs them, with the heaviest package that each of them imports.
COMMANDS: dict[Callable[..., None], str] = {
    demo: "mmpca.model",
    inspect: "mmpca.model",
    select: "mmpca.selection",
    fit: "mmpca.distributed",
    predict: "mmpca.distributed",
    explain: "mmpca.model",
    tables: "mmpca.model",
    rename: "mmpca.model",
    edit: "mmpca.model",
    report: "mmpca.report",
    explore: "mmpca.report",
    compare: "mmpca.evaluation",
    simulate: "mmpca.simulate",
    convert: "mmpca.io",
    reproduce: "mmpca.paper",
}

app = typer.Typer(
    name="mmpca",
    help="""Cluster count data with a mixture of multinomial PCA.

    New here? Try mmpca demo, then run inspect, select, fit, predict and explain on your own data.
    mmpca COMMAND --help shows examples.

    Exit codes: 0 success; 1 error; 2 wrong usage; 130 interrupted.
    """,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from mmpca import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def expand_bundles(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each bundle of a command by one parameter per option, as typer expects.

    Before the command runs, its files are checked: no output may overwrite an input or another output.
    """
    bundles: dict[str, Any] = {}
    parameters: list[introspection.Parameter] = []
    for name, parameter in introspection.signature(command, eval_str=True).parameters.items():
        if parameter.annotation in BUNDLES:
            bundle = bundles[name] = parameter.annotation
            for field, kind in get_type_hints(bundle, include_extras=True).items():
                default = bundle._field_defaults[field]
                parameters.append(introspection.Parameter(field, parameter.kind, default=default, annotation=kind))
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        """Check the files, collect the bundles, and run the command."""
        check_outputs(*files_of(run.__annotations__, options))
        for name, bundle in bundles.items():
            options[name] = bundle(**{field: options.pop(field) for field in bundle._fields})
        command(**options)

    # typer reads the parameters from the signature, and their options from the annotations.
    run.__signature__ = introspection.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


for _command, _package in COMMANDS.items():
    app.command()(with_exit_codes(expand_bundles(_command), _package))
