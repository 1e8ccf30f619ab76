"""How good and how sure the fit is, as the cards of clusters and topics tell it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmpca.evaluation import Summary, summarise
from mmpca.report.subject import Subject, without_name_warnings
from mmpca.report.words import percent

LEAST_DIVERSITY = 0.5
UNKNOWN = "not known"


class Quality(NamedTuple):
    """What the cards say.

    Attributes
    ----------
    certainty : list of str, length Q
        Mean probability that a row of the cluster belongs to it.
    coherence : list of str, length K
        How often the leading features of a topic occur together.
    check : tuple of two str
        Level and sentence about how distinct the topics are.
    """

    certainty: list[str]
    coherence: list[str]
    check: tuple[str, str]


def quality_of(subject: Subject) -> Quality | None:
    """Return what the fitted rows say about the fit; None without them, or where there is nothing to compare."""
    if subject.X is None or not subject.is_fitted_data or subject.model.n_features_in_ < 2:
        return None
    with without_name_warnings():
        told = summarise(subject.model, subject.X)
    return Quality(
        [UNKNOWN if np.isnan(share) else percent(float(share)) for share in told.certainty],
        [UNKNOWN if np.isnan(value) else f"{value:.2f}" for value in told.npmi],
        _check(told),
    )


def _check(told: Summary) -> tuple[str, str]:
    """Return a sentence about the topics, and how to take it."""
    if told.diversity >= LEAST_DIVERSITY:
        return "fine", f"Of the 25 leading features of each topic, {percent(told.diversity)} are distinct."
    return "care", (
        f"The topics share many features: of the 25 leading ones of each, {percent(told.diversity)} are distinct. "
        "Those that all rows have lead several topics: the lift tells the others."
    )
