"""Who does the work: a Dask cluster through its client, or threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

CONNECTING_SECONDS = 20


class Crew(Protocol):
    """Workers that call functions; futures may be arguments of further calls."""

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a call; each is made anew."""

    def send(self, value: Any) -> Any:
        """Return the future of a value that all workers have."""

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Bring results here, in the order of their futures."""


class Threads:
    """Threads of this process, for those who have no cluster."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call when the futures among the arguments are done."""
        return self.pool.submit(_resolved, call, arguments)

    def send(self, value: Any) -> Any:
        """Return the value itself: it is here."""
        return value

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for results."""
        return [future.result() for future in futures]


def _resolved(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return call(*(_value(argument) for argument in arguments))


def _value(argument: Any) -> Any:
    # Calls are submitted after those that they depend on, so that a thread never waits for one behind it.
    if isinstance(argument, list):
        return [_value(one) for one in argument]
    return argument.result() if isinstance(argument, Future) else argument


class Cluster:
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call on some worker; a call whose worker dies is made again on another."""
        return self.client.submit(call, *arguments, pure=False)

    def send(self, value: Any) -> Any:
        """Copy a value to all workers."""
        return self.client.scatter([value], broadcast=True, hash=False)[0]  # of a tuple it would send each part

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Bring results here."""
        found: list[Any] = self.client.gather(list(futures))
        return found


def losses() -> tuple[type[BaseException], ...]:
    """Return the errors that tell of workers and data that were lost, not of a fault in a call."""
    try:
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError
    except ImportError:
        return ()
    return CancelledError, KilledWorker, CommClosedError


@contextmanager
def crew_of(client: Any, n_threads: int) -> Iterator[Crew]:
    """Provide the crew of a client or of a scheduler's address, or threads; what was opened here is closed again."""
    if client is None:
        with ThreadPoolExecutor(n_threads) as pool:
            yield Threads(pool)
    elif isinstance(client, str):
        with _connected(client) as connected:
            yield Cluster(connected)
    else:
        yield Cluster(client)


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('A cluster needs distributed. Install it with: pip install "mmpca[dask]"') from error
    try:
        return Client(address, timeout=CONNECTING_SECONDS)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"There is no scheduler at {address}: {error}. Start one with `dask scheduler`, or give its address, "
            "such as tcp://127.0.0.1:8786."
        ) from error
