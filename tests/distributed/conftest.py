"""A small problem in parts, and a cluster of two processes."""

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


def treat_as_large(monkeypatch):
    """Treat a few hundred rows as many: starts and splits are tried on some, topics are refined on all."""
    monkeypatch.setattr(searching, "SAMPLED_ROWS", 150)
    monkeypatch.setattr(regroup, "SPLIT_ROWS", 30)
    monkeypatch.setattr(lda, "SEARCH_WORK", 4 * 8_000)
    monkeypatch.setattr(lda, "SEARCH_COVER", 1)
    monkeypatch.setattr(lda, "FINAL_WORK", 4 * 16_000)


@pytest.fixture
def as_if_large(monkeypatch):
    """Treat a few hundred rows as many."""
    treat_as_large(monkeypatch)


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


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes with a thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def assert_same():
    """Return a function that requires two models to have found the same."""
    exact = ("labels_", "components_", "cluster_topics_", "bound_", "icl_", "refit_bound_", "cluster_counts_")

    def compare(model, other):
        for name in exact:
            np.testing.assert_array_equal(getattr(model, name), getattr(other, name), err_msg=name)
        assert model.overdispersion_ == pytest.approx(other.overdispersion_, rel=1e-12)

    return compare


@pytest.fixture(scope="session")
def blocks():
    """Return a function that divides rows into parts of unequal sizes."""

    def divided(X, n_parts):
        cuts = np.sort(np.random.default_rng(n_parts).choice(np.arange(1, X.shape[0]), n_parts - 1, replace=False))
        return [X[first:last] for first, last in zip([0, *cuts], [*cuts, X.shape[0]], strict=True)]

    return divided
