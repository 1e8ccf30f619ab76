"""The methods to compare, by name."""

from __future__ import annotations

from typing import Any

from mmpca.baselines import (
    GMMLDA,
    NMFEM,
    DirichletMultinomialMixture,
    KMeansLDA,
    LDAMap,
    MultinomialMixture,
    NMFClustering,
    PoissonMixture,
    SphericalKMeans,
)
from mmpca.model import MMPCA
from mmpca.topics import LDA


def all_methods(n_clusters: int, n_topics: int, random_state: Any = None) -> dict[str, Any]:
    """Return MMPCA and every rival, unfitted, by the name it has in tables.

    Rivals in the space of an LDA come twice: on scikit-learn's LDA, and on the one that MMPCA starts from, whose prior
    is chosen from the data.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics, for the methods that have any.
    random_state : int, RandomState instance or None, default=None
        Seed of each method.

    Returns
    -------
    dict of estimator

    Examples
    --------
    >>> from mmpca.evaluation import all_methods
    >>> list(all_methods(6, 4))[:3]
    ['MMPCA', 'GMM on LDA', 'GMM on LDA (mmpca)']
    """
    seed = {"random_state": random_state}
    # The package's LDA has starts of its own.
    own = {"lda": LDA(), "n_init_lda": 1, **seed}
    return {
        "MMPCA": MMPCA(n_clusters, n_topics, **seed),
        "GMM on LDA": GMMLDA(n_clusters, n_topics, **seed),
        "GMM on LDA (mmpca)": GMMLDA(n_clusters, n_topics, **own),
        "k-means on LDA": KMeansLDA(n_clusters, n_topics, **seed),
        "k-means on LDA (mmpca)": KMeansLDA(n_clusters, n_topics, **own),
        "LDA": LDAMap(n_clusters, **seed),
        "LDA (mmpca)": LDAMap(n_clusters, lda=LDA(), n_init=1, **seed),
        "NMF-EM": NMFEM(n_clusters, n_topics, **seed),
        "multinomial mixture": MultinomialMixture(n_clusters, **seed),
        "Poisson mixture": PoissonMixture(n_clusters, **seed),
        "Dirichlet-multinomial mixture": DirichletMultinomialMixture(n_clusters, **seed),
        "spherical k-means": SphericalKMeans(n_clusters, **seed),
        "NMF": NMFClustering(n_clusters, **seed),
    }
