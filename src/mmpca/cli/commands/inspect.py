"""Options of ``mmpca inspect``."""

from __future__ import annotations

from mmpca.cli import options


def inspect(
    input: options.Input,
    clusters: options.ClustersOrFew = None,
    topics: options.TopicsOrFew = None,
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
    """Look at counts or texts before a fit: their size, what is odd about them, and what to do about it.

    Ends with exit code 1 if a fit would be refused.

    For example:

      mmpca inspect counts.mtx

      mmpca inspect reports/ --stop-words english --min-rows 2

      mmpca inspect otu_table.biom --clusters 12 --topics 6 --json
    """
    from mmpca.cli.inspect import run

    run(
        input,
        n_clusters=clusters,
        n_topics=topics,
        as_json=json,
        how=options.InputOptions(format, row_names, feature_names, transpose, layer, text, text_column),
        counting=options.TextOptions(min_rows, max_share, stop_words, ngrams, words),
    )
