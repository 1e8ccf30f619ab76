"""Options of ``mmpca explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


def explain(
    model: options.Model,
    input: options.Input,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            "-r",
            help="Name of a row, or its number (from 0) unless names are numbers; may be repeated.",
            show_default=False,
        ),
    ] = None,
    n_features: Annotated[int, typer.Option("--features", "-n", min=0, help="Features to list on each side.")] = 8,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Table of the evidence: .csv, .tsv, .json, .parquet.",
            callback=options.check_table,
            rich_help_panel="What comes out",
        ),
    ] = None,
    json: options.Json = False,
    format: options.FormatOption = None,
    row_names: options.RowNames = None,
    feature_names: options.FeatureNames = None,
    transpose: options.Transpose = None,
    layer: options.Layer = None,
    text: options.Text = False,
    text_column: options.TextColumn = None,
) -> None:
    """Tell why rows are in their clusters: how sure it is, and which features speak for and against.

    Without --row, the three least sure rows are explained. Evidence is in nats: one nat is a factor of 2.7 in the odds.
    With the input of the fit, the gain of another cluster is what the bound would gain if the row moved there; with
    other rows, if it were added there instead.

    For example:

      mmpca explain counts.mmpca counts.mtx --row 17 --row 23

      mmpca explain reports.mmpca reports/ --row letter_04 --features 5 -o why.csv
    """
    from mmpca.cli.explain import run

    run(
        model,
        input,
        rows=row or [],
        n_features=n_features,
        output=output,
        as_json=json,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
    )
