"""How probable the clusters of rows at hand are, some rows at a time: those of all clusters may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmpca.cli.quiet import without_name_warnings
from mmpca.model import MMPCA
from mmpca.model.prediction import BEST, ROWS_AT_ONCE, best_of, own_of

Array = NDArray[np.float64]


def own_probabilities(model: MMPCA, X: Any) -> Array:
    """Return the probability of the own cluster of each row that the model was fitted to, (N,)."""
    own = np.empty(X.shape[0])
    for piece, found in _in_pieces(model, X):
        own[piece] = own_of(found, model.labels_[piece])
    return own


def best_clusters(model: MMPCA, X: Any) -> NDArray[Any]:
    """Return the most probable cluster of each row and its probability, an array of `prediction.BEST`, (N,)."""
    best = np.empty(X.shape[0], dtype=BEST)
    for piece, found in _in_pieces(model, X):
        best[piece] = best_of(found)
    return best


def _in_pieces(model: MMPCA, X: Any) -> Iterator[tuple[slice, Array]]:
    """Yield the probabilities of some rows after the others, (rows, Q), with their places."""
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        piece = slice(first, first + ROWS_AT_ONCE)
        with without_name_warnings():
            found = model.predict_proba(X[piece])
        yield piece, found
