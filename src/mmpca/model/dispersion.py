r"""How much more the rows of a cluster vary than its multinomial distribution allows.

Row i of cluster q has total L_i and expects :math:`\mu_{iv} = L_i p_{qv}`, p_q being the cluster's mixture of the
topics. Under the model :math:`E (x_{iv} - \mu_{iv})^2 = L_i p_{qv} (1 - p_{qv})`, so that

.. math:: \frac{1}{\nu} \sum_i \frac{\sum_v (x_{iv} - L_i p_{qv})^2 / L_i}{1 - \sum_v p_{qv}^2}

is 1 on average. It is Pearson's statistic with numerator and denominator summed over the features before they are
divided: rare features, whose expected counts are far below one, would rule the classical sum of quotients. Each row has
the same weight however long it is. The topics of K or the means of Q clusters, whichever are fewer, have been fitted to
the rows, so their degrees of freedom are :math:`\nu = N - \min(K, Q)` in place of N, shared out by cluster size.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.places import ForRows, Here, Place, Rows, joined

Array = NDArray[np.float64]

# Texts, whose words come in bursts, have 1.6 to 2.2 and gain nothing from square roots; abundance and sequencing counts
# were measured at 4.7 to 140 and gain (docs/overdispersion.md).
LARGE_INDEX = 3.0
LEAST_VARIANCE = 1e-9  # of a draw: a cluster with a single feature has none


class Dispersion(NamedTuple):
    """Variance of the counts as a multiple of what the model predicts."""

    overall: float  # NaN where there is nothing to compare: one feature, or no more rows than were fitted
    clusters: Array  # the same for each cluster, (Q,)


def overdispersion(
    rows: Counts | Place, labels: NDArray[np.int32], *, topics: Array, cluster_topics: Array
) -> Dispersion:
    """Return how much more the rows vary around their clusters than the model predicts: about 1 if it holds.

    Parameters
    ----------
    rows : Counts of shape (N, V), or the place where they are
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
    varies = variance > LEAST_VARIANCE
    sizes = np.bincount(labels, minlength=n_clusters)
    freedom = np.where(varies, sizes * max(0.0, 1.0 - n_fitted / rows.n_rows), 0.0)
    place = Here(rows) if isinstance(rows, Counts) else rows
    every, labels = np.arange(rows.n_rows), np.asarray(labels, dtype=np.int32)
    by_row = joined(place, row_deviations, every, labels, shared=(profiles, concentration))
    deviations = np.bincount(labels, by_row, n_clusters)
    ratios = np.divide(deviations, variance, out=np.zeros(n_clusters), where=varies)
    return Dispersion(float(_quotient(ratios.sum(), freedom.sum())), _quotient(ratios, freedom))


def advice(overall: float, *, stabilize: str | None) -> str | None:
    """Return what to tell the user about a large index; None if it is not large or the remedy is in use."""
    if stabilize is not None or not overall > LARGE_INDEX:
        return None
    return (
        f"The counts vary {overall:.3g} times as much within clusters as a multinomial distribution allows "
        "(overdispersion_): the model may follow a few dominant features and the depth of rows. "
        'Try stabilize="sqrt", or more clusters and topics if there are more than were asked for.'
    )


def plain_deviations(rows: Counts, labels: NDArray[np.int32], profiles: Array) -> Array:
    """Return sum_v (x_iv - L_i p_v)^2 / L_i of each row, p being the profile of its cluster (Q, V), in plain NumPy."""
    X = rows.to_csr().toarray().astype(np.float64)  # (N, V)
    totals = X.sum(axis=1, keepdims=True)
    deviations: Array = ((X - totals * profiles[labels]) ** 2 / totals).sum(axis=1)
    return deviations


def row_deviations(
    part: Counts, rows: Rows, labels: NDArray[np.int32], profiles: Array, concentration: Array, for_rows: ForRows
) -> Array:
    """Return the same of some rows of a part: neither are the counts copied, nor held for clusters not their own."""
    deviations = np.empty(len(rows))
    for_rows(partial(kernels.row_deviations, part, profiles, concentration), rows, labels, deviations)
    return deviations


def _quotient(found: ArrayLike, expected: ArrayLike) -> Array:
    """Return found / expected, NaN where nothing is expected."""
    return np.divide(found, expected, out=np.full(np.shape(found), np.nan), where=np.asarray(expected) > 0)
