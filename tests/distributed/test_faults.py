"""What dies on the way costs time, or ends with a word; nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.distributed import fit
from mmpca.distributed.crews import Cluster, crew_of
from mmpca.engine import sweeps
from mmpca.errors import ClusterError, CountsError
from mmpca.io import CountTable, write_counts
from mmpca.model import searching


@pytest.fixture
def brief(moving):
    """Return parameters of a search that makes moves in two epochs and stops."""
    return moving | {"max_epochs": 2}


@pytest.mark.usefixtures("as_if_large")
def test_a_worker_that_is_killed_between_two_blocks_costs_nothing_but_time(X, client, blocks, brief, assert_same):
    killed = []

    def kill(number, progress):
        if not killed and progress.epoch == 1 and progress.n_done < progress.n_rows:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    model = fit(MMPCA(**brief), blocks(X, 3), client, callback=kill)
    client.wait_for_workers(2)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert_same(model, MMPCA(**brief).fit(X))


@pytest.mark.usefixtures("as_if_large")
def test_a_worker_that_dies_with_its_rows_in_a_call_costs_nothing_but_time(
    X, client, blocks, brief, assert_same, tmp_path, monkeypatch
):
    dead, propose = tmp_path / "dead", sweeps.propose_rows

    def deadly(*arguments):
        try:
            dead.touch(exist_ok=False)
        except FileExistsError:
            return propose(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(sweeps, "propose_rows", deadly)
    # One part: all rows are lost, whichever worker it is.
    model = fit(MMPCA(**brief), [X], client)
    assert dead.exists()
    client.wait_for_workers(2)
    assert_same(model, MMPCA(**brief).fit(X))


@pytest.mark.usefixtures("as_if_large")
def test_a_fit_that_was_broken_off_goes_on_from_its_checkpoint(X, tmp_path, monkeypatch, blocks, moving):
    path = tmp_path / "checkpoint.npz"

    class Crash(Exception):
        pass

    def crash(number, progress):
        if progress.epoch == 2:
            raise Crash

    with pytest.raises(Crash):
        fit(MMPCA(**moving), blocks(X, 3), checkpoint=path, callback=crash)
    with np.load(path) as kept:
        labels, beta = kept["labels"], kept["beta"]
    assert len(labels) == 300
    with monkeypatch.context() as forbidding:
        forbidding.setattr(MMPCA, "_topics", lambda *_: pytest.fail("the topics are known"))
        model = fit(MMPCA(**moving), blocks(X, 3), checkpoint=path)
    assert model.starts_[0].kind == "checkpoint"
    assert model.converged_
    monkeypatch.setattr(searching, "SAMPLED_ROWS", 50_000)
    start = MMPCA(**moving | {"start": labels, "topics": beta, "max_epochs": 0}).fit(X)
    assert model.bound_history_[0] == pytest.approx(start.bound_, rel=1e-12)
    assert model.bound_ >= start.bound_


@pytest.mark.usefixtures("as_if_large")
def test_a_new_client_goes_on_where_the_cluster_was_lost(X, tmp_path, blocks, moving):
    from distributed import Client, LocalCluster

    path = tmp_path / "checkpoint.npz"
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")

    def close(number, progress):
        if progress.epoch == 2:
            cluster.close()

    with cluster, Client(cluster) as client, pytest.raises(ClusterError, match="What the cluster held is lost"):
        fit(MMPCA(**moving), blocks(X, 3), client, checkpoint=path, callback=close)
    model = fit(MMPCA(**moving), blocks(X, 3), checkpoint=path)
    assert model.starts_[0].kind == "checkpoint"
    assert model.converged_


def test_a_call_that_kills_every_worker_is_given_up_with_advice(client):
    def set_allowed_failures(number, dask_scheduler):
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, number
        return before

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    before = client.run_on_scheduler(set_allowed_failures, 0)
    try:
        with pytest.raises(ClusterError, match=r"died, one after another: .*die.* smaller blocks"):
            Cluster(client).call(die)
    finally:
        client.run_on_scheduler(set_allowed_failures, before)
    client.wait_for_workers(2)


def test_who_waits_for_a_first_worker_is_told(monkeypatch, caplog):
    from distributed import Client, LocalCluster

    monkeypatch.setattr("mmpca.distributed.crews.WORKERLESS_SECONDS", 0.2)
    settings = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**settings) as cluster, Client(cluster, set_as_default=False) as client:
        timer = threading.Timer(1.5, cluster.scale, [1])
        timer.start()
        assert Cluster(client).call(len, [1, 2]) == 2
        timer.join()
        (told,) = [record.getMessage() for record in caplog.records if record.name == "mmpca"]
        assert f"no worker: waiting for one. Start some with `dask worker {cluster.scheduler_address}`" in told
        caplog.clear()
        assert Cluster(client).call(time.sleep, 0.7) is None
    assert not [record for record in caplog.records if record.name == "mmpca"]


def test_an_address_without_a_scheduler_is_told(monkeypatch):
    monkeypatch.setattr("mmpca.distributed.crews.CONNECTING_SECONDS", 1)
    before = set(threading.enumerate())
    with (
        pytest.raises(ConnectionError, match=r"no scheduler at tcp://127.0.0.1:9: .* `dask scheduler`"),
        crew_of("tcp://127.0.0.1:9", 1),
    ):
        pass
    assert set(threading.enumerate()) <= before


def test_ctrl_c_while_nobody_answers_leaves_no_thread():
    before = set(threading.enumerate())
    timer = threading.Timer(0.5, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt), crew_of("tcp://127.0.0.1:9", 1):
        pass
    timer.join()
    assert set(threading.enumerate()) <= before


def test_a_cluster_without_distributed_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install \"mmpca\[dask\]\""), crew_of("tcp://127.0.0.1:9", 1):
        pass


# --- nothing is left behind ---------------------------------------------------------------------------------------


def test_no_thread_is_left_behind(X, blocks, options):
    before = set(threading.enumerate())
    fit(MMPCA(**options, n_jobs=2), blocks(X, 2))
    with pytest.raises(CountsError):
        fit(MMPCA(**options, n_jobs=2), [X, -X])
    assert set(threading.enumerate()) <= before


def test_nothing_is_left_on_a_scheduler_whose_address_was_given(X, client, blocks, options):
    address = client.scheduler.address
    before = client.run_on_scheduler(known_to)
    fit(MMPCA(**options), blocks(X, 2), address)
    with pytest.raises(CountsError):
        fit(MMPCA(**options), [X, -X], address)
    assert_nothing_new(client, before)


def known_to(dask_scheduler):
    return set(dask_scheduler.clients) | set(dask_scheduler.tasks)


def assert_nothing_new(client, before):
    """Require that a scheduler knows no client and no task more than before, as soon as it has heard of their end."""
    deadline = time.monotonic() + 20
    while (new := client.run_on_scheduler(known_to) - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not new


INTERRUPTED = """
import warnings
from mmpca import MMPCA
from mmpca.distributed import fit
from mmpca.errors import InterruptedSearchWarning
from mmpca.io import CountTable, write_counts
from mmpca.model import searching
from mmpca.simulate import paper_design

searching.SAMPLED_ROWS = 300
X = paper_design(n_samples=2000, noise=0.5, random_state=0).X

def tell(number, progress):
    print("searching", flush=True)

with warnings.catch_warnings(record=True) as caught:
    model = MMPCA(6, 4, n_init=1, topics="random", random_state=0, n_jobs=2)
    fit(model, [X[:900], X[900:]], CLIENT, callback=tell)
assert any(issubclass(warning.category, InterruptedSearchWarning) for warning in caught), caught
assert not model.converged_
"""


@pytest.mark.parametrize("place", ["threads", "cluster"])
def test_ctrl_c_keeps_what_was_found_and_leaves_no_process(place, client):
    script = INTERRUPTED.replace("CLIENT", "None" if place == "threads" else repr(client.scheduler.address))
    before = client.run_on_scheduler(known_to)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "searching\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    with pytest.raises(ProcessLookupError):  # nobody of its group is left, and so no port of theirs
        os.killpg(process.pid, 0)
    assert_nothing_new(client, before)


def test_ctrl_c_ends_a_command_on_a_cluster_with_its_code_and_no_traceback(X, client, tmp_path):
    for number, block in enumerate((X[:100], X[100:])):
        write_counts(tmp_path / f"part{number}.npz", CountTable(block, None, None, []))
    command = f"fit part0.npz part1.npz -q 6 -k 4 --n-init 200 --scheduler {client.scheduler.address} -o labels.csv"
    before = client.run_on_scheduler(known_to)
    process = subprocess.Popen(
        [sys.executable, "-m", "mmpca", *command.split()],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
        **{"start_new_session": True, "cwd": tmp_path},
    )
    while process.poll() is None and "_together" not in str(client.processing()):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "interrupted: Nothing was written.\n")
    assert process.returncode == 130
    assert not (tmp_path / "labels.csv").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert_nothing_new(client, before)
