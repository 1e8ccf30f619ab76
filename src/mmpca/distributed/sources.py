"""Data of many kinds as parts that a crew holds, checked where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmpca.counts import Counts, as_counts, no_rows, square_root
from mmpca.distributed.crews import Cluster, Crew
from mmpca.distributed.parts import Parts
from mmpca.errors import CountsError
from mmpca.io import read_counts

EXPECTED = "a dask array of row blocks, a list of blocks (matrices or delayed ones), or a list of files"


class Loaded(NamedTuple):
    """Parts, and what is known of their features."""

    parts: Parts
    feature_names: Any | None  # array of str, shape (V,)


class _Sketch(NamedTuple):
    """What has to be known of a part here."""

    n_rows: int
    n_features: int
    feature_names: Any | None


def load(X: Any, crew: Crew, *, stabilize: str | None, allow_empty_rows: bool = False) -> Loaded:
    """Return data as parts that the crew holds.

    Parameters
    ----------
    X : dask array, list of blocks, delayed blocks or paths
        Blocks of rows, all of the same features.
    crew : Crew
    stabilize : {None, "sqrt"}
    allow_empty_rows : bool
        For prediction.
    """
    blocks = _blocks(X)
    if isinstance(crew, Cluster):
        blocks = [crew.client.compute(block) if _is_delayed(block) else block for block in blocks]
    pairs = [crew.submit(_checked, block, number, stabilize, allow_empty_rows) for number, block in enumerate(blocks)]
    sketches = crew.gather([crew.submit(_sketch, pair) for pair in pairs])
    filled = [number for number, sketch in enumerate(sketches) if sketch.n_rows]
    if not filled:
        raise CountsError("X must have at least one row, but all of its blocks are empty.")
    first = sketches[filled[0]]
    for number in filled:
        _compare(first, sketches[number], filled[0], number)
    futures = [crew.submit(_counts, pairs[number]) for number in filled]
    sizes = [sketches[number].n_rows for number in filled]
    return Loaded(Parts(crew, futures, sizes, first.n_features), first.feature_names)


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
    if isinstance(X, Sequence) and X:
        return list(X)
    raise TypeError(f"X must be {EXPECTED}, but it is {type(X).__name__}.")


def _is_delayed(block: Any) -> bool:
    return hasattr(block, "__dask_graph__")


def _compare(first: _Sketch, other: _Sketch, number: int, other_number: int) -> None:
    """Raise CountsError unless two blocks have the same features."""
    if other.n_features != first.n_features:
        raise CountsError(
            f"All blocks must have the same features, but block {number} has {first.n_features} and block "
            f"{other_number} has {other.n_features}. Count all of them with one vocabulary."
        )
    if first.feature_names is not None and (
        other.feature_names is None or list(first.feature_names) != list(other.feature_names)
    ):
        raise CountsError(
            f"All blocks must have the same features in the same order, but the names in block {other_number} are not "
            f"those in block {number}. Count all of them with one vocabulary."
        )


# --- what workers call --------------------------------------------------------------------------------------------


def _checked(block: Any, number: int, stabilize: str | None, allow_empty_rows: bool) -> tuple[Counts, Any | None]:
    names = None
    if isinstance(block, str | os.PathLike):
        table = read_counts(Path(block))
        block, names = table.X, table.feature_names
    elif _is_delayed(block):
        block = block.compute(scheduler="synchronous")
    shape: tuple[int, ...] = getattr(block, "shape", ())
    if len(shape) == 2 and shape[0] == 0:
        return no_rows(shape[1]), names
    rows = as_counts(block, name=f"block {number} of X", empty_rows="allow" if allow_empty_rows else "error")
    return (square_root(rows) if stabilize == "sqrt" else rows), names


def _sketch(pair: tuple[Counts, Any | None]) -> _Sketch:
    return _Sketch(pair[0].n_rows, pair[0].n_features, pair[1])


def _counts(pair: tuple[Counts, Any | None]) -> Counts:
    return pair[0]
