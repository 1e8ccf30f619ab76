"""``mmpca fit``: cluster rows, and write the model and its labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mmpca.cli import INTERRUPTED, console, options
from mmpca.cli.inputs import (
    InputData,
    check_no_empty_rows,
    check_no_text_options,
    choose_words,
    counted,
    drop_empty_rows,
    load_data,
    load_files,
    read_data,
    read_known_labels,
    read_seed_topics,
    suspicions,
)
from mmpca.cli.options import Algorithm, FitOptions, ReadOptions, ResultOptions, StartMethod, TextOptions
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import console_table, records, write_labels
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning

if TYPE_CHECKING:
    from mmpca.distributed.sources import Loaded
    from mmpca.model import MMPCA

FEATURES_SHOWN = 8
FOLLOWS_TOTALS = 0.5  # share of the variance: more lies between clusters than within
TOPICS_SHOWN, SMALLEST_SHARE = 3, 0.05  # of a cluster


def fit(
    input: options.Inputs,
    clusters: options.Clusters,
    topics: options.Topics,
    output: ResultOptions = ResultOptions(),
    fitting: FitOptions = FitOptions(),
    n_init: Annotated[
        Any,
        typer.Option("--n-init", parser=options.number_of_starts, metavar="N|auto", help="Number of starts."),
    ] = "auto",
    start: Annotated[StartMethod, typer.Option("--start", help="Kind of start.")] = StartMethod.auto,
    algorithm: Annotated[Algorithm, typer.Option("--algorithm", help="Search algorithm.")] = Algorithm.greedy,
    known_labels: options.FixedLabels = None,
    label_column: options.LabelColumn = None,
    seed_topics: options.SeedTopics = None,
    scheduler: options.Scheduler = None,
    checkpoint: Annotated[
        Path | None,
        options.execution_option(
            "--checkpoint",
            help="Save the topics to this file, and in a greedy search of more than 50,000 rows the labels after each "
            "epoch; the same command resumes from it.",
            callback=options.output_file(),
        ),
    ] = None,
    read: ReadOptions = ReadOptions(),
    text: TextOptions = TextOptions(),
) -> None:
    """Cluster the rows of a count matrix, or texts, and write the model and its labels.

    Ctrl-C stops the search; the best clusters found so far are written and shown, and the exit code is 130.

    Several files are fitted together as the rows of one matrix; with --scheduler, on a Dask cluster.

    Rows with --known-labels never move, and --seed-topics assigns words to topics.

    For example:

      mmpca fit counts.mtx --clusters 6 --topics 4 --model counts.mmpca --labels labels.csv

      mmpca fit reports/ -q 5 -k 3 --stop-words english --min-rows 2 --drop-empty -m reports.mmpca

      mmpca fit cells.h5ad --layer counts -q 12 -k 8 --dispersion polya --labels cells.parquet

      mmpca fit reports/ -q 5 -k 5 --known-labels read.csv --seed-topics sport=match,coach -m reports.mmpca

      mmpca fit part-*.npz -q 30 -k 30 --scheduler tcp://10.0.0.1:8786 --checkpoint fit.npz -m all.mmpca
    """
    from mmpca.distributed.fitting import fit_loaded
    from mmpca.model import MMPCA
    from mmpca.model.editing import check_knowledge

    kind: dict[str, Any] = {"start": start.value, "n_init": n_init, "algorithm": algorithm.value}
    model = MMPCA(clusters, topics, **kind, **fitting.parameters())
    seeds = read_seed_topics(seed_topics)
    is_resumed = checkpoint is not None and checkpoint.exists()  # asked now: the fit will write it
    with _load(model, input, read, text, scheduler, drop_empty=fitting.drop_empty) as (rows, data, suspected):
        console.notes(suspected)  # now: the fit may take hours
        known = None if known_labels is None else _read_known(known_labels, label_column, rows, data, clusters)
        with console.collected_warnings() as unknown_words:
            knowledge = check_knowledge(
                model,
                known,
                seeds,
                shape=(rows.backend.n_rows, rows.backend.n_features),
                feature_names=rows.feature_names,
                checkpoint=checkpoint,
            )
        console.notes(console.warning_texts(unknown_words))
        started = perf_counter()
        with _mention_checkpoint(checkpoint), console.collected_warnings() as caught, progress_display() as show:
            fit_loaded(model, rows, checkpoint=checkpoint, callback=show, knowledge=knowledge)
        seconds = perf_counter() - started
        if data is not None:
            data.describe(model, read)
        is_text = data is not None and data.text is not None
        choose_words(model, output.row_word, output.feature_word, is_text=is_text)
        if output.model is not None:
            model.save(output.model, text=None if data is None else data.text)
        labels: dict[str, list[Any]] = {}
        if output.labels is not None or output.json:
            with _mention_model(output.model):
                labels = labels_of(model, rows)
                labels = labels if data is None else data.with_empty_rows(labels)
                if output.labels is not None:
                    write_labels(output.labels, labels, input, safe=output.safe_csv)
    is_interrupted = console.has_warning(caught, InterruptedSearchWarning)
    # Overdispersion is described below, in terms of the options of this command.
    notes = console.warning_texts(w for w in caught if not issubclass(w.category, OverdispersionWarning))
    if data is not None:
        notes += totals_note(model, data)
    console.notes([f"resumed from {checkpoint}"] * is_resumed + rows.notes + notes)
    advised = dispersion_advice(model)
    if output.json:
        document = describe(model) | {
            "interrupted": is_interrupted,
            "seconds": seconds,
            "model": output.model,
            "labels": output.labels or records(labels),
            "notes": suspected + rows.notes + notes + ([] if advised is None else [advised]),
        }
        console.print_json(document)
    else:
        _show(model, seconds, is_interrupted)
        console.written({"model": output.model, "labels": output.labels})
        if output.model is None and output.labels is None:
            console.out().print("Nothing was written; add --model and --labels to save the result.", style="yellow")
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)


# --- rows to fit ------------------------------------------------------------------------------------------------


@contextmanager
def _load(
    model: MMPCA, paths: list[Path], read: ReadOptions, text: TextOptions, scheduler: str | None, *, drop_empty: bool
) -> Iterator[tuple[Loaded, InputData | None, list[str]]]:
    """Provide the rows of one input, or of several files, the input if it is one, and suspicions."""
    from mmpca.distributed.fitting import check_model
    from mmpca.distributed.sources import Reading
    from mmpca.model.rules import check_fit_parameters

    check_fit_parameters(model.get_params(deep=False))  # before anything is read
    sizes = {"n_clusters": model.n_clusters, "n_topics": model.n_topics}
    if scheduler is None and len(paths) == 1:
        data = drop_empty_rows(read_data(paths[0], read, text), paths[0], drop=drop_empty)
        yield load_data(data), data, suspicions(data, **sizes)
        return
    check_no_text_options(paths[0], text)
    check_model(model)
    reading = Reading(empty_rows="drop")
    with load_files(paths, read, scheduler, reading, n_jobs=model.n_jobs) as loaded:
        if not drop_empty:
            check_no_empty_rows(paths, loaded)
        if loaded.n_dropped:
            dropped = counted(loaded.n_dropped, "row")
            loaded.notes.append(f"Dropped {dropped} without counts; dropped rows get no label.")
        yield loaded, None, suspicions(loaded, **sizes)


def _read_known(path: Path, column: str | None, rows: Loaded, data: InputData | None, n_clusters: int) -> list[Any]:
    """Return the known clusters of the rows to fit; the file may also have the rows that were left out."""
    names = rows.row_names if data is None or data.all_names is None else data.all_names
    n_rows = rows.backend.n_rows if names is None else len(names)
    known = read_known_labels(path, names, n_rows, n_clusters, column)
    return known if data is None or data.filled is None else [known[i] for i in data.filled]


def labels_of(model: MMPCA, rows: Loaded) -> dict[str, list[Any]]:
    """Return the table of labels: the name of each row, its cluster with its name, and the probability."""
    from mmpca.distributed.fitting import own_rows, score_rows

    probabilities = score_rows(own_rows, model, rows.backend, model.labels_).round(6)
    return {
        "row": rows.row_names or [],
        "cluster": model.labels_.tolist(),
        "cluster_name": model.cluster_names_[model.labels_].tolist(),
        "probability": probabilities.tolist(),
    }


@contextmanager
def _mention_checkpoint(checkpoint: Path | None) -> Iterator[None]:
    """If Ctrl-C ends the fit, say that the checkpoint can be resumed."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        text = str(interrupt) or "No model was written."
        raise KeyboardInterrupt(f"{text} The same command resumes from {checkpoint}.") from None


@contextmanager
def _mention_model(model: Path | None) -> Iterator[None]:
    """If the labels are lost, say that the model was written."""
    text = "" if model is None else f"The model was written to {model}, but its labels were not written to a table."
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None
    except Exception:
        console.notes([text] * bool(text))
        raise


# --- the fitted model -------------------------------------------------------------------------------------------


def describe(model: MMPCA) -> dict[str, Any]:
    """Return a fitted model for JSON."""
    import numpy as np

    from mmpca.model import results
    from mmpca.model.dispersion import in_counts

    names, sizes = results.feature_names(model), np.bincount(model.labels_, minlength=len(model.weights_))
    groups = {
        kind: [
            {kind: at, "name": name, "features": [names[v] for v in own.leading(FEATURES_SHOWN)]}
            for at, (name, own) in enumerate(zip(results.group_names(model, kind), measures(model), strict=True))
        ]
        for kind, measures in results.MEASURES.items()
    }
    return {
        "n_clusters": len(model.weights_),
        "n_topics": len(model.components_),
        "bound": model.bound_,
        "icl": model.icl_,
        "converged": model.converged_,
        "epochs": model.n_epochs_,
        "dispersion": model.dispersion_,
        "overdispersion": model.overdispersion_,
        "clusters": [cluster | {"rows": int(size)} for cluster, size in zip(groups["cluster"], sizes, strict=True)],
        "cluster_topics": in_counts(model).cluster_topics.tolist(),
        "topics": groups["topic"],
    }


def _show(model: MMPCA, seconds: float, is_interrupted: bool) -> None:
    """Print the fit, its clusters and its topics."""
    import numpy as np

    from mmpca.model import results
    from mmpca.model.dispersion import in_counts

    out, names, cluster_topics = console.out(), results.feature_names(model), in_counts(model).cluster_topics
    words = results.words_of(model)
    ending = "converged" if model.converged_ else "interrupted" if is_interrupted else "not converged"
    out.print(
        f"bound {model.bound_:,.1f} ({ending}), ICL {model.icl_:,.1f}, best of {counted(len(model.starts_), 'start')}, "
        f"{seconds:.1f} s",
    )
    out.print(describe_dispersion(model), highlight=False)
    title = f"Clusters with their main topics and most distinctive {words.features}"
    table = console_table(title, right=["cluster", words.rows])
    table.add_column("topics", max_width=30)
    table.add_column(words.features)
    for q, own in enumerate(results.cluster_features(model)):
        shares = cluster_topics[q]
        main = [k for k in np.argsort(-shares, kind="stable")[:TOPICS_SHOWN] if shares[k] >= SMALLEST_SHARE]
        topics = ", ".join(f"{k}: {shares[k]:.0%}" for k in main)
        features = ", ".join(names[v] for v in own.leading(FEATURES_SHOWN))
        table.add_row(str(q), f"{(model.labels_ == q).sum():,}", topics, features)
    out.print(table)
    out.print(topic_table(model, names))


def topic_table(model: MMPCA, names: Sequence[str]) -> Table:
    """Return a table of topics with their most distinctive features."""
    from mmpca.model import results

    features_word = results.words_of(model).features
    title = f"Topics with their most distinctive {features_word}, in percent of their counts"
    table = console_table(title, right=["topic"], left=[features_word])
    for k, own in enumerate(results.topic_features(model)):
        features = own.leading(FEATURES_SHOWN)
        table.add_row(str(k), ", ".join(f"{names[v]} {100 * own.share[v]:.1f}" for v in features))
    return table


def totals_note(model: MMPCA, data: InputData) -> list[str]:
    """Return a note if the clusters mostly separate rows with many counts from rows with few."""
    from mmpca.evaluation import totals_explained

    share = totals_explained(data.X.sum(axis=1), model.labels_)
    if data.text is not None or share < FOLLOWS_TOTALS:  # kinds of texts differ in length
        return []
    return [
        f"The clusters follow the totals of the rows: they explain {share:.0%} of the variance of log totals. If "
        "totals reflect effort, such as sequencing depth, compare with rows rarefied to a common total."
    ]


def dispersion_advice(model: MMPCA) -> str | None:
    """Return what to do if counts vary much more than the model expects, in terms of the options of this command."""
    from mmpca.model.dispersion import advice_on

    return advice_on(model, is_command=True)


def describe_dispersion(model: MMPCA) -> str:
    """Return how much counts vary within clusters, and what to do if it is too much."""
    index = model.overdispersion_
    if index != index:
        return "overdispersion: too few rows to estimate"
    expected = {"polya": "the variance factors allow", "shares": "a multinomial distribution allows"}
    means = f"counts vary as {expected.get(model.dispersion_, 'the model expects; typical texts have about 2')}"
    return dispersion_advice(model) or f"overdispersion {index:.2f} (1 means that {means})"
