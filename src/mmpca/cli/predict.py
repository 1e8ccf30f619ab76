"""``mmpca predict``: assign new rows to the clusters of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mmpca.cli import console, options
from mmpca.cli.inputs import counted, load_data, load_files, read_for_model, suspicions, with_layer
from mmpca.cli.options import ReadOptions
from mmpca.cli.tables import columns_table, records, write_labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    outliers: Annotated[
        float | None,
        options.output_option(
            "--outliers", min=0.0, max=1.0, help="Add outlier scores; rows with a score below this get cluster -1."
        ),
    ] = None,
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
    from mmpca.model import prediction, read_model, results
    from mmpca.model.outliers import mark_outliers, score_block

    file = read_model(model)
    with _load(input, read, scheduler, file) as rows:
        backend, notes = rows.backend, list(rows.notes)
        # With a column per cluster, all probabilities come back; otherwise only the largest.
        every = score_rows(probability_rows, file.model, backend) if probabilities else None
        best = score_rows(best_rows, file.model, backend) if every is None else prediction.most_probable(every)
        scores = None
        if outliers is not None:
            scores = map_rows(backend, score_block, np.arange(backend.n_rows), best["cluster"], shared=(file.model,))
        is_empty = map_rows(backend, row_entries, np.arange(backend.n_rows)) == 0
    marked = best["cluster"]
    if scores is not None and outliers is not None:
        marked = mark_outliers(file.model, marked, scores, outliers)
    clusters = np.where(is_empty, results.NO_CLUSTER, marked)
    table: dict[str, list[Any]] = {
        "row": rows.row_names or [],
        "cluster": clusters.tolist(),
        "cluster_name": results.names_of_clusters(file.model, clusters),
        "probability": _rounded(best["probability"], is_empty),
    }
    if every is not None:
        table |= {f"cluster_{q}": _rounded(column, is_empty) for q, column in enumerate(every.T)}
    if scores is not None:
        table["outlier_score"] = _rounded(scores, is_empty)
    if is_empty.any():
        first = (rows.row_names or [])[int(is_empty.argmax())]
        empty = counted(int(is_empty.sum()), "row")
        notes.append(f"{empty} without counts of known features (the first is {first!r}); their label is -1.")
    console.notes(notes)
    if labels is not None:
        write_labels(labels, table, input, safe=safe_csv)
    if json:
        console.print_json({"labels": records(table) if labels is None else labels, "notes": notes})
    elif labels is None:
        _show(table)
    else:
        console.line(f"{len(best):,} labels written to {labels}")


def _rounded(values: NDArray[Any], is_empty: NDArray[np.bool_]) -> list[float | None]:
    """Return rounded probabilities; None for rows without counts."""
    pairs = zip(values.round(6).tolist(), is_empty.tolist(), strict=True)
    return [None if empty else value for value, empty in pairs]


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
    reading, read = fitting.reading_for(model), with_layer(paths[0], read, model)
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
