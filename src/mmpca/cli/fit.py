"""``mmpca fit``: from an input to a model file and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmpca.cli import parts, screen
from mmpca.cli.fitting import Fit, watched_fit
from mmpca.cli.guard import INTERRUPTED
from mmpca.cli.inputs import Data, read_data
from mmpca.cli.options import InputOptions, TextOptions
from mmpca.cli.probabilities import own_probabilities
from mmpca.cli.tables import records, write_table
from mmpca.distributed.fitting import fit_loaded
from mmpca.errors import CountsError
from mmpca.model import MMPCA
from mmpca.model.dispersion import LARGE_INDEX
from mmpca.model.prediction import log_profiles

FEATURES_SHOWN = 8


class Output(NamedTuple):
    """Where results go."""

    model: Path | None
    labels: Path | None
    as_json: bool


class Fitted(NamedTuple):
    """A fitted model with what is to be told and written of it."""

    model: MMPCA
    went: Fit
    label_table: Callable[[], dict[str, list[Any]]]  # made when the model is safe
    remarks: list[str]
    text: dict[str, Any] | None = None


def run(
    paths: list[Path],
    *,
    parameters: dict[str, Any],
    output: Output,
    drop_empty: bool,
    scheduler: str | None,
    checkpoint: Path | None,
    how: InputOptions,
    counting: TextOptions,
) -> None:
    """Read, fit, write and show; leave with code 130 if Ctrl-C cut the search short."""
    model = MMPCA(**parameters)
    is_resumed = checkpoint is not None and checkpoint.exists()
    if scheduler is None and len(paths) == 1:
        fitted = _fit_here(model, paths[0], how, counting, drop_empty=drop_empty, checkpoint=checkpoint)
        labels = _write(fitted, output)
    else:
        with parts.opened(paths, how, counting, scheduler, model, drop_empty=drop_empty) as loaded:
            with _told_where_to_go_on(checkpoint):
                went = watched_fit(partial(fit_loaded, model, loaded, checkpoint=checkpoint), screen.err())
            fitted = Fitted(model, went, partial(parts.label_table, model, loaded), loaded.notes)
            labels = _write(fitted, output)
    went = fitted.went
    resumed = [f"went on from {checkpoint}"] if is_resumed else []
    screen.notes(resumed + list(fitted.remarks) + list(went.notes))
    if output.as_json:
        screen.print_json(_document(model, went, output, labels))
    else:
        _show(screen.out(), model, went, output)
    if went.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _fit_here(
    model: MMPCA, path: Path, how: InputOptions, counting: TextOptions, *, drop_empty: bool, checkpoint: Path | None
) -> Fitted:
    """Fit the model, in place, to one input in the memory of this process."""
    data = read_data(path, how, counting)
    remarks = list(data.table.notes)
    data = without_empty_rows(data, path, remarks, is_wanted=drop_empty)
    with _told_where_to_go_on(checkpoint):
        went = watched_fit(partial(model.fit, data.X, checkpoint=checkpoint), screen.err())
    return Fitted(model, went, partial(label_table, named(model, data), data), remarks, data.text)


def _write(fitted: Fitted, output: Output) -> dict[str, list[Any]]:
    """Write the model first, then the table of labels; return this, empty if nobody asked for it."""
    if output.model is not None:
        fitted.model.save(output.model, text=fitted.text)
    if output.labels is None and not output.as_json:
        return {}
    with _told_what_is_kept(output.model):
        labels = fitted.label_table()
        if output.labels is not None:
            write_table(output.labels, labels)
    return labels


@contextmanager
def _told_where_to_go_on(checkpoint: Path | None) -> Iterator[None]:
    """Say that a checkpoint has kept something, if Ctrl-C comes."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        told = str(interrupt) or "No model was written."
        raise KeyboardInterrupt(f"{told} The same command goes on from {checkpoint}.") from None


@contextmanager
def _told_what_is_kept(model: Path | None) -> Iterator[None]:
    """Say where the model is if the labels are lost."""
    told = f"The model was written to {model}, the labels were not."
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("" if model is None else told) from None
    except Exception:
        if model is not None:
            screen.note(told)
        raise


def named(model: MMPCA, data: Data) -> MMPCA:
    """Give a model the names of its features, as a data frame would have; scikit-learn has no sparse one."""
    if data.table.feature_names is not None:
        model.feature_names_in_ = np.array([str(name) for name in data.table.feature_names], dtype=object)
    return model


def without_empty_rows(data: Data, path: Path, remarks: list[str], *, is_wanted: bool) -> Data:
    """Return the rows that have counts; how many have none is added to the remarks, in place."""
    totals = np.diff(data.X.indptr)
    filled = np.flatnonzero(totals)
    n_empty = totals.size - filled.size
    if filled.size == 0:
        raise CountsError(f"{path}: no row has any counts. For texts, see whether --words or --max-share leave any.")
    if n_empty and not is_wanted:
        first = data.row_names()[int(np.flatnonzero(totals == 0)[0])]
        raise CountsError(
            f"{path}: {n_empty:,} of {totals.size:,} rows have no counts, the first is {first!r}: no cluster fits "
            "them. Leave them out with --drop-empty."
        )
    if n_empty:
        remarks.append(f"{n_empty:,} rows without counts were left out and have no label.")
    return data.take(filled) if n_empty else data


def label_table(model: MMPCA, data: Data) -> dict[str, list[Any]]:
    """Return name, cluster and probability of each fitted row."""
    own = own_probabilities(model, data.X)
    return {"row": data.row_names(), "cluster": model.labels_.tolist(), "probability": own.round(6).tolist()}


def _document(model: MMPCA, went: Fit, output: Output, labels: dict[str, list[Any]]) -> dict[str, Any]:
    names = _names(model)
    return {
        "n_clusters": len(model.weights_),
        "n_topics": len(model.components_),
        "bound": model.bound_,
        "icl": model.icl_,
        "converged": model.converged_,
        "interrupted": went.is_interrupted,
        "epochs": model.n_epochs_,
        "seconds": went.seconds,
        "overdispersion": None if np.isnan(model.overdispersion_) else model.overdispersion_,
        "clusters": [
            {"cluster": q, "rows": int(size), "features": [names[v] for v in features]}
            for q, (size, features) in enumerate(zip(_sizes(model), characteristic_features(model), strict=True))
        ],
        "cluster_topics": model.cluster_topics_.tolist(),
        "topics": [[names[v] for v in _top(topic)] for topic in model.components_],
        "model": None if output.model is None else str(output.model),
        "labels": records(labels) if output.labels is None else str(output.labels),
        "notes": went.notes + ([Text.from_markup(told_dispersion(model)).plain] if is_overdispersed(model) else []),
    }


def _show(console: Console, model: MMPCA, went: Fit, output: Output) -> None:
    ending = "no single move improves it" if model.converged_ else "interrupted" if went.is_interrupted else "stopped"
    console.print(
        f"bound [bold]{model.bound_:,.1f}[/] ({ending}), ICL [bold]{model.icl_:,.1f}[/], best of {len(model.starts_)} "
        f"starts in {went.seconds:.1f} s",
        highlight=False,
    )
    console.print(told_dispersion(model), highlight=False)
    console.print(_cluster_table(model))
    console.print(_topic_table(model))
    for path, what in ((output.model, "model"), (output.labels, "labels")):
        if path is not None:
            console.print(f"{what} written to {path}", highlight=False, markup=False, soft_wrap=True)
    if output.model is None and output.labels is None:
        console.print("Nothing was written: add --model and --labels to keep this.", style="yellow")


def is_overdispersed(model: MMPCA) -> bool:
    """Tell whether the counts vary so much that the user should know."""
    return model.overdispersion_ > LARGE_INDEX


def told_dispersion(model: MMPCA) -> str:
    """Return how much more the counts vary than the model allows, in words, and what to do where it is much."""
    if np.isnan(model.overdispersion_):
        return "overdispersion: there are too few rows to tell"
    told = f"overdispersion [bold]{model.overdispersion_:.2f}[/]"
    if not is_overdispersed(model):
        return f"{told} (1 if the counts vary as the model expects, texts have about 2)"
    remedy = "more clusters or topics" if model.stabilize == "sqrt" else "--stabilize sqrt, or more clusters or topics"
    return f"{told}: within clusters, counts vary so many times more than the model expects; try {remedy}"


def _cluster_table(model: MMPCA) -> Table:
    """Return size, topic shares and characteristic features of each cluster."""
    names = _names(model)
    title = "Clusters: size, shares of the topics, features that set them apart"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in ("cluster", "rows"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("topics", max_width=30)
    table.add_column("features")
    for q, (size, features) in enumerate(zip(_sizes(model), characteristic_features(model), strict=True)):
        shares = model.cluster_topics_[q]
        main = [k for k in np.argsort(-shares, kind="stable")[:3] if shares[k] >= 0.05]
        told = ", ".join(f"{k}: {shares[k]:.0%}" for k in main)
        table.add_row(str(q), f"{size:,}", told, ", ".join(names[v] for v in features))
    return table


def _topic_table(model: MMPCA) -> Table:
    names = _names(model)
    table = Table(title="Topics: most probable features, in per cent", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("topic", justify="right", no_wrap=True)
    table.add_column("features")
    for k, topic in enumerate(model.components_):
        table.add_row(str(k), ", ".join(f"{names[v]} {100 * topic[v]:.1f}" for v in _top(topic)))
    return table


def _names(model: MMPCA) -> list[str]:
    known = getattr(model, "feature_names_in_", None)
    return [f"feature {v}" for v in range(model.n_features_in_)] if known is None else known.tolist()


def _sizes(model: MMPCA) -> NDArray[np.intp]:
    return np.bincount(model.labels_, minlength=len(model.weights_))


def _top(scores: NDArray[np.float64]) -> list[int]:
    """Return the features with the highest scores, those without a positive one left out."""
    order = np.argsort(-scores, kind="stable")[:FEATURES_SHOWN]
    return [int(v) for v in order if scores[v] > 0]


def characteristic_features(model: MMPCA) -> list[list[int]]:
    """Return for each cluster the features whose share there, in nats, exceeds that of all rows most."""
    profiles = model.cluster_topics_ @ model.components_  # (Q, V)
    logs = log_profiles(model.components_, model.cluster_topics_)
    common = model.weights_ @ profiles
    excess = profiles * (logs - np.log(np.where(common > 0, common, 1.0)))
    return [_top(scores) for scores in excess]
