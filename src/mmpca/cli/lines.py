"""How far a run is, as plain lines for a pipe: not too many of them."""

from __future__ import annotations

import math
from time import monotonic

from mmpca.cli import screen

SECONDS_BETWEEN_LINES = 5.0


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
        self.next_line = -math.inf if begins_at_once else monotonic() + self.seconds

    def tell(self, line: str, *, is_last: bool = False) -> None:
        """Print the line if it is time for one, or if it is the last."""
        if is_last or monotonic() >= self.next_line:
            self.next_line = monotonic() + self.seconds
            screen.err().print(line, highlight=False, markup=False, soft_wrap=True)
