"""``mmpca select``: choose the numbers of clusters and topics."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmpca.cli import INTERRUPTED, console, options
from mmpca.cli.fit import dispersion_advice, labels_of, totals_note
from mmpca.cli.inputs import InputData, choose_words, drop_empty_rows, load_data, read_data, suspicions
from mmpca.cli.options import FitOptions, ReadOptions, ResultOptions, SelectionCriterion, TextOptions
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import print_across, records, write_labels, write_table
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning, SuspiciousCountsWarning

NO_IDENTITY = ("n_jobs", "store", "verbose")  # parameters that results do not depend on
KEPT_SECONDS = 30 * 24 * 3600  # parts of an abandoned search

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
            show_default="from 1 upward, as many as it takes",
        ),
    ] = None,
    topics: Annotated[
        Any,
        options.list_option(
            "--topics",
            "-k",
            parser=options.integer_list,
            help="Numbers of topics to try: 2-5, or 2,4,8.",
            show_default="from 1 upward, as many as it takes",
        ),
    ] = None,
    criterion: Annotated[
        SelectionCriterion,
        typer.Option("--criterion", help="shares lets rows of a cluster differ; the others fit a whole grid."),
    ] = SelectionCriterion.shares,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="Folder for finished parts; the same command resumes from it.",
            show_default="one in your cache folder, until the search ends",
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            "--resamples",
            min=0,
            help="Check which clusters are found again in this many subsets of the rows.",
            show_default="5; 0 for a grid",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        options.table_option("--results", help=f"Write a table of all compared numbers: {options.TABLES}"),
    ] = None,
    output: ResultOptions = ResultOptions(),
    fitting: FitOptions = FitOptions(),
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Choose the numbers of clusters and topics, and write the best model.

    For example:

      mmpca select counts.mtx --model best.mmpca

      mmpca select reports/ -q 2,4,6,8 -k 2-4 --stop-words english --min-rows 2 --results cells.csv
    """
    from mmpca.selection import MMPCASearch

    data = drop_empty_rows(read_data(input, read, text), input, drop=fitting.drop_empty)
    notes = data.table.notes
    suspected = suspicions(data, n_clusters=2, n_topics=2)
    console.notes(suspected)  # now: the search may take hours
    search = MMPCASearch(
        n_clusters=clusters or "auto",
        n_topics=topics or "auto",
        criterion=criterion.value,
        n_resamples="auto" if resamples is None else resamples,
        **fitting.parameters(),
    )
    caught = _fit(search, data, store)
    best, cells = search.best_estimator_, {name: column.tolist() for name, column in search.results_.items()}
    if data.table.feature_names is not None:  # scikit-learn takes names from data frames, not from sparse matrices
        best.name_features(data.table)
    data.describe(best, read)
    choose_words(best, output.row_word, output.feature_word, is_text=data.text is not None)
    if output.model is not None:
        best.save(output.model, text=data.text)
    labels = data.with_empty_rows(labels_of(best, load_data(data)))
    if output.labels is not None:
        write_labels(output.labels, labels, [input], safe=output.safe_csv)
    if results is not None:
        write_table(results, cells, safe=output.safe_csv)
    shown = (SuspiciousCountsWarning, OverdispersionWarning)  # above, and below in terms of the options
    notes += console.warning_texts(w for w in caught if not issubclass(w.category, shown))
    advice = dispersion_advice(best) if console.has_warning(caught, OverdispersionWarning) else None
    notes += ([] if advice is None else [advice]) + totals_note(best, data)
    console.notes(notes)
    if output.json:
        document = {
            **search.best_params_,
            "criterion": search.criterion,
            "reason": search.reason_,
            "runner_up": search.runner_up_,
            "gap": None if search.runner_up_ is None else search.gap_,
            **_evidence(search),
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


def _fit(search: MMPCASearch, data: InputData, store: Path | None) -> list[warnings.WarningMessage]:
    """Run the search and return its warnings; without a store, finished parts are kept in the user's cache."""
    own = _own_store(search, data) if store is None else None
    kept = store or own
    search.set_params(store=kept)
    try:
        with console.collected_warnings() as caught, progress_display() as show:
            search.fit(data.X, callback=show)
    except KeyboardInterrupt:
        where = "" if kept is None else f" Finished parts are in {kept}; run the same command again to resume."
        raise KeyboardInterrupt(f"No model was written.{where}") from None
    if own is not None and not console.has_warning(caught, InterruptedSearchWarning):
        shutil.rmtree(own, ignore_errors=True)  # the results are complete
    return caught


def _own_store(search: MMPCASearch, data: InputData) -> Path | None:
    """Return a folder in the user's cache for exactly these data and options; None if it cannot be written.

    An earlier run is resumed from its folder, with a note. Old folders are removed.
    """
    from mmpca import __version__
    from mmpca.counts import as_counts
    from mmpca.store import cache_folder, digest

    counts = as_counts(data.X)
    arrays = (counts.indptr, counts.indices, counts.data)
    content = hashlib.sha256(b"".join(hashlib.sha256(array.tobytes()).digest() for array in arrays)).hexdigest()
    options = {name: repr(value) for name, value in search.get_params(deep=False).items() if name not in NO_IDENTITY}
    root = cache_folder() / "select"
    folder = root / digest({"mmpca": __version__, "data": content, "shape": list(data.X.shape)} | options)
    try:
        is_resumed = folder.is_dir() and any(folder.iterdir())
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in root.iterdir():
            if other.is_dir() and time() - other.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        console.notes([f"Finished parts are not kept, because {root} is not writable ({error.strerror})."])
        return None
    verb = "Resuming from finished parts in" if is_resumed else "Until the search ends, finished parts are kept in"
    console.notes([f"{verb} {folder}."])
    return folder


def _evidence(search: MMPCASearch) -> dict[str, Any]:
    """Return the entries of the JSON document that only the criterion "shares" has."""
    if search.criterion != "shares":
        return {}
    choice = search.choice_
    return {
        "plateau": list(choice.plateau),
        "is_determined": choice.is_determined,
        "topics": records({name: column.tolist() for name, column in search.topic_results_.items()}),
        "hierarchy": search.best_estimator_.merge_path().linkage[:, :2].astype(int).tolist(),
    }


def _show(search: MMPCASearch) -> None:
    """Print how far each cell is behind the best one, the choice in words, and how the clusters merge."""
    import numpy as np

    from mmpca.plots.selection import loss_text, shortfall

    out = console.out()
    _, n_clusters, n_topics, behind = shortfall(search.results_, search.criterion)
    cells = dict(zip(zip(n_clusters.tolist(), n_topics.tolist(), strict=True), behind.tolist(), strict=True))
    columns = np.unique(n_clusters).tolist()
    if search.criterion == "shares":
        _show_topics(search)
    out.print(f"{_TITLES[search.criterion]}: nats (natural log units) below the best; clusters across, topics down")
    lines = [[str(k), *(loss_text(cells.get((q, k), np.nan)) for q in columns)] for k in np.unique(n_topics).tolist()]
    print_across(["", *map(str, columns)], lines, marked="best")
    out.print(search.reason_, highlight=False, soft_wrap=not out.is_terminal)
    if len(search.best_estimator_.weights_) > 2:
        out.print(_merges(search), highlight=False, soft_wrap=not out.is_terminal)


_TITLES = {"shares": "BIC of row shares", "predictive": "Predictive likelihood", "icl": "ICL"}


def _show_topics(search: MMPCASearch) -> None:
    """Print how well each number of topics predicts held-out features."""
    from mmpca.plots.selection import loss_text

    results = search.topic_results_
    if len(results["n_topics"]) == 1:
        return
    console.out().print("Held-out features: nats below the best and standard error; topics across")
    losses = ["loss", *map(loss_text, results["loss"].tolist())]
    errors = ["error", *(f"{error:,.0f}" for error in results["error"].tolist())]
    print_across(["", *map(str, results["n_topics"].tolist())], [losses, errors], marked="best")


def _merges(search: MMPCASearch) -> str:
    """Describe the order in which the clusters of the best model merge."""
    linkage = search.best_estimator_.merge_path().linkage
    members = [[q] for q in range(len(linkage) + 1)]
    steps = []
    for left, right in linkage[:, :2].astype(int).tolist():
        steps.append(f"{_joined(members[left])} with {_joined(members[right])}")
        members.append(sorted(members[left] + members[right]))
    return f"Merged step by step, most similar first: {'; '.join(steps[:-1])}."


def _joined(clusters: list[int]) -> str:
    return "+".join(map(str, clusters))
