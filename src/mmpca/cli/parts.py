"""Inputs in several files, and inputs that a cluster works on: read, fitted and predicted in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from joblib import effective_n_jobs
from numpy.typing import NDArray

from mmpca.cli import screen
from mmpca.cli.inputs import check_unused, is_text
from mmpca.cli.lines import Lines
from mmpca.cli.options import InputOptions, TextOptions
from mmpca.cli.quiet import without_dask_messages
from mmpca.distributed.crews import crew_of
from mmpca.distributed.fitting import check_model
from mmpca.distributed.predicting import (
    best_clusters,
    check_features,
    own_probabilities,
    probabilities,
    reading_for,
)
from mmpca.distributed.sources import Loaded, Reading, load
from mmpca.errors import CountsError
from mmpca.model import MMPCA, ModelFile
from mmpca.model.prediction import best_of
from mmpca.places import joined, row_entries


class Predicted(NamedTuple):
    """What is predicted of rows, wherever they were."""

    names: list[str]
    best: NDArray[Any]  # cluster and probability of each row, `prediction.BEST`, (N,)
    probabilities: NDArray[np.float64] | None  # of all clusters, (N, Q), where they are asked for
    n_empty: int
    remarks: list[str]


@contextmanager
def opened(
    paths: Sequence[Path],
    how: InputOptions,
    counting: TextOptions,
    scheduler: str | None,
    model: MMPCA,
    *,
    drop_empty: bool,
) -> Iterator[Loaded]:
    """Provide the rows of files, read by a cluster's workers or by threads, for a fit of the model."""
    _check_inputs(paths, how)
    check_unused(paths[0], counting)
    check_model(model)
    reading = Reading(model.stabilize, empty_rows="drop", options=_read_options(how), with_rows=True)
    with without_dask_messages(), crew_of(scheduler, effective_n_jobs(model.n_jobs)) as crew:
        with _told(len(paths)) as tell:
            loaded = load(list(paths), crew, reading, on_read=tell)
        if loaded.empty and not drop_empty:
            raise _empty_rows_error(paths, loaded)
        if loaded.n_dropped:
            loaded.notes.append(f"{loaded.n_dropped:,} rows without counts were left out and have no label.")
        yield loaded


def _empty_rows_error(paths: Sequence[Path], loaded: Loaded) -> CountsError:
    """Return the error for rows without counts: where the first is, and how many there are."""
    first, *others = loaded.empty
    elsewhere = ""
    if others:
        n_files = "1 other file" if len(others) == 1 else f"{len(others):,} other files"
        elsewhere = f", and {sum(other.n_empty for other in others):,} rows of {n_files}"
    return CountsError(
        f"{paths[first.block]}: {first.n_empty:,} of {first.n_read:,} rows have no counts, the first is "
        f"{first.name!r}{elsewhere}: no cluster fits them. Leave them out with --drop-empty."
    )


def label_table(model: MMPCA, loaded: Loaded) -> dict[str, list[Any]]:
    """Return name, cluster and probability of each fitted row."""
    own = own_probabilities(model, loaded.parts)
    return {"row": loaded.rows or [], "cluster": model.labels_.tolist(), "probability": own.round(6).tolist()}


def predicted(
    paths: Sequence[Path], how: InputOptions, scheduler: str | None, file: ModelFile, *, with_probabilities: bool
) -> Predicted:
    """Predict the rows of files where they are."""
    _check_inputs(paths, how, has_text=file.text is not None)
    reading = reading_for(file.model, options=_read_options(how), with_rows=True)
    with without_dask_messages(), crew_of(scheduler, effective_n_jobs(file.model.n_jobs)) as crew:
        with _told(len(paths)) as tell:
            loaded = load(list(paths), crew, reading, on_read=tell)
        check_features(file.model, loaded.parts)
        n_empty = int((joined(loaded.parts, row_entries, np.arange(loaded.parts.n_rows)) == 0).sum())
        found = probabilities(file.model, loaded.parts) if with_probabilities else None
        best = best_clusters(file.model, loaded.parts) if found is None else best_of(found)
        return Predicted(loaded.rows or [], best, found, n_empty, loaded.notes)


@contextmanager
def _told(n_files: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many files have been read, and shows it on standard error."""
    console = screen.err()
    if not console.is_terminal:
        lines = Lines()
        yield lambda n_read: lines.tell(_read_line(n_read, n_files))
        return
    with console.status(_read_line(0, n_files)) as status:
        yield lambda n_read: status.update(_read_line(n_read, n_files))


def _read_line(n_read: int, n_files: int) -> str:
    return f"reading: {n_read} of {n_files} files"


def _check_inputs(paths: Sequence[Path], how: InputOptions, *, has_text: bool = False) -> None:
    """Refuse what cannot be read in parts."""
    for path in paths:
        if is_text(path, how, has_text=has_text):
            raise CountsError(
                f"{path}: words are counted over all texts at once. Give one input, such as the folder of the texts, "
                "without --scheduler, or count them first: mmpca convert."
            )
    if how.row_names is not None and len(paths) > 1:
        raise typer.BadParameter("--row-names names the rows of one file, but there are several.")


def _read_options(how: InputOptions) -> dict[str, Any]:
    """Return the options of `read_counts`, which workers in other folders call."""
    files = {"row_names": how.row_names, "feature_names": how.feature_names}
    return {
        "format": None if how.format is None else str(how.format),
        "transpose": how.transpose,
        "layer": how.layer,
    } | {name: None if path is None else path.absolute() for name, path in files.items()}
