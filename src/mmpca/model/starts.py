"""Starts of the search: the labels it begins with, and the searches from all of them.

Every kind of start is one function from rows in topic space, or from counts, to labels; `draw_labels` lists them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from mmpca import engine
from mmpca.backend import (
    MAX_SLICES,
    SERIAL,
    LocalRows,
    RowBackend,
    Rows,
    SharedSetting,
    Threads,
    even_slices,
    map_rows,
    one_blas_thread,
    one_library_thread,
    open_threads,
)
from mmpca.counts import LARGEST_COUNT, Counts, as_counts
from mmpca.engine.bound import Array, cluster_bound, size_terms
from mmpca.gibbs import PRIORS, run_chains
from mmpca.model.editing import seeded_centers, with_known
from mmpca.monitor import History, Monitor
from mmpca.topics import fit_lda, topic_shares

Labels = NDArray[np.int32]

KINDS = ("kmeans", "random", "anneal")  # in the order in which "auto" takes turns
SAME_BOUND = 1e-9  # a better bound must be larger by more than this share
SHARED_ROWS = 20_000  # with more rows than this, all threads work on one start at a time
# With more rows than this, starts are tried on a sample of this size; the best one is extended to all rows, and the
# search continues there. A sample shows as well as all rows do which groups should have their own clusters.
SAMPLED_ROWS = 50_000
SAMPLED_MOVES = 0.002  # share of the sample moved in an epoch at which the search from a start may stop
# Number of starts, and number of starts in a row without a better bound to stop after, by number of rows: the smaller
# the data, the cheaper a start.
AUTO_PLANS = ((2_000, (10, 3)), (20_000, (6, 2)), (np.inf, (3, 1)))
LARGE_TABLES = 2_000_000  # clusters x topics x features, beyond which a start is expensive for any number of rows
EXPENSIVE_DRAWS = 3  # k-means partitions of which an expensive start takes the best
N_DIRECTIONS = 100  # principal directions of tf-idf, in which k-means starts the mixture without topics
N_SPARE = 10  # extra directions while these are computed
N_POWERS = (4, 7)  # power iterations; the second if there are more than ten times as many directions
N_CHAINS = 3  # of the mixture without topics, of which the most probable end is kept


class Start(NamedTuple):
    """A kind of labels with the seed that draws them and orders the visits, or given labels."""

    kind: str
    seed: int
    labels: Labels | None = None
    gamma: Array | None = None  # near that of these labels, (Q, K)
    is_seeded: bool = False  # whether k-means starts from the means of rows with known labels
    n_draws: int = 1  # k-means partitions to draw; the search starts from the one with the highest bound


class StartReport(NamedTuple):
    """Summary of the search from one start, in `MMPCA.starts_`."""

    kind: str
    seed: int
    bound: float
    n_epochs: int
    converged: bool
    seconds: float


class Outcome(NamedTuple):
    """Result of the search from one start."""

    start: Start
    bound: float
    labels: Labels
    weights: Array  # (Q,)
    gamma: Array  # (Q, K)
    alpha: Array  # (K,)
    beta: Array  # (K, V)
    history: History
    seconds: float

    @property
    def theta(self) -> Array:
        """Expected topic shares of the clusters, (Q, K)."""
        shares: Array = self.gamma / self.gamma.sum(axis=1, keepdims=True)
        return shares

    def state(self, sums: Array) -> engine.State:
        """Return the state of the clusters without their rows, from the sums of these (Q, V)."""
        sizes = np.bincount(self.labels, minlength=len(sums))
        return engine.from_sums(sums, sizes, beta=self.beta, alpha=self.alpha, gamma=self.gamma)

    def report(self) -> StartReport:
        """Return a summary."""
        history = self.history
        kind, seed, *_ = self.start
        return StartReport(kind, seed, self.bound, history.n_epochs, history.converged, self.seconds)


# --- the plan ---------------------------------------------------------------------------------------------------


def plan_starts(
    start: str | Labels,
    n_init: int | str,
    *,
    n_clusters: int,
    n_topics: int,
    shape: tuple[int, int],
    seed: np.random.SeedSequence,
) -> tuple[list[Start], int]:
    """Return the starts to try, each with its own seed, and the patience.

    The patience is the number of starts in a row without a better bound after which the search stops. From a random
    partition nearly every row moves, and the cost of changing clusters is proportional to clusters x topics x features;
    with many rows or large tables, ``start="auto"`` therefore uses k-means alone. With large tables, a search costs far
    more than a partition: several are drawn, and the search starts from the best of them.
    """
    n_samples, n_features = shape
    if not isinstance(start, str):
        return [Start("given", int(seed.generate_state(1)[0]), start)], 1
    is_expensive = int(n_clusters) * int(n_topics) * n_features > LARGE_TABLES
    n_starts, patience = (1, 1) if is_expensive else next(plan for limit, plan in AUTO_PLANS if n_samples <= limit)
    kinds: tuple[str, ...] = (start,)
    if start == "auto":
        kinds = ("kmeans",) if is_expensive or n_starts == AUTO_PLANS[-1][1][0] else KINDS
    elif start != "kmeans" and is_expensive:  # these cannot be judged before the search
        n_starts, patience = AUTO_PLANS[-1][1]
    if not isinstance(n_init, str):
        n_starts = patience = n_init
    n_draws = EXPENSIVE_DRAWS if is_expensive and isinstance(n_init, str) else 1
    seeds = [int(word) for word in seed.generate_state(n_starts)]
    return [Start(kinds[number % len(kinds)], word, n_draws=n_draws) for number, word in enumerate(seeds)], patience


def check_labels(labels: Any, n_samples: int, n_clusters: int) -> Labels:
    """Return given starting labels as int32; every cluster must have a row."""
    if np.ma.is_masked(labels):  # asarray would drop the mask
        raise ValueError("start must hold one label for each row, but some of them are masked. Fill them in.")
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(
            f"start must hold one label for each of the {n_samples} rows, but its shape is {values.shape}. "
            f"Pass an array of shape ({n_samples},)."
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"start must hold whole numbers from 0 to {n_clusters - 1}, but its type is {values.dtype}. "
            "Turn names into numbers first, e.g. with numpy.unique(labels, return_inverse=True)[1]."
        )
    outside = np.flatnonzero(~((values >= 0) & (values < n_clusters) & (values == np.floor(values))))
    if outside.size:
        i = outside[0]
        raise ValueError(
            f"start must hold whole numbers from 0 to {n_clusters - 1}, but start[{i}] = {values[i]}. "
            "Renumber the labels or raise n_clusters."
        )
    empty = np.flatnonzero(np.bincount(values.astype(np.int64), minlength=n_clusters) == 0)
    if empty.size:
        raise ValueError(
            f"start must use all {n_clusters} clusters, but cluster {empty[0]} has no row. "
            "Renumber the labels without gaps or lower n_clusters."
        )
    return values.astype(np.int32)


# --- labels -----------------------------------------------------------------------------------------------------


def draw_labels(
    rows: Counts,
    beta: Array,
    start: Start,
    options: engine.SearchOptions,
    shares: Array | None,
    rng: np.random.Generator,
    monitor: Monitor | None = None,
) -> Labels:
    """Return the labels of a start, (N,); every cluster has a row.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    beta : array of shape (K, V)
    start : Start
    options : SearchOptions
    shares : array of shape (N, K), optional
        Rows in topic space, for k-means.
    rng : Generator
    monitor : Monitor, optional
        Receives a report after each of several draws; after a request to stop, no more are made.
    """
    if start.labels is not None:
        return start.labels
    if start.kind == "kmeans" and shares is not None:
        monitor, draws = Monitor() if monitor is None else monitor, list[Labels]()
        while len(draws) < start.n_draws and not (draws and monitor.is_stopped):
            known = options.known if start.is_seeded else None
            draws.append(kmeans_labels(np.sqrt(shares), options.n_clusters, rng, known))  # Hellinger distances
            if start.n_draws > 1:
                monitor.step(0, f"partitions drawn: {len(draws)} of {start.n_draws}")
        return (
            draws[0] if len(draws) == 1 else max(draws, key=lambda one: first_bound(rows, beta, shares, one, options))
        )
    if start.kind == "anneal":
        return engine.anneal(rows, n_clusters=options.n_clusters, beta=beta, alpha=options.alpha, rng=rng)
    if start.kind == "mixture":
        return fill_empty(mixture_labels(rows, options.n_clusters, rng, monitor), options.n_clusters, rng)
    if start.kind == "random":
        return random_labels(rows.n_rows, options.n_clusters, rng)
    raise ValueError(f"No labels can be drawn for a start of the kind {start.kind!r}.")


def first_bound(rows: Counts, beta: Array, shares: Array, labels: Labels, options: engine.SearchOptions) -> float:
    """Return the bound of a partition before any VE-step, with the topic counts of the rows' own shares."""
    counts, sizes = rows.group_sums(labels, options.n_clusters), np.bincount(labels, minlength=options.n_clusters)
    gamma = gamma_of_shares(rows, shares, labels, options)
    values = [cluster_bound(m, own, beta=beta, alpha=options.alpha) for m, own in zip(counts, gamma, strict=True)]
    return float(sum(values) + size_terms(sizes).sum())


def random_labels(n_samples: int, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return a random partition into clusters whose sizes differ by at most one row."""
    return rng.permutation(np.arange(n_samples) % n_clusters).astype(np.int32)


_ignore_convergence = partial(warnings.catch_warnings, action="ignore", category=ConvergenceWarning)
_without_convergence_warnings = SharedSetting(_ignore_convergence).held  # starts are drawn in several threads


def kmeans_labels(points: Array, n_clusters: int, rng: np.random.Generator, known: Labels | None = None) -> Labels:
    """Return the partition of k-means on points (N, dimensions), in which every cluster has a row.

    Clusters with known rows start at the means of these.
    """
    return fill_empty(_run_kmeans(points, n_clusters, int(rng.integers(2**31)), known), n_clusters, rng)


def _run_kmeans(points: Array, n_clusters: int, seed: int, known: Labels | None = None) -> Labels:
    """Return the partition of k-means, in which clusters may be empty."""
    from sklearn.cluster import KMeans, kmeans_plusplus  # takes half a second to import, and predictions do not need it

    # k-means warns about fewer distinct points than clusters; the remaining clusters stay empty instead.
    n_distinct = min(n_clusters, len(np.unique(points, axis=0)))
    # One OpenMP thread: the order in which threads add up would decide ties, and on a busy machine they spend most of
    # the time waiting for each other. The limit applies to the calling thread alone.
    with _without_convergence_warnings(), one_library_thread("openmp"):  # those for points that differ by rounding
        if known is not None and (known >= 0).any() and n_distinct == n_clusters:
            drawn = kmeans_plusplus(points, n_clusters, random_state=seed)[0]
            kmeans = KMeans(n_clusters, init=seeded_centers(points, drawn, known), n_init=1, random_state=seed)
        else:
            kmeans = KMeans(n_distinct, n_init=1, random_state=seed)
        labels: Labels = kmeans.fit(points).labels_.astype(np.int32)
    return labels


def mixture_labels(
    rows: Counts,
    n_clusters: int,
    rng: np.random.Generator,
    monitor: Monitor | None = None,
    *,
    from_tfidf: bool = False,
    n_chains: int = N_CHAINS,
    threads: Threads = SERIAL,
) -> Labels:
    """Return the labels of a mixture of multinomials without topics, by Gibbs sampling; clusters may be empty.

    Several chains are run, from random labels or from those of k-means on tf-idf, and the one with the largest final
    joint probability of counts and labels is kept. A request to stop ends them after the current pass. The result does
    not depend on the number of threads.
    """
    monitor = Monitor() if monitor is None else monitor
    points = tfidf_points(rows, rng, monitor, threads) if from_tfidf else None
    seeds = [[int(rng.integers(2**31)) for _ in range(1 + from_tfidf)] for _ in range(n_chains)]
    firsts: list[Labels | None] = [None] * n_chains
    if points is not None:

        def draw(number: int) -> Labels | None:
            is_needed = number == 0 or not monitor.poll()
            return _run_kmeans(points, n_clusters, seeds[number][0]) if is_needed else None

        drawn = [labels for labels in threads.map(draw, range(n_chains)) if labels is not None]
        firsts = [fill_empty(labels, n_clusters, rng) for labels in drawn]
    chain_starts = [(np.random.RandomState(seeds[number][-1]), first) for number, first in enumerate(firsts)]
    chains = run_chains(rows, n_clusters, chain_starts, is_stopped=monitor.poll, map_chains=threads.map)
    return max(chains, key=lambda chain: chain.history[-1]).labels.astype(np.int32)


def tfidf_points(rows: Counts, rng: np.random.Generator, monitor: Monitor, threads: Threads = SERIAL) -> Array:
    """Return the rows as unit vectors in the principal directions of their tf-idf, (N, directions).

    The directions come from power iterations on a random basis (Halko, Martinsson and Tropp 2011), which end early
    after a request to stop.
    """
    from sklearn.feature_extraction.text import TfidfTransformer  # takes a while to import, and few fits need it
    from sklearn.preprocessing import normalize

    X = TfidfTransformer().fit_transform(rows.to_csr())
    tall, wide = (X, X.T.tocsr()) if rows.n_rows >= rows.n_features else (X.T.tocsr(), X)
    n_directions, random_state = min(N_DIRECTIONS, *X.shape), np.random.RandomState(int(rng.integers(2**31)))
    with one_blas_thread():  # also on workers: the number of threads would decide the last digits
        basis: Array = random_state.normal(size=(tall.shape[1], n_directions + N_SPARE))
        for _ in range(N_POWERS[min(X.shape) > 10 * n_directions]):
            if monitor.poll():
                break
            basis = _product(wide, _product(tall, basis, threads), threads)
            basis = linalg.lu(basis, permute_l=True, overwrite_a=True)[0]  # on the shorter side only: it is slow
        # In Fortran order: LAPACK would otherwise work on copies, which may take more memory than the rows.
        basis = np.asfortranarray(_product(tall, basis, threads))
        basis = np.asarray(linalg.qr(basis, mode="economic", overwrite_a=True)[0])
        image, is_tall = np.asfortranarray(_product(wide, basis, threads)), tall is X
        del X, tall, wide  # larger than the rows; the factorization needs memory too
        left, sizes, right = linalg.svd(image, full_matrices=False, overwrite_a=True)
        directions = basis @ right[:n_directions].T if is_tall else left[:, :n_directions]
    directions *= sizes[:n_directions]
    points: Array = normalize(directions, copy=False)
    return points


def _product(matrix: Any, basis: Array, threads: Threads) -> Array:
    """Return the product of a sparse matrix in CSR format and a dense one."""
    product = np.empty((matrix.shape[0], basis.shape[1]))

    def fill(part: slice) -> None:
        product[part] = matrix[part] @ basis

    threads.map(fill, even_slices(matrix.indptr, MAX_SLICES))
    return product


def mixture_topics(
    rows: Counts,
    is_present: NDArray[np.bool_],
    n_topics: int,
    n_clusters: int,
    rng: np.random.Generator,
    monitor: Monitor,
    threads: Threads = SERIAL,
    *,
    from_tfidf: bool = False,
) -> tuple[Array, Labels | None]:
    """Return topics from the clusters of a mixture without topics, (K, V), and its labels as a start, (N,).

    The rows may be a sample: `is_present` (V,) says which features occur at all, and these are possible in all topics.
    Topics are the smoothed profiles of as many clusters as topics. If there are fewer topics than clusters, the sums
    of the clusters are factorized by LDA, as if they were rows; if there are more, the labels are not those of the
    clusters to find, and None is returned instead.
    """
    n_groups = max(n_topics, n_clusters)
    labels = mixture_labels(rows, n_groups, rng, monitor, from_tfidf=from_tfidf, threads=threads)
    labels = fill_empty(labels, n_groups, rng)
    sums = rows.group_sums(labels, n_groups)  # (groups, V)
    if n_topics < n_groups:
        scale = 1 + sums.max() // LARGEST_COUNT  # sums of large counts
        is_new = is_present & (sums.sum(axis=0) == 0)
        whole = as_counts(np.where(is_new, 1, np.ceil(sums / scale)).astype(np.int64))
        # The prior hardly matters to rows as long as these.
        return fit_lda(whole, n_topics, rng=rng, row_prior=1.0, monitor=monitor).beta, labels
    profiles = np.where(is_present, sums + PRIORS[0], 0.0)
    return profiles / profiles.sum(axis=1, keepdims=True), labels if n_topics == n_clusters else None


def fill_empty(labels: Labels, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return labels in which every cluster has a row, taking rows at random from the largest clusters."""
    labels = labels.copy()
    sizes = np.bincount(labels, minlength=n_clusters)
    for q in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        labels[rng.choice(np.flatnonzero(labels == largest))] = q
        sizes[largest] -= 1
        sizes[q] += 1
    return labels


def gamma_of_shares(rows: Counts, shares: Array, labels: Labels, options: engine.SearchOptions) -> Array:
    """Return the parameters of clusters that have the topic counts of their rows' own shares, (Q, K)."""
    gamma = np.full((options.n_clusters, shares.shape[1]), options.alpha, dtype=np.float64)
    np.add.at(gamma, labels, shares * rows.row_totals()[:, None])
    return gamma


# --- one search -------------------------------------------------------------------------------------------------


def search_from(
    rows: Counts | RowBackend,
    beta: Array,
    start: Start,
    options: engine.SearchOptions,
    shares: Array | None = None,
    *,
    history: History | None = None,
) -> Outcome:
    """Draw the labels of a start and search from there; rows on workers need given labels."""
    began = perf_counter()
    backend = LocalRows(rows) if isinstance(rows, Counts) else rows
    local = backend.rows if isinstance(backend, LocalRows) else backend.take(np.arange(0))
    history = History() if history is None else history
    rng = np.random.default_rng(start.seed)
    labels = draw_labels(local, beta, start, options, shares, rng, history.monitor)
    if options.known is not None and (labels != options.known)[options.known >= 0].any():
        labels = with_known(labels, options.known, options.n_clusters, rng)
    gamma = start.gamma
    if start.kind == "kmeans" and shares is not None:
        gamma = gamma_of_shares(local, shares, labels, options)
    beta = beta.copy() if options.refits_topics else beta
    state = engine.build(backend, labels, n_clusters=options.n_clusters, beta=beta, alpha=options.alpha, gamma=gamma)
    if options.algorithm == "vbem":
        soft = engine.vbem(state, options, history=history)
        state, labels, weights = soft.state, soft.labels, soft.weights
    else:
        engine.search(state, options, rng=rng, backend=backend, history=history)
        labels, weights = state.labels, state.clusters.sizes / len(labels)
    if history.interrupted and not history.is_cancelled:  # by Ctrl-C or by the callback
        history.monitor.stop()
    seconds = perf_counter() - began
    topics, gamma = state.topics, state.clusters.gamma
    return Outcome(start, history.bounds[-1], labels, weights, gamma, topics.alpha, topics.beta, history, seconds)


# --- all searches -----------------------------------------------------------------------------------------------


def search_from_starts(
    backend: RowBackend,
    beta: Array,
    starts: list[Start],
    options: engine.SearchOptions,
    *,
    seed: int = 0,
    monitor: Monitor | None = None,
    sample_size: float = SAMPLED_ROWS,
    shares: Array | None = None,
) -> list[Outcome]:
    """Search from the starts and return the outcomes, in order.

    With many rows, the starts are tried on a sample, and the last outcome is that of all rows. In this process, some
    starts run in parallel. The outcomes do not depend on the number of threads: starts that had begun after the one
    that exhausted the patience are discarded.

    Parameters
    ----------
    backend : RowBackend
    beta : array of shape (K, V)
    starts : list of Start
    options : SearchOptions
    seed : int
        Draws the sample.
    monitor : Monitor, optional
        A request to stop, or Ctrl-C, keeps what has been found; the first start is searched in any case.
    sample_size : float
        With more rows than this, the greedy algorithm tries the starts on a sample of this size.
    shares : array of shape (N, K), optional
        Rows in topic space, for k-means; computed if needed.
    """
    monitor = Monitor() if monitor is None else monitor
    if backend.n_rows > sample_size and options.algorithm == "greedy":
        return _search_sample_first(backend, beta, starts, options, seed, monitor, int(sample_size))
    if not isinstance(backend, LocalRows):
        return _search_on_workers(backend, np.arange(backend.n_rows), beta, starts, options, monitor)
    if shares is None:
        shares = _shares_for(starts, backend, np.arange(backend.n_rows), beta, options, monitor)
    monitor.begin("starts", "start 1: drawing labels", len(starts))
    # With many rows, one start keeps all threads busy, so the starts run one after another.
    n_parallel = 1 if backend.n_rows > SHARED_ROWS else min(backend.threads.n_threads, len(starts))
    search, outcomes = partial(search_from, beta=beta, options=options, shares=shares), list[Outcome]()
    try:
        if n_parallel > 1:
            _search_in_parallel(search, backend, starts, outcomes, n_parallel, options.patience, monitor)
            return outcomes
        for number, start in enumerate(starts, start=1):
            outcomes.append(search(backend, start=start, history=History(monitor, start=number)))
            monitor.step(1)
            if monitor.is_stopped or not n_needed([one.bound for one in outcomes], options.patience, len(starts)):
                break
    except KeyboardInterrupt:
        monitor.stop()
        if not outcomes:
            raise
    return outcomes


def _search_in_parallel(
    search: Callable[..., Outcome],
    backend: LocalRows,
    starts: list[Start],
    outcomes: list[Outcome],
    n_parallel: int,
    patience: int,
    monitor: Monitor,
) -> None:
    """Add outcomes in order until they are enough; after Ctrl-C, those of all searches that had begun."""
    is_enough, futures, n_added = Event(), list[Future[Outcome | None]](), 0

    def search_one(number: int, start: Start) -> Outcome | None:
        # The first start is searched for at least a block, so that a request to stop always leaves a model.
        if is_enough.is_set() or (monitor.is_stopped and number > 1):
            return None
        with open_threads(backend.threads.n_threads // n_parallel) as own:
            history = History(monitor, start=number, cancel=is_enough)
            return search(backend.with_threads(own), start=start, history=history)

    def add(outcome: Outcome | None) -> bool:
        """Add an outcome; return True if no more are needed."""
        if outcome is None:
            return True
        outcomes.append(outcome)
        monitor.step(1)
        return monitor.is_stopped or not n_needed([one.bound for one in outcomes], patience, len(starts))

    with ThreadPoolExecutor(n_parallel) as pool:
        try:
            for number, start in enumerate(starts, start=1):
                futures.append(pool.submit(search_one, number, start))
            for future in futures:
                outcome = future.result()
                n_added += 1
                if add(outcome):
                    break
            is_enough.set()
            for future in futures:  # raises an error even if the outcome is not needed
                future.result()
        except KeyboardInterrupt:  # only the main thread receives it; the others stop after their block
            monitor.stop()
            for future in futures[n_added:]:
                if not future.exception():
                    add(future.result())
            raise
        finally:
            is_enough.set()


def _search_sample_first(
    backend: RowBackend,
    beta: Array,
    starts: list[Start],
    options: engine.SearchOptions,
    seed: int,
    monitor: Monitor,
    sample_size: int,
) -> list[Outcome]:
    """Search a sample of many rows from the starts, then all rows from the best of them or from given labels."""
    outcomes, start = list[Outcome](), starts[0]
    if start.labels is None:
        n_rows = backend.n_rows
        rows = np.sort(np.random.default_rng(seed).choice(n_rows, sample_size, replace=False))
        known = None if options.known is None else options.known[rows]
        of_sample = options._replace(few_moves=int(SAMPLED_MOVES * sample_size), known=known)
        if isinstance(backend, LocalRows):
            sample = LocalRows(backend.rows.take(rows), backend.threads)
            outcomes = search_from_starts(sample, beta, starts, of_sample, monitor=monitor, sample_size=sample_size)
        else:
            outcomes = _search_on_workers(backend, rows, beta, starts, of_sample, monitor)
        monitor.begin("extension", "extending the best start to all rows")
        best = best_of(outcomes)
        labels = _extend(backend, rows, beta, best, options)
        gamma = options.alpha + (best.gamma - options.alpha) * (n_rows / len(rows))
        if monitor.checkpoint is not None:
            monitor.checkpoint(labels)
        if monitor.is_stopped:  # keep what the sample has shown so far
            options = options._replace(max_epochs=0)
        start = Start("sample", start.seed, labels, gamma)
    monitor.begin("search", "searching all rows")
    return [*outcomes, search_from(backend, beta, start, options, history=History(monitor, start=0))]


def _extend(backend: RowBackend, sample: Rows, beta: Array, best: Outcome, options: engine.SearchOptions) -> Labels:
    """Return labels of all rows: those found on the sample and, for other rows, the best-fitting cluster."""
    sums = backend.apply(Counts.group_sums, sample, best.labels, options.n_clusters)
    sizes = np.bincount(best.labels, minlength=options.n_clusters)
    state = engine.from_sums(sums, sizes, beta=beta, alpha=options.alpha, gamma=best.gamma)
    labels = engine.assign(state, np.arange(backend.n_rows), backend)
    labels[sample] = best.labels  # so no cluster is empty
    return labels


def _search_on_workers(
    backend: RowBackend,
    rows: Rows,
    beta: Array,
    starts: list[Start],
    options: engine.SearchOptions,
    monitor: Monitor,
) -> list[Outcome]:
    """Search some rows from the starts on workers, as many at a time as are needed in any case."""
    shares = _shares_for(starts, backend, rows, beta, options, monitor)
    sent = [backend.broadcast(value) for value in (beta, options, shares)]
    outcomes = list[Outcome]()
    monitor.begin("starts", "searching from the first starts on the workers", len(starts))
    while n_next := n_needed([one.bound for one in outcomes], options.patience, len(starts)):
        some = starts[len(outcomes) : len(outcomes) + n_next]
        tasks = [(rows, sent[0], start, sent[1], sent[2]) for start in some]
        try:
            outcomes += backend.map(search_from, tasks)
        except KeyboardInterrupt:
            monitor.stop()
            if not outcomes:
                raise
        if monitor.is_stopped:
            break
        monitor.step(n_next, f"{len(outcomes)} starts searched")
    return outcomes


def _shares_for(
    starts: Sequence[Start],
    backend: RowBackend,
    rows: Rows,
    beta: Array,
    options: engine.SearchOptions,
    monitor: Monitor,
) -> Array | None:
    """Return some rows in topic space, (n, K), if k-means needs them for a start."""
    if all(start.kind != "kmeans" for start in starts):
        return None
    monitor.begin("shares", "computing the topic shares of the rows", len(rows))
    tol = 1e-3 if len(rows) >= SAMPLED_ROWS else 1e-6  # with many rows, fewer digits suffice for a start
    shares: Array = map_rows(backend, shares_of_block, rows, shared=(beta, options.alpha, tol, monitor))
    return shares


def shares_of_block(
    block: Counts, rows: Rows, beta: Array, prior: float | Array, tol: float, monitor: Monitor, threads: Threads
) -> Array:
    """Return the topic shares of some rows of a block, (n, K)."""
    return topic_shares(block.take(rows), beta, prior=prior, tol=tol, threads=threads, monitor=monitor)


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the first outcome whose bound is the largest, up to rounding."""
    largest = max(outcome.bound for outcome in outcomes)
    return next(outcome for outcome in outcomes if outcome.bound >= largest - SAME_BOUND * abs(largest))


def n_needed(bounds: Sequence[float], patience: int, n_planned: int) -> int:
    """Return how many more starts will be searched whatever they find; 0 if no more are needed.

    No more are needed when the last `patience` bounds are no better than the best before them.

    Examples
    --------
    >>> n_needed([-12.0, -10.0], patience=3, n_planned=10)
    3
    >>> n_needed([-10.0, -11.0, -12.0, -10.0], patience=3, n_planned=10)
    0
    """
    best_at = 0
    for at in range(1, len(bounds)):
        best = max(bounds[:at])
        if bounds[at] > best + SAME_BOUND * abs(best):
            best_at = at
    return max(0, min(best_at + 1 + patience, n_planned) - len(bounds))
