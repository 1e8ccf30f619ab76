"""All methods on one data set of a simulation; those in the space of the same LDA share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from mmpca.counts import as_counts
from mmpca.evaluation import agreement, all_methods
from mmpca.experiments.experiment import Record
from mmpca.model.prediction import joint_log_likelihood
from mmpca.plots.experiments import CEILING
from mmpca.simulate import Simulation

# By the kind of their task. A Gaussian mixture goes before k-means in the shares that it has found.
FAMILIES: Mapping[str, Sequence[str]] = {
    "ceiling": (CEILING,),
    "mmpca": ("MMPCA",),
    "lda-space": ("GMM on LDA", "k-means on LDA"),
    "lda-space-mmpca": ("GMM on LDA (mmpca)", "k-means on LDA (mmpca)"),
    "lda": ("LDA",),
    "lda-mmpca": ("LDA (mmpca)",),
    "nmf-em": ("NMF-EM",),
    "mixtures": ("multinomial mixture", "Poisson mixture"),
    "dirichlet": ("Dirichlet-multinomial mixture",),
    "directions": ("spherical k-means", "NMF"),
}


class KnownShares(TransformerMixin, BaseEstimator):
    """A transformer that returns topic shares that are known already.

    Parameters
    ----------
    shares : ndarray of shape (n_samples, n_topics)
        What `transform` returns.
    n_topics : int, optional
        Set by rivals, and not looked at.
    """

    def __init__(self, shares: NDArray[np.float64], n_topics: int | None = None) -> None:
        self.shares = shares
        self.n_topics = n_topics

    def fit(self, X: Any, y: object = None) -> Self:
        """Return the transformer as it is."""
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the shares."""
        return self.shares


def fit_family(family: str, data: Simulation, seed: int) -> Record:
    """Return the agreement of each method of a family with the true labels: {method: {"ari": ..., "nmi": ...}}."""
    if family == "ceiling":
        return {CEILING: agreement(data.labels, ceiling_labels(data))._asdict()}
    n_clusters, n_topics = data.cluster_topics.shape
    methods = all_methods(n_clusters, n_topics, seed)
    record, shares = {}, None
    for name in FAMILIES[family]:
        model = methods[name]
        if shares is not None and "lda" in model.get_params():
            model.set_params(lda=KnownShares(shares))
        record[name] = agreement(data.labels, model.fit_predict(data.X))._asdict()
        shares = getattr(model, "shares_", None)
    return record


def ceiling_labels(data: Simulation) -> NDArray[np.int64]:
    """Return the most probable cluster of each row under the true parameters, (N,)."""
    theta = (1 - data.noise) * data.cluster_topics + data.noise / len(data.topics)
    joint = joint_log_likelihood(as_counts(data.X), data.topics, theta, data.weights)  # (N, Q)
    labels: NDArray[np.int64] = joint.argmax(axis=1)
    return labels


def method_order() -> list[str]:
    """Return the methods in the order of tables and legends."""
    return [CEILING, *all_methods(1, 2)]
