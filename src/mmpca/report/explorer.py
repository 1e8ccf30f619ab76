"""The report on a local web server, with all rows, whole texts, and edits of the model.

Three things keep others out: the server listens on the loopback address only, the path of every request must begin
with a random token, and its Host header must name this server, so a website cannot reach it under its own domain name.
"""

from __future__ import annotations

import copy
import html
import json
import logging
import os
import secrets
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.errors import OverdispersionWarning, SuspiciousCountsWarning
from mmpca.model import MMPCA
from mmpca.model.explanation import VERDICTS
from mmpca.report.contents import report_contents
from mmpca.report.context import (
    Context,
    Margins,
    check_context,
    evenly_spaced,
    map_positions,
    measure_margins,
    row_details,
)
from mmpca.report.formatting import clean
from mmpca.report.page import make_environment, render
from mmpca.selection import MMPCASearch

logger = logging.getLogger("mmpca")

LOOPBACK = "127.0.0.1"
HTTP_PORT = 80  # browsers leave this port out of the Host header
MAX_LISTED = 1000  # rows in one answer
MAX_EDIT_BYTES = 10_000
AROUND, MAX_EXCERPTS, BEGINNING = 60, 3, 160  # characters around a hit, hits shown of a text, and characters without
ORDERS = ("data", "surest", "least")
HTML, JSON = "text/html; charset=utf-8", "application/json; charset=utf-8"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy is in the page
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "X-Content-Type-Options": "nosniff",
}


class Explorer:
    """A local web server that shows the report with all rows of the data and their whole texts.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
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
    row_word, feature_word : str, optional
        Words for a row and a feature; see :func:`write_report`.
    save : callable, optional
        Called with the model after each edit, to save it. With `save` and the X of the fit, readers can rename,
        merge and split clusters, mark them as noise, move rows by hand, and run the search again from there.
    port : int, default=0
        Port of the server; 0 picks a free one.

    Attributes
    ----------
    url : str
        Address of the report. It contains a secret token, so other users of this machine cannot guess it.

    Examples
    --------
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> from mmpca import MMPCA
    >>> from mmpca.report import Explorer
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> with Explorer(model, X=data.X) as explorer:
    ...     Thread(target=explorer.serve, daemon=True).start()
    ...     answer = urlopen(f"{explorer.url}rows?find=row+5&size=1", timeout=30).read().decode("utf-8")
    >>> '"name": "row 5"' in answer
    True
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
        save: Callable[[MMPCA], object] | None = None,
        port: int = 0,
    ) -> None:
        self._environment = make_environment()
        self._given: dict[str, Any] = {
            "X": X, "labels": labels, "texts": texts, "row_names": row_names, "row_word": row_word,
            "feature_word": feature_word,
        }  # fmt: skip
        self._search, self._title = search, title
        self._save, self._lock = save, Lock()
        self._positions: NDArray[np.float64] | None = None  # on the map; edits keep topics, so rows stay where they are
        self._show(model)
        self._token = secrets.token_urlsafe(24)
        self._server = _Server((LOOPBACK, port), _Handler)
        self._server.explorer = self
        self._is_serving = False
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/{self._token}/"

    def _show(self, model: MMPCA) -> None:
        """Prepare the pages of a model."""
        context = check_context(model, **self._given)
        margins = measure_margins(context, with_evidence=False)
        can_edit = self._save is not None and context.X is not None and context.is_fitted_data
        if self._positions is None and margins is not None:
            self._positions = map_positions(context, evenly_spaced(context.n_rows))
        contents = report_contents(
            context, margins, self._search, self._title, served=True, edits=can_edit, positions=self._positions
        )
        self._report = render(self._environment, "report.html", contents)
        self._model, self._rows, self._can_edit = model, RowFinder(context, margins), can_edit

    def edit(self, host: str | None, path: str, body: bytes) -> tuple[int, str, str]:
        """Edit the model as requested.

        Parameters
        ----------
        host : str or None
            Host header of the request, or None unless there is exactly one.
        path : str
            Address of the page, followed by "edit".
        body : bytes
            The action in JSON; see :func:`edited_model`.

        Returns
        -------
        tuple of (int, str, str)
            Status, content type and content of the answer.
        """
        status, kind, page = self.answer(host, path.removesuffix("edit"))
        if status != 200:
            return status, kind, page
        if not path.endswith("/edit"):
            return 404, kind, _message("There is no such page.")
        if not self._can_edit:
            advice = "This model cannot be edited here: start mmpca explore with the data of the fit."
            return 403, HTML, _message(advice)
        with self._lock:
            try:
                edited = edited_model(self._model, self._given["X"], json.loads(body))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                return 400, HTML, _message(f"Nothing was changed: {html.escape(str(error))}")
            assert self._save is not None
            try:
                self._save(edited)
            except OSError as error:
                return 500, HTML, _message(f"Nothing was changed: {html.escape(str(error))}")
            self._show(edited)
        return 200, JSON, _as_json({"message": "Done."})

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def serve(self) -> None:
        """Answer requests until another thread calls `close`, or until interrupted."""
        self._is_serving = True
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._is_serving = False

    def close(self) -> None:
        """Stop the server and free its port."""
        if self._is_serving:
            self._server.shutdown()
        self._server.server_close()

    def answer(self, host: str | None, path: str) -> tuple[int, str, str]:
        """Answer a request for a page or for rows.

        Parameters
        ----------
        host : str or None
            Host header of the request, or None unless there is exactly one.
        path : str
            Its address, with the query.

        Returns
        -------
        tuple of (int, str, str)
            Status, content type and content of the answer.
        """
        if host not in _own_hosts(self._server.server_port):
            return 403, HTML, _message("This page is only available at the printed address.")
        try:
            parts = urlsplit(path)
            query = parse_qs(parts.query, max_num_fields=20)
        except ValueError:
            return 400, HTML, _message("This address is malformed.")
        # A path without a second slash has no token; an empty one never equals the secret.
        _, token, *rest = parts.path.split("/") if parts.path.count("/") > 1 else ("", "", "")
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, HTML, _message("This is not the address that was printed when the server started.")
        if rest == [""]:
            return 200, HTML, self._report
        if rest == ["rows"]:
            return 200, JSON, _as_json(self._rows.find(read_query(query)))
        if rest == ["row"]:
            number = _read_number(query.get("number", [""])[0], None)
            if number is not None and number < self._rows.context.n_rows and self._rows.margins is not None:
                return 200, JSON, _as_json(self._rows.open(number))
        return 404, HTML, _message("There is no such page.")


def edited_model(model: MMPCA, X: Any, action: Mapping[str, Any]) -> MMPCA:
    """Return a model after an edit: clusters renamed, merged, split or marked as noise, a row moved, or a new search.

    The topics do not change. Except after a new search, all other rows keep their clusters, and the temperature does
    not change.

    Raises
    ------
    ValueError
        The action does not exist, or it names a cluster or row that does not exist.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> X = [[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]]
    >>> model = MMPCA(2, 2, random_state=0).fit(X)
    >>> moved = edited_model(model, X, {"action": "move", "row": 0, "cluster": int(model.labels_[3])})
    >>> bool(moved.labels_[0] == model.labels_[3])
    True
    """
    kind, n_clusters, edited = action["action"], len(model.weights_), copy.deepcopy(model)
    for name, size in (("cluster", n_clusters), ("other", n_clusters), ("row", len(model.labels_))):
        value = action.get(name, 0)
        if type(value) is not int or not 0 <= value < size:
            raise ValueError(f"There is no {name.replace('other', 'cluster')} {value!r}.")
    if kind == "rename":
        if not isinstance(action["name"], str):
            raise ValueError("The name of a cluster must be a string.")
        return edited.rename({action["cluster"]: action["name"].strip() or None})
    with warnings.catch_warnings():
        for category in (OverdispersionWarning, SuspiciousCountsWarning):  # the fit of the model has warned already
            warnings.simplefilter("ignore", category)
        if kind == "merge":
            edited.edit(X, merge=[action["cluster"], action["other"]], refit=False)
        elif kind == "split":
            edited.edit(X, split=[action["cluster"]], refit=False)
        elif kind == "move":
            edited.edit(X, move={action["row"]: action["cluster"]}, refit=False)
        elif kind == "noise":
            edited.edit(X, noise=[action["cluster"]], refit=False)
        elif kind == "refit":
            edited.edit(X)
        else:
            raise ValueError(f"There is no action {kind!r}.")
    return edited


class Query(NamedTuple):
    """The rows that a user asks for."""

    find: str = ""
    cluster: int | None = None
    label: int | None = None  # its position among the sorted labels
    verdict: int | None = None  # its position in VERDICTS
    order: str = "data"
    size: int = 20


def read_query(fields: Mapping[str, list[str]]) -> Query:
    """Return the fields of a query string; invalid values are replaced by defaults.

    Examples
    --------
    >>> read_query({"find": [" oak "], "cluster": ["2"], "order": ["sideways"]})
    Query(find='oak', cluster=2, label=None, verdict=None, order='data', size=20)
    """
    texts = {name: values[0].strip() for name, values in fields.items()}
    order = texts.get("order", "")
    cluster, label, verdict = (_read_number(texts.get(name, ""), None) for name in ("cluster", "label", "verdict"))
    size = min(_read_number(texts.get("size", ""), Query().size), MAX_LISTED)
    return Query(texts.get("find", ""), cluster, label, verdict, order if order in ORDERS else "data", size)


def _read_number(text: str, default: Any) -> Any:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default


class RowFinder:
    """All rows of a report, to be searched, filtered, sorted and opened; `margins` is None without data."""

    def __init__(self, context: Context, margins: Margins | None) -> None:
        self.context, self.margins = context, margins
        self._texts = [self._searchable_text(i) for i in range(context.n_rows)]
        self._verdicts = None if margins is None else np.array([VERDICTS.index(one) for one in margins.verdict])
        self._labels = None
        if context.labels is not None:
            self._labels = np.unique(np.array(context.labels, dtype=object), return_inverse=True)[1]

    def find(self, query: Query) -> dict[str, Any]:
        """Return how many rows match, and the first of them."""
        found = self._matching(query)
        return {"n": len(found), "rows": [self._facts(i, query.find) for i in found[: query.size].tolist()]}

    def open(self, i: int) -> dict[str, Any]:
        """Return everything about one row."""
        return self._facts(i, "") | row_details(self.context, i)

    def _facts(self, i: int, find: str) -> dict[str, Any]:
        context, margins = self.context, self.margins
        facts: dict[str, Any] = {
            "number": i,
            "name": clean(context.row_name(i)),
            "cluster": int(context.clusters[i]),
            "label": None if context.labels is None else clean(context.labels[i]),
            "excerpt": None if context.texts is None else excerpt(str(context.texts[i]), find),
        }
        if margins is None:
            return facts | {"verdict": None, "probability": None, "runner": None, "stability": None}
        return facts | {
            "verdict": margins.verdict[i],
            "probability": float(margins.probability[i]),
            "runner": None if margins.runner_up[i] < 0 else int(margins.runner_up[i]),
            "stability": None if np.isnan(margins.stability[i]) else float(margins.stability[i]),
        }

    def _searchable_text(self, i: int) -> str:
        """Return name, text and label of a row in one string, for case-insensitive search."""
        parts = [self.context.row_name(i)]
        parts += [str(values[i]) for values in (self.context.texts, self.context.labels) if values is not None]
        return "\n".join(parts).casefold()

    def _matching(self, query: Query) -> NDArray[np.intp]:
        """Return the indices of the matching rows, sorted as requested."""
        keep = np.ones(self.context.n_rows, dtype=bool)
        for values, wanted in (
            (self.context.clusters, query.cluster),
            (self._labels, query.label),
            (self._verdicts, query.verdict),
        ):
            if wanted is not None and values is not None:
                keep &= values == wanted
        found = np.flatnonzero(keep)
        if query.find:
            text = query.find.casefold()
            found = np.array([i for i in found.tolist() if text in self._texts[i]], dtype=np.intp)
        if query.order != "data" and self.margins is not None:
            sign = -1 if query.order == "surest" else 1
            keys = (sign * self.margins.margin[found], sign * self.margins.probability[found])
            found = found[np.lexsort(keys)]
        return found


def excerpt(text: str, find: str) -> str | list[list[str]]:
    """Return the text around the first hits of a search, in parts: dots, before, hit, after; or its beginning.

    Examples
    --------
    >>> excerpt("An oak beside the old mill", "OLD")
    [['', 'An oak beside the ', 'old', ' mill']]
    >>> excerpt("An oak", "elm")
    'An oak'
    """
    flat = " ".join(text.split())
    low, wanted = flat.lower(), find.lower()
    parts: list[list[str]] = []
    end = 0
    # A few letters change their length in lower case, which would shift positions.
    at = low.find(wanted) if wanted and len(low) == len(flat) else -1
    while at >= 0 and len(parts) < MAX_EXCERPTS:
        start, stop = max(at - AROUND, end), at + len(wanted)
        end = stop + AROUND
        after = clean_part(flat[stop:end]) + "…" * (end < len(flat))
        parts.append(["…" if start and not parts else "", clean_part(flat[start:at]), flat[at:stop], after])
        at = low.find(wanted, end)
    return parts or clean(flat, BEGINNING)


def clean_part(text: str) -> str:
    """Return a part of a text without control characters; spaces at its ends are kept."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _as_json(document: Any) -> str:
    return json.dumps(document, allow_nan=False)


class _Server(ThreadingHTTPServer):
    """A server that ends its requests when it stops."""

    daemon_threads = True
    # On Windows this option would let two servers share a port; elsewhere it frees the port at once.
    allow_reuse_address = os.name == "posix"
    explorer: Explorer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error, unless the reader closed the connection before the answer was sent."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            logger.error("A request could not be answered.", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET, HEAD and POST; the base class rejects other methods."""

    server_version, sys_version = "mmpca", ""
    timeout = 30  # seconds that an idle connection may block a thread

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer a HEAD request."""
        self._answer(with_body=False)

    def do_POST(self) -> None:
        """Answer a POST request, which is an edit; browsers do not let other websites send JSON without permission."""
        length = self.headers.get("Content-Length", "")
        is_short = length.isascii() and length.isdecimal() and int(length) <= MAX_EDIT_BYTES
        if self.headers.get_content_type() != "application/json" or not is_short:
            self._send(400, HTML, _message("This request is malformed."), with_body=True)
            return
        assert isinstance(self.server, _Server)
        self._send(*self.server.explorer.edit(self._host(), self.path, self.rfile.read(int(length))), with_body=True)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing, because the address contains a secret."""

    def _answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, _Server)
        self._send(*self.server.explorer.answer(self._host(), self.path), with_body=with_body)

    def _host(self) -> str | None:
        """Return the Host header; None unless there is exactly one."""
        hosts = self.headers.get_all("Host", [])
        return hosts[0] if len(hosts) == 1 else None

    def _send(self, status: int, kind: str, content: str, *, with_body: bool) -> None:
        body = content.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _own_hosts(port: int) -> set[str]:
    """Return the Host headers that name this server."""
    names = {LOOPBACK, "localhost"}
    return {f"{name}:{port}" for name in names} | (names if port == HTTP_PORT else set())


def _message(text: str) -> str:
    return f'<!doctype html><html lang="en"><title>mmpca explore</title><p>{text}</p></html>'
