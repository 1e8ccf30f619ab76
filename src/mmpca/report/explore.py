"""The report with all rows within reach, served to this machine alone.

Who may look: requests come over the loopback address, their path has to begin with a random token, and their Host
header has to name this server, so that a page from elsewhere cannot reach it under a name of its own.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from numpy.typing import ArrayLike

from mmpca.model import MMPCA
from mmpca.report.listing import Query, Rows, read_query
from mmpca.report.page import contents_of, heading, make_environment, render
from mmpca.report.rows import margins_of
from mmpca.report.subject import check_subject
from mmpca.selection import MMPCASearch

logger = logging.getLogger("mmpca")

LOOPBACK = "127.0.0.1"
HTTP_PORT = 80  # which browsers leave out of the Host header
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy is in the page
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
}


class Explorer:
    """A report whose rows are all within reach, page by page, on a server for this machine alone.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X, labels, texts, row_names, search, title
        As in :func:`mmpca.report.write_report`.
    port : int, default=0
        Port of the server; 0 takes one that is free.

    Attributes
    ----------
    url : str
        Where to look; it holds a secret, so that nobody else on this machine can guess it.

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
        subject = check_subject(model, X, labels=labels, texts=texts, row_names=row_names)
        margins = margins_of(subject)
        self._rows = Rows(subject, margins)
        contents = contents_of(subject, margins, search, title, served=True)
        self._report = render(self._environment, "report.html", {**contents, "query": Query()})
        self._heading = heading(title)
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
        """Answer until `close` is called from another thread, or an interrupt comes."""
        self._is_serving = True
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._is_serving = False

    def close(self) -> None:
        """Stop answering and free the port."""
        if self._is_serving:
            self._server.shutdown()
        self._server.server_close()

    def answer(self, host: str | None, path: str) -> tuple[int, str]:
        """Return status and page for a request."""
        if host not in _own_hosts(self._server.server_port):
            return 403, _message("This page answers only under the address that was printed.")
        try:
            asked = urlsplit(path)
            query = read_query(asked.query)
        except ValueError:
            return 400, _message("This address cannot be read.")
        _, token, *rest = asked.path.split("/") if asked.path.count("/") > 1 else ("", "", "")
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, _message("This is not the address that was printed when the server was started.")
        if rest == [""]:
            return 200, self._report
        if rest == ["rows"]:
            return 200, self._listing(query)
        return 404, _message("There is no such page.")

    def _listing(self, asked: Query) -> str:
        query, listing = self._rows.page(asked)
        contents = {
            "title": self._heading,
            "served": True,
            "query": query,
            "listing": listing,
            "n_clusters": self._rows.subject.model.n_clusters,
            "knows_why": self._rows.margins is not None,
            "data": {"rows": [], "topics": {}},
        }
        return render(self._environment, "listing.html", contents)


class _Server(ThreadingHTTPServer):
    """A server whose requests do not outlive it."""

    daemon_threads = True
    # Where it means that a port can be used again at once, and not that two servers can share it.
    allow_reuse_address = os.name == "posix"
    explorer: Explorer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what went wrong, unless the reader went away before the answer was told."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            logger.error("A request could not be answered.", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; other methods are refused by the class above."""

    server_version, sys_version = "mmpca", ""
    timeout = 30  # seconds that a silent connection may take up a thread

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet: the address holds a secret."""

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
    """Return what the Host header of a request to this server may say."""
    names = {LOOPBACK, "localhost"}
    return {f"{name}:{port}" for name in names} | (names if port == HTTP_PORT else set())


def _message(told: str) -> str:
    return f'<!doctype html><html lang="en"><title>mmpca explore</title><p>{told}</p></html>'
