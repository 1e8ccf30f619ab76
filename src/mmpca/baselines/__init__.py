"""Baselines: other methods for clustering counts, as scikit-learn estimators that share no code with MMPCA."""

from mmpca.baselines.dirichlet import DirichletMultinomialMixture
from mmpca.baselines.multinomial import MultinomialMixture
from mmpca.baselines.nmf import NMFClustering
from mmpca.baselines.nmfem import NMFEM
from mmpca.baselines.poisson import PoissonMixture
from mmpca.baselines.spherical import SphericalKMeans
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
