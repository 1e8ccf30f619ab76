"""The commands of ``mmpca``."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="mmpca",
    help="Cluster count data through a mixture of multinomial PCA.",
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)


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


def _check_jobs(value: int) -> int:
    """Refuse a number of threads that means nothing."""
    if value == 0:
        raise typer.BadParameter("0 threads do nothing; give 1 or more, or -1 for all cores.")
    return value


@app.command()
def demo(
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of words whose topic is drawn blindly.")] = 0.2,
    balance: Annotated[float, typer.Option(min=0.01, max=1.0, help="1 for clusters of equal size.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the data and of the fit.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for all cores.", callback=_check_jobs)] = -1,
) -> None:
    """Simulate the paper's design, fit it, and show clusters and topics beside the truth.

    400 documents of 250 words, in six clusters that mix the topics of four articles.

    Example: mmpca demo --noise 0.4 --balance 0.7
    """
    from mmpca.cli.demo import run

    run(noise=noise, balance=balance, seed=seed, jobs=jobs)


def main() -> None:
    """Run the command line."""
    app()
