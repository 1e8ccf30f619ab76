r"""Overdispersion: the variance of counts within clusters, relative to the multinomial model.

Row i of cluster q has total L_i and expected counts :math:`\mu_{iv} = L_i p_{qv}`, where p_q is the cluster's mixture
of the topics. Under the model, :math:`E (x_{iv} - \mu_{iv})^2 = L_i p_{qv} (1 - p_{qv})`. The index

.. math:: \frac{1}{\nu} \sum_i \frac{\sum_v (x_{iv} - L_i p_{qv})^2 / L_i}{1 - \sum_v p_{qv}^2}

is then 1 on average. It is Pearson's statistic with numerator and denominator summed over the features before dividing:
in the classical sum of quotients, rare features with expected counts far below one would dominate. All rows have the
same weight, whatever their total. The rows were used to fit K topics or Q means, whichever are fewer, which leaves
:math:`\nu = N - \min(K, Q)` degrees of freedom, shared among the clusters by size.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.backend import LocalRows, RowBackend, Rows, Threads, map_rows
from mmpca.counts import Counts

Array = NDArray[np.float64]

# Texts have an index of 1.6 to 2.2, because words come in bursts, and gain nothing from square roots; abundance and
# sequencing counts have 4.7 to 140 and do gain (docs/overdispersion.md).
LARGE_INDEX = 3.0
MIN_VARIANCE = 1e-9  # of a single draw; a cluster with only one feature has no variance to compare


class Dispersion(NamedTuple):
    """Variance of the counts within clusters, as a multiple of the variance that the model expects.

    Attributes
    ----------
    overall : float
        NaN if there is nothing to compare: a single feature, or no degrees of freedom left.
    clusters : array of shape (Q,)
        The same for each cluster.
    """

    overall: float
    clusters: Array


def overdispersion(
    rows: Counts | RowBackend, labels: NDArray[np.int32], *, topics: Array, cluster_topics: Array
) -> Dispersion:
    """Compare the variance of rows within their clusters with the model's; the index is about 1 if the model holds.

    Parameters
    ----------
    rows : Counts of shape (N, V) or RowBackend
    labels : array of int, shape (N,)
        Cluster of each row.
    topics : array of shape (K, V)
    cluster_topics : array of shape (Q, K)

    Returns
    -------
    Dispersion

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> X = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], size=1000)
    >>> topics = X.sum(axis=0, keepdims=True) / X.sum()
    >>> fitted = {"topics": topics, "cluster_topics": np.ones((1, 1))}
    >>> round(overdispersion(as_counts(X), np.zeros(1000, dtype=int), **fitted).overall)
    1
    >>> round(overdispersion(as_counts(7 * X), np.zeros(1000, dtype=int), **fitted).overall)
    7
    """
    profiles = cluster_topics @ topics  # (Q, V)
    n_clusters, n_fitted = len(profiles), min(cluster_topics.shape)
    concentration = (profiles**2).sum(axis=1)  # (Q,)
    variance = 1.0 - concentration  # of one draw, summed over the features
    varies = variance > MIN_VARIANCE
    sizes = np.bincount(labels, minlength=n_clusters)
    freedom = np.where(varies, sizes * max(0.0, 1.0 - n_fitted / rows.n_rows), 0.0)
    backend = LocalRows(rows) if isinstance(rows, Counts) else rows
    every, labels = np.arange(rows.n_rows), np.asarray(labels, dtype=np.int32)
    by_row = map_rows(backend, row_deviations, every, labels, shared=(profiles, concentration))
    deviations = np.bincount(labels, by_row, n_clusters)
    ratios = np.divide(deviations, variance, out=np.zeros(n_clusters), where=varies)
    observed, expected = (np.append(by_cluster, by_cluster.sum()) for by_cluster in (ratios, freedom))  # all rows last
    index = np.divide(observed, expected, out=np.full(n_clusters + 1, np.nan), where=expected > 0)
    return Dispersion(float(index[-1]), index[:-1])


def advice(overall: float, *, stabilize: str | None) -> str | None:
    """Return the text of an OverdispersionWarning; None if the index is not large or square roots are already used."""
    if stabilize is not None or not overall > LARGE_INDEX:
        return None
    return (
        f"Within clusters, counts vary {overall:.3g} times as much as the model expects (overdispersion_), so clusters "
        'may reflect a few dominant features instead of whole profiles. Try stabilize="sqrt", or more clusters and '
        "topics."
    )


def plain_deviations(rows: Counts, labels: NDArray[np.int32], profiles: Array) -> Array:
    """Return sum_v (x_iv - L_i p_v)^2 / L_i of each row in plain NumPy; profiles: (Q, V) -> (N,)."""
    X = rows.to_csr().toarray().astype(np.float64)  # (N, V)
    totals = X.sum(axis=1, keepdims=True)
    deviations: Array = ((X - totals * profiles[labels]) ** 2 / totals).sum(axis=1)
    return deviations


def row_deviations(
    block: Counts, rows: Rows, labels: NDArray[np.int32], profiles: Array, concentration: Array, threads: Threads
) -> Array:
    """Return the same for some rows of a block, without dense counts or profiles of other clusters."""
    deviations = np.empty(len(rows))
    threads.for_rows(partial(kernels.row_deviations, block, profiles, concentration), rows, labels, deviations)
    return deviations
