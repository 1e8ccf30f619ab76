"""The report on a local web server, with all rows page by page.

Three things keep others out: the server listens on the loopback address only, the path of every request must begin
with a random token, and its Host header must name this server, so a website cannot reach it under its own domain name.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca.model import MMPCA
from mmpca.report.contents import heading, report_contents
from mmpca.report.context import VERDICTS, Context, Margins, Row, check_context, explain_rows, measure_margins
from mmpca.report.page import make_environment, render
from mmpca.selection import MMPCASearch

logger = logging.getLogger("mmpca")

LOOPBACK = "127.0.0.1"
HTTP_PORT = 80  # browsers leave this port out of the Host header
ROWS_PER_PAGE = 25
ORDERS = ("data", "surest", "least")
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy is in the page
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "X-Content-Type-Options": "nosniff",
}


class Explorer:
    """A local web server that shows the report and all rows of the data, page by page.

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
    ...     page = urlopen(f"{explorer.url}rows?cluster=2", timeout=30).read().decode("utf-8")
    >>> "All rows" in page
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
        port: int = 0,
    ) -> None:
        self._environment = make_environment()
        context = check_context(model, X, labels=labels, texts=texts, row_names=row_names)
        margins = measure_margins(context)
        self._pagination = Pagination(context, margins)
        contents = report_contents(context, margins, search, title, served=True)
        self._report = render(self._environment, "report.html", {**contents, "query": Query()})
        self._shared = {
            "title": heading(title),
            "served": True,
            "n_clusters": len(context.model.weights_),
            "has_margins": margins is not None,
            "data": {"rows": [], "topics": {}},
        }
        self._token = secrets.token_urlsafe(24)
        self._server = _Server((LOOPBACK, port), _Handler)
        self._server.explorer = self
        self._is_serving = False
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/{self._token}/"

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

    def answer(self, host: str | None, path: str) -> tuple[int, str]:
        """Return the status and the page for a request with this Host header (None unless there is exactly one)."""
        if host not in _own_hosts(self._server.server_port):
            return 403, _message("This page is only available at the printed address.")
        try:
            parts = urlsplit(path)
            query = read_query(parts.query)
        except ValueError:
            return 400, _message("This address is malformed.")
        # A path without a second slash has no token; an empty one never equals the secret.
        _, token, *rest = parts.path.split("/") if parts.path.count("/") > 1 else ("", "", "")
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, _message("This is not the address that was printed when the server started.")
        if rest == [""]:
            return 200, self._report
        if rest == ["rows"]:
            query, found = self._pagination.page(query)
            return 200, render(self._environment, "all_rows.html", {**self._shared, "query": query, "found": found})
        return 404, _message("There is no such page.")


class Query(NamedTuple):
    """The rows that a user asks for."""

    find: str = ""
    cluster: int | None = None
    verdict: str = ""  # one of VERDICTS, or empty for all
    order: str = "data"
    page: int = 1

    def address(self, page: int) -> str:
        """Return the query string for another page of the same rows."""
        fields = self._replace(page=page)._asdict()
        return urlencode({name: value for name, value in fields.items() if value not in ("", None)})


def read_query(text: str) -> Query:
    """Parse a query string; invalid values are replaced by defaults."""
    fields = {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=20).items()}
    verdict, order = fields.get("verdict", ""), fields.get("order", "")
    return Query(
        fields.get("find", ""),
        _read_number(fields.get("cluster", ""), None),
        verdict if verdict in VERDICTS else "",
        order if order in ORDERS else "data",
        _read_number(fields.get("page", ""), 1),
    )


def _read_number(text: str, default: Any) -> Any:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default


class RowPage(NamedTuple):
    """One page of rows."""

    rows: list[Row]
    n_found: int
    n_pages: int
    number: int  # from 1

    @property
    def first(self) -> int:
        """Position of the first row of the page among those found, from 1."""
        return (self.number - 1) * ROWS_PER_PAGE + 1

    @property
    def last(self) -> int:
        """Position of the last row of the page among those found."""
        return self.first + len(self.rows) - 1

    @property
    def links(self) -> list[tuple[str, int | None]]:
        """Links to other pages; None for pages that do not exist."""
        before = self.number - 1 if self.number > 1 else None
        after = self.number + 1 if self.number < self.n_pages else None
        return [
            ("First", 1 if before else None),
            ("Previous", before),
            ("Next", after),
            ("Last", self.n_pages if after else None),
        ]


class Pagination:
    """All rows of a report, to be searched, filtered and sorted page by page; `margins` is None without data."""

    def __init__(self, context: Context, margins: Margins | None) -> None:
        self.context, self.margins = context, margins
        self._texts = [self._searchable_text(i) for i in range(context.n_rows)]
        self._verdicts = None if margins is None else np.array(margins.verdict)

    def page(self, query: Query) -> tuple[Query, RowPage]:
        """Return a page of rows, and the query with the number of an existing page."""
        found = self._find(query)
        n_pages = max(1, -(-len(found) // ROWS_PER_PAGE))
        number = min(max(query.page, 1), n_pages)
        shown = found[(number - 1) * ROWS_PER_PAGE : number * ROWS_PER_PAGE].tolist()
        rows = explain_rows(self.context, shown, "found")
        return query._replace(page=number), RowPage(rows, len(found), n_pages, number)

    def _searchable_text(self, i: int) -> str:
        """Return name, text and label of a row in one string, for case-insensitive search."""
        parts = [self.context.row_name(i)]
        parts += [str(values[i]) for values in (self.context.texts, self.context.labels) if values is not None]
        return "\n".join(parts).casefold()

    def _find(self, query: Query) -> NDArray[np.intp]:
        """Return the indices of the matching rows, sorted as requested."""
        keep = np.ones(self.context.n_rows, dtype=bool)
        if query.cluster is not None:
            keep &= self.context.clusters == query.cluster
        if query.verdict and self._verdicts is not None:
            keep &= self._verdicts == query.verdict
        found = np.flatnonzero(keep)
        if query.find:
            wanted = query.find.casefold()
            found = np.array([i for i in found.tolist() if wanted in self._texts[i]], dtype=np.intp)
        if query.order != "data" and self.margins is not None:
            sign = -1 if query.order == "surest" else 1
            found = found[np.argsort(sign * self.margins.margin[found], kind="stable")]
        return found


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
    """Answers GET and HEAD; the base class rejects other methods."""

    server_version, sys_version = "mmpca", ""
    timeout = 30  # seconds that an idle connection may block a thread

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer a HEAD request."""
        self._answer(with_body=False)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing, because the address contains a secret."""

    def _answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, _Server)
        hosts = self.headers.get_all("Host", [])
        status, page = self.server.explorer.answer(hosts[0] if len(hosts) == 1 else None, self.path)
        body = page.encode("utf-8")
        self.send_response(status)
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
