"""The model and the data that a report is about, checked once, and its rows with the evidence for their clusters."""

from __future__ import annotations

import base64
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
from mmpca.model.explanation import VERDICTS, Evidence, Explanation
from mmpca.model.results import TEXT_WORDS, Words, group_names, typical_rows, words_of
from mmpca.plots.rows import row_layout
from mmpca.report.formatting import TEXT_LENGTH, clean, clean_text

EXPLAINED = 0.8  # share of the evidence of a row that is listed
MAX_EVIDENCE = 60  # features listed for a row
EVIDENCE_BYTES, EVIDENCE_BYTES_PER_ROW = 250_000, 8  # room for the evidence of all rows in the page
ENTRY_BYTES = 7  # of one feature in it
MAX_LISTED = 160  # typical and borderline rows on the page, which bounds its size for any number of clusters
MAX_PER_CLUSTER = 5  # typical rows, and as many borderline ones
MAX_SEARCHABLE = 20_000  # rows on the map and in the search box
SEARCH_NAME_LENGTH, FEATURE_NAME_LENGTH = 40, 40
MAX_NAME_BYTES = 300_000  # of all names for the script of the page
TEXT_SIZE = 2_000_000  # default size of all texts in a page, in bytes
LEAST_TEXT = 200  # bytes below which a shortened text is of no use
BLOCK_SIZE = 2000
UNKNOWN = 255  # stability of a row without refits, in percent


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
    words: Words

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.clusters)

    def row_name(self, i: int) -> str:
        """Return the name of a row, or its index if it has none."""
        return f"{self.words.row} {i}" if self.row_names is None else str(self.row_names[i])

    def feature_name(self, v: int) -> str:
        """Return the name of a feature, or its index if it has none."""
        return f"{self.words.feature} {v}" if self.feature_names is None else str(self.feature_names[v])


def check_context(
    model: MMPCA,
    X: Any = None,
    *,
    labels: Sequence[object] | None = None,
    texts: Sequence[object] | None = None,
    row_names: Sequence[object] | None = None,
    row_word: str | None = None,
    feature_word: str | None = None,
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
        reader_words(model, row_word, feature_word, is_text=texts is not None),
    )


def reader_words(model: MMPCA, row: str | None, feature: str | None, *, is_text: bool) -> Words:
    """Return the nouns for a row and a feature: those given, those of the model, or the usual ones for such data."""
    known = words_of(model)
    known = TEXT_WORDS if is_text and known == Words() else known
    return Words(clean(row or known.row), clean(feature or known.feature))


# --- rows -------------------------------------------------------------------------------------------------------


class Margins(NamedTuple):
    """How certain the cluster of each row is."""

    margin: NDArray[np.float64]  # (N,), log-odds against the runner-up in nats
    probability: NDArray[np.float64]  # (N,)
    runner_up: NDArray[np.intp]  # (N,), -1 if there is no other cluster
    stability: NDArray[np.float64]  # (N,), share of the refits that agree; NaN if unknown
    verdict: list[str]
    also: NDArray[np.float64]  # (Q, Q), mean probability of each cluster among the rows of each cluster


class Row(NamedTuple):
    """One row, with the evidence for its cluster if the report has the data."""

    number: int  # index in the data
    name: str
    text: str | None
    label: str | None
    cluster: int
    kind: str  # "typical" or "borderline"
    why: Explanation
    shown: list[str]  # features with the strongest evidence for the cluster


def measure_margins(context: Context) -> Margins | None:
    """Return how certain the clusters of all rows are; None without data."""
    if context.X is None:
        return None
    n_rows, n_clusters = context.n_rows, len(context.model.weights_)
    margin, probability, stability = np.empty(n_rows), np.empty(n_rows), np.full(n_rows, np.nan)
    runner_up, also = np.full(n_rows, -1, dtype=np.intp), np.zeros((n_clusters, n_clusters))
    verdicts: list[str] = []
    for start in range(0, n_rows, BLOCK_SIZE):  # explaining all rows at once would take too much memory
        block = np.arange(start, min(start + BLOCK_SIZE, n_rows))
        for i, why in zip(block.tolist(), explain_rows(context, block, n_features=0), strict=True):
            margin[i], probability[i] = why.margin, why.probability
            if why.runner_up is not None:
                runner_up[i] = why.runner_up
            if why.stability is not None:
                stability[i] = why.stability
            verdicts.append(why.verdict)
            also[why.cluster, why.cluster] += why.probability
            for other in why.alternatives:
                also[why.cluster, other.cluster] += other.probability
    sizes = np.bincount(context.clusters, minlength=n_clusters)[:, None]
    return Margins(margin, probability, runner_up, stability, verdicts, also / np.maximum(sizes, 1))


def explain_rows(context: Context, indices: NDArray[np.intp], n_features: int = MAX_EVIDENCE) -> list[Explanation]:
    """Explain the clusters that the report shows for some rows."""
    assert context.X is not None
    # Pass all rows, so fitted rows are recognized and evaluated without their own contribution.
    return context.model.explain(context.X, indices, labels=context.clusters, n_features=n_features, gains=False)


def listed_evidence(why: Explanation, most: int = MAX_EVIDENCE) -> list[Evidence]:
    """Return the strongest features until four fifths of the evidence are listed, those for the cluster first."""
    strongest = sorted(why.evidence_for + why.evidence_against, key=lambda part: -abs(part.nats))
    listed: list[Evidence] = []
    left = EXPLAINED * why.total_evidence
    for part in strongest[:most]:
        if left <= 0:
            break
        listed.append(part)
        left -= abs(part.nats)
    return sorted(listed, key=lambda part: -part.nats)


def n_to_move(why: Explanation) -> int:
    """Return how many of the strongest features for its cluster a row would have to lack to belong to the runner-up.

    0 if the runner-up is more probable already, -1 if the known features are not enough.
    """
    left = why.margin
    if left < 0:
        return 0
    for number, part in enumerate(why.evidence_for, start=1):
        left -= part.nats
        if left < 0:
            return number
    return -1


def row_details(context: Context, why: Explanation) -> dict[str, Any]:
    """Return everything that the page shows about an opened row, for the script of a served page."""
    listed = listed_evidence(why)
    _, *known = why.other_terms
    rest = why.margin - sum(part.nats for part in listed) - sum(nats for _, nats in known)
    terms = [(f"all other {context.words.features}", rest), *known]
    return {
        "evidence": [[clean(context.feature_name(part.feature)), part.occurrences, part.nats] for part in listed],
        "terms": terms if why.runner_up is not None else [],
        "margin": why.margin if np.isfinite(why.margin) else None,
        "toMove": n_to_move(why),
        "text": None if context.texts is None else clean_text(context.texts[why.row]),
    }


def representative_rows(context: Context, margins: Margins) -> list[Row]:
    """Return the most typical and the least certain rows of each cluster."""
    assert context.X is not None
    n_each = max(1, min(MAX_PER_CLUSTER, MAX_LISTED // (2 * len(context.model.weights_))))
    found: list[tuple[int, str]] = []
    counts, own = as_counts(context.X, empty_rows="allow"), np.where(margins.margin >= 0, context.clusters, -1)
    for q, leading in enumerate(typical_rows(context.model, counts, own, n_each)):
        others = np.setdiff1d(np.flatnonzero(context.clusters == q), leading)
        least = others[np.argsort(margins.margin[others], kind="stable")][:n_each].tolist()
        found += [(i, "typical") for i in leading] + [(i, "borderline") for i in least]
    explained = explain_rows(context, np.array([i for i, _ in found], dtype=np.intp), n_features=3)
    return [
        Row(
            number=i,
            name=clean(context.row_name(i)),
            text=None if context.texts is None else clean(context.texts[i], TEXT_LENGTH),
            label=None if context.labels is None else clean(context.labels[i]),
            cluster=int(context.clusters[i]),
            kind=kind,
            why=why,
            shown=[clean(context.feature_name(part.feature)) for part in why.evidence_for],
        )
        for (i, kind), why in zip(found, explained, strict=True)
    ]


# --- rows for the script of the page ----------------------------------------------------------------------------


def packed(values: Any, dtype: str) -> str:
    """Return numbers as the base64 text of little-endian bytes, a third of the size of JSON."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


def script_rows(context: Context, margins: Margins | None, on_page: set[int], text_size: int | None) -> dict[str, Any]:
    """Return the rows that the map shows and the search box finds, by column, for the script of the page.

    They are evenly spaced, plus the rows shown on the page. Without a text size, a server has texts and evidence.
    """
    evenly_spaced = np.linspace(0, context.n_rows - 1, min(context.n_rows, MAX_SEARCHABLE)).round().astype(int)
    chosen = np.array(sorted({*evenly_spaced.tolist(), *on_page}), dtype=np.intp)
    columns: dict[str, Any] = {"n": len(chosen), "cluster": packed(context.clusters[chosen], "u2")}
    if len(chosen) < context.n_rows:
        columns["number"] = packed(chosen, "u4")
    if context.row_names is not None:
        names = [clean(context.row_name(i), SEARCH_NAME_LENGTH) for i in chosen.tolist()]
        n_bytes = sum(len(name.encode()) for name in names)
        if n_bytes > MAX_NAME_BYTES:
            names = [clean(name, SEARCH_NAME_LENGTH * MAX_NAME_BYTES // n_bytes) for name in names]
        columns["name"] = names
    if context.labels is not None:
        known, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
        columns["label"], columns["labels"] = packed(codes[chosen], "u2"), [clean(label) for label in known]
    if margins is not None:
        assert context.X is not None
        columns["probability"] = packed(np.floor(10_000 * margins.probability[chosen]), "u2")
        columns["verdict"] = packed([VERDICTS.index(margins.verdict[i]) for i in chosen.tolist()], "u1")
        columns["runner"] = packed(margins.runner_up[chosen] % 65536, "u2")
        if not np.isnan(margins.stability).all():
            columns["stability"] = packed(np.nan_to_num(np.floor(100 * margins.stability[chosen]), nan=UNKNOWN), "u1")
        positions = row_layout(context.model.transform(context.X[chosen]), context.clusters[chosen])
        columns["x"], columns["y"] = (packed(np.rint(10_000 * at), "u2") for at in positions.T)
        if text_size is not None:
            columns |= _packed_evidence(context, chosen)
    if context.texts is not None and text_size is not None:
        columns |= _kept_texts(context, chosen.tolist(), text_size)
    return columns


def _packed_evidence(context: Context, chosen: NDArray[np.intp]) -> dict[str, Any]:
    """Return the strongest evidence of some rows: as much as there is room for, at most four fifths of it."""
    room = EVIDENCE_BYTES + EVIDENCE_BYTES_PER_ROW * len(chosen)
    most = max(2, min(MAX_EVIDENCE, room // (ENTRY_BYTES * max(1, len(chosen)))))
    n_listed, margins, moves, entries = [], [], [], []
    for start in range(0, len(chosen), BLOCK_SIZE):
        for why in explain_rows(context, chosen[start : start + BLOCK_SIZE], n_features=most):
            listed = listed_evidence(why, most)
            n_listed.append(len(listed))
            margins.append(why.margin)
            moves.append(n_to_move(why) % 256)
            entries += [(part.feature, part.occurrences, part.nats) for part in listed]
    features, counts, nats = zip(*entries, strict=True) if entries else ((), (), ())
    return {
        "margin": packed(np.clip(np.rint(10 * np.nan_to_num(margins, posinf=0)), -32768, 32767), "i2"),
        "moves": packed(moves, "u1"),
        "listed": packed(n_listed, "u1"),
        "features": np.array(features, dtype=np.intp),  # replaced by positions among the names in the page
        "counts": packed(np.minimum(counts, 65535), "u2"),
        "nats": packed(np.clip(np.rint(100 * np.array(nats)), -32768, 32767), "i2"),
    }


def _kept_texts(context: Context, chosen: list[int], size: int) -> dict[str, Any]:
    """Return the texts of rows, whole if they fit into this many bytes; otherwise long ones are shortened."""
    assert context.texts is not None
    texts = [clean_text(context.texts[i], size) for i in chosen]
    lengths = np.sort([len(text.encode()) for text in texts])
    # The longest length at which all texts together have the size: the k shortest are whole, the others equally long.
    cut = int(lengths[-1])
    if lengths.sum() > size:
        before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        equal = (size - before) / np.arange(len(lengths), 0, -1)
        at = int(np.argmax(equal < lengths))
        cut = int(equal[at])
        if cut < LEAST_TEXT:
            return {}
    return {"text": [_shortened(text, cut) for text in texts], "cut": cut if cut < lengths[-1] else None}


def _shortened(text: str, n_bytes: int) -> str:
    encoded = text.encode()
    return text if len(encoded) <= n_bytes else encoded[: n_bytes - 3].decode(errors="ignore").rstrip() + "…"
