"""Progress reports, requests to stop, the log, and the history of a search."""

import io
import logging
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import numpy as np
import pytest

from mmpca.monitor import PACE_SECONDS, PACE_SHARE, History, LineOfProgress, Monitor, Progress

LABELS = np.zeros(4, dtype=np.int32)


class Clock:
    """A clock that only moves when a test moves it."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reports():
    return []


@pytest.fixture
def monitor(reports, clock):
    return Monitor(reports.append, clock=clock)


# --- progress ---------------------------------------------------------------------------------------------------


def test_every_stage_and_step_is_reported_with_its_share(monitor, reports):
    monitor.begin("topics", "learning", n_steps=4)
    monitor.step()
    monitor.step(2, "almost there")
    monitor.begin("refit", "refitting")
    monitor.end()
    assert [(report.stage, report.text, report.n_done, report.share) for report in reports] == [
        ("topics", "learning", 0, 0.0),
        ("topics", "learning", 1, 0.25),
        ("topics", "almost there", 3, 0.75),
        ("refit", "refitting", 0, None),
        ("done", "done", 1, 1.0),
    ]
    assert reports[-1].seconds_left == 0.0


def test_the_share_is_never_more_than_one():
    assert Progress("topics", "", n_done=7, n_steps=3).share == 1.0


def test_the_time_left_follows_the_pace_of_the_running_stage_alone(monitor, reports, clock):
    monitor.begin("topics", "", n_steps=10)
    clock.now += 1000
    monitor.step(10)
    monitor.begin("search", "", n_steps=4)
    clock.now += 30
    monitor.step()
    assert reports[-1].seconds_left == pytest.approx(90.0)
    clock.now += 10
    monitor.step()
    assert reports[-1].seconds_left == pytest.approx(40.0)


def test_steps_beyond_the_expected_number_leave_no_negative_time(monitor, reports, clock):
    monitor.begin("starts", "", n_steps=2)
    clock.now += 60
    monitor.step(5)
    assert (reports[-1].share, reports[-1].seconds_left) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "share", "is_known"),
    [
        (PACE_SECONDS / 2, 0.5, False),
        (PACE_SECONDS, 0.5, True),
        (1000, PACE_SHARE / 2, False),
        (1000, PACE_SHARE, True),
        (1000, 0.0, False),
    ],
)
def test_the_time_left_is_unknown_while_there_is_too_little_to_go_by(monitor, reports, clock, seconds, share, is_known):
    monitor.begin("rows", "", n_steps=1000)
    clock.now += seconds
    monitor.step(1000 * share)
    assert (reports[-1].seconds_left is not None) is is_known


def test_a_stage_of_unknown_length_has_neither_share_nor_time(monitor, reports, clock):
    monitor.begin("topics", "choosing the prior")
    clock.now += 1000
    monitor.step(7)
    assert (reports[-1].n_done, reports[-1].share, reports[-1].seconds_left) == (7, None, None)


def test_reports_of_many_threads_come_one_at_a_time_in_order(clock):
    busy, reports = Lock(), []

    def callback(progress):
        assert busy.acquire(blocking=False), "another report is still being handled"
        reports.append(progress)
        busy.release()

    monitor = Monitor(callback, clock=clock)
    monitor.begin("rows", "", 1000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: monitor.step(), range(1000)))
    assert [report.n_done for report in reports] == list(range(1001))


def test_an_error_in_the_callback_is_raised_and_leaves_the_monitor_usable():
    n_calls = 0

    def fail_once(progress):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise ZeroDivisionError

    monitor = Monitor(fail_once)
    with pytest.raises(ZeroDivisionError):
        monitor.begin("topics", "")
    monitor.step()  # would wait forever if the lock were still held
    assert n_calls == 2
    assert not monitor.is_stopped


def test_a_pickled_copy_reports_nothing():
    def fail(_):
        pytest.fail("the copy has a callback")

    copy = pickle.loads(pickle.dumps(Monitor(fail, verbose=2, checkpoint=fail)))
    copy.begin("search", "", 3)
    copy.step()
    History(copy, start=0).end_epoch(-1.0, LABELS)
    copy.end()
    assert (copy.is_stopped, copy.verbose) == (False, 0)


# --- interruption -----------------------------------------------------------------------------------------------


def test_a_true_answer_of_the_callback_is_remembered(reports):
    def stop_at_two(progress):
        reports.append(progress)
        return progress.n_done == 2

    monitor = Monitor(stop_at_two)
    monitor.begin("topics", "", 5)
    monitor.step()
    assert not monitor.is_stopped
    monitor.step()
    assert monitor.is_stopped
    monitor.step()
    assert monitor.is_stopped
    assert len(reports) == 4


def test_a_computation_can_be_stopped_without_a_callback():
    monitor = Monitor()
    assert not monitor.is_stopped
    monitor.stop()
    assert monitor.is_stopped


def test_a_silent_monitor_reports_no_stages_but_obeys_the_callback():
    reports = []
    monitor = Monitor(lambda report: reports.append(report.stage) or len(reports) > 2)
    monitor.begin("topics", "")
    silent = monitor.silent()
    silent.begin("starts", "")
    assert (reports, silent.is_stopped) == (["topics", "topics"], False)
    silent.step()
    assert silent.is_stopped
    assert monitor.is_stopped
    assert set(reports) == {"topics"}


# --- history of a search ----------------------------------------------------------------------------------------


def test_a_block_is_reported_with_start_epoch_moves_and_bound(monitor, reports):
    monitor.begin("starts", "", 2)
    history = History(monitor, start=2)
    history.block_done(40, 7)
    history.block_done(40, 1)
    history.end_epoch(-10.5, LABELS)
    first, second = reports[1:]
    assert (first.stage, first.start, first.epoch, first.n_moves, first.bound) == ("starts", 2, 1, 7, None)
    assert second.n_moves == 8
    assert (history.bounds, history.n_moves, history.n_epochs) == ([-10.5], [8], 1)
    history.block_done(40, 0)
    assert (reports[-1].epoch, reports[-1].bound) == (2, -10.5)
    assert not history.interrupted


@pytest.mark.parametrize("reason", ["callback", "monitor", "cancel"])
def test_a_search_is_interrupted_by_the_callback_the_monitor_or_its_cancel_event(reason):
    cancel = Event()
    monitor = Monitor((lambda progress: progress.epoch == 1) if reason == "callback" else None)
    history = History(monitor, cancel=cancel)
    if reason == "monitor":
        monitor.stop()
    if reason == "cancel":
        cancel.set()
    history.block_done(10, 1)
    assert history.interrupted
    assert monitor.is_stopped is (reason != "cancel")  # the other searches go on


def test_labels_are_kept_after_each_epoch_over_all_rows_only():
    kept = []
    monitor = Monitor(checkpoint=kept.append)
    History(monitor, start=1).end_epoch(-1.0, LABELS)
    assert kept == []
    History(monitor, start=0).end_epoch(-1.0, LABELS)
    assert len(kept) == 1
    assert kept[0] is LABELS


def test_a_history_travels_between_processes(monitor):
    history = History(monitor, start=3, cancel=Event())
    history.end_epoch(-2.0, LABELS)
    copy = pickle.loads(pickle.dumps(history))
    assert (copy.start, copy.bounds, copy.n_moves) == (3, [-2.0], [0])


# --- the log ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verbose", "n_records"), [(0, 0), (1, 0), (2, 2)])
def test_epochs_are_logged_at_the_second_level(caplog, verbose, n_records):
    with caplog.at_level(logging.INFO, logger="mmpca"):
        history = History(Monitor(verbose=verbose), start=4)
        for bound in (-3.0, -2.0):
            history.end_epoch(bound, LABELS)
    assert [(record.name, record.args) for record in caplog.records] == [
        ("mmpca", (4, epoch, 0)) for epoch in range(1, n_records + 1)
    ]


SHOWN = """
import sys, time
from mmpca.monitor import Monitor

monitor = Monitor(verbose=None)
monitor.begin("topics", "learning topics", 4)
time.sleep(2.1)
monitor.step()
monitor.end()
"""


def test_without_a_terminal_no_progress_is_shown(start_python):
    out, err = start_python("-c", SHOWN).communicate()
    assert (out, err) == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pseudo-terminals")
def test_on_a_terminal_progress_is_shown_and_erased():
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SHOWN], stderr=theirs, stdout=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 1000):
            shown += chunk
    except OSError:  # the terminal was closed at the other end
        pass
    finally:
        process.wait()
        os.close(ours)
    lines = [line for line in shown.decode().split("\r") if line]
    assert lines[0].startswith("mmpca: learning topics")
    assert lines[-1].strip() == ""


def test_progress_is_shown_after_two_seconds_and_not_too_often():
    now = [0.0]
    stream = io.StringIO()
    show = LineOfProgress(stream, clock=lambda: now[0])
    for step in range(1, 41):
        now[0] = step / 10
        show(Progress("topics", f"step {step}", step, 40))
    shown = [line for line in stream.getvalue().split("\r") if line.strip()]
    assert shown[0].startswith("mmpca: step 20,")
    assert len(shown) <= 9
    show(Progress("done", "done"))
    assert stream.getvalue().endswith(" \r")
