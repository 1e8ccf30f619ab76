"""Calls on workers: lost workers and schedulers are survived or reported, and nothing is left behind."""

import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from mmpca import MMPCA
from mmpca.distributed import fit
from mmpca.distributed.sources import load
from mmpca.distributed.workers import Workers, open_workers
from mmpca.errors import ClusterError, CountsError
from mmpca.io import CountTable, write_counts
from mmpca.monitor import Monitor

NOBODY = "tcp://127.0.0.1:9"


def call(workers, function, *arguments):
    return workers.gather([workers.submit(function, *arguments)])[0]


def small_cluster(n_workers, n_threads=1, **options):
    """Return a cluster, by default of threads in this process."""
    from distributed import LocalCluster

    options = {"processes": False, "dashboard_address": "127.0.0.1:0"} | options
    return LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **options)


@pytest.fixture
def wait_until_exists():
    """Return a function that occupies a worker until a file exists; workers could not import it from here."""

    def wait(path):
        deadline = time.monotonic() + 600  # no worker stays busy for ever
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return path.exists()

    return wait


# --- lost workers and schedulers --------------------------------------------------------------------------------


def test_a_call_that_kills_every_worker_is_an_error():
    from distributed import Client

    def forbid_failures(dask_scheduler):
        dask_scheduler.allowed_failures = 0

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    # A cluster of its own: no other test waits until its workers are there again.
    with small_cluster(2, processes=True) as cluster, Client(cluster, set_as_default=False) as client:
        client.run_on_scheduler(forbid_failures)
        with pytest.raises(ClusterError):
            call(Workers(client), die)


def test_a_lost_scheduler_is_an_error(X, blocks, search_many):
    from distributed import Client

    with small_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        backend = load(blocks(X, 3), Workers(client)).backend
        with pytest.raises(ClusterError):
            search_many(backend, monitor=Monitor(lambda progress: cluster.close() if progress.epoch == 2 else None))


def test_a_cluster_without_workers_is_logged_once(caplog):
    from distributed import Client

    class Starter(logging.Handler):
        """Adds a worker as soon as the lack of one is logged."""

        def emit(self, record):
            cluster.scale(1)

    logger, starter = logging.getLogger("mmpca"), Starter()
    with small_cluster(0) as cluster, Client(cluster, set_as_default=False) as client:
        workers = Workers(client, empty_seconds=0.1)
        logger.addHandler(starter)
        try:
            assert call(workers, len, [1, 2]) == 2
        finally:
            logger.removeHandler(starter)
        (record,) = [record for record in caplog.records if record.name == "mmpca"]
        assert cluster.scheduler_address in record.getMessage()
        caplog.clear()
        call(workers, time.sleep, 0.4)
    assert not [record for record in caplog.records if record.name == "mmpca"]


def test_blocks_are_grouped_by_the_threads_of_their_workers(client, wait_until_exists, tmp_path):
    from distributed import Client

    workers = Workers(client)
    futures = [workers.submit(len, [number]) for number in range(5)]
    workers.wait(futures)
    groups, holders = workers.groups(futures), client.who_has(futures)
    assert sorted(number for group in groups for number in group) == list(range(5))
    for group in groups:
        assert set.intersection(*(set(holders[futures[number].key]) for number in group))
    running = workers.submit(wait_until_exists, tmp_path / "released")
    assert workers.groups([running, futures[0]]) == [[0], [1]]
    (tmp_path / "released").touch()
    with small_cluster(1, n_threads=2) as cluster, Client(cluster, set_as_default=False) as threaded:
        workers = Workers(threaded)
        futures = [workers.submit(len, [number]) for number in range(5)]
        workers.wait(futures)
        assert workers.groups(futures) == [[0, 2, 4], [1, 3]]
        assert workers.groups(futures[:1]) == [[0]]


def test_an_error_is_raised_without_waiting_for_other_calls(client, wait_until_exists, tmp_path):
    def fail():
        raise ZeroDivisionError

    workers, finished = Workers(client), []
    waiting = workers.submit(wait_until_exists, tmp_path / "released")
    with pytest.raises(ZeroDivisionError):
        workers.wait([waiting, workers.submit(fail)], on_done=lambda: finished.append(True))
    assert not finished
    (tmp_path / "released").touch()
    assert workers.gather([waiting]) == [True]


# --- connecting -------------------------------------------------------------------------------------------------


def test_without_a_client_there_are_no_workers():
    with open_workers(None) as workers:
        assert workers is None


@pytest.mark.parametrize("address", [NOBODY, "tcp://:::"])
def test_an_address_without_a_scheduler_is_an_error_and_leaves_no_thread(address):
    import dask
    import distributed  # noqa: F401 - its settings must be loaded before one of them is changed for a while

    before = set(threading.enumerate())
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(ConnectionError),
        open_workers(address),
    ):
        pass
    assert set(threading.enumerate()) <= before


@contextmanager
def ctrl_c_soon():
    """Interrupt this thread in half a second; on a busy machine, the time must not begin before the context."""
    timer = threading.Timer(0.5, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def test_ctrl_c_while_nobody_answers_leaves_no_thread():
    import distributed  # noqa: F401 - on a busy machine, the import may take longer than the timer

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), ctrl_c_soon(), open_workers(NOBODY):
        pass
    assert set(threading.enumerate()) <= before


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"mmpca\[dask\]"), open_workers(NOBODY):
        pass


# --- nothing is left behind -------------------------------------------------------------------------------------


def test_no_thread_is_left_behind(X, blocks, options):
    before = set(threading.enumerate())
    fit(MMPCA(**options, n_jobs=2), blocks(X, 2))
    with pytest.raises(CountsError):
        fit(MMPCA(**options, n_jobs=2), [X, -X])
    assert set(threading.enumerate()) <= before


def test_nothing_is_left_on_a_scheduler_given_by_its_address(X, blocks, options):
    from distributed import Client

    with small_cluster(2, protocol="tcp") as cluster, Client(cluster, set_as_default=False) as client:
        before = client.run_on_scheduler(known_to)
        fit(MMPCA(**options), blocks(X, 2), cluster.scheduler_address)
        with pytest.raises(CountsError):
            fit(MMPCA(**options), [X, -X], cluster.scheduler_address)
        assert_nothing_new(client, before)


def known_to(dask_scheduler):
    return set(dask_scheduler.clients) | set(dask_scheduler.tasks)


def assert_nothing_new(client, before):
    """Require that a scheduler knows no more clients and tasks than before, once it has heard of their end."""
    deadline = time.monotonic() + 600
    while (new := client.run_on_scheduler(known_to) - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not new


INTERRUPTED = """
from time import sleep

import numpy as np
from mmpca.distributed.sources import load
from mmpca.distributed.workers import open_workers
from mmpca.engine import SearchOptions
from mmpca.model.starts import Start, search_from_starts
from mmpca.monitor import Monitor
from mmpca.simulate import paper_design

data = paper_design(n_samples=2000, noise=0.5, random_state=0)
labels = np.random.default_rng(0).permutation(np.arange(2000) % 6).astype(np.int32)

n_reports = 0

def report(progress):
    global n_reports
    n_reports += progress.epoch > 0
    if progress.epoch and n_reports == 1:
        print("searching", flush=True)
        sleep(3600)  # here Ctrl-C is raised for certain, and not swallowed by a destructor

with open_workers(ADDRESS) as workers:
    backend = load([data.X[:900], data.X[900:]], workers).backend
    starts, monitor = [Start("given", 0, labels)], Monitor(report)
    (outcome,) = search_from_starts(
        backend, data.topics, starts, SearchOptions(6), seed=0, monitor=monitor, sample_size=300
    )
assert monitor.is_stopped
assert len(outcome.labels) == 2000
"""


def assert_no_process_is_left(process):
    with pytest.raises(ProcessLookupError):  # and so no open port
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_ctrl_c_keeps_the_best_state_and_leaves_no_process(start_python, where, client):
    address = None if where == "here" else client.scheduler.address
    before = client.run_on_scheduler(known_to)
    process = start_python("-c", INTERRUPTED.replace("ADDRESS", repr(address)), start_new_session=True)
    assert process.stdout.readline() == "searching\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert_no_process_is_left(process)
    assert_nothing_new(client, before)


def test_ctrl_c_ends_a_command_on_a_cluster_with_its_exit_code_and_no_traceback(start_python, X, client, tmp_path):
    for number, block in enumerate((X[:100], X[100:])):
        write_counts(tmp_path / f"block{number}.npz", CountTable(block, None, None, []))
    command = f"fit block0.npz block1.npz -q 6 -k 4 --n-init 2000 --scheduler {client.scheduler.address} -o labels.csv"
    before = client.run_on_scheduler(known_to)
    process = start_python("-m", "mmpca", *command.split(), cwd=tmp_path, start_new_session=True)
    while process.poll() is None and "_apply" not in str(client.processing()):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not (tmp_path / "labels.csv").exists()
    assert_no_process_is_left(process)
    assert_nothing_new(client, before)
