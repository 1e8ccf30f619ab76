"""Baselines: other methods for clustering counts, as scikit-learn estimators that share no code with MMPCA."""

import warnings
from typing import Any

from mmpca.baselines.gsdmm import GSDMM
from mmpca.baselines.integrated import IntegratedMultinomialMixture
from mmpca.baselines.mixtures import NMFEM, MultinomialMixture, PoissonMixture
from mmpca.baselines.polya import PolyaMixture
from mmpca.baselines.tfidf import NMFClustering, SphericalKMeans
from mmpca.baselines.topic_space import GMMLDA, KMeansLDA, LDAMap

__all__ = [
    "GMMLDA",
    "GSDMM",
    "NMFEM",
    "IntegratedMultinomialMixture",
    "KMeansLDA",
    "LDAMap",
    "MultinomialMixture",
    "NMFClustering",
    "PoissonMixture",
    "PolyaMixture",
    "SphericalKMeans",
]


def __getattr__(name: str) -> Any:
    """Return a class under its former name, with a warning."""
    if name != "DirichletMultinomialMixture":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "DirichletMultinomialMixture is now IntegratedMultinomialMixture. For a mixture of Dirichlet-multinomials, "
        "see PolyaMixture.",
        FutureWarning,
        stacklevel=2,
    )
    return IntegratedMultinomialMixture
