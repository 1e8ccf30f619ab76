"""Baselines with cheap settings, and data with well-separated clusters."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import LatentDirichletAllocation

from mmpca.baselines import (
    GMMLDA,
    GSDMM,
    NMFEM,
    IntegratedMultinomialMixture,
    KMeansLDA,
    LDAMap,
    MultinomialMixture,
    NMFClustering,
    PoissonMixture,
    PolyaMixture,
    SphericalKMeans,
)


class Sample(NamedTuple):
    """Counts (N, V) and their true clusters (N,)."""

    X: np.ndarray
    labels: np.ndarray


class FirstColumns(TransformerMixin, BaseEstimator):
    """A stand-in for an LDA whose topic shares are known: the first columns, normalized."""

    def __init__(self, n_topics=2):
        self.n_topics = n_topics

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        values = X.toarray()[:, : self.n_topics].astype(float)
        return values / values.sum(axis=1, keepdims=True)


def draw_profiles(rng, profiles, totals, labels):
    """Return multinomial counts of rows with the given totals."""
    return np.array([rng.multinomial(n, profiles[q]) for n, q in zip(totals, labels, strict=True)])


def blocks(seed=0, *, n_clusters=3, n_rows=36, n_features=18, shortest=30, longest=300):
    """Draw clusters that each mostly use their own block of features; row totals differ by a factor of ten."""
    rng = np.random.default_rng(seed)
    owner = np.arange(n_features) % n_clusters
    profiles = np.where(owner == np.arange(n_clusters)[:, None], 1.0, 0.08)
    profiles *= rng.uniform(0.6, 1.4, profiles.shape)
    labels = rng.permutation(np.arange(n_rows) % n_clusters)
    totals = np.exp(rng.uniform(np.log(shortest), np.log(longest), n_rows)).astype(int)
    return Sample(draw_profiles(rng, profiles / profiles.sum(axis=1, keepdims=True), totals, labels), labels)


def all_baselines(n_clusters, **parameters):
    """Return one of each baseline, by name."""
    options = {"n_clusters": n_clusters, "n_init": 2, "random_state": 0, **parameters}
    lda = LatentDirichletAllocation(max_iter=10, max_doc_update_iter=10)
    topics = {**options, "n_topics": 3, "lda": lda, "n_init_lda": 1}
    return {
        "IntegratedMultinomialMixture": IntegratedMultinomialMixture(**options),
        "GMMLDA": GMMLDA(**topics, covariance="spherical"),
        "GSDMM": GSDMM(**options),
        "KMeansLDA": KMeansLDA(**topics),
        "LDAMap": LDAMap(**options, lda=lda),
        "MultinomialMixture": MultinomialMixture(**options),
        "NMFClustering": NMFClustering(**options),
        "NMFEM": NMFEM(**options, n_topics=3),
        "PoissonMixture": PoissonMixture(**options),
        "PoissonMixture cem": PoissonMixture(**options, algorithm="cem"),
        "PolyaMixture": PolyaMixture(**options),
        "SphericalKMeans": SphericalKMeans(**options),
    }


@pytest.fixture(scope="session")
def make_blocks():
    """Return the function that draws well-separated clusters."""
    return blocks


@pytest.fixture(scope="session")
def draw():
    """Return the function that draws counts from profiles."""
    return draw_profiles


@pytest.fixture(scope="session")
def known_shares():
    """Return the class of a transformer with known topic shares."""
    return FirstColumns


@pytest.fixture(params=list(all_baselines(2)))
def make_baseline(request):
    """Return a function that creates a baseline with a given number of clusters."""
    return lambda n_clusters, **parameters: all_baselines(n_clusters, **parameters)[request.param]
