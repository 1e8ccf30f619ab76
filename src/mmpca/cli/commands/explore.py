"""Options of ``mmpca explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from mmpca.cli import options
from mmpca.cli.commands.report import DataOption, LabelsOption, ResultsOption, TextsOption, TitleOption


def explore(
    model: options.Model,
    data: DataOption = None,
    labels: LabelsOption = None,
    texts: TextsOption = None,
    results: ResultsOption = None,
    title: TitleOption = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in your browser.")] = False,
    format: options.FormatOption = None,
    row_names: options.RowNames = None,
    feature_names: options.FeatureNames = None,
    transpose: options.Transpose = None,
    layer: options.Layer = None,
    text: options.Text = False,
    text_column: options.TextColumn = None,
) -> None:
    """Look through a model in your browser: the page of mmpca report, and all rows with search and reasons.

    The page is served to this machine alone, under an address that nobody can guess, until Ctrl-C.

    For example:

      mmpca explore counts.mmpca --data counts.mtx --browser
    """
    from mmpca.cli.explore import run
    from mmpca.cli.report import Sources

    run(
        model,
        sources=Sources(data, labels, texts, results),
        title=title,
        port=port,
        in_browser=browser,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
    )
