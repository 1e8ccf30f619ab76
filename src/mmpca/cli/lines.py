"""How far a run is, as plain lines for a pipe: not too many of them."""

from __future__ import annotations

import math
from time import monotonic

from mmpca.cli import screen

SECONDS_BETWEEN_LINES = 5.0
LEAST_SECONDS = 1.0  # between two lines, however important the second one is


class Lines:
    """Prints a line on standard error if the last one was some seconds ago.

    Parameters
    ----------
    seconds : float, optional
        Between two lines; `SECONDS_BETWEEN_LINES` by default.
    begins_at_once : bool, default=False
        Print the first line when it comes, instead of after as many seconds.
    """

    def __init__(self, seconds: float | None = None, *, begins_at_once: bool = False) -> None:
        self.seconds = SECONDS_BETWEEN_LINES if seconds is None else seconds
        self.last_line = -math.inf if begins_at_once else monotonic()
        self.next_line = self.last_line + self.seconds

    def hurry(self) -> None:
        """Let the next line be printed when it comes, if the last one is not of the same moment."""
        self.next_line = min(self.next_line, self.last_line + LEAST_SECONDS)

    def tell(self, line: str, *, is_last: bool = False) -> None:
        """Print the line if it is time for one, or if it is the last."""
        if is_last or monotonic() >= self.next_line:
            self.last_line = monotonic()
            self.next_line = self.last_line + self.seconds
            screen.err().print(line, highlight=False, markup=False, soft_wrap=True)
