"""``mmpca tables``, ``rename`` and ``edit``: the results of a model as tables, and changes to its clusters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mmpca.cli import console, options
from mmpca.cli.explain import find_rows
from mmpca.cli.inputs import counted, read_for_model, read_labels
from mmpca.cli.options import ReadOptions
from mmpca.cli.tables import write_table

DIGITS = 6  # of numbers in tables
LEVEL = 0.95  # of intervals
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
    over: Annotated[
        Path | None,
        options.output_option(
            "--over",
            exists=True,
            help="Dates or groups of the rows, as a table with a column of row names or one value per line; also "
            "writes a table of clusters over time or by group.",
        ),
    ] = None,
    over_column: Annotated[
        str | None, options.output_option("--over-column", help="Column with the dates or groups.")
    ] = None,
    bins: Annotated[
        str | None,
        options.output_option("--bins", help="Period of dates (D, W, M, Q or Y), or number of bins for numbers."),
    ] = None,
    indicators: Annotated[
        bool, typer.Option("--indicators", help="Also write indicator features, with p-values from permutations.")
    ] = False,
    safe_csv: options.SafeCsv = False,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Write the results of a model as tables: clusters, topics, their features, and rows.

    The tables hold the names of clusters and topics, their most distinctive features, typical rows, and for each row
    its probability, the second most probable cluster and the margin between the two. With --indicators,
    it also writes the indicator value of each feature (Dufrêne and Legendre, 1997). The p-values are too small if
    the clusters were found in the same counts; use them only to rank features.

    For example:

      mmpca tables counts.mmpca counts.mtx -o results

      mmpca tables reports.mmpca reports/ -o results --as parquet --features 20

      mmpca tables counts.mmpca counts.mtx -o results --over dates.csv --bins M
    """
    from mmpca import evaluation
    from mmpca.model import groups, read_model, results

    further = {"indicators": indicators, "over": over is not None}
    titles = ("clusters", "topics", "features", "rows", *(name for name, is_wanted in further.items() if is_wanted))
    paths = {name: output / f"{name}.{kind}" for name in titles}
    options.check_outputs([model, input], {f"the table of {name}": path for name, path in paths.items()})
    file = read_model(model)
    data = read_for_model(input, read, file)
    console.notes(data.table.notes)
    names = data.row_names()
    rows, typical = results.row_tables(file.model, data.X, names, n_rows)
    rows = {name: [None if x != x else x for x in column] for name, column in rows.items()}  # NaN for empty rows
    if n_empty := rows["cluster"].count(results.NO_CLUSTER):
        console.notes([f"{counted(n_empty, 'row')} without counts of known features; their label is -1."])
    written = {
        "clusters": results.cluster_columns(file.model, typical, None, n_features),
        "topics": results.topic_columns(file.model, n_features),
        "features": results.feature_columns(file.model, n_features),
        "rows": rows,
    }
    if over is not None:
        values = groups.parsed(read_labels(over, names, len(names), over_column, option="--over-column"))
        wanted_bins = int(bins) if bins is not None and bins.isdecimal() else bins
        written["over"] = groups.over_columns(
            file.model, values, data.X, bins=wanted_bins, n_features=n_features, level=LEVEL
        )
    if indicators:
        found = evaluation.indicators(data.X, rows["cluster"], feature_names=results.feature_names(file.model))
        written["indicators"] = found.to_dict("list")
    output.mkdir(parents=True, exist_ok=True)
    for name, columns in written.items():
        path = paths[name]
        joined = kind in (TableFormat.csv, TableFormat.tsv)  # which have no lists
        write_table(path, {key: [_cell(x, joined) for x in column] for key, column in columns.items()}, safe=safe_csv)
        what = "lines of clusters and topics" if name == "over" else name
        console.line(f"{path}: {len(next(iter(columns.values()))):,} {what}")


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
    with console.collected_warnings() as caught:
        file.model.rename(None if topics else given, given if topics else None)
    console.notes(console.warning_texts(caught))
    file.model.save(model, text=file.text)
    kind, found = ("topic", file.model.topic_names_) if topics else ("cluster", file.model.cluster_names_)
    for at in given:
        console.line(f"{kind} {at}: {found[at]}")


def edit(
    model: options.Model,
    input: options.Input,
    merge: Annotated[
        list[str] | None, typer.Option("--merge", metavar="Q,Q...", help="Clusters to merge, such as 2,5; repeatable.")
    ] = None,
    split: Annotated[list[int] | None, typer.Option("--split", help="Cluster to split; repeatable.")] = None,
    move: Annotated[
        list[str] | None,
        typer.Option(
            "--move", metavar="ROW=Q", help="Row to move, by name or number, and its new cluster; repeatable."
        ),
    ] = None,
    noise: Annotated[list[int] | None, typer.Option("--noise", help="Cluster to mark as noise; repeatable.")] = None,
    refit: Annotated[bool, typer.Option(help="Continue the search from the edited clusters.")] = True,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Merge or split clusters of a model, move rows, or mark clusters as noise, and continue the search from there.

    The model file is overwritten; it keeps a list of the edits.

    For example:

      mmpca edit counts.mmpca counts.mtx --merge 2,5 --split 0

      mmpca edit counts.mmpca counts.mtx --noise 3 --no-refit

      mmpca edit reports.mmpca reports/ --move letter_04=2
    """
    from mmpca.model import read_model

    pairs = [text.rpartition("=") for text in move or []]
    if wrong := [text for text, (row, _, q) in zip(move or [], pairs, strict=True) if not (row and q.isdecimal())]:
        raise typer.BadParameter(
            console.literal(f"--move expects a row and a cluster, such as 17=2, not {wrong[0]!r}.")
        )

    try:
        groups = [[int(q) for q in text.split(",")] for text in merge or []]
    except ValueError:
        raise typer.BadParameter("--merge expects numbers of clusters, such as 2,5.") from None
    file = read_model(model)
    data = read_for_model(input, read, file)
    console.notes(data.table.notes)
    moved = find_rows([row for row, _, _ in pairs], data.row_names(), has_names=data.table.row_names is not None)
    targets = dict(zip(moved, (int(q) for _, _, q in pairs), strict=True))
    with console.ignored_name_warnings():
        done = file.model.edit(data.X, merge=groups, split=split or [], move=targets, noise=noise or [], refit=refit)
    file.model.save(model, text=file.text)
    console.line(f"bound before the edits {done.bound_before:,.3f}")
    console.line(f"right after them       {done.bound_edited:,.3f}")
    if refit:
        console.line(f"after the search       {done.bound_after:,.3f} ({done.n_moved:,} rows moved)")
    for q, name in enumerate(file.model.cluster_names_):
        console.line(f"cluster {q}: {name} ({file.model.cluster_sizes[q]:,} rows)")
