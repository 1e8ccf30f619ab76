"""Partitions scored with all parameters integrated out, and the moves that raise the score.

With Dirichlet(a) priors on the profiles and Dirichlet(alpha) on the weights, the exact ICL of a partition is

    sum_q f(S_q) + g(n),    f(S) = log B(a + S) - log B(a),    g(n) = log B(alpha + n) - log B(alpha)

where S_q sums the rows of cluster q, n holds the sizes, and B is the multivariate Beta function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from mmpca.baselines.base import Array, Labels
from mmpca.counts import Counts

# Gains below this share of the score are rounding.
_ROUNDING = 1e-12


class Priors(NamedTuple):
    """Parameters of the symmetric Dirichlet priors: `profile` of the clusters' profiles, `weight` of the weights."""

    profile: float
    weight: float


def log_beta(values: Array) -> Array:
    """Return log B along the last axis, the logarithm of the multivariate Beta function."""
    result: Array = gammaln(values).sum(axis=-1) - gammaln(values.sum(axis=-1))
    return result


class Partition:
    """Rows in clusters, with what the score needs; moves change it in place.

    Parameters
    ----------
    rows : Counts
        The counts.
    labels : ndarray of shape (n_rows,)
        Cluster of each row, from 0 without gaps.
    priors : Priors
        The priors.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        Cluster of each row.
    sums : ndarray of shape (n_present, n_clusters)
        Sums of the rows of each cluster, for the features that occur.
    sizes : ndarray of shape (n_clusters,)
        Number of rows of each cluster.
    """

    def __init__(self, rows: Counts, labels: Labels, priors: Priors) -> None:
        # A feature that never occurs says nothing, but it would count in the priors.
        present = np.flatnonzero(rows.column_totals())
        csr = rows.to_csr()
        self.indptr, self.counts = csr.indptr, csr.data.astype(np.float64)
        self.features = np.searchsorted(present, csr.indices)
        self.row_totals = rows.row_totals().astype(np.float64)
        self.labels, self.priors = labels.copy(), priors
        n_clusters = int(labels.max()) + 1
        self.sums = np.ascontiguousarray(rows.group_sums(labels, n_clusters)[:, present].T)
        self.sizes = np.bincount(labels).astype(np.float64)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.sizes.size

    def score(self) -> float:
        """Return the exact ICL without the rows' multinomial coefficients."""
        raised = self.sums.T + self.priors.profile  # (Q, V)
        prior = log_beta(np.full(len(self.sums), self.priors.profile))
        return float(np.sum(log_beta(raised) - prior) + self._size_score(self.sizes))

    def _size_score(self, sizes: Array) -> float:
        """Return g of the sizes, the logarithm of the probability of the labels."""
        return float(log_beta(sizes + self.priors.weight) - log_beta(np.full(sizes.size, self.priors.weight)))

    def sweep(self, order: Labels) -> bool:
        """Move each row to the cluster with the largest gain, in the given order; return whether any moved."""
        has_moved = False
        for i in order:
            old = int(self.labels[i])
            if self.sizes[old] == 1:  # emptying a cluster is a merge, and those come apart
                continue
            gains = self.gains(i)
            new = int(gains.argmax())
            if gains[new] > _ROUNDING * self.row_totals[i]:
                self._shift(i, old, -1.0)
                self._shift(i, new, 1.0)
                self.labels[i] = new
                has_moved = True
        return has_moved

    def gains(self, i: int) -> Array:
        """Return what moving row `i` to each cluster adds to the score, shape (n_clusters,); zero for its own.

        Without the row, the gain of adding it is its predictive probability in each cluster.
        """
        old = self.labels[i]
        part = slice(self.indptr[i], self.indptr[i + 1])
        x = self.counts[part, None]  # (n, 1)
        raised = self.sums[self.features[part]] + self.priors.profile  # (n, Q)
        raised[:, old] -= x[:, 0]
        totals = self.sums.sum(axis=0) + len(self.sums) * self.priors.profile
        totals[old] -= self.row_totals[i]
        sizes = self.sizes + self.priors.weight
        sizes[old] -= 1
        added: Array = (gammaln(raised + x) - gammaln(raised)).sum(axis=0)
        added += gammaln(totals) - gammaln(totals + self.row_totals[i]) + np.log(sizes)
        return added - added[old]

    def _shift(self, i: int, q: int, sign: float) -> None:
        """Add row `i` to cluster `q`, or take it out, in place."""
        part = slice(self.indptr[i], self.indptr[i + 1])
        self.sums[self.features[part], q] += sign * self.counts[part]
        self.sizes[q] += sign

    def merge_gains(self) -> Array:
        """Return what merging clusters q < r adds to the score, shape (n_clusters, n_clusters); -inf elsewhere."""
        gains = np.full((self.n_clusters, self.n_clusters), -np.inf)
        prior = float(log_beta(np.full(len(self.sums), self.priors.profile)))
        single = log_beta(self.sums.T + self.priors.profile) - prior  # (Q,)
        before = self._size_score(self.sizes)
        for q in range(self.n_clusters - 1):
            joined = self.sums[:, q + 1 :].T + self.sums[:, q] + self.priors.profile  # (Q - q - 1, V)
            after = [self._size_score(self._merged_sizes(q, r)) for r in range(q + 1, self.n_clusters)]
            gains[q, q + 1 :] = log_beta(joined) - prior - single[q] - single[q + 1 :] + np.array(after) - before
        return gains

    def _merged_sizes(self, q: int, r: int) -> Array:
        """Return the sizes after cluster `r` has gone into cluster `q`."""
        sizes = self.sizes.copy()
        sizes[q] += sizes[r]
        return np.delete(sizes, r)

    def merge(self, q: int, r: int) -> None:
        """Put the rows of cluster `r` into cluster `q` and renumber, in place; q < r."""
        self.sizes = self._merged_sizes(q, r)
        self.sums[:, q] += self.sums[:, r]
        self.sums = np.ascontiguousarray(np.delete(self.sums, r, axis=1))
        self.labels[self.labels == r] = q
        self.labels[self.labels > r] -= 1


class GreedyRun(NamedTuple):
    """What a greedy search ends with: the partition, its score after each of the last sweeps, whether it settled."""

    partition: Partition
    history: list[float]
    converged: bool


def run_greedy(partition: Partition, *, has_merges: bool, seed: int, max_iter: int) -> GreedyRun:
    """Move rows until nothing gains; with merges, join clusters as long as that gains, and move rows again; in place.

    Without merges the number of clusters stays what it is.
    """
    rng = np.random.RandomState(seed)
    while True:
        history, converged = _settle(partition, rng, max_iter)
        if not (has_merges and _merge(partition)):
            return GreedyRun(partition, history, converged)


def _settle(partition: Partition, rng: np.random.RandomState, max_iter: int) -> tuple[list[float], bool]:
    """Sweep until no row moves, in place; return the score after each sweep and whether the last moved nothing."""
    history: list[float] = []
    for _ in range(max_iter):
        has_moved = partition.sweep(rng.permutation(partition.labels.size))
        history.append(partition.score())
        if not has_moved:
            return history, True
    return history, False


def _merge(partition: Partition) -> bool:
    """Merge the best pairs while that gains, in place; return whether there were any."""
    n_before = partition.n_clusters
    while partition.n_clusters > 1:
        gains = partition.merge_gains()
        q, r = divmod(int(gains.argmax()), partition.n_clusters)
        if gains[q, r] <= 0:
            break
        partition.merge(q, r)
    return partition.n_clusters < n_before
