"""Cells, the parts that a store keeps, and where tasks run."""

import joblib
import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.selection import grid
from mmpca.store import Store


@pytest.fixture(scope="module")
def rows(data):
    return as_counts(data.X)


@pytest.fixture(scope="module")
def cell_options():
    return grid.CellOptions(int(np.random.RandomState(0).randint(2**31)))  # those of the search


def test_topics_predict_every_count_once(rows, cell_options, search):
    two, three = (grid.learn(rows, cell_options, k) for k in (2, 3))
    loss = three.predicted - two.predicted  # (N,)
    results = search.results_
    assert two.n_predicted == three.n_predicted == rows.data.sum()
    np.testing.assert_allclose(results["predictive_error"][:3], np.sqrt(90) * loss.std(ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(results["predictive_error"][3:], 0)  # three topics are best
    assert rows.data.sum() * (results["held_out"][3] - results["held_out"][0]) == pytest.approx(loss.sum(), rel=1e-9)


def test_all_numbers_of_topics_predict_the_same_sample_of_large_data(rows, cell_options):
    two, three = (grid.learn(rows, cell_options, k, n_entries=600) for k in (2, 3))
    assert 0 < two.n_predicted == three.n_predicted < rows.data.sum()
    assert len(two.predicted) == len(three.predicted) < 90


def test_neighbors_never_make_a_cell_worse_and_sometimes_better(rows, cell_options):
    hasty = cell_options._replace(n_init=1, max_epochs=1)
    topics = grid.learn(rows, hasty._replace(n_folds=0), 3)
    fresh = {q: grid.fresh_cell(rows, hasty, topics, q) for q in range(2, 8)}
    walked = grid.walk(rows, hasty, topics, fresh, lambda direction, n_clusters, compute: compute())
    gains = np.array([walked[q].bound - fresh[q].bound for q in fresh])
    assert (gains >= 0).all()
    assert (gains > 1e-6).any()
    assert all(len(np.unique(cell.labels)) == q for q, cell in walked.items())


def test_a_traveling_store_knows_what_it_took_along_and_brings_back_the_rest(tmp_path):
    store = Store(tmp_path, "search")
    store.open({"seed": 0})
    store.write("a", {"bound": -1.5})
    traveling = grid.TravelingStore.take(store, ["a", "b"])
    assert traveling.read("a")["bound"] == -1.5
    assert traveling.read("b") is None
    traveling.write("b", {"bound": -2.5})
    assert traveling.added == {"b": {"bound": -2.5}}
    assert store.read("b") is None


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_backends_of_joblib_itself_are_not_remote(backend):
    with joblib.parallel_config(backend):
        assert not grid._is_remote()
