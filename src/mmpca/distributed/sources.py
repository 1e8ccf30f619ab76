"""Data of many kinds as parts that a crew holds, checked where they are."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.counts import Counts, as_counts, no_rows, square_root
from mmpca.distributed.crews import Cluster, Crew
from mmpca.distributed.parts import Parts
from mmpca.errors import CountsError, InputFileError
from mmpca.io import read_counts
from mmpca.model.alignment import Alignment, align_features

EXPECTED = (
    "a dask array of row blocks, a list of blocks (matrices or delayed ones), a list of files, or an AnnData object "
    "whose X is a dask array"
)


class Reading(NamedTuple):
    """How rows become counts where they are."""

    stabilize: str | None = None
    empty_rows: Literal["error", "allow", "drop"] = "error"
    known: Any | None = None  # names of features to bring those that have names into the order of
    names: Any | None = None  # of the features of all blocks, if these have to be brought into that order
    options: Mapping[str, Any] = {}  # of `mmpca.io.read_counts`
    with_rows: bool = False  # whether names of rows are brought here


class EmptyRows(NamedTuple):
    """Rows of a block without counts, which were left out."""

    block: int
    n_empty: int
    n_read: int
    name: str  # of the first, or its number in the block


class Loaded(NamedTuple):
    """Parts, and what is known of them."""

    parts: Parts
    feature_names: Any | None  # array of str, shape (V,)
    rows: list[str] | None  # a name for each row, or its number among all that were read
    notes: list[str]  # on how files were read, a sentence each
    empty: list[EmptyRows]  # by block

    @property
    def n_dropped(self) -> int:
        """Number of rows without counts."""
        return sum(one.n_empty for one in self.empty)


class Block(NamedTuple):
    """A block of rows where it is."""

    rows: Counts
    feature_names: Any | None = None
    row_names: Any | None = None  # of the rows that are kept
    kept: NDArray[np.intp] | None = None  # which these are, if not all
    n_read: int = 0
    notes: tuple[str, ...] = ()
    first_empty: str | None = None  # name or number of the first row that was left out


class _Sketch(NamedTuple):
    """What has to be known of a block here."""

    n_rows: int
    n_features: int
    n_read: int
    names_digest: str | None
    notes: tuple[str, ...]
    first_empty: str | None


def load(
    X: Any, crew: Crew, reading: Reading | None = None, *, on_read: Callable[[int], object] | None = None
) -> Loaded:
    """Return data as parts that the crew holds.

    Parameters
    ----------
    X : dask array, list of blocks, delayed blocks or paths, or AnnData
        Blocks of rows, all of the same features.
    crew : Crew
    reading : Reading
    on_read : callable, optional
        Called with the number of blocks that have been read, from any thread.
    """
    reading = reading or Reading()
    names = None
    if _is_anndata(X):
        X, names = _of_anndata(X)
        names, reading = _in_order(names, reading)
    given = _given(_blocks(X), crew)
    blocks = [crew.submit(read_block, block, number, reading) for number, block in enumerate(given)]
    if on_read is not None:
        count_done(blocks, on_read)
    crew.finish(blocks)
    sketches = crew.gather([crew.submit(_sketch, block) for block in blocks])
    filled = [number for number, sketch in enumerate(sketches) if sketch.n_rows]
    if not filled:
        raise CountsError("X must have at least one row with counts, but all of its blocks are empty.")
    first = sketches[filled[0]]
    for number in filled:
        _compare(first, sketches[number], *(_called(given[n], n) for n in (filled[0], number)))
    if first.names_digest is not None:
        names = crew.call(_feature_names, blocks[filled[0]])
    parts = Parts(
        crew,
        [crew.submit(_counts, blocks[number]) for number in filled],
        [sketches[number].n_rows for number in filled],
        first.n_features,
    )
    rows = list(_row_names(blocks, sketches, crew)) if reading.with_rows else None
    notes = list(dict.fromkeys(note for sketch in sketches for note in sketch.notes))
    empty = [
        EmptyRows(number, sketch.n_read - sketch.n_rows, sketch.n_read, sketch.first_empty)
        for number, sketch in enumerate(sketches)
        if sketch.first_empty is not None
    ]
    return Loaded(parts, names, rows, notes, empty)


def _blocks(X: Any) -> list[Any]:
    """Return the blocks of rows, unread."""
    if hasattr(X, "to_delayed") and hasattr(X, "numblocks"):
        if len(X.numblocks) != 2 or X.numblocks[1] != 1:
            raise ValueError(
                f"X must be divided by rows alone, but it has {X.numblocks[-1]} blocks of columns. "
                "Call X.rechunk({1: -1}) first."
            )
        return list(X.to_delayed().ravel())
    if isinstance(X, str | os.PathLike):
        return [X]
    if isinstance(X, Sequence):
        if not len(X):
            raise ValueError("X must have at least one block of rows, but the list is empty. Check what fills it.")
        return list(X)
    raise TypeError(f"X must be {EXPECTED}, but it is {type(X).__name__}.")


def _given(blocks: Sequence[Any], crew: Crew) -> list[Any]:
    """Return blocks as workers are given them: files by a path that holds anywhere, delayed ones as futures."""
    blocks = [Path(block).absolute() if isinstance(block, str | os.PathLike) else block for block in blocks]
    delayed = [number for number, block in enumerate(blocks) if _is_delayed(block)]
    if delayed and isinstance(crew, Cluster):
        futures = crew.client.compute([blocks[number] for number in delayed])  # at once: they may share what they need
        for number, future in zip(delayed, futures, strict=True):
            blocks[number] = future
    return blocks


def count_done(futures: Sequence[Any], tell: Callable[[int], object]) -> None:
    """Tell how many futures are done, again after each of them; those that were given up are not."""
    numbers = itertools.count(1)  # next() is atomic

    def done(future: Any) -> None:
        if not future.cancelled():
            tell(next(numbers))

    for future in futures:
        future.add_done_callback(done)


def _is_delayed(block: Any) -> bool:
    return hasattr(block, "__dask_graph__")


def _is_anndata(X: Any) -> bool:
    return hasattr(X, "var_names") and hasattr(X, "obs_names") and hasattr(X, "X")


def _of_anndata(adata: Any) -> tuple[Any, Any]:
    """Return the blocks of an AnnData object, and the names of its variables."""
    if not hasattr(adata.X, "to_delayed"):
        raise TypeError(
            f"The X of an AnnData object must be a dask array here, but it is {type(adata.X).__name__}. Read it "
            "by anndata.experimental.read_lazy, or cluster what is in memory by mmpca.anndata.cluster."
        )
    # Where names are left in the file, those at hand are mere numbers.
    names = getattr(adata.var, "true_index", adata.var_names)
    return adata.X, np.array([str(name) for name in names], dtype=object)


def _in_order(names: Any, reading: Reading) -> tuple[Any, Reading]:
    """Return the names that the features of all blocks will have, and how to read them."""
    if reading.known is None or np.array_equal(names, reading.known):
        return names, reading._replace(known=None)
    return reading.known, reading._replace(names=names)


def _called(block: Any, number: int) -> str:
    return str(block) if isinstance(block, Path) else f"block {number}"


def _compare(first: _Sketch, other: _Sketch, name: str, other_name: str) -> None:
    """Raise CountsError unless two blocks have the same features."""
    if other.n_features != first.n_features:
        raise CountsError(
            f"All of them must have the same features, but {name} has {first.n_features} and {other_name} has "
            f"{other.n_features}. Leave out what does not belong, and count the others with one vocabulary."
        )
    if first.names_digest != other.names_digest:
        raise CountsError(
            f"All of them must have the same features in the same order, but the names in {other_name} are not "
            f"those in {name}. Count all of them with one vocabulary; for files that name only what occurs in "
            "them, give it as feature_names."
        )


def _row_names(blocks: Sequence[Any], sketches: Sequence[_Sketch], crew: Crew) -> Iterator[str]:
    """Yield a name for each row that is kept: its own, or its number among all that were read."""
    before = 0
    for sketch, (names, kept) in zip(
        sketches, crew.gather([crew.submit(_names_of_rows, block) for block in blocks]), strict=True
    ):
        numbers = range(sketch.n_read) if kept is None else kept.tolist()
        yield from (str(before + i) for i in numbers) if names is None else (str(name) for name in names)
        before += sketch.n_read


# --- what workers call --------------------------------------------------------------------------------------------


def read_block(block: Any, number: int, reading: Reading) -> Block:
    """Read a file, compute a delayed block, and check the counts."""
    if isinstance(block, Path):
        return _read_file(block, reading)
    if _is_delayed(block):
        block = block.compute(scheduler="synchronous")
    name = f"block {number} of X"
    if reading.names is None or block.shape[0] == 0:
        return _checked(block, name, reading)
    aligned = _aligned(as_counts(block, name=name, empty_rows="allow").to_csr(), reading.names, reading.known, name)
    return _checked(aligned.X, name, reading, notes=tuple(f"{name}: {note}" for note in aligned.notes()))


def _read_file(path: Path, reading: Reading) -> Block:
    if not path.exists():
        raise InputFileError(
            f"{path}: there is no such file on {platform.node() or 'the worker'}. Check the path; all workers of a "
            "cluster need to see the files under the same one."
        )
    table = read_counts(path, **reading.options)
    notes, X, names = tuple(table.notes), table.X, table.feature_names
    if reading.known is not None and names is not None:
        aligned = _aligned(X, names, reading.known, str(path))
        notes, X, names = (*notes, *(f"{path.name}: {note}" for note in aligned.notes())), aligned.X, reading.known
    return _checked(X, str(path), reading, names, table.row_names, notes)


def _aligned(X: sparse.csr_array, names: Any, known: Any, name: str) -> Alignment:
    """Return counts in the order of the known features."""
    aligned = align_features(X, names, known)
    if aligned.n_missing == len(known):
        raise CountsError(f"{name}: none of the features has a name that the model knows. Is this the right input?")
    return aligned


def _checked(
    X: Any, name: str, reading: Reading, features: Any = None, row_names: Any = None, notes: tuple[str, ...] = ()
) -> Block:
    """Return the counts of a matrix with what else is known of it."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] == 0:
        return Block(no_rows(shape[1]), features, row_names, notes=notes)
    rows = as_counts(X, name=name, empty_rows="error" if reading.empty_rows == "error" else "allow")
    n_read, kept, filled, first_empty = rows.n_rows, None, np.flatnonzero(np.diff(rows.indptr)), None
    if reading.empty_rows == "drop" and len(filled) < n_read:
        first = int(np.diff(rows.indptr).argmin())
        first_empty = str(first if row_names is None else row_names[first])
        rows, kept = rows.take(filled), filled
        row_names = None if row_names is None else row_names[filled]
    if reading.stabilize == "sqrt":
        rows = square_root(rows)
    return Block(rows, features, row_names, kept, n_read, notes, first_empty)


def _sketch(block: Block) -> _Sketch:
    names = block.feature_names
    digest = None if names is None else hashlib.sha256("\n".join(map(repr, names)).encode()).hexdigest()
    return _Sketch(block.rows.n_rows, block.rows.n_features, block.n_read, digest, block.notes, block.first_empty)


def _feature_names(block: Block) -> Any:
    return block.feature_names


def _names_of_rows(block: Block) -> tuple[Any, Any]:
    return block.row_names, block.kept


def _counts(block: Block) -> Counts:
    return block.rows
