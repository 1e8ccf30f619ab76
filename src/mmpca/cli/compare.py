"""``mmpca compare``: fit all methods to one input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmpca.cli import console, options
from mmpca.cli.inputs import drop_empty_rows, read_data, read_labels, suspicions
from mmpca.cli.options import ReadOptions, TextOptions
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import columns_table, records, write_table
from mmpca.errors import SuspiciousCountsWarning

if TYPE_CHECKING:
    from mmpca.evaluation import Comparison

HEADERS = {"ari": "ARI", "nmi": "NMI", "seconds": "time, s", "peak_megabytes": "peak memory, MB"}
DECIMALS = {"time, s": 2, "peak memory, MB": 1}


def compare(
    input: options.Input,
    clusters: options.OptionalClusters = None,
    topics: options.OptionalTopics = None,
    labels: options.KnownLabels = None,
    label_column: options.LabelColumn = None,
    output: options.TableOutput = None,
    json: options.Json = False,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Fit only this method; can be repeated.", show_default="all")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Fit each method a second time to measure its memory.")
    ] = True,
    seed: options.Seed = 0,
    drop_empty: options.DropEmpty = False,
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Fit MMPCA and all baselines to the same rows; compare time, memory and agreement with known labels.

    For example:

      mmpca compare counts.mtx --clusters 6 --topics 4 --labels truth.csv --output methods.csv

      mmpca compare counts.mtx -q 6 -k 4 --method MMPCA --method "multinomial mixture" --json
    """
    import numpy as np

    from mmpca.counts import as_counts
    from mmpca.evaluation import all_methods
    from mmpca.evaluation.comparison import chosen_methods

    data = read_data(input, read, text)
    names = data.row_names()
    truth = None if labels is None else np.array(read_labels(labels, names, len(names), label_column))
    if truth is not None and (drop_empty or data.text is not None):
        truth = truth[np.diff(data.X.indptr) > 0]
    data = drop_empty_rows(data, input, drop=drop_empty)
    as_counts(data.X)  # invalid data is reported once here, not by every method
    sizes = options.default_sizes(clusters, topics, data.X.shape)
    console.notes(suspicions(data, n_clusters=sizes[0], n_topics=sizes[1]))  # now: the fits may take hours
    methods = chosen_methods(method or None, all_methods(*sizes, seed))
    for estimator in methods.values():
        if "verbose" in estimator.get_params():
            estimator.set_params(verbose=0)  # the command shows progress itself
    notes = data.table.notes
    results = _fit_all(data.X, methods, sizes, truth, memory, notes)
    if not results:
        raise ValueError(f"No method could be fitted. {notes[-1]}")
    measures = [name for name in HEADERS if getattr(results[0], name) is not None]
    table = {name: [getattr(result, name) for result in results] for name in ("method", *measures)}
    if output is not None:
        write_table(output, table)
    console.notes(notes)
    if json:
        console.print_json(records(table))
    else:
        shown = {HEADERS.get(name, name): column for name, column in table.items()}
        console.out().print(columns_table(shown, decimals=DECIMALS))
        if "peak_megabytes" in table:
            console.out().print("Memory is as reported by Python and NumPy; compiled code may allocate more.")
        console.written({"table": output})


def _fit_all(
    X: Any, methods: dict[str, Any], sizes: tuple[int, int], truth: Any, memory: bool, notes: list[str]
) -> list[Comparison]:
    """Fit the methods; add notes on warnings and on methods that cannot be fitted."""
    from mmpca.evaluation import compare as compare_methods
    from mmpca.monitor import Progress

    results: list[Comparison] = []
    with progress_display() as show:
        for number, (name, estimator) in enumerate(methods.items()):
            show(Progress("compare", f"fitting {name}", number, len(methods)))
            try:
                with console.collected_warnings() as caught:
                    results += compare_methods(
                        X, *sizes, labels=truth, methods={name: estimator}, measure_memory=memory
                    )
                own = (w for w in caught if not issubclass(w.category, SuspiciousCountsWarning))
                notes += [f"{name}: {text}" for text in console.warning_texts(own)]
            except ValueError as error:
                notes.append(f"{name} was skipped: {error}")
    return results
