"""Read the inputs of commands: counts, texts, known labels, and counts in several files."""

from __future__ import annotations

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
TABLE_ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet", ".json", *TEXT_ENDINGS)
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
    """Return the rows with counts, with a note on the others; raise an error unless `drop` is true or these are texts.

    A corpus always has some texts without words, so they need no option.
    """
    import numpy as np

    n_entries = np.diff(data.X.indptr)
    filled = np.flatnonzero(n_entries)
    n_empty = n_entries.size - filled.size
    if filled.size == 0:
        raise CountsError(f"{path}: no row has any counts. For texts, check --words, --min-rows and --max-share.")
    if n_empty and not drop and data.text is None:
        first = int(np.flatnonzero(n_entries == 0)[0])
        raise CountsError(
            f"{path}: {n_empty:,} of {counted(n_entries.size, 'row')} {_have(n_empty)} no counts, first "
            f"{data.row_names()[first]!r}. Such rows cannot be clustered; drop them with --drop-empty.",
            row=first,
        )
    if n_empty:
        noun, lack = ("row", "counts") if data.text is None else ("text", "words")
        first_name = data.row_names()[int(np.flatnonzero(n_entries == 0)[0])]
        which = repr(first_name) if n_empty == 1 else f"the first is {first_name!r}"
        note = f"Dropped {counted(n_empty, noun)} without {lack} ({which}); dropped {noun}s get no label."
        data.table.notes.append(note)
    return data.take(filled) if n_empty else data


def counted(n: int, noun: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


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
    from mmpca.io.formats import find_matrix
    from mmpca.io.streams import first_bytes, suffix

    if read.text or any(value is not None for value in (read.text_column, read.id_column, read.per, read.glob)):
        return True
    if read.format is not None:
        return False
    if path.is_dir():
        return find_matrix(path) is None
    if suffix(path) == ".json" and path.is_file():
        return first_bytes(path, 2**10).lstrip().startswith(b"[")
    return suffix(path) in TEXT_ENDINGS or (is_text_model and suffix(path) in (".txt", ".md", ""))


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
        "encoding": read.encoding,
        "sheet": read.sheet,
    } | {name: None if path is None else path.absolute() for name, path in files.items()}


def text_arguments(read: ReadOptions) -> dict[str, Any]:
    """Return the options as arguments of `read_texts`."""
    per = "line" if read.per is None and read.text else read.per
    return {
        "column": read.text_column,
        "id_column": read.id_column,
        "per": None if per is None else str(per),
        "glob": read.glob,
        "encoding": read.encoding,
        "sheet": read.sheet,
    }


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
    texts, names, notes = read_texts(path, **text_arguments(read))
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
        CountTable(X, names, counter.get_feature_names_out(), notes + console.warning_texts(caught)),
        counter.settings(),
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
    texts, names, notes = read_texts(path, **text_arguments(read))
    counts = counter.count(texts)
    n_unseen, n_known = int(counts.n_unseen.sum()), int(counts.X.sum())
    if n_unseen:
        notes.append(f"{n_unseen:,} of {n_unseen + n_known:,} words are unknown to the model and were skipped.")
    return CountTable(counts.X, names, words, notes)


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
    is_empty = path.is_file() and not path.stat().st_size  # allowed here: a list without words
    lines = [] if is_empty else _read_lines(path)
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a file; print a note if the encoding was guessed."""
    from mmpca.io.streams import read_lines

    notes: list[str] = []
    lines = read_lines(path, notes)
    console.notes(notes)
    return lines


# --- known labels and other columns -----------------------------------------------------------------------------


def read_labels(path: Path, names: Sequence[str] | None, n_rows: int, column: str | None = None) -> list[str]:
    """Read one label per row, from a table with a header, or from any other file with one per line.

    In a table, `column` has the labels; by default the first of `LABEL_COLUMNS`, or the only one apart from the names.
    If a column contains the names of the rows, labels are matched by name; records of other rows are ignored, with a
    note. If no column contains any of them, labels are matched by position, with a note if there is a column "row". It
    is an error if several columns fit, or if the best one has duplicates or only some of the names.
    """
    from mmpca.io.streams import suffix

    if column is None and suffix(path) not in TABLE_ENDINGS:
        return check_length(path, _read_lines(path), n_rows)
    table = _read_table_of_values(path)
    named = None if names is None else _find_name_column(path, table, names, column)
    labels = table[_find_label_column(path, table, named, column)]
    if named is None:
        rows = table.get(ROW_COLUMN)
        if names is not None and rows is not None:
            text = f'{path}: no name in the column "{ROW_COLUMN}" is in the data, so labels are matched by position.'
            console.notes([f"{text} The first names are {rows[0]!r} and {names[0]!r}."])
        return check_length(path, labels, n_rows)
    assert names is not None
    rows = table[named]
    if rows == list(names):  # names may repeat
        return labels
    _check_names(path, named, rows, names)
    if len(rows) > len(names):
        console.notes([f"{path}: ignored {counted(len(rows) - len(names), 'record')} of other rows."])
    by_name = dict(zip(rows, labels, strict=True))
    return [by_name[name] for name in names]


def _find_name_column(
    path: Path, table: Mapping[str, list[str]], names: Sequence[str], column: str | None
) -> str | None:
    """Return the column with the names of the rows, None if no column has any; raise an error if several fit."""
    wanted = set(names)
    shares = {title: len(wanted & set(values)) for title, values in table.items() if title != column}
    best = max(shares.values(), default=0)
    if not best:
        return None
    if shares.get(ROW_COLUMN) == best:
        return ROW_COLUMN
    fitting = [title for title, share in shares.items() if share == best]
    # Numbers of rows are also values of other columns, by chance.
    if best < len(wanted) and not any(2 * shares[title] > len(wanted) for title in fitting):
        return None
    if len(fitting) > 1 and any(table[title] != table[fitting[0]] for title in fitting):
        raise InputFileError(
            f"{path}: labels cannot be matched to rows, because several columns contain their names: "
            f"{', '.join(map(repr, fitting))}. Rename the right one to {ROW_COLUMN!r}.",
            path=path,
        )
    return fitting[0]


def _find_label_column(path: Path, table: Mapping[str, list[str]], named: str | None, column: str | None) -> str:
    """Return the column with the labels; raise an error if it is not there, or if there are several candidates."""
    others = [title for title in table if title not in (named, ROW_COLUMN)]
    shown = f"The columns are {', '.join(map(repr, table))}"
    if column is not None:
        if column not in table:
            raise InputFileError(f"{path}: there is no column {column!r}. {shown}.", path=path)
        return column
    known = next((title for title in LABEL_COLUMNS if title in others), None)
    if known is None and len(others) != 1:
        raise InputFileError(
            f"{path}: expected one column of labels. {shown}: choose one with --label-column.", path=path
        )
    return known or others[0]


def _check_names(path: Path, title: str, rows: Sequence[str], names: Sequence[str]) -> None:
    """Raise an error unless both lists have the names of the data, each once."""
    in_table, in_data = Counter(rows), Counter(names)
    for name in names:
        if in_table[name] != 1 or in_data[name] != 1:
            raise InputFileError(
                f"{path}: labels cannot be matched to rows, because {name!r} occurs {in_table[name]} times in the "
                f"column {title!r} and {in_data[name]} times in the data. List each row exactly once, or remove "
                "the column to match labels by position.",
                path=path,
            )


def read_columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table with a header."""
    from mmpca.io.streams import suffix

    if suffix(path) not in TABLE_ENDINGS:
        raise InputFileError(f"{path}: expected a file name that ends in {', '.join(TABLE_ENDINGS)}.", path=path)
    return _read_table_of_values(path)


def _read_table_of_values(path: Path) -> dict[str, list[str]]:
    from mmpca.io import columns

    notes: list[str] = []
    table = columns.read_columns(path, notes=notes)
    if not table.numbers:
        raise InputFileError(f"{path}: expected a header and at least one record.", path=path)
    console.notes(notes)
    values = ([_shown(value) for value in column] for column in table.values)
    return dict(zip(table.titles, values, strict=True))


def _shown(value: object) -> str:
    """Return a value of a table as it would be in a CSV file."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


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
    elsewhere = f"; {counted(n_others, 'row')} in other files {_have(n_others)} none either" if others else ""
    raise CountsError(
        f"{paths[first.block]}: {first.n_empty:,} of {counted(first.n_read, 'row')} {_have(first.n_empty)} no counts, "
        f"first {first.name!r}{elsewhere}. Such rows cannot be clustered; drop them with --drop-empty."
    )
