"""The model and the data that a report is about, checked once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import as_counts
from mmpca.model import MMPCA


class Context(NamedTuple):
    """The model and the data that a report is about."""

    # Without its feature names, because a sparse X has none and scikit-learn would warn on every call. Silencing that
    # warning would change the warning filters of all threads of a server.
    model: MMPCA
    feature_names: Sequence[object] | NDArray[Any] | None
    X: sparse.csr_array | None  # rows to show, (N, V)
    clusters: NDArray[np.integer[Any]]  # (N,); `labels_` for the fitted rows, predicted for others
    is_fitted_data: bool  # whether the rows are those that the model was fitted to
    labels: list[str] | None  # known class of each row
    texts: Sequence[object] | None
    row_names: Sequence[object] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.clusters)

    def row_name(self, i: int) -> str:
        """Return the name of a row, or its index if it has none."""
        return f"row {i}" if self.row_names is None else str(self.row_names[i])

    def feature_name(self, v: int) -> str:
        """Return the name of a feature, or its index if it has none."""
        return f"feature {v}" if self.feature_names is None else str(self.feature_names[v])


def check_context(
    model: MMPCA,
    X: Any = None,
    *,
    labels: Sequence[object] | None = None,
    texts: Sequence[object] | None = None,
    row_names: Sequence[object] | None = None,
) -> Context:
    """Check the arguments of a report and return them as a context.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    ValueError
        X does not fit the model, or another argument does not have one entry for each row.
    """
    check_is_fitted(model)
    unnamed = copy.copy(model)
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None:
        del unnamed.feature_names_in_
    matrix, clusters, is_fitted_data = None, model.labels_, True
    if X is not None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            predicted = model.predict(X)  # also checks X, and the order of its columns if they are named
        matrix = as_counts(X, empty_rows="allow").to_csr()
        # Explaining one row compares all rows with those of the fit.
        is_fitted_data = len(predicted) == len(model.labels_) and (
            unnamed.explain(matrix, [0], n_features=0, gains=False)[0].is_fitted
        )
        clusters = model.labels_ if is_fitted_data else predicted
    for name, values in (("labels", labels), ("texts", texts), ("row_names", row_names)):
        if values is not None and len(values) != len(clusters):
            source = "the model was fitted to" if X is None else "X has"
            raise ValueError(
                f"{name} must have one entry for each row, but it has {len(values):,} entries and {source} "
                f"{len(clusters):,} rows. Pass the entries in the order of the rows, and X if the rows are new."
            )
    known = None if labels is None else [str(label) for label in labels]
    return Context(unnamed, feature_names, matrix, clusters, is_fitted_data, known, texts, row_names)
