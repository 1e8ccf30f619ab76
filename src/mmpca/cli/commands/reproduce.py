"""Options of ``mmpca reproduce``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


class Name(StrEnum):
    """The experiments."""

    intro = "intro"
    noise = "noise"
    selection = "selection"
    sample_size = "sample-size"
    runtime = "runtime"
    reports = "reports"


def check_levels(value: str | None) -> str | None:
    """Refuse what is no list of numbers."""
    if value is not None:
        options.numbers(value)
    return value


def reproduce(
    name: Annotated[Name, typer.Argument(help="The experiment.", show_default=False)],
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-r", min=1, help="Data sets; the paper's number by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of results; mmpca-NAME by default.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in less than two minutes.")] = False,
    levels: Annotated[
        str | None,
        typer.Option("--levels", help="noise: levels, such as 0,0.2,0.4.", callback=check_levels, show_default=False),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="noise, sample-size: some of ceiling, mmpca, lda-space, lda-space-mmpca, lda, lda-mmpca, nmf-em, "
            "mixtures, dirichlet, directions.",
            show_default="all",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=options.LARGEST_SEED,
            help="Of the first data set; 1000 by default.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all cores.", callback=options.check_jobs)] = -1,
) -> None:
    """Run an experiment of the paper, and write its table and figure.

    intro: bound and agreement along a run. noise: all methods under noise and unequal clusters.
    selection: the numbers of clusters and topics. sample-size: all methods with few and many rows.
    runtime: how time grows with the rows. reports: synthetic medical reports, with a page about their clusters.

    Finished parts are kept: the same command goes on where it was stopped, however that was.

    For example:

      mmpca reproduce noise --quick

      mmpca reproduce noise --replicates 10 --levels 0,0.2,0.4,0.6 --out noise --jobs 2
    """
    from mmpca.cli.reproduce import run

    run(
        name.value,
        folder=out or Path(f"mmpca-{name.value}{'-quick' if quick else ''}"),
        quick=quick,
        n_jobs=jobs,
        given={
            "replicates": replicates,
            "seed": seed,
            "levels": None if levels is None else options.numbers(levels),
            "families": None if methods is None else tuple(dict.fromkeys(part.strip() for part in methods.split(","))),
        },
    )
