"""Rules for the parameters of MMPCA, shared by the estimator, its files and checkpoints, and fits on a Dask cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.parameters import (
    BOOLEAN,
    N_JOBS,
    NONE,
    PRIOR,
    VERBOSE,
    Rule,
    array,
    check_parameters,
    either,
    integer,
    one_of,
    real,
)

RULES: dict[str, Rule] = {
    "n_clusters": integer(1),
    "n_topics": integer(1),
    "topics": either(one_of("auto", "lda", "mixture", "tfidf", "random"), array("of shape (n_topics, n_features)")),
    "topic_prior": either(either(PRIOR, one_of("estimate")), array("of shape (n_topics,)")),
    "start": either(one_of("auto", "random", "kmeans", "anneal", "mixture"), array("of labels of shape (n_samples,)")),
    "n_init": either(one_of("auto"), integer(1)),
    "algorithm": one_of("greedy", "exact", "cvem", "vbem"),
    "dispersion": one_of("multinomial", "shares", "polya", "auto"),
    "temperature": either(one_of("auto"), PRIOR),
    "stabilize": either(NONE, one_of("sqrt")),
    "max_epochs": integer(0),
    "tol": real(0.0),
    "refit_topics": either(BOOLEAN, one_of("moves")),
    "n_jobs": N_JOBS,
    "verbose": either(NONE, VERBOSE),
}
SUM_TOLERANCE = 1e-6  # of given topics


def check_fit_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for a parameter that breaks its rule, or for two that exclude each other."""
    check_parameters(parameters, RULES)
    if parameters["stabilize"] is not None and parameters["dispersion"] == "polya":
        raise ValueError(
            "stabilize must be None with dispersion='polya', which replaces it, but it is "
            f"{parameters['stabilize']!r}. Use one of the two."
        )
    prior, algorithm = parameters["topic_prior"], parameters["algorithm"]
    if isinstance(prior, str) and algorithm == "vbem":
        raise ValueError("topic_prior='estimate' needs an algorithm other than 'vbem'. Give topic_prior a number.")
    if isinstance(parameters["refit_topics"], str):
        if algorithm != "exact":
            raise ValueError(f"refit_topics='moves' needs algorithm='exact', but algorithm is {algorithm!r}.")
        if isinstance(prior, str) or np.min(prior) < 1:
            raise ValueError(
                "refit_topics='moves' needs a topic_prior of at least 1, under which each cluster has a single best "
                f"mixture of topics, but it is {prior!r}."
            )


def check_topic_prior(prior: Any, n_topics: int) -> float | NDArray[np.float64]:
    """Return the prior of the clusters' topic shares that a search starts with; raise ValueError for a wrong array."""
    if isinstance(prior, str):
        return 1.0
    if np.ndim(prior) == 0:
        return float(prior)
    alpha = np.asarray(prior)
    if alpha.shape != (n_topics,):
        raise ValueError(f"topic_prior must have {n_topics} entries, one for each topic; its shape is {alpha.shape}.")
    for k, value in enumerate(alpha.tolist()):
        if not PRIOR.holds(value):
            raise ValueError(f"topic_prior must be {PRIOR.expected} for every topic; for topic {k}, it is {value!r}.")
    return alpha.astype(np.float64)
