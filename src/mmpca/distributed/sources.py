"""Row blocks from many sources, checked where they are read: matrices, dask arrays, delayed blocks, files, AnnData."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import LocalRows, RowBackend, open_threads
from mmpca.counts import Counts, as_counts, no_rows
from mmpca.distributed.workers import DaskRows, Workers
from mmpca.errors import CountsError, InputFileError
from mmpca.io import read_counts
from mmpca.model.prediction import align_features, note_on_positions
from mmpca.monitor import Monitor

EXPECTED = (
    "a dask array of row blocks, a list of blocks (matrices or delayed matrices), a list of files, or an AnnData "
    "object whose X is a dask array"
)


class Reading(NamedTuple):
    """How blocks become counts."""

    empty_rows: Literal["error", "allow", "drop"] = "error"
    known: Any | None = None  # names of the model's features, to which named features are matched
    names: Any | None = None  # names of the features of all blocks, if they must be matched
    options: Mapping[str, Any] = {}  # for `mmpca.io.read_counts`
    with_rows: bool = False  # whether to collect the names of the rows


class EmptyRows(NamedTuple):
    """Empty rows of a block, which were dropped."""

    block: int
    n_empty: int
    n_read: int
    name: str  # of the first one, or its index in the block


class Loaded(NamedTuple):
    """Rows on a backend, and facts about their sources."""

    backend: RowBackend
    feature_names: Any | None  # array of str, shape (V,)
    row_names: list[str] | None  # name of each row, or its index among all rows that were read
    notes: list[str]  # remarks on how files were read, one sentence each
    empty: list[EmptyRows]  # by block

    @property
    def n_dropped(self) -> int:
        """Number of rows without counts, which were dropped."""
        return sum(one.n_empty for one in self.empty)


class BlockInfo(NamedTuple):
    """Facts about a block that the client needs."""

    n_rows: int
    n_features: int
    n_read: int = 0  # rows, before empty ones were dropped
    names_digest: str | None = None  # of the names of the features
    notes: tuple[str, ...] = ()
    first_empty: str | None = None  # name or index of the first row that was dropped


class Block(NamedTuple):
    """A block of rows, in the process that read it."""

    rows: Counts
    info: BlockInfo
    feature_names: Any | None = None
    row_names: Any | None = None  # of the rows that were kept
    kept: NDArray[np.intp] | None = None  # indices of these rows, unless all were kept


def load(
    X: Any,
    workers: Workers | None = None,
    reading: Reading | None = None,
    *,
    n_threads: int = 1,
    monitor: Monitor | None = None,
) -> Loaded:
    """Read blocks of rows, given as in `fitting.fit`, on the workers of a cluster or in this process.

    Without workers, `n_threads` threads read the blocks, which are then joined in memory. The monitor receives each
    block as a step of the stage "reading".

    Raises
    ------
    CountsError
        If blocks do not contain counts, have different features, or are all empty.
    """
    reading = reading or Reading()
    monitor = Monitor() if monitor is None else monitor
    names = None
    if hasattr(X, "var_names") and hasattr(X, "obs_names") and hasattr(X, "X"):
        X, names = _split_anndata(X)
        if reading.known is None or np.array_equal(names, reading.known):
            reading = reading._replace(known=None)
        else:
            names, reading = reading.known, reading._replace(names=names)
    given = _list_blocks(X)
    monitor.begin("reading", "reading blocks of rows", len(given))
    if workers is None:
        blocks = _read_in_threads(given, reading, n_threads, monitor)
    else:
        blocks = _read_on_workers(given, reading, workers, monitor)

    def collect(get: Callable[[Block], Any], numbers: Sequence[int]) -> list[Any]:
        """Return an attribute of some blocks, wherever they are."""
        if workers is None:
            return [get(blocks[number]) for number in numbers]
        return workers.gather([workers.submit(get, blocks[number]) for number in numbers])

    every = range(len(blocks))
    infos: list[BlockInfo] = collect(attrgetter("info"), every)
    filled = [number for number in every if infos[number].n_rows]
    if not filled:
        raise CountsError("X must have at least one row with counts, but all of its blocks are empty.")
    first = infos[filled[0]]
    for number in filled:
        _compare(first, infos[number], *(_name(given[n], n) for n in (filled[0], number)))
    if first.names_digest is not None:
        names = collect(attrgetter("feature_names"), filled[:1])[0]
    row_names = None
    if reading.with_rows:
        row_names = _row_names(infos, collect(attrgetter("row_names", "kept"), every))
    notes = list(dict.fromkeys(note for info in infos for note in info.notes))
    empty = [
        EmptyRows(number, info.n_read - info.n_rows, info.n_read, info.first_empty)
        for number, info in enumerate(infos)
        if info.first_empty is not None
    ]
    backend: RowBackend
    if workers is None:
        rows = [blocks[number].rows for number in filled]
        del blocks  # their memory is freed one block at a time
        backend = LocalRows(_join(rows))
    else:
        counts = [workers.submit(attrgetter("rows"), blocks[number]) for number in filled]
        backend = DaskRows(workers, counts, [infos[number].n_rows for number in filled], first.n_features)
    return Loaded(backend, names, row_names, notes, empty)


def _read_in_threads(given: Sequence[Any], reading: Reading, n_threads: int, monitor: Monitor) -> list[Any]:
    """Return the blocks, read by threads of this process."""

    def read(number: int) -> Block:
        """Read one block and report it."""
        block = read_block(given[number], number, reading)
        monitor.step()
        return block

    with open_threads(n_threads) as threads:
        return threads.map(read, range(len(given)))


def _read_on_workers(given: Sequence[Any], reading: Reading, workers: Workers, monitor: Monitor) -> list[Any]:
    """Return futures of the blocks, read by the workers of a cluster."""
    delayed = [number for number, block in enumerate(given) if _is_delayed(block)]
    futures = workers.client.compute([given[number] for number in delayed])  # together: they may share inputs
    arguments = dict(enumerate(given)) | dict(zip(delayed, futures, strict=True))
    blocks = [workers.submit(read_block, block, number, reading) for number, block in arguments.items()]
    workers.wait(blocks, on_done=monitor.step)
    return blocks


def _list_blocks(X: Any) -> list[Any]:
    """Return the blocks of rows; files as absolute paths, which are valid in other folders."""
    if hasattr(X, "to_delayed") and hasattr(X, "numblocks"):
        if len(X.numblocks) != 2 or X.numblocks[1] != 1:
            raise ValueError(
                f"X must be divided by rows only, but it has {X.numblocks[-1]} blocks of columns. "
                "Call X.rechunk({1: -1}) first."
            )
        return list(X.to_delayed().ravel())
    if isinstance(X, str | os.PathLike):
        X = [X]
    if not isinstance(X, Sequence):
        raise TypeError(f"X must be {EXPECTED}, but it is {type(X).__name__}.")
    if not len(X):
        raise ValueError("X must have at least one block of rows, but the list is empty.")
    return [Path(block).absolute() if isinstance(block, str | os.PathLike) else block for block in X]


def _is_delayed(block: Any) -> bool:
    return hasattr(block, "__dask_graph__")


def _split_anndata(adata: Any) -> tuple[Any, Any]:
    """Return the dask array of an AnnData object, and the names of its variables."""
    if not hasattr(adata.X, "to_delayed"):
        raise TypeError(
            f"The X of an AnnData object must be a dask array here, but it is {type(adata.X).__name__}. Read it "
            "with anndata.experimental.read_lazy, or cluster data in memory with mmpca.anndata.cluster."
        )
    # Lazy objects leave the names in the file; their `var_names` are just numbers.
    names = getattr(adata.var, "true_index", adata.var_names)
    return adata.X, np.array([str(name) for name in names], dtype=object)


def _name(block: Any, number: int) -> str:
    return str(block) if isinstance(block, Path) else f"block {number}"


def _compare(first: BlockInfo, other: BlockInfo, name: str, other_name: str) -> None:
    """Raise CountsError unless two blocks have the same features."""
    if other.n_features != first.n_features:
        raise CountsError(
            f"All blocks must have the same features, but {name} has {first.n_features} and {other_name} has "
            f"{other.n_features}. Leave out the wrong ones, or count all of them with one vocabulary."
        )
    if first.names_digest != other.names_digest:
        raise CountsError(
            f"All blocks must have the same features in the same order, but the feature names of {other_name} differ "
            f"from those of {name}. Count all of them with one vocabulary; for files that list only the features that "
            "occur, pass it as feature_names."
        )


def _row_names(infos: Sequence[BlockInfo], by_block: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return the name of each row that was kept, or else its index among all rows that were read."""
    found: list[str] = []
    n_before = 0
    for info, (names, kept) in zip(infos, by_block, strict=True):
        indices = range(info.n_read) if kept is None else kept.tolist()
        found += (str(n_before + i) for i in indices) if names is None else (str(name) for name in names)
        n_before += info.n_read
    return found


def _join(blocks: list[Counts]) -> Counts:
    """Stack blocks vertically; empties the list, to avoid holding all rows twice."""
    if len(blocks) == 1:
        return blocks[0]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(block.indptr) for block in blocks]))])
    indices, data, n_features = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int32), blocks[0].n_features
    start = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        stop = start + block.nnz
        indices[start:stop], data[start:stop] = block.indices, block.data
        start = stop
    return Counts(indptr, indices, data, n_features)


# --- functions that run on workers --------------------------------------------------------------------------------


def read_block(block: Any, number: int, reading: Reading) -> Block:
    """Read a file or compute a delayed block, and check the counts."""
    if isinstance(block, Path):
        return _read_file(block, reading)
    if _is_delayed(block):
        block = block.compute(scheduler="synchronous")
    name = f"block {number} of X"
    columns = list(getattr(block, "columns", ()))
    if columns and all(isinstance(column, str) for column in columns):  # a data frame with names
        return _align(block, np.array(columns, dtype=object), name, reading)
    if reading.names is None or reading.known is None or block.shape[0] == 0:
        unnamed = reading.known is not None and reading.names is None
        return _check(block, name, reading, notes=tuple(note_on_positions(True, False)) if unnamed else ())
    counts = as_counts(block, name=name, empty_rows="allow").to_csr()
    aligned = align_features(counts, reading.names, reading.known, name=name)
    return _check(aligned.X, name, reading, notes=tuple(f"{name}: {note}" for note in aligned.notes()))


def _align(frame: Any, names: Any, name: str, reading: Reading) -> Block:
    """Return the counts of a data frame, with the features of a model if there is one."""
    if reading.known is None or frame.shape[0] == 0:
        return _check(frame, name, reading, names if reading.known is None else reading.known)
    aligned = align_features(as_counts(frame, name=name, empty_rows="allow").to_csr(), names, reading.known, name=name)
    return _check(aligned.X, name, reading, reading.known, notes=tuple(f"{name}: {note}" for note in aligned.notes()))


def _read_file(path: Path, reading: Reading) -> Block:
    if not path.exists():
        raise InputFileError(
            f"{path}: no such file on {platform.node() or 'the worker'}. Check the path; all workers of a cluster must "
            "see the files under the same path.",
            path=path,
        )
    table = read_counts(path, **reading.options)
    notes, X, names = tuple(table.notes), table.X, table.feature_names
    if reading.known is not None and names is not None:
        aligned = align_features(X, names, reading.known, name=str(path))
        notes, X, names = (*notes, *(f"{path.name}: {note}" for note in aligned.notes())), aligned.X, reading.known
    elif reading.known is not None:
        notes = (*notes, *(f"{path.name}: {note}" for note in note_on_positions(True, False)))
    return _check(X, str(path), reading, names, table.row_names, notes)


def _check(
    X: Any, name: str, reading: Reading, features: Any = None, row_names: Any = None, notes: tuple[str, ...] = ()
) -> Block:
    """Return a matrix as a block of valid counts."""
    digest = None if features is None else hashlib.sha256("\n".join(map(repr, features)).encode()).hexdigest()
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] == 0:
        info = BlockInfo(0, shape[1], names_digest=digest, notes=notes)
        return Block(no_rows(shape[1]), info, features, row_names)
    rows = as_counts(X, name=name, empty_rows="error" if reading.empty_rows == "error" else "allow")
    n_read, kept, filled, first_empty = rows.n_rows, None, np.flatnonzero(np.diff(rows.indptr)), None
    if reading.empty_rows == "drop" and len(filled) < n_read:
        first = int(np.diff(rows.indptr).argmin())
        first_empty = str(first if row_names is None else row_names[first])
        rows, kept = rows.take(filled), filled
        row_names = None if row_names is None else row_names[filled]
    info = BlockInfo(rows.n_rows, rows.n_features, n_read, digest, notes, first_empty)
    return Block(rows, info, features, row_names, kept)
