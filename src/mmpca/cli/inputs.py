"""Read the inputs of commands: counts, texts, known labels, and counts in several files."""

from __future__ import annotations

import json
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
    from mmpca.model.results import Words

TEXT_ENDINGS = (".jsonl", ".ndjson")  # always texts: no format of counts ends like this
TABLE_ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet", ".json", *TEXT_ENDINGS)
LABEL_COLUMN = "--label-column"
LABEL_COLUMNS = ("label", "labels", "class", "cluster")
ROWS_READ, LEAST_WORDS = 100, 3  # to recognize a column of texts: records read, and their mean number of words
LEAST_TEXTS = 2  # a word that occurs in only one text cannot connect two texts
MANY_LABELS = 30  # this many different numbers look like a measurement, not like classes
ROW_COLUMN = "row"  # in the tables that fit, predict and simulate write


class InputData(NamedTuple):
    """Counts with their names, and for texts the settings used to count them."""

    table: CountTable
    text: dict[str, Any] | None = None
    all_names: list[str] | None = None  # of all rows, if some of them were left out
    filled: NDArray[np.intp] | None = None  # positions of the others among them

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

    @property
    def empty_rows(self) -> list[int]:
        """The positions of texts without words, which were left out of the fit; their label is -1."""
        if self.text is None or self.all_names is None or self.filled is None:
            return []
        return sorted(set(range(len(self.all_names))) - set(self.filled.tolist()))

    def with_empty_rows(self, labels: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return a table of labels that also has the texts without words, at their positions."""
        if not self.empty_rows or self.all_names is None:
            return labels
        missing: dict[str, Any] = {"cluster": -1}
        columns = {name: iter(values) for name, values in labels.items()}
        empty = set(self.empty_rows)
        return {
            name: self.all_names
            if name == "row"
            else [missing.get(name) if i in empty else next(values) for i in range(len(self.all_names))]
            for name, values in columns.items()
        }

    def describe(self, model: MMPCA, read: ReadOptions) -> None:
        """Record the data in a fitted model, in place: feature annotations, the layer, and texts without words."""
        if self.table.feature_annotations:
            model.feature_annotations_ = self.table.feature_annotations
        model.__dict__.update({"_layer": read.layer} if read.layer else {})
        model.__dict__.update({"_empty_rows": self.empty_rows} if self.empty_rows else {})


def choose_words(model: MMPCA, row: str | None, feature: str | None, *, is_text: bool) -> Words:
    """Set a model's words for a row and a feature, in place, and return them; texts have default words."""
    from mmpca.model import results

    if is_text and results.words_of(model) == results.Words():
        model.rename(**results.TEXT_WORDS._asdict())
    model.rename(row=row, feature=feature)
    return results.words_of(model)


# --- counts and texts -------------------------------------------------------------------------------------------


def read_data(path: Path, read: ReadOptions, text: TextOptions) -> InputData:
    """Read counts, or texts whose words are counted."""
    if is_text(path, read):
        return _count_words(path, read, text)
    if path.exists():
        check_no_text_options(path, text._replace(min_rows=None))
    return InputData(_drop_rare_features(path, _read_table(path, read), text.min_rows or 1))


def _drop_rare_features(path: Path, table: CountTable, min_rows: int) -> CountTable:
    """Return a table without the features that occur in fewer rows than this, with a note."""
    import numpy as np

    if min_rows == 1:  # features that never occur are kept, so that columns can be matched by position
        return table
    kept = np.flatnonzero(np.bincount(table.X.indices, minlength=table.X.shape[1]) >= min_rows)
    if not kept.size:
        raise CountsError(f"{path}: no feature occurs in {min_rows:,} rows. Lower --min-rows.")
    if table.feature_names is None:
        raise CountsError(
            f"{path}: --min-rows needs feature names, which are used to match new rows. Add --feature-names."
        )
    annotations = {title: values[kept] for title, values in (table.feature_annotations or {}).items()}
    n_dropped = table.X.shape[1] - kept.size
    note = f"Dropped {counted(n_dropped, 'feature')} found in fewer than {min_rows:,} rows."
    return table._replace(
        X=table.X[:, kept],
        feature_names=table.feature_names[kept],
        feature_annotations=annotations or None,
        notes=[*table.notes, note],
    )


def read_for_model(path: Path, read: ReadOptions, file: ModelFile) -> InputData:
    """Read counts or texts, with the features of a model as columns, from the layer of its fit by default."""
    read = with_layer(path, read, file.model)
    if not is_text(path, read, is_text_model=file.text is not None):
        return InputData(_align(path, _read_table(path, read), file.model), file.text)
    if file.text is None:
        raise CountsError(
            f"{path}: expected counts, because the model was fitted to counts, but these are texts. Give counts, or "
            "fit a model to texts."
        )
    return InputData(_count_known_words(path, read, file), file.text)


def with_layer(path: Path, read: ReadOptions, model: MMPCA) -> ReadOptions:
    """Return the options with the layer that a model was fitted to, if the file can have layers."""
    from mmpca.io.streams import suffix

    is_layered = read.layer is None and (suffix(path) == ".h5ad" or read.format == "h5ad")
    return read._replace(layer=getattr(model, "_layer", None)) if is_layered else read


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
        label = "dropped rows get no label" if data.text is None else "their label is -1"
        data.table.notes.append(f"Left out {counted(n_empty, noun)} without {lack} ({which}); {label}.")
    return data.take(filled)._replace(all_names=data.row_names(), filled=filled) if n_empty else data


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
    """Read counts; if the file has a column of texts instead, the error suggests counting their words."""
    from mmpca.io import read_counts

    try:
        return read_counts(path, **_read_arguments(read))
    except InputFileError as error:
        if (column := _column_of_texts(path, read)) is None:
            raise
        shown = f"'{column}'" if " " in column else column
        text = f"{path}: the column {column!r} holds texts. To count their words, add --text-column {shown}."
        raise InputFileError(text, path=path) from error


def _column_of_texts(path: Path, read: ReadOptions) -> str | None:
    """Return the column of a table with the most words per value, if there are several words on average."""
    from mmpca.io import columns
    from mmpca.io.streams import suffix

    if suffix(path) not in TABLE_ENDINGS or read.format is not None:
        return None
    try:
        table = columns.read_columns(path, encoding=read.encoding, sheet=read.sheet, notes=[])
    except (ValueError, OSError, ImportError):
        return None
    n_words = {
        title: sum(len(value.split()) for value in values[:ROWS_READ] if isinstance(value, str))
        for title, values in zip(table.titles, table.values, strict=True)
    }
    best = max(n_words, key=lambda title: n_words[title], default=None)
    is_text = best is not None and n_words[best] >= LEAST_WORDS * min(len(table.numbers), ROWS_READ)
    return best if is_text else None


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

    min_rows = LEAST_TEXTS if text.min_rows is None else text.min_rows
    counter = CountTexts(
        min_df=min_rows,
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
                f"{path}: no words are left in {len(texts)} texts with --min-rows {min_rows}, --max-share "
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
    if n_unseen and not _is_input_of_fit(file.model, counts.X):  # there, words were left out on purpose
        notes.append(f"{n_unseen:,} of {n_unseen + n_known:,} words are unknown to the model and were skipped.")
    return CountTable(counts.X, names, words, notes)


def _is_input_of_fit(model: MMPCA, X: Any) -> bool:
    """Return True if counts are those that a model was fitted to."""
    from mmpca.counts import as_counts
    from mmpca.model.explanation import NOT_FITTED, fitted_labels

    labels = fitted_labels(model.units.convert(as_counts(X, empty_rows="allow")), model)
    return bool((labels != NOT_FITTED).any())


def _stop_words(given: list[str] | None) -> str | list[str] | None:
    """Return the words in files, the name of a language, or the words of several languages and files."""
    from mmpca.text import words_to_ignore

    found: list[str | list[str]] = []
    for name in (
        name.strip() for names in given or [] for name in ([names] if Path(names).exists() else names.split(","))
    ):
        if name != "english" and Path(name).exists():
            found.append(_read_words(Path(name)))
        elif name.isalpha():
            found.append(name)
        else:
            raise InputFileError(
                f"--stop-words {name}: expected a language or a file with one word per line, but there is no such "
                "file.",
                path=name,
            )
    if len(found) <= 1:
        return found[0] if found else None
    return sorted({word for one in found for word in words_to_ignore(one)})


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


def read_labels(
    path: Path,
    names: Sequence[str] | None,
    n_rows: int,
    column: str | None = None,
    *,
    option: str = LABEL_COLUMN,
    is_partial: bool = False,
) -> list[str]:
    """Read one label per row, from a table with a header, or from any other file with one per line.

    In a table, `column` has the labels; by default the first of `LABEL_COLUMNS`, or the only one apart from the names.
    If a column contains the names of the rows, labels are matched by name; records of other rows are ignored, with a
    note. If no column contains any of them, labels are matched by position, with a note if there is a column "row". It
    is an error if several columns fit, or if the best one has duplicates or only some of the names. With `is_partial`,
    rows that the table does not name have the label "".
    """
    from mmpca.io.streams import suffix

    if column is None and suffix(path) not in TABLE_ENDINGS:
        return check_length(path, _read_lines(path), n_rows)
    table = _read_table_of_values(path)
    named = None if names is None else _find_name_column(path, table, names, column, is_partial=is_partial)
    labels = table[_find_label_column(path, table, named, column, option)]
    if option == LABEL_COLUMN:  # other values of rows may be numbers
        _check_labels(path, table, labels)
    if named is None:
        if names is not None and (ROW_COLUMN in table or any(name != str(i) for i, name in enumerate(names))):
            text = f"{path}: no column contains the names of the rows, such as {names[0]!r}, so labels are matched by"
            console.notes([f"{text} position."])
        return check_length(path, labels, n_rows)
    assert names is not None
    rows = table[named]
    if rows == list(names):  # names may repeat
        return labels
    known = set(rows)
    _check_names(path, named, rows, [name for name in names if name in known] if is_partial else names)
    if n_others := len(known - set(names)):
        console.notes([f"{path}: ignored {counted(n_others, 'record')} of other rows."])
    by_name = dict(zip(rows, labels, strict=True))
    return [by_name.get(name, "") for name in names]


def read_known_labels(
    path: Path, names: Sequence[str] | None, n_rows: int, n_clusters: int, column: str | None
) -> list[Any]:
    """Read the known clusters of some rows: their numbers if all of them are numbers of clusters, else their names.

    Rows that the file does not name, blank labels and -1 are unknown.
    """
    labels = read_labels(path, names, n_rows, column, is_partial=True)
    given = [None if label.strip() in ("", "-1") else label.strip() for label in labels]
    known = {label for label in given if label is not None}
    if not known:
        raise InputFileError(f"{path}: no row has a known label. Labels other than -1 are known.", path=path)
    if all(label.isdecimal() and int(label) < n_clusters for label in known):
        return [None if label is None else int(label) for label in given]
    return given


def read_seed_topics(given: Sequence[str] | None) -> dict[str, list[str]] | None:
    """Return the words of seeded topics, from NAME=WORD,WORD or from JSON files that map names to lists of words."""
    from mmpca.io.streams import read_text

    found: dict[str, list[str]] = {}
    for text in given or []:
        path = Path(text)
        if path.suffix.lower() != ".json":
            name, is_pair, words = text.partition("=")
            if not (is_pair and name.strip() and words.strip()):
                message = (
                    f"--seed-topics expects a .json file or NAME=WORD,WORD, such as sport=match,coach, not {text!r}."
                )
                raise typer.BadParameter(console.literal(message))
            found[name.strip()] = [word.strip() for word in words.split(",") if word.strip()]
            continue
        try:
            content = json.loads(read_text(path))
        except ValueError as error:
            if isinstance(error, InputFileError):
                raise
            raise InputFileError(f"{path}: expected JSON ({error}). Correct the file.", path=path) from error
        is_mapping = isinstance(content, dict) and all(
            isinstance(words, list) and all(isinstance(word, str) for word in words) for words in content.values()
        )
        if not is_mapping:
            raise InputFileError(
                f'{path}: expected an object with a list of words for each topic, such as {{"sport": ["match"]}}.',
                path=path,
            )
        found |= content
    return found or None


def _find_name_column(
    path: Path, table: Mapping[str, list[str]], names: Sequence[str], column: str | None, *, is_partial: bool = False
) -> str | None:
    """Return the column with the names of the rows, None if no column has any; raise an error if several fit."""
    wanted = set(names)
    if is_partial:  # only the rows that the table could name
        n_records = len(next(iter(table.values())))
        wanted = wanted if n_records >= len(wanted) else {name for values in table.values() for name in values} & wanted
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


def _find_label_column(
    path: Path, table: Mapping[str, list[str]], named: str | None, column: str | None, option: str
) -> str:
    """Return the column with the labels; raise an error if it is not there, or if there are several candidates."""
    others = [title for title in table if title not in (named, ROW_COLUMN)]
    shown = f"The columns are {', '.join(map(repr, table))}"
    what = "labels" if option == LABEL_COLUMN else "values"
    if column is not None:
        if column not in table:
            raise InputFileError(f"{path}: there is no column {column!r}. {shown}.", path=path)
        return column
    known = next((title for title in LABEL_COLUMNS if title in others), None)
    if known is None and len(others) != 1:
        raise InputFileError(f"{path}: expected one column of {what}. {shown}: choose one with {option}.", path=path)
    return known or others[0]


def _check_names(path: Path, title: str, rows: Sequence[str], names: Sequence[str]) -> None:
    """Raise an error unless both lists have the names of the data, each once."""
    in_table, in_data = Counter(rows), Counter(names)
    missing = [name for name in names if not in_table[name]]
    if missing:
        raise InputFileError(
            f"{path}: labels cannot be matched to rows, because {len(missing):,} of {len(names):,} rows are not in the "
            f"column {title!r}, the first of them {missing[0]!r}. Add them, with a label such as unknown, "
            "or leave them out of the data.",
            path=path,
        )
    for name in names:
        if in_table[name] != 1 or in_data[name] != 1:
            raise InputFileError(
                f"{path}: labels cannot be matched to rows, because {name!r} occurs {in_table[name]} times in the "
                f"column {title!r} and {in_data[name]} times in the data. List each row exactly once.",
                path=path,
            )


def _check_labels(path: Path, table: Mapping[str, list[str]], labels: list[str]) -> None:
    """Print a note if the labels look like a measurement."""
    different = set(labels) - {""}
    if len(different) > MANY_LABELS and all(_is_number(label) for label in different):
        title = next(title for title, values in table.items() if values is labels)
        others = ", ".join(repr(other) for other in table if other != title)
        text = f"{path}: the column {title!r} has {len(different):,} different numbers, which do not look like labels."
        console.notes([f"{text} The other columns are {others}; choose one with {LABEL_COLUMN}."])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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

    if read.text and (missing := [path for path in paths if not path.exists()]):
        raise CountsError(
            f"{missing[0]}: no such file. --text takes no value; if this is the column of texts, write --text-column "
            f"{missing[0]}."
        )
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
