"""Rules for the parameters of MMPCA, shared by the estimator, its files and checkpoints, and fits on a Dask cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    "topic_prior": PRIOR,
    "start": either(one_of("auto", "random", "kmeans", "anneal", "mixture"), array("of labels of shape (n_samples,)")),
    "n_init": either(one_of("auto"), integer(1)),
    "algorithm": one_of("greedy", "exact", "cvem", "vbem"),
    "dispersion": one_of("multinomial", "shares", "polya", "auto"),
    "temperature": either(one_of("auto"), PRIOR),
    "stabilize": either(NONE, one_of("sqrt")),
    "max_epochs": integer(0),
    "tol": real(0.0),
    "refit_topics": BOOLEAN,
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
