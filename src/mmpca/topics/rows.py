"""Rows in topic space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.places import Rows, in_threads, threads
from mmpca.stages import QUIET, Stages

Array = NDArray[np.float64]


def topic_shares(
    rows: Counts,
    beta: Array,
    *,
    prior: float,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_threads: int = 1,
    stages: Stages = QUIET,
) -> Array:
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
    n_threads : int
        The result does not depend on it.
    stages : Stages
        Told of each row as a step.

    Returns
    -------
    shares : array of shape (N, K)
        Rows sum to one; a row without counts has equal shares.
    """
    gamma = np.empty((rows.n_rows, len(beta)))
    beta_rows = np.ascontiguousarray(beta.T)

    def fold_in(some: Rows) -> None:
        kernels.fold_in(rows, some, beta_rows, float(prior), tol, max_iter, gamma)
        stages.step(len(some))

    with threads(n_threads) as pool:
        in_threads(pool)(fold_in, np.arange(rows.n_rows))
    shares: Array = gamma / gamma.sum(axis=1, keepdims=True)
    return shares
