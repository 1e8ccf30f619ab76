"""Options of ``mmpca convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmpca.cli import options


def convert(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Argument(
            help="Counts to write: .mtx, .mtx.gz or .npz.", callback=options.check_counts, show_default=False
        ),
    ],
    compress: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="Without compression an .npz file is larger, but it is mapped into memory instead of being read.",
        ),
    ] = True,
    json: options.Json = False,
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
    """Write counts of any format, or the words of texts, as Matrix Market or npz, with their names.

    For example:

      mmpca convert otu_table.biom otus.mtx.gz

      mmpca convert reports/ words.npz --stop-words english --min-rows 2

      mmpca convert cells.h5ad cells.npz --no-compress
    """
    from mmpca.cli.convert import run

    run(
        input,
        output,
        compress=compress,
        as_json=json,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
        counting=options.TextOptions(min_rows, max_share, stop_words, ngrams, words),
    )
