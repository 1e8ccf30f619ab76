"""The doctor of counts: what a matrix looks like, what speaks against a fit, and what to do about each finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts, transposition_hint
from mmpca.model import searching
from mmpca.model.costs import Sizes
from mmpca.model.dispersion import LARGE_INDEX, overdispersion
from mmpca.model.starts import auto_kinds, auto_plan
from mmpca.topics import lda
from mmpca.topics.costs import UNIT

Level = Literal["error", "warning", "note"]
Names = Sequence[str] | NDArray[np.generic]

# What counts as much, few, short and so on; shares are of all rows or features.
RARE_SHARE = 0.2
DUPLICATE_SHARE = 0.01
SHORT_TOTAL = 10
SHORT_SHARE = 0.25
UNEVEN_FACTOR = 1000
DOMINANT_SHARE = 0.3

# Memory of a fit above its input: what it takes at any size, doubles for each feature and each cluster or topic, bytes
# for each row, and of those rows that are looked at together doubles for each topic and a copy of the entries. Fits of
# 2,000 to a million rows had 0.5 to 1.3 times as much at their peak.
LEAST_BYTES, TABLES, ROW_BYTES, SHARES, ENTRY_BYTES = 4e6, 12, 104, 6, 8
FIRST_SECONDS = 2.0  # imports and compiled code from disk


class Finding(NamedTuple):
    """Something to know about the data, and what to do about it; an error means that a fit is refused."""

    level: Level
    code: str
    message: str
    remedy: str


class Inspection(NamedTuple):
    """What a matrix of counts looks like."""

    n_rows: int
    n_features: int
    n_entries: int
    density: float
    total: int
    row_totals: tuple[int, float, int]  # smallest, median, largest
    largest_count: int
    overdispersion: float  # around one common profile: what clusters leave of it is less
    seconds: float  # expected of a fit
    megabytes: float  # expected above the input
    findings: tuple[Finding, ...]

    @property
    def is_refused(self) -> bool:
        """Whether a fit would be refused."""
        return any(finding.level == "error" for finding in self.findings)


class _Case(NamedTuple):
    """What the findings look at."""

    counts: Counts
    rows: NDArray[np.int64]  # totals (N,)
    columns: NDArray[np.int64]  # totals (V,)
    n_clusters: int
    n_topics: int
    dispersion: float
    row_names: Names | None
    feature_names: Names | None

    def row(self, i: int) -> str:
        """Return what a row is called."""
        return f"{i}" if self.row_names is None else repr(str(self.row_names[i]))

    def feature(self, v: int) -> str:
        """Return what a feature is called."""
        return f"{v}" if self.feature_names is None else repr(str(self.feature_names[v]))


def inspect_counts(
    counts: Counts,
    *,
    n_clusters: int = 8,
    n_topics: int = 5,
    row_names: Names | None = None,
    feature_names: Names | None = None,
) -> Inspection:
    """Return what a matrix of counts looks like, and findings with a remedy each.

    Parameters
    ----------
    counts : Counts of shape (n_rows, n_features)
        As :func:`mmpca.counts.as_counts` returns them, rows without counts allowed.
    n_clusters, n_topics : int
        What a fit would be asked for.
    row_names, feature_names : sequence of str, optional
        What rows and features are called in the findings; by default they go by number, from 0.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> from mmpca.counts import as_counts
    >>> from mmpca.model.inspection import inspect_counts
    >>> found = inspect_counts(as_counts([[0, 0], [2, 4]], empty_rows="allow"), n_clusters=2, n_topics=2)
    >>> found.is_refused
    True
    >>> [finding.code for finding in found.findings]
    ['empty rows', 'common factor', 'short rows']
    """
    totals, dispersion = (counts.row_totals(), counts.column_totals()), pooled_overdispersion(counts)
    case = _Case(counts, *totals, n_clusters, n_topics, dispersion, row_names, feature_names)
    findings = tuple(finding for look in _LOOKS for finding in look(case))
    return Inspection(
        counts.n_rows,
        counts.n_features,
        counts.nnz,
        counts.nnz / (counts.n_rows * counts.n_features),
        int(case.rows.sum()),
        (int(case.rows.min()), float(np.median(case.rows)), int(case.rows.max())),
        int(counts.data.max(initial=0)),
        case.dispersion,
        expected_seconds(counts, n_clusters, n_topics),
        expected_megabytes(counts, n_clusters, n_topics),
        findings,
    )


def pooled_overdispersion(counts: Counts) -> float:
    """Return the index of overdispersion around the profile of all rows; NaN where there is nothing to compare."""
    filled = np.flatnonzero(np.diff(counts.indptr))
    if filled.size < 2:
        return float("nan")
    rows = counts if filled.size == counts.n_rows else counts.take(filled)
    profile = rows.column_totals()[None] / rows.data.sum(dtype=np.int64)  # (1, V)
    one = np.zeros(rows.n_rows, dtype=np.int32)
    return overdispersion(rows, one, topics=profile, cluster_topics=np.ones((1, 1))).overall


def expected_seconds(counts: Counts, n_clusters: int, n_topics: int) -> float:
    """Return the time that a fit takes on one core, by the costs of its stages; hard data take a few times that."""
    plan = auto_plan(counts.n_rows)
    kinds = auto_kinds(counts.n_rows, n_clusters * n_topics * counts.n_features)
    planned = list(islice(cycle(kinds), plan.n_starts))
    sizes = Sizes(counts.nnz, counts.n_features, n_clusters, n_topics)
    costs = lda.expected_costs(counts, n_topics)
    costs |= searching.expected_costs(sizes, counts.n_rows, planned, plan.patience)
    return FIRST_SECONDS + UNIT * sum(costs.values())


def expected_megabytes(counts: Counts, n_clusters: int, n_topics: int) -> float:
    """Return the memory of a fit above its input: tables of features, numbers of rows, and rows that are copied."""
    tables = 8 * TABLES * counts.n_features * (n_clusters + n_topics)
    together = min(1.0, searching.SAMPLED_ROWS / counts.n_rows) * (
        ENTRY_BYTES * counts.nnz + 8 * SHARES * counts.n_rows * n_topics
    )
    return (LEAST_BYTES + tables + ROW_BYTES * counts.n_rows + together) / 1e6


# --- findings ---------------------------------------------------------------------------------------------------


def _sizes(case: _Case) -> Iterator[Finding]:
    counts = case.counts
    if case.n_clusters > counts.n_rows:
        message = f"{case.n_clusters} clusters need as many rows, but there are {counts.n_rows}."
        turned = " If the rows are features, add --transpose." if counts.n_features >= case.n_clusters else ""
        yield Finding("error", "few rows", message, f"Ask for fewer clusters or give more rows.{turned}")
    if case.n_topics > counts.n_features:
        message = f"{case.n_topics} topics need as many features, but there are {counts.n_features}."
        yield Finding("error", "few features", message, "Ask for fewer topics or give more features.")


def _empty(case: _Case) -> Iterator[Finding]:
    empty = np.flatnonzero(case.rows == 0)
    if empty.size:
        first = case.row(int(empty[0]))
        which = f"Row {first} has" if empty.size == 1 else f"{empty.size:,} rows, first row {first}, have"
        message = f"{which} no counts: no cluster fits them."
        yield Finding("error", "empty rows", message, "Leave them out: mmpca fit --drop-empty.")
    n_columns = int((case.columns == 0).sum())
    if n_columns:
        message = f"{n_columns:,} features never occur; topics give them no probability."
        yield Finding("note", "empty features", message, "Harmless; drop them to save memory.")


def _transposed(case: _Case) -> Iterator[Finding]:
    if transposition_hint(case.counts) is not None:
        message = "The totals of the rows are far more uneven than those of the columns, as those of features are."
        yield Finding("warning", "transposed", message, "If the rows are features, add --transpose.")


def _scaled(case: _Case) -> Iterator[Finding]:
    filled = case.rows[case.rows > 0]
    if filled.size < 2:
        return
    power = 10.0 ** np.round(np.log10(np.median(filled)))
    if power >= 1000 and (np.abs(filled - power) <= 0.01 * power).all() and np.ptp(filled) > 0:
        message = f"All rows sum to about {power:,.0f}: they look scaled to a common total and rounded."
        yield Finding("warning", "scaled rows", message, "Give the raw counts; the model takes care of depth itself.")


def _common_factor(case: _Case) -> Iterator[Finding]:
    factor = int(np.gcd.reduce(case.counts.data)) if case.counts.nnz else 1
    if factor > 1:
        message = f"All counts are multiples of {factor}: the model would take each event for {factor}."
        yield Finding("warning", "common factor", message, f"Divide the counts by {factor}.")


def _presence(case: _Case) -> Iterator[Finding]:
    if case.counts.nnz and int(case.counts.data.max()) == 1 and case.rows.max() > 1:
        message = "No count exceeds 1: these are presences rather than counts."
        yield Finding("note", "presences", message, "Fine if that is all there is; give counts if you have them.")


def _duplicates(case: _Case) -> Iterator[Finding]:
    n_duplicates = case.counts.n_rows - n_distinct_rows(case.counts)
    if n_duplicates > DUPLICATE_SHARE * case.counts.n_rows:
        message = f"{n_duplicates:,} rows repeat an earlier row exactly."
        yield Finding("warning", "duplicate rows", message, "See whether records were read twice; else leave them.")


def _rare(case: _Case) -> Iterator[Finding]:
    n_rows = np.bincount(case.counts.indices, minlength=case.counts.n_features)  # that a feature occurs in, (V,)
    n_rare, n_present = int((n_rows == 1).sum()), int((n_rows > 0).sum())
    if case.counts.n_rows > 10 and n_rare > RARE_SHARE * n_present:
        message = f"{n_rare:,} of {n_present:,} features occur in a single row and cannot tell clusters apart."
        yield Finding("note", "rare features", message, "Drop them for speed; for texts, --min-rows 2.")


def _short(case: _Case) -> Iterator[Finding]:
    n_short = int((case.rows < SHORT_TOTAL).sum())
    if n_short > SHORT_SHARE * case.counts.n_rows:
        message = f"{n_short:,} of {case.counts.n_rows:,} rows have fewer than {SHORT_TOTAL} counts."
        yield Finding("warning", "short rows", message, "Expect borderline rows; ask for few clusters, read explain.")


def _uneven(case: _Case) -> Iterator[Finding]:
    filled = case.rows[case.rows > 0]
    if filled.size and filled.max() > UNEVEN_FACTOR * np.median(filled):
        row, largest, median = case.row(int(case.rows.argmax())), int(filled.max()), np.median(filled)
        message = f"Row {row} has {largest:,} counts, the median {median:,.0f}."
        yield Finding("warning", "uneven rows", message, "See whether this row is a total, or of another unit.")


def _dominant(case: _Case) -> Iterator[Finding]:
    total = case.columns.sum()
    v = int(case.columns.argmax())
    if total and case.counts.n_features > 10 and case.columns[v] > DOMINANT_SHARE * total:
        message = f"Feature {case.feature(v)} makes up {case.columns[v] / total:.0%} of all counts."
        yield Finding("warning", "dominant feature", message, "Drop it if it is no signal, or try --stabilize sqrt.")


def _overdispersed(case: _Case) -> Iterator[Finding]:
    if case.dispersion > LARGE_INDEX:
        message = (
            f"Counts vary {case.dispersion:.3g} times as much as one multinomial allows; clusters explain a part of it."
        )
        remedy = "If overdispersion_ of a fit is still above 3, fit with --stabilize sqrt."
        yield Finding("note", "overdispersion", message, remedy)


# Errors first, then what is likely to spoil a fit.
_LOOKS: tuple[Callable[[_Case], Iterator[Finding]], ...] = (
    _sizes,
    _empty,
    _transposed,
    _scaled,
    _common_factor,
    _duplicates,
    _short,
    _uneven,
    _dominant,
    _overdispersed,
    _rare,
    _presence,
)


def n_distinct_rows(counts: Counts) -> int:
    """Return how many different rows there are; empty rows are left out of account, as if all were different."""
    bounds = counts.indptr
    seen = set()
    n_empty = 0
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if start == stop:
            n_empty += 1
        else:
            seen.add(hash((counts.indices[start:stop].tobytes(), counts.data[start:stop].tobytes())))
    return len(seen) + n_empty
