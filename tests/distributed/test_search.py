"""Cells of a grid as tasks of a cluster."""

import joblib
import numpy as np
import pytest

from mmpca import MMPCASearch
from mmpca.selection import grid
from mmpca.selection.store import Store

GRID = {"n_clusters": (5, 6), "n_topics": (3, 4), "n_init": 1, "random_state": 0}


@pytest.fixture(scope="module")
def alone(X):
    return MMPCASearch(**GRID, n_jobs=1).fit(X)


def assert_same_search(search, other):
    for name in set(other.results_) - {"seconds"}:
        np.testing.assert_array_equal(search.results_[name], other.results_[name], err_msg=name)
    np.testing.assert_array_equal(search.labels_, other.labels_)
    assert search.best_params_ == other.best_params_


def test_a_cluster_finds_the_same_cells_and_only_the_client_writes_them(X, client, alone, tmp_path, monkeypatch):
    reports, sent, written = [], [], set()
    scatter, keep = client.scatter, Store.keep

    def counted(data, **options):
        sent.append(data)
        return scatter(data, **options)

    def recorded(store, name, part):
        written.add(name)
        keep(store, name, part)

    monkeypatch.setattr(client, "scatter", counted)
    monkeypatch.setattr(Store, "keep", recorded)  # of this process: workers have the class as it is
    with joblib.parallel_config("dask"):
        search = MMPCASearch(**GRID, store=tmp_path).fit(X, callback=reports.append)
    assert_same_search(search, alone)
    assert reports[-1].n_done == reports[-1].n_parts
    assert sum(isinstance(value, grid.Sent) for value in sent) == 3  # topics, cells, neighbours
    assert len(written) == 2 + 4 + 4
    assert written == {path.stem for path in tmp_path.glob("*.npz")}
    with joblib.parallel_config("dask"):
        again = MMPCASearch(**GRID, store=tmp_path).fit(X)
    assert_same_search(again, alone)
    # Finished parts were taken from the folder: the times are those of the first run.
    np.testing.assert_array_equal(again.results_["seconds"], search.results_["seconds"])


def test_joblib_on_this_machine_is_not_away():
    for backend in ("loky", "threading", "sequential"):
        with joblib.parallel_config(backend):
            assert not grid._is_away()
