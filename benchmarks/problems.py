"""Data for the benchmarks: the paper's design, a simulated corpus of any size, and simulated text."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca import engine
from mmpca.counts import Counts, as_counts
from mmpca.model.starts import kmeans_labels, random_labels
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics import fit_lda, topic_shares

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

ALPHA = 1.0  # prior of the clusters' topic proportions: the estimator's default
BLEND = 0.2  # weight of the mean profile in the topics given to the search, which are never the true ones
PERTURBED = 0.05  # share of the labels of a good start that are redrawn at random
TEXTS = ("acl_venues", "medical_abstracts_test")  # folders with a file counts.mtx.gz


class Problem(NamedTuple):
    """Counts, topics to search with, and the truth."""

    X: sparse.csr_array  # (N, V)
    rows: Counts  # the same for the engine
    beta: Array  # (K, V)
    labels: Labels  # the true ones, (N,)
    n_clusters: int

    def build(self, labels: Labels) -> engine.State:
        """Return the state of a partition."""
        return engine.build(self.rows, labels, n_clusters=self.n_clusters, beta=self.beta, alpha=ALPHA)

    @property
    def nnz_per_row(self) -> float:
        """Mean number of distinct features in a row."""
        return self.rows.nnz / self.rows.n_rows


class Sizes(NamedTuple):
    """Size of a corpus."""

    n_samples: int = 20_000
    n_features: int = 20_000
    n_clusters: int = 20
    n_topics: int = 20
    length: int = 80  # mean total of a row


FULL, QUICK = Sizes(), Sizes(n_samples=4_000, n_features=4_000, n_clusters=10, n_topics=10)


@cache
def paper_problem() -> Problem:
    """Return the paper's design with noise 0.2 and topics learned from its rows."""
    data = paper_design(noise=0.2, random_state=0)
    rows = as_counts(data.X)
    n_clusters, n_topics = data.cluster_topics.shape
    beta = fit_lda(rows, n_topics, rng=np.random.default_rng(0)).beta
    return Problem(data.X, rows, beta, data.labels.astype(np.int32), n_clusters)


@cache
def corpus(sizes: Sizes) -> Problem:
    """Return counts from sparse topics, with rows of random length and clusters of a few topics each."""
    rng = np.random.default_rng(0)
    topics = sparse_topics(sizes.n_topics, sizes.n_features, concentration=0.1, random_state=rng)
    data = simulate_mmpca(
        sizes.n_samples,
        topics=topics,
        cluster_topics=rng.dirichlet(np.full(sizes.n_topics, 0.3), sizes.n_clusters),
        lengths=np.maximum(rng.poisson(sizes.length, sizes.n_samples), 1),
        noise=0.1,
        random_state=rng,
    )
    beta = (1 - BLEND) * topics + BLEND * topics.mean(axis=0)
    return Problem(data.X, as_counts(data.X), beta, data.labels.astype(np.int32), sizes.n_clusters)


@cache
def start_labels(sizes: Sizes, kind: str) -> Labels:
    """Return labels from which a search of the corpus starts.

    "random", "k-means", "truth", or one of the latter two with some labels redrawn: "k-means, 5 % perturbed".
    """
    problem, rng = corpus(sizes), np.random.default_rng(1)
    if kind == "random":
        return random_labels(problem.rows.n_rows, problem.n_clusters, rng)
    if kind == "k-means":
        return kmeans_labels(topic_shares(problem.rows, problem.beta, prior=ALPHA), problem.n_clusters, rng)
    if kind == "truth":
        return problem.labels
    labels = start_labels(sizes, kind.split(",")[0]).copy()
    is_drawn = rng.random(len(labels)) < PERTURBED
    labels[is_drawn] = rng.integers(problem.n_clusters, size=is_drawn.sum())
    return labels


def simulated_text(n_topics: int = 20) -> sparse.csr_array:
    """Simulate short rows over many features, each about a few of the topics."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(n_topics, 0.1), 3_000)
    topics = sparse_topics(n_topics, 4_000, concentration=0.05, random_state=rng)
    return simulate_mmpca(3_000, topics=topics, cluster_topics=shares, lengths=80, random_state=rng).X
