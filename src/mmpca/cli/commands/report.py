"""Options of ``mmpca report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options

_SHOWN = "What is shown"


DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="The input of the fit, or new rows: rows and reasons.", rich_help_panel=_SHOWN),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "--labels", help="Known labels: a column of .csv or .tsv, or one on each line.", rich_help_panel=_SHOWN
    ),
]
TextsOption = Annotated[
    Path | None,
    typer.Option("--texts", help="Texts of the rows: a folder or file, see --text.", rich_help_panel=_SHOWN),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option("--results", help="Table of all cells that mmpca select wrote: .csv.", rich_help_panel=_SHOWN),
]
TitleOption = Annotated[str | None, typer.Option("--title", help="Heading of the page.", rich_help_panel=_SHOWN)]


def report(
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="HTML file to write.", callback=options.check_new_model),
    ] = Path("report.html"),
    data: DataOption = None,
    labels: LabelsOption = None,
    texts: TextsOption = None,
    results: ResultsOption = None,
    title: TitleOption = None,
    format: options.FormatOption = None,
    row_names: options.RowNames = None,
    feature_names: options.FeatureNames = None,
    transpose: options.Transpose = None,
    layer: options.Layer = None,
    text: options.Text = False,
    text_column: options.TextColumn = None,
) -> None:
    """Write one HTML page about a model, to look at and to send: clusters, topics, rows, and how they were found.

    The page needs no network and no other file. Labels and texts go by the order of the rows;
    labels in a table with a column "row" go by the rows' names, and a table with only some of them is refused.

    For example:

      mmpca report counts.mmpca --data counts.mtx --labels truth.csv -o counts.html

      mmpca report reports.mmpca --data reports/ --title "Pathology reports of 2019"
    """
    from mmpca.cli.report import Sources, run

    run(
        model,
        output,
        sources=Sources(data, labels, texts, results),
        title=title,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
    )
