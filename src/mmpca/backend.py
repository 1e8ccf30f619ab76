"""Rows in blocks, and a small MapReduce that sends functions to them.

The search needs the rows for only a few things: proposing moves, summing by cluster, and working on some rows together.
Each is a function of a block of rows. A backend knows where the blocks are (:class:`LocalRows` in this process,
:class:`mmpca.distributed.DaskRows` on workers) and calls the function there. Results never depend on how the rows are
divided, nor on the number of threads: blocks are fixed, and sums that cross them are exact in any order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mmpca.counts import Counts

Rows = NDArray[np.int64]
T = TypeVar("T")

ROWS_PER_TASK = 256  # rows that a thread evaluates at a time
MAX_SLICES = 8  # slices of rows with their own partial sums; more threads than this do not help
MIN_SLICE_ENTRIES = 2**14  # a smaller slice is not worth its partial sums
EXACT_BITS = 52  # whole numbers below 2**52 are summed exactly in any order


# --- threads ----------------------------------------------------------------------------------------------------


class Threads:
    """Calls functions in the threads of a pool, or one after another without a pool.

    Work is cut by position alone, so the number of threads never changes a result. A function called here must not use
    the same threads again, or they would deadlock.
    """

    def __init__(self, pool: Executor | None = None, n_threads: int = 1) -> None:
        self._pool, self.n_threads = pool, n_threads

    def map(self, call: Callable[[Any], T], items: Sequence[Any], *, stop: Callable[[], None] | None = None) -> list[T]:
        """Return the results for all items, in order; after an error or Ctrl-C, `stop` tells the rest to end early."""
        if self._pool is None:
            return list(map(call, items))
        futures = [self._pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:  # including Ctrl-C: raise it only when no thread is writing any more
            if stop is not None:
                stop()
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    def imap(self, call: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Yield the results for all items, in order; without a pool, each is computed on demand."""
        return map(call, items) if self._pool is None else iter(self.map(call, items))

    def for_rows(self, kernel: Callable[..., object], *arrays: NDArray[Any], size: int = ROWS_PER_TASK) -> None:
        """Call a kernel on matching slices of arrays, `size` rows at a time."""
        slices = [slice(start, start + size) for start in range(0, len(arrays[0]), size)]
        if self._pool is None:
            for rows in slices:
                kernel(*(array[rows] for array in arrays))
        else:
            self.map(lambda rows: kernel(*(array[rows] for array in arrays)), slices)

    def sum_slices(
        self, add: Callable[[slice, NDArray[np.float64]], object], slices: Sequence[slice], shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Return the total that `add` accumulates over slices of rows.

        The sums must be exact in any order: without a pool, all slices are added to the same array.
        """
        if self._pool is None:
            total = np.zeros(shape)
            for one in slices:
                add(one, total)
            return total
        sums = np.zeros((len(slices), *shape))
        self.map(lambda number: add(slices[number], sums[number]), range(len(slices)))
        total = sums[0]
        for other in sums[1:]:
            total += other
        return total


SERIAL = Threads()


@contextmanager
def open_threads(n_threads: int) -> Iterator[Threads]:
    """Open a pool of threads, or none if one thread is enough."""
    if n_threads == 1:
        yield SERIAL
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            yield Threads(pool, n_threads)


@lru_cache(maxsize=1)
def _loaded_libraries(n_modules: int) -> ThreadpoolController:
    """Return the loaded libraries that have their own threads; the slow search is repeated only after imports."""
    return ThreadpoolController()


def one_library_thread(kind: str | None = None) -> AbstractContextManager[Any]:
    """Limit libraries to one thread inside a ``with`` block: those of kind "blas" or "openmp", or by default both."""
    limit: AbstractContextManager[Any] = _loaded_libraries(len(sys.modules)).limit(limits=1, user_api=kind)
    return limit


class SharedSetting:
    """A setting of the whole process that callers in several threads share.

    The first caller makes it, and the last one undoes it. If every caller made and undid it, the first to finish would
    undo it while the others still need it, and the last would restore what it found: the setting itself.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self.make, self.lock, self.n_inside = make, Lock(), 0
        self.setting: AbstractContextManager[Any]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the setting inside a ``with`` block."""
        with self.lock:
            if self.n_inside == 0:
                self.setting = self.make()
                self.setting.__enter__()
            self.n_inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.n_inside -= 1
                if self.n_inside == 0:
                    self.setting.__exit__(None, None, None)


# Sums of BLAS are always added in the same order.
one_blas_thread = SharedSetting(lambda: one_library_thread("blas")).held


# --- slices of rows ---------------------------------------------------------------------------------------------


def even_slices(ends: NDArray[np.int64], n_wanted: int) -> list[slice]:
    """Return non-empty slices of rows with about the same number of entries; row i ends at entry `ends[i + 1]`.

    Examples
    --------
    >>> even_slices(np.array([0, 10, 20, 30, 60]), 2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n_wanted + 1)[1:-1])
    return [slice(first, last) for first, last in pairwise([0, *cuts.tolist(), len(ends) - 1]) if first < last]


def slices_of(block: Counts, rows: Rows | None = None) -> list[slice]:
    """Cut rows of a block (by default, all) into slices whose partial sums take less memory than their entries."""
    ends = block.indptr
    if rows is not None:
        ends = np.concatenate([[0], np.cumsum(block.indptr[rows + 1] - block.indptr[rows])])
    least = max(MIN_SLICE_ENTRIES, 4 * block.n_features)
    return even_slices(ends, int(np.clip(ends[-1] // least, 1, MAX_SLICES)))


# --- backends ---------------------------------------------------------------------------------------------------


class RowBackend(Protocol):
    """Rows of counts, in this process or on workers.

    Functions of a block are called as ``call(block, rows, *aligned, *shared, threads)``: `block` is a `Counts`, `rows`
    the positions of the wanted rows in it, `aligned` the matching slices of arrays, `shared` the same values for all
    blocks, and `threads` the `Threads` available there. They may be pickled, so they are module-level functions.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def threads(self) -> Threads:
        """Threads of the calling process."""

    def with_threads(self, threads: Threads) -> RowBackend:
        """Return the same rows with other threads."""

    def map_blocks(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call a function on each block that has some of the rows; return their positions in `rows` and the result."""

    def map_reduce(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the sum of the results of all blocks: arrays whose sums are exact in any order."""

    def apply(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call ``call(counts, *arguments)`` once, on the given rows collected in one place, in their order."""

    def map(self, call: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `apply` for each task ``(rows, *arguments)``, in parallel where possible."""

    def with_counts(self, call: Callable[..., Counts], *shared: Any) -> RowBackend:
        """Return the same rows with other counts, ``call(block, *shared)`` of each block, where the blocks are."""

    def take(self, rows: Rows) -> Counts:
        """Collect some rows in this process, in the given order."""

    def broadcast(self, value: Any) -> Any:
        """Broadcast a value to all workers; pass the result to calls instead of the value."""


class LocalRows:
    """Rows in this process: a single block."""

    def __init__(self, rows: Counts, threads: Threads = SERIAL) -> None:
        self.rows, self.threads = rows, threads
        self.n_rows, self.n_features = rows.n_rows, rows.n_features

    def with_threads(self, threads: Threads) -> LocalRows:
        """Return the same rows with other threads."""
        return LocalRows(self.rows, threads)

    def map_blocks(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, Any]]:
        """Call the function once."""
        return [(slice(None), call(self.rows, rows, *aligned, *shared, self.threads))]

    def map_reduce(
        self, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
    ) -> NDArray[np.float64]:
        """Return the result of the one block."""
        result: NDArray[np.float64] = call(self.rows, rows, *aligned, *shared, self.threads)
        return result

    def apply(self, call: Callable[..., Any], rows: Rows, *arguments: Any) -> Any:
        """Call the function on the rows."""
        return call(self.rows.take(rows), *arguments)

    def map(self, call: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call the function for each task, in threads."""
        return self.threads.map(lambda task: call(self.rows.take(task[0]), *task[1:]), tasks)

    def with_counts(self, call: Callable[..., Counts], *shared: Any) -> LocalRows:
        """Return the same rows with other counts."""
        return LocalRows(call(self.rows, *shared), self.threads)

    def take(self, rows: Rows) -> Counts:
        """Return some rows, in the given order."""
        return self.rows.take(rows)

    def broadcast(self, value: Any) -> Any:
        """Return the value itself."""
        return value


def map_rows(
    backend: RowBackend, call: Callable[..., Any], rows: Rows, *aligned: NDArray[Any], shared: Sequence[Any] = ()
) -> Any:
    """Map a function that returns one entry per row over the blocks; return the entries in the order of `rows`."""
    results = backend.map_blocks(call, rows, *aligned, shared=shared)
    joined = np.empty((len(rows), *results[0][1].shape[1:]), results[0][1].dtype)
    for positions, result in results:
        joined[positions] = result
    return joined


# --- functions of a block that several layers need ----------------------------------------------------------------


def row_totals(block: Counts, rows: Rows, threads: Threads) -> NDArray[np.int64]:
    """Return the totals of some rows, (n,)."""
    return block.row_totals()[rows]


def row_entries(block: Counts, rows: Rows, threads: Threads) -> NDArray[np.int64]:
    """Return the number of nonzero entries of some rows, (n,)."""
    return np.diff(block.indptr)[rows]


def column_totals(block: Counts, rows: Rows, threads: Threads) -> NDArray[np.int64]:
    """Return the totals of the features over some rows, (V,)."""
    return block.take(rows).column_totals()


def group_sums(block: Counts, rows: Rows, groups: NDArray[Any], n_groups: int, threads: Threads) -> NDArray[np.float64]:
    """Return the sums of some rows by group, (groups, V)."""
    return block.take(rows).group_sums(groups, n_groups)


def group_rows(block: Counts, rows: Rows, groups: NDArray[Any], n_groups: int, threads: Threads) -> NDArray[np.float64]:
    """Count the rows in which each feature occurs, by group, (groups, V)."""
    selected = block.take(rows)
    return selected._replace(data=np.broadcast_to(np.int32(1), selected.nnz)).group_sums(groups, n_groups)
