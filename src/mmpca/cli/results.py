"""``mmpca tables`` and ``mmpca rename``: the results of a model as tables, and the names of its clusters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mmpca.cli import console, options
from mmpca.cli.inputs import read_for_model
from mmpca.cli.options import ReadOptions
from mmpca.cli.tables import write_table

DIGITS = 6  # of numbers in tables
TableFormat = StrEnum("TableFormat", ["csv", "tsv", "json", "parquet"])


def tables(
    model: options.Model,
    input: options.Input,
    output: Annotated[Path, options.output_option("--output", "-o", help="Folder for the tables.")] = Path("tables"),
    kind: Annotated[TableFormat, options.output_option("--as", help="Format of the tables.")] = TableFormat.csv,
    n_features: Annotated[
        int, typer.Option("--features", "-n", min=1, help="Number of features for each cluster and topic.")
    ] = 10,
    n_rows: Annotated[int, typer.Option("--rows", min=0, help="Number of typical rows for each cluster.")] = 3,
    safe_csv: options.SafeCsv = False,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Write the results of a model as tables: clusters, topics, their features, and rows.

    The tables hold the names of clusters and topics, their most distinctive features, typical rows, and for each row
    its probability, the second most probable cluster and the margin between the two.

    For example:

      mmpca tables counts.mmpca counts.mtx -o results

      mmpca tables reports.mmpca reports/ -o results --as parquet --features 20
    """
    from mmpca.model import read_model, results

    paths = {name: output / f"{name}.{kind}" for name in ("clusters", "topics", "features", "rows")}
    options.check_outputs([model, input], {f"the table of {name}": path for name, path in paths.items()})
    file = read_model(model)
    data = read_for_model(input, read, file)
    console.notes(data.table.notes)
    names = data.row_names()
    rows, typical = results.row_tables(file.model, data.X, names, n_rows)
    written = {
        "clusters": results.cluster_columns(file.model, typical, None, n_features),
        "topics": results.topic_columns(file.model, n_features),
        "features": results.feature_columns(file.model, n_features),
        "rows": rows,
    }
    output.mkdir(parents=True, exist_ok=True)
    for name, columns in written.items():
        path = paths[name]
        joined = kind in (TableFormat.csv, TableFormat.tsv)  # which have no lists
        write_table(path, {key: [_cell(x, joined) for x in column] for key, column in columns.items()}, safe=safe_csv)
        console.line(f"{path}: {len(next(iter(columns.values()))):,} {name}")


def _cell(value: Any, joined: bool) -> Any:
    """Return a value to write: numbers are rounded, and lists are joined for formats without lists."""
    if isinstance(value, float):
        return round(value, DIGITS)
    return "; ".join(map(str, value)) if joined and isinstance(value, list) else value


def rename(
    model: options.Model,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NUMBER=NAME...", help="New names; an empty one restores the automatic name."),
    ],
    topics: Annotated[bool, typer.Option("--topics", help="Name topics instead of clusters.")] = False,
) -> None:
    """Name the clusters of a model, or its topics.

    The names are saved in the model file; tables, labels, predictions and pages show them.

    For example:

      mmpca rename reports.mmpca 3=rugby "0=Board games"

      mmpca rename reports.mmpca 3=
    """
    from mmpca.model import read_model

    given: dict[int, str | None] = {}
    for text in names:
        number, is_pair, name = text.partition("=")
        if not (is_pair and number.strip().isdecimal() and len(number) <= options.MAX_DIGITS):
            raise typer.BadParameter(console.literal(f"expected NUMBER=NAME, such as 3=rugby, but got {text!r}."))
        given[int(number)] = name.strip() or None
    file = read_model(model)
    file.model.rename(None if topics else given, given if topics else None)
    file.model.save(model, text=file.text)
    kind, found = ("topic", file.model.topic_names_) if topics else ("cluster", file.model.cluster_names_)
    for at in given:
        console.line(f"{kind} {at}: {found[at]}")
