"""Where rows are: at hand, or in parts elsewhere. What has to see them is sent to them, and little comes back.

A search needs rows for few things: to propose moves, to sum them by cluster, to look at some together. Each is a
function that is called with a part of the rows; a place knows where the parts are, and calls it there. The results do
not depend on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts

Rows = NDArray[np.int64]
ForRows = Callable[..., None]  # calls a kernel on matching pieces of arrays, in threads where there are any
ROWS_PER_TASK = 256  # rows that a thread evaluates at a time


class Place(Protocol):
    """Rows, wherever they are.

    Calls are functions of a part of the rows: ``call(part, rows, *aligned, *shared, for_rows)`` with `part` the Counts,
    `rows` the numbers of its rows that are meant, `aligned` the matching pieces of arrays, `shared` the same for all
    parts and `for_rows` the threads there. They may be pickled: functions of a module, and plain data.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def each(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call in each part that has some of the rows; return the places of these in `rows`, and the answer."""

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the sum of the answers of all parts: arrays whose sums are exact in any order."""

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call ``call(counts, *arguments)`` once, with the counts of the given rows in their order."""

    def take(self, rows: Rows) -> Counts:
        """Bring some rows here, in the given order."""

    def keep(self, value: Any) -> Any:
        """Return what stands for a value that calls will share again and again."""


def one_thread(kernel: Callable[..., None], *arrays: NDArray[Any], size: int = ROWS_PER_TASK) -> None:
    """Call a kernel on matching pieces of the arrays, one after the other."""
    for start in range(0, len(arrays[0]), size):
        kernel(*(array[start : start + size] for array in arrays))


class Here:
    """Rows at hand."""

    def __init__(self, rows: Counts, for_rows: ForRows = one_thread) -> None:
        self.rows, self.for_rows = rows, for_rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.rows.n_features

    def each(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call once: there is one part."""
        return [(slice(None), call(self.rows, rows, *aligned, *shared, self.for_rows))]

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the answer of the one part."""
        answer: NDArray[np.float64] = call(self.rows, rows, *aligned, *shared, self.for_rows)
        return answer

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call with a copy of the rows, or the rows themselves if all are meant."""
        return call(_some(self.rows, rows), *arguments)

    def take(self, rows: Rows) -> Counts:
        """Copy some rows."""
        return self.rows.take(rows)

    def keep(self, value: Any) -> Any:
        """Return the value itself."""
        return value


def joined(
    place: Place, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
) -> Any:
    """Return the answers of all parts, arrays with an entry for each row, in the order of the rows."""
    answers = place.each(call, rows, *aligned, shared=shared)
    result = np.empty((len(rows), *answers[0][1].shape[1:]), answers[0][1].dtype)
    for at, answer in answers:
        result[at] = answer
    return result


# --- calls that everyone needs ----------------------------------------------------------------------------------


def row_totals(part: Counts, rows: Rows, for_rows: ForRows) -> NDArray[np.int64]:
    """Return the totals of some rows."""
    return part.row_totals()[rows]


def row_entries(part: Counts, rows: Rows, for_rows: ForRows) -> NDArray[np.int64]:
    """Return how many entries each of some rows has."""
    return np.diff(part.indptr)[rows]


def column_totals(part: Counts, rows: Rows, for_rows: ForRows) -> NDArray[np.int64]:
    """Return the totals of the features in all rows of a part."""
    return part.column_totals()


def group_sums(part: Counts, rows: Rows, groups: NDArray[Any], n_groups: int, for_rows: ForRows) -> NDArray[np.float64]:
    """Return the sums of some rows by group, (groups, V)."""
    return _some(part, rows).group_sums(groups, n_groups)


def _some(part: Counts, rows: Rows) -> Counts:
    """Return the given rows, without a copy where these are all."""
    is_all = len(rows) == part.n_rows and bool((rows == np.arange(part.n_rows)).all())
    return part if is_all else part.take(rows)
