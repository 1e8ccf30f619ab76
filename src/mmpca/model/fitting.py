"""One fit: topics, starts, and the search for the labels that maximize the bound, in the units of the dispersion.

`find_clusters` is the entire fit. What it leaves open, the source of the topics and the units of overdispersed counts,
is chosen in `mmpca.model.choices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.backend import SERIAL, LocalRows, RowBackend, column_totals, group_sums
from mmpca.counts import Units, in_units
from mmpca.model import editing, prediction
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.dispersion import Bursts, Dispersion, burstiness, overdispersion
from mmpca.model.rules import check_topics
from mmpca.model.starts import (
    SAMPLED_ROWS,
    Labels,
    Outcome,
    Start,
    best_of,
    mixture_topics,
    plan_starts,
    search_from,
    search_from_starts,
)
from mmpca.monitor import History, Monitor
from mmpca.topics import fit_lda
from mmpca.topics.lda import TOL

Array = NDArray[np.float64]
Saved = Checkpoint | editing.Resumed | None

LEARNED = ("lda", "mixture", "tfidf")  # sources of topics that depend on the rows
MAX_ROUNDS = 3  # of variance factors and clusters
PRIOR_ROUNDS = 20  # of estimated priors and clusters
SAME_SHARE = 0.99  # of the rows that keep their cluster in partitions that hardly differ
CONCENTRATION_ROWS = 1000  # from which the concentration of topic shares is estimated


class Fit(NamedTuple):
    """Everything that one fit depends on, apart from the rows: parameters of `MMPCA`, seeds and progress."""

    n_clusters: int
    n_topics: int
    topics: Any  # their source, or an array (K, V)
    topic_prior: Any
    start: str | Labels
    n_init: int | str
    algorithm: engine.Algorithm
    dispersion: str
    stabilize: str | None
    max_epochs: int
    tol: float
    refit_topics: bool | str
    topics_seed: np.random.SeedSequence
    search_seed: np.random.SeedSequence
    monitor: Monitor
    sample_size: int = SAMPLED_ROWS  # with more rows than this, starts are tried on a sample of this size
    topics_source: str = "given"  # of topics that are an array, or chosen by an earlier comparison
    compared: Sequence[Any] | None = None  # in batches: agreements of sources in all comparisons so far
    known: Labels | None = None  # labels of rows that never move, -1 for others
    topic_seeds: editing.TopicSeeds | None = None
    merge_split: bool = True
    row_prior: float | Literal["auto"] = "auto"  # of LDA; this and the next two say how carefully it learns topics
    n_topic_starts: int | Literal["auto"] = "auto"
    topics_tol: float = TOL


class Topics(NamedTuple):
    """Topics for the search, where they come from, and what came with them."""

    beta: Array  # (K, V)
    source: str
    labels: Labels | None = None  # that belong to these topics, (N,)
    row_prior: float | Literal["auto"] = "auto"  # of LDA


class Found(NamedTuple):
    """The clusters that a fit has found, and the units of its rows."""

    best: Outcome
    outcomes: list[Outcome]
    topics: Topics
    rows: RowBackend  # in the units of the fit
    dispersion: str
    stabilize: str | None
    bursts: Bursts | None
    is_complete: bool = True  # not if it was interrupted before factors and clusters had settled


def find_clusters(fit: Fit, backend: RowBackend, saved: Saved = None, bursts: Bursts | None = None) -> Found:
    """Learn topics and find the labels that maximize the bound under them, in the units of the dispersion.

    These are counts, their square roots, or effective counts, which depend on `bursts`; without them, variance factors
    are estimated. ``dispersion="auto"`` is "multinomial" here.
    """
    if fit.dispersion == "polya" and bursts is None:
        return _find_bursts(fit, backend, saved)
    rows, dispersion = backend, "shares" if fit.dispersion == "shares" else "multinomial"
    if bursts is not None:
        rows, dispersion = backend.with_counts(in_units, bursts.units), "polya"
    elif fit.stabilize == "sqrt":
        rows = backend.with_counts(in_units, Units("sqrt"))
    topics = learn_topics(fit, rows, saved)
    starts, options = _plan(fit, rows, topics, saved)
    search = partial(
        search_from_starts,
        rows,
        topics.beta,
        seed=int(fit.search_seed.generate_state(1)[0]),
        monitor=fit.monitor,
        sample_size=fit.sample_size,
    )
    is_free = fit.known is not None and isinstance(fit.start, str) and starts[0].kind != "checkpoint"
    outcomes = search(starts, options._replace(known=None) if is_free else options)
    # Bounds of starts on a sample are not comparable with the bound of all rows, which comes last.
    best = best_of([outcome for outcome in outcomes if len(outcome.labels) == rows.n_rows])
    if is_free:
        # From the best clusters found without known labels, and from the means of the known rows.
        seed, known = starts[0].seed, list[list[Outcome]]()
        for start in (Start("known", seed, best.labels), Start("kmeans", seed, is_seeded=True)):
            known.append(search([start], options))
            if fit.monitor.is_stopped:
                break
        outcomes += [outcome for some in known for outcome in some]
        best = _better_for_known(rows, fit.known, [some[-1] for some in known])
    if isinstance(fit.topic_prior, str):
        outcomes += _estimate_prior(fit, rows, best, options)
        best = outcomes[-1]
    return Found(best, outcomes, topics, rows, dispersion, fit.stabilize, bursts)


def _find_bursts(fit: Fit, backend: RowBackend, saved: Saved) -> Found:
    """Estimate variance factors and find clusters, in turn: first the factors of all rows, then those within clusters.

    Ends when clusters hardly change. After a request to stop, only the first clusters may be unfinished.
    """
    found: Found | None = None
    labels, n_clusters = np.zeros(backend.n_rows, dtype=np.int32), 1
    for _ in range(MAX_ROUNDS):
        new = find_clusters(fit, backend, saved, burstiness(backend, labels, n_clusters))
        found = new if found is None or not fit.monitor.is_stopped else found
        if fit.monitor.is_stopped or is_same_partition(found.best.labels, labels):
            break
        fit.monitor.checkpoint = saved = None  # only the first search is saved
        labels, n_clusters, fit = found.best.labels, fit.n_clusters, fit._replace(row_prior=found.topics.row_prior)
    assert found is not None
    return found._replace(is_complete=not fit.monitor.is_stopped)


# --- topics -----------------------------------------------------------------------------------------------------


def learn_topics(fit: Fit, rows: RowBackend, saved: Saved = None) -> Topics:
    """Return the topics that the search uses: those of an earlier fit, or new ones, which a checkpoint saves."""
    source = fit.topics if isinstance(fit.topics, str) else fit.topics_source
    if saved is not None and saved.beta is not None:
        return Topics(saved.beta, saved.source or source)
    rng, every = np.random.default_rng(fit.topics_seed), np.arange(rows.n_rows)
    if not isinstance(fit.topics, str):
        topics = Topics(check_topics(fit.topics, fit.n_topics, rows.map_reduce(column_totals, every)), source)
    elif fit.topic_seeds is not None:
        some, totals = np.sort(rng.permutation(every)[:SAMPLED_ROWS]), rows.map_reduce(column_totals, every)
        beta = editing.seeded_topics(rows.take(some), totals, fit.n_topics, fit.topic_seeds, rng, fit.monitor)
        topics = Topics(beta, "lda")
    elif source == "lda":
        careful: dict[str, Any] = {"row_prior": fit.row_prior, "n_init": fit.n_topic_starts, "tol": fit.topics_tol}
        lda = fit_lda(rows, fit.n_topics, rng=rng, monitor=fit.monitor, **careful)
        topics = Topics(lda.beta, source, row_prior=lda.row_prior)
    elif source in ("mixture", "tfidf"):
        fit.monitor.begin("topics", "topics: clustering without topics")
        is_present = rows.map_reduce(column_totals, every) > 0  # (V,)
        some, sizes = np.sort(rng.permutation(every)[:SAMPLED_ROWS]), (fit.n_topics, fit.n_clusters)
        own = partial(mixture_topics, from_tfidf=source == "tfidf")
        threads = rows.threads if isinstance(rows, LocalRows) else SERIAL  # those of other processes
        beta, labels = rows.apply(own, some, is_present, *sizes, rng, fit.monitor, threads)
        is_of_all = labels is not None and len(labels) == rows.n_rows
        topics = Topics(beta, source, labels if is_of_all else None)
    else:
        beta, is_present = np.zeros((fit.n_topics, rows.n_features)), rows.map_reduce(column_totals, every) > 0
        beta[:, is_present] = rng.dirichlet(np.ones(is_present.sum()), fit.n_topics)
        topics = Topics(beta, source)
    if fit.monitor.is_stopped:  # a later fit must not resume from unfinished topics
        fit.monitor.checkpoint = None
    elif isinstance(saved, Checkpoint):
        saved.save_topics(topics.beta, topics.source)
    return topics


# --- labels -----------------------------------------------------------------------------------------------------


def _plan(fit: Fit, rows: RowBackend, topics: Topics, saved: Saved) -> tuple[list[Start], engine.SearchOptions]:
    """Return the starts to try and the options of the search."""
    starts, patience = plan_starts(
        fit.start,
        fit.n_init,
        n_clusters=fit.n_clusters,
        n_topics=fit.n_topics,
        shape=(rows.n_rows, rows.n_features),
        seed=fit.search_seed,
    )
    if saved is not None and saved.labels is not None:
        starts = [Start("checkpoint", starts[0].seed, saved.labels)]
    elif topics.labels is not None and isinstance(fit.start, str) and fit.start in ("auto", "mixture"):
        # Under their own topics, these labels are nearly a maximum that other starts reach as well.
        others = [] if isinstance(fit.n_init, str) else starts[1:]
        starts = [Start("mixture", starts[0].seed, topics.labels), *others]
    return starts, engine.SearchOptions(
        n_clusters=fit.n_clusters,
        alpha=1.0 if isinstance(fit.topic_prior, str) else fit.topic_prior,
        algorithm=fit.algorithm,
        max_epochs=fit.max_epochs,
        tol=float(fit.tol),
        patience=patience,
        known=fit.known,
        refits_topics=isinstance(fit.refit_topics, str),
        merge_split=fit.merge_split,
    )


def _better_for_known(rows: RowBackend, known: Labels | None, candidates: list[Outcome]) -> Outcome:
    """Return the first of two searches unless the second one is better by its bound or by the known labels.

    The second one is better if it agrees with clearly more of the known labels, each row assigned without its own
    contribution, or if its bound is higher and it agrees with at least as many. The bound alone would favor clusters
    that fit the rows slightly better but match the labels less.
    """
    assert known is not None
    given = np.flatnonzero(known >= 0)
    some, right = rows.take(given), list[NDArray[np.bool_]]()
    for found in candidates:
        mixture = prediction.ClusterMixture(
            found.beta,
            found.theta,
            found.weights,
            topic_params=found.gamma,
            sizes=np.bincount(found.labels, minlength=len(found.gamma)).astype(np.float64),
            topic_prior=found.alpha,
        )
        joint = prediction.joint_log_likelihood(some, mixture, found.labels[given])
        right.append(joint.argmax(axis=1) == known[given])
    lead = right[-1].astype(int) - right[0]
    is_higher = candidates[-1].bound > candidates[0].bound and lead.sum() >= 0
    return candidates[-1] if is_higher or lead.sum() > np.sqrt(np.abs(lead).sum()) else candidates[0]


def _estimate_prior(fit: Fit, rows: RowBackend, best: Outcome, options: engine.SearchOptions) -> list[Outcome]:
    """Estimate the prior and search on from the labels under it, in turn; return the searches, which only gain."""
    outcomes = [best]
    for number in range(PRIOR_ROUNDS):
        best = outcomes[-1]
        fit.monitor.begin("prior", f"estimating the topic prior, round {number + 1}")
        if fit.monitor.is_stopped:
            break
        sums = rows.map_reduce(group_sums, np.arange(rows.n_rows), best.labels, shared=(fit.n_clusters,))  # (Q, V)
        alpha, gamma, _ = engine.estimate_prior(best.state(sums))
        history = History(fit.monitor, start=0)
        start, own = Start("prior", best.start.seed, best.labels, gamma), options._replace(alpha=alpha)
        outcome = search_from(rows, best.beta, start, own, history=history)
        if outcome.bound < best.bound:  # under a prior below one, VE-steps may end in another maximum
            break
        outcomes.append(outcome)
        if np.array_equal(outcome.labels, best.labels):
            break
    return outcomes[1:] or [best]


def is_same_partition(labels: NDArray[np.int32], others: NDArray[np.int32]) -> bool:
    """Return True if two partitions hardly differ, however their clusters are numbered."""
    table = np.zeros((labels.max() + 1, others.max() + 1))
    np.add.at(table, (labels, others), 1)
    agreeing = min(table.max(axis=0).sum(), table.max(axis=1).sum())
    return bool(agreeing >= SAME_SHARE * len(labels))


# --- what is measured after a search ------------------------------------------------------------------------------


class ClusterSums(NamedTuple):
    """Sums of the clusters that a fit has found, and how much their rows vary."""

    counts: Array  # (Q, V)
    sums: Array  # the same in the units of the fit
    dispersion: Dispersion


def sum_clusters(found: Found, backend: RowBackend) -> ClusterSums:
    """Sum up the clusters, and compare the variance within them with what the model of the fit expects."""
    best, every = found.best, np.arange(backend.n_rows)
    n_clusters = len(best.weights)
    counts = sums = backend.map_reduce(group_sums, every, best.labels, shared=(n_clusters,))
    if found.rows is not backend:
        sums = found.rows.map_reduce(group_sums, every, best.labels, shared=(n_clusters,))
    # With variance factors, the variance is that of the counts; otherwise that of whatever was fitted.
    factors = None if found.bursts is None else found.bursts.factors
    rows, own = (found.rows, sums) if factors is None else (backend, counts)
    profiles = own / own.sum(axis=1, keepdims=True)
    means: dict[str, Array] = {"topics": profiles, "cluster_topics": np.eye(n_clusters)}
    return ClusterSums(counts, sums, overdispersion(rows, best.labels, **means, factors=factors))


def measure_concentration(found: Found, sums: Array, smoothing: float) -> float:
    """Return the concentration of the rows' topic shares within clusters, from some of the rows."""
    best, rows = found.best, found.rows
    some = np.linspace(0, rows.n_rows - 1, min(rows.n_rows, CONCENTRATION_ROWS)).astype(int)
    # Effective counts are not drawn from topics, so they keep the topics of the search.
    is_estimated = found.topics.source in LEARNED and found.bursts is None
    return engine.fit_varying_shares(
        rows.take(some),
        best.labels[some],
        topics=prediction.smoothed_topics(best.beta, best.theta, sums, smoothing),
        n_clusters=len(best.weights),
        alpha=best.alpha,
        topic_counts=prediction.topic_counts(best.beta, best.theta, sums) if is_estimated else None,
        smoothing=smoothing,
        threads=rows.threads,
    ).concentration
