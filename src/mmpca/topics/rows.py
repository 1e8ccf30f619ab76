"""Rows in topic space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts

Array = NDArray[np.float64]


def topic_shares(rows: Counts, beta: Array, *, prior: float, tol: float = 1e-6, max_iter: int = 200) -> Array:
    """Return the expected topic shares of each row, the topics held fixed.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    beta : array of shape (K, V)
        Topics, rows sum to one. Features that no topic knows are passed over.
    prior : float
        Symmetric Dirichlet prior of a row's shares.
    tol, max_iter : float, int
        The fixed point of a row stops when no parameter changes by more than `tol` of the row's total.

    Returns
    -------
    shares : array of shape (N, K)
        Rows sum to one; a row without counts has equal shares.
    """
    gamma = np.empty((rows.n_rows, len(beta)))
    beta_rows = np.ascontiguousarray(beta.T)
    kernels.fold_in(rows, np.arange(rows.n_rows), beta_rows, float(prior), tol, max_iter, gamma)
    shares: Array = gamma / gamma.sum(axis=1, keepdims=True)
    return shares
