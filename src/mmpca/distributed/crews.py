"""Who does the work: a Dask cluster through its client, or threads of this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Protocol

from mmpca.errors import ClusterError

CONNECTING_SECONDS = 20
WORKERLESS_SECONDS = 5.0  # after which a cluster is looked at, and again: if it has no worker, that is said

logger = logging.getLogger("mmpca")


class Crew(Protocol):
    """Workers that call functions; futures may be arguments of further calls."""

    is_here: bool  # whether they are threads of this process

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a call; each is made anew."""

    def send(self, value: Any) -> Any:
        """Return the future of a value that any worker can have."""

    def finish(self, futures: Sequence[Any]) -> None:
        """Wait until all calls are done, or raise the error of one without waiting for the others."""

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Finish calls and bring their results here, in the order of the futures."""

    def call(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make one call, which has the work to itself, and return its result."""

    def groups(self, futures: Sequence[Any]) -> list[list[int]]:
        """Return the numbers of futures whose results are together, in as many groups as can be worked on at a time."""


class Threads:
    """Threads of this process, for those who have no cluster."""

    is_here = True

    def __init__(self, pool: ThreadPoolExecutor, n_threads: int) -> None:
        self.pool, self.n_threads = pool, n_threads

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call when the futures among the arguments are done."""
        return self.pool.submit(_resolved, call, arguments)

    def send(self, value: Any) -> Any:
        """Return the value itself: it is here."""
        return value

    def finish(self, futures: Sequence[Any]) -> None:
        """Wait until all calls are done."""
        try:
            done = wait(futures, return_when=FIRST_EXCEPTION).done
            for future in futures:
                if future in done:
                    future.result()  # raises, if it is the one that failed
        except BaseException:  # Ctrl-C as well: what has not begun need not
            for future in futures:
                future.cancel()
            raise

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for results."""
        self.finish(futures)
        return [future.result() for future in futures]

    def call(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call in this thread, the only one that Ctrl-C reaches."""
        return _resolved(call, arguments)

    def groups(self, futures: Sequence[Any]) -> list[list[int]]:
        """Return a group for each thread."""
        return _dealt(range(len(futures)), self.n_threads)


def _dealt(numbers: Sequence[int], n_groups: int) -> list[list[int]]:
    """Deal numbers to groups, none of them empty."""
    return [list(numbers[first::n_groups]) for first in range(min(n_groups, len(numbers)))]


def _resolved(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return call(*(_value(argument) for argument in arguments))


def _value(argument: Any) -> Any:
    # Calls are submitted after those that they depend on, so that a thread never waits for one behind it.
    if isinstance(argument, list):
        return [_value(one) for one in argument]
    return argument.result() if isinstance(argument, Future) else argument


class Cluster:
    """The workers of a Dask cluster."""

    is_here = False

    def __init__(self, client: Any) -> None:
        self.client = client
        self.gathered: list[Any] = []

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call on some worker; a call whose worker dies is made again on another."""
        import dask

        # What calls are given has to travel, however large; Dask's advice against that is for graphs of many calls.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}), _losses_told():
            return self.client.submit(call, *arguments, pure=False)

    def send(self, value: Any) -> Any:
        """Give a value to one worker, from which others fetch it when they need it.

        It is the result of a call, so that the scheduler can have it made again when the worker dies. Values that are
        scattered are lost with their workers, and scattering to all of them waits forever for one that has just died.
        """
        return self.submit(_opened, Sealed(value))

    def finish(self, futures: Sequence[Any]) -> None:
        """Wait until all calls are done."""
        with _losses_told(), self.client.as_current():
            self.client.sync(_all_done, self.client, list(futures))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Bring results here; what was lost with a worker is made again before."""
        # A gather that Ctrl-C cuts short would complain to the terminal when its futures go before it has ended.
        self.finish(futures)
        with _losses_told():
            self.gathered = list(futures)
            found: list[Any] = self.client.gather(self.gathered)
            self.gathered = []
        return found

    def call(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call on some worker and wait."""
        return self.gather([self.submit(call, *arguments)])[0]

    def groups(self, futures: Sequence[Any]) -> list[list[int]]:
        """Return a group for each thread of each worker; results that are lost, and will be made anew, are alone."""
        with _losses_told():
            holders, n_threads = self.client.who_has(list(futures)), self.client.nthreads()
        held: dict[str, list[int]] = {}
        for number, future in enumerate(futures):
            holder = min(holders.get(future.key) or [future.key], key=lambda worker: len(held.get(worker, ())))
            held.setdefault(holder, []).append(number)
        return [group for worker, numbers in held.items() for group in _dealt(numbers, n_threads.get(worker, 1))]


async def _all_done(client: Any, futures: list[Any]) -> None:
    """Wait until all futures are done, or raise the error of one as soon as it has failed."""
    watch = asyncio.create_task(_told_of_no_workers(client))
    try:
        async with asyncio.TaskGroup() as waiting:  # nobody waits on: that would hold futures, and so tasks of workers
            for future in futures:
                waiting.create_task(_done(future))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    finally:
        watch.cancel()


async def _told_of_no_workers(client: Any) -> None:
    """Say that all wait for a worker, if there is none: they may still come, from a queue or after a restart."""
    n_empty_looks = 0
    with suppress(OSError):  # who waits for the results is told that the scheduler has gone
        while n_empty_looks < 2:
            await asyncio.sleep(WORKERLESS_SECONDS)
            n_empty_looks = 0 if await client.scheduler.ncores() else n_empty_looks + 1
        logger.warning(
            "The cluster has no worker: waiting for one. Start some with `dask worker %s`; Ctrl-C ends it.",
            client.scheduler.address,
        )


async def _done(future: Any) -> None:
    from distributed import wait

    await wait([future])
    if future.status == "error":
        await future.result()  # raises it


@contextmanager
def _losses_told() -> Iterator[None]:
    """Tell in plain words of what is lost for good."""
    from distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"A call was given up because the workers that tried it died, one after another: {error} Often they lack "
            "memory: give them more, or divide the rows into smaller blocks."
        ) from error
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ClusterError(
            "What the cluster held is lost: its scheduler has gone or was restarted, or data that had been scattered "
            "were on a worker that died. Start again; with a checkpoint a fit goes on from what that holds."
        ) from error


class Sealed:
    """A value that Dask does not look into: of lists and tuples it would take each part for an argument."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _opened(sealed: Sealed) -> Any:
    return sealed.value


@contextmanager
def crew_of(client: Any, n_threads: int) -> Iterator[Crew]:
    """Provide the crew of a client or of a scheduler's address, or threads; what was opened here is closed again."""
    if client is None:
        pool = ThreadPoolExecutor(n_threads)
        try:
            yield Threads(pool, n_threads)
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C, what has not begun need not
    elif isinstance(client, str):
        with _connection(client) as connected:
            yield Cluster(connected)
    else:
        yield Cluster(client)


@contextmanager
def _connection(address: str) -> Iterator[Any]:
    """Provide a client of the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('A cluster needs distributed. Install it with: pip install "mmpca[dask]"') from error

    class Connection(Client):
        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:  # Ctrl-C as well: nobody else knows of it yet
                self.close()
                raise

    with _event_loop() as loop:
        try:
            client = Connection(address, loop=loop, timeout=CONNECTING_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"There is no scheduler at {address}: {error}. Start one with `dask scheduler`, or give its address, "
                "such as tcp://127.0.0.1:8786."
            ) from error
        with client:
            yield client


@contextmanager
def _event_loop() -> Iterator[Any]:
    """Provide an event loop that runs in a thread of its own, and ends.

    A client's own ends when the client is closed, but goes on for ever where there is no client because nobody
    answered, or because Ctrl-C came first.
    """
    from tornado.ioloop import IOLoop

    begun: Future[tuple[Any, asyncio.Event]] = Future()

    async def run() -> None:
        end = asyncio.Event()
        begun.set_result((IOLoop.current(), end))
        await end.wait()

    thread = Thread(target=lambda: asyncio.run(run()), name="connection to a scheduler", daemon=True)
    thread.start()
    loop, end = begun.result()
    try:
        yield loop
    finally:
        loop.add_callback(end.set)
        thread.join()
