"""Rows in parts that a crew holds: what goes to them, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mmpca.counts import Counts, stacked
from mmpca.distributed.crews import Crew
from mmpca.places import ForRows, Rows, one_thread
from mmpca.stages import Stages

BRANCHES = 8  # sums that are added at a time


class Kept:
    """A value that calls share, and where it is."""

    def __init__(self, value: Any) -> None:
        self.value, self.future = value, None

    def sent(self, crew: Crew) -> Any:
        """Return the future of the value; it is sent once."""
        if self.future is None:
            self.future = crew.send(self.value)
        return self.future


class Parts:
    """Rows in parts, one below the other.

    Parameters
    ----------
    crew : Crew
    futures : list of futures of Counts
        Counts that have been checked; their results can be made again if they are lost.
    sizes : list of int
        Rows of each part, at least one.
    n_features : int
    for_rows : callable
        Threads of the caller.
    """

    def __init__(
        self,
        crew: Crew,
        futures: Sequence[Any],
        sizes: Sequence[int],
        n_features: int,
        for_rows: ForRows = one_thread,
    ) -> None:
        self.crew, self.futures, self.n_features, self._for_rows = crew, list(futures), n_features, for_rows
        self.first = np.concatenate([[0], np.cumsum(sizes)])

    @property
    def is_here(self) -> bool:
        """Whether the crew are threads of this process."""
        return self.crew.is_here

    @property
    def for_rows(self) -> ForRows:
        """Threads of the caller: of the client, not of the workers."""
        return self._for_rows

    def using(self, for_rows: ForRows) -> Parts:
        """Return the same rows, with other threads for the caller."""
        return Parts(self.crew, self.futures, np.diff(self.first).tolist(), self.n_features, for_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.first[-1])

    def each(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call where the rows are."""
        places, futures = zip(*self._calls(call, rows, aligned, shared), strict=True)
        return list(zip(places, self.crew.gather(futures), strict=True))

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Call where the rows are, and add up the answers there: those of a worker before they travel."""
        sent = [self._sent(one) for one in shared]
        asked = {
            part: (self._own(part, rows, at), [array[at] for array in aligned]) for part, at in self._by_part(rows)
        }
        groups = [[part for part in group if part in asked] for group in self.crew.groups(self.futures)]
        sums = [
            self.crew.submit(
                _call_summed, call, [self.futures[part] for part in group], [asked[part] for part in group], sent
            )
            for group in groups
            if group
        ]
        while len(sums) > 1:
            branches = [sums[start : start + BRANCHES] for start in range(0, len(sums), BRANCHES)]
            sums = [self.crew.submit(_sum, branch) for branch in branches]
        total: NDArray[np.float64] = self.crew.gather(sums)[0]
        return total

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Bring the rows to one worker and call there."""
        return self.crew.call(_together, call, *self._pieces(rows), *self._packed(arguments))

    def several(self, call: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Bring each of the rows to some worker and call there."""
        found: dict[int, Any] = {}  # the same rows are brought together once
        for rows, *_ in asked:
            found[id(rows)] = found.get(id(rows)) or self._pieces(rows)
        return self.crew.gather(
            [
                self.crew.submit(_together, call, *found[id(rows)], *self._packed(arguments))
                for rows, *arguments in asked
            ]
        )

    def take(self, rows: Rows) -> Counts:
        """Bring some rows here, in the given order."""
        pieces, order = self._pieces(rows)
        return _ordered(self.crew.gather(pieces), order)

    def keep(self, value: Any) -> Any:
        """Send a value once."""
        return Kept(value)

    # --- how --------------------------------------------------------------------------------------------------------

    def _calls(
        self, call: Callable[..., Any], rows: Rows, aligned: Sequence[NDArray[Any]], shared: Sequence[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Submit a call for each part that has some of the rows; yield the places of these in `rows`, and a future."""
        sent = [self._sent(one) for one in shared]
        for part, at in self._by_part(rows):
            arrays = [array[at] for array in aligned]
            yield at, self.crew.submit(_call, call, self.futures[part], self._own(part, rows, at), arrays, sent)

    def _own(self, part: int, rows: Rows, at: slice | NDArray[np.int64]) -> Rows | None:
        """Return the numbers that rows have in their part, None for all of them in their order."""
        own = rows[at] - self.first[part]
        is_all = isinstance(at, slice) and len(own) == self.first[part + 1] - self.first[part]
        return None if is_all else own

    def _sent(self, value: Any) -> Any:
        """Return what calls are given for a shared value: what is small travels with them, others once, ahead."""
        if isinstance(value, Kept):
            return value.sent(self.crew)
        return value if isinstance(value, int | float | Stages) else self.crew.send(value)

    def _packed(self, arguments: Sequence[Any]) -> tuple[dict[int, Any], Any]:
        """Return the kept arguments, by their place, and the future of the others, which are sent together."""
        kept = {at: one.sent(self.crew) for at, one in enumerate(arguments) if isinstance(one, Kept)}
        return kept, self.crew.send([one for at, one in enumerate(arguments) if at not in kept])

    def _by_part(self, rows: Rows) -> Iterator[tuple[int, slice | NDArray[np.int64]]]:
        """Yield each part that has some of the rows, and the places of these in `rows`."""
        order = None if (rows[1:] >= rows[:-1]).all() else np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows if order is None else rows[order], self.first)
        for part, (start, stop) in enumerate(pairwise(cuts.tolist())):
            if start < stop:
                yield part, slice(start, stop) if order is None else np.sort(order[start:stop])

    def _pieces(self, rows: Rows) -> tuple[list[Any], NDArray[np.int64] | None]:
        """Return futures of the rows by part, and how to bring these into their order, None if they are."""
        found = list(self._by_part(rows))
        pieces = [self.crew.submit(_take, self.futures[part], rows[at] - self.first[part]) for part, at in found]
        if all(isinstance(at, slice) for _, at in found):
            return pieces, None
        return pieces, np.argsort(np.concatenate([at for _, at in found]))


# --- what workers call --------------------------------------------------------------------------------------------


def _call(call: Callable[..., Any], part: Counts, rows: Rows | None, arrays: list[Any], shared: list[Any]) -> Any:
    return call(part, np.arange(part.n_rows) if rows is None else rows, *arrays, *shared, one_thread)


def _call_summed(
    call: Callable[..., Any], parts: list[Counts], asked: list[tuple[Rows | None, list[Any]]], shared: list[Any]
) -> Any:
    answers = (_call(call, part, *one, shared) for part, one in zip(parts, asked, strict=True))
    return _sum(answers)


def _take(part: Counts, rows: Rows) -> Counts:
    return part if len(rows) == part.n_rows and (np.diff(rows) == 1).all() else part.take(rows)


def _together(
    call: Callable[..., Any],
    pieces: list[Counts],
    order: NDArray[np.int64] | None,
    kept: dict[int, Any],
    others: list[Any],
) -> Any:
    rest = iter(others)
    arguments = [kept[at] if at in kept else next(rest) for at in range(len(kept) + len(others))]
    # The number of its threads would decide the order of sums.
    with threadpool_limits(1, user_api="blas"):
        return call(_ordered(pieces, order), *arguments)


def _ordered(pieces: list[Counts], order: NDArray[np.int64] | None) -> Counts:
    rows = stacked(pieces)
    return rows if order is None else rows.take(order)


def _sum(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    rest = iter(arrays)
    total = next(rest).copy()
    for array in rest:
        total += array
    return total
