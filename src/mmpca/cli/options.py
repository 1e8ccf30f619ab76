"""Options that several commands share, and what they must be. Nothing heavy is imported here: help must be quick."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

LARGEST_SEED = 2**32 - 1
TABLE_ENDINGS = (".csv", ".tsv", ".json", ".parquet")
USUAL_CLUSTERS, USUAL_TOPICS = 8, 5  # at the most, where nothing is said
LONGEST_NUMBER = 9  # digits of a number of clusters or topics
COUNT_ENDINGS = (".mtx", ".mtx.gz", ".npz")

_INPUT, _TEXT, _OUTPUT = "How the input is read", "How texts are counted", "What comes out"


class Format(StrEnum):
    """Formats of counts."""

    mtx = "mtx"
    npz = "npz"
    table = "table"
    triples = "triples"
    parquet = "parquet"
    uci = "uci"
    h5ad = "h5ad"
    biom = "biom"


class InputOptions(NamedTuple):
    """How to read an input."""

    format: str | None = None
    row_names: Path | None = None
    feature_names: Path | None = None
    transpose: bool | None = None
    layer: str | None = None
    text: bool = False
    text_column: str | None = None


class TextOptions(NamedTuple):
    """How to count words."""

    min_rows: int = 1
    max_share: float = 1.0
    stop_words: str | None = None
    ngrams: int = 1
    words: Path | None = None


def usual_sizes(n_clusters: int | None, n_topics: int | None, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the numbers of clusters and topics: those asked for, or the usual ones as far as the data go."""
    n_rows, n_features = shape
    return n_clusters or min(USUAL_CLUSTERS, n_rows), n_topics or min(USUAL_TOPICS, n_features)


def check_jobs(value: int) -> int:
    """Refuse a number of threads that means nothing."""
    if value == 0:
        raise typer.BadParameter("0 threads do nothing; give 1 or more, or -1 for all cores.")
    return value


def whole(value: str) -> int:
    """Return a number of clusters or topics; refuse what is none, such as a range."""
    text = str(value).strip()  # defaults come as numbers
    if not (text.isdecimal() and len(text) <= LONGEST_NUMBER and int(text) >= 1):
        raise typer.BadParameter(
            f"{value!r} is no whole number of at least 1. To try several, as in 2-8, there is mmpca select."
        )
    return int(text)


def grid(value: str) -> tuple[int, ...]:
    """Return the numbers of "2-8" or "2,4,8"; refuse what is neither."""
    found: list[int] = []
    for part in value.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise typer.BadParameter(f"{value!r} is neither a range such as 2-8 nor a list such as 2,4,8.")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def numbers(value: str) -> tuple[float, ...]:
    """Return the numbers of "0,0.2,0.4"; refuse what is no list of numbers from 0 to 1."""
    try:
        found = tuple(dict.fromkeys(float(part) for part in value.split(",")))
    except ValueError:
        found = ()
    if not found or not all(0 <= number <= 1 for number in found):
        raise typer.BadParameter(f"{value!r} is no list of numbers from 0 to 1 such as 0,0.2,0.4.")
    return found


def check_starts(value: str) -> str:
    """Refuse a number of starts that is neither auto nor a positive whole number."""
    if value != "auto" and not (value.isdecimal() and int(value) >= 1):
        raise typer.BadParameter(f"{value} is neither auto nor a whole number of at least 1.")
    return value


def _check_folder(path: Path) -> None:
    # Better now than after an hour's fit.
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {path.absolute().parent} does not exist. Make it first.")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give the name of a file.")


def check_table(path: Path | None) -> Path | None:
    """Refuse a table to write whose ending or folder is not possible."""
    if path is not None:
        if path.suffix not in TABLE_ENDINGS:
            raise typer.BadParameter(f"{path.name} must end in one of {', '.join(TABLE_ENDINGS)}.")
        _check_folder(path)
    return path


def check_counts(path: Path | None) -> Path | None:
    """Refuse counts to write whose ending or folder is not possible."""
    if path is not None:
        if not path.name.endswith(COUNT_ENDINGS):
            raise typer.BadParameter(f"{path.name} must end in one of {', '.join(COUNT_ENDINGS)}.")
        _check_folder(path)
    return path


def check_new_model(path: Path | None) -> Path | None:
    """Refuse a model file to write whose folder does not exist."""
    if path is not None:
        _check_folder(path)
    return path


Input = Annotated[
    Path,
    typer.Argument(
        help="Counts (.mtx, .npz, .csv, .tsv, .parquet, .h5ad, .biom, UCI; .gz) or texts (a folder, or see --text).",
        show_default=False,
    ),
]
Inputs = Annotated[
    list[Path],
    typer.Argument(
        help="Counts (.mtx, .npz, .csv, .tsv, .parquet, .h5ad, .biom, UCI; .gz) or texts (a folder, or see --text). "
        "Several files of counts are taken for the rows of one matrix.",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="Work on the Dask cluster of this scheduler; its workers read the files.",
        rich_help_panel="Where it runs",
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file that mmpca fit wrote.", show_default=False)]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format of counts; found out by default.", rich_help_panel=_INPUT)
]
RowNames = Annotated[
    Path | None, typer.Option("--row-names", help="File with a name on each line.", rich_help_panel=_INPUT)
]
FeatureNames = Annotated[
    Path | None, typer.Option("--feature-names", help="File with a name on each line.", rich_help_panel=_INPUT)
]
Transpose = Annotated[
    bool | None,
    typer.Option("--transpose/--no-transpose", help="The file has features as rows.", rich_help_panel=_INPUT),
]
Layer = Annotated[str | None, typer.Option("--layer", help="Layer of an .h5ad file.", rich_help_panel=_INPUT)]
Text = Annotated[
    bool,
    typer.Option(
        "--text", help="The file holds raw texts, one on each line; folders always do.", rich_help_panel=_INPUT
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option("--text-column", help="Column of a .csv or .jsonl file that holds texts.", rich_help_panel=_INPUT),
]
MinRows = Annotated[
    int, typer.Option("--min-rows", min=1, help="Drop words in fewer texts than this.", rich_help_panel=_TEXT)
]
MaxShare = Annotated[
    float,
    typer.Option("--max-share", min=0.0, max=1.0, help="Drop words in a larger share of texts.", rich_help_panel=_TEXT),
]
StopWords = Annotated[
    str | None,
    typer.Option("--stop-words", help="english, or a file with a word on each line.", rich_help_panel=_TEXT),
]
Ngrams = Annotated[
    int, typer.Option("--ngrams", min=1, max=5, help="Up to so many words in a row.", rich_help_panel=_TEXT)
]
Words = Annotated[
    Path | None, typer.Option("--words", help="Count only the words of this file.", rich_help_panel=_TEXT)
]
Clusters = Annotated[int, typer.Option("--clusters", "-q", parser=whole, metavar="N", help="Number of clusters.")]
Topics = Annotated[
    int, typer.Option("--topics", "-k", parser=whole, metavar="N", help="Number of topics that they share.")
]
ClustersOrFew = Annotated[
    int | None,
    typer.Option(
        "--clusters",
        "-q",
        parser=whole,
        metavar="N",
        help="Number of clusters.",
        show_default=f"{USUAL_CLUSTERS}, or as many as rows",
    ),
]
TopicsOrFew = Annotated[
    int | None,
    typer.Option(
        "--topics",
        "-k",
        parser=whole,
        metavar="N",
        help="Number of topics that they share.",
        show_default=f"{USUAL_TOPICS}, or as many as features",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Same seed, same result.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Threads; -1 for all cores.", callback=check_jobs)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.", rich_help_panel=_OUTPUT)]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        "-o",
        help="Table of rows and clusters: .csv, .tsv, .json, .parquet.",
        callback=check_table,
        rich_help_panel=_OUTPUT,
    ),
]
