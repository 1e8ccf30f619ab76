"""The model and the data that a report is about, checked once, and its rows with the evidence for their clusters."""

from __future__ import annotations

import base64
import copy
import re
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import as_counts
from mmpca.model import MMPCA
from mmpca.model.explanation import VERDICTS, Explanation, RowTerms, judge, row_terms
from mmpca.model.results import TEXT_WORDS, Words, group_names, typical_rows, words_of
from mmpca.plots.rows import row_layout
from mmpca.report.formatting import TEXT_LENGTH, clean, clean_text

EXPLAINED = 0.8  # share of the evidence of a row that is listed
MAX_EVIDENCE = 60  # features listed for a row
EVIDENCE_BYTES, EVIDENCE_BYTES_PER_ROW = 250_000, 8  # room for the evidence of all rows in the page
ENTRY_BYTES = 7  # of one feature in it
MAX_LISTED = 160  # typical and borderline rows on the page, which bounds its size for any number of clusters
MAX_PER_CLUSTER = 3  # typical rows, and as many borderline ones
MAX_SEARCHABLE = 20_000  # rows on the map and in the search box
SEARCH_NAME_LENGTH, FEATURE_NAME_LENGTH, DESCRIPTION_LENGTH = 40, 40, 160
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


def feature_descriptions(context: Context, features: Iterable[int]) -> dict[str, str]:
    """Return descriptions of features, such as their taxonomy, by the names shown on the page."""
    known = getattr(context.model, "feature_annotations_", {})
    found: dict[str, str] = {}
    for v in sorted(set(features)) if known else ():
        about = "; ".join(clean(values[v], DESCRIPTION_LENGTH) for values in known.values() if str(values[v]).strip())
        name = context.feature_name(v)
        found |= dict.fromkeys((clean(name), clean(name, FEATURE_NAME_LENGTH)), about) if about else {}
    return found


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
    words = reader_words(model, row_word, feature_word, is_text=texts is not None)
    unnamed = copy.copy(model)
    unnamed._words = words
    clusters_named, topics_named = (
        [clean(name) for name in group_names(unnamed, kind)] for kind in ("cluster", "topic")
    )
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None:
        del unnamed.feature_names_in_
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
        words,
    )


def reader_words(model: MMPCA, row: str | None, feature: str | None, *, is_text: bool) -> Words:
    """Return the nouns for a row and a feature: those given, those of the model, or the usual ones for such data."""
    known = words_of(model)
    known = TEXT_WORDS if is_text and known == Words() else known
    return Words(clean(row or known.row), clean(feature or known.feature))


def in_reader_words(text: str, words: Words) -> str:
    """Return a sentence about rows and features in the words of the reader.

    Examples
    --------
    >>> in_reader_words("Rows without features: add --row-names", Words("site", "species"))
    'Sites without species: add --row-names'
    """
    nouns = {"row": words.row, "rows": words.rows, "feature": words.feature, "features": words.features}
    nouns |= {name.capitalize(): noun[:1].upper() + noun[1:] for name, noun in nouns.items()}
    return re.sub(r"(?<![-\w])([Rr]ow|[Ff]eature)s?(?![-\w])", lambda found: nouns[found[0]], text)


# --- rows -------------------------------------------------------------------------------------------------------


class Margins(NamedTuple):
    """How certain the cluster of each row is."""

    margin: NDArray[np.float64]  # (N,), log-odds against the runner-up in nats
    probability: NDArray[np.float64]  # (N,)
    runner_up: NDArray[np.intp]  # (N,), -1 if there is no other cluster
    stability: NDArray[np.float64]  # (N,), share of the refits that agree; NaN if unknown
    verdict: list[str]
    also: NDArray[np.float64]  # (Q, Q), mean probability of each cluster among the rows of each cluster
    evidence: Listed

    @property
    def certainty(self) -> NDArray[np.float64]:
        """The basis of the verdicts: the probability, or the share of refits that agree if that is smaller; (N,)."""
        return np.fmin(self.probability, self.stability)


class Listed(NamedTuple):
    """The strongest features of each row, until four fifths of its evidence are listed; those for its cluster first."""

    n_listed: NDArray[np.intp]  # (N,)
    features: NDArray[np.int32]  # of all rows, one after the other, (n,)
    counts: NDArray[np.int32]  # (n,)
    nats: NDArray[np.float64]  # (n,)
    # How many of the strongest features for its cluster a row would have to lack to belong to the runner-up: 0 if the
    # runner-up is more probable already, -1 if the strongest ones are not enough; (N,).
    to_move: NDArray[np.intp]


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


def measure_margins(context: Context, *, with_evidence: bool = True) -> Margins | None:
    """Return how certain the clusters of all rows are, and why; None without data."""
    if context.X is None:
        return None
    n_rows, n_clusters = context.n_rows, len(context.model.weights_)
    counts, also = as_counts(context.X, empty_rows="allow"), np.zeros((n_clusters, n_clusters))
    blocks, listed = [], []
    for start in range(0, n_rows, BLOCK_SIZE):  # all rows at once would take too much memory
        block = np.arange(start, min(start + BLOCK_SIZE, n_rows))
        terms = row_terms(counts, context.model, block, context.clusters)
        np.add.at(also, terms.clusters, terms.probabilities)
        blocks.append((terms.margin, terms.probability, terms.runner_up, terms.stability))
        listed.append(list_evidence(terms, n_evidence(n_rows) if with_evidence else 0))
    margin, probability, runner_up, stability = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    known = [None if np.isnan(share) else share for share in stability.tolist()]
    sizes = np.bincount(context.clusters, minlength=n_clusters)[:, None]
    return Margins(
        margin,
        probability,
        runner_up,
        stability,
        list(map(judge, probability.tolist(), known)),
        also / np.maximum(sizes, 1),
        Listed(*(np.concatenate(parts) for parts in zip(*listed, strict=True))),
    )


def n_evidence(n_rows: int) -> int:
    """Return how many features a page has room for in each row."""
    n_shown = min(n_rows, MAX_SEARCHABLE)
    room = EVIDENCE_BYTES + EVIDENCE_BYTES_PER_ROW * n_shown
    return max(2, min(MAX_EVIDENCE, room // (ENTRY_BYTES * n_shown)))


def list_evidence(terms: RowTerms, most: int = MAX_EVIDENCE) -> Listed:
    """Return the strongest features of some rows, at most so many of each."""
    n_entries = np.diff(terms.rows.indptr)
    row = np.repeat(np.arange(len(n_entries)), n_entries)  # of each entry, before and after sorting within rows
    rank = np.arange(len(row)) - terms.rows.indptr[row]
    nats, size = terms.nats, np.abs(terms.nats)

    def up_to(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the values of a row up to each entry."""
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return sums[1:] - sums[terms.rows.indptr[row]]

    order = np.lexsort((-size, row))
    before = up_to(size[order]) - size[order]
    is_listed = (rank < most) & (size[order] > 0) & (before < EXPLAINED * np.bincount(row, size, len(n_entries))[row])
    entries = order[is_listed]
    entries = entries[np.lexsort((-nats[entries], row[entries]))]
    margin = terms.margin
    falling = np.maximum(nats, 0)[np.lexsort((-nats, row))]
    is_enough = (rank < MAX_EVIDENCE) & (falling > 0) & (margin[row] - up_to(falling) < 0)
    to_move = np.full(len(n_entries), MAX_EVIDENCE + 1)
    np.minimum.at(to_move, row[is_enough], rank[is_enough] + 1)
    return Listed(
        np.bincount(row[entries], minlength=len(n_entries)),
        terms.rows.indices[entries],
        terms.occurrences[entries],
        nats[entries],
        np.where(margin < 0, 0, np.where(to_move > MAX_EVIDENCE, -1, to_move)),
    )


def explain_rows(context: Context, indices: NDArray[np.intp], n_features: int = MAX_EVIDENCE) -> list[Explanation]:
    """Explain the clusters that the report shows for some rows."""
    assert context.X is not None
    # Pass all rows, so fitted rows are recognized and evaluated without their own contribution.
    return context.model.explain(context.X, indices, labels=context.clusters, n_features=n_features, gains=False)


def row_details(context: Context, i: int) -> dict[str, Any]:
    """Return everything that the page shows about an opened row, for the script of a served page."""
    terms = row_terms(as_counts(context.X, empty_rows="allow"), context.model, np.array([i]), context.clusters)
    [why], listed = explain_rows(context, np.array([i]), n_features=0), list_evidence(terms)
    _, *known = [(in_reader_words(name, context.words), nats) for name, nats in why.other_terms]
    rest = why.margin - listed.nats.sum() - sum(nats for _, nats in known)
    names = [clean(context.feature_name(v)) for v in listed.features.tolist()]
    return {
        "evidence": list(zip(names, listed.counts.tolist(), listed.nats.tolist(), strict=True)),
        "about": feature_descriptions(context, listed.features.tolist()),
        "terms": [(f"all other {context.words.features}", rest), *known] if why.runner_up is not None else [],
        "margin": why.margin if np.isfinite(why.margin) else None,
        "toMove": int(listed.to_move[0]),
        "text": None if context.texts is None else clean_text(context.texts[i]),
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


def packed(values: Any, dtype: str | None = None) -> str:
    """Return numbers as a NumPy type code and little-endian bytes in base64, a third of the size of JSON.

    Without a type, the numbers must be integers, and the smallest type that holds them is used.

    Examples
    --------
    >>> packed([0, 1, 255]), packed([127, -1]), packed([128, -1])
    ('u1AAH/', 'i1f/8=', 'i2gAD//w==')
    """
    array = np.asarray(values)
    if dtype is None:
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        dtype = np.min_scalar_type(min(low, -high - 1) if low < 0 else high).str[1:]
    return dtype + base64.b64encode(array.astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


def front_coded(names: Sequence[str]) -> list[str]:
    """Replace the prefix that each name shares with the previous one by its length, a digit in base 36.

    Examples
    --------
    >>> front_coded(["letter 1", "letter 2", "note"])
    ['0letter 1', '72', '0note']
    """
    coded = []
    for before, name in pairwise(("", *names)):
        n_shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before[:35], name, strict=False))))
        coded.append(f"{np.base_repr(n_shared, 36)}{name[n_shared:]}")
    return coded


def evenly_spaced(n_rows: int) -> NDArray[np.intp]:
    """Return evenly spaced rows, as many as the map of a page has room for."""
    return np.linspace(0, n_rows - 1, min(n_rows, MAX_SEARCHABLE)).round().astype(np.intp)


def map_positions(context: Context, chosen: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the positions of some rows on the map, (n, 2)."""
    assert context.X is not None
    return row_layout(context.model.transform(context.X[chosen]), context.clusters[chosen])


def script_rows(
    context: Context,
    margins: Margins | None,
    on_page: set[int],
    text_size: int | None,
    positions: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """Return the rows that the map shows and the search box finds, by column, for the script of the page.

    They are evenly spaced. The rows shown on the page are added unless `positions`, those of the evenly spaced rows on
    the map, are given. Without a text size, texts and evidence are left to a server.
    """
    chosen = evenly_spaced(context.n_rows)
    if positions is None:
        chosen = np.union1d(chosen, np.array(sorted(on_page), dtype=np.intp))
    columns: dict[str, Any] = {"n": len(chosen), "cluster": packed(context.clusters[chosen])}
    if len(chosen) < context.n_rows:
        columns["number"] = packed(chosen)
    if context.row_names is not None:
        names = [clean(context.row_name(i), SEARCH_NAME_LENGTH) for i in chosen.tolist()]
        n_bytes = sum(len(name.encode()) for name in front_coded(names))
        if n_bytes > MAX_NAME_BYTES:
            names = [clean(name, SEARCH_NAME_LENGTH * MAX_NAME_BYTES // n_bytes) for name in names]
        columns["name"] = front_coded(names)
    if context.labels is not None:
        known, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
        columns["label"], columns["labels"] = packed(codes[chosen]), [clean(label) for label in known]
    if margins is not None:
        assert context.X is not None
        columns["probability"] = packed(np.floor(10_000 * margins.probability[chosen]))
        columns["verdict"] = packed([VERDICTS.index(margins.verdict[i]) for i in chosen.tolist()])
        columns["runner"] = packed(margins.runner_up[chosen] + 1)  # 0 if there is no other cluster
        if not np.isnan(margins.stability).all():
            columns["stability"] = packed(np.nan_to_num(np.floor(100 * margins.stability[chosen]), nan=UNKNOWN))
        positions = map_positions(context, chosen) if positions is None else positions
        columns["x"], columns["y"] = (packed(np.rint(10_000 * at)) for at in positions.T)
        if text_size is not None:
            columns |= _packed_evidence(margins, chosen)
    if context.texts is not None and text_size is not None:
        columns |= _kept_texts(context, chosen.tolist(), text_size)
    return columns


def _packed_evidence(margins: Margins, chosen: NDArray[np.intp]) -> dict[str, Any]:
    """Return the evidence of some rows, sorted by their index."""
    listed = margins.evidence
    is_chosen = np.zeros(len(listed.n_listed), dtype=bool)
    is_chosen[chosen] = True
    kept = np.repeat(is_chosen, listed.n_listed)
    margin = np.nan_to_num(margins.margin[chosen], posinf=0)
    return {
        "margin": packed(np.clip(np.rint(10 * margin), -32768, 32767)),
        "moves": packed(listed.to_move[chosen]),
        "listed": packed(listed.n_listed[chosen]),
        "features": listed.features[kept],  # replaced by positions among the names in the page
        "counts": packed(np.minimum(listed.counts[kept], 65535)),
        "nats": packed(np.clip(np.rint(100 * listed.nats[kept]), -32768, 32767)),
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
