"""``mmpca predict``: assign new rows to the clusters of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mmpca.cli import console, options
from mmpca.cli.inputs import counted, load_data, load_files, read_for_model, suspicions
from mmpca.cli.options import ReadOptions
from mmpca.cli.tables import columns_table, records, write_table

if TYPE_CHECKING:
    from mmpca.distributed.sources import Loaded
    from mmpca.model import ModelFile

MAX_ROWS_SHOWN = 40


def predict(
    model: options.Model,
    input: options.Inputs,
    labels: options.LabelsOutput = None,
    probabilities: Annotated[
        bool, options.output_option("--probabilities", help="Add a column for each cluster.")
    ] = False,
    safe_csv: options.SafeCsv = False,
    json: options.Json = False,
    scheduler: options.Scheduler = None,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Assign new rows, or new texts, to the clusters of a model.

    Features are matched by name: unknown features are dropped and counted, missing ones are zero.
    Without --labels, the table is printed.

    For example:

      mmpca predict counts.mmpca new.mtx --labels new.csv

      mmpca predict reports.mmpca new_reports/ --probabilities --json

      mmpca predict all.mmpca new-*.npz --scheduler tcp://10.0.0.1:8786 --labels new.parquet
    """
    import numpy as np

    from mmpca.backend import map_rows, row_entries
    from mmpca.distributed.fitting import best_rows, probability_rows, score_rows
    from mmpca.model import prediction, read_model

    file = read_model(model)
    with _load(input, read, scheduler, file) as rows:
        backend, notes = rows.backend, list(rows.notes)
        # With a column per cluster, all probabilities come back; otherwise only the largest.
        every = score_rows(probability_rows, file.model, backend) if probabilities else None
        best = score_rows(best_rows, file.model, backend) if every is None else prediction.most_probable(every)
        n_empty = int((map_rows(backend, row_entries, np.arange(backend.n_rows)) == 0).sum())
    table: dict[str, list[Any]] = {
        "row": rows.row_names or [],
        "cluster": best["cluster"].tolist(),
        "cluster_name": file.model.cluster_names_[best["cluster"]].tolist(),
        "probability": best["probability"].round(6).tolist(),
    }
    if every is not None:
        table |= {f"cluster_{q}": column.round(6).tolist() for q, column in enumerate(every.T)}
    if n_empty:
        empty = counted(n_empty, "row")
        notes.append(f"{empty} without counts of known features assigned to the largest cluster.")
    console.notes(notes)
    if labels is not None:
        write_table(labels, table, safe=safe_csv)
    if json:
        console.print_json({"labels": records(table) if labels is None else labels, "notes": notes})
    elif labels is None:
        _show(table)
    else:
        console.line(f"{len(best):,} labels written to {labels}")


@contextmanager
def _load(paths: list[Path], read: ReadOptions, scheduler: str | None, file: ModelFile) -> Iterator[Loaded]:
    """Provide the rows of one input, or of several files, with the features of a model."""
    from mmpca.distributed import fitting
    from mmpca.model.prediction import note_on_positions

    if scheduler is None and len(paths) == 1:
        data = read_for_model(paths[0], read, file)
        data.table.notes.extend(suspicions(data))
        yield load_data(data)
        return
    model, is_text_model = file.model, file.text is not None
    reading = fitting.reading_for(model)
    with load_files(paths, read, scheduler, reading, n_jobs=model.n_jobs, is_text_model=is_text_model) as loaded:
        fitting.check_features(model, loaded.backend)
        unmatched = [] if reading.known is not None else note_on_positions(False, loaded.feature_names is not None)
        yield loaded._replace(notes=[*loaded.notes, *unmatched, *suspicions(loaded)])


def _show(table: dict[str, list[Any]]) -> None:
    """Print the table, shortened if it is long."""
    out = console.out()
    out.print(columns_table({name: column[:MAX_ROWS_SHOWN] for name, column in table.items()}))
    n_left = len(table["row"]) - MAX_ROWS_SHOWN
    if n_left > 0:
        out.print(f"{n_left:,} more rows; write them all with --labels FILE", style="dim")
