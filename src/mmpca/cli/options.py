"""Options that several commands share, and the checks of their values.

Options that belong together form a bundle, a named tuple; `app.expand_bundles` turns each field into an option.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args
from zipfile import BadZipFile, ZipFile

import typer

from mmpca.cli.console import literal

LARGEST_SEED = 2**32 - 1
MAX_DIGITS = 9  # of a number of clusters or topics
MAX_NUMBERS = 10_000  # in a range of them
DEFAULT_CLUSTERS, DEFAULT_TOPICS = 8, 5  # for data with at least as many rows and features

CountFormat = StrEnum(
    "CountFormat", ["mtx", "npz", "table", "triples", "parquet", "xlsx", "uci", "h5ad", "biom", "10x"]
)
TextUnit = StrEnum("TextUnit", ["line", "paragraph", "file"])
StartMethod = StrEnum("StartMethod", ["auto", "random", "kmeans", "anneal", "mixture"])
Algorithm = StrEnum("Algorithm", ["greedy", "exact", "cvem", "vbem"])
Stabilization = StrEnum("Stabilization", ["none", "sqrt"])
Dispersion = StrEnum("Dispersion", ["multinomial", "shares", "polya", "auto"])
SelectionCriterion = StrEnum("SelectionCriterion", ["shares", "predictive", "icl"])
ExperimentName = StrEnum(
    "ExperimentName", {"design": "design", "intro": "intro", "noise": "noise", "selection": "selection",
                       "sample_size": "sample-size", "runtime": "runtime", "reports": "reports"},
)  # fmt: skip


# --- checks -----------------------------------------------------------------------------------------------------


def default_sizes(n_clusters: int | None, n_topics: int | None, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the numbers of clusters and topics, with defaults that fit the shape of the data."""
    n_rows, n_features = shape
    return n_clusters or min(DEFAULT_CLUSTERS, n_rows), n_topics or min(DEFAULT_TOPICS, n_features)


def check_jobs(value: int) -> int:
    """Return a number of threads or processes, which must not be 0."""
    if value == 0:
        raise typer.BadParameter("must not be 0. Give 1 or more, or -1 for all cores.")
    return value


def positive_integer(value: str) -> int:
    """Parse a number of clusters or topics."""
    text = str(value).strip()
    if not (text.isdecimal() and len(text) <= MAX_DIGITS and int(text) >= 1):
        raise typer.BadParameter(f"{value!r} is not a positive integer. To try several, as in 2-8, use mmpca select.")
    return int(text)


def integer_list(value: str) -> tuple[int, ...]:
    """Parse "2-8" or "2,4,8"."""
    numbers: list[int] = []
    for part in value.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(text.isdecimal() and len(text) <= MAX_DIGITS for text in ends) or int(ends[1]) < int(ends[0]):
            raise typer.BadParameter(f"{value!r} is neither a range such as 2-8 nor a list such as 2,4,8.")
        if int(ends[1]) - int(ends[0]) >= MAX_NUMBERS:
            raise typer.BadParameter(f"{value!r} is a range of more than {MAX_NUMBERS:,} numbers.")
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(numbers)


def share_list(value: str) -> tuple[float, ...]:
    """Parse "0,0.2,0.4": numbers from 0 to 1."""
    try:
        numbers = tuple(dict.fromkeys(float(part) for part in value.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 <= number <= 1 for number in numbers):
        raise typer.BadParameter(f"{value!r} is not a list of numbers from 0 to 1, such as 0,0.2,0.4.")
    return numbers


def name_list(value: str) -> tuple[str, ...]:
    """Parse "mmpca,nmf-em"."""
    return tuple(dict.fromkeys(part.strip() for part in value.split(",")))


def number_of_starts(value: str) -> int | str:
    """Parse "auto" or a positive integer."""
    if value != "auto" and not (value.isdecimal() and int(value) >= 1):
        raise typer.BadParameter(f"{value!r} is neither auto nor a positive integer.")
    return value if value == "auto" else int(value)


def output_file(
    *endings: str, is_own: Callable[[Path], bool] | None = None, remedy: str = ""
) -> Callable[[Path | None], Path | None]:
    """Return a check that a file to write has one of the endings and an existing folder: a fit may take hours.

    With `is_own`, an existing file is overwritten only if this recognizes it as an earlier result.
    """

    def check(path: Path | None) -> Path | None:
        """Return the path, or raise BadParameter."""
        from mmpca.store import check_writable

        if path is None:
            return None
        if endings and not path.name.endswith(endings):
            raise typer.BadParameter(literal(f"{path.name} must end in one of {', '.join(endings)}."))
        try:
            check_writable(path)
        except OSError as error:
            raise typer.BadParameter(literal(f"cannot write {error.filename}: {error.strerror}.")) from None
        if is_own is not None and path.is_file() and path.stat().st_size and not is_own(path):
            message = f"{path} exists, and mmpca did not write it. Choose another file, or delete it first. {remedy}"
            raise typer.BadParameter(literal(message.strip()))
        return path

    _OUTPUT_CHECKS.add(check)
    return check


def _is_table_with(*titles: str) -> Callable[[Path], bool]:
    """Return a function that recognizes a table of labels by its columns."""

    def is_own(path: Path) -> bool:
        """Return True if a table has the columns, or an .h5ad file has labels of mmpca."""
        from mmpca.io.columns import read_columns

        if path.suffix == ".h5ad":
            import h5py

            try:
                with h5py.File(path) as file:
                    return "mmpca" in file["obs"]
            except (OSError, KeyError):
                return False
        try:
            return set(titles) <= set(read_columns(path).titles)
        except (ValueError, OSError, ImportError):
            return False

    return is_own


def _is_model(path: Path) -> bool:
    """Return True if a file is an archive like that of a model."""
    from mmpca.model.files import MANIFEST

    try:
        with ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (BadZipFile, OSError):
        return False


_OUTPUT_CHECKS: set[object] = set()  # by which `files_of` recognizes outputs


def files_of(annotations: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[list[Path], dict[str, Path]]:
    """Return the files that a command reads, and the files that it writes, by option.

    A parameter is a file to write if `output_file` checks it, and a file to read otherwise.
    """
    from mmpca.io.streams import stem
    from mmpca.io.table import Request, find_names

    inputs: list[Path] = []
    outputs: dict[str, Path] = {}
    for name, annotation in annotations.items():
        value, (_, info) = values[name], get_args(annotation)
        paths = [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, Path)]
        if info.callback not in _OUTPUT_CHECKS:
            inputs += paths
        elif paths:
            path = paths[0]
            outputs[name if isinstance(info, typer.models.ArgumentInfo) else f"--{name}"] = path
            if path.name.endswith((".mtx", ".mtx.gz")):  # names are written beside the counts
                outputs |= {f"the {word} of {path}": path.with_name(f"{stem(path)}.{word}.txt") for word in _NAMES}
    for path in list(inputs):
        if ".mtx" in path.suffixes or path.name.startswith("docword") or values.get("format") in ("mtx", "uci"):
            beside = find_names(Request(path, transpose=False), (0, 0))[:2]
            inputs += [Path(file) for file in beside if isinstance(file, Path)]
    inputs += [Path(word) for name in ("stop_words", "seed_topics") for word in values.get(name) or []]
    return inputs, outputs


_NAMES = ("rows", "columns")


def check_outputs(inputs: Sequence[Path], outputs: Mapping[str, Path]) -> None:
    """Raise an error if an output would overwrite an input, another output, or the redirected standard output.

    Pipes and devices are written into, so several options may share one.
    """
    taken = [("an input", path) for path in inputs]
    taken += [("where standard output goes", Path(f"/dev/fd/{number}")) for number in (1, 2)]
    for name, path in outputs.items():
        for role, other in taken:
            if _is_same_file(path, other) or _is_text_in(path, other):
                message = f"{name} would overwrite {path}, which is {role}. Choose another file."
                raise typer.BadParameter(literal(message))
        taken.append((f"also written by {name}", path))


def _is_same_file(path: Path, other: Path) -> bool:
    """Return True if two paths lead to one regular file, or to one that does not exist yet."""
    if path.exists() and not path.is_file():
        return False
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def _is_text_in(path: Path, folder: Path) -> bool:
    """Return True if a file would be one of the texts in a folder."""
    is_text = any(suffix == ".txt" for suffix in path.suffixes[-2:])
    return is_text and folder.is_dir() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


# --- kinds of options -------------------------------------------------------------------------------------------

input_option = partial(typer.Option, rich_help_panel="Input")
text_option = partial(typer.Option, rich_help_panel="Word counts")
page_option = partial(typer.Option, rich_help_panel="Contents")
output_option = partial(typer.Option, rich_help_panel="Output")
execution_option = partial(typer.Option, rich_help_panel="Execution")
number_option = partial(typer.Option, parser=positive_integer, metavar="N")
list_option = partial(typer.Option, metavar="LIST")
table_option = partial(output_option, callback=output_file(".csv", ".tsv", ".json", ".parquet"))
file_option = partial(output_option, callback=output_file())


# --- shared options ---------------------------------------------------------------------------------------------

_KINDS = (
    "Counts (.mtx, .npz, .csv, .tsv, .xlsx, .parquet, .h5ad, .biom, 10x, UCI; also .gz) or texts (a folder, or see "
    "--text)."
)
TABLES = ".csv, .tsv, .json or .parquet."
Input = Annotated[Path, typer.Argument(help=_KINDS, show_default=False)]
Inputs = Annotated[
    list[Path],
    typer.Argument(help=f"{_KINDS} Several files of counts are the rows of one matrix.", show_default=False),
]
Model = Annotated[Path, typer.Argument(help="Model file written by mmpca fit or select.", show_default=False)]
CountsOutput = Annotated[
    Path,
    typer.Argument(
        help="File to write: .mtx, .mtx.gz or .npz.",
        callback=output_file(".mtx", ".mtx.gz", ".npz"),
        show_default=False,
    ),
]
LabelsOutput = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        "-o",
        help=f"Write the cluster of each row to this table: {TABLES} For .h5ad inputs, also .h5ad, as a labeled copy.",
        callback=output_file(
            ".csv",
            ".tsv",
            ".json",
            ".parquet",
            ".h5ad",
            is_own=_is_table_with("row", "cluster", "cluster_name"),
            remedy="Here, --labels writes labels; fit reads known ones with --known-labels.",
        ),
        rich_help_panel="Output",
    ),
]
TruthOutput = Annotated[
    Path | None,
    table_option(
        "--labels",
        "-o",
        help=f"Write the true cluster of each row to this table: {TABLES}",
        callback=output_file(".csv", ".tsv", ".json", ".parquet", is_own=_is_table_with("row", "cluster")),
    ),
]
TableOutput = Annotated[Path | None, table_option("--output", "-o", help=f"Write the results to this table: {TABLES}")]
SafeCsv = Annotated[
    bool,
    output_option("--safe-csv", help="In .csv and .tsv, put an apostrophe before names that look like formulas."),
]
Json = Annotated[bool, output_option("--json", help="Print JSON.")]
Scheduler = Annotated[
    str | None,
    execution_option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="Run on the Dask cluster of this scheduler; its workers read the files.",
    ),
]
Clusters = Annotated[int, number_option("--clusters", "-q", help="Number of clusters.")]
Topics = Annotated[int, number_option("--topics", "-k", help="Number of topics shared by the clusters.")]
OptionalClusters = Annotated[
    int | None,
    number_option(
        "--clusters", "-q", help="Number of clusters.", show_default=f"{DEFAULT_CLUSTERS}, or fewer for fewer rows"
    ),
]
OptionalTopics = Annotated[
    int | None,
    number_option(
        "--topics",
        "-k",
        help="Number of topics shared by the clusters.",
        show_default=f"{DEFAULT_TOPICS}, or fewer for fewer features",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Random seed; the same seed gives the same result.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", help="Number of threads or processes; -1 for all cores.", callback=check_jobs)
]
DropEmpty = Annotated[
    bool, typer.Option("--drop-empty", help="Drop rows without counts; texts without words are always dropped.")
]
KnownLabels = Annotated[
    Path | None,
    page_option(
        "--labels",
        "--metadata",
        help="Known labels: a table with columns for row names and labels, or a file with one label per line.",
    ),
]
FixedLabels = Annotated[
    Path | None,
    typer.Option(
        "--known-labels",
        help="Known clusters of some rows, which never move: a table with columns for row names and labels, or a file "
        "with one label per line. Blank labels and -1 are unknown.",
        rich_help_panel="What you know",
    ),
]
SeedTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--seed-topics",
        metavar="NAME=WORD,...",
        help="Features that should make up a topic, such as sport=match,coach; can be repeated. Or a .json file that "
        "maps names to lists of features.",
        rich_help_panel="What you know",
    ),
]
LabelColumn = Annotated[
    str | None, page_option("--label-column", help="Column with the labels, if the table has several columns.")
]
Noise = Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of counts with a topic drawn uniformly.")]
Balance = Annotated[float, typer.Option(min=0.01, max=1.0, help="Ratio of successive cluster sizes; 1 for equal ones.")]


# --- bundles ----------------------------------------------------------------------------------------------------


class ReadOptions(NamedTuple):
    """How to read an input."""

    format: Annotated[CountFormat | None, input_option("--format", help="Format; detected by default.")] = None
    row_names: Annotated[Path | None, input_option("--row-names", help="File with one name per line.")] = None
    feature_names: Annotated[Path | None, input_option("--feature-names", help="File with one name per line.")] = None
    transpose: Annotated[
        bool | None, input_option("--transpose/--no-transpose", help="The file has features as rows.")
    ] = None
    layer: Annotated[str | None, input_option("--layer", help="Layer of an .h5ad file.")] = None
    encoding: Annotated[
        str | None, input_option("--encoding", help="Encoding of text files, such as cp1252; detected by default.")
    ] = None
    sheet: Annotated[str | None, input_option("--sheet", help="Sheet of an .xlsx file; the first by default.")] = None
    text: Annotated[bool, input_option("--text", help="Read the file as texts, one per line; see --per.")] = False
    per: Annotated[TextUnit | None, input_option("--per", help="Unit that is one text in a plain-text file.")] = None
    text_column: Annotated[
        str | None,
        input_option("--text-column", help="Column with the texts in a .csv, .xlsx, .parquet, .json or .jsonl file."),
    ] = None
    id_column: Annotated[
        str | None, input_option("--id-column", help="Column with the names of the texts; by default id, name or key.")
    ] = None
    glob: Annotated[
        str | None, input_option("--glob", help="Files in a folder to read as texts, such as '*.html'.")
    ] = None


class TextOptions(NamedTuple):
    """How to count the words of texts."""

    min_rows: Annotated[
        int | None,
        text_option(
            "--min-rows",
            min=1,
            help="Drop words or other features that occur in fewer rows than this.",
            show_default="2 for texts, otherwise 1",
        ),
    ] = None
    max_share: Annotated[
        float,
        text_option(
            "--max-share", min=0.0, max=1.0, help="Drop words that occur in a larger share of texts than this."
        ),
    ] = 1.0
    stop_words: Annotated[
        list[str] | None,
        text_option(
            "--stop-words",
            help="A language such as english or german, or a file with one word per line; can be repeated.",
        ),
    ] = None
    ngrams: Annotated[int, text_option("--ngrams", min=1, max=5, help="Also count sequences of up to N words.")] = 1
    words: Annotated[Path | None, text_option("--words", help="Count only the words in this file.")] = None


RowWord = Annotated[
    str | None,
    output_option("--row-word", help="Word for a row, such as article, site or cell.", show_default="row, or text"),
]
FeatureWord = Annotated[
    str | None,
    output_option(
        "--feature-word", help="Word for a feature, such as word, species or gene.", show_default="feature, or word"
    ),
]


class ResultOptions(NamedTuple):
    """Files for a fitted model and its labels."""

    model: Annotated[
        Path | None,
        output_option(
            "--model",
            "-m",
            help="Write the model to this file, usually .mmpca.",
            callback=output_file(is_own=_is_model),
        ),
    ] = None
    labels: LabelsOutput = None
    safe_csv: SafeCsv = False
    json: Json = False
    row_word: RowWord = None
    feature_word: FeatureWord = None


class FitOptions(NamedTuple):
    """How to fit."""

    seed: Seed = 0
    jobs: Jobs = -1
    dispersion: Annotated[
        Dispersion,
        typer.Option("--dispersion", help="How counts vary within clusters; polya for abundances and reads."),
    ] = Dispersion.auto
    stabilize: Annotated[Stabilization, typer.Option("--stabilize", help="Fit square roots of the counts.")] = (
        Stabilization.none
    )
    drop_empty: DropEmpty = False

    def parameters(self) -> dict[str, Any]:
        """Return the options that are parameters of `MMPCA` and `MMPCASearch`."""
        stabilize = None if self.stabilize is Stabilization.none else self.stabilize.value
        dispersion = {"dispersion": self.dispersion.value, "stabilize": stabilize}
        return {**dispersion, "n_jobs": self.jobs, "random_state": self.seed}


class PageOptions(NamedTuple):
    """Contents of a page about a model."""

    data: Annotated[Path | None, page_option("--data", help="The input of the fit, or new rows.")] = None
    labels: KnownLabels = None
    label_column: LabelColumn = None
    texts: Annotated[Path | None, page_option("--texts", help="Texts of the rows: a folder or file, see --text.")] = (
        None
    )
    results: Annotated[Path | None, page_option("--results", help="Table of mmpca select --results, as .csv.")] = None
    title: Annotated[str | None, page_option("--title", help="Heading of the page.")] = None
    row_word: RowWord = None
    feature_word: FeatureWord = None
    refits: Annotated[
        int,
        page_option(
            "--refits",
            min=0,
            help="Refit to this many random subsets of rows; save in the model file which clusters are found again.",
        ),
    ] = 0
    text_size: Annotated[
        float,
        page_option(
            "--text-size",
            min=0,
            metavar="MB",
            help="Maximum size of all texts in a page; explore always shows whole texts.",
        ),
    ] = 2.0


BUNDLES = (ReadOptions, TextOptions, ResultOptions, FitOptions, PageOptions)
