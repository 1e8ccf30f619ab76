"""Inspect a count matrix before fitting: its size, the cost of a fit, and possible problems.

``mmpca inspect`` prints what this module returns. ``fit``, ``select``, ``compare`` and ``predict`` note its warnings.
In Python, a fit warns about columns and rows that are not counts. To add a line (and its numbers to ``--json``), add a
`Fact` to `_facts`; to add a finding, write a check that yields `Finding` and list it in `_CHECKS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtr, pdtr

from mmpca.counts import Counts, transposition_hint
from mmpca.errors import SuspiciousCountsWarning, warn
from mmpca.model.dispersion import LARGE_INDEX, overdispersion
from mmpca.model.starts import SAMPLED_ROWS, plan_starts

Level = Literal["error", "warning", "note"]
Names = Sequence[str] | NDArray[np.generic]

N_NAMES, LONGEST_NAME = 5, 24  # first names shown, characters of each

# Thresholds of the findings; shares are of all rows or features.
RARE_SHARE = 0.2
DUPLICATE_SHARE = 0.01
SHORT_TOTAL = 10
SHORT_SHARE = 0.25
UNEVEN_FACTOR = 1000
DOMINANT_SHARE = 0.3
N_LISTED = 3  # suspicious features named by a finding

# Columns that are not counts. Names alone prove nothing: "year", "total" and "subject" are words in texts, too. Values
# alone are evidence only if chance is ruled out: in ten rows or more.
ENOUGH_ROWS = 10
ENOUGH_NAMED_ROWS = 6  # if the name is suspicious as well
ENOUGH_DISTINCT_ROWS = 6
COINCIDENCE = 1e-3  # probability that a feature or a row is the sum of the others by chance
N_SCREENED = 200  # rows in which a column must look suspicious before all of its rows are compared
FILLED_SHARE = 0.9  # rows that have a description, or are dominated by it
N_ENDS = 5  # first and last features, where tables have descriptions of their rows
FEW_FEATURES = 50  # hardly any vocabulary of texts is that small
IDENTIFIER_SHARE = 0.9  # of all counts, in a column where no value repeats
DOMINANCE = 3  # times the largest other count of the row
YEARS, NAMED_YEARS = (1900, 2100), (1000, 2999)
CONSTANT = 10
MIN_DISTINCT = 4  # values of a sorted column
UNLIKELY, VERY_UNLIKELY = 0.02, 0.001  # probabilities under chance


class Fact(NamedTuple):
    """A line about the data, and the numbers behind it.

    Attributes
    ----------
    label, text : str
        The line.
    numbers : dict of str to JSON value
        Entries of the document that ``mmpca inspect --json`` prints.
    """

    label: str
    text: str
    numbers: dict[str, Any]


class Finding(NamedTuple):
    """A problem with the data.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        With an error, a fit would fail.
    code : str
        A short name that stays the same when the message changes.
    message, remedy : str
        The problem, and what to do about it.
    """

    level: Level
    code: str
    message: str
    remedy: str


class Inspection(NamedTuple):
    """Description of a count matrix.

    Attributes
    ----------
    n_rows, n_features, n_entries, total, largest_count : int
    density : float
        Share of non-zero entries.
    row_totals : tuple of (int, float, int)
        Smallest, median and largest.
    overdispersion : float
        Variance around the mean profile of all rows, as a multiple of a multinomial's; clusters explain part of it.
        NaN with fewer than two non-empty rows or a single feature.
    seconds, megabytes : float
        Expected time of a fit on one core, and its memory in addition to the input.
    facts : tuple of Fact
        The same in lines to print.
    findings : tuple of Finding
        Errors first.
    """

    n_rows: int
    n_features: int
    n_entries: int
    density: float
    total: int
    row_totals: tuple[int, float, int]
    largest_count: int
    overdispersion: float
    seconds: float
    megabytes: float
    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...]

    @property
    def can_fit(self) -> bool:
        """True unless a finding is an error."""
        return all(finding.level != "error" for finding in self.findings)


class _Case(NamedTuple):
    """A count matrix with everything that facts and checks use."""

    counts: Counts
    rows: NDArray[np.int64]  # totals (N,)
    columns: NDArray[np.int64]  # totals (V,)
    dispersion: float
    n_clusters: int
    n_topics: int
    row_names: Names | None
    feature_names: Names | None
    counts_words: bool = False

    def row(self, i: int) -> str:
        """Return the name of a row, or its index."""
        return f"{i}" if self.row_names is None else repr(str(self.row_names[i]))

    def feature(self, v: int) -> str:
        """Return the name of a feature, or its index."""
        return f"{v}" if self.feature_names is None else repr(str(self.feature_names[v]))


def inspect_counts(
    counts: Counts,
    *,
    n_clusters: int = 8,
    n_topics: int = 5,
    row_names: Names | None = None,
    feature_names: Names | None = None,
    counts_words: bool = False,
) -> Inspection:
    """Describe a count matrix and list its problems, each with a remedy.

    Parameters
    ----------
    counts : Counts of shape (n_rows, n_features)
        From :func:`mmpca.counts.as_counts`; empty rows are allowed.
    n_clusters, n_topics : int
        Sizes of the planned fit.
    row_names, feature_names : sequence of str, optional
        Names to use in messages instead of indices. Some, such as "patient_id" or "Total", are findings themselves.
    counts_words : bool
        Whether features are words that were counted in texts, so that no column can be anything else.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> from mmpca.counts import as_counts
    >>> from mmpca.model.inspection import inspect_counts
    >>> found = inspect_counts(as_counts([[0, 0], [2, 4]], empty_rows="allow"), n_clusters=2, n_topics=2)
    >>> found.can_fit
    False
    >>> [finding.code for finding in found.findings]
    ['empty rows', 'common factor', 'short rows']
    """
    totals, dispersion = (counts.row_totals(), counts.column_totals()), pooled_overdispersion(counts)
    case = _Case(counts, *totals, dispersion, n_clusters, n_topics, row_names, feature_names, counts_words)
    found = Inspection(
        n_rows=counts.n_rows,
        n_features=counts.n_features,
        n_entries=counts.nnz,
        density=counts.nnz / (counts.n_rows * counts.n_features),
        total=int(case.rows.sum()),
        row_totals=(int(case.rows.min()), float(np.median(case.rows)), int(case.rows.max())),
        largest_count=int(counts.data.max(initial=0)),
        overdispersion=dispersion,
        seconds=expected_seconds(counts, n_clusters, n_topics),
        megabytes=expected_megabytes(counts, n_clusters, n_topics),
        facts=(),
        findings=tuple(finding for check in _CHECKS for finding in check(case)),
    )
    return found._replace(facts=tuple(_facts(found, case)))


def misread_columns(
    counts: Counts, *, row_names: Names | None = None, feature_names: Names | None = None
) -> list[Finding]:
    """List columns and rows that do not look like counts: identifiers, other measurements, totals.

    These are warnings of :func:`inspect_counts`; on their own, they are quick to find, and meaningful for rows to
    predict. A name such as "year" or "subject" is not enough: the values must support it.

    Examples
    --------
    >>> from mmpca.counts import as_counts
    >>> from mmpca.model.inspection import misread_columns
    >>> X = as_counts([[501, 2, 4], [502, 1, 0], [503, 3, 3]])
    >>> [finding.code for finding in misread_columns(X, feature_names=["patient_id", "oak", "elm"])]
    ['identifier']
    """
    case = _Case(counts, counts.row_totals(), counts.column_totals(), np.nan, 0, 0, row_names, feature_names)
    return list(_misread(case))


def warn_of_misread_columns(
    counts: Counts, *, row_names: Names | None = None, feature_names: Names | None = None
) -> None:
    """Issue a SuspiciousCountsWarning for each finding of :func:`misread_columns`."""
    for finding in misread_columns(counts, row_names=row_names, feature_names=feature_names):
        warn(f"{finding.message} {finding.remedy}", SuspiciousCountsWarning)


# --- facts ------------------------------------------------------------------------------------------------------


def _facts(found: Inspection, case: _Case) -> Iterator[Fact]:
    """Yield the lines of ``mmpca inspect`` in their order."""
    yield Fact(
        "size",
        f"{_counted(found.n_rows, 'row')} x {_counted(found.n_features, 'feature')}",
        {"rows": found.n_rows, "features": found.n_features},
    )
    # Rows whose names look like features reveal a transposed table.
    yield Fact("rows", *_first_names(case.row_names, "first_rows"))
    yield Fact("features", *_first_names(case.feature_names, "first_features"))
    yield Fact(
        "counts",
        f"{found.total:,} in {found.n_entries:,} entries ({found.density:.2%} of the matrix)",
        {"total": found.total, "entries": found.n_entries, "density": found.density},
    )
    smallest, median, largest = found.row_totals
    yield Fact(
        "row totals",
        f"{smallest:,} to {largest:,}, median {median:,.0f}; largest count {found.largest_count:,}",
        {
            "row_totals": {"smallest": smallest, "median": median, "largest": largest},
            "largest_count": found.largest_count,
        },
    )
    index = found.overdispersion
    yield Fact(
        "dispersion",
        "unknown: requires two non-empty rows and two features"
        if np.isnan(index)
        else f"{index:.3g} times the variance of a multinomial, before clustering",
        {"overdispersion": None if np.isnan(index) else index},
    )
    yield Fact(
        "fit",
        f"with {_counted(case.n_clusters, 'cluster')} and {_counted(case.n_topics, 'topic')}: about "
        f"{_duration(found.seconds)} on one core, {_megabytes(found.megabytes)} on top of the input",
        {"expected": {"seconds": found.seconds, "megabytes": found.megabytes}},
    )


def _first_names(names: Names | None, key: str) -> tuple[str, dict[str, Any]]:
    """Return the first names as a text and as a JSON entry."""
    if names is None:
        return "no names", {key: None}
    first = [str(name) for name in names[:N_NAMES]]
    shown = [name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…" for name in first]
    return ", ".join(shown + ["…"] * (len(names) > N_NAMES)), {key: first}


def _counted(n: int, noun: str, plural: str = "") -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or noun + 's'}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _megabytes(size: float) -> str:
    return f"{size / 1000:,.1f} GB" if size >= 1000 else f"{max(1.0, size):,.0f} MB"


def pooled_overdispersion(counts: Counts) -> float:
    """Return the overdispersion around the mean profile of all rows; NaN where there is nothing to compare."""
    filled = np.flatnonzero(np.diff(counts.indptr))
    if filled.size < 2:
        return float("nan")
    rows = counts if filled.size == counts.n_rows else counts.take(filled)
    profile = rows.column_totals()[None] / rows.data.sum(dtype=np.int64)  # (1, V)
    one = np.zeros(rows.n_rows, dtype=np.int32)
    return overdispersion(rows, one, topics=profile, cluster_topics=np.ones((1, 1))).overall


# --- cost of a fit ----------------------------------------------------------------------------------------------

# Seconds. Fits to simulated data with 200 to 120,000 rows took 0.5 to 1.4 times the estimate; many clusters that
# overlap take far longer, because most of their moves are close calls.
IMPORT_SECONDS = 2.0  # imports, and compiled kernels from disk
START_SECONDS = 0.04  # any start
EM_SECONDS, EM_WORK = 9e-7, 2e6  # each entry and topic, up to this number of them: larger data learn from a sample
PASS_SECONDS = 2e-7  # each entry and topic beyond: few passes over all rows
TABLE_SECONDS = 3.5e-7  # each cluster, topic and feature: building a start; likewise the final refit
MOVE_SECONDS = 4e-8  # each entry and each cluster or topic: all epochs of a start

# Bytes; fits of 2,000 to a million rows peaked at 0.5 to 1.3 times the sum.
FIXED_BYTES = 4e6
TABLE_BYTES = 96  # each feature and each cluster or topic
ROW_BYTES = 104  # each row
ENTRY_BYTES, SHARE_BYTES = 8, 48  # each entry, each row and topic: of the rows that the starts use


def expected_seconds(counts: Counts, n_clusters: int, n_topics: int) -> float:
    """Estimate the time of a fit on one core: import, topics, starts, search over all rows, refit."""
    shape = (counts.n_rows, counts.n_features)
    sizes: dict[str, Any] = {"n_clusters": n_clusters, "n_topics": n_topics, "shape": shape}
    planned, patience = plan_starts("auto", "auto", **sizes, seed=np.random.SeedSequence(0))
    n_starts = min(len(planned), patience + 1)
    work = counts.nnz * n_topics
    topics = EM_SECONDS * min(work, EM_WORK) + PASS_SECONDS * max(0.0, work - EM_WORK)
    tables = TABLE_SECONDS * n_clusters * n_topics * counts.n_features
    moves = MOVE_SECONDS * counts.nnz * (n_clusters + n_topics)
    sampled = min(1.0, SAMPLED_ROWS / counts.n_rows)
    starts = n_starts * (START_SECONDS + tables + sampled * moves)
    search = tables + moves if sampled < 1 else 0.0
    return IMPORT_SECONDS + topics + starts + search + tables


def expected_megabytes(counts: Counts, n_clusters: int, n_topics: int) -> float:
    """Estimate the memory of a fit in addition to its input."""
    tables = TABLE_BYTES * counts.n_features * (n_clusters + n_topics)
    sampled = min(1.0, SAMPLED_ROWS / counts.n_rows) * (
        ENTRY_BYTES * counts.nnz + SHARE_BYTES * counts.n_rows * n_topics
    )
    return (FIXED_BYTES + tables + ROW_BYTES * counts.n_rows + sampled) / 1e6


# --- findings ---------------------------------------------------------------------------------------------------


def _sizes(case: _Case) -> Iterator[Finding]:
    counts = case.counts
    if case.n_clusters > counts.n_rows:
        message = f"{case.n_clusters} clusters need at least as many rows, but there are only {counts.n_rows}."
        turned = " If the rows are features, add --transpose." if counts.n_features >= case.n_clusters else ""
        yield Finding("error", "few rows", message, f"Use fewer clusters or more rows.{turned}")
    if case.n_topics > counts.n_features:
        message = f"{case.n_topics} topics need at least as many features, but there are only {counts.n_features}."
        yield Finding("error", "few features", message, "Use fewer topics or more features.")


def _empty(case: _Case) -> Iterator[Finding]:
    empty = np.flatnonzero(case.rows == 0)
    if empty.size:
        first, noun = case.row(int(empty[0])), "text" if case.counts_words else "row"
        is_one = empty.size == 1
        which = f"{noun.title()} {first} is" if is_one else f"{empty.size:,} {noun}s (the first is {first}) are"
        level: Level = "note" if case.counts_words else "error"  # a fit leaves out texts without words by itself
        remedy = "They get the label -1." if case.counts_words else "Drop empty rows: mmpca fit --drop-empty."
        lacks = "words" if case.counts_words else "counts"
        yield Finding(level, "empty rows", f"{which} empty: without {lacks}, there is no cluster that fits.", remedy)
    n_columns = int((case.columns == 0).sum())
    if n_columns:
        message = f"{n_columns:,} of {case.columns.size:,} features never occur; no topic gives them any probability."
        yield Finding("note", "empty features", message, "Harmless; drop them to save memory.")


def _transposed(case: _Case) -> Iterator[Finding]:
    if transposition_hint(case.counts) is not None:
        message = "Row totals vary far more than column totals, which is typical of features, not of observations."
        yield Finding("warning", "transposed", message, "If the rows are features, add --transpose.")


def _misread(case: _Case) -> Iterator[Finding]:
    """Find features and rows whose values, or names and values, do not look like counts."""
    # Copies of the same row are no evidence of anything.
    n_distinct = n_distinct_rows(case.counts.take(slice(0, N_SCREENED)))
    if case.counts_words or n_distinct < min(case.counts.n_rows, ENOUGH_DISTINCT_ROWS):
        return
    by_name = _by_name(case)
    named = sorted(v for v, kind in by_name.items() if kind != "total")
    totals = _total_features(case, named)
    by_value = {v: kind for v, kind in _by_value(case).items() if v not in totals}
    suspects = {v: kind for v, kind in (by_value | by_name).items() if kind != "total"}
    for kind, (text, remedy) in _KINDS.items():
        features = [v for v, found in sorted(suspects.items()) if found == kind]
        if features:
            yield Finding("warning", kind, f"{_subject(case, features)} like {text} rather than a count.", remedy)
    yield from _totals(case, sorted(suspects), [v for v, kind in by_name.items() if kind == "total"])


def _oddly_named(case: _Case) -> Iterator[Finding]:
    """Find features with suspicious names, in a table of few features or at its ends, whose values may be counts."""
    if case.counts_words or case.feature_names is None:
        return
    n_rows, n_features = case.counts.n_rows, case.counts.n_features
    few = n_features <= FEW_FEATURES
    places = np.arange(n_features) if few else np.r_[:N_ENDS, n_features - N_ENDS : n_features]
    n_present = case.counts.column_entries()[places]  # rows with each
    is_likely = n_present > 0 if few else n_present >= max(ENOUGH_ROWS, n_rows - 1)
    known = _by_name(case) | _by_value(case)
    names = {int(v): _kind_of_name(case.feature_names[v]) for v in places[is_likely].tolist()}
    features = [v for v, kind in names.items() if kind not in ("", "total") and v not in known]
    if features:
        message = f"{_subject(case, features)} by name like a description of the rows, though its values may be counts."
        yield Finding("note", "suspicious names", message, "Remove it unless it counts the same events as the rest.")


def _subject(case: _Case, features: list[int]) -> str:
    """Return the beginning of a sentence about features."""
    names = ", ".join(case.feature(v) for v in features[:N_LISTED])
    more = f" and {len(features) - N_LISTED:,} more" if len(features) > N_LISTED else ""
    return f"Feature {names} looks" if len(features) == 1 else f"Features {names}{more} each look"


_KINDS = {
    "identifier": (
        "an identifier",
        "Remove it, or let it name the rows: as the index of a data frame, or as the first column of a file with the "
        "title id.",
    ),
    "metadata": ("a description of the rows", "Remove it, unless it counts the same events as the rest."),
}

_IDENTIFIERS = {"id", "ids", "uid", "uuid", "guid"}
_BEARERS = (
    "patient|user|subject|participant|person|individual|respondent|customer|client|student|sample|specimen|case|record|"
    "row|line|study|visit|doc|document|cell|order|site|plot|animal|mouse|donor|employee|member|account|session|device"
)
_BEARER_NAME = re.compile(rf"({_BEARERS})s?( ?(id|ids|no|nr|num|number|code|key|name|names|index))?")
_NUMBERINGS = {"id", "index", "idx", "key", "no", "nr", "num", "number", "code", "rownames", "rowname", "barcode"}
_DESCRIPTIONS = {
    *("year", "yr", "month", "week", "weekday", "day", "hour", "date", "time", "timestamp", "age", "sex", "gender"),
    *("height", "weight", "bmi", "batch", "plate", "lane", "group", "cluster", "label", "class", "target", "treatment"),
    *("replicate", "zip", "zipcode", "postcode", "phone", "latitude", "longitude", "lat", "lon", "lng", "elevation"),
    *("altitude", "depth", "temperature"),
}
_TOTALS = re.compile(
    r"(grand |row |column |col |library )?(totals?|sums?|size)( (counts?|reads|umis?))?|n ?counts?( rna)?|all|margin"
)


def _words(name: object) -> list[str]:
    """Split a name into lowercase words, at capitals and at anything that is not a letter or a digit."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", str(name))]


def _kind_of_name(name: object) -> str:
    """Return the kind of feature that a name suggests: "surely identifier", "identifier", "metadata", "total" or ""."""
    if str(name).startswith("Unnamed:"):
        return "surely identifier"
    words = _words(name)
    if not words:
        return ""
    bearer = _BEARER_NAME.fullmatch(" ".join(words))
    if (len(words) > 1 and words[-1] in _IDENTIFIERS) or (bearer and bearer[2]):
        return "surely identifier"
    if bearer or words[-1] in _NUMBERINGS:
        return "identifier"
    if words[-1] in _DESCRIPTIONS or words[0] in _DESCRIPTIONS - {"time", "date", "class", "group"}:
        return "metadata"
    return "total" if _TOTALS.fullmatch(" ".join(words)) else ""


def _by_name(case: _Case) -> dict[int, str]:
    """Return features whose names say that they are not counts, and whose values support it, with their kinds."""
    if case.feature_names is None or case.counts.n_features < 2:
        return {}
    n_rows = case.counts.n_rows
    n_present = case.counts.column_entries()  # rows with each feature, (V,)
    kinds = {
        v: kind
        for v in np.flatnonzero((n_present > 0) & (n_present >= FILLED_SHARE * n_rows - 1)).tolist()
        if (kind := _kind_of_name(case.feature_names[v]))
    }
    if not kinds:
        return {}
    X, found = case.counts.to_csr(), {}
    for v in sorted(kinds, key=lambda v: -case.columns[v]):  # the largest first, which hide others
        x, kind = X[:, [v]].toarray().ravel(), kinds[v]
        if kind == "surely identifier":
            if n_present[v] >= n_rows - 1:  # numbers may begin at 0; no word is in all texts and has such a name
                found[v] = "identifier"
        elif kind == "total" or _is_unlike_counts(x, _largest_count(X, [v, *found])):
            found[v] = kind
    return found


def _largest_count(X: sparse.csr_array, others: list[int]) -> NDArray[np.int32]:
    """Return the largest count of each row, apart from the features `others`, (N,)."""
    data = np.where(np.isin(X.indices, others), 0, X.data)
    largest: NDArray[np.int32] = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape).max(axis=1).toarray()
    return largest.ravel()


def _is_unlike_counts(x: NDArray[np.int32], largest: NDArray[np.int32]) -> bool:
    """Return True if values, (n,), look unlike counts; `largest` are the largest other counts of the rows, (n,)."""
    n = x.size
    if n < ENOUGH_NAMED_ROWS:
        return False
    steps = np.diff(x)
    if (steps > 0).all() or (n >= ENOUGH_ROWS and (steps >= 0).all() and np.unique(x).size >= MIN_DISTINCT):
        return True
    if x.min() >= NAMED_YEARS[0] and x.max() <= NAMED_YEARS[1] and x.std() < 0.1 * x.mean():
        return True
    if n < ENOUGH_ROWS:
        return False
    if np.median(x) >= CONSTANT and (x > DOMINANCE * largest.astype(np.int64)).mean() >= FILLED_SHARE:
        return True
    # Counts in this range would repeat more often, even if all values were equally probable: the birthday problem.
    n_pairs = n * (n - 1) / 2
    n_repeated = n - np.unique(x).size
    if pdtr(n_repeated, n_pairs / (int(np.ptp(x)) + 1)) < UNLIKELY and n_repeated <= (1 - FILLED_SHARE) * n:
        return True
    # Codes such as 1 and 2 in every row vary less than counts.
    return bool(x.min() > 0 and chdtr(n - 1, ((x - x.mean()) ** 2).sum() / x.mean()) < VERY_UNLIKELY)


def _by_value(case: _Case) -> dict[int, str]:
    """Return features whose values suggest that they are not counts, with their kinds."""
    counts, n_rows = case.counts, case.counts.n_rows
    if n_rows < ENOUGH_ROWS or counts.n_features < 2:
        return {}
    features = np.flatnonzero(counts.column_entries() >= n_rows - 1)  # numbers may begin at 0
    for rows in (counts.take(slice(0, N_SCREENED)), counts):  # few features pass the first
        X = rows.to_csr()[:, features].toarray()  # (n, v)
        kinds = [_kind_of_values(x, case.columns[v] / case.columns.sum()) for x, v in zip(X.T, features, strict=True)]
        is_suspect = np.array([kind != "" for kind in kinds], dtype=bool)
        features, kinds = features[is_suspect], [kind for kind in kinds if kind]
    return dict(zip(features.tolist(), kinds, strict=True))


def _kind_of_values(x: NDArray[np.int32], share: float) -> str:
    """Return the kind of a column, (n,), that does not look like counts; "" if it does."""
    if (x[1:] > x[:-1]).all() or (share > IDENTIFIER_SHARE and np.unique(x).size == x.size):
        return "identifier"
    is_year = (
        x.min() >= YEARS[0] and x.max() <= YEARS[1] and x.var() < x.mean() / 4
    )  # counts vary as much as their mean
    if is_year or (x[0] >= CONSTANT and (x == x[0]).all()):
        return "metadata"
    return ""


def _total_features(case: _Case, others: list[int]) -> list[int]:
    """Return the features that are the sum of all features, apart from `others`, in every row."""
    X, columns = case.counts.to_csr(), case.columns.copy()
    columns[others] = 0
    rows = case.rows - X[:, others].sum(axis=1, dtype=np.int64)
    if case.counts.n_features - len(others) < 3 or _log_chance(rows) > np.log(COINCIDENCE):
        return []
    candidates = np.flatnonzero(2 * columns == columns.sum()).tolist()
    return [v for v in candidates if np.array_equal(2 * X[:, [v]].toarray().ravel().astype(np.int64), rows)]


def _log_chance(sums: NDArray[np.int64]) -> float:
    """Return the log-probability that numbers, with these sums when added to their totals, equal them by chance."""
    return -float(np.log(np.maximum(sums / 2, 1)).sum())  # a total of n would be any number up to n as well


def _log_chance_of_place(rows: NDArray[np.int64], i: int) -> float:
    """Return the log-probability that a row among rows with these totals, (N,), is as large and where it is."""
    # Totals with the heaviest tail that is common, Zipf's: the largest is c times the second with probability 1 / c.
    chance = -np.log(rows[i] / max(1, np.delete(rows, i).max()))
    is_at_end = i in (0, rows.size - 1)  # where tables have their totals
    return float(chance + np.log(2 / rows.size) if is_at_end else chance)


def _total_rows(case: _Case, others: list[int]) -> list[int]:
    """Return the rows that are the sum of all rows, apart from `others` among the features."""
    X, columns = case.counts.to_csr(), case.columns.copy()
    columns[others] = 0
    rows = case.rows - X[:, others].sum(axis=1, dtype=np.int64)
    if case.counts.n_rows < 3 or not rows.any():
        return []
    found = []
    for i in np.flatnonzero(2 * rows == rows.sum()).tolist():
        x = X[[i]].toarray().ravel().astype(np.int64)
        x[others] = 0
        is_total = np.array_equal(2 * x, columns)
        if is_total and _log_chance(columns) + _log_chance_of_place(rows, i) < np.log(COINCIDENCE):
            found.append(i)
    # Totals of more than the table, or with empty cells, are not the sum of the rows; they are still the largest row.
    largest = int(rows.argmax())
    is_named = case.row_names is not None and _TOTALS.fullmatch(" ".join(_words(case.row_names[largest])))
    return sorted({*found, largest}) if is_named else found


def _totals(case: _Case, others: list[int], named: list[int]) -> Iterator[Finding]:
    """Find totals of features and of rows, apart from `others`; those `named` as totals may exceed the sum."""
    X = case.counts.to_csr()
    exceeding = []
    if named and case.counts.n_rows >= 3:
        rest = case.rows - X[:, sorted({*others, *named})].sum(axis=1, dtype=np.int64)  # (N,)
        exceeding = [v for v in named if rest.any() and (X[:, [v]].toarray().ravel() >= rest).all()]
    for v in sorted({*_total_features(case, others), *exceeding}):
        message = f"Feature {case.feature(v)} seems to be the total of the others, so everything is counted twice."
        yield Finding("warning", "totals feature", message, "Remove it.")
    for i in _total_rows(case, others):
        message = f"Row {case.row(i)} seems to be the total of the others, but would be clustered like them."
        yield Finding("warning", "totals row", message, "Remove it.")


def _scaled(case: _Case) -> Iterator[Finding]:
    filled = case.rows[case.rows > 0]
    if filled.size < 2:
        return
    power = 10.0 ** np.round(np.log10(np.median(filled)))
    if power >= 1000 and (np.abs(filled - power) <= 0.01 * power).all() and np.ptp(filled) > 0:
        message = f"All rows sum to about {power:,.0f}: they seem to be scaled to a common total and rounded."
        yield Finding(
            "warning", "scaled rows", message, "Use the raw counts; the model accounts for row totals itself."
        )


def _common_factor(case: _Case) -> Iterator[Finding]:
    factor = int(np.gcd.reduce(case.counts.data)) if case.counts.nnz else 1
    if factor > 1:
        message = f"All counts are multiples of {factor}, so the model would see each event {factor} times."
        yield Finding("warning", "common factor", message, f"Divide the counts by {factor}.")


def _presence(case: _Case) -> Iterator[Finding]:
    if case.counts.nnz and int(case.counts.data.max()) == 1 and case.rows.max() > 1:
        message = "No count exceeds 1: the data record presence and absence."
        yield Finding("note", "presences", message, "Fine if that is all there is; use counts if you have them.")


def _duplicate_rows(case: _Case) -> Iterator[Finding]:
    n_duplicates = case.counts.n_rows - n_distinct_rows(case.counts)
    if n_duplicates > DUPLICATE_SHARE * case.counts.n_rows:
        message = f"{_counted(n_duplicates, 'exact copy of an earlier row', 'exact copies of earlier rows')} found."
        yield Finding("warning", "duplicate rows", message, "Check that no record was read twice; otherwise keep them.")


def _rare(case: _Case) -> Iterator[Finding]:
    n_rows = case.counts.column_entries()  # rows with the feature, (V,)
    n_rare, n_present = int((n_rows == 1).sum()), int((n_rows > 0).sum())
    if case.counts.n_rows > 10 and n_rare > RARE_SHARE * n_present:
        message = f"{n_rare:,} of {n_present:,} features occur in a single row and cannot separate clusters."
        yield Finding("note", "rare features", message, "Drop them to save time; for texts, use --min-rows 2.")


def _short(case: _Case) -> Iterator[Finding]:
    n_short = int((case.rows < SHORT_TOTAL).sum())
    if n_short > SHORT_SHARE * case.counts.n_rows:
        message = f"{n_short:,} of {case.counts.n_rows:,} rows have fewer than {SHORT_TOTAL} counts."
        remedy = "Expect many borderline rows; use few clusters, and check rows with mmpca explain."
        yield Finding("warning", "short rows", message, remedy)


def _uneven(case: _Case) -> Iterator[Finding]:
    filled = case.rows[case.rows > 0]
    if filled.size and filled.max() > UNEVEN_FACTOR * np.median(filled):
        row, largest, median = case.row(int(case.rows.argmax())), int(filled.max()), np.median(filled)
        message = f"Row {row} has {largest:,} counts, but the median row has {median:,.0f}."
        yield Finding("warning", "uneven rows", message, "Check that this row is not a total, or in another unit.")


def _dominant(case: _Case) -> Iterator[Finding]:
    total = case.columns.sum()
    v = int(case.columns.argmax())
    if total and case.counts.n_features > 10 and case.columns[v] > DOMINANT_SHARE * total:
        message = f"Feature {case.feature(v)} makes up {case.columns[v] / total:.0%} of all counts."
        yield Finding("warning", "dominant feature", message, "Drop it if it is noise, or try --dispersion polya.")


def _overdispersed(case: _Case) -> Iterator[Finding]:
    if case.dispersion > LARGE_INDEX:
        message = (
            f"Counts vary {case.dispersion:.3g} times as much as a multinomial allows; clusters explain part of it."
        )
        remedy = f"If a fit still reports an overdispersion above {LARGE_INDEX:g}, fit again with --dispersion polya."
        yield Finding("note", "overdispersion", message, remedy)


def _duplicate_names(case: _Case) -> Iterator[Finding]:
    sides: tuple[tuple[Names | None, str, Level, str], ...] = (
        (
            case.feature_names,
            "feature",
            "warning",
            "Rename or add up these features: predict cannot match them by name.",
        ),
        (case.row_names, "row", "note", "Harmless for a fit; labels follow the order of the rows."),
    )
    for names, noun, level, remedy in sides:
        if names is not None and (n_duplicates := len(names) - len({str(name) for name in names})):
            message = f"{n_duplicates:,} of {len(names):,} {noun} names repeat an earlier one."
            yield Finding(level, f"duplicate {noun} names", message, remedy)


# Errors first, then the problems that harm a fit most.
_CHECKS: tuple[Callable[[_Case], Iterator[Finding]], ...] = (
    _sizes,
    _empty,
    _misread,
    _transposed,
    _scaled,
    _common_factor,
    _duplicate_rows,
    _short,
    _uneven,
    _dominant,
    _overdispersed,
    _rare,
    _presence,
    _oddly_named,
    _duplicate_names,
)


def n_distinct_rows(counts: Counts) -> int:
    """Count the distinct rows; empty rows count as distinct."""
    bounds = counts.indptr
    seen = set()
    n_empty = 0
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if start == stop:
            n_empty += 1
        else:
            seen.add(hash((counts.indices[start:stop].tobytes(), counts.data[start:stop].tobytes())))
    return len(seen) + n_empty
