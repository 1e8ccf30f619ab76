"""Blocks of rows on the workers of a Dask cluster, as a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import SERIAL, Rows, Threads, one_blas_thread
from mmpca.counts import Counts, no_rows, stacked
from mmpca.distributed.workers import Workers
from mmpca.monitor import Monitor

N_ADDED = 8  # partial sums added by one task

# Positions of the rows of a block in an array of rows: a slice if that array is sorted.
Positions = slice | NDArray[np.int64]


class DaskRows:
    """Blocks of rows, stacked vertically, on the workers of a Dask cluster.

    Each call takes one task per worker thread, however many blocks there are.

    Parameters
    ----------
    workers : Workers
    futures : list of futures of Counts
        Valid counts; Dask must be able to compute them again if they are lost.
    sizes : list of int
        Number of rows of each block, at least one.
    n_features : int
    threads : Threads
        Threads of the client.
    """

    is_local = False

    def __init__(
        self, workers: Workers, futures: Sequence[Any], sizes: Sequence[int], n_features: int, threads: Threads = SERIAL
    ) -> None:
        self.workers, self.futures, self.n_features, self.threads = workers, list(futures), n_features, threads
        self.first = np.concatenate([[0], np.cumsum(sizes)])  # first row of each block
        self.n_rows = int(self.first[-1])

    def with_threads(self, threads: Threads) -> DaskRows:
        """Return the same rows with other threads of the client."""
        return DaskRows(self.workers, self.futures, np.diff(self.first).tolist(), self.n_features, threads)

    def map_blocks(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call a function on each block that has some of the rows; return their positions in `rows` and the result."""
        positions = self._positions(rows)
        groups = self._groups(positions)
        answers = self.workers.gather(self._submit(_call_blocks, call, groups, positions, rows, aligned, shared))
        pairs = zip(groups, answers, strict=True)
        by_block = {block: result for group, results in pairs for block, result in zip(group, results, strict=True)}
        return [(at, by_block[block]) for block, at in positions.items()]

    def map_reduce(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the sum of the results of all blocks, added on the workers."""
        positions = self._positions(rows)
        sums = self._submit(_sum_blocks, call, self._groups(positions), positions, rows, aligned, shared)
        while len(sums) > 1:
            parts = [sums[start : start + N_ADDED] for start in range(0, len(sums), N_ADDED)]
            sums = [self.workers.submit(_sum, part) for part in parts]
        total: NDArray[np.float64] = self.workers.gather(sums)[0]
        return total

    def apply(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call ``call(counts, *arguments)`` on one worker, on the given rows in their order."""
        return self.map(call, [(rows, *arguments)])[0]

    def map(self, call: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `apply` for each task ``(rows, *arguments)``, in parallel on different workers."""
        collected: dict[int, Any] = {}  # tasks with the same array of rows share their collection
        futures = []
        for rows, *arguments in tasks:
            if id(rows) not in collected:
                collected[id(rows)] = self._collect(rows)
            broadcasts = {i: one.sent(self.workers) for i, one in enumerate(arguments) if isinstance(one, Broadcast)}
            others = self.workers.send([one for i, one in enumerate(arguments) if i not in broadcasts])
            futures.append(self.workers.submit(_apply, call, *collected[id(rows)], broadcasts, others))
        return self.workers.gather(futures)

    def take(self, rows: Rows) -> Counts:
        """Collect some rows in this process, in the given order."""
        if not len(rows):
            return no_rows(self.n_features)
        pieces, block_order, row_order = self._collect(rows)
        return _join(self.workers.gather(pieces), block_order, row_order)

    def broadcast(self, value: Any) -> Broadcast:
        """Broadcast a value to the workers; pass the result to calls instead of the value."""
        return Broadcast(value)

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _positions(self, rows: Rows) -> dict[int, Positions]:
        """Return the positions in `rows` of the rows of each block that has some of them."""
        order = None if (rows[1:] >= rows[:-1]).all() else np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows if order is None else rows[order], self.first)
        return {
            block: slice(start, stop) if order is None else np.sort(order[start:stop])
            for block, (start, stop) in enumerate(pairwise(cuts.tolist()))
            if start < stop
        }

    def _groups(self, positions: Mapping[int, Positions]) -> list[list[int]]:
        """Return the blocks that have some of the rows, grouped by the worker thread that will visit them."""
        groups = [[block for block in group if block in positions] for group in self.workers.groups(self.futures)]
        return [group for group in groups if group]

    def _own(self, block: int, rows: Rows, at: Positions) -> Rows | None:
        """Return the indices of rows within their block, None for all of them in order."""
        own = rows[at] - self.first[block]
        is_all = len(own) == self.first[block + 1] - self.first[block] and bool((np.diff(own) == 1).all())
        return None if is_all else own

    def _submit(
        self,
        task: Callable[..., Any],
        call: Callable[..., Any],
        groups: Sequence[Sequence[int]],
        positions: Mapping[int, Positions],
        rows: Rows,
        aligned: Sequence[NDArray[Any]],
        shared: Sequence[Any],
    ) -> list[Any]:
        """Submit a task for each group of blocks; return the futures."""
        values = [self._send(value) for value in shared]
        requests = {
            block: (self._own(block, rows, at), [array[at] for array in aligned]) for block, at in positions.items()
        }
        return [
            self.workers.submit(
                task, call, [self.futures[block] for block in group], [requests[block] for block in group], values
            )
            for group in groups
        ]

    def _send(self, value: Any) -> Any:
        """Return a shared value as an argument of calls: a small one itself, others as futures."""
        if isinstance(value, Broadcast):
            return value.sent(self.workers)
        return value if isinstance(value, int | float | Monitor) else self.workers.send(value)

    def _collect(self, rows: Rows) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64] | None]:
        """Return futures of the rows in pieces, the order of the pieces, and that of their rows if it must change."""
        positions = self._positions(rows)
        groups = self._groups(positions)
        pieces = [
            self.workers.submit(
                _take,
                [self.futures[block] for block in group],
                [self._own(block, rows, positions[block]) for block in group],
            )
            for group in groups
        ]
        block_order = np.argsort([block for group in groups for block in group])
        if all(isinstance(at, slice) for at in positions.values()):
            return pieces, block_order, None
        return pieces, block_order, np.argsort(np.concatenate(list(positions.values())))


class Broadcast:
    """A value that several calls share; it is sent with the first."""

    def __init__(self, value: Any) -> None:
        self.value, self.future = value, None

    def sent(self, workers: Workers) -> Any:
        """Return the future of the value."""
        if self.future is None:
            self.future = workers.send(self.value)
        return self.future


# --- functions that run on workers --------------------------------------------------------------------------------


def _call_blocks(call: Callable[..., Any], blocks: list[Counts], requests: list[Any], shared: list[Any]) -> list[Any]:
    return list(_results(call, blocks, requests, shared))


def _sum_blocks(call: Callable[..., Any], blocks: list[Counts], requests: list[Any], shared: list[Any]) -> Any:
    return _sum(_results(call, blocks, requests, shared))


def _results(call: Callable[..., Any], blocks: list[Counts], requests: list[Any], shared: list[Any]) -> Iterator[Any]:
    for block, (rows, aligned) in zip(blocks, requests, strict=True):
        yield call(block, np.arange(block.n_rows) if rows is None else rows, *aligned, *shared, SERIAL)


def _sum(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    rest = iter(arrays)
    total = next(rest).copy()
    for array in rest:
        total += array
    return total


def _take(blocks: list[Counts], rows: list[Rows | None]) -> list[Counts]:
    return [block if some is None else block.take(some) for block, some in zip(blocks, rows, strict=True)]


def _apply(
    call: Callable[..., Any],
    pieces: list[list[Counts]],
    block_order: NDArray[np.int64],
    row_order: NDArray[np.int64] | None,
    broadcasts: dict[int, Any],
    others: list[Any],
) -> Any:
    rest = iter(others)
    arguments = [broadcasts[i] if i in broadcasts else next(rest) for i in range(len(broadcasts) + len(others))]
    with one_blas_thread():
        return call(_join(pieces, block_order, row_order), *arguments)


def _join(groups: list[list[Counts]], block_order: NDArray[np.int64], row_order: NDArray[np.int64] | None) -> Counts:
    pieces = [piece for group in groups for piece in group]
    rows = stacked([pieces[at] for at in block_order])
    return rows if row_order is None else rows.take(row_order)
