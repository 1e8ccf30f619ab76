"""Options of ``mmpca predict``."""

from __future__ import annotations

from typing import Annotated

import typer

from mmpca.cli import options


def predict(
    model: options.Model,
    input: options.Inputs,
    labels: options.Labels = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="A column for each cluster as well.", rich_help_panel="What comes out"),
    ] = False,
    json: options.Json = False,
    scheduler: options.Scheduler = None,
    format: options.FormatOption = None,
    row_names: options.RowNames = None,
    feature_names: options.FeatureNames = None,
    transpose: options.Transpose = None,
    layer: options.Layer = None,
    text: options.Text = False,
    text_column: options.TextColumn = None,
) -> None:
    """Put new rows, or new texts, into the clusters of a model.

    Features are matched by name: those that the model does not know are left out and counted, missing ones are zero.
    Without --labels the table is printed.

    For example:

      mmpca predict counts.mmpca new.mtx --labels new.csv

      mmpca predict reports.mmpca new_reports/ --probabilities --json

      mmpca predict all.mmpca new-*.npz --scheduler tcp://10.0.0.1:8786 --labels new.parquet
    """
    from mmpca.cli.predict import run

    run(
        model,
        input,
        labels=labels,
        with_probabilities=probabilities,
        as_json=json,
        scheduler=scheduler,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
    )
