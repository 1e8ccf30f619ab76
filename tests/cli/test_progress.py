"""What is shown of a long computation."""

import io
import re

import pytest

from mmpca.cli.console import LiteralConsole
from mmpca.cli.progress import LineProgress, progress_display
from mmpca.monitor import Progress


@pytest.fixture
def clock():
    """Return a clock that tests set."""

    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def lines(clock):
    """Return a display with lines every 5 seconds, or after 1 second in a new stage."""
    return LineProgress(LiteralConsole(file=io.StringIO(), width=30), interval=5.0, stage_interval=1.0, clock=clock)


def printed(lines):
    return lines.console.file.getvalue().splitlines()


def test_lines_keep_a_distance_which_is_shorter_between_stages(lines, clock):
    for seconds, stage in ((0, "a"), (0.5, "b"), (1, "b"), (2, "b"), (5.9, "b"), (6, "b"), (6.5, "c"), (8, "c")):
        clock.now = seconds
        lines(Progress(stage, f"{stage} at {seconds}"))
    lines(Progress("done", "done"))
    assert printed(lines) == ["a at 0", "b at 1", "b at 6", "c at 8"]


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress("topics", "learning [topics]"), "learning [topics]"),
        (Progress("topics", "learning topics", 1, 4), "learning topics (25%)"),
        (Progress("topics", "learning topics", 1, 4, 130.0), "learning topics (25%, about 2 min left)"),
        (Progress("topics", "learning topics", seconds_left=40.0), "learning topics (about 40 s left)"),
        (Progress("topics", "learning topics", 1, 2, 7200.0), "learning topics (50%, about 2.0 h left)"),
    ],
)
def test_a_line_has_what_is_known(lines, progress, line):
    lines(progress)
    assert printed(lines) == [line]


def shown_on_terminal(*reports):
    console = LiteralConsole(file=io.StringIO(), force_terminal=True, width=100, height=20)
    with progress_display(console) as show:
        for report in reports:
            show(report)  # and once more at the end
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


def test_a_terminal_shows_a_bar_of_the_stage():
    shown = shown_on_terminal(Progress("topics", "pass 3 of [5]", 41, 100, 130.0))
    assert re.search(r"41% 0:0\d:\d\d about 2 min left pass 3 of \[5\]", shown)


def test_a_stage_of_unknown_length_has_no_percentage():
    shown = shown_on_terminal(Progress("topics", "topics", 3, 3), Progress("search", "searching"))
    assert re.search(r"━ +0:0\d:\d\d +searching", shown)
