"""What is shown of a fit while it runs."""

import io
import re
import time

from rich.console import Console

from mmpca.cli import fitting, lines
from mmpca.stages import Stage


def test_a_pipe_is_told_how_far_a_fit_is_and_how_long_it_will_take(mmpca_command, studio, monkeypatch):
    monkeypatch.setattr("mmpca.cli.lines.SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("mmpca.stages.LEAST_SECONDS", 0.0)
    done = mmpca_command("fit", studio / "X.mtx", "-q", 6, "-k", 4, "--n-init", 2, "--jobs", 1, "--json")
    assert done.code == 0
    told = [line for line in done.err.splitlines() if "done" in line]
    shares = [int(re.fullmatch(r".+; (\d+) % done(, about .+ left)?", line)[1]) for line in told]
    assert shares == sorted(shares)
    assert told[0] == "topics: choosing a prior, pass 1; 0 % done"
    assert any(re.fullmatch(r"topics: pass \d+; \d+ % done, about \d+ s left", line) for line in told)
    of_search = re.compile(r"start 2, epoch \d+, [\d,]+ moves, bound -[\d,.]+; \d+ % done, about \d+ s left")
    assert any(of_search.fullmatch(line) for line in told)
    assert told[-1].startswith("overdispersion; ")


def test_a_fit_that_has_lasted_for_a_while_tells_of_each_new_stage(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("mmpca.cli.lines.monotonic", lambda: now[0])
    monkeypatch.setattr("mmpca.cli.fitting.monotonic", lambda: now[0])
    tell = fitting.StageLines()
    for seconds, name in ((1, "prior"), (2, "topics"), (6, "topics"), (8, "shares"), (8.5, "starts"), (12, "starts")):
        now[0] = seconds
        tell(Stage(name, f"{name} at {seconds}", 0.5, None))
    tell(Stage("done", "done", 1.0, 0.0))
    assert capsys.readouterr().err.splitlines() == [
        "topics at 6; 50 % done",
        "shares at 8; 50 % done",
        "starts at 12; 50 % done",
    ]


def test_a_terminal_has_a_bar_of_the_whole_fit():
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=20)
    with fitting.watch(console) as tell:
        tell(Stage("refining", "topics: pass 3 of 5 over all rows", 0.41, 130.0))
        time.sleep(0.3)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    assert re.search(r"41 % 0:00:0\d about 2 min left topics: pass 3 of 5 over all rows", shown)


def test_lines_that_hurry_keep_a_distance_all_the_same(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(lines, "monotonic", lambda: now[0])
    tell = lines.Lines(5.0)
    for seconds in (0.5, 0.9, 1.1, 1.6, 2.2):
        now[0] = seconds
        tell.hurry()
        tell.hurry()
        tell.tell(f"at {seconds}")
    assert capsys.readouterr().err.splitlines() == ["at 1.1", "at 2.2"]
