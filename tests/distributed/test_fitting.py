"""A fit on parts is the fit on all rows."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.counts import as_counts
from mmpca.distributed import fit, predict
from mmpca.distributed.crews import Cluster, Threads
from mmpca.distributed.sources import load
from mmpca.errors import CountsError, StoreError
from mmpca.io import CountTable, write_counts

OPTIONS = {"n_clusters": 6, "n_topics": 4, "n_init": 2, "random_state": 0}
EXACT = ("labels_", "components_", "cluster_topics_", "bound_", "icl_", "refit_bound_", "cluster_counts_", "weights_")


def assert_same(model, other):
    for name in EXACT:
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name), err_msg=name)
    assert model.overdispersion_ == pytest.approx(other.overdispersion_, rel=1e-12)


@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_few_rows_in_parts_are_fitted_as_at_hand(X, n_parts, blocks):
    assert_same(fit(MMPCA(**OPTIONS), blocks(X, n_parts)), MMPCA(**OPTIONS).fit(X))


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("n_parts", [3, 7])
def test_many_rows_in_parts_are_fitted_as_at_hand(X, n_parts, blocks):
    model = MMPCA(**OPTIONS).fit(X)
    assert [start.kind for start in model.starts_] == ["kmeans", "random", "sample"]
    assert_same(fit(MMPCA(**OPTIONS), blocks(X, n_parts)), model)
    assert_same(MMPCA(**OPTIONS, n_jobs=2).fit(X), model)
    assert (np.diff(model.bound_history_) >= 0).all()


@pytest.mark.usefixtures("as_if_large")
def test_processes_find_the_same(X, client, blocks):
    # The workers' limits are their own: so many rows go to one worker, and the search of all rows is the client's.
    model = fit(MMPCA(**OPTIONS), blocks(X, 3), client)
    assert_same(fit(MMPCA(**OPTIONS), blocks(X, 7), client), model)
    labels = predict(model, blocks(X, 2), client)
    np.testing.assert_array_equal(labels, model.predict(X))


def test_a_dask_array_and_delayed_blocks_are_taken(X, client, blocks):
    import dask
    import dask.array as da

    model = MMPCA(**OPTIONS).fit(X)
    delayed = [dask.delayed(block) for block in blocks(X, 3)]
    assert_same(fit(MMPCA(**OPTIONS), delayed, client), model)
    array = da.from_array(X.toarray(), chunks=(100, -1)).map_blocks(sparse.csr_matrix)
    assert_same(fit(MMPCA(**OPTIONS), array), model)


def test_files_are_read_by_the_workers(X, client, tmp_path, blocks):
    names = [f"word{v}" for v in range(X.shape[1])]
    paths = []
    for number, block in enumerate(blocks(X, 3)):
        paths.append(tmp_path / f"part{number}.npz")
        write_counts(paths[-1], CountTable(block, None, names, []))
    model = fit(MMPCA(**OPTIONS), paths, client)
    assert_same(model, MMPCA(**OPTIONS).fit(X))
    assert model.feature_names_in_.tolist() == names


# --- faults -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("as_if_large")
def test_a_worker_that_is_killed_in_a_sweep_costs_nothing_but_time(X, blocks):
    from distributed import Client, LocalCluster

    def pids():
        return list(client.run(os.getpid).values())

    killed = []

    def kill(number, progress):
        if not killed:
            killed.append(pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
    with local as cluster, Client(cluster) as client:
        calm = fit(MMPCA(**OPTIONS), blocks(X, 4), client)
        model = fit(MMPCA(**OPTIONS), blocks(X, 4), client, callback=kill)
        assert killed
        assert killed[0] not in pids()
    assert_same(model, calm)


@pytest.mark.usefixtures("as_if_large")
def test_a_fit_that_was_broken_off_goes_on_from_its_checkpoint(X, tmp_path, monkeypatch, blocks):
    path = tmp_path / "checkpoint.npz"

    class Crash(Exception):
        pass

    def crash(number, progress):
        if progress.epoch == 2:
            raise Crash

    with pytest.raises(Crash):
        fit(MMPCA(**OPTIONS), blocks(X, 3), checkpoint=path, callback=crash)
    with np.load(path) as kept:
        labels, beta = kept["labels"], kept["beta"]
    assert len(labels) == 300
    monkeypatch.setattr(MMPCA, "_topics", lambda *_: pytest.fail("the topics are known"))
    model = fit(MMPCA(**OPTIONS), blocks(X, 3), checkpoint=path)
    assert model.starts_[0].kind == "checkpoint"
    assert model.converged_
    start = MMPCA(**OPTIONS | {"start": labels, "topics": beta, "max_epochs": 0}).fit(X)
    assert model.bound_history_[0] == pytest.approx(start.bound_, rel=1e-12)
    assert model.bound_ >= start.bound_


def test_a_checkpoint_of_other_data_or_parameters_is_refused(X, tmp_path, blocks):
    path = tmp_path / "checkpoint.npz"
    fit(MMPCA(**OPTIONS), blocks(X, 2), checkpoint=path)
    with pytest.raises(StoreError, match="belongs to another fit: its n_topics is 4, here it is 3"):
        fit(MMPCA(**OPTIONS | {"n_topics": 3}), blocks(X, 2), checkpoint=path)
    with pytest.raises(StoreError, match="belongs to another fit: its data is"):
        fit(MMPCA(**OPTIONS), blocks(X[::-1] * 2, 2), checkpoint=path)
    path.write_bytes(b"cut short")
    with pytest.raises(StoreError, match="cannot be read"):
        fit(MMPCA(**OPTIONS), blocks(X, 2), checkpoint=path)


def test_no_thread_is_left_behind(X, blocks):
    before = set(threading.enumerate())
    fit(MMPCA(**OPTIONS), blocks(X, 2))
    with pytest.raises(CountsError):
        fit(MMPCA(**OPTIONS), [X, -X])
    assert set(threading.enumerate()) <= before


# --- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X: [], TypeError, "X must be a dask array of row blocks, a list of blocks"),
        (lambda X: X, TypeError, "X must be a dask array of row blocks"),
        (lambda X: [X, X[:, :900]], CountsError, "block 0 has [0-9]+ and block 1 has 900"),
        (lambda X: [X, -X], CountsError, "block 1 of X"),
        (lambda X: [X[:0]], CountsError, "all of its blocks are empty"),
        (lambda X: [X[:5]], ValueError, "n_clusters=6 clusters need as many rows, but n_samples = 5"),
    ],
)
def test_bad_data_are_refused(X, make, error, message):
    with pytest.raises(error, match=message):
        fit(MMPCA(**OPTIONS), make(X))


def test_columns_in_blocks_are_refused(X):
    import dask.array as da

    with pytest.raises(ValueError, match="divided by rows alone, but it has 2 blocks of columns"):
        fit(MMPCA(**OPTIONS), da.from_array(X.toarray(), chunks=(100, X.shape[1] // 2 + 1)))


def test_another_algorithm_is_refused(X, blocks):
    with pytest.raises(ValueError, match="algorithm must be 'greedy' for rows in parts, but it is 'vbem'"):
        fit(MMPCA(**OPTIONS, algorithm="vbem"), blocks(X, 2))


def test_predicting_other_features_is_refused(X, blocks):
    model = fit(MMPCA(**OPTIONS), blocks(X, 2))
    with pytest.raises(ValueError, match="features that the model was fitted to, but it has 5"):
        predict(model, [X[:, :5]])


def test_empty_blocks_are_passed_over(X):
    loaded = load([X[:10], X[:0], X[10:]], Threads(ThreadPoolExecutor(1)), stabilize=None)
    assert len(loaded.parts.futures) == 2
    assert loaded.parts.n_rows == 300


def test_a_cluster_sends_a_tuple_as_one_value(client):
    crew = Cluster(client)
    assert crew.gather([crew.submit(len, crew.send((1, 2, 3)))]) == [3]
    assert crew.gather([crew.send(as_counts([[1, 2]]))])[0].n_features == 2
