"""A small problem in parts, a cluster of two processes, and one of a process with two threads."""

from contextlib import contextmanager

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.distributed import fit
from mmpca.engine import regroup
from mmpca.model import searching
from mmpca.simulate import paper_design
from mmpca.topics import lda


@pytest.fixture(scope="session")
def data():
    """Return 300 rows of the paper's design, with noise that leaves borderline rows."""
    return paper_design(n_samples=300, noise=0.3, random_state=0)


@pytest.fixture(scope="session")
def X(data):
    """Return the counts."""
    return data.X


# Limits under which a few hundred rows are many: starts and splits are tried on some, topics are refined on all.
LIMITS = (
    (searching, "SAMPLED_ROWS", 150),
    (regroup, "SPLIT_ROWS", 30),
    (lda, "SEARCH_WORK", 4 * 8_000),
    (lda, "SEARCH_COVER", 1),
    (lda, "FINAL_WORK", 4 * 16_000),
)


def treat_as_large(monkeypatch):
    """Treat a few hundred rows as many in this process."""
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def as_if_large(monkeypatch):
    """Treat a few hundred rows as many."""
    treat_as_large(monkeypatch)


@pytest.fixture
def workers_as_if_large(as_if_large):
    """Return a context in which the workers of a client treat a few hundred rows as many, as this process does."""
    large = {(module.__name__, name): value for module, name, value in LIMITS}

    def exchange(values):
        from importlib import import_module

        before = {}
        for (module, name), value in values.items():
            before[module, name] = getattr(import_module(module), name)
            setattr(import_module(module), name, value)
        return before

    @contextmanager
    def treated(client):
        before = client.run(exchange, large)
        try:
            yield
        finally:
            client.run(exchange, next(iter(before.values())))

    return treated


@pytest.fixture(scope="session")
def options():
    """Return parameters of a model for these rows."""
    return {"n_clusters": 6, "n_topics": 4, "n_init": 2, "random_state": 0}


@pytest.fixture(scope="session")
def at_hand(X, options):
    """Return the model that is fitted to the rows at hand."""
    return MMPCA(**options).fit(X)


@pytest.fixture(scope="session")
def moving(data, options):
    """Return parameters of a search of all rows that has many of them to move, and nothing to learn before."""
    labels = np.random.default_rng(0).permutation(np.arange(300) % 6)
    return options | {"topics": data.topics, "start": labels, "n_init": 1}


@pytest.fixture(scope="session")
def on_cluster(X, client, blocks, options):
    """Return the model that two processes fit to three parts, as if the rows were many."""
    # The workers' limits are their own: so many rows go to one worker, and the search of all rows is the client's.
    with pytest.MonkeyPatch.context() as monkeypatch:
        treat_as_large(monkeypatch)
        return fit(MMPCA(**options), blocks(X, 3), client)


def connected(n_workers, n_threads, *, is_default):
    """Yield the client of worker processes with as many threads each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=n_threads, processes=True, dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster, set_as_default=is_default) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes with a thread each."""
    yield from connected(2, 1, is_default=True)


@pytest.fixture(scope="session")
def threaded_client():
    """Return the client of one worker process with two threads."""
    yield from connected(1, 2, is_default=False)


@pytest.fixture(scope="session")
def assert_same():
    """Return a function that requires two models to have found the same, but for times, and names that one has not."""

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
def blocks():
    """Return a function that divides rows into parts of unequal sizes."""

    def divided(X, n_parts):
        cuts = np.sort(np.random.default_rng(n_parts).choice(np.arange(1, X.shape[0]), n_parts - 1, replace=False))
        return [X[first:last] for first, last in zip([0, *cuts], [*cuts, X.shape[0]], strict=True)]

    return divided
