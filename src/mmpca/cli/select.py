"""``mmpca select``: choose the numbers of clusters and topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mmpca.cli import INTERRUPTED, console, options
from mmpca.cli.fit import labels_of
from mmpca.cli.inputs import drop_empty_rows, load_data, read_data, suspicions
from mmpca.cli.options import FitOptions, ReadOptions, ResultOptions, SelectionCriterion, TextOptions
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import console_table, records, write_table
from mmpca.errors import InterruptedSearchWarning, SuspiciousCountsWarning

if TYPE_CHECKING:
    from mmpca.selection import MMPCASearch


def select(
    input: options.Input,
    clusters: Annotated[
        Any,
        options.list_option(
            "--clusters",
            "-q",
            parser=options.integer_list,
            help="Numbers of clusters to try: 2-8, or 2,4,8.",
            show_default=f"2-{options.DEFAULT_CLUSTERS}",
        ),
    ] = None,
    topics: Annotated[
        Any,
        options.list_option(
            "--topics",
            "-k",
            parser=options.integer_list,
            help="Numbers of topics to try: 2-5, or 2,4,8.",
            show_default=f"2-{options.DEFAULT_TOPICS}",
        ),
    ] = None,
    criterion: Annotated[
        SelectionCriterion, typer.Option("--criterion", help="Criterion to maximize.")
    ] = SelectionCriterion.predictive,
    store: Annotated[
        Path | None, typer.Option("--store", help="Folder for finished cells; the same command resumes from it.")
    ] = None,
    resamples: Annotated[
        int,
        typer.Option("--resamples", min=0, help="Repeat on this many subsets of the rows."),
    ] = 0,
    results: Annotated[
        Path | None,
        options.table_option("--results", help=f"Write all cells of the grid to this table: {options.TABLES}"),
    ] = None,
    output: ResultOptions = ResultOptions(),
    fitting: FitOptions = FitOptions(),
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Choose the numbers of clusters and topics on a grid, and write the best model.

    For example:

      mmpca select counts.mtx --clusters 2-8 --topics 2-5 --store grid --model best.mmpca

      mmpca select reports/ -q 2,4,6,8 -k 2-4 --stop-words english --min-rows 2 --results cells.csv
    """
    import numpy as np

    from mmpca.selection import MMPCASearch

    data = drop_empty_rows(read_data(input, read, text), input, drop=fitting.drop_empty)
    notes = data.table.notes
    suspected = suspicions(data, n_clusters=2, n_topics=2)
    console.notes(suspected)  # now: the search may take hours
    most = options.default_sizes(None, None, data.X.shape)
    search = MMPCASearch(
        n_clusters=clusters or tuple(range(2, most[0] + 1)) or (1,),
        n_topics=topics or tuple(range(2, most[1] + 1)) or (1,),
        criterion=criterion.value,
        store=store,
        n_resamples=resamples,
        **fitting.parameters(),
    )
    try:
        with console.collected_warnings() as caught, progress_display() as show:
            search.fit(data.X, callback=show)
    except KeyboardInterrupt:
        kept = "" if store is None else f" Finished parts are in {store}; the same command resumes there."
        raise KeyboardInterrupt(f"No model was written.{kept}") from None
    best, cells = search.best_estimator_, {name: column.tolist() for name, column in search.results_.items()}
    if data.table.feature_names is not None:  # scikit-learn takes names from data frames, not from sparse matrices
        best.feature_names_in_ = np.array([str(name) for name in data.table.feature_names], dtype=object)
    if output.model is not None:
        best.save(output.model, text=data.text)
    labels = labels_of(best, load_data(data))
    for path, table in ((output.labels, labels), (results, cells)):
        if path is not None:
            write_table(path, table, safe=output.safe_csv)
    notes += console.warning_texts(w for w in caught if not issubclass(w.category, SuspiciousCountsWarning))
    console.notes(notes)
    if output.json:
        document = {
            **search.best_params_,
            "criterion": search.criterion,
            "reason": search.reason_,
            "runner_up": search.runner_up_,
            "gap": None if search.runner_up_ is None else search.gap_,
            "cells": records(cells),
            "model": output.model,
            "labels": output.labels or records(labels),
            "notes": suspected + notes,
        }
        console.print_json(document)
    else:
        _show(search)
        console.written({"model": output.model, "labels": output.labels, "cells": results})
        if output.model is None:
            console.out().print("The model was not written; add --model to save it.", style="yellow")
    if console.has_warning(caught, InterruptedSearchWarning):
        raise typer.Exit(INTERRUPTED)


def _show(search: MMPCASearch) -> None:
    """Print how far each cell is behind the best one, and the choice in words."""
    import numpy as np

    from mmpca.plots.selection import loss_text, shortfall

    out = console.out()
    _, n_clusters, n_topics, behind = shortfall(search.results_, search.criterion)
    cells = dict(zip(zip(n_clusters.tolist(), n_topics.tolist(), strict=True), behind.tolist(), strict=True))
    columns = np.unique(n_clusters).tolist()
    name = "ICL" if search.criterion == "icl" else "Predictive likelihood"
    out.print(f"{name}: nats (natural log units) below the best cell; clusters across, topics down")
    table = console_table(right=["", *map(str, columns)])
    for k in np.unique(n_topics).tolist():
        losses = [loss_text(cells.get((q, k), np.nan)) for q in columns]
        table.add_row(str(k), *(Text(loss, "bold green" if loss == "best" else "") for loss in losses))
    out.print(table)
    out.print(search.reason_, highlight=False, soft_wrap=not out.is_terminal)
