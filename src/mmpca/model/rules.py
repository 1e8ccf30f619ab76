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


def check_topics(topics: Any, n_topics: int, totals: NDArray[Any]) -> NDArray[np.float64]:
    """Return given topics as float64, (K, V).

    Rows must sum to one, and every feature with counts (`totals`, shape (V,)) must have a positive probability.
    """
    if np.ma.is_masked(topics):  # asarray would drop the mask
        raise ValueError("topics must hold probabilities, but some of them are masked. Fill them in.")
    beta = np.asarray(topics)
    if beta.dtype.kind not in "biuf":
        raise ValueError(
            f"topics must be a dense array of numbers, but it is a {type(topics).__name__} of type "
            f"{getattr(topics, 'dtype', beta.dtype)}. Convert it, e.g. with topics.toarray() or topics.astype(float)."
        )
    beta = beta.astype(np.float64)
    expected = (n_topics, len(totals))
    if beta.shape != expected:
        remedy = "Pass topics.T." if beta.T.shape == expected else "Pass one row per topic and one column per feature."
        raise ValueError(
            f"topics must have shape (n_topics, n_features) = {expected}, but its shape is {beta.shape}. {remedy}"
        )
    wrong = np.argwhere(~np.isfinite(beta) | (beta < 0))
    if len(wrong):
        k, v = wrong[0]
        raise ValueError(
            f"topics must hold probabilities, but topics[{k}, {v}] = {beta[k, v]}. Replace negative and missing values."
        )
    sums = beta.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if off.size:
        raise ValueError(
            f"each row of topics must sum to one, but row {off[0]} sums to {sums[off[0]]:.6g}. "
            "Normalize them: topics / topics.sum(axis=1, keepdims=True)."
        )
    impossible = np.flatnonzero((totals > 0) & (beta.sum(axis=0) == 0))
    if impossible.size:
        v = impossible[0]
        raise ValueError(
            f"every feature that occurs needs a positive probability in some topic, but feature {v} occurs {totals[v]} "
            f"times and has probability zero in all topics ({impossible.size} such features). "
            "Smooth the topics, e.g. add 1e-6 and normalize again, or drop the feature."
        )
    return beta / sums[:, None]
