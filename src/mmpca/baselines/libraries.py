"""Conditions and library sizes of columns: what a user may give, and the profiles that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.baselines.base import Array
from mmpca.counts import Counts


class ConditionProfiles:
    """Profiles in which columns of one condition differ by their library sizes only.

    Parameters
    ----------
    conditions : ndarray of int, shape (n_features,)
        Condition of each column, numbered from 0 without gaps.
    sizes : ndarray of shape (n_features,)
        Library sizes, sum one, positive for a column with counts.
    smoothing : float
        Pseudo-counts of a cluster for each column, shared out in proportion to the library sizes.
    """

    def __init__(self, conditions: NDArray[np.intp], sizes: Array, smoothing: float) -> None:
        shape = sizes.size, int(conditions.max()) + 1
        self.members = sparse.csr_array((np.ones(sizes.size), (np.arange(sizes.size), conditions)), shape=shape)
        self.conditions = conditions
        self.pseudo_counts = smoothing * sizes.size * sizes
        condition_sizes = np.bincount(conditions, weights=sizes)[conditions]  # (V,), of the column's condition
        # What a column takes of the counts of its condition.
        self.within = np.divide(sizes, condition_sizes, out=np.zeros_like(sizes), where=condition_sizes > 0)

    def estimate(self, sums: Array) -> Array:
        """Return `lambda[q, condition of v] * sizes[v]`, sums: (Q, V) -> (Q, V)."""
        overall = sums.sum(axis=0)
        raised = sums + self.pseudo_counts
        is_empty = raised.sum(axis=1) == 0
        raised[is_empty] = overall  # a cluster that lost all its rows has nothing else to estimate from
        of_conditions = np.asarray(self.members.T @ raised.T)  # (conditions, Q)
        by_condition = of_conditions[self.conditions].T  # (Q, V)
        return by_condition * self.within / raised.sum(axis=1, keepdims=True)

    def penalty(self, log_profiles: Array) -> float:
        """Return the log-prior of profiles, up to a constant; log_profiles: (Q, V)."""
        return float((log_profiles @ self.pseudo_counts).sum())


def check_conditions(conditions: Any, n_features: int) -> NDArray[np.intp]:
    """Return the condition of each column, numbered from 0; None means that each is its own."""
    if conditions is None:
        return np.arange(n_features)
    values = np.asarray(conditions)
    if values.shape != (n_features,):
        raise ValueError(
            f"conditions must name one condition for each of the {n_features} columns of X, but its shape is "
            f"{values.shape}. Give an array of shape ({n_features},), or None."
        )
    return np.unique(values, return_inverse=True)[1]


def check_library_sizes(sizes: Any, rows: Counts) -> Array:
    """Return the library sizes of the columns, sum one; "total" means the column totals."""
    totals = rows.column_totals().astype(np.float64)
    if isinstance(sizes, str) and sizes == "total":
        return totals / totals.sum()
    values = np.asarray(sizes)
    if values.dtype.kind not in "biuf" or values.shape != totals.shape:
        raise ValueError(
            f'library_sizes must be "total" or an array of {totals.size} numbers, one for each column of X, but it is '
            f"of type {values.dtype} and shape {values.shape}. Give an array of shape ({totals.size},)."
        )
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | ((values == 0) & (totals > 0)))
    if wrong.size:
        v = wrong[0]
        raise ValueError(
            f"library_sizes must be finite, not negative, and positive for a column with counts, but library_sizes[{v}]"
            f" = {values[v]} and column {v} has {totals[v]:.0f} counts. Correct it or drop the column."
        )
    return values / values.sum()
