"""Data with a clear answer, and a search of it."""

import numpy as np
import pytest

from mmpca import MMPCASearch
from mmpca.simulate import simulate_mmpca, sparse_topics


@pytest.fixture(scope="session")
def data():
    """Return 90 rows in three clear clusters of three topics."""
    topics = sparse_topics(3, 30, 0.3, random_state=1)
    return simulate_mmpca(
        90, topics=topics, cluster_topics=np.full((3, 3), 0.1) + 0.7 * np.eye(3), lengths=60, random_state=1
    )


@pytest.fixture(scope="session")
def options():
    """Return a small grid around the truth."""
    return {"criterion": "predictive", "n_clusters": (2, 3, 4), "n_topics": (2, 3), "random_state": 0}


@pytest.fixture(scope="session")
def search(data, options):
    """Return a search of this grid."""
    return MMPCASearch(**options).fit(data.X)
