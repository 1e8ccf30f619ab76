"""Labels to start from, and the searches from all of them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mmpca import engine
from mmpca.counts import Counts
from mmpca.engine.bound import Array
from mmpca.places import Here, Place, in_threads, threads

Labels = NDArray[np.int32]
Algorithm = engine.Algorithm | Literal["vbem"]
Callback = Callable[[int, engine.Progress], object]

KINDS = ("kmeans", "random", "anneal")  # in the order in which "auto" takes turns
SAME_BOUND = 1e-9  # share of a bound by which another must be larger to be better
# Soft assignments converge linearly: differences of bounds below this share are not worth the epochs.
LEAST_SOFT_TOL = 1e-7

SHARED_ROWS = 20_000  # of more rows than these, all threads search from one start at a time


class Plan(NamedTuple):
    """How many starts to make at the most, and how many in a row that are no better than the best to stop after."""

    n_starts: int
    patience: int


# The smaller the data, the cheaper a start.
AUTO_PLANS = ((2_000, Plan(10, 3)), (20_000, Plan(6, 2)))
AUTO_PLAN_LARGE = Plan(3, 1)
LARGE_TABLES = 20_000_000  # clusters x topics x features


def auto_kinds(n_samples: int, table_size: int) -> tuple[str, ...]:
    """Return the kinds of starts that ``start="auto"`` takes in turns.

    From a random partition nearly every row moves, and clusters that change are expensive in proportion to clusters
    times topics times features: where there are many rows, or these are large, k-means alone makes the starts.
    """
    is_large = n_samples > AUTO_PLANS[-1][0] or table_size > LARGE_TABLES
    return ("kmeans",) if is_large else KINDS


def auto_plan(n_samples: int) -> Plan:
    """Return the plan for `n_init="auto"`."""
    return next((plan for limit, plan in AUTO_PLANS if n_samples <= limit), AUTO_PLAN_LARGE)


class Task(NamedTuple):
    """What all starts of a fit have in common."""

    rows: Counts
    beta: Array  # (K, V)
    alpha: float
    n_clusters: int
    algorithm: Algorithm
    max_epochs: int
    tol: float
    few_moves: int = 0  # of an epoch, at which a search may end
    shares: Array | None = None  # topic shares of the rows (N, K), for k-means
    place: Place | None = None  # where the rows are, if not at hand: then starts have to be given
    on_epoch: Callable[[Labels], object] | None = None  # called with the labels after each epoch


class Start(NamedTuple):
    """A kind of labels and the seed that draws them and orders the visits; or given labels."""

    kind: str
    seed: int
    labels: Labels | None = None
    gamma: Array | None = None  # near that of these labels, (Q, K)


class Outcome(NamedTuple):
    """Where a search from one start ended."""

    start: Start
    bound: float
    labels: Labels
    weights: Array  # (Q,)
    gamma: Array  # (Q, K)
    beta: Array  # (K, V)
    run: engine.Run
    seconds: float


class StartReport(NamedTuple):
    """What a fit tells about one of its starts."""

    kind: str
    seed: int
    bound: float
    n_epochs: int
    converged: bool
    seconds: float


def report(outcome: Outcome) -> StartReport:
    """Return what to tell about a start."""
    run = outcome.run
    return StartReport(*outcome.start[:2], outcome.bound, run.n_epochs, run.converged, outcome.seconds)


# --- labels -----------------------------------------------------------------------------------------------------


def random_labels(n_samples: int, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return a random partition into clusters of equal size, up to one row."""
    return rng.permutation(np.arange(n_samples) % n_clusters).astype(np.int32)


def kmeans_labels(shares: Array, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return the partition of k-means on the square roots of topic shares (N, K), where distances are Hellinger's."""
    from sklearn.cluster import KMeans  # half a second that predictions need not wait for

    points = np.sqrt(shares)
    # k-means warns where there are fewer distinct points than clusters: the rest are filled below instead.
    n_distinct = min(n_clusters, len(np.unique(points, axis=0)))
    seed = int(rng.integers(2**31))
    # One thread of OpenMP: the threads' order of summation would decide ties, and on a busy machine they wait for each
    # other many times as long as the work takes. The limit is of the calling thread alone.
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # points that differ by rounding alone
        labels = KMeans(n_distinct, n_init=1, random_state=seed).fit(points).labels_.astype(np.int32)
    return fill_empty(labels, n_clusters, rng)


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


def draw_labels(task: Task, start: Start, rng: np.random.Generator) -> Labels:
    """Return the labels of a start, every cluster with a row."""
    if start.labels is not None:
        return start.labels
    if start.kind == "kmeans" and task.shares is not None:
        return kmeans_labels(task.shares, task.n_clusters, rng)
    if start.kind == "anneal":
        return engine.anneal(task.rows, n_clusters=task.n_clusters, beta=task.beta, alpha=task.alpha, rng=rng)
    return random_labels(task.rows.n_rows, task.n_clusters, rng)


def first_gamma(task: Task, start: Start, labels: Labels) -> Array | None:
    """Return where the VE-steps of the clusters begin, None for equal topic shares.

    Under a prior below one they have several maxima, and the way there would decide between them.
    """
    if task.alpha < 1:
        return None
    if start.kind != "kmeans" or task.shares is None:
        return start.gamma
    gamma = np.full((task.n_clusters, len(task.beta)), task.alpha)
    np.add.at(gamma, labels, task.shares * task.rows.row_totals()[:, None])
    return gamma


# --- searches ---------------------------------------------------------------------------------------------------


def search_from(task: Task, start: Start, *, n_threads: int, callback: Callable[[engine.Progress], object]) -> Outcome:
    """Draw the labels of a start and search from there."""
    began = perf_counter()
    rng = np.random.default_rng(start.seed)
    labels = draw_labels(task, start, rng)
    with threads(n_threads) as pool:
        place = (Here(task.rows) if task.place is None else task.place).using(in_threads(pool))
        found = _search(task, rng, labels, first_gamma(task, start, labels), place, callback)
    return Outcome(start, *found, perf_counter() - began)


def _search(
    task: Task,
    rng: np.random.Generator,
    labels: Labels,
    gamma: Array | None,
    place: Place,
    callback: Callable[[engine.Progress], object],
) -> tuple[float, Labels, Array, Array, Array, engine.Run]:
    """Search from labels; return bound, labels, weights, gamma, topics and the run."""
    state = engine.build_at(place, labels, n_clusters=task.n_clusters, beta=task.beta, alpha=task.alpha, gamma=gamma)
    state = state._replace(rows=task.rows)
    if task.algorithm == "vbem":
        soft = engine.vbem(
            state, max_epochs=task.max_epochs, tol=max(task.tol, LEAST_SOFT_TOL), callback=callback
        )  # fmt: skip
        return soft.run.bounds[-1], soft.labels, soft.weights, soft.gamma, soft.beta, soft.run
    run = engine.search(
        state,
        algorithm=task.algorithm,
        rng=rng,
        max_epochs=task.max_epochs,
        tol=task.tol,
        regroup=task.algorithm == "greedy",
        few_moves=task.few_moves,
        callback=callback,
        place=place,
        on_epoch=task.on_epoch,
    )
    return run.bounds[-1], state.labels, state.sizes / len(labels), state.gamma, task.beta, run


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the first of those whose bound is, but for rounding, the largest."""
    largest = max(outcome.bound for outcome in outcomes)
    return next(outcome for outcome in outcomes if outcome.bound >= largest - SAME_BOUND * abs(largest))


def is_enough(bounds: Sequence[float], patience: int) -> bool:
    """Tell whether the last `patience` bounds are no better than the best before them."""
    if len(bounds) <= patience:
        return False
    return not _is_better(max(bounds[-patience:]), max(bounds[:-patience]))


def n_needed(bounds: Sequence[float], patience: int, n_planned: int) -> int:
    """Return how many more starts will be searched whatever they find, zero if it is enough."""
    if len(bounds) >= n_planned or is_enough(bounds, patience):
        return 0
    better = [at for at in range(1, len(bounds)) if _is_better(bounds[at], max(bounds[:at]))]
    last_better = max(better, default=0)
    return max(1, min(last_better + 1 + patience, n_planned) - len(bounds))


def _is_better(bound: float, best: float) -> bool:
    """Tell whether a bound is above the best before by more than rounding."""
    return bound > best + SAME_BOUND * abs(best)


def n_side_by_side(n_rows: int, n_starts: int, n_threads: int) -> int:
    """Return how many searches run at a time: of many rows each has enough for all threads, which then end together."""
    return 1 if n_rows > SHARED_ROWS else min(n_threads, n_starts)


class Searches:
    """Searches from several starts, some at a time in threads.

    The outcomes come in the order of the starts and do not depend on the number of threads: those beyond the start
    where the patience ended are thrown away if they had begun. `callback` is called with the number of the start and
    its progress, `on_start` with the number when it begins; a true answer of the first stops all of them, and so does
    Ctrl-C, which leaves those that had begun.
    """

    def __init__(
        self,
        task: Task,
        starts: Sequence[Start],
        patience: int,
        callback: Callback | None = None,
        on_start: Callable[[int], object] | None = None,
    ) -> None:
        self.task, self.starts, self.patience, self.callback = task, starts, patience, callback
        self.on_start = on_start
        self.interrupted = False
        self._stop = threading.Event()

    def run(self, n_threads: int) -> list[Outcome]:
        """Return the outcomes, at least one unless Ctrl-C came before there was any: then it goes on upwards."""
        n_parallel = n_side_by_side(self.task.rows.n_rows, len(self.starts), n_threads)
        outcomes: list[Outcome] = []
        try:
            if n_parallel == 1:
                for number in range(len(self.starts)):
                    outcomes += self._one(number, n_threads)
                    if self._is_done(outcomes):
                        break
            else:
                self._run_parallel(outcomes, n_parallel, n_threads // n_parallel)
        except KeyboardInterrupt:
            self._stop.set()
            if not outcomes:
                raise
            self.interrupted = True
        self.interrupted |= any(outcome.run.interrupted for outcome in outcomes)
        return outcomes

    def _run_parallel(self, outcomes: list[Outcome], n_parallel: int, n_threads: int) -> None:
        with ThreadPoolExecutor(n_parallel) as pool:
            futures = []
            try:
                futures += [pool.submit(self._one, number, n_threads) for number in range(len(self.starts))]
                for future in futures:
                    outcomes += future.result()
                    if self._is_done(outcomes):
                        break
                self._stop.set()
                for future in futures:  # an error is told even where the outcome is not needed
                    future.result()
            except KeyboardInterrupt:
                # Only the main thread hears Ctrl-C; the others stop after their block.
                self._stop.set()
                self.interrupted = True
                outcomes[:] = [outcome for future in futures if not future.exception() for outcome in future.result()]
                if not outcomes:
                    raise
            finally:
                self._stop.set()  # starts that are not needed any more

    def _is_done(self, outcomes: list[Outcome]) -> bool:
        return self._stop.is_set() or is_enough([outcome.bound for outcome in outcomes], self.patience)

    def _one(self, number: int, n_threads: int) -> list[Outcome]:
        """Return the outcome of one start, none if all are to stop."""
        if self._stop.is_set():
            return []

        def watch(progress: engine.Progress) -> bool:
            if self.callback is not None and self.callback(number, progress):
                self._stop.set()
            return self._stop.is_set()

        if self.on_start is not None:
            self.on_start(number)
        outcome = search_from(self.task, self.starts[number], n_threads=n_threads, callback=watch)
        if outcome.run.interrupted:
            self._stop.set()
        return [outcome]
