"""What a report is about: a model, and whatever else its reader may be told, checked at the door."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts, as_counts, square_root
from mmpca.model import MMPCA

if TYPE_CHECKING:
    from collections.abc import Iterator


class Subject(NamedTuple):
    """What a report is about.

    Attributes
    ----------
    model : MMPCA
        A fitted model.
    X : csr_array of shape (N, V) or None
        Rows to tell about.
    clusters : ndarray of int, shape (N,)
        Their clusters: those of the fit, or predicted ones for other rows.
    is_fitted_data : bool
        Whether the rows are those that were fitted.
    labels : list of str or None
        A known class of each row.
    texts : sequence of str or None
    row_names : sequence of str or None
    """

    model: MMPCA
    X: sparse.csr_array | None
    clusters: NDArray[np.integer[Any]]
    is_fitted_data: bool
    labels: list[str] | None
    texts: Sequence[object] | None
    row_names: Sequence[object] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.clusters)

    def row_name(self, i: int) -> str:
        """Return the name of a row, or its number."""
        return f"row {i}" if self.row_names is None else str(self.row_names[i])

    def feature_name(self, v: int) -> str:
        """Return the name of a feature, or its number."""
        names = getattr(self.model, "feature_names_in_", None)
        return f"feature {v}" if names is None else str(names[v])


def check_subject(
    model: MMPCA,
    X: Any = None,
    *,
    labels: Sequence[object] | None = None,
    texts: Sequence[object] | None = None,
    row_names: Sequence[object] | None = None,
) -> Subject:
    """Return what a report is about, or say why there can be no report on it."""
    check_is_fitted(model)
    matrix, clusters, is_fitted_data = (None, model.labels_, True) if X is None else _rows(model, X)
    n_rows = len(clusters)
    for what, values in (("labels", labels), ("texts", texts), ("row_names", row_names)):
        if values is not None and len(values) != n_rows:
            whose = "the model was fitted to" if X is None else "X has"
            raise ValueError(
                f"{what} must have one entry for each row, but there are {len(values):,} of them, and {whose} "
                f"{n_rows:,} rows. Give them in the order of the rows, and X with rows that were not fitted."
            )
    known = None if labels is None else [str(label) for label in labels]
    return Subject(model, matrix, clusters, is_fitted_data, known, texts, row_names)


def counts_for(model: MMPCA, counts: Counts) -> Counts:
    """Return counts as the model sees them."""
    return square_root(counts) if model.stabilize == "sqrt" else counts


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Let a sparse matrix, which has no names, pass for columns in the order of the fit; not safe among threads."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def _rows(model: MMPCA, X: Any) -> tuple[sparse.csr_array, NDArray[np.integer[Any]], bool]:
    """Return the rows, their clusters, and whether they were fitted."""
    with without_name_warnings():
        predicted = model.predict(X)  # refuses what the model cannot take
    counts = as_counts(X, empty_rows="allow")
    is_fitted_data = _is_fitted(model, counts)
    return counts.to_csr(), model.labels_ if is_fitted_data else predicted, is_fitted_data


def _is_fitted(model: MMPCA, counts: Counts) -> bool:
    """Tell whether rows were fitted: clusters of other rows would not have the very same sums."""
    if counts.n_rows != len(model.labels_):
        return False
    seen = counts_for(model, counts)
    return bool(np.array_equal(seen.group_sums(model.labels_, model.n_clusters), model.cluster_counts_))
