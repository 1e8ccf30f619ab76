"""A search whose cells are tasks of a Dask cluster."""

import joblib
import numpy as np

from mmpca import MMPCASearch
from mmpca.selection.grid import SharedRows
from mmpca.store import Store

GRID = {
    "criterion": "predictive",
    "n_clusters": (5, 6),
    "n_topics": (3, 4),
    "n_init": 1,
    "n_folds": 2,
    "random_state": 0,
}


def assert_same_search(search, other):
    for name in set(other.results_) - {"seconds"}:
        np.testing.assert_array_equal(search.results_[name], other.results_[name], err_msg=name)
    np.testing.assert_array_equal(search.labels_, other.labels_)
    assert search.best_params_ == other.best_params_


def test_a_cluster_finds_the_same_cells_and_only_the_client_writes_them(X, client, tmp_path, monkeypatch):
    local = MMPCASearch(**GRID, n_jobs=1).fit(X)
    reports, sent, written = [], [], set()
    scatter, write = client.scatter, Store.write

    def counted(data, **options):
        sent.append(data)
        return scatter(data, **options)

    def recorded(store, name, part):
        written.add(name)
        write(store, name, part)

    monkeypatch.setattr(client, "scatter", counted)
    monkeypatch.setattr(Store, "write", recorded)  # in this process only; workers have the original
    with joblib.parallel_config("dask"):
        search = MMPCASearch(**GRID, store=tmp_path).fit(X, callback=reports.append)
    assert_same_search(search, local)
    assert [report.stage for report in reports if report.share == 1] == ["topics", "cells", "neighbors", "done"]
    assert sum(isinstance(value, SharedRows) for value in sent) == 3  # once per stage
    assert len(written) == 2 + 4 + 4
    assert written == {path.stem for path in tmp_path.glob("*.npz")}
    with joblib.parallel_config("dask"):
        again = MMPCASearch(**GRID, store=tmp_path).fit(X)
    assert_same_search(again, local)
    # The times are those of the first run: finished parts came from the store.
    np.testing.assert_array_equal(again.results_["seconds"], search.results_["seconds"])
