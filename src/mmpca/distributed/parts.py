"""Rows in parts that a crew holds: what goes to them, and what comes back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts, stacked
from mmpca.distributed.crews import Crew, losses
from mmpca.places import Rows, one_thread

logger = logging.getLogger("mmpca")

ATTEMPTS = 4  # at a call, when workers are lost on the way
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
    """

    def __init__(self, crew: Crew, futures: Sequence[Any], sizes: Sequence[int], n_features: int) -> None:
        self.crew, self.futures, self.n_features = crew, list(futures), n_features
        self.first = np.concatenate([[0], np.cumsum(sizes)])
        self._kept: list[Kept] = []

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.first[-1])

    def each(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call where the rows are."""
        return self._try(lambda: self._each(call, rows, aligned, shared))

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Call where the rows are, and add up the answers there."""

        def attempt() -> NDArray[np.float64]:
            sums = [future for _, future in self._calls(call, rows, aligned, shared)]
            while len(sums) > 1:
                groups = [sums[start : start + BRANCHES] for start in range(0, len(sums), BRANCHES)]
                sums = [self.crew.submit(_sum, group) for group in groups]
            total: NDArray[np.float64] = self.crew.gather(sums)[0]
            return total

        return self._try(attempt)

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Bring the rows to one worker and call there."""

        def attempt() -> Any:
            pieces, order = self._pieces(rows)
            return self.crew.gather([self.crew.submit(_together, call, pieces, order, self.crew.send(arguments))])[0]

        return self._try(attempt)

    def take(self, rows: Rows) -> Counts:
        """Bring some rows here, in the given order."""

        def attempt() -> Counts:
            pieces, order = self._pieces(rows)
            return _ordered(self.crew.gather(pieces), order)

        return self._try(attempt)

    def keep(self, value: Any) -> Any:
        """Send a value once."""
        self._kept.append(Kept(value))
        return self._kept[-1]

    # --- how --------------------------------------------------------------------------------------------------------

    def _each(
        self, call: Callable[..., Any], rows: Rows, aligned: Sequence[NDArray[Any]], shared: Sequence[Any]
    ) -> list[tuple[Any, Any]]:
        places, futures = zip(*self._calls(call, rows, aligned, shared), strict=True)
        return list(zip(places, self.crew.gather(futures), strict=True))

    def _calls(
        self, call: Callable[..., Any], rows: Rows, aligned: Sequence[NDArray[Any]], shared: Sequence[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Submit a call for each part that has some of the rows; yield the places of these in `rows`, and a future."""
        sent = [one.sent(self.crew) if isinstance(one, Kept) else self.crew.send(one) for one in shared]
        for part, at in self._by_part(rows):
            arrays = [array[at] for array in aligned]
            yield at, self.crew.submit(_call, call, self.futures[part], rows[at] - self.first[part], arrays, sent)

    def _by_part(self, rows: Rows) -> Iterator[tuple[int, NDArray[np.int64]]]:
        part_of_row = np.searchsorted(self.first, rows, side="right") - 1
        for part in np.unique(part_of_row).tolist():
            yield part, np.flatnonzero(part_of_row == part)

    def _pieces(self, rows: Rows) -> tuple[list[Any], NDArray[np.int64] | None]:
        """Return futures of the rows by part, and how to bring these into their order, None if they are."""
        found = list(self._by_part(rows))
        pieces = [self.crew.submit(_take, self.futures[part], rows[at] - self.first[part]) for part, at in found]
        at = np.concatenate([at for _, at in found])
        return pieces, None if (at == np.arange(len(rows))).all() else np.argsort(at)

    def _try(self, attempt: Callable[[], Any]) -> Any:
        """Call again with everything sent anew if workers and what they held are lost."""
        for number in range(ATTEMPTS):
            try:
                return attempt()
            except losses() as error:
                if number == ATTEMPTS - 1:
                    raise
                logger.info("A worker was lost (%s); what it did is done again.", type(error).__name__)
                for kept in self._kept:
                    kept.future = None
        raise AssertionError("unreachable")


# --- what workers call --------------------------------------------------------------------------------------------


def _call(call: Callable[..., Any], part: Counts, rows: Rows, arrays: list[Any], shared: list[Any]) -> Any:
    return call(part, rows, *arrays, *shared, one_thread)


def _take(part: Counts, rows: Rows) -> Counts:
    return part if len(rows) == part.n_rows and (np.diff(rows) == 1).all() else part.take(rows)


def _together(
    call: Callable[..., Any], pieces: list[Counts], order: NDArray[np.int64] | None, arguments: tuple[Any, ...]
) -> Any:
    return call(_ordered(pieces, order), *arguments)


def _ordered(pieces: list[Counts], order: NDArray[np.int64] | None) -> Counts:
    rows = stacked(pieces)
    return rows if order is None else rows.take(order)


def _sum(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
