"""The methods that the accuracy benchmark compares, on the same terms: counts, Q, K and a seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from measure import Array
from mmpca import MMPCA
from mmpca.counts import as_counts
from mmpca.errors import OverdispersionWarning
from mmpca.topics import learn_topics

ALPHA = 1.0  # the estimator's default


class Fitted(NamedTuple):
    """What a method found."""

    labels: NDArray[np.int32]  # (N,)
    topics: Array  # (K, V)
    bound: float
    overdispersion: float


Method = Callable[[sparse.csr_array, int, int, int], Fitted]


def estimator(
    X: sparse.csr_array, n_clusters: int, n_topics: int, seed: int, *, refit_topics: bool = False, **options: object
) -> Fitted:
    """Fit the estimator; unless they are refitted, which changes no label, the topics are those of the search."""
    model = MMPCA(n_clusters, n_topics, random_state=seed, refit_topics=refit_topics, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)  # it is measured
        model.fit(X)
    return Fitted(model.labels_, model.components_, model.bound_, model.overdispersion_)


def published(X: sparse.csr_array, n_clusters: int, n_topics: int, seed: int, **options: object) -> Fitted:
    """Search as published: every move evaluated, one random start, topics of an LDA whose rows have a prior of one."""
    topics = learn_topics(as_counts(X), n_topics, rng=np.random.default_rng(seed), row_prior=1.0)
    options |= {"topics": topics, "algorithm": "exact", "start": "random", "n_init": 1}
    return estimator(X, n_clusters, n_topics, seed, **options)


METHODS: dict[str, Method] = {
    "default": estimator,
    "published": published,
    "cvem": partial(estimator, algorithm="cvem"),
    "vbem": partial(estimator, algorithm="vbem"),
}
REAL_METHODS: dict[str, Method] = {
    name: partial(method, refit_topics=True)
    for name, method in (METHODS | {"sqrt": partial(estimator, stabilize="sqrt")}).items()
}
