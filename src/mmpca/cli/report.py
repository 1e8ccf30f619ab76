"""``mmpca report``: from a model file to one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.cli import screen
from mmpca.cli.inputs import Data, is_text, read_for_model
from mmpca.cli.labels import fitting, read_columns, read_labels
from mmpca.cli.options import InputOptions
from mmpca.errors import InputFileError
from mmpca.model import MMPCA, ModelFile, read_model
from mmpca.report import write_report

RESULT_COLUMNS: tuple[str, ...] = ("n_clusters", "n_topics", "predictive", "predictive_error", "icl", "wins")


class Sources(NamedTuple):
    """Files that a page can be made of, beside the model."""

    data: Path | None
    labels: Path | None
    texts: Path | None
    results: Path | None


def run(model_path: Path, output: Path, *, sources: Sources, title: str | None, how: InputOptions) -> None:
    """Load, read and write."""
    model, given = read_all(model_path, sources=sources, how=how)
    written = write_report(model, output, title=title, **given)
    told = f"{written.stat().st_size / 1000:,.0f} kB written to {written}"
    screen.out().print(told, highlight=False, markup=False, soft_wrap=True)


def read_all(model_path: Path, *, sources: Sources, how: InputOptions) -> tuple[MMPCA, dict[str, Any]]:
    """Return a model, and what else a report is given: X, labels, texts, row_names and search."""
    file = read_model(model_path)
    data = None if sources.data is None else read_for_model(sources.data, how, file)
    names = None if data is None else data.row_names()
    n_rows = len(file.model.labels_) if names is None else len(names)
    labels = None if sources.labels is None else fitting(sources.labels, read_labels(sources.labels, names), n_rows)
    texts = _texts(sources, how, file, n_rows)
    given: dict[str, Any] = {"labels": labels, "texts": texts, "row_names": None}
    if data is not None:
        filled = _filled(data)
        # A row that has no name goes by its number, which the page says better.
        own = names if data.table.row_names is not None else None
        given = {what: _taken(values, filled) for what, values in {**given, "row_names": own}.items()}
        data = data.take(filled)
        screen.notes(data.table.notes)
    given["search"] = None if sources.results is None else read_results(sources.results)
    given["X"] = None if data is None else data.X
    return file.model, given


def read_results(path: Path) -> dict[str, NDArray[Any]]:
    """Return the numbers of clusters and topics that were tried, and their criteria."""
    table = read_columns(path)
    try:
        columns: dict[str, NDArray[Any]] = {
            name: np.array(table[name], dtype=np.float64) for name in RESULT_COLUMNS if name in table
        }
    except ValueError as error:
        raise InputFileError(f"{path}: a column holds something else than numbers ({error}).") from error
    missing = {"n_clusters", "n_topics"} - set(columns)
    if missing:
        raise InputFileError(
            f"{path}: there is no column {sorted(missing)[0]!r}. Give the table that mmpca select --results wrote."
        )
    for name in ("n_clusters", "n_topics"):
        columns[name] = columns[name].astype(np.int64)
    return columns


def _texts(sources: Sources, how: InputOptions, file: ModelFile, n_rows: int) -> list[str] | None:
    """Return the texts to show: those given, or those that were counted."""
    from mmpca.text import read_texts

    if sources.texts is not None:
        return fitting(sources.texts, read_texts(sources.texts).texts, n_rows)
    if sources.data is not None and is_text(sources.data, how, has_text=file.text is not None):
        return read_texts(sources.data, column=how.text_column).texts
    return None


def _filled(data: Data) -> NDArray[np.intp]:
    """Return the rows that have counts, as a fit with --drop-empty takes them; all if none has."""
    totals = np.diff(data.X.indptr)
    filled = np.flatnonzero(totals)
    if 0 < filled.size < totals.size:
        screen.note(f"{totals.size - filled.size:,} rows without counts that the model knows are left out.")
        return filled
    return np.arange(totals.size)


def _taken(values: Sequence[str] | None, rows: NDArray[np.intp]) -> list[str] | None:
    return None if values is None else [values[i] for i in rows.tolist()]
