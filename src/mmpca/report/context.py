"""The model and the data that a report is about, checked once, and its rows with the evidence for their clusters."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import as_counts
from mmpca.model import MMPCA
from mmpca.model.explanation import Explanation
from mmpca.model.results import group_names
from mmpca.plots.rows import row_layout
from mmpca.report.formatting import TEXT_LENGTH, clean

N_EVIDENCE = 5  # features listed on each side
MAX_EXPLAINED = 240  # rows on the page, which bounds its size for any number of clusters
MAX_PER_CLUSTER = 5  # typical rows, and as many borderline ones
MAX_SEARCHABLE = 20_000  # rows on the map and in the search box
SEARCH_NAME_LENGTH = 40
MAX_NAME_BYTES = 1_000_000  # of all names for the script of the page
VERDICTS = ("clear", "likely", "borderline")
BLOCK_SIZE = 2000


class Context(NamedTuple):
    """The model and the data that a report is about."""

    # Without its feature names, because a sparse X has none and scikit-learn would warn on every call. Silencing that
    # warning would change the warning filters of all threads of a server.
    model: MMPCA
    feature_names: Sequence[object] | NDArray[Any] | None
    cluster_names: list[str]
    topic_names: list[str]
    X: sparse.csr_array | None  # rows to show, (N, V)
    clusters: NDArray[np.integer[Any]]  # (N,); `labels_` for the fitted rows, predicted for others
    is_fitted_data: bool  # whether the rows are those that the model was fitted to
    labels: list[str] | None  # known class of each row
    texts: Sequence[object] | None
    row_names: Sequence[object] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.clusters)

    def row_name(self, i: int) -> str:
        """Return the name of a row, or its index if it has none."""
        return f"row {i}" if self.row_names is None else str(self.row_names[i])

    def feature_name(self, v: int) -> str:
        """Return the name of a feature, or its index if it has none."""
        return f"feature {v}" if self.feature_names is None else str(self.feature_names[v])


def check_context(
    model: MMPCA,
    X: Any = None,
    *,
    labels: Sequence[object] | None = None,
    texts: Sequence[object] | None = None,
    row_names: Sequence[object] | None = None,
) -> Context:
    """Check the arguments of a report and return them as a context.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    ValueError
        X does not fit the model, or another argument does not have one entry for each row.
    """
    check_is_fitted(model)
    unnamed = copy.copy(model)
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None:
        del unnamed.feature_names_in_
    clusters_named, topics_named = ([clean(name) for name in group_names(model, kind)] for kind in ("cluster", "topic"))
    matrix, clusters, is_fitted_data = None, model.labels_, True
    if X is not None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            predicted = model.predict(X)  # also checks X, and the order of its columns if they are named
        matrix = as_counts(X, empty_rows="allow").to_csr()
        # Explaining one row compares all rows with those of the fit.
        is_fitted_data = len(predicted) == len(model.labels_) and (
            unnamed.explain(matrix, [0], n_features=0, gains=False)[0].is_fitted
        )
        clusters = model.labels_ if is_fitted_data else predicted
    for name, values in (("labels", labels), ("texts", texts), ("row_names", row_names)):
        if values is not None and len(values) != len(clusters):
            source = "the model was fitted to" if X is None else "X has"
            raise ValueError(
                f"{name} must have one entry for each row, but it has {len(values):,} entries and {source} "
                f"{len(clusters):,} rows. Pass the entries in the order of the rows, and X if the rows are new."
            )
    known = None if labels is None else [str(label) for label in labels]
    return Context(
        unnamed,
        feature_names,
        clusters_named,
        topics_named,
        matrix,
        clusters,
        is_fitted_data,
        known,
        texts,
        row_names,
    )


# --- rows -------------------------------------------------------------------------------------------------------


class Margins(NamedTuple):
    """How certain the cluster of each row is."""

    margin: NDArray[np.float64]  # (N,), log-odds against the runner-up in nats
    probability: NDArray[np.float64]  # (N,)
    verdict: list[str]


class Row(NamedTuple):
    """One row, with the evidence for its cluster if the report has the data."""

    number: int  # index in the data
    name: str
    text: str | None
    label: str | None
    cluster: int
    kind: str  # "typical", "borderline" or "found"
    why: Explanation | None
    evidence: list[tuple[str, int, float]]  # feature, count, nats


def measure_margins(context: Context) -> Margins | None:
    """Return how certain the clusters of all rows are; None without data."""
    if context.X is None:
        return None
    margin, probability = np.empty(context.n_rows), np.empty(context.n_rows)
    verdicts: list[str] = []
    for start in range(0, context.n_rows, BLOCK_SIZE):  # explaining all rows at once would take too much memory
        block = np.arange(start, min(start + BLOCK_SIZE, context.n_rows))
        explained = _explain(context, block, n_features=0)
        margin[block] = [why.margin for why in explained]
        probability[block] = [why.probability for why in explained]
        verdicts += [why.verdict for why in explained]
    return Margins(margin, probability, verdicts)


def explain_rows(context: Context, indices: Sequence[int], kind: str) -> list[Row]:
    """Return rows in the given order, with the evidence for their clusters if the report has the data."""
    if not indices:
        return []
    if context.X is None:
        explained: Sequence[Explanation | None] = [None] * len(indices)
    else:
        explained = _explain(context, np.array(indices, dtype=np.intp), n_features=N_EVIDENCE)
    return [
        Row(
            number=i,
            name=clean(context.row_name(i)),
            text=None if context.texts is None else clean(context.texts[i], TEXT_LENGTH),
            label=None if context.labels is None else clean(context.labels[i]),
            cluster=int(context.clusters[i]),
            kind=kind,
            why=why,
            evidence=[] if why is None else _evidence(context, why),
        )
        for i, why in zip(indices, explained, strict=True)
    ]


def representative_rows(context: Context, margins: Margins) -> list[Row]:
    """Return the most and the least certain rows of each cluster."""
    n_each = max(1, min(MAX_PER_CLUSTER, MAX_EXPLAINED // (2 * len(context.model.weights_))))
    typical: list[int] = []
    borderline: list[int] = []
    for q in range(len(context.model.weights_)):
        members = np.flatnonzero(context.clusters == q)
        order = members[np.argsort(-margins.margin[members], kind="stable")].tolist()
        typical += order[:n_each]
        borderline += order[n_each:][::-1][:n_each]
    rows = explain_rows(context, typical, "typical") + explain_rows(context, borderline, "borderline")
    return sorted(rows, key=lambda row: row.cluster)  # stable, so typical rows stay before borderline ones


def script_rows(context: Context, margins: Margins | None, on_page: set[int]) -> dict[str, Any]:
    """Return the rows that the map shows and the search box finds, by column, for the script of the page.

    They are evenly spaced, plus the rows shown on the page. Positions and probabilities are in thousandths.
    """
    evenly_spaced = np.linspace(0, context.n_rows - 1, min(context.n_rows, MAX_SEARCHABLE)).round().astype(int)
    chosen = np.array(sorted({*evenly_spaced.tolist(), *on_page}), dtype=np.intp)
    columns: dict[str, Any] = {"number": chosen.tolist(), "cluster": context.clusters[chosen].tolist()}
    if context.row_names is not None:
        names = [clean(context.row_name(i), SEARCH_NAME_LENGTH) for i in chosen.tolist()]
        n_bytes = sum(len(name.encode()) for name in names)
        if n_bytes > MAX_NAME_BYTES:
            names = [clean(name, SEARCH_NAME_LENGTH * MAX_NAME_BYTES // n_bytes) for name in names]
        columns["name"] = names
    if context.labels is not None:
        known, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
        columns["label"], columns["labels"] = codes[chosen].tolist(), [clean(label) for label in known]
    if margins is not None:
        assert context.X is not None
        columns["probability"] = np.floor(1000 * margins.probability[chosen]).astype(int).tolist()
        columns["verdict"] = [VERDICTS.index(margins.verdict[i]) for i in chosen.tolist()]
        positions = row_layout(context.model.transform(context.X[chosen]), context.clusters[chosen])
        columns["x"], columns["y"] = np.rint(1000 * positions.T).astype(int).tolist()
    return columns


def _explain(context: Context, indices: NDArray[np.intp], n_features: int) -> list[Explanation]:
    """Explain the clusters that the report shows for some rows."""
    assert context.X is not None
    # All rows are passed, so that fitted rows are recognized as such and judged without themselves.
    return context.model.explain(context.X, indices, labels=context.clusters, n_features=n_features, gains=False)


def _evidence(context: Context, why: Explanation) -> list[tuple[str, int, float]]:
    """Return the listed features with their names, strongest first, those for the cluster before those against it."""
    return [
        (clean(context.feature_name(part.feature)), part.occurrences, part.nats)
        for part in why.evidence_for + why.evidence_against
    ]
