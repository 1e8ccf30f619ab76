"""Where rows are: at hand, or in parts elsewhere. What has to see them is sent to them, and little comes back.

A search needs rows for few things: to propose moves, to sum them by cluster, to look at some together. Each is a
function that is called with a part of the rows; a place knows where the parts are, and calls it there. The results do
not depend on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts

Rows = NDArray[np.int64]
ForRows = Callable[..., None]  # calls a kernel on matching pieces of arrays, in threads where there are any
ROWS_PER_TASK = 256  # rows that a thread evaluates at a time
MAX_PIECES = 8  # of the rows, each with sums of its own: so many threads are of use
PIECE_ENTRIES = 2**14  # at least, so that a piece is worth its sums
EXACT_BITS = 52  # whole numbers below 2**52 are summed exactly in any order


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

    @property
    def is_here(self) -> bool:
        """Whether `together` calls in this process: then it may be given threads and what is told of progress."""

    @property
    def for_rows(self) -> ForRows:
        """Threads of the caller, where there are any."""

    def using(self, for_rows: ForRows) -> Place:
        """Return the same rows, with other threads for the caller."""

    def each(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call in each part that has some of the rows; return the places of these in `rows`, and the answer."""

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the sum of the answers of all parts: arrays whose sums are exact in any order."""

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call ``call(counts, *arguments)`` once, with the counts of the given rows in their order.

        What `keep` has returned may be among the arguments, here and in `several`.
        """

    def several(self, call: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call as `together` does for each of some rows with their arguments, side by side where there is room."""

    def take(self, rows: Rows) -> Counts:
        """Bring some rows here, in the given order."""

    def keep(self, value: Any) -> Any:
        """Return what stands for a value that calls will share again and again."""


@contextmanager
def threads(n_threads: int) -> Iterator[Executor | None]:
    """Provide a pool of threads, or None where one is enough."""
    if n_threads == 1:
        yield None
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            yield pool


def one_thread(kernel: Callable[..., None], *arrays: NDArray[Any], size: int | None = None) -> None:
    """Call a kernel on matching pieces of arrays, one after another."""
    for piece in _slices(len(arrays[0]), size):
        kernel(*(array[piece] for array in arrays))


def in_threads(pool: Executor | None) -> ForRows:
    """Return what calls a kernel on matching pieces of arrays in the threads of a pool, if there is one.

    What a kernel does with a row may not depend on the others: the pieces are cut by number alone. A kernel must not
    ask for the same threads again: they would wait for each other forever.
    """
    if pool is None:
        return one_thread

    def for_rows(kernel: Callable[..., None], *arrays: NDArray[Any], size: int | None = None) -> None:
        def call(piece: slice) -> None:
            kernel(*(array[piece] for array in arrays))

        futures = [pool.submit(call, piece) for piece in _slices(len(arrays[0]), size)]
        try:
            for future in futures:
                future.result()
        except BaseException:  # Ctrl-C as well: nobody may go on while a thread still writes
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    return for_rows


def _slices(length: int, size: int | None) -> list[slice]:
    size = size or ROWS_PER_TASK
    return [slice(start, start + size) for start in range(0, length, size)]


def each_of(call: Callable[[Any], Any], items: Sequence[Any], for_rows: ForRows) -> list[Any]:
    """Return the answers to all items, each asked for in a thread."""
    answers = np.empty(len(items), dtype=object)

    def ask(numbers: NDArray[np.int64], to: NDArray[np.object_]) -> None:
        for at, number in enumerate(numbers.tolist()):
            to[at] = call(items[number])

    for_rows(ask, np.arange(len(items)), answers, size=1)
    return list(answers)


def in_turn(call: Callable[[Any], Any], items: Sequence[Any], for_rows: ForRows) -> Iterator[Any]:
    """Return the answers to all items, in their order; one thread makes each when it is asked for, and holds no other.

    For sums that are not exact: whoever adds up the answers as they come has the same result on any number of threads.
    """
    return map(call, items) if for_rows is one_thread else iter(each_of(call, items, for_rows))


def n_pieces(n_entries: int, n_features: int) -> int:
    """Return how many pieces of the rows have sums of their own: these take less memory than the entries."""
    return int(np.clip(n_entries // max(PIECE_ENTRIES, 4 * n_features), 1, MAX_PIECES))


def even_pieces(ends: NDArray[np.int64], n_wanted: int) -> list[slice]:
    """Return pieces of rows with about as many entries each, none of them empty; row i ends where `ends[i + 1]` says.

    Examples
    --------
    >>> even_pieces(np.array([0, 10, 20, 30, 60]), 2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n_wanted + 1)[1:-1])
    return [slice(first, last) for first, last in pairwise([0, *cuts.tolist(), len(ends) - 1]) if first < last]


def pieces_of(part: Counts, rows: Rows) -> list[slice]:
    """Return the pieces of some rows of a part, as places in `rows`, that are worth sums of their own."""
    ends = np.concatenate([[0], np.cumsum(part.indptr[rows + 1] - part.indptr[rows])])
    return even_pieces(ends, n_pieces(int(ends[-1]), part.n_features))


def summed(
    add: Callable[[slice, NDArray[np.float64]], None],
    pieces: Sequence[slice],
    shape: tuple[int, ...],
    for_rows: ForRows,
) -> NDArray[np.float64]:
    """Return what `add` makes of zeros for each of some pieces of rows, in threads, taken together.

    The sums have to be exact in any order: one thread adds all pieces to the same zeros.
    """
    if for_rows is one_thread:
        total = np.zeros(shape)
        for piece in pieces:
            add(piece, total)
        return total
    sums = np.zeros((len(pieces), *shape))

    def of_pieces(numbers: NDArray[np.int64], to: NDArray[np.float64]) -> None:
        for number, one in zip(numbers.tolist(), to, strict=True):
            add(pieces[number], one)

    for_rows(of_pieces, np.arange(len(pieces)), sums, size=1)
    total = sums[0]
    for other in sums[1:]:
        total += other
    return total


class Here:
    """Rows at hand."""

    def __init__(self, rows: Counts, for_rows: ForRows = one_thread) -> None:
        self.rows, self._for_rows = rows, for_rows

    @property
    def is_here(self) -> bool:
        """They are."""
        return True

    @property
    def for_rows(self) -> ForRows:
        """Threads of the caller."""
        return self._for_rows

    def using(self, for_rows: ForRows) -> Here:
        """Return the same rows, with other threads."""
        return Here(self.rows, for_rows)

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

    def several(self, call: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call in threads."""
        return each_of(lambda one: self.together(call, *one), asked, self.for_rows)

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
