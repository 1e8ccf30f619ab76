"""The fits of a grid: topics for each K, cells from fresh starts, then cells from the clusters of their neighbors.

The tasks run on the active backend of joblib. A store keeps the finished parts of a grid:
``topics-K``, ``fresh-Q-K``, and ``up-...`` and ``down-...`` for cells that started from their neighbors.
"""

from __future__ import annotations

import hashlib
import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from mmpca import engine
from mmpca.backend import LocalRows
from mmpca.counts import Counts
from mmpca.model import starts
from mmpca.monitor import Monitor
from mmpca.store import Arrays, Store
from mmpca.topics import fit_lda, predicted_rows, topic_shares
from mmpca.topics.lda import BUDGET, SEARCH_PASSES, affordable_passes, sample_rows

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Part = TypeVar("Part", bound=NamedTuple)

# At most 4 fresh starts, ending after 2 in a row without progress: fewer than for a single fit, because neighbors
# provide starts as well.
AUTO_PLAN = (4, 2)
PREDICTED_ENTRIES = BUDGET.search_work // 4  # nonzero entries of the rows whose counts are predicted

logger = logging.getLogger("mmpca")


# --- cells ------------------------------------------------------------------------------------------------------


class CellOptions(NamedTuple):
    """Options that all cells have in common."""

    seed: int
    alpha: float = 1.0
    n_init: int | None = None  # fresh starts; None for AUTO_PLAN
    max_epochs: int = 200
    tol: float = 1e-10
    n_folds: int = 5  # 0 to hold out no counts


class TopicFit(NamedTuple):
    """Topics for one K, shared by all Q."""

    beta: Array  # (K, V)
    row_prior: float
    predicted: Array  # (R,), log-likelihood of the held-out counts of R random rows; empty without folds
    n_predicted: int  # sum of the counts of these rows
    seconds: float


class CellFit(NamedTuple):
    """The best partition found for one (Q, K)."""

    labels: Labels  # (N,)
    bound: float
    n_epochs: int
    converged: bool
    kind: str  # of the start that led here
    seed: int  # of the same start
    seconds: float  # of everything that was tried
    history: NDArray[np.float64]  # bound after each epoch of the same start, (E + 1,)
    start_kinds: NDArray[np.str_]  # of all starts, (S,)
    start_numbers: NDArray[np.float64]  # their seed, bound, epochs, convergence and seconds, (S, 5)

    def start_reports(self) -> list[starts.StartReport]:
        """Return summaries of all starts."""
        return [
            starts.StartReport(str(kind), int(seed), float(bound), int(n_epochs), bool(converged), float(seconds))
            for kind, (seed, bound, n_epochs, converged, seconds) in zip(
                self.start_kinds, self.start_numbers, strict=True
            )
        ]


def learn(rows: Counts, options: CellOptions, n_topics: int, n_entries: int | None = None) -> TopicFit:
    """Learn the topics for one K, and predict held-out counts.

    The counts of a random sample of rows with about `n_entries` nonzero entries are predicted, the same for every K.
    """
    began = perf_counter()
    fit = fit_lda(rows, n_topics, rng=np.random.default_rng(options.seed))
    if not options.n_folds:
        return TopicFit(fit.beta, fit.row_prior, np.empty(0), 0, perf_counter() - began)
    sample_rng, folds_rng, starts_rng = map(np.random.default_rng, np.random.SeedSequence(options.seed).spawn(3))
    if n_entries is None:
        n_entries = max(PREDICTED_ENTRIES, BUDGET.search_cover * int((rows.column_totals() > 0).sum()))
    sample = rows.take(sample_rows(np.diff(rows.indptr), n_entries, sample_rng))
    predicted = predicted_rows(
        sample,
        n_topics,
        fit.row_prior,
        n_folds=options.n_folds,
        folds_rng=folds_rng,
        starts_rng=starts_rng,
        max_passes=affordable_passes(SEARCH_PASSES, sample.nnz * n_topics, BUDGET.search_effort),
    )
    n_predicted = int(sample.data.sum(dtype=np.int64))
    return TopicFit(fit.beta, fit.row_prior, predicted, n_predicted, perf_counter() - began)


def fresh_cell(
    rows: Counts, options: CellOptions, topics: TopicFit, n_clusters: int, labels: NDArray[np.int32] | None = None
) -> CellFit:
    """Fit a cell from its own starts, or from given labels first; others are then added only if `n_init` was set."""
    began = perf_counter()
    n_starts, patience = AUTO_PLAN if options.n_init is None else (options.n_init, options.n_init)
    if labels is not None and options.n_init is None:
        n_starts = 0
    seeds = np.random.SeedSequence([options.seed, n_clusters, len(topics.beta)]).generate_state(n_starts)
    planned = [starts.Start(starts.KINDS[n % len(starts.KINDS)], int(seed)) for n, seed in enumerate(seeds)]
    if labels is not None:
        planned, patience = [starts.Start("shares", options.seed, labels), *planned], n_starts + 1
    return _searched(rows, options, topics, n_clusters, planned, patience, began)


def walk(
    rows: Counts,
    options: CellOptions,
    topics: TopicFit,
    fresh: Mapping[int, CellFit],
    remember: Callable[[str, int, Callable[[], CellFit]], CellFit],
) -> dict[int, CellFit]:
    """Improve the cells of one K by their neighbors' clusters: split on the way up in Q, merged on the way down.

    `remember` gets the direction ("up", "down"), Q and a function that computes the cell; it returns the
    stored cell if there is one, and calls the function otherwise.
    """
    cells = dict(fresh)
    for direction, ordered in (("up", sorted(fresh)), ("down", sorted(fresh, reverse=True))):
        for before, n_clusters in pairwise(ordered):
            improve = partial(improved_cell, rows, options, topics, cells[n_clusters], cells[before], n_clusters)
            cells[n_clusters] = remember(direction, n_clusters, improve)
    return cells


def improved_cell(
    rows: Counts, options: CellOptions, topics: TopicFit, cell: CellFit, neighbor: CellFit, n_clusters: int
) -> CellFit:
    """Return the better of a cell and the search that starts from its neighbor's clusters, split or merged."""
    began = perf_counter()
    labels = neighbor.labels
    while (n := int(labels.max()) + 1) != n_clusters:
        state = engine.build(rows, labels, n_clusters=n, beta=topics.beta, alpha=options.alpha)
        labels = engine.split_once(state, tol=options.tol) if n < n_clusters else engine.merge_once(state)
    kind = "split" if labels.max() > neighbor.labels.max() else "merge"
    found = _searched(rows, options, topics, n_clusters, [starts.Start(kind, cell.seed, labels)], 1, began)
    is_better = found.bound > cell.bound + starts.SAME_BOUND * abs(cell.bound)
    return (found if is_better else cell)._replace(
        seconds=cell.seconds + found.seconds,
        start_kinds=np.concatenate([cell.start_kinds, found.start_kinds]),
        start_numbers=np.concatenate([cell.start_numbers, found.start_numbers]),
    )


def _searched(
    rows: Counts,
    options: CellOptions,
    topics: TopicFit,
    n_clusters: int,
    planned: list[starts.Start],
    patience: int,
    began: float,
) -> CellFit:
    """Return the best partition that the searches from some starts find."""
    settings = engine.SearchOptions(
        n_clusters, options.alpha, max_epochs=options.max_epochs, tol=options.tol, patience=patience
    )
    is_fresh, monitor = any(start.labels is None for start in planned), Monitor()
    shares = topic_shares(rows, topics.beta, prior=options.alpha) if is_fresh else None
    outcomes = starts.search_from_starts(
        LocalRows(rows), topics.beta, planned, settings, monitor=monitor, sample_size=np.inf, shares=shares
    )
    if monitor.is_stopped:  # an unfinished cell must not enter the store
        raise KeyboardInterrupt
    best = starts.best_of(outcomes)
    history, start = best.history, best.start
    seconds = perf_counter() - began
    kinds, *numbers = zip(*(outcome.report() for outcome in outcomes), strict=True)
    return CellFit(
        best.labels,
        best.bound,
        history.n_epochs,
        history.converged,
        start.kind,
        start.seed,
        seconds,
        history=np.array(history.bounds),
        start_kinds=np.array(kinds),
        start_numbers=np.array(numbers, dtype=np.float64).T,
    )


# --- the grid ---------------------------------------------------------------------------------------------------


class GridFit(NamedTuple):
    """The finished fits of a grid."""

    topics: dict[int, TopicFit]  # by K
    cells: dict[tuple[int, int], CellFit]  # by (Q, K)
    is_complete: bool  # False after an interruption


class Grid(NamedTuple):
    """The numbers of clusters and topics to fit, the data, and the store of finished parts."""

    rows: Counts
    n_clusters: tuple[int, ...]  # ascending
    n_topics: tuple[int, ...]  # ascending
    options: CellOptions
    store: Store

    def fit(self, n_jobs: int | None, monitor: Monitor) -> GridFit:
        """Fit all cells.

        The result depends neither on `n_jobs` nor on the parts that the store already had. After Ctrl-C the finished
        cells are returned; without any, the KeyboardInterrupt is raised again. When the monitor is stopped, running
        tasks are finished and no others are started, except those needed for a first cell.
        """
        with warnings.catch_warnings():
            # joblib ends idle processes and warns when it replaces them; no work is lost.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            return self._fit(n_jobs, monitor)

    def _fit(self, n_jobs: int | None, monitor: Monitor) -> GridFit:
        found, n_walks = GridFit({}, {}, is_complete=False), 0
        try:
            _start_workers(n_jobs)
            tasks = [_Task(k, _learn, (k,), [f"topics-{k}"]) for k in self.n_topics]
            for k, topics in self._run("topics", "learning topics", tasks, n_jobs, monitor):
                found.topics[k] = topics
            pairs = [(q, k) for k in found.topics for q in self.n_clusters]
            tasks = [_Task((q, k), _fit_fresh, (found.topics[k], q), [f"fresh-{q}-{k}"]) for q, k in pairs]
            for pair, cell in self._run("cells", "fitting cells", tasks, n_jobs, monitor):
                found.cells[pair] = cell
            if not monitor.is_stopped:
                tasks = [self._walk_task(k, found) for k in self.n_topics]
                for k, cells in self._run("neighbors", "fitting cells from neighbors", tasks, n_jobs, monitor):
                    found.cells.update({(q, k): cell for q, cell in cells.items()})
                    n_walks += 1
        except KeyboardInterrupt:
            if not found.cells:
                raise
        return found._replace(is_complete=n_walks == len(self.n_topics))

    def _walk_task(self, k: int, found: GridFit) -> _Task:
        """Return the task that improves all cells of one K."""
        fresh = {q: found.cells[q, k] for q in self.n_clusters}
        parts = [_walk_name(direction, q, k, self.n_clusters) for direction in ("up", "down") for q in self.n_clusters]
        return _Task(k, _walk, (found.topics[k], fresh), parts)

    def _run(
        self, stage: str, text: str, tasks: list[_Task], n_jobs: int | None, monitor: Monitor
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the key and the result of each task, in order; once stopped, start none but the first."""
        monitor.begin(stage, text, len(tasks))
        is_remote, shared = _is_remote(), SharedRows(self.rows)

        def calls() -> Iterator[Any]:
            for number, task in enumerate(tasks):
                if number and monitor.is_stopped:
                    return
                store = TravelingStore.take(self.store, task.parts) if is_remote else self.store
                yield delayed(_call)(shared, self.options, store, task)

        results = Parallel(n_jobs=n_jobs, return_as="generator")(calls())
        for number, (task, (result, parts)) in enumerate(zip(tasks, results, strict=False), start=1):
            for name, part in parts.items():
                self.store.write(name, part)
            monitor.step()
            if monitor.verbose:
                logger.info("%s: %d of %d done", stage, number, len(tasks))
            yield task.key, result


# --- tasks and where they run -----------------------------------------------------------------------------------


class _Task(NamedTuple):
    """A function to call with the rows, the options, a store and some arguments."""

    key: Any
    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    parts: list[str]  # names of the parts that it may find in the store


class SharedRows:
    """Rows as an argument of many calls, in a form that joblib's Dask backend sends once per stage.

    It does so only for large arguments that support weak references; tuples do not.
    """

    def __init__(self, rows: Counts) -> None:
        self.rows = rows

    def __sizeof__(self) -> int:
        return int(self.rows.indptr.nbytes + self.rows.indices.nbytes + self.rows.data.nbytes)


class TravelingStore(Store):
    """Parts sent with a call to another machine, which cannot access the folder.

    Parts that the call finishes are collected in `added`, to be written when it returns.
    """

    def __init__(self, parts: Mapping[str, Arrays]) -> None:
        super().__init__(None, "search")
        self.parts, self.added = parts, dict[str, Mapping[str, Any]]()

    @classmethod
    def take(cls, store: Store, names: Iterable[str]) -> TravelingStore:
        """Return a store with the finished parts among those named."""
        parts = {name: store.read(name) for name in names}
        return cls({name: part for name, part in parts.items() if part is not None})

    def read(self, name: str) -> Arrays | None:
        """Return a part, None if it is not finished."""
        return self.parts.get(name)

    def write(self, name: str, part: Mapping[str, Any]) -> None:
        """Collect a finished part."""
        self.added[name] = part


def _call(shared: SharedRows, options: CellOptions, store: Store, task: _Task) -> tuple[Any, Mapping[str, Any]]:
    """Return the result of a task, and the parts that the calling process has to write."""
    result = task.work(shared.rows, options, store, *task.arguments)
    return result, store.added if isinstance(store, TravelingStore) else {}


def _learn(rows: Counts, options: CellOptions, store: Store, n_topics: int) -> TopicFit:
    return remember(store, f"topics-{n_topics}", TopicFit, partial(learn, rows, options, n_topics))


def _fit_fresh(rows: Counts, options: CellOptions, store: Store, topics: TopicFit, n_clusters: int) -> CellFit:
    compute = partial(fresh_cell, rows, options, topics, n_clusters)
    return remember(store, f"fresh-{n_clusters}-{len(topics.beta)}", CellFit, compute)


def _walk(
    rows: Counts, options: CellOptions, store: Store, topics: TopicFit, fresh: Mapping[int, CellFit]
) -> dict[int, CellFit]:
    def recall(direction: str, n_clusters: int, compute: Callable[[], CellFit]) -> CellFit:
        return remember(store, _walk_name(direction, n_clusters, len(topics.beta), tuple(fresh)), CellFit, compute)

    return walk(rows, options, topics, fresh, recall)


def _walk_name(direction: str, n_clusters: int, n_topics: int, path: tuple[int, ...]) -> str:
    """Return the name of an improved cell, which depends on all numbers of clusters along the walk."""
    return f"{direction}-{hashlib.sha256(repr(path).encode()).hexdigest()[:8]}-{n_clusters}-{n_topics}"


def remember(store: Store, name: str, kind: type[Part], compute: Callable[[], Part]) -> Part:
    """Return a part from the store, or compute it and store it."""
    arrays = store.read(name)
    if arrays is not None and arrays.keys() == set(kind._fields):
        make: Callable[..., Part] = kind
        return make(**{key: array if array.ndim else array.item() for key, array in arrays.items()})
    part = compute()
    store.write(name, part._asdict())
    return part


def _is_remote() -> bool:
    """Return True if joblib may run tasks on other machines: with any backend but its own."""
    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


def _start_workers(n_jobs: int | None) -> None:
    """Start processes that ignore Ctrl-C, which a terminal sends to all of them; this process ends them.

    joblib reuses them for the tasks. They inherit the handler that is set here for a moment.
    """
    n_workers = effective_n_jobs(n_jobs)
    if n_workers == 1 or _is_remote() or threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(int)() for _ in range(n_workers))
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in started:
        pass
