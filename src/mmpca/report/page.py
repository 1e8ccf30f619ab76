"""The page: one HTML file about a fitted model."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mmpca.evaluation import summarize
from mmpca.model import MMPCA
from mmpca.report import fit, formatting
from mmpca.report.clusters import cluster_cards, label_table, topic_cards
from mmpca.report.context import Context, check_context
from mmpca.report.rows import Margins, measure_margins, representative_rows, searchable_rows
from mmpca.selection import MMPCASearch
from mmpca.store import write_text

if TYPE_CHECKING:
    from jinja2 import Environment

FILTERS = ("count", "decimals", "number", "percent", "shade", "signed", "whole_percent")


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
    """Write a self-contained HTML page about a fitted model.

    The page needs no network and no other files. It explains the clusters of at most 240 rows, and its search box
    finds about 5,000 evenly spaced ones; the page says so if there are more. Names and texts from the data are
    shortened and escaped.

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
        The fitted search that chose the numbers of clusters and topics, or its `results_`.
    title : str, optional
        Heading of the page.

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
    environment = make_environment()  # first, because Jinja2 may be missing
    context = check_context(model, X, labels=labels, texts=texts, row_names=row_names)
    contents = report_contents(context, measure_margins(context), search, title)
    write_text(path, render(environment, "report.html", contents))
    return Path(path)


def report_contents(
    context: Context, margins: Margins | None, search: Any, title: str | None, *, served: bool = False
) -> dict[str, Any]:
    """Return the variables of the report template; a served page leaves searching to the server."""
    model = context.model
    # Coherence compares features, so there must be two of them.
    has_quality = context.X is not None and context.is_fitted_data and model.n_features_in_ > 1
    quality = summarize(model, context.X) if has_quality else None
    rows = [] if margins is None else representative_rows(context, margins)
    choice, labels = fit.describe_choice(search), label_table(context)
    clusters = cluster_cards(context, quality)
    on_page = {row.number for row in rows}
    return {
        "title": heading(title),
        "served": served,
        "model": model,
        "summary": fit.summary_sentences(context, margins, choice, labels),
        "checks": fit.fit_checks(model, quality),
        "counts": fit.describe_counts(context),
        "clusters": clusters,
        "topics": topic_cards(context, quality),
        "rows": rows,
        "n_rows": context.n_rows,
        "labels": labels,
        "curve": fit.bound_curve(model),
        "choice": choice,
        **fit.provenance(model),
        "data": {
            "rows": [] if served else searchable_rows(context, margins, on_page),
            "topics": {cluster.number: cluster.topics for cluster in clusters},
        },
    }


def heading(title: str | None) -> str:
    """Return the heading of the page."""
    return "Clusters of count data" if title is None else formatting.clean(title)


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
