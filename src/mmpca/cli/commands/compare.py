"""Options of ``mmpca compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


def compare(
    input: options.Input,
    clusters: options.ClustersOrFew = None,
    topics: options.TopicsOrFew = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="Known labels: a column of .csv or .tsv, or one on each line."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write: .csv, .tsv, .json, .parquet.",
            callback=options.check_table,
            rich_help_panel="What comes out",
        ),
    ] = None,
    json: options.Json = False,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only this method; may be repeated.", show_default="all")
    ] = None,
    memory: Annotated[bool, typer.Option("--memory/--no-memory", help="Fit twice, to see the memory too.")] = True,
    seed: options.Seed = 0,
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
    """Fit MMPCA and all its rivals to the same rows: time, memory, and agreement with known labels.

    For example:

      mmpca compare counts.mtx --clusters 6 --topics 4 --labels truth.csv --output methods.csv

      mmpca compare counts.mtx -q 6 -k 4 --method MMPCA --method "multinomial mixture" --json
    """
    from mmpca.cli.compare import Wanted, run

    run(
        input,
        n_clusters=clusters,
        n_topics=topics,
        seed=seed,
        wanted=Wanted(labels, output, json, method or None, memory),
        drop_empty=drop_empty,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
        counting=options.TextOptions(min_rows, max_share, stop_words, ngrams, words),
    )
