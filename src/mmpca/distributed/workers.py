"""Workers of a Dask cluster: calls that survive a lost worker, readable errors, and rows on workers as a backend."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import SERIAL, Rows, Threads, one_blas_thread
from mmpca.counts import Counts, no_rows, stacked
from mmpca.errors import ClusterError
from mmpca.monitor import Monitor

EMPTY_SECONDS = 5.0  # between checks of the cluster; after two without any worker, a warning is logged
N_ADDED = 8  # partial sums added by one task

# Positions of the rows of a block in an array of rows: a slice if that array is sorted.
Positions = slice | NDArray[np.int64]

logger = logging.getLogger("mmpca")


class Workers:
    """Calls functions on the workers of a Dask cluster.

    The arguments of a call may be futures or lists of futures; the function receives their results. A warning is logged
    if the cluster has no workers for about twice `empty_seconds`.
    """

    def __init__(self, client: Any, *, empty_seconds: float = EMPTY_SECONDS) -> None:
        self.client, self.empty_seconds = client, empty_seconds
        self._gathering: list[Any] = []  # keeps futures alive, see `gather`

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a call; if its worker dies, another one repeats the call."""
        import dask

        # Dask advises against large arguments because of graphs with many calls; these are few.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}), _cluster_errors():
            return self.client.submit(call, *arguments, pure=False)

    def send(self, value: Any) -> Any:
        """Return the future of a value; workers fetch it from each other when they need it.

        The value is the result of a call, so the scheduler can restore it when a worker dies. Scattered values are lost
        with their workers, and scattering to all workers hangs if one of them has just died.
        """
        return self.submit(_unseal, _Sealed(value))

    def wait(self, futures: Sequence[Any], on_done: Callable[[], object] | None = None) -> None:
        """Wait for all calls, or raise the first error without waiting for the others.

        `on_done` is called whenever a call has finished, in the thread of the client's event loop.
        """
        with _cluster_errors(), self.client.as_current():
            self.client.sync(self._wait, list(futures), on_done)

    async def _wait(self, futures: list[Any], on_done: Callable[[], object] | None) -> None:
        watch = asyncio.create_task(self._warn_if_empty())
        try:
            # A group cancels all waiting tasks on errors: each would keep its future, and so the call, alive.
            async with asyncio.TaskGroup() as group:
                for future in futures:
                    group.create_task(_finished(future, on_done))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            watch.cancel()

    async def _warn_if_empty(self) -> None:
        """Log a warning if the cluster has no workers; some may still arrive, from a queue or after a restart."""
        n_empty = 0
        with suppress(OSError):  # a lost scheduler is reported to the caller that waits for results
            while n_empty < 2:
                await asyncio.sleep(self.empty_seconds)
                n_empty = 0 if await self.client.scheduler.ncores() else n_empty + 1
            address = self.client.scheduler.address
            logger.warning("The cluster has no workers; waiting. Start some with `dask worker %s`.", address)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of calls, in order."""
        self.wait(futures)
        with _cluster_errors():
            # Distributed logs an error if Ctrl-C releases the futures of a gather that is still running.
            self._gathering = list(futures)
            results: list[Any] = self.client.gather(self._gathering)
            self._gathering = []
        return results

    def groups(self, futures: Sequence[Any]) -> list[list[int]]:
        """Group the indices of futures by the worker that holds their results, one group per thread of the worker.

        A lost result forms its own group.
        """
        with _cluster_errors():
            holders, n_threads = self.client.who_has(list(futures)), self.client.nthreads()
        held: dict[str, list[int]] = {}
        for index, future in enumerate(futures):
            holder = min(holders.get(future.key) or [future.key], key=lambda worker: len(held.get(worker, ())))
            held.setdefault(holder, []).append(index)
        # Every n-th index: blocks of similar size spread evenly over the n threads of a worker.
        return [
            indices[first :: n_threads.get(worker, 1)]
            for worker, indices in held.items()
            for first in range(min(n_threads.get(worker, 1), len(indices)))
        ]


async def _finished(future: Any, on_done: Callable[[], object] | None) -> None:
    from distributed import wait

    await wait([future])
    if future.status == "error":
        await future.result()  # raises it
    if on_done is not None:
        on_done()


class _Sealed:
    """Wraps a value whose items Dask must not treat as arguments."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _unseal(sealed: _Sealed) -> Any:
    return sealed.value


@contextmanager
def _cluster_errors() -> Iterator[None]:
    """Turn Dask's errors about lost workers and schedulers into a ClusterError with advice."""
    from distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"Several workers died while running the same call: {error} They probably ran out of memory: give them "
            "more, or divide the rows into smaller blocks."
        ) from error
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ClusterError(
            "The data on the cluster are lost: the scheduler stopped or was restarted, or scattered data were on a "
            "worker that died. Start again; a fit with a checkpoint resumes from there."
        ) from error


# --- connecting -------------------------------------------------------------------------------------------------


@contextmanager
def open_workers(client: Any) -> Iterator[Workers | None]:
    """Provide the workers of a client or of the scheduler at an address; None for None.

    A connection that is opened here is closed at the end.
    """
    if client is None:
        yield None
    elif isinstance(client, str):
        with _connect(client) as connection:
            yield Workers(connection)
    else:
        yield Workers(client)


def _connect(address: str) -> Any:
    """Return a new client of the scheduler at an address."""
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise ImportError('A cluster needs distributed. Install it with: pip install "mmpca[dask]"') from error
    seconds = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    try:
        _wait_until_reachable(address, seconds)
        return Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No scheduler answers at {address}: {error}. Start one with `dask scheduler`, or give the address of "
            "another, such as tcp://127.0.0.1:8786."
        ) from error


def _wait_until_reachable(address: str, seconds: float) -> None:
    """Wait until something listens at an address; a client that fails to connect would leave its thread behind."""
    from distributed.comm import parse_address, parse_host_port

    scheme, location = parse_address(address)
    if scheme not in ("tcp", "tls"):
        return
    host, port = parse_host_port(location, 8786)
    deadline = monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host, port), timeout=max(0.1, deadline - monotonic())):
                return
        except OSError:
            if monotonic() >= deadline:
                raise
            sleep(0.1)


# --- rows on workers --------------------------------------------------------------------------------------------


class DaskRows:
    """Blocks of rows, stacked vertically, on the workers of a Dask cluster; a `RowBackend`.

    Each call takes one task per worker thread, however many blocks there are. `futures` are those of valid `Counts`
    with `sizes` rows, at least one each; Dask must be able to compute them again if they are lost. `threads` are those
    of the client.
    """

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

    def with_counts(self, call: Callable[..., Counts], *shared: Any) -> DaskRows:
        """Return the same rows with other counts, which their workers compute and keep beside the first."""
        values = [self._send(value) for value in shared]
        futures = [self.workers.submit(call, future, *values) for future in self.futures]
        self.workers.wait(futures)
        return DaskRows(self.workers, futures, np.diff(self.first).tolist(), self.n_features, self.threads)

    def take(self, rows: Rows) -> Counts:
        """Collect some rows in this process, in the given order."""
        if not len(rows):
            return no_rows(self.n_features)
        pieces, block_order, row_order = self._collect(rows)
        return _join(self.workers.gather(pieces), block_order, row_order)

    def broadcast(self, value: Any) -> Broadcast:
        """Broadcast a value to the workers; pass the result to calls instead of the value."""
        return Broadcast(value)

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
