"""Workers of a Dask cluster: calls that survive a lost worker, and readable errors."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from mmpca.errors import ClusterError

EMPTY_SECONDS = 5.0  # between checks of the cluster; after two without any worker, a warning is logged

logger = logging.getLogger("mmpca")


class Workers:
    """Calls functions on the workers of a Dask cluster.

    The arguments of a call may be futures or lists of futures; the function receives their results.

    Parameters
    ----------
    client : distributed.Client
    empty_seconds : float
        A warning is logged if the cluster has no workers for about twice this time.
    """

    def __init__(self, client: Any, *, empty_seconds: float = EMPTY_SECONDS) -> None:
        self.client, self.empty_seconds = client, empty_seconds
        self._gathering: list[Any] = []

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
