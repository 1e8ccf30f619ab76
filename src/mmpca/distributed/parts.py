"""Rows in parts that a crew holds: what goes to them, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.blas import one_blas_thread
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


class Asked(NamedTuple):
    """What a call is told of the rows of one part that are meant."""

    rows: Rows | None  # their numbers in the part, None for all of them in their order
    aligned: list[NDArray[Any]]  # the matching pieces of arrays


class Arrangement(NamedTuple):
    """How rows that come from several workers are brought into their order."""

    pieces: NDArray[np.int64]  # the places, among all that come, of the pieces of the first part, the second, ...
    rows: NDArray[np.int64] | None  # the places of the rows in these, None if they are in their order


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
        """Call where the rows are: one task for all parts of a worker, however many these are."""
        found = dict(self._by_part(rows))
        groups = _among(found, self._groups())
        answers = self.crew.gather(self._calls(_call_each, call, groups, self._asked(found, rows, aligned), shared))
        by_part = _by_number(groups, answers)
        return [(at, by_part[part]) for part, at in found.items()]

    def total(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Call where the rows are, and add up the answers there: those of a worker before they travel."""
        found = dict(self._by_part(rows))
        sums = self._calls(_call_summed, call, _among(found, self._groups()), self._asked(found, rows, aligned), shared)
        while len(sums) > 1:
            branches = [sums[start : start + BRANCHES] for start in range(0, len(sums), BRANCHES)]
            sums = [self.crew.submit(_sum, branch) for branch in branches]
        total: NDArray[np.float64] = self.crew.gather(sums)[0]
        return total

    def together(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Bring the rows to one worker and call there."""
        return self.crew.call(_together, call, *self._pieces(rows, self._groups()), *self._packed(arguments))

    def several(self, call: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Bring each of the rows to some worker and call there."""
        groups = self._groups()
        found: dict[int, Any] = {}  # the same rows are brought together once
        for rows, *_ in asked:
            found[id(rows)] = found.get(id(rows)) or self._pieces(rows, groups)
        return self.crew.gather(
            [
                self.crew.submit(_together, call, *found[id(rows)], *self._packed(arguments))
                for rows, *arguments in asked
            ]
        )

    def take(self, rows: Rows) -> Counts:
        """Bring some rows here, in the given order."""
        pieces, arrangement = self._pieces(rows, self._groups())
        return _arranged(self.crew.gather(pieces), arrangement)

    def keep(self, value: Any) -> Any:
        """Send a value once."""
        return Kept(value)

    # --- how --------------------------------------------------------------------------------------------------------

    def _calls(
        self,
        task: Callable[..., Any],
        call: Callable[..., Any],
        groups: Sequence[Sequence[int]],
        asked: Mapping[int, Asked],
        shared: Sequence[Any],
    ) -> list[Any]:
        """Submit a task for each group of parts, which makes the call in all of them; return the futures."""
        sent = [self._sent(one) for one in shared]
        return [
            self.crew.submit(task, call, [self.futures[part] for part in group], [asked[part] for part in group], sent)
            for group in groups
        ]

    def _groups(self) -> list[list[int]]:
        """Return the parts that are together now, in as many groups as can be worked on at a time."""
        return self.crew.groups(self.futures)

    def _asked(self, found: Mapping[int, Any], rows: Rows, aligned: Sequence[NDArray[Any]] = ()) -> dict[int, Asked]:
        """Return what each part is told, `found` being the places of its rows in `rows`."""
        return {part: Asked(self._own(part, rows, at), [array[at] for array in aligned]) for part, at in found.items()}

    def _own(self, part: int, rows: Rows, at: slice | NDArray[np.int64]) -> Rows | None:
        """Return the numbers that rows have in their part, None for all of them in their order."""
        own = rows[at] - self.first[part]
        is_all = len(own) == self.first[part + 1] - self.first[part] and bool((np.diff(own) == 1).all())
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

    def _pieces(self, rows: Rows, groups: Sequence[Sequence[int]]) -> tuple[list[Any], Arrangement]:
        """Return futures of the rows, those of a group of parts together, and how to bring these into their order."""
        found = dict(self._by_part(rows))
        groups, asked = _among(found, groups), self._asked(found, rows)
        pieces = [
            self.crew.submit(_taken, [self.futures[part] for part in group], [asked[part].rows for part in group])
            for group in groups
        ]
        by_part = np.argsort([part for group in groups for part in group])
        if all(isinstance(at, slice) for at in found.values()):
            return pieces, Arrangement(by_part, None)
        return pieces, Arrangement(by_part, np.argsort(np.concatenate(list(found.values()))))


def _among(found: Mapping[int, Any], groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return groups of those parts that were found to have some of the rows."""
    chosen = ([part for part in group if part in found] for group in groups)
    return [group for group in chosen if group]


def _by_number(groups: Sequence[Sequence[int]], answers: Sequence[Sequence[Any]]) -> dict[int, Any]:
    """Return the answers of all groups by the part that they are of."""
    return {
        part: answer
        for group, of_group in zip(groups, answers, strict=True)
        for part, answer in zip(group, of_group, strict=True)
    }


# --- what workers call --------------------------------------------------------------------------------------------


def _call_each(call: Callable[..., Any], parts: list[Counts], asked: list[Asked], shared: list[Any]) -> list[Any]:
    return list(_answers(call, parts, asked, shared))


def _call_summed(call: Callable[..., Any], parts: list[Counts], asked: list[Asked], shared: list[Any]) -> Any:
    return _sum(_answers(call, parts, asked, shared))


def _answers(call: Callable[..., Any], parts: list[Counts], asked: list[Asked], shared: list[Any]) -> Iterator[Any]:
    for part, (rows, aligned) in zip(parts, asked, strict=True):
        yield call(part, np.arange(part.n_rows) if rows is None else rows, *aligned, *shared, one_thread)


def _taken(parts: list[Counts], rows: list[Rows | None]) -> list[Counts]:
    return [part if some is None else part.take(some) for part, some in zip(parts, rows, strict=True)]


def _together(
    call: Callable[..., Any],
    pieces: list[list[Counts]],
    arrangement: Arrangement,
    kept: dict[int, Any],
    others: list[Any],
) -> Any:
    rest = iter(others)
    arguments = [kept[at] if at in kept else next(rest) for at in range(len(kept) + len(others))]
    with one_blas_thread():
        return call(_arranged(pieces, arrangement), *arguments)


def _arranged(groups: list[list[Counts]], arrangement: Arrangement) -> Counts:
    pieces = [piece for group in groups for piece in group]
    rows = stacked([pieces[at] for at in arrangement.pieces])
    return rows if arrangement.rows is None else rows.take(arrangement.rows)


def _sum(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    rest = iter(arrays)
    total = next(rest).copy()
    for array in rest:
        total += array
    return total
