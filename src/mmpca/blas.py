"""One thread of BLAS: the number of its threads would decide the order of sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits


class _Limit:
    """A limit on the threads of BLAS that all callers of this process share.

    BLAS knows one number of threads for the whole process. If every caller set it and set it back, one that leaves
    would give others, who still compute, their threads back, and the last might leave the limit behind for good.
    """

    def __init__(self) -> None:
        self.lock, self.n_inside = Lock(), 0
        self.limits: Any = None

    def enter(self) -> None:
        """Begin the limit, unless it holds for others already."""
        with self.lock:
            if self.n_inside == 0:
                self.limits = threadpool_limits(1, user_api="blas")
            self.n_inside += 1

    def leave(self) -> None:
        """End the limit with the last who needed it."""
        with self.lock:
            self.n_inside -= 1
            if self.n_inside == 0:
                self.limits.restore_original_limits()


_shared = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, whoever else of this process asks for the same meanwhile.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    _shared.enter()
    try:
        yield
    finally:
        _shared.leave()
