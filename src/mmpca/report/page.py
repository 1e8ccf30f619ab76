"""The page: one HTML file about a fitted model."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mmpca.model import MMPCA
from mmpca.report import formatting
from mmpca.report.contents import report_contents
from mmpca.report.context import TEXT_SIZE, check_context, measure_margins
from mmpca.selection import MMPCASearch
from mmpca.store import write_text

if TYPE_CHECKING:
    from jinja2 import Environment

FRAME_HEIGHT = 700  # of the page in a notebook, in pixels
FILTERS = ("count", "decimals", "isolated", "number", "percent", "shade", "whole_percent")


def write_report(
    model: MMPCA,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    labels: Sequence[object] | None = None,
    texts: Sequence[object] | None = None,
    row_names: Sequence[object] | None = None,
    search: MMPCASearch | Mapping[str, ArrayLike] | None = None,
    title: str | None = None,
    row_word: str | None = None,
    feature_word: str | None = None,
    text_size: int = TEXT_SIZE,
) -> Path:
    """Write a self-contained HTML page about a fitted model.

    The page needs no network and no other files. Its map and search box cover about 20,000 evenly spaced rows, each of
    which opens with its text and the evidence for its cluster; if there are more rows, the page says so. Names and
    texts from the data are escaped, and shortened if they are long.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    path : path
        File to write, usually ending in ``.html``. An existing file is replaced atomically.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), optional
        Rows to show: the fitted ones, or new ones, whose clusters are then predicted.
    labels : sequence of length n_samples, optional
        Known class of each row, for a table of classes against clusters.
    texts : sequence of str, length n_samples, optional
        Text to show with each row.
    row_names : sequence of str, length n_samples, optional
        Names of the rows; by default their indices.
    search : MMPCASearch or mapping, optional
        The fitted search that chose the numbers of clusters and topics, or its `results_`. By default the record of
        the search that found the model, if there was one.
    title : str, optional
        Heading of the page.
    row_word, feature_word : str, optional
        Words for a row and a feature, in the singular, such as "article" and "word", or "site" and "species". By
        default as :meth:`mmpca.MMPCA.rename` says; or "text" and "word" if there are texts.
    text_size : int, default=2_000_000
        Maximum size of all texts in the page, in bytes. If they are larger, long texts are shortened to an equal
        length, and the page says so; 0 leaves them out, except for the beginnings of the rows listed as typical or
        borderline.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ImportError
        Jinja2 is not installed.
    ValueError
        X does not fit the model, or an argument does not have one entry for each row.

    Examples
    --------
    >>> import tempfile
    >>> from mmpca import MMPCA
    >>> from mmpca.report import write_report
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, f"{folder}/report.html", X=data.X, labels=data.labels)
    ...     page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    report = Report(
        model,
        X=X,
        labels=labels,
        texts=texts,
        row_names=row_names,
        search=search,
        title=title,
        row_word=row_word,
        feature_word=feature_word,
        text_size=text_size,
    )
    return report.save(path)


class Report:
    """A self-contained HTML page about a fitted model, which a notebook displays.

    Parameters
    ----------
    model, X, labels, texts, row_names, search, title, row_word, feature_word, text_size
        As for :func:`write_report`.

    Attributes
    ----------
    html : str
        The page.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.report import Report
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> report = Report(model, X=data.X, title="Messages")  # the last line of a notebook cell shows it
    >>> report
    Report('Messages')
    """

    def __init__(
        self,
        model: MMPCA,
        *,
        X: Any = None,
        labels: Sequence[object] | None = None,
        texts: Sequence[object] | None = None,
        row_names: Sequence[object] | None = None,
        search: MMPCASearch | Mapping[str, ArrayLike] | None = None,
        title: str | None = None,
        row_word: str | None = None,
        feature_word: str | None = None,
        text_size: int = TEXT_SIZE,
    ) -> None:
        environment = make_environment()  # first, because Jinja2 may be missing
        words = {"row_word": row_word, "feature_word": feature_word}
        context = check_context(model, X, labels=labels, texts=texts, row_names=row_names, **words)
        contents = report_contents(context, measure_margins(context), search, title, text_size=text_size)
        self._title = contents["title"]
        self.html = render(environment, "report.html", contents)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file; an existing file is replaced atomically.

        Parameters
        ----------
        path : path

        Returns
        -------
        Path
        """
        write_text(path, self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Report({self._title!r})"

    def _repr_html_(self) -> str:
        """Return a frame that displays the page in a notebook, without a server or a file."""
        return (
            f'<iframe title="{escape(self._title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 1px solid #ccc" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )


def render(environment: Environment, template: str, contents: Mapping[str, Any]) -> str:
    """Return a page whose content security policy lets browsers run its own script and load nothing else."""
    from markupsafe import Markup

    assert environment.loader is not None
    script = environment.loader.get_source(environment, "script.js")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(contents, script=Markup(script), script_hash=digest)


def make_environment() -> Environment:
    """Return a Jinja2 environment with the templates, which escape all values."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError('Reports need Jinja2. Install it with: pip install "mmpca[report]"') from error
    environment = Environment(
        loader=PackageLoader("mmpca.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(formatting, name) for name in FILTERS}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment
