"""New rows brought into the order of the features that a model knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.errors import CountsError

Names = Sequence[str] | NDArray[Any]


class Alignment(NamedTuple):
    """Counts in the order of known features, and what did not fit."""

    X: sparse.csr_array  # (N, number of known features)
    n_unseen: int  # features that are not known
    unseen_total: int  # their counts, which are dropped
    n_missing: int  # known features that the counts do not have: zero

    def notes(self) -> list[str]:
        """Return what was done, a sentence for each part."""
        said = []
        if self.n_unseen:
            said.append(
                f"{self.n_unseen:,} features that the model does not know were left out, and {self.unseen_total:,} "
                f"of {self.unseen_total + int(self.X.sum()):,} counts with them."
            )
        if self.n_missing:
            said.append(f"{self.n_missing:,} of the model's {self.X.shape[1]:,} features do not occur: taken as zero.")
        return said


def align_features(X: sparse.csr_array, names: Names, known: Names) -> Alignment:
    """Return counts with the known features as columns, matched by name; columns of the same name are summed.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_columns)
    names : sequence of str, shape (n_columns,)
    known : sequence of str, shape (n_features,)

    Returns
    -------
    Alignment

    Examples
    --------
    >>> from scipy import sparse
    >>> from mmpca.model.alignment import align_features
    >>> aligned = align_features(sparse.csr_array([[1, 2, 3]]), ["pear", "fig", "apple"], ["apple", "kiwi", "pear"])
    >>> aligned.X.toarray()
    array([[3, 0, 1]])
    >>> aligned.n_unseen, aligned.unseen_total, aligned.n_missing
    (1, 2, 1)
    """
    columns = {str(name): v for v, name in enumerate(known)}
    if len(columns) < len(known):
        raise CountsError("The model has two features of the same name, so that names cannot tell them apart.")
    target = np.array([columns.get(str(name), -1) for name in names], dtype=np.intp)
    found = np.flatnonzero(target >= 0)
    # A matrix with a single one in each row of a column that is known: products of counts stay whole numbers.
    ones = np.ones(found.size, dtype=X.dtype)
    places = sparse.csr_array((ones, (found, target[found])), shape=(len(target), len(known)))
    unseen = np.asarray(X.sum(axis=0), dtype=np.int64)[target < 0]
    return Alignment(
        sparse.csr_array(X @ places),
        int((target < 0).sum()),
        int(unseen.sum()),
        len(known) - len(np.unique(target[found])),
    )
