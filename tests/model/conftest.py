"""Small problems with known truth for the estimator's tests, and how to compare two fits."""

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.engine.bound import partition_bound
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics

CLUSTER_TOPICS = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6], [0.45, 0.45, 0.1]])


@pytest.fixture(scope="session")
def data():
    """Return 80 rows in four clusters that overlap a little, every one of the 25 features present."""
    topics = sparse_topics(3, 25, 0.5, random_state=3)
    drawn = simulate_mmpca(80, topics=topics, cluster_topics=CLUSTER_TOPICS, lengths=60, random_state=3)
    assert (drawn.X.sum(axis=0) > 0).all()
    return drawn


@pytest.fixture(scope="session")
def X(data):
    dense = data.X.toarray()
    dense.setflags(write=False)
    return dense


@pytest.fixture(scope="session")
def paper():
    """Return the paper's design without noise."""
    return paper_design(random_state=0)


@pytest.fixture(scope="session")
def model(X):
    """Return a model fitted to `X`; tests only read it."""
    return MMPCA(4, 3, topics="lda", n_init=3, random_state=0).fit(X)


def fitted_attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


def timeless(model):
    """Return the fitted attributes without the time that the starts took."""
    attributes = fitted_attributes(model)
    return attributes | {"starts_": [report._replace(seconds=0.0) for report in attributes["starts_"]]}


def assert_same_fit(model, other, *, leaving_out=()):
    """Assert that two models agree bit by bit in every fitted attribute."""
    ours, theirs = timeless(model), timeless(other)
    assert ours.keys() - set(leaving_out) == theirs.keys() - set(leaving_out)
    for name in ours.keys() - set(leaving_out):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def numpy_bound(X, labels, *, beta, alpha=1.0):
    """Return the bound of a partition in plain NumPy, nothing taken over from the estimator."""
    members = np.equal.outer(np.arange(labels.max() + 1), labels)  # (Q, N)
    return partition_bound(members @ X.astype(float), members.sum(axis=1), beta=beta, alpha=alpha)


@pytest.fixture(scope="session")
def same_fit():
    return assert_same_fit


@pytest.fixture(scope="session")
def scratch_bound():
    return numpy_bound


@pytest.fixture(scope="session")
def attributes_of():
    return fitted_attributes
