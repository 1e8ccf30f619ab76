"""Options of ``mmpca select``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options
from mmpca.cli.commands.fit import Stabilize


class Criterion(StrEnum):
    """What the cells are compared by."""

    predictive = "predictive"
    icl = "icl"


def check_numbers(value: str | None) -> str | None:
    """Refuse what is no list of numbers; the numbers themselves are checked with the rest of the grid."""
    if value is not None:
        options.grid(value)
    return value


def select(
    input: options.Input,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            "-q",
            help="Numbers to try: 2-8, or 2,4,8.",
            callback=check_numbers,
            show_default=f"2-{options.USUAL_CLUSTERS}, or up to the number of rows",
        ),
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topics",
            "-k",
            help="Numbers to try: 2-5, or 2,4,8.",
            callback=check_numbers,
            show_default=f"2-{options.USUAL_TOPICS}, or up to the number of features",
        ),
    ] = None,
    criterion: Annotated[
        Criterion, typer.Option("--criterion", help="What decides; larger is better.")
    ] = Criterion.predictive,
    store: Annotated[
        Path | None, typer.Option("--store", help="Folder that keeps finished cells: a second run goes on.")
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=0, help="See how often each cell wins on parts of the rows.")
    ] = 0,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            help="Write the best model to this file.",
            callback=options.check_new_model,
            rich_help_panel="What comes out",
        ),
    ] = None,
    labels: options.Labels = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            help="Table of all cells: .csv, .tsv, .json, .parquet.",
            callback=options.check_table,
            rich_help_panel="What comes out",
        ),
    ] = None,
    json: options.Json = False,
    seed: options.Seed = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", help="Cells at a time; -1 for all cores.", callback=options.check_jobs)
    ] = -1,
    stabilize: Annotated[
        Stabilize, typer.Option("--stabilize", help="sqrt for overdispersed counts.")
    ] = Stabilize.none,
    drop_empty: Annotated[bool, typer.Option("--drop-empty", help="Leave out rows without counts.")] = False,
    format: options.FormatOption = None,
    row_names: options.RowNames = None,
    feature_names: options.FeatureNames = None,
    transpose: options.Transpose = None,
    layer: options.Layer = None,
    text: options.Text = False,
    text_column: options.TextColumn = None,
    min_rows: options.MinRows = 1,
    max_share: options.MaxShare = 1.0,
    stop_words: options.StopWords = None,
    ngrams: options.Ngrams = 1,
    words: options.Words = None,
) -> None:
    """Choose the numbers of clusters and topics on a grid, and keep the best model.

    For example:

      mmpca select counts.mtx --clusters 2-8 --topics 2-5 --store grid --model best.mmpca

      mmpca select reports/ -q 2,4,6,8 -k 2-4 --stop-words english --min-rows 2 --results cells.csv
    """
    from mmpca.cli.select import Output, run

    run(
        input,
        parameters={
            "n_clusters": None if clusters is None else options.grid(clusters),
            "n_topics": None if topics is None else options.grid(topics),
            "criterion": criterion.value,
            "store": store,
            "n_resamples": resamples,
            "stabilize": None if stabilize is Stabilize.none else stabilize.value,
            "n_jobs": jobs,
            "random_state": seed,
        },
        output=Output(model, labels, results, json),
        drop_empty=drop_empty,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
        counting=options.TextOptions(min_rows, max_share, stop_words, ngrams, words),
    )
