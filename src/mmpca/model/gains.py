r"""What the model's own bound says about the clusters for a row.

When a row x joins cluster q, everything maximised anew, the bound changes by

.. math:: \Delta_q = \max J(M_q + x) - \max J(M_q) + (n_q + 1) \log(n_q + 1) - n_q \log n_q - c,

c being the same for all q. A row that was fitted is taken out of its cluster first: there M_q and n_q are those without
it. The gain of another cluster r over cluster q is :math:`\Delta_r - \Delta_q`: for a fitted row, exactly by how much
the bound would rise if it moved. To first order in x, :math:`\max J` changes by :math:`\sum_v x_v C_{qv}` with
:math:`C_{qv} = \log \sum_k \beta_{kv} e^{\eta_{qk}}`, a term for each feature; what is left of the gain is the
clusters' giving way to the row. The topics are `components_`, held fixed, so that all this belongs to `refit_bound_`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.counts import Counts
from mmpca.topics import known_counts

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

OUTSIDE = -1  # the cluster of rows that were not fitted


class Partition(NamedTuple):
    """A fitted partition as far as gains need it: not its rows, but their sums."""

    counts: Array  # of each cluster, (Q, V)
    labels: Labels  # of the fitted rows, (N,)
    topics: Array  # (K, V)
    topic_prior: float

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows in each cluster, (Q,)."""
        return np.bincount(self.labels, minlength=len(self.counts))


class Joins(NamedTuple):
    """What joining each cluster changes, for some rows."""

    change: Array  # of the bound, Delta_q, (R, Q)
    from_sizes: Array  # the part of it that the sizes of the clusters make, (R, Q)
    slopes: Array  # C_qv, (V, Q); zero for features that no topic knows


def membership(counts: Counts, partition: Partition) -> Labels:
    """Return the cluster that each row has in the fit, (N,); `OUTSIDE` for all if these are not the fitted rows.

    They are taken for the fitted ones if there are as many with counts and the clusters have the same sums: then their
    own labels are true of them, whatever else they may be.
    """
    clusters = np.full(counts.n_rows, OUTSIDE, dtype=np.int32)
    filled = np.flatnonzero(np.diff(counts.indptr))  # fits are given no others
    if filled.size == partition.labels.size:
        rows = counts if filled.size == counts.n_rows else counts.take(filled)
        if np.array_equal(rows.group_sums(partition.labels, len(partition.counts)), partition.counts):
            clusters[filled] = partition.labels
    return clusters


def joins(rows: Counts, clusters: Labels, partition: Partition) -> Joins:
    """Return what joining each cluster changes, exactly, one maximisation for each row and cluster.

    Parameters
    ----------
    rows : Counts of shape (R, V)
    clusters : array of int, shape (R,)
        Cluster of each row in the fit, or `OUTSIDE`.
    partition : Partition
    """
    is_known = partition.topics.max(axis=0) > 0  # (V,)
    state = engine.of_sums(partition.counts, partition.sizes, beta=partition.topics, alpha=float(partition.topic_prior))
    state = state._replace(rows=known_counts(rows, partition.topics), labels=np.asarray(clusters, dtype=np.int32))
    slopes = np.where(is_known[:, None], state.tables[:, : state.n_clusters], 0.0)
    return Joins(*engine.joins(state), slopes)
