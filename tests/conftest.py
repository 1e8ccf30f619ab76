"""What all tests share: signals, processes, patience, and random problems; test modules cannot import each other."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mmpca import engine
from mmpca.counts import as_counts
from mmpca.engine.bound import partition_bound
from mmpca.simulate import sparse_topics

# On a busy machine everything takes long, which is no error.
settings.register_profile("patient", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=1000)
settings.load_profile("patient")


def pytest_configure():
    """Receive Ctrl-C even if it is ignored, as under ``nohup make test &``: tests send it, and processes inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def start_python():
    """Return a function that starts Python in a process of its own, with pipes for both outputs.

    At the end of the test the process is killed and its pipes are closed, even if the test fails.
    """
    processes = []

    def start(*arguments, **options):
        command = [sys.executable, *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def largest_file():
    """Return a context in which no file grows beyond a number of bytes: a real error of the disk, on any machine."""
    resource = pytest.importorskip("resource", reason="Windows has no limit on the size of a file")

    @contextmanager
    def limit(n_bytes):
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)

    return limit


class Problem(NamedTuple):
    """What a search starts from: counts, a partition, topics and the prior of their shares."""

    X: np.ndarray  # (N, V)
    labels: np.ndarray  # (N,)
    n_clusters: int
    beta: np.ndarray  # (K, V)
    alpha: float | np.ndarray  # of every topic, or (K,)

    def build(self, labels=None):
        """Return the engine's state of a partition, by default the problem's own."""
        labels = self.labels if labels is None else labels
        rows = as_counts(self.X)
        return engine.build(rows, labels, n_clusters=self.n_clusters, beta=self.beta, alpha=self.alpha)

    def scratch_bound(self, labels):
        """Return the bound of a partition, computed from nothing in plain NumPy."""
        members = np.equal.outer(np.arange(self.n_clusters), labels)  # (Q, N)
        return partition_bound(members @ self.X.astype(float), members.sum(axis=1), beta=self.beta, alpha=self.alpha)


def random_topics(rng, n_topics, n_features, *, concentration, floor):
    """Return topics (K, V) from nearly single features to flat ones; without a floor, small entries are zero."""
    beta = sparse_topics(n_topics, n_features, concentration, rng)
    beta = np.where(beta < 1e-3 * beta.max(axis=1, keepdims=True), 0.0, beta) + floor / n_features
    return beta / beta.sum(axis=1, keepdims=True)


def random_labels(rng, n_rows, n_clusters, *, is_lopsided):
    """Return labels that use every cluster; lopsided ones put as many rows as they can into one of them."""
    others = np.zeros(n_rows, dtype=int) if is_lopsided else rng.integers(n_clusters, size=n_rows)
    return rng.permutation(np.concatenate([np.arange(n_clusters), others[n_clusters:]]))


def random_problem(
    seed,
    *,
    n_rows=40,
    n_features=25,
    n_topics=4,
    n_clusters=3,
    alpha=1.0,
    max_length=200,
    concentration=0.2,
    floor=0.01,
    twins=0.0,
    absent=0.0,
    is_lopsided=False,
):
    """Draw rows from the model, and an unrelated partition to start from.

    There are no more topics than features, and no more clusters than rows.
    A share `twins` of the rows are copies of the first; a share `absent` of the features never occurs, every other
    one of which has no probability either. Row lengths go from 1 to `max_length`, evenly in their logarithm. A pair
    `alpha` stands for priors between its two numbers, one for each topic.
    """
    rng = np.random.default_rng(seed)
    n_topics, n_clusters = min(n_topics, n_features), min(n_clusters, n_rows)
    n_present = max(1, round((1 - absent) * n_features))
    beta = np.zeros((n_topics, n_features))
    beta[:, :n_present] = random_topics(rng, n_topics, n_present, concentration=concentration, floor=floor)
    theta = rng.dirichlet(np.full(n_topics, 0.5), size=n_clusters)
    profile = theta[rng.integers(n_clusters, size=n_rows)] @ beta  # (N, V)
    lengths = np.exp(rng.uniform(0, np.log(max_length), n_rows)).astype(int)
    X = rng.multinomial(lengths, np.minimum(profile, 1))  # rounding may lead beyond one
    X[1:][rng.random(n_rows - 1) < twins] = X[0]
    beta[:, n_present::2] = 0.1 / n_features
    columns = rng.permutation(n_features)
    beta = (beta / beta.sum(axis=1, keepdims=True))[:, columns]
    labels = random_labels(rng, n_rows, n_clusters, is_lopsided=is_lopsided)
    alpha = np.random.default_rng(seed).uniform(*alpha, n_topics) if isinstance(alpha, tuple) else alpha
    return Problem(X[:, columns], labels, n_clusters, beta, alpha)


def random_problems(*, max_rows=60, max_features=60, max_length=1000, alphas=(0.3, 1.0, 1.0, 1.0, 3.0, (1.0, 9.0))):
    """Return a strategy of problems of any shape and character."""
    return st.builds(
        random_problem,
        st.integers(0, 2**32 - 1),
        n_rows=st.integers(2, max_rows),
        n_features=st.integers(1, max_features),
        n_topics=st.integers(1, 8),
        n_clusters=st.integers(1, 7),
        alpha=st.sampled_from(alphas),
        max_length=st.sampled_from([length for length in (1, 10, 100, 1000) if length <= max_length]),
        concentration=st.sampled_from([0.01, 0.1, 1.0, 30.0]),
        floor=st.sampled_from([0.0, 1e-6, 0.01, 0.3]),
        twins=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
        absent=st.sampled_from([0.0, 0.3]),
        is_lopsided=st.booleans(),
    )


@pytest.fixture(scope="session")
def make_problem():
    """Return the function that draws a problem from a seed."""
    return random_problem


@pytest.fixture(scope="session")
def problems():
    """Return the function that makes Hypothesis strategies of problems."""
    return random_problems
