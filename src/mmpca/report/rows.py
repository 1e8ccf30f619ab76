"""Which rows to show for a cluster, and why they are in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import as_counts
from mmpca.model.explanation import Evidence, Explanation, explain, mixture_of
from mmpca.report.subject import Subject, counts_for
from mmpca.report.words import TEXT_LENGTH, nats, percent, shown

EVIDENCE_SHOWN = 5
MOST_EXPLAINED = 240  # rows on the page, which bounds its size for any number of clusters
MOST_PER_CLUSTER = 5  # typical ones, and as many borderline ones
MOST_LISTED = 5000  # rows that the search box knows
LISTED_LENGTH = 60
BLOCK = 2000


class Margins(NamedTuple):
    """How sure the cluster of each row is."""

    margin: NDArray[np.float64]  # (N,), nats ahead of the runner-up
    probability: NDArray[np.float64]  # (N,)
    verdict: list[str]


class Part(NamedTuple):
    """A piece of evidence."""

    name: str
    occurrences: int
    nats: float
    told: str
    width: int  # of its bar, per cent of the longest


class Row(NamedTuple):
    """A row with its reasons."""

    place: int  # in the data, from 0
    name: str
    text: str | None
    label: str | None
    cluster: int
    kind: str  # "typical" or "borderline"
    probability: str
    verdict: str
    margin: float
    told_margin: str
    runner_up: int | None
    speak_for: list[Part]
    speak_against: list[Part]
    rest: list[tuple[str, str]]  # what all else says, in sum

    @property
    def distance(self) -> str:
        """How far the row is ahead of the runner-up, or behind it."""
        return f"{nats(abs(self.margin)).removeprefix('+')} nats {'ahead of' if self.margin >= 0 else 'behind'}"


def margins_of(subject: Subject) -> Margins | None:
    """Return how sure all rows are; None without rows."""
    if subject.X is None:
        return None
    margin, probability = np.empty(subject.n_rows), np.empty(subject.n_rows)
    verdicts: list[str] = []
    for start in range(0, subject.n_rows, BLOCK):  # explanations of all rows at once would take much memory
        block = slice(start, start + BLOCK)
        found = _explain(subject, np.arange(*block.indices(subject.n_rows)), n_features=0)
        margin[block] = [why.margin for why in found]
        probability[block] = [why.probability for why in found]
        verdicts += [why.verdict for why in found]
    return Margins(margin, probability, verdicts)


def rows_with_reasons(subject: Subject, numbers: Sequence[int], kind: str) -> list[Row]:
    """Return rows, in this order, with why they are in their clusters, which is known only with the data."""
    if not numbers:
        return []
    if subject.X is None:
        return [_row(subject, _unexplained(int(subject.clusters[i])), i, kind) for i in numbers]
    reasons = _explain(subject, np.array(numbers, dtype=np.intp), n_features=EVIDENCE_SHOWN)
    return [_row(subject, why, i, kind) for i, why in zip(numbers, reasons, strict=True)]


def telling_rows(subject: Subject, margins: Margins) -> list[Row]:
    """Return for each cluster its surest rows and its least sure ones."""
    n_each = max(1, min(MOST_PER_CLUSTER, MOST_EXPLAINED // (2 * subject.model.n_clusters)))
    typical: list[int] = []
    borderline: list[int] = []
    for q in range(subject.model.n_clusters):
        members = np.flatnonzero(subject.clusters == q)
        order = members[np.argsort(-margins.margin[members], kind="stable")].tolist()
        sure = order[:n_each]
        typical += sure
        borderline += [i for i in order[::-1][:n_each] if i not in sure]
    rows = rows_with_reasons(subject, typical, "typical") + rows_with_reasons(subject, borderline, "borderline")
    return sorted(rows, key=lambda row: row.cluster)  # stable: typical before borderline


def listed_rows(subject: Subject, margins: Margins | None, always: list[int]) -> list[list[Any]]:
    """Return name, cluster, number and, if known, probability and verdict of the rows that the search box knows.

    They are evenly chosen; `always` are rows that stand on the page anyhow, and only these have a number: to be linked.
    """
    n_listed = min(subject.n_rows, MOST_LISTED)
    even = np.linspace(0, subject.n_rows - 1, n_listed).round().astype(int).tolist()
    on_page = set(always)
    listed = sorted({*even, *always})
    return [
        [shown(subject.row_name(i), LISTED_LENGTH), int(subject.clusters[i]), i if i in on_page else -1]
        + ([] if margins is None else [percent(float(margins.probability[i])), margins.verdict[i]])
        for i in listed
    ]


def _explain(subject: Subject, rows: NDArray[np.intp], n_features: int) -> list[Explanation]:
    """Explain the clusters that the report gives to rows.

    The rows were checked at the door. `model.explain` would warn that they have no names, and to silence that would
    change the warnings of all threads of a server.
    """
    assert subject.X is not None
    counts = counts_for(subject.model, as_counts(subject.X[rows], empty_rows="allow"))
    return explain(counts, mixture_of(subject.model), labels=subject.clusters[rows], n_features=n_features)


def _unexplained(cluster: int) -> Explanation:
    """Return all that a model without data tells of a row."""
    return Explanation(0, cluster, np.nan, "", None, np.inf, (), (), (), 0.0, 0.0)  # type: ignore[arg-type]


def _row(subject: Subject, why: Explanation, i: int, kind: str) -> Row:
    longest = max((abs(part.nats) for part in why.evidence_for + why.evidence_against), default=1.0)
    return Row(
        i,
        shown(subject.row_name(i)),
        None if subject.texts is None else shown(subject.texts[i], TEXT_LENGTH),
        None if subject.labels is None else shown(subject.labels[i]),
        why.cluster,
        kind,
        percent(why.probability) if why.verdict else "",
        why.verdict,
        why.margin if np.isfinite(why.margin) else 0.0,
        nats(why.margin),
        why.runner_up,
        _parts(why.evidence_for, longest),
        _parts(why.evidence_against, longest),
        [("all other features", nats(why.from_others)), ("sizes of the clusters", nats(why.from_sizes))],
    )


def _parts(found: Sequence[Evidence], longest: float) -> list[Part]:
    """Return evidence with bars, the longest of which stands for so many nats."""
    return [
        Part(shown(part.name), part.occurrences, part.nats, nats(part.nats), round(100 * abs(part.nats) / longest))
        for part in found
    ]
