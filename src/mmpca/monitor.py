"""Progress, interruption and history of a computation, in one object that its parts report to."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from threading import Event, Lock
from time import monotonic
from typing import IO, Any, NamedTuple

from numpy.typing import NDArray

SHOWN_AFTER, SHOWN_EVERY = 2.0, 0.25  # seconds until progress is shown by default, and between two lines
PACE_SECONDS, PACE_SHARE = 1.0, 0.02  # time and share of a stage that must pass before the time left is estimated

LINE_WIDTH = 79

logger = logging.getLogger("mmpca")


class Progress(NamedTuple):
    """State of a running computation; the argument of every callback.

    Attributes
    ----------
    stage : str
        Name of the running stage, such as "topics" or "search"; "done" at the end.
    text : str
        Description of the current work, for users.
    n_done, n_steps : float
        Number of finished steps of the stage, and of all its steps; `n_steps` is 0 if that is unknown.
    seconds_left : float or None
        Time left in the stage at its current pace; None while it is too early to tell.
    start, epoch : int
        Number of the start and of its epoch, both from 1; 0 outside a search, and `epoch` is 0 between two epochs.
    n_moves : int
        Rows moved in the epoch so far.
    bound : float or None
        Bound after the last finished epoch.

    Examples
    --------
    A callback that records the stages of a fit:

    >>> from mmpca import MMPCA
    >>> from mmpca.simulate import paper_design
    >>> stages = []
    >>> X = paper_design(n_samples=40, random_state=0).X
    >>> model = MMPCA(2, 2, random_state=0).fit(X, callback=lambda progress: stages.append(progress.stage))
    >>> stages[-1]
    'done'
    """

    stage: str
    text: str
    n_done: float = 0
    n_steps: float = 0
    seconds_left: float | None = None
    start: int = 0
    epoch: int = 0
    n_moves: int = 0
    bound: float | None = None

    @property
    def share(self) -> float | None:
        """Finished share of the stage, None if it is unknown."""
        return min(1.0, self.n_done / self.n_steps) if self.n_steps else None


Callback = Callable[[Progress], object]


class LineOfProgress:
    """Callback that shows progress in a single line, once a computation has taken two seconds.

    Parameters
    ----------
    stream : text stream
        A terminal, or the output of a notebook cell.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> show = LineOfProgress(stream, clock=iter([0.0, 1.0, 3.0, 3.1]).__next__)
    >>> show(Progress("topics", "learning topics", 1, 4))  # after one second
    >>> stream.getvalue()
    ''
    >>> show(Progress("topics", "learning topics", 2, 4, 3.0))
    >>> stream.getvalue().strip()
    'mmpca: learning topics, 50%, about 3 s left'
    """

    def __init__(self, stream: IO[str], clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock, self._width = stream, clock, 0
        self._next = clock() + SHOWN_AFTER

    def __call__(self, progress: Progress) -> None:
        """Overwrite the line if one is due; erase it at the end."""
        if progress.stage == "done":
            self._write("")
            return
        now = self._clock()
        if now < self._next:
            return
        self._next = now + SHOWN_EVERY
        parts = [progress.text]
        if progress.share is not None:
            parts.append(f"{progress.share:.0%}")
        if progress.seconds_left is not None:
            parts.append(f"about {progress.seconds_left:,.0f} s left")
        self._write(f"mmpca: {', '.join(parts)}"[:LINE_WIDTH])

    def _write(self, line: str) -> None:
        # The cursor returns to the start of the line, so other output overwrites it.
        if line or self._width:
            self._stream.write(f"\r{line:<{self._width}}\r")
            self._stream.flush()
        self._width = len(line)


def default_display() -> Callback | None:
    """Return a display if standard error is a terminal or the output of a notebook; None otherwise."""
    shell = sys.modules.get("IPython")
    kinds = () if shell is None else type(shell.get_ipython()).__mro__
    is_notebook = any(kind.__name__ == "ZMQInteractiveShell" for kind in kinds)
    stream = sys.stderr
    return LineOfProgress(stream) if stream is not None and (is_notebook or stream.isatty()) else None


class Monitor:
    """Reports progress to a callback and a log, and remembers a request to stop.

    The parts of a computation call :meth:`begin` and :meth:`step`, and check :attr:`is_stopped` where they can stop.
    A pickled copy reports nothing, because the callback stays in this process.

    Parameters
    ----------
    callback : callable, optional
        Called with a `Progress`, by one thread at a time; a true return value asks the computation to stop.
    verbose : int or None
        1 logs each start to the logger "mmpca", 2 each epoch as well. None shows progress on a terminal or in a
        notebook, unless there is a callback.
    checkpoint : callable, optional
        Called with the labels after each epoch over all rows.
    clock : callable
        Returns seconds.

    Attributes
    ----------
    is_stopped : bool
        Whether the computation should stop at the next opportunity.

    Examples
    --------
    >>> reports = []
    >>> monitor = Monitor(reports.append, clock=iter([0, 30]).__next__)
    >>> monitor.begin("topics", "learning topics", n_steps=4)
    >>> monitor.step()
    >>> reports[-1].share, reports[-1].seconds_left
    (0.25, 90.0)
    """

    def __init__(
        self,
        callback: Callback | None = None,
        *,
        verbose: int | None = 0,
        checkpoint: Callable[[NDArray[Any]], object] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if callback is None and verbose is None:
            callback = default_display()
        self.verbose, self.checkpoint, self.is_stopped = verbose or 0, checkpoint, False
        self._callback, self._clock, self._lock = callback, clock, Lock()
        self._stage, self._text, self._n_done, self._n_steps, self._began = "", "", 0.0, 0.0, 0.0
        if verbose:
            _show_log()

    def __reduce__(self) -> tuple[Any, ...]:
        return Monitor, ()

    def stop(self) -> None:
        """Ask the computation to stop."""
        self.is_stopped = True

    def silent(self) -> Monitor:
        """Return a monitor for a part of the work whose stages are not reported, but which a callback can stop."""
        return Monitor(lambda _: self.poll())

    def poll(self) -> bool:
        """Give the callback a chance to stop the computation; return True if it should stop."""
        self.step(0)
        return self.is_stopped

    def begin(self, stage: str, text: str, n_steps: float = 0) -> None:
        """Begin a stage; `n_steps` is 0 if the number of steps is unknown."""
        with self._lock:
            self._stage, self._text, self._n_done, self._n_steps = stage, text, 0.0, n_steps
            self._began = self._clock()
            self._report(Progress(stage, text, 0.0, n_steps))

    def step(self, n_steps: float = 1, text: str | None = None, **search: Any) -> None:
        """Report that `n_steps` more steps are finished.

        Parameters
        ----------
        n_steps : float
        text : str, optional
            What comes next.
        **search : int or float
            Attributes of :class:`Progress` that describe a search: `start`, `epoch`, `n_moves`, `bound`.
        """
        with self._lock:
            self._n_done += n_steps
            self._text = self._text if text is None else text
            elapsed, left = self._clock() - self._began, None
            if self._n_steps and elapsed >= PACE_SECONDS and self._n_done >= PACE_SHARE * self._n_steps:
                left = elapsed * max(0.0, self._n_steps - self._n_done) / self._n_done
            self._report(Progress(self._stage, self._text, self._n_done, self._n_steps, left, **search))

    def end(self) -> None:
        """Report that the whole computation is finished."""
        with self._lock:
            self._report(Progress("done", "done", 1, 1, 0.0))

    def _report(self, progress: Progress) -> None:
        """Call the callback; the lock is held, so reports arrive in order."""
        if self._callback is not None and self._callback(progress):
            self.is_stopped = True


def _show_log() -> None:
    """Send log messages to standard error if logging has not been set up."""
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


class History:
    """The history of one search: the bound and the number of moves after each epoch, reported to a `Monitor`.

    Parameters
    ----------
    monitor : Monitor, optional
    start : int
        Number of the start, from 1; 0 for the search over all rows that follows starts on a sample.
    cancel : Event, optional
        Set from outside when the result of this search is no longer needed.

    Attributes
    ----------
    bounds : list of float
        Bound at the start, then after each epoch.
    n_moves : list of int
        Moves in each epoch.
    n_undone : int
        Epochs that lowered the bound and were undone; they are not in the lists.
    converged : bool
        Whether the last epoch made no move.
    interrupted : bool
        Whether the search was stopped by Ctrl-C or by the callback.
    """

    def __init__(self, monitor: Monitor | None = None, *, start: int = 1, cancel: Event | None = None) -> None:
        self.monitor = Monitor() if monitor is None else monitor
        self.start, self._cancel = start, cancel
        self.bounds: list[float] = []
        self.n_moves: list[int] = []
        self.n_undone = 0
        self.converged, self.interrupted = False, False
        self.n_done, self.n_moves_now = 0, 0  # in the running pass, in the running epoch

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_cancel": None}  # an event cannot be pickled

    @property
    def n_epochs(self) -> int:
        """Number of finished epochs, including a last one without a move."""
        return len(self.n_moves)

    @property
    def is_cancelled(self) -> bool:
        """True if the result of this search is no longer needed."""
        return self._cancel is not None and self._cancel.is_set()

    def block_done(self, n_rows: int, n_moves: int) -> None:
        """Report a block of visited rows; the search is interrupted if the callback asks for it."""
        self.n_done += n_rows
        self.n_moves_now += n_moves
        bound, epoch = self.bounds[-1] if self.bounds else None, self.n_epochs + 1
        work = f"epoch {epoch}, {self.n_moves_now:,} moves" + ("" if bound is None else f", bound {bound:,.1f}")
        self.report(work, epoch=epoch, n_moves=self.n_moves_now, bound=bound)

    def report(self, work: str, **search: Any) -> bool:
        """Report work of the search, such as merges between two epochs; return False if the search is interrupted."""
        of = f"start {self.start}" if self.start else "all rows"
        self.monitor.step(0, f"{of}, {work}", start=self.start, **search)
        self.interrupted |= self.monitor.is_stopped or self.is_cancelled
        return not self.interrupted

    def end_epoch(self, bound: float, labels: NDArray[Any]) -> None:
        """Record the bound and the number of moves of an epoch; log them, and save the labels of all rows."""
        self.bounds.append(bound)
        self.n_moves.append(self.n_moves_now)
        self.n_done, self.n_moves_now = 0, 0
        if self.monitor.verbose >= 2:
            logger.info("start %d, epoch %d: %d moves", self.start, self.n_epochs, self.n_moves[-1])
        if self.monitor.checkpoint is not None and self.start == 0:
            self.monitor.checkpoint(labels)
