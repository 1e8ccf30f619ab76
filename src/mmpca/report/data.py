"""What the counts look like, and what is odd about them."""

from __future__ import annotations

from typing import NamedTuple

from mmpca.counts import as_counts
from mmpca.model.inspection import Finding, Inspection, inspect_counts
from mmpca.report.subject import Subject
from mmpca.report.words import number, percent

# Told elsewhere on the page, after the clusters took their part of it.
_LEFT_OUT = ("overdispersion",)


class CountsCheck(NamedTuple):
    """Numbers that describe the counts, and findings with a remedy each."""

    facts: list[tuple[str, str]]
    findings: list[Finding]


def counts_of(subject: Subject) -> CountsCheck | None:
    """Return what the counts look like; None without them."""
    if subject.X is None:
        return None
    model = subject.model
    # Rows that were not fitted may be fewer than the clusters, and nothing is wrong with that.
    n_clusters = min(model.n_clusters, subject.n_rows)
    found = inspect_counts(as_counts(subject.X, empty_rows="allow"), n_clusters=n_clusters, n_topics=model.n_topics)
    return CountsCheck(_facts(found), [finding for finding in found.findings if finding.code not in _LEFT_OUT])


def _facts(found: Inspection) -> list[tuple[str, str]]:
    smallest, median, largest = found.row_totals
    return [
        ("Rows", f"{found.n_rows:,}"),
        ("Features", f"{found.n_features:,}"),
        ("Counts altogether", f"{found.total:,}, in {percent(found.density)} of the cells of the table"),
        ("Counts of a row", f"{smallest:,} to {largest:,}, half of the rows have {median:,.0f} or more"),
        ("Largest count", f"{found.largest_count:,}"),
        ("Variation before clustering", f"{number(found.overdispersion)} times what one common profile would give"),
    ]
