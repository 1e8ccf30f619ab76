"""Baselines: other methods for clustering counts, as scikit-learn estimators that share no code with MMPCA."""

from mmpca.baselines.dirichlet import DirichletMultinomialMixture
from mmpca.baselines.mixtures import NMFEM, MultinomialMixture, PoissonMixture
from mmpca.baselines.tfidf import NMFClustering, SphericalKMeans
from mmpca.baselines.topic_space import GMMLDA, KMeansLDA, LDAMap

__all__ = [
    "GMMLDA",
    "NMFEM",
    "DirichletMultinomialMixture",
    "KMeansLDA",
    "LDAMap",
    "MultinomialMixture",
    "NMFClustering",
    "PoissonMixture",
    "SphericalKMeans",
]
