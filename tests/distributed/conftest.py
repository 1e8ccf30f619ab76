"""A small problem in blocks, and a Dask cluster of two processes that all tests share."""

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.counts import as_counts
from mmpca.distributed.sources import load
from mmpca.distributed.workers import Workers
from mmpca.engine import SearchOptions
from mmpca.model.starts import Start, search_from_starts
from mmpca.simulate import paper_design


@pytest.fixture(scope="session")
def data():
    """Return 300 rows of the paper's design, with noise that leaves borderline rows."""
    return paper_design(n_samples=300, noise=0.3, random_state=0)


@pytest.fixture(scope="session")
def X(data):
    """Return the counts."""
    return data.X


@pytest.fixture(scope="session")
def rows(X):
    """Return the counts in this process."""
    return as_counts(X)


@pytest.fixture(scope="session")
def options():
    """Return parameters of a model for these rows, with topics from a single source, which takes half as long."""
    return {"n_clusters": 6, "n_topics": 4, "topics": "lda", "n_init": 2, "random_state": 0}


@pytest.fixture(scope="session")
def in_memory(X, options):
    """Return the model fitted to the rows in memory."""
    return MMPCA(**options).fit(X)


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def blocks():
    """Return a function that divides rows into blocks of unequal sizes."""

    def divide(X, n_blocks):
        cuts = np.sort(np.random.default_rng(n_blocks).choice(np.arange(1, X.shape[0]), n_blocks - 1, replace=False))
        return [X[first:last] for first, last in zip([0, *cuts], [*cuts, X.shape[0]], strict=True)]

    return divide


@pytest.fixture
def dask_rows(X, client, blocks):
    """Return the rows in four blocks on the workers."""
    return load(blocks(X, 4), Workers(client)).backend


@pytest.fixture(scope="session")
def search_many(data):
    """Return a function that searches as if 300 rows were too many to be searched in one place."""

    def search(backend, *, starts=None, max_epochs=200, monitor=None):
        if starts is None:  # labels that leave many rows to move
            starts = [Start("given", 0, np.random.default_rng(0).permutation(np.arange(300) % 6).astype(np.int32))]
        options = SearchOptions(n_clusters=6, max_epochs=max_epochs)
        return search_from_starts(backend, data.topics, starts, options, seed=0, sample_size=150, monitor=monitor)

    return search


@pytest.fixture(scope="session")
def assert_same():
    """Return a function that requires two models to be equal, except for times and missing feature names."""

    def fitted(model):
        found = {name: value for name, value in vars(model).items() if name.endswith("_")}
        found["starts_"] = [start._replace(seconds=0.0) for start in found["starts_"]]
        return found

    def compare(model, other):
        found, expected = fitted(model), fitted(other)
        assert set(found) ^ set(expected) <= {"feature_names_in_"}
        assert found.pop("starts_") == expected.pop("starts_")
        for name in set(found) & set(expected):
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)

    return compare


@pytest.fixture(scope="session")
def assert_same_outcomes():
    """Return a function that requires two searches to have gone the same way."""

    def compare(outcomes, others):
        assert len(outcomes) == len(others)
        for outcome, other in zip(outcomes, others, strict=True):
            assert outcome.history.bounds == other.history.bounds
            for name in ("labels", "gamma", "beta", "weights"):
                np.testing.assert_array_equal(getattr(outcome, name), getattr(other, name), err_msg=name)

    return compare
