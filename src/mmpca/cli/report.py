"""``mmpca report`` and ``mmpca explore``: a page about a model, as a file or on this machine."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmpca.cli import console, options
from mmpca.cli.inputs import (
    check_length,
    choose_words,
    counted,
    is_text,
    read_columns,
    read_for_model,
    read_labels,
    text_arguments,
)
from mmpca.cli.options import PageOptions, ReadOptions
from mmpca.errors import InputFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mmpca.model import ModelFile

# Columns of any criterion.
RESULT_COLUMNS = (
    "n_clusters", "n_topics", "shares", "shares_error", "chosen", "n_stable", "n_resamples", "predictive",
    "predictive_error", "icl", "wins",
)  # fmt: skip


def report(
    model: options.Model,
    output: Annotated[Path, options.file_option("--output", "-o", help="HTML file to write.")] = Path("report.html"),
    page: PageOptions = PageOptions(),
    read: ReadOptions = ReadOptions(),
) -> None:
    """Write one HTML page about a model, to read and to share: clusters, topics, rows, and the search.

    The page needs no network and no other files. Labels and texts are in the order of the rows.
    Labels in a table with a column "row" are matched by name instead; it must name every row once.

    For example:

      mmpca report counts.mmpca --data counts.mtx --labels truth.csv -o counts.html

      mmpca report reports.mmpca --data reports/ --title "Pathology reports of 2019"
    """
    from mmpca.report import write_report

    file, contents = read_contents(model, page, read)
    path = write_report(file.model, output, title=page.title, text_size=round(1e6 * page.text_size), **contents)
    console.line(f"{path.stat().st_size / 1000:,.0f} kB written to {path}")


def explore(
    model: options.Model,
    page: PageOptions = PageOptions(),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 chooses a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the browser.")] = False,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Browse and edit a model: the page of mmpca report with all rows and their whole texts.

    You can rename, merge and split clusters, mark them as noise, move rows, and run the search again from there;
    changes are saved in the model file. The page is served to this machine only, at an address with a secret token,
    until Ctrl-C.

    For example:

      mmpca explore counts.mmpca --data counts.mtx --browser
    """
    from mmpca.report import Explorer

    file, contents = read_contents(model, page, read)
    with Explorer(
        file.model, title=page.title, port=port, save=lambda edited: edited.save(model, text=file.text), **contents
    ) as explorer:
        console.line(explorer.url)
        console.notes(["This address is private to you and works until Ctrl-C."])
        with _browser(explorer.url) if browser else nullcontext():
            try:
                explorer.serve()
            except KeyboardInterrupt:
                console.notes(["Stopped."])


@contextmanager
def _browser(url: str) -> Iterator[None]:
    """Open a URL in the browser through a temporary file that redirects to it.

    The URL holds a secret, and the arguments of the browser's process are visible to every user of the machine.
    """
    descriptor, name = tempfile.mkstemp(prefix="mmpca-", suffix=".html")  # mode 0600
    path, target = Path(name), html.escape(url)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html><html lang="en"><meta charset="utf-8"><title>mmpca explore</title>'
                f'<meta http-equiv="refresh" content="0; url={target}"><p><a href="{target}">Open</a></p></html>\n'
            )
        webbrowser.open(path.as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)


def read_contents(model: Path, page: PageOptions, read: ReadOptions) -> tuple[ModelFile, dict[str, Any]]:
    """Return a model file and the contents of its page: X, labels, texts, row_names and search."""
    import numpy as np

    from mmpca.model import read_model

    file = read_model(model)
    choose_words(file.model, page.row_word, page.feature_word, is_text=file.text is not None)
    data = None if page.data is None else read_for_model(page.data, read, file)
    names = None if data is None else data.row_names()
    n_rows = len(file.model.labels_) if names is None else len(names)
    labels = None if page.labels is None else read_labels(page.labels, names, n_rows, page.label_column)
    texts = _read_texts(page, read, file, n_rows)
    X, shown_names = None, None
    if data is not None:
        n_entries = np.diff(data.X.indptr)
        rows = np.flatnonzero(n_entries) if n_entries.any() else np.arange(n_rows)
        if rows.size < n_rows:  # a fit with --drop-empty leaves them out too
            console.notes([f"{counted(n_rows - rows.size, 'row')} without counts of known features dropped."])
            data = data.take(rows)
            labels, texts = (None if values is None else [values[i] for i in rows] for values in (labels, texts))
        console.notes(data.table.notes)
        X, shown_names = data.X, None if data.table.row_names is None else data.row_names()
    if page.refits:
        if X is None:
            raise typer.BadParameter("--refits needs the input of the fit: add --data.")
        _keep_refits(file, model, X, page.refits)
    search = None if page.results is None else read_results(page.results)
    return file, {"X": X, "labels": labels, "texts": texts, "row_names": shown_names, "search": search}


def _keep_refits(file: ModelFile, path: Path, X: Any, n_refits: int) -> None:
    """Refit the model to subsets of the rows, and save in its file how well the same clusters are found again."""
    from mmpca.evaluation import stability

    with console.ignored_name_warnings():
        found = stability(file.model, X, n_refits=n_refits, n_jobs=-1, random_state=0)
    file.model.keep_stability(found).save(path, text=file.text)
    console.notes([f"The result of {counted(n_refits, 'refit')} is saved in {path}."])


def read_results(path: Path) -> dict[str, NDArray[Any]]:
    """Return the numbers of clusters and topics that were tried, and their criteria."""
    import numpy as np

    table = read_columns(path)
    for name in ("n_clusters", "n_topics"):
        if name not in table:
            raise InputFileError(
                f"{path}: expected a column {name!r}. Give the table written by mmpca select --results.", path=path
            )
    try:
        columns = {name: np.array(table[name], dtype=np.float64) for name in RESULT_COLUMNS if name in table}
    except ValueError as error:
        raise InputFileError(f"{path}: expected columns of numbers ({error}).", path=path) from error
    return columns | {name: columns[name].astype(np.int64) for name in ("n_clusters", "n_topics")}


def _read_texts(page: PageOptions, read: ReadOptions, file: ModelFile, n_rows: int) -> list[str] | None:
    """Return the texts to show: those given, or those that were counted."""
    from mmpca.text import read_texts

    if page.texts is not None:
        return check_length(page.texts, read_texts(page.texts, encoding=read.encoding).texts, n_rows)
    if page.data is not None and is_text(page.data, read, is_text_model=file.text is not None):
        return read_texts(page.data, **text_arguments(read)).texts
    return None
