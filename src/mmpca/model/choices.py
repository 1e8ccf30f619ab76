"""Choices between candidates: the source of the topics, and the units of overdispersed counts.

Clusters that reflect whole profiles can be found in either half of the features; those that reflect chance or a few
dominant features cannot. Each candidate therefore clusters a sample of the rows twice, from two random halves of the
features, and the candidate whose two partitions agree best is chosen, over several splits (`compare`). What "best"
means is decided in one place for each choice: `best_source`, and `best_units`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import stdtrit

from mmpca.backend import LocalRows, RowBackend, Threads
from mmpca.counts import Counts, Units, as_counts
from mmpca.model.fitting import LEARNED, Fit, Found, find_clusters
from mmpca.model.starts import LARGE_TABLES, Labels, mixture_labels

Array = NDArray[np.float64]
Name = TypeVar("Name")

# Candidates are compared on a sample of the rows: this many, or this many for each cluster if that is more.
COMPARED_ROWS, ROWS_PER_CLUSTER = 2000, 20
COMPARED_STARTS, COMPARED_TOL = 2, 1e-4  # of LDA on each half of the features
COMPARED_EPOCHS = 20  # of a search for labels that are only compared: more epochs take long and change little
LEAST_SPLITS, MOST_SPLITS = 3, 6  # of the features
MOST_SPLITS_IN_BATCHES = 12  # between "mixture" and "tfidf": quick compared with refits to batches
CLEAR_ERRORS = 2.0  # standard errors: more splits would hardly reverse a lead this large
# Dispersion and stabilization; the first wins ties.
UNITS: tuple[tuple[str, str | None], ...] = (("polya", None), ("multinomial", "sqrt"), ("multinomial", None))


# --- the source of topics -----------------------------------------------------------------------------------------


def choose_source(fit: Fit, backend: RowBackend) -> Fit:
    """Return a fit in which `topics` is a source, chosen among `LEARNED` if it was "auto".

    The comparison takes place in the units of the fit. Effective counts depend on clusters, and seeded topics and those
    of soft assignments come from LDA in any case.
    """
    if not (isinstance(fit.topics, str) and fit.topics == "auto"):
        return fit
    is_certain = fit.dispersion == "polya" or fit.algorithm == "vbem" or fit.topic_seeds is not None
    if is_certain or min(fit.n_clusters, fit.n_topics) < 2:
        return fit._replace(topics="lda")
    if fit.topics_source in LEARNED:  # chosen by an earlier comparison
        return fit._replace(topics=fit.topics_source)
    rng = np.random.default_rng([*fit.topics_seed.generate_state(2), 1])
    fit.monitor.begin("topics", "topics: comparing sources")
    n_compared = max(COMPARED_ROWS, ROWS_PER_CLUSTER * fit.n_clusters)
    sample = plain_fit(
        fit,
        n_init=1,
        dispersion="multinomial",
        stabilize=None,  # the rows already are in the units of the fit
        max_epochs=min(fit.max_epochs, COMPARED_EPOCHS),
        # Labels that are only compared need no merges and splits of large tables.
        merge_split=fit.n_clusters * fit.n_topics * backend.n_features <= LARGE_TABLES,
    )
    candidates = {source: sample._replace(topics=source) for source in LEARNED}
    samples = draw_rows(backend, n_compared, rng, Units(fit.stabilize))
    earlier = fit.compared
    scores, every = compare(
        candidates,
        samples,
        rng,
        backend.threads,
        contenders=partial(sources_left, earlier=earlier),
        most_splits=MOST_SPLITS if earlier is None else MOST_SPLITS_IN_BATCHES,
    )
    if sample.monitor.is_stopped:
        fit.monitor.stop()
    source = next(iter(scores)) if fit.monitor.is_stopped else best_source(scores, earlier or ())
    if fit.compared is not None and backend.n_rows >= n_compared:  # samples of fewer rows agree less
        shared = zip(every["mixture"], every["tfidf"], strict=False)  # splits on which both were compared
        fit = fit._replace(compared=(*fit.compared, *shared))
    return fit._replace(topics=source)


def sources_left(scores: Scores[str], earlier: Pairs | None = None) -> list[str]:
    """Return the sources to compare on another split; the best one alone ends the comparison.

    Only the two sources without topics, which are quick to compare, get more than `LEAST_SPLITS` splits: as long as the
    lead of "tfidf" is small or, in batches, the lead of either. `earlier` holds their agreements from comparisons in
    earlier batches.
    """
    last, left = {source: found[-1] for source, found in scores.items()}, list(scores)
    if "lda" in last:  # its labels take by far the longest
        left = [source for source in left if not is_hopeless(last["lda"], last[source])]
        if len(left) > 1 and all(is_hopeless(last[source], last["lda"]) for source in left[1:]):
            left.remove("lda")
    if len(scores[left[0]]) < LEAST_SPLITS:
        return left
    least = 0.0 if earlier is None else -CLEAR_ERRORS
    if left == ["mixture", "tfidf"] and least < lead_of_tfidf(scores, earlier or ()) < CLEAR_ERRORS:
        return left
    return [best_source({source: scores[source] for source in left}, earlier or ())]


def best_source(scores: Scores[str], earlier: Pairs = ()) -> str:
    """Return the source whose clusters agree best between two random halves of the features.

    In the order of `LEARNED`, a source replaces the best one so far if its two partitions share more information, by
    more than the standard error over splits. To replace "mixture", "tfidf" must also lead in adjusted mutual
    information: starts from tf-idf may divide large clusters in ways that other features confirm only in part. With too
    few rows or features to divide, the first source is the best.
    """
    best, *others = scores
    if len(scores[best]) < LEAST_SPLITS:
        return best
    for source in others:
        is_close = (best, source) == ("mixture", "tfidf")
        lead = lead_of_tfidf(scores, earlier) if is_close else lead_in_errors(scores[best], scores[source])
        if lead > 1.0:
            best = source
    return best


def lead_of_tfidf(scores: Scores[str], earlier: Pairs) -> float:
    """Return the lead of "tfidf" over "mixture", in standard errors over the splits of this and earlier comparisons.

    This is the smaller of its leads in information and in adjusted mutual information.
    """
    mixture, tfidf = zip(*earlier, *zip(scores["mixture"], scores["tfidf"], strict=True), strict=True)
    return lead_in_errors(mixture, tfidf, ("information", "share"))


def is_hopeless(best: HalvesAgreement, other: HalvesAgreement) -> bool:
    """Return True if the second agreement is clearly below the first, so further splits can be skipped."""
    return best.information - other.information > CLEAR_ERRORS * np.hypot(best.error, other.error)


def lead_in_errors(
    best: Sequence[HalvesAgreement],
    others: Sequence[HalvesAgreement],
    measures: Sequence[str] = ("information",),
) -> float:
    """Return the lead of a candidate over the best one so far, in standard errors over splits.

    The measures are fields of the agreements; with several, the smallest lead counts.
    """
    pairs = zip(best, others, strict=True)
    leads = np.array([[getattr(b, name) - getattr(a, name) for name in measures] for a, b in pairs])  # (splits, n)
    errors = np.maximum(leads.std(axis=0, ddof=1) / np.sqrt(len(leads)), np.finfo(float).tiny)
    return float((leads.mean(axis=0) / errors).min())


# --- the units of overdispersed counts ----------------------------------------------------------------------------


def choose_units(fit: Fit, found: Found, backend: RowBackend) -> Found:
    """Return the clusters of overdispersed counts in the units that suit them best: those found, or others.

    After Ctrl-C or another request to stop, they are those found.
    """
    fit.monitor.checkpoint = None  # only the first search is saved
    fit.monitor.begin("dispersion", "choosing the dispersion")
    rng = np.random.default_rng(fit.topics_seed)
    samples, sample = draw_rows(backend, COMPARED_ROWS, rng), plain_fit(fit, n_init=COMPARED_STARTS)
    candidates = {units: sample._replace(dispersion=units[0], stabilize=units[1]) for units in UNITS}
    try:
        scores, _ = compare(candidates, samples, rng, backend.threads, contenders=units_left)
        if sample.monitor.is_stopped:
            fit.monitor.stop()
        dispersion, stabilize = best_units(scores)
        if fit.monitor.is_stopped or (dispersion, stabilize) == (found.dispersion, found.stabilize):
            return found
        fit = fit._replace(dispersion=dispersion, stabilize=stabilize, compared=None)  # earlier ones used other units
        other = find_clusters(choose_source(fit, backend), backend)
    except KeyboardInterrupt:
        fit.monitor.stop()
    return found if fit.monitor.is_stopped else other


def units_left(scores: Scores[Name]) -> list[Name]:
    """Return the units that may still be the best.

    After a few splits, a candidate is out if its mean lag behind the best is significant at the level of 5%.

    Examples
    --------
    >>> def agreements(*values):
    ...     return [HalvesAgreement(0.0, 0.0, 0.0, ari) for ari in values]
    >>> units_left({"polya": agreements(0.9, 0.8, 0.9), "roots": agreements(0.2, 0.3, 0.3)})
    ['polya']
    >>> units_left({"polya": agreements(0.9, 0.1), "roots": agreements(0.2, 0.8)})
    ['polya', 'roots']
    """
    ari = np.array([[one.ari for one in found] for found in scores.values()])  # (candidates, splits)
    if ari.shape[1] < LEAST_SPLITS:
        return list(scores)
    lags = ari[ari.mean(axis=1).argmax()] - ari
    errors = lags.std(axis=1, ddof=1) / np.sqrt(ari.shape[1])
    # Few splits say little about their standard error: the quantile of Student's distribution allows for this.
    is_left = lags.mean(axis=1) <= stdtrit(ari.shape[1] - 1, 0.975) * errors
    return [units for units, stays in zip(scores, is_left, strict=True) if stays]


def best_units(scores: Scores[tuple[str, str | None]]) -> tuple[str, str | None]:
    """Return the units with the largest adjusted Rand index; those of counts if nothing could be compared."""
    totals = {units: sum(one.ari for one in found) for units, found in scores.items() if found}
    return max(totals, key=lambda units: totals[units]) if totals else ("multinomial", None)


# --- comparisons --------------------------------------------------------------------------------------------------


class HalvesAgreement(NamedTuple):
    """Agreement between two partitions of the same rows."""

    information: float  # that they share: nats per row, minus the value expected by chance
    error: float  # of the information, over rows
    share: float  # adjusted mutual information: information relative to the mean entropy
    ari: float


Scores = Mapping[Name, Sequence[HalvesAgreement]]  # of each candidate, one agreement for each split
Pairs = Sequence[tuple[HalvesAgreement, HalvesAgreement]]  # of two candidates, on the same splits


class Half(NamedTuple):
    """Rows in one half of the features."""

    rows: Counts
    features: NDArray[np.int64]  # their columns in the whole


def plain_fit(fit: Fit, **changes: Any) -> Fit:
    """Return the fit of a sample of the rows with the plain model and less careful topics, to compare candidates."""
    return fit._replace(
        **{
            "topics": "lda",
            "topic_prior": 1.0 if isinstance(fit.topic_prior, str) else float(np.mean(fit.topic_prior)),  # in any order
            "start": "auto",
            "algorithm": "greedy",
            "refit_topics": False,
            "known": None,
            "topic_seeds": None,
            "n_topic_starts": COMPARED_STARTS,
            "topics_tol": COMPARED_TOL,
            "monitor": fit.monitor.silent(),  # stages of several candidates at once would be mixed up
            **changes,
        }
    )


def draw_rows(
    backend: RowBackend,
    n_rows: int,
    rng: np.random.Generator,
    units: Units = Units(),  # noqa: B008 - immutable
) -> Iterator[Counts]:
    """Yield random samples of rows indefinitely: a new one each time, or all rows if there are not more of them."""
    while True:
        rows = units.convert(backend.take(np.sort(rng.permutation(backend.n_rows)[:n_rows])))
        yield rows
        while n_rows >= backend.n_rows:
            yield rows


def compare(
    candidates: Mapping[Name, Fit],
    samples: Iterator[Counts],
    rng: np.random.Generator,
    threads: Threads,
    *,
    contenders: Callable[[Scores[Name]], list[Name]],
    most_splits: int = MOST_SPLITS,
) -> tuple[Scores[Name], Scores[Name]]:
    """Return how well the clusters of candidates agree between random halves of the features, on samples of the rows.

    After each split, only the `contenders` remain; the second result also includes the candidates that were dropped.
    There are fewer than `most_splits` splits if a single candidate remains, if there are too few rows or features to
    divide, or after a request to stop.
    """
    fits, every = dict(candidates), {name: list[HalvesAgreement]() for name in candidates}
    scores = every
    monitor = next(iter(fits.values())).monitor
    for _ in range(most_splits):
        halves = feature_halves(next(samples), rng)
        if halves is None or halves[0].rows.n_rows <= next(iter(fits.values())).n_clusters:
            break
        tasks = list[tuple[Fit, Half, np.random.Generator | None]]()  # one for each half, those of LDA first
        for name in scores:
            rngs = [None, None] if fits[name].topics == "lda" else rng.spawn(2)
            tasks += [(fits[name], half, own) for half, own in zip(halves, rngs, strict=True)]
        found = threads.map(_cluster_half, tasks, stop=monitor.stop)
        if monitor.is_stopped:
            break
        for name, first, second in zip(scores, found[::2], found[1::2], strict=True):
            scores[name].append(partition_agreement(first[0], second[0]))
            fits[name] = fits[name]._replace(row_prior=first[1])
        scores = {name: scores[name] for name in contenders(scores)}
        if len(scores) == 1:
            break
    return scores, every


def _cluster_half(task: tuple[Fit, Half, np.random.Generator | None]) -> tuple[Labels, float | Literal["auto"]]:
    """Return the labels that a candidate finds in a half of the features, and the row prior of its topics."""
    fit, half, rng = task
    if rng is not None:
        start = {"from_tfidf": fit.topics == "tfidf", "n_chains": 1}
        return mixture_labels(half.rows, fit.n_clusters, rng, fit.monitor, **start), fit.row_prior
    found = find_clusters(fit._replace(n_topics=min(fit.n_topics, half.rows.n_features)), LocalRows(half.rows))
    return found.best.labels, found.topics.row_prior


def feature_halves(rows: Counts, rng: np.random.Generator) -> tuple[Half, Half] | None:
    """Divide the features that occur at random; return the rows that have counts in both halves, in each half.

    None if fewer than four features occur, or if no row has counts in both halves.
    """
    present = rng.permutation(np.flatnonzero(rows.column_totals()))
    if len(present) < 4:
        return None
    X, features = rows.to_csr(), [np.sort(present[start::2]) for start in (0, 1)]
    first, second = (as_counts(X[:, some], empty_rows="allow") for some in features)
    kept = np.flatnonzero((np.diff(first.indptr) > 0) & (np.diff(second.indptr) > 0))
    return (Half(first.take(kept), features[0]), Half(second.take(kept), features[1])) if kept.size else None


def partition_agreement(first: Labels, second: Labels) -> HalvesAgreement:
    """Return how well two partitions agree.

    Unlike the adjusted Rand index, information ranks many reproducible clusters above a few large ones. Adjusted
    mutual information is a compromise between the two.
    """
    from sklearn.metrics import adjusted_rand_score  # not needed otherwise
    from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

    table = contingency_matrix(first, second, sparse=True)
    by_row = sparse.coo_array(table)
    n_rows, sizes = len(first), (np.asarray(table.sum(axis=1)).ravel(), np.asarray(table.sum(axis=0)).ravel())
    terms = np.log(by_row.data * n_rows / (sizes[0][by_row.coords[0]] * sizes[1][by_row.coords[1]]))
    mean = float(terms @ by_row.data / n_rows)
    variance = float((terms - mean) ** 2 @ by_row.data / n_rows)
    chance = float(expected_mutual_information(table, n_rows))
    entropy = float(np.mean([-(n[n > 0] / n_rows) @ np.log(n[n > 0] / n_rows) for n in sizes]))
    share = (mean - chance) / (entropy - chance) if entropy > chance + 1e-9 else 0.0
    ari = float(adjusted_rand_score(first, second))
    return HalvesAgreement(mean - chance, np.sqrt(variance / n_rows), share, ari)
