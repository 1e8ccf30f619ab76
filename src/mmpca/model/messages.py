"""What a fit says while it runs, through the logger "mmpca"."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mmpca import engine
from mmpca.model.starts import Callback, Outcome

logger = logging.getLogger("mmpca")


def be_heard() -> None:
    """Let messages reach standard error where logging has not been set up."""
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


def telling(callback: Callback | None, verbose: int) -> Callback | None:
    """Return the callback, telling of each epoch on the way where asked to."""
    if verbose < 2:
        return callback
    be_heard()
    told: set[tuple[int, int]] = set()

    def tell(number: int, progress: engine.Progress) -> object:
        if progress.n_done == progress.n_rows and (number, progress.epoch) not in told:
            told.add((number, progress.epoch))  # the last epoch looks twice
            logger.info("start %d, epoch %d: %d moves", number + 1, progress.epoch, progress.n_moves)
        return callback(number, progress) if callback is not None else None

    return tell


def tell_of_starts(outcomes: Sequence[Outcome]) -> None:
    """Say where each start ended."""
    be_heard()
    for number, (start, bound, *_, run, _) in enumerate(outcomes, start=1):
        logger.info("start %d (%s): bound %.3f after %d epochs", number, start.kind, bound, run.n_epochs)
