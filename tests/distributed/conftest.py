"""A small problem in parts, and a cluster of two processes."""

import numpy as np
import pytest

from mmpca.engine import regroup
from mmpca.model import searching
from mmpca.simulate import paper_design
from mmpca.topics import lda


@pytest.fixture(scope="session")
def X():
    """Return 300 rows of the paper's design, with noise that leaves borderline rows."""
    return paper_design(n_samples=300, noise=0.3, random_state=0).X


@pytest.fixture
def as_if_large(monkeypatch):
    """Treat a few hundred rows as many: starts and splits are tried on some, topics are refined on all."""
    monkeypatch.setattr(searching, "SAMPLED_ROWS", 150)
    monkeypatch.setattr(regroup, "SPLIT_ROWS", 30)
    monkeypatch.setattr(lda, "SEARCH_WORK", 4 * 8_000)
    monkeypatch.setattr(lda, "SEARCH_COVER", 1)
    monkeypatch.setattr(lda, "FINAL_WORK", 4 * 16_000)


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes with a thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def blocks():
    """Return a function that divides rows into parts of unequal sizes."""

    def divided(X, n_parts):
        cuts = np.sort(np.random.default_rng(n_parts).choice(np.arange(1, X.shape[0]), n_parts - 1, replace=False))
        return [X[first:last] for first, last in zip([0, *cuts], [*cuts, X.shape[0]], strict=True)]

    return divided
