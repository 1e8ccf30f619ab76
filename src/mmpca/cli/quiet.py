"""Warnings and messages of what the command line sees to itself."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Let a sparse matrix, which has no names, pass for the named columns that it was brought into the order of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


@contextmanager
def without_dask_messages() -> Iterator[None]:
    """Let Dask's client, which shows a traceback where its scheduler has gone, leave the error to the command."""
    logger = logging.getLogger("distributed.client")
    logger.addFilter(_nothing)  # not a level, which Dask sets itself when it is imported
    try:
        yield
    finally:
        logger.removeFilter(_nothing)


def _nothing(record: logging.LogRecord) -> bool:
    return False
