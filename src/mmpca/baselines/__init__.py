"""Rivals: clusterers of counts to compare with, behind one interface and without code of the engine."""

from mmpca.baselines.dirichlet import DirichletMultinomialMixture
from mmpca.baselines.gmm_lda import GMMLDA
from mmpca.baselines.kmeans_lda import KMeansLDA
from mmpca.baselines.lda_map import LDAMap
from mmpca.baselines.multinomial import MultinomialMixture
from mmpca.baselines.nmf import NMFClustering
from mmpca.baselines.nmfem import NMFEM
from mmpca.baselines.poisson import PoissonMixture
from mmpca.baselines.spherical import SphericalKMeans

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
