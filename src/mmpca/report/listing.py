"""All rows, page by page: which of them a reader asks for, and in which order."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

import numpy as np
from numpy.typing import NDArray

from mmpca.report.rows import Margins, Row, rows_with_reasons
from mmpca.report.subject import Subject

PER_PAGE = 25
VERDICTS = ("clear", "likely", "borderline")
ORDERS = ("data", "surest", "least")


class Query(NamedTuple):
    """What a reader asks for."""

    find: str = ""
    cluster: int | None = None
    verdict: str = ""  # one of VERDICTS, or all of them
    order: str = "data"
    page: int = 1

    def address(self, page: int) -> str:
        """Return the query string of another page."""
        given = self._replace(page=page)._asdict()
        return urlencode({name: value for name, value in given.items() if value not in ("", None)})


class Listing(NamedTuple):
    """One page of rows."""

    rows: list[Row]
    n_found: int
    n_pages: int
    page: int

    @property
    def first(self) -> int:
        """Number of the first row on the page among those found, from 1."""
        return (self.page - 1) * PER_PAGE + 1

    @property
    def last(self) -> int:
        """Number of the last row on the page among those found."""
        return self.first + len(self.rows) - 1

    @property
    def links(self) -> list[tuple[str, int | None]]:
        """Where else one can go; None where one is already."""
        before = self.page - 1 if self.page > 1 else None
        after = self.page + 1 if self.page < self.n_pages else None
        last = self.n_pages if after else None
        return [("First", before and 1), ("Previous", before), ("Next", after), ("Last", last)]


class Rows:
    """The rows of a report, ready to be looked through.

    Parameters
    ----------
    subject : Subject
    margins : Margins or None
        How sure they are; None without data.
    """

    def __init__(self, subject: Subject, margins: Margins | None) -> None:
        self.subject, self.margins = subject, margins
        self._words = [self._words_of(i) for i in range(subject.n_rows)]
        self._verdicts = None if margins is None else np.array(margins.verdict)

    def page(self, query: Query) -> tuple[Query, Listing]:
        """Return a page of rows, and the query with the number of a page that exists."""
        found = self._found(query)
        n_pages = max(1, -(-len(found) // PER_PAGE))
        page = min(max(query.page, 1), n_pages)
        shown = found[(page - 1) * PER_PAGE : page * PER_PAGE].tolist()
        rows = rows_with_reasons(self.subject, shown, "found")
        return query._replace(page=page), Listing(rows, len(found), n_pages, page)

    def _words_of(self, i: int) -> str:
        """Return all that can be found of a row, in one case."""
        parts = [self.subject.row_name(i)]
        parts += [str(values[i]) for values in (self.subject.texts, self.subject.labels) if values is not None]
        return "\n".join(parts).casefold()

    def _found(self, query: Query) -> NDArray[np.intp]:
        """Return the numbers of the rows, in order."""
        keep = np.ones(self.subject.n_rows, dtype=bool)
        if query.cluster is not None:
            keep &= self.subject.clusters == query.cluster
        if query.verdict and self._verdicts is not None:
            keep &= self._verdicts == query.verdict
        found = np.flatnonzero(keep)
        if query.find:
            wanted = query.find.casefold()
            found = np.array([i for i in found.tolist() if wanted in self._words[i]], dtype=np.intp)
        if query.order != "data" and self.margins is not None:
            sign = -1 if query.order == "surest" else 1
            found = found[np.argsort(sign * self.margins.margin[found], kind="stable")]
        return found


def read_query(text: str) -> Query:
    """Return what a query string asks for; what it says wrong is passed over."""
    given = {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=20).items()}
    cluster, page = given.get("cluster", ""), given.get("page", "")
    verdict, order = given.get("verdict", ""), given.get("order", "")
    return Query(
        given.get("find", ""),
        int(cluster) if _is_number(cluster) else None,
        verdict if verdict in VERDICTS else "",
        order if order in ORDERS else "data",
        int(page) if _is_number(page) else 1,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
