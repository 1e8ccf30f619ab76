"""Read the inputs of commands: counts, texts, known labels, and counts in several files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from mmpca.cli import console
from mmpca.cli.options import ReadOptions, TextOptions
from mmpca.cli.progress import progress_display
from mmpca.errors import CountsError, InputFileError, ModelFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy import sparse

    from mmpca.distributed.sources import Loaded, Reading
    from mmpca.io import CountTable
    from mmpca.model import MMPCA, ModelFile

TEXT_ENDINGS = (".jsonl", ".ndjson")  # always texts: no format of counts ends like this
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_COLUMNS = ("label", "labels", "class", "cluster")
ROW_COLUMN = "row"  # in the tables that fit, predict and simulate write


class InputData(NamedTuple):
    """Counts with their names, and for texts the settings used to count them."""

    table: CountTable
    text: dict[str, Any] | None = None

    @property
    def X(self) -> sparse.csr_array:
        """The counts, (n_rows, n_features)."""
        return self.table.X

    def row_names(self) -> list[str]:
        """Return the name of each row, or its number."""
        names = self.table.row_names
        return [str(i) for i in range(self.X.shape[0])] if names is None else [str(name) for name in names]

    def take(self, rows: NDArray[np.intp]) -> InputData:
        """Return some of the rows."""
        names = self.table.row_names
        kept = self.table._replace(X=self.X[rows], row_names=None if names is None else names[rows])
        return self._replace(table=kept)


# --- counts and texts -------------------------------------------------------------------------------------------


def read_data(path: Path, read: ReadOptions, text: TextOptions) -> InputData:
    """Read counts, or texts whose words are counted."""
    if is_text(path, read):
        return _count_words(path, read, text)
    if path.exists():
        check_no_text_options(path, text)
    return InputData(_read_table(path, read))


def read_for_model(path: Path, read: ReadOptions, file: ModelFile) -> InputData:
    """Read counts or texts, with the features of a model as columns."""
    if not is_text(path, read, is_text_model=file.text is not None):
        return InputData(_align(path, _read_table(path, read), file.model), file.text)
    if file.text is None:
        raise CountsError(
            f"{path}: expected counts, because the model was fitted to counts, but these are texts. Give counts, or "
            "fit a model to texts."
        )
    return InputData(_count_known_words(path, read, file), file.text)


def drop_empty_rows(data: InputData, path: Path, *, drop: bool) -> InputData:
    """Return the rows with counts, with a note on the others; raise an error unless `drop` is true."""
    import numpy as np

    n_entries = np.diff(data.X.indptr)
    filled = np.flatnonzero(n_entries)
    n_empty = n_entries.size - filled.size
    if filled.size == 0:
        raise CountsError(f"{path}: no row has any counts. For texts, check --words, --min-rows and --max-share.")
    if n_empty and not drop:
        first = int(np.flatnonzero(n_entries == 0)[0])
        raise CountsError(
            f"{path}: {n_empty:,} of {n_entries.size:,} rows have no counts, first {data.row_names()[first]!r}. Such "
            "rows cannot be clustered; drop them with --drop-empty.",
            row=first,
        )
    if n_empty:
        data.table.notes.append(f"{n_empty:,} rows without counts were dropped and have no label.")
    return data.take(filled) if n_empty else data


def suspicions(data: InputData | Loaded, *, n_clusters: int | None = None, n_topics: int = 1) -> list[str]:
    """Return the warnings of ``mmpca inspect`` as notes, for a command that continues.

    Without the sizes of a fit, only rows and columns that do not look like counts are noted. If rows are in
    blocks, evenly spaced ones are inspected.
    """
    from mmpca.counts import as_counts
    from mmpca.distributed.fitting import sampled_rows
    from mmpca.model.inspection import inspect_counts, misread_columns

    names: dict[str, Any]
    if isinstance(data, InputData):
        counts, is_words = as_counts(data.X, empty_rows="allow"), data.text is not None
        names = {"row_names": data.table.row_names, "feature_names": data.table.feature_names}
    else:
        is_words, (counts, names) = False, sampled_rows(data)
    if n_clusters is None:
        findings = [] if is_words else misread_columns(counts, **names)
    else:
        found = inspect_counts(counts, n_clusters=n_clusters, n_topics=n_topics, **names, counts_words=is_words)
        findings = list(found.findings)
    # The fit itself warns about transposed data, and reports data that it cannot fit.
    noted = [finding for finding in findings if finding.level == "warning" and finding.code != "transposed"]
    return [f"{finding.message} {finding.remedy}" for finding in noted]


def is_text(path: Path, read: ReadOptions, *, is_text_model: bool = False) -> bool:
    """Return True if an input is read as texts; a model of texts reads .txt files as texts too."""
    if read.text or read.text_column is not None or path.is_dir():
        return True
    if read.format is not None:
        return False
    return path.suffix in TEXT_ENDINGS or (is_text_model and path.suffix in (".txt", ""))


def check_no_text_options(path: Path, text: TextOptions) -> None:
    """Raise an error if word-count options were given for an input of counts."""
    for name, value in text._asdict().items():
        if value != TextOptions._field_defaults[name]:
            raise CountsError(
                f"{path}: --{name.replace('_', '-')} applies to texts, but this is read as counts. Remove the option, "
                "or add --text if these are texts."
            )


def _read_table(path: Path, read: ReadOptions) -> CountTable:
    from mmpca.io import read_counts

    return read_counts(path, **_read_arguments(read))


def _read_arguments(read: ReadOptions) -> dict[str, Any]:
    """Return the options as arguments of `read_counts`, with absolute paths for workers in other folders."""
    files = {"row_names": read.row_names, "feature_names": read.feature_names}
    return {
        "format": None if read.format is None else str(read.format),
        "transpose": read.transpose,
        "layer": read.layer,
    } | {name: None if path is None else path.absolute() for name, path in files.items()}


def _align(path: Path, table: CountTable, model: MMPCA) -> CountTable:
    """Return the counts with the model's features as columns, matched by name if both have names."""
    from mmpca.model.prediction import align_features, note_on_positions

    known, n_features = getattr(model, "feature_names_in_", None), model.n_features_in_
    if known is None or table.feature_names is None:
        if table.X.shape[1] != n_features:
            nameless = "the model" if known is None else "the input"
            raise CountsError(
                f"{path}: expected the model's {n_features} features, but there are {table.X.shape[1]}, and {nameless} "
                "has no names to match them by. Give --feature-names, or the same columns as in the fit."
            )
        return table._replace(
            notes=[*table.notes, *note_on_positions(known is not None, table.feature_names is not None)]
        )
    aligned = align_features(table.X, table.feature_names, known, name=str(path))
    return table._replace(X=aligned.X, feature_names=known, notes=[*table.notes, *aligned.notes()])


def _count_words(path: Path, read: ReadOptions, text: TextOptions) -> InputData:
    """Return the word counts of texts, and the settings to count other texts in the same way."""
    from mmpca.io import CountTable
    from mmpca.text import CountTexts, read_texts

    counter = CountTexts(
        min_df=text.min_rows,
        max_df=text.max_share,
        stop_words=_stop_words(text.stop_words),
        ngram_range=(1, text.ngrams),
        vocabulary=None if text.words is None else _read_words(text.words),
    )
    texts, names = read_texts(path, column=read.text_column)
    with console.collected_warnings() as caught:  # on words that can never occur
        try:
            X = counter.fit_transform(texts)
        except CountsError as error:
            raise InputFileError(
                f"{path}: no words are left in {len(texts)} texts with --min-rows {text.min_rows}, --max-share "
                f"{text.max_share:g} and the stop words. A word has at least two letters or digits. Lower --min-rows, "
                "raise --max-share, or use fewer stop words.",
                path=path,
            ) from error
    return InputData(
        CountTable(X, names, counter.get_feature_names_out(), console.warning_texts(caught)), counter.settings()
    )


def _count_known_words(path: Path, read: ReadOptions, file: ModelFile) -> CountTable:
    """Return the counts of the words that a model knows, with a note on other words."""
    from mmpca.io import CountTable
    from mmpca.text import CountTexts, read_texts

    settings: Mapping[str, Any] = file.text or {}
    try:
        counter = CountTexts.from_settings(settings)
        words = counter.get_feature_names_out()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"The model's word-count settings are invalid ({error}). Fit it again.") from error
    if words.tolist() != [str(name) for name in getattr(file.model, "feature_names_in_", ())]:
        raise ModelFileError("The words in the model's word-count settings are not its features. Fit it again.")
    texts, names = read_texts(path, column=read.text_column)
    counts = counter.count(texts)
    n_unseen, n_known = int(counts.n_unseen.sum()), int(counts.X.sum())
    notes = [f"{n_unseen:,} of {n_unseen + n_known:,} words are unknown to the model and were skipped."]
    return CountTable(counts.X, names, words, notes if n_unseen else [])


def _stop_words(given: str | None) -> str | list[str] | None:
    """Return the words in a file, or else the name of a language."""
    if given is None or given == "english":
        return given
    if Path(given).exists():
        return _read_words(Path(given))
    if not given.isalpha():
        raise InputFileError(
            f"--stop-words {given}: expected a language or a file with one word per line, but there is no such file.",
            path=given,
        )
    return given


def _read_words(path: Path) -> list[str]:
    from mmpca.io.streams import read_lines

    is_empty = path.is_file() and not path.stat().st_size  # allowed here: a list without words
    lines = [] if is_empty else read_lines(path)
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


# --- known labels and other columns -----------------------------------------------------------------------------


def read_labels(path: Path, names: Sequence[str] | None, n_rows: int) -> list[str]:
    """Read one label per row, from a .csv or .tsv file with a header, or from any other file with one per line.

    In a table, the first of `LABEL_COLUMNS` is used, or else the last column. If its column "row" has the names of the
    rows, labels are matched by name; if it has none of them, by position; if it has some, or duplicates, that is an
    error.
    """
    from mmpca.io.streams import read_lines

    if path.suffix not in DELIMITERS:
        return check_length(path, read_lines(path), n_rows)
    table = read_columns(path)
    labels = table[next((name for name in LABEL_COLUMNS if name in table), list(table)[-1])]
    rows = table.get(ROW_COLUMN)
    if names is None or rows is None or rows == list(names):
        return check_length(path, labels, n_rows)
    if set(rows).isdisjoint(names):
        text = f'{path}: no name in the column "{ROW_COLUMN}" is in the data, so labels are matched by position.'
        console.notes([f"{text} The first names are {rows[0]!r} and {names[0]!r}."])
        return check_length(path, labels, n_rows)
    _check_same_names(path, rows, names)
    by_name = dict(zip(rows, labels, strict=True))
    return [by_name[name] for name in names]


def _check_same_names(path: Path, rows: Sequence[str], names: Sequence[str]) -> None:
    """Raise an error unless both lists have the same names, each once."""
    in_table, in_data = Counter(rows), Counter(names)
    for name in (*names, *rows):
        if in_table[name] != 1 or in_data[name] != 1:
            raise InputFileError(
                f"{path}: labels cannot be matched to rows, because {name!r} occurs {in_table[name]} times in the "
                f'column "{ROW_COLUMN}" and {in_data[name]} times in the data. Give each row of the data once, or '
                "remove the column to match labels by position.",
                path=path,
            )


def read_columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of a CSV or TSV file with a header."""
    from mmpca.io.delimited import read_records
    from mmpca.io.streams import read_text

    if path.suffix not in DELIMITERS:
        raise InputFileError(f"{path}: expected a table that ends in .csv or .tsv.", path=path)
    lines = io.StringIO(read_text(path), newline="")
    records = [fields for _, fields in read_records(path, lines, DELIMITERS[path.suffix])]
    if len(records) < 2:
        raise InputFileError(f"{path}: expected a header and at least one record.", path=path)
    return {name: [record[column] for record in records[1:]] for column, name in enumerate(records[0])}


def check_length(path: Path, values: list[str], n_rows: int) -> list[str]:
    """Return the entries of a file; raise an error unless there is one per row."""
    if len(values) != n_rows:
        raise InputFileError(
            f"{path}: expected {n_rows:,} entries, one per row, but there are {len(values):,}.", path=path
        )
    return values


# --- rows as mmpca.distributed takes them: in memory, in several files, or on a cluster ---------------------------


def load_data(data: InputData) -> Loaded:
    """Return rows that are in memory."""
    from mmpca.distributed.sources import Reading, load

    loaded = load([data.X], None, Reading(empty_rows="allow"))
    return loaded._replace(feature_names=data.table.feature_names, row_names=data.row_names(), notes=data.table.notes)


@contextmanager
def load_files(
    paths: Sequence[Path],
    read: ReadOptions,
    scheduler: str | None,
    reading: Reading,
    *,
    n_jobs: int | None,
    is_text_model: bool = False,
) -> Iterator[Loaded]:
    """Provide the rows of files, read by the workers of a cluster or by threads, as one matrix."""
    from joblib import effective_n_jobs

    from mmpca.distributed.sources import load
    from mmpca.distributed.workers import open_workers
    from mmpca.monitor import Monitor

    for path in paths:
        if is_text(path, read, is_text_model=is_text_model):
            raise CountsError(
                f"{path}: texts must be one input, without --scheduler, because words are counted over all texts. Give "
                "their folder, or count the words first with mmpca convert."
            )
    if read.row_names is not None and len(paths) > 1:
        raise typer.BadParameter("--row-names names the rows of a single file, but several files were given.")
    reading = reading._replace(options=_read_arguments(read), with_rows=True)
    with console.muted_dask(), open_workers(scheduler) as workers:
        with progress_display() as show:
            loaded = load(list(paths), workers, reading, n_threads=effective_n_jobs(n_jobs), monitor=Monitor(show))
        yield loaded


def check_no_empty_rows(paths: Sequence[Path], loaded: Loaded) -> None:
    """Raise an error that names the first row without counts, if there is one."""
    if not loaded.empty:
        return
    first, *others = loaded.empty
    n_others = sum(other.n_empty for other in others)
    elsewhere = f", as do {n_others:,} rows in other files" if others else ""
    raise CountsError(
        f"{paths[first.block]}: {first.n_empty:,} of {first.n_read:,} rows have no counts, first "
        f"{first.name!r}{elsewhere}. Such rows cannot be clustered; drop them with --drop-empty."
    )
