"""Options of ``mmpca fit``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


class Start(StrEnum):
    """Kinds of starts."""

    auto = "auto"
    random = "random"
    kmeans = "kmeans"
    anneal = "anneal"


class Algorithm(StrEnum):
    """Kinds of searches."""

    greedy = "greedy"
    exact = "exact"
    cvem = "cvem"
    vbem = "vbem"


class Stabilize(StrEnum):
    """Treatments of overdispersed counts."""

    none = "none"
    sqrt = "sqrt"


def fit(
    input: options.Inputs,
    clusters: options.Clusters,
    topics: options.Topics,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            help="Write the model to this file, by custom .mmpca.",
            callback=options.check_new_model,
            rich_help_panel="What comes out",
        ),
    ] = None,
    labels: options.Labels = None,
    json: options.Json = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    n_init: Annotated[
        str, typer.Option("--n-init", help="Number of starts, or auto.", callback=options.check_starts)
    ] = "auto",
    start: Annotated[Start, typer.Option("--start", help="Where a search starts.")] = Start.auto,
    algorithm: Annotated[Algorithm, typer.Option("--algorithm", help="How it goes on.")] = Algorithm.greedy,
    stabilize: Annotated[
        Stabilize, typer.Option("--stabilize", help="sqrt for overdispersed counts.")
    ] = Stabilize.none,
    drop_empty: Annotated[bool, typer.Option("--drop-empty", help="Leave out rows without counts.")] = False,
    scheduler: options.Scheduler = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Keep the topics here, and of a greedy search of more than 50,000 rows the labels after each epoch; "
            "the same command goes on from it.",
            callback=options.check_new_model,
            rich_help_panel="Where it runs",
        ),
    ] = None,
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
    """Cluster the rows of a count matrix, or texts, and keep model and labels.

    Ctrl-C stops the search: what it had found is kept, written and shown, and the exit code is 130.

    Several files are fitted as the rows of one matrix, with --scheduler on a Dask cluster.

    For example:

      mmpca fit counts.mtx --clusters 6 --topics 4 --model counts.mmpca --labels labels.csv

      mmpca fit reports/ -q 5 -k 3 --stop-words english --min-rows 2 --drop-empty -m reports.mmpca

      mmpca fit cells.h5ad --layer counts -q 12 -k 8 --stabilize sqrt --labels cells.parquet

      mmpca fit part-*.npz -q 30 -k 30 --scheduler tcp://10.0.0.1:8786 --checkpoint fit.npz -m all.mmpca
    """
    from mmpca.cli.fit import Output, run

    run(
        input,
        parameters={
            "n_clusters": clusters,
            "n_topics": topics,
            "start": start.value,
            "n_init": n_init if n_init == "auto" else int(n_init),
            "algorithm": algorithm.value,
            "stabilize": None if stabilize is Stabilize.none else stabilize.value,
            "n_jobs": jobs,
            "random_state": seed,
        },
        output=Output(model, labels, json),
        drop_empty=drop_empty,
        scheduler=scheduler,
        checkpoint=checkpoint,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
        counting=options.TextOptions(min_rows, max_share, stop_words, ngrams, words),
    )
