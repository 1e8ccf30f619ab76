"""What a busy reader should know, in sentences."""

from __future__ import annotations

import numpy as np

from mmpca.model.dispersion import advice
from mmpca.report.confusion import Confusion
from mmpca.report.rows import Margins
from mmpca.report.search import Choice
from mmpca.report.subject import Subject
from mmpca.report.words import count, percent

SAME = 1.0  # nats within which two starts are said to agree
AGREEMENT = ((0.9, "nearly the same"), (0.6, "much the same"), (0.2, "partly the same"))

_MAXIMUM = {
    "cvem": "no row fits another cluster better while the clusters stay as they are",
    "vbem": "another round would not raise the bound",
}


def summary_of(
    subject: Subject, margins: Margins | None, choice: Choice | None, confusion: Confusion | None
) -> list[str]:
    """Return the sentences of the summary."""
    told = [_head(subject), _sizes(subject)]
    if margins is not None:
        told.append(_sureness(margins))
    if choice is not None:
        told.append(f"The search over the numbers of clusters and topics found {choice.reason}")
        if choice.best != (subject.model.n_clusters, subject.model.n_topics):
            told.append("This page shows another model than the one that the search preferred.")
    if confusion is not None:
        told.append(_agreement(confusion.rand_index))
    if not subject.is_fitted_data:
        told.append("The rows shown here are not those that were fitted: their clusters are predicted.")
    return told


def checks_of(subject: Subject) -> list[tuple[str, str]]:
    """Return what was checked about the fit: "fine", "care" or "note", and a sentence."""
    return [_convergence(subject), _starts(subject), _dispersion(subject)]


def _head(subject: Subject) -> str:
    model = subject.model
    return (
        f"{count(subject.n_rows, 'row')} with counts of {count(model.n_features_in_, 'feature')} fall into "
        f"{count(model.n_clusters, 'cluster')}, which share {count(model.n_topics, 'topic')}."
    )


def _sizes(subject: Subject) -> str:
    sizes = np.bincount(subject.clusters, minlength=subject.model.n_clusters)
    large, small = int(sizes.argmax()), int(sizes.argmin())
    if large == small:
        return "All clusters have the same number of rows."
    return (
        f"The largest is cluster {large} with {count(int(sizes[large]), 'row')}, the smallest cluster {small} with "
        f"{count(int(sizes[small]), 'row')}."
    )


def _sureness(margins: Margins) -> str:
    n_rows = len(margins.verdict)
    shares = [percent(margins.verdict.count(word) / n_rows) for word in ("clear", "likely", "borderline")]
    return (
        f"{shares[0]} of the rows are clear members of their clusters, {shares[1]} likely and {shares[2]} borderline."
    )


def _agreement(rand_index: float) -> str:
    words = next((words for least, words in AGREEMENT if rand_index >= least), "hardly related")
    return f"Clusters and known labels are {words} (adjusted Rand index {rand_index:.2f}; 1 is the same, 0 is chance)."


def _convergence(subject: Subject) -> tuple[str, str]:
    model = subject.model
    if not model.converged_:
        return "care", (
            f"The search stopped after {count(model.n_epochs_, 'epoch')}, before its end: another fit with a larger "
            "max_epochs may find better clusters."
        )
    end = _MAXIMUM.get(model.algorithm, "no single row can change its cluster and raise the bound")
    return "fine", f"The search came to its end after {count(model.n_epochs_, 'epoch')}: {end}."


def _starts(subject: Subject) -> tuple[str, str]:
    bounds = np.array([start.bound for start in subject.model.starts_])
    if len(bounds) < 2:
        return "note", "There was one start, so that nothing tells whether others would end in the same clusters."
    n_same = int((bounds >= bounds.max() - SAME).sum())
    if n_same == 1:
        return "care", f"None of the other {len(bounds) - 1} starts came as far as the best: more may come further."
    return "fine", f"{n_same} of {len(bounds)} starts ended within {SAME:g} nat of the best."


def _dispersion(subject: Subject) -> tuple[str, str]:
    index = float(subject.model.overdispersion_)
    if np.isnan(index):
        return "note", "There are too few rows to compare how much they vary with what the model expects."
    if (warning := advice(index, stabilize=subject.model.stabilize)) is not None:
        return "care", warning
    return "fine", f"Within clusters the counts vary {index:.2f} times as much as the model expects (1 is ideal)."
