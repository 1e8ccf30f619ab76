"""``mmpca convert``: write counts as Matrix Market or npz."""

from __future__ import annotations

from typing import Annotated

import typer

from mmpca.cli import console, options
from mmpca.cli.inputs import read_data
from mmpca.cli.options import ReadOptions, TextOptions


def convert(
    input: options.Input,
    output: options.CountsOutput,
    compress: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="An uncompressed .npz file is larger, but can be memory-mapped instead of read.",
        ),
    ] = True,
    json: options.Json = False,
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Convert counts of any format, or the words of texts, to Matrix Market or npz, with names.

    For example:

      mmpca convert otu_table.biom otus.mtx.gz

      mmpca convert reports/ words.npz --stop-words english --min-rows 2

      mmpca convert cells.h5ad cells.npz --no-compress
    """
    from mmpca.io import write_counts

    data = read_data(input, read, text)
    console.notes(data.table.notes)
    write_counts(output, data.table, compress=compress)
    n_rows, n_features = data.X.shape
    if json:
        sizes = {"rows": n_rows, "features": n_features}
        console.print_json(sizes | {"output": output, "notes": data.table.notes})
    else:
        console.line(f"{n_rows:,} rows x {n_features:,} features written to {output}")
