"""Mixture of multinomials with all parameters integrated out.

With Dirichlet(a) priors on the profiles and a Dirichlet(alpha) prior on the weights, the exact ICL of a partition is

    sum_q f(S_q) + g(n),    f(S) = log B(a + S) - log B(a),    g(n) = log B(alpha + n) - log B(alpha)

where S_q sums the rows of cluster q, n holds the cluster sizes, and B is the multivariate Beta function.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from mmpca.baselines.base import (
    SEARCH_RULES,
    Array,
    CountClusterer,
    Labels,
    RandomState,
    child_seeds,
    kmeans_partitions,
)
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.counts import Counts
from mmpca.parameters import either, integer, one_of, real

# Gains below this fraction of the row's total are rounding errors.
_ROUNDING = 1e-12


def log_beta(values: Array) -> Array:
    """Return the logarithm of the multivariate Beta function along the last axis."""
    result: Array = gammaln(values).sum(axis=-1) - gammaln(values.sum(axis=-1))
    return result


class Partition:
    """A partition of the rows with the sums that its score needs; moves and merges change it in place.

    labels: (N,), from 0 without gaps; `profile_prior` and `weight_prior` are the parameters of the Dirichlet priors.
    """

    def __init__(self, rows: Counts, labels: Labels, profile_prior: float, weight_prior: float) -> None:
        # A feature that never occurs carries no information, but it would count in the priors.
        present = np.flatnonzero(rows.column_totals())
        csr = rows.to_csr()
        self.indptr, self.counts = csr.indptr, csr.data.astype(np.float64)
        self.features = np.searchsorted(present, csr.indices)
        self.row_totals = rows.row_totals().astype(np.float64)
        self.labels, self.profile_prior, self.weight_prior = labels.copy(), profile_prior, weight_prior
        n_clusters = int(labels.max()) + 1
        self.sums = np.ascontiguousarray(rows.group_sums(labels, n_clusters)[:, present].T)  # (n_present, Q)
        self.sizes = np.bincount(labels).astype(np.float64)  # (Q,)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.sizes.size

    def score(self) -> float:
        """Return the exact ICL without the rows' multinomial coefficients."""
        raised = self.sums.T + self.profile_prior  # (Q, V)
        prior = log_beta(np.full(len(self.sums), self.profile_prior))
        return float(np.sum(log_beta(raised) - prior) + self._size_score(self.sizes))

    def _size_score(self, sizes: Array) -> float:
        """Return g of the sizes, the log probability of the labels."""
        return float(log_beta(sizes + self.weight_prior) - log_beta(np.full(sizes.size, self.weight_prior)))

    def sweep(self, order: Labels) -> bool:
        """Move each row to the cluster with the largest gain, in the given order; return True if any row moved."""
        has_moved = False
        for i in order:
            old = int(self.labels[i])
            if self.sizes[old] == 1:  # emptying a cluster is a merge
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
        """Return the gain in score of moving row `i` to each cluster, shape (n_clusters,); zero for its own.

        With the row removed, the gain of adding it to a cluster is its predictive probability there.
        """
        old = self.labels[i]
        part = slice(self.indptr[i], self.indptr[i + 1])
        x = self.counts[part, None]  # (n, 1)
        raised = self.sums[self.features[part]] + self.profile_prior  # (n, Q)
        raised[:, old] -= x[:, 0]
        totals = self.sums.sum(axis=0) + len(self.sums) * self.profile_prior
        totals[old] -= self.row_totals[i]
        sizes = self.sizes + self.weight_prior
        sizes[old] -= 1
        added: Array = (gammaln(raised + x) - gammaln(raised)).sum(axis=0)
        added += gammaln(totals) - gammaln(totals + self.row_totals[i]) + np.log(sizes)
        return added - added[old]

    def _shift(self, i: int, q: int, sign: float) -> None:
        """Add row `i` to cluster `q`, or remove it, in place."""
        part = slice(self.indptr[i], self.indptr[i + 1])
        self.sums[self.features[part], q] += sign * self.counts[part]
        self.sizes[q] += sign

    def merge_gains(self) -> Array:
        """Return the gain in score of merging clusters q < r, shape (n_clusters, n_clusters); -inf elsewhere."""
        gains = np.full((self.n_clusters, self.n_clusters), -np.inf)
        prior = float(log_beta(np.full(len(self.sums), self.profile_prior)))
        single = log_beta(self.sums.T + self.profile_prior) - prior  # (Q,)
        before = self._size_score(self.sizes)
        for q in range(self.n_clusters - 1):
            joined = self.sums[:, q + 1 :].T + self.sums[:, q] + self.profile_prior  # (Q - q - 1, V)
            after = [self._size_score(self._merged_sizes(q, r)) for r in range(q + 1, self.n_clusters)]
            gains[q, q + 1 :] = log_beta(joined) - prior - single[q] - single[q + 1 :] + np.array(after) - before
        return gains

    def _merged_sizes(self, q: int, r: int) -> Array:
        """Return the sizes after merging cluster `r` into cluster `q`."""
        sizes = self.sizes.copy()
        sizes[q] += sizes[r]
        return np.delete(sizes, r)

    def merge(self, q: int, r: int) -> None:
        """Merge cluster `r` into cluster `q` and renumber, in place; q < r."""
        self.sizes = self._merged_sizes(q, r)
        self.sums[:, q] += self.sums[:, r]
        self.sums = np.ascontiguousarray(np.delete(self.sums, r, axis=1))
        self.labels[self.labels == r] = q
        self.labels[self.labels > r] -= 1


def run_greedy(partition: Partition, *, has_merges: bool, seed: int, max_iter: int) -> tuple[list[float], bool]:
    """Move rows until no move gains, in place; return the score after each sweep, and whether the search converged.

    With merges, merge clusters as long as that gains, then move rows again; the history is that of the last round.
    """
    rng = np.random.RandomState(seed)
    while True:
        history: list[float] = []
        has_moved = True
        while has_moved and len(history) < max_iter:
            has_moved = partition.sweep(rng.permutation(partition.labels.size))
            history.append(partition.score())
        if not (has_merges and _merge(partition)):
            return history, not has_moved


def _merge(partition: Partition) -> bool:
    """Merge the best pair of clusters as long as that gains, in place; return True if any were merged."""
    n_before = partition.n_clusters
    while partition.n_clusters > 1:
        gains = partition.merge_gains()
        q, r = divmod(int(gains.argmax()), partition.n_clusters)
        if gains[q, r] <= 0:
            break
        partition.merge(q, r)
    return partition.n_clusters < n_before


class IntegratedMultinomialMixture(CountClusterer):
    r"""Multinomial mixture with parameters integrated out: the partition with the largest exact ICL, found greedily.

    Profiles and weights have symmetric Dirichlet priors and are integrated out, so :math:`\log p(X, y)` is known
    exactly and only the labels remain to be searched. From each start, rows move to the cluster where they gain most
    until no move gains. If the number of clusters is "auto", the search starts with `max_clusters`, merges pairs as
    long as that gains, and moves rows again.

    All rows of a cluster share one profile, drawn once for the cluster. In :class:`~mmpca.baselines.PolyaMixture`, each
    row draws its own.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters; "auto" merges clusters as long as the ICL increases.
    max_clusters : int, default=20
        Number of clusters that "auto" starts with, and the most it can find.
    profile_prior : float, default=1.0
        Parameter of the prior on profiles.
    weight_prior : float, default=1.0
        Parameter of the prior on weights.
    n_init : int, default=5
        Number of starts, from k-means in the space of the leading singular vectors of tf-idf; the one with the largest
        ICL is kept.
    max_iter : int, default=100
        Maximum number of sweeps over the rows between merges.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the order of the rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; no cluster is empty.
    n_clusters_ : int
        Number of clusters.
    weights_ : ndarray of shape (n_clusters_,)
        Posterior mean of the weights.
    profiles_ : ndarray of shape (n_clusters_, n_features)
        Posterior mean of the profiles; zero for a feature that never occurs.
    icl_ : float
        Exact ICL, including multinomial coefficients; larger is better.
    history_ : ndarray of shape (n_iter_,)
        ICL after each sweep of the best start since its last merge, never decreasing.
    n_iter_ : int
        Number of sweeps since the last merge.
    converged_ : bool
        Whether the last sweep moved no row.
    n_features_in_ : int
        Number of features.

    References
    ----------
    E. Côme, N. Jouvin, P. Latouche and C. Bouveyron, "Hierarchical clustering with discrete latent variable models and
    the integrated classification likelihood", Advances in Data Analysis and Classification 15, 2021 (the R package
    greed); C. Biernacki, G. Celeux and G. Govaert, "Exact and Monte Carlo calculations of integrated likelihoods for
    the latent class model", Journal of Statistical Planning and Inference 140, 2010.

    Examples
    --------
    >>> from mmpca.baselines import IntegratedMultinomialMixture
    >>> X = [[9, 1, 0, 0], [80, 20, 0, 10], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> model = IntegratedMultinomialMixture(random_state=0).fit(X)
    >>> model.n_clusters_
    2
    """

    weights_: Array
    profiles_: Array
    history_: Array

    _rules: ClassVar = {
        **SEARCH_RULES,
        "n_clusters": either(one_of("auto"), integer(1)),
        "max_clusters": integer(1),
        "profile_prior": real(1e-6),
        "weight_prior": real(1e-6),
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 20,
        profile_prior: float = 1.0,
        weight_prior: float = 1.0,
        n_init: int = 5,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.profile_prior = profile_prior
        self.weight_prior = weight_prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        is_auto = isinstance(self.n_clusters, str)
        n_start = min(rows.n_rows, self.max_clusters) if is_auto else int(self.n_clusters)
        seeds = child_seeds(rng, self.n_init)
        best = -np.inf
        for labels, seed in zip(kmeans_partitions(rows, n_start, seeds), seeds, strict=True):
            partition = Partition(rows, labels, float(self.profile_prior), float(self.weight_prior))
            history, converged = run_greedy(partition, has_merges=is_auto, seed=seed, max_iter=self.max_iter)
            if history[-1] > best:
                best = history[-1]
                self._keep(partition, rows)
                self.history_ = np.array(history) + float(log_multinomial_coefficients(rows).sum())
                self.icl_, self.n_iter_, self.converged_ = float(self.history_[-1]), len(history), converged

    def _keep(self, partition: Partition, rows: Counts) -> None:
        """Set labels, weights and profiles to those of a partition."""
        self.labels_, self.n_clusters_ = partition.labels, partition.n_clusters
        weights = partition.sizes + self.weight_prior
        self.weights_ = weights / weights.sum()
        raised = partition.sums.T + self.profile_prior  # (Q, V), of the features that occur
        self.profiles_ = np.zeros((partition.n_clusters, rows.n_features))
        self.profiles_[:, rows.column_totals() > 0] = raised / raised.sum(axis=1, keepdims=True)
