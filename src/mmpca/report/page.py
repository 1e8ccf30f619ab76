"""From results to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mmpca.model import MMPCA
from mmpca.model.archive import write_atomically
from mmpca.report import origin
from mmpca.report.clusters import clusters_of, topics_of
from mmpca.report.confusion import confusion_of
from mmpca.report.data import counts_of
from mmpca.report.quality import quality_of
from mmpca.report.rows import Margins, listed_rows, margins_of, telling_rows
from mmpca.report.search import choice_of, curve_of
from mmpca.report.subject import Subject, check_subject
from mmpca.report.summary import checks_of, summary_of
from mmpca.report.words import exact, shown
from mmpca.selection import MMPCASearch

if TYPE_CHECKING:
    from jinja2 import Environment


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
) -> Path:
    """Write one self-contained HTML page about a fitted model.

    The page needs no network and no other file. It shows at most 240 rows with their reasons, and its search box knows
    at most about 5,000, evenly chosen; the page says so. Names and texts are cut and cannot become markup.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    path : path
        File to write, by custom with the ending ``.html``; an older one is replaced at a stroke.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), optional
        Rows to show: those that were fitted, or others, whose clusters are predicted.
    labels : sequence of length n_samples, optional
        Known classes of the rows, for a table of classes and clusters.
    texts : sequence of str, length n_samples, optional
        What to show of a row.
    row_names : sequence of str, length n_samples, optional
        Names of the rows; by default their numbers.
    search : MMPCASearch or mapping, optional
        The fitted search that the model comes from, or its `results_`.
    title : str, optional
        Heading of the page.

    Returns
    -------
    Path
        The file.

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
    environment = make_environment()  # before the work: it may be missing
    subject = check_subject(model, X, labels=labels, texts=texts, row_names=row_names)
    margins = margins_of(subject)
    content = render(environment, "report.html", contents_of(subject, margins, search, title)).encode("utf-8")

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_atomically(path, write)
    return Path(path)


def contents_of(
    subject: Subject, margins: Margins | None, search: Any, title: str | None, *, served: bool = False
) -> dict[str, Any]:
    """Return what the template fills in; a page that is served need not list the rows, the server has them."""
    rows = [] if margins is None else telling_rows(subject, margins)
    choice, confusion = choice_of(search), confusion_of(subject)
    clusters, quality = clusters_of(subject), quality_of(subject)
    listed = [] if served else listed_rows(subject, margins, [row.place for row in rows])
    return {
        "title": heading(title),
        "served": served,
        "model": subject.model,
        "summary": summary_of(subject, margins, choice, confusion),
        "checks": checks_of(subject) + ([] if quality is None else [quality.check]),
        "quality": quality,
        "counts": counts_of(subject),
        "clusters": clusters,
        "topics": topics_of(subject),
        "rows": rows,
        "n_rows": subject.n_rows,
        "confusion": confusion,
        "curve": curve_of(subject.model),
        "choice": choice,
        "parameters": origin.parameters_of(subject.model),
        "versions": origin.versions(),
        "paper": origin.PAPER,
        "doi": origin.DOI,
        "data": {"rows": listed, "topics": {cluster.number: cluster.topics for cluster in clusters}},
    }


def heading(title: str | None) -> str:
    """Return the heading of the page."""
    return "Clusters of count data" if title is None else shown(title)


def render(environment: Environment, template: str, contents: Mapping[str, Any]) -> str:
    """Return a page. Its policy lets a browser run this one script and fetch nothing."""
    from markupsafe import Markup

    assert environment.loader is not None
    script = environment.loader.get_source(environment, "script.js")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template)
    return page.render(contents, script=Markup(script), script_hash=digest)


def make_environment() -> Environment:
    """Return the templates, which escape all that they are given."""
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
    environment.filters["exact"] = exact
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment
