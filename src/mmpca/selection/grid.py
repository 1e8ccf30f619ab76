"""All cells of a grid, in parallel, remembered in a store."""

from __future__ import annotations

import hashlib
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from mmpca.counts import Counts, no_rows
from mmpca.selection.cells import Cell, Options, Topics, fresh_cell, learn, walk
from mmpca.selection.store import Store

Numbers = tuple[int, ...]


class GridProgress(NamedTuple):
    """Where a search of the grid stands."""

    stage: str  # "topics", "cells" or "neighbours"
    n_done: int  # parts of all stages
    n_parts: int
    seconds_left: float  # as if all parts took equally long; NaN before the first


class GridFit(NamedTuple):
    """What a search of the grid found."""

    topics: dict[int, Topics]  # by K
    cells: dict[tuple[int, int], Cell]  # by (Q, K)
    is_complete: bool  # False after Ctrl-C


class Grid(NamedTuple):
    """Numbers of clusters and topics to fit, and how."""

    rows: Counts
    n_clusters: Numbers  # ascending
    n_topics: Numbers  # ascending
    options: Options
    store: Store

    def fit(self, n_jobs: int | None, callback: Callable[[GridProgress], object] | None = None) -> GridFit:
        """Fit all cells: topics for each K, fresh starts for each cell, then the walks along Q.

        The result depends neither on `n_jobs` nor on what the store knew already. Ctrl-C ends it with the cells that
        are finished, if there are any.
        """
        with warnings.catch_warnings():
            # joblib replaces a process that ended for want of work, and warns of it; nothing is lost by that.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            return self._fit(n_jobs, callback)

    def _fit(self, n_jobs: int | None, callback: Callable[[GridProgress], object] | None) -> GridFit:
        found = GridFit({}, {}, is_complete=True)
        tell = _Teller(callback, len(self.n_topics) * (len(self.n_clusters) + 2))
        try:
            _start_workers(n_jobs)
            for n_topics, topics in self._each("topics", _topics, [(k,) for k in self.n_topics], n_jobs, tell):
                found.topics[n_topics[0]] = topics
            pairs = [(k, q) for k in self.n_topics for q in self.n_clusters]
            tasks = [(k, q, found.topics[k]) for k, q in pairs]
            for (k, q, _), cell in self._each("cells", _fresh, tasks, n_jobs, tell):
                found.cells[q, k] = cell
            walks = [(k, found.topics[k], {q: found.cells[q, k] for q in self.n_clusters}) for k in self.n_topics]
            for (k, *_), cells in self._each("neighbours", _walk, walks, n_jobs, tell):
                found.cells.update({(q, k): cell for q, cell in cells.items()})
        except KeyboardInterrupt:
            if not found.cells:
                raise
            return found._replace(is_complete=False)
        return found

    def _each(
        self, stage: str, work: Callable[..., Any], tasks: list[tuple[Any, ...]], n_jobs: int | None, tell: _Teller
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Yield each task with its result, in their order."""
        tell(stage, 0)
        is_away, sent = _is_away(), Sent(self.rows)
        calls = (self._away(sent, work, task) if is_away else delayed(work)(self, *task) for task in tasks)
        results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for task, result in zip(tasks, results, strict=True):
            if is_away:
                result, added = result
                for name, part in added.items():
                    self.store.keep(name, part)
            tell(stage, 1)
            yield task, result

    def _away(self, sent: Sent, work: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        """Return a call for a process that sees neither the rows nor the store."""
        names, kind = _PARTS[work](self, *task)
        light = self._replace(rows=no_rows(self.rows.n_features), store=self.store.taken_along(names, kind))
        return delayed(_call_away)(sent, light, work, task)


class Sent:
    """Rows as an argument of many calls, which Dask's backend of joblib sends once for each stage.

    It does so with arguments that are large, and can be referred to weakly, which tuples cannot.
    """

    def __init__(self, rows: Counts) -> None:
        self.rows = rows

    def __sizeof__(self) -> int:
        return int(self.rows.indptr.nbytes + self.rows.indices.nbytes + self.rows.data.nbytes)


def _call_away(sent: Sent, light: Grid, work: Callable[..., Any], task: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """Return what a call finds, and the parts that it finished."""
    result = work(light._replace(rows=sent.rows), *task)
    return result, light.store.added  # type: ignore[attr-defined]


def _is_away() -> bool:
    """Tell whether joblib works on other machines: by any backend but its own."""
    backend = get_active_backend()[0]
    return not type(backend).__module__.startswith("joblib._parallel_backends")


def _start_workers(n_jobs: int | None) -> None:
    """Start processes that ignore Ctrl-C, which on a terminal goes to all of them: this one ends them, without a word.

    joblib keeps them for what comes. They have this from being started while it is ignored here, for a moment.
    """
    n_workers = effective_n_jobs(n_jobs)
    if n_workers == 1 or _is_away() or threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(int)() for _ in range(n_workers))
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in started:
        pass


def _topics(grid: Grid, n_topics: int) -> Topics:
    return grid.store.remember(f"topics-{n_topics}", Topics, lambda: learn(grid.rows, n_topics, grid.options))


def _fresh(grid: Grid, n_topics: int, n_clusters: int, topics: Topics) -> Cell:
    compute = partial(fresh_cell, grid.rows, topics, n_clusters, grid.options)
    return grid.store.remember(f"fresh-{n_clusters}-{n_topics}", Cell, compute)


def _walk(grid: Grid, n_topics: int, topics: Topics, fresh: dict[int, Cell]) -> dict[int, Cell]:
    def remember(way: str, n_clusters: int, compute: Callable[[], Cell]) -> Cell:
        return grid.store.remember(_walk_name(grid, way, n_clusters, n_topics), Cell, compute)

    return walk(grid.rows, topics, fresh, grid.options, remember)


def _walk_name(grid: Grid, way: str, n_clusters: int, n_topics: int) -> str:
    # What a walk finds depends on all cells on its way.
    way_of = hashlib.sha256(repr(grid.n_clusters).encode()).hexdigest()[:8]
    return f"{way}-{way_of}-{n_clusters}-{n_topics}"


def _walk_parts(grid: Grid, n_topics: int, *_: object) -> tuple[list[str], Callable[..., Any]]:
    return [_walk_name(grid, way, q, n_topics) for way in ("up", "down") for q in grid.n_clusters], Cell


# Names and kind of the parts that a call remembers.
_PARTS: dict[Callable[..., Any], Callable[..., tuple[list[str], Callable[..., Any]]]] = {
    _topics: lambda grid, n_topics: ([f"topics-{n_topics}"], Topics),
    _fresh: lambda grid, n_topics, n_clusters, topics: ([f"fresh-{n_clusters}-{n_topics}"], Cell),
    _walk: _walk_parts,
}


class _Teller:
    """Tells the callback how far it is, and how long it may take."""

    def __init__(self, callback: Callable[[GridProgress], object] | None, n_parts: int) -> None:
        self.callback, self.n_parts, self.n_done = callback, n_parts, 0
        self.first = perf_counter()  # when the first part was done: before, processes start and code is compiled

    def __call__(self, stage: str, n_new: int) -> None:
        self.n_done += n_new
        if self.n_done <= 1:
            self.first = perf_counter()
        if self.callback is not None:
            each = (perf_counter() - self.first) / (self.n_done - 1) if self.n_done > 1 else float("nan")
            n_left = self.n_parts - self.n_done
            self.callback(GridProgress(stage, self.n_done, self.n_parts, each * n_left if n_left else 0.0))
