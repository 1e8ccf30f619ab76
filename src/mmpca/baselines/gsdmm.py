"""Gibbs sampling for a mixture of multinomials whose profiles and weights are integrated out.

With the row removed, the probability that row `i` belongs to cluster `q` is proportional to

    (n_q + alpha)  prod_v (S_qv + beta) ... (S_qv + beta + x_iv - 1)  /  (T_q + V beta) ... (T_q + V beta + L_i - 1)

where n_q, S_q and T_q are the size, sum and total of the other rows of the cluster.
"""

from __future__ import annotations

import math
import os
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from mmpca.baselines.base import Array, Labels, MixtureClusterer, RandomState, child_seeds
from mmpca.baselines.integrated import log_beta
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.counts import Counts
from mmpca.parameters import integer, real

# Rising factorials of at most this many terms are multiplied out; longer ones take two logarithms of Gamma.
_FEW = 16


@numba.njit(nogil=True, error_model="numpy", cache=os.environ.get("MMPCA_CACHE", "1") != "0", fastmath=False)
def gibbs_pass(
    indptr: NDArray[np.int64],
    features: NDArray[np.int64],
    counts: NDArray[np.int32],
    row_totals: NDArray[np.int64],
    priors: tuple[float, float],
    uniforms: Array,
    labels: Labels,
    sums: Array,
    totals: Array,
    sizes: Array,
) -> None:
    """Draw the cluster of each row given those of all other rows, in place.

    Writes into `labels` (N,) and updates `sums` (V, Q), `totals` (Q,) and `sizes` (Q,); `priors` holds beta and alpha,
    and `uniforms` (N,) are random numbers from 0 to 1. Equals, row by row, a draw from the softmax of
    :func:`joint_log_density` given the other rows.
    """
    n_clusters = sizes.size
    beta, alpha = priors
    total_prior = sums.shape[0] * beta
    joint = np.empty(n_clusters)
    product, divisor = np.empty(n_clusters), np.empty(n_clusters)  # of a few terms: one logarithm for many of them
    for i in range(labels.size):
        q = labels[i]
        sizes[q] -= 1.0
        totals[q] -= row_totals[i]
        for j in range(indptr[i], indptr[i + 1]):
            sums[features[j], q] -= counts[j]

        for q in range(n_clusters):
            joint[q] = 0.0
            product[q] = sizes[q] + alpha
        n_terms = 0
        for j in range(indptr[i], indptr[i + 1]):
            v, x = features[j], counts[j]
            if x > _FEW:
                for q in range(n_clusters):
                    joint[q] += math.lgamma(sums[v, q] + beta + x) - math.lgamma(sums[v, q] + beta)
                continue
            if n_terms + x > _FEW:
                for q in range(n_clusters):
                    joint[q] += math.log(product[q])
                    product[q] = 1.0
                n_terms = 0
            n_terms += x
            for m in range(x):
                for q in range(n_clusters):
                    product[q] *= sums[v, q] + (beta + m)
        if row_totals[i] > _FEW:
            for q in range(n_clusters):
                joint[q] += math.lgamma(totals[q] + total_prior) - math.lgamma(totals[q] + total_prior + row_totals[i])
        else:
            for q in range(n_clusters):
                divisor[q] = 1.0
            for m in range(row_totals[i]):
                for q in range(n_clusters):
                    divisor[q] *= totals[q] + (total_prior + m)
            for q in range(n_clusters):
                product[q] /= divisor[q]
        for q in range(n_clusters):
            joint[q] += math.log(product[q])

        most = joint[0]
        for q in range(1, n_clusters):
            most = max(most, joint[q])
        mass = 0.0
        for q in range(n_clusters):
            mass += math.exp(joint[q] - most)
            product[q] = mass
        new = 0
        while new < n_clusters - 1 and product[new] <= uniforms[i] * mass:
            new += 1

        labels[i] = new
        sizes[new] += 1.0
        totals[new] += row_totals[i]
        for j in range(indptr[i], indptr[i + 1]):
            sums[features[j], new] += counts[j]


def joint_log_density(csr: sparse.csr_array, sums: Array, sizes: Array, priors: tuple[float, float]) -> Array:
    """Return the log of size plus prior times predictive density in each cluster, without multinomial coefficients.

    csr: (N, V), sums: (V, Q), sizes: (Q,) -> (N, Q); the rows are not among those summed.
    """
    beta, alpha = priors
    row_totals = csr.sum(axis=1)[:, None]  # (N, 1)
    totals = sums.sum(axis=0) + len(sums) * beta  # (Q,)
    joint: Array = np.log(sizes + alpha) + gammaln(totals) - gammaln(totals + row_totals)  # (N, Q)
    for q, column in enumerate(sums.T):
        raised = column[csr.indices] + beta
        terms = gammaln(raised + csr.data) - gammaln(raised)
        joint[:, q] += sparse.csr_array((terms, csr.indices, csr.indptr), shape=csr.shape).sum(axis=1)
    return joint


def log_joint(sums: Array, sizes: Array, priors: tuple[float, float]) -> float:
    """Return the log joint probability of counts and labels, without multinomial coefficients.

    sums: (V, Q), sizes: (Q,); empty clusters are part of the model.
    """
    beta, alpha = priors
    filled = sums[sums > 0]
    totals, n_prior = sums.sum(axis=0), len(sums) * beta
    of_counts = np.sum(gammaln(filled + beta)) - filled.size * gammaln(beta)
    of_totals = np.sum(gammaln(n_prior) - gammaln(totals + n_prior))
    return float(of_counts + of_totals + log_beta(sizes + alpha) - log_beta(np.full(sizes.size, alpha)))


class Chain(NamedTuple):
    """The end of a chain."""

    labels: Labels  # (N,)
    sums: Array  # of the rows of each cluster, (V, Q)
    sizes: Array  # (Q,)
    history: list[float]  # log joint probability after each pass


class GSDMM(MixtureClusterer):
    r"""Dirichlet-multinomial mixture of short texts, by collapsed Gibbs sampling (GSDMM, "movie group process").

    The model is the multinomial mixture with symmetric Dirichlet priors on profiles and weights. Both are integrated
    out, and each pass draws the cluster of every row given those of all other rows. The small prior on weights lets
    clusters run empty, so `n_clusters` is the most that it can find. It is made for rows of a few counts: the labels
    of long rows hardly change after the first passes.

    Parameters
    ----------
    n_clusters : int, default=8
        Maximum number of clusters.
    weight_prior : float, default=0.1
        Parameter of the prior on weights (alpha in the paper).
    profile_prior : float, default=0.1
        Parameter of the prior on profiles (beta in the paper).
    n_iter : int, default=30
        Number of passes over the rows.
    n_init : int, default=5
        Number of chains, each from random labels; the one that ends with the largest joint probability of counts and
        labels is kept. The paper runs a single chain.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row in the last pass; no cluster is empty.
    n_clusters_ : int
        Number of clusters that are not empty.
    weights_ : ndarray of shape (n_clusters_,)
        Posterior mean of the weights, among the clusters that are not empty.
    profiles_ : ndarray of shape (n_clusters_, n_features)
        Posterior mean of the profiles; zero for a feature that never occurs.
    history_ : ndarray of shape (n_iter,)
        Log joint probability of counts and labels after each pass, including multinomial coefficients. A sampler also
        visits less probable labels, so it can decrease.
    n_features_in_ : int
        Number of features.

    References
    ----------
    J. Yin and J. Wang, "A Dirichlet multinomial mixture model-based approach for short text clustering", Proceedings of
    the 20th ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2014.

    Examples
    --------
    >>> from mmpca.baselines import GSDMM
    >>> X = [[2, 1, 0, 0], [1, 2, 0, 0], [2, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]]
    >>> model = GSDMM(4, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> bool(model.predict([[1, 0, 0, 0]])[0] == model.labels_[0])
    True
    """

    weights_: Array
    profiles_: Array
    history_: Array

    _rules: ClassVar = {
        "n_clusters": integer(1),
        "weight_prior": real(1e-6),
        "profile_prior": real(1e-6),
        "n_iter": integer(1),
        "n_init": integer(1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weight_prior: float = 0.1,
        profile_prior: float = 0.1,
        n_iter: int = 30,
        n_init: int = 5,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight_prior = weight_prior
        self.profile_prior = profile_prior
        self.n_iter = n_iter
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        self._is_present = rows.column_totals() > 0
        self._priors = (float(self.profile_prior), float(self.weight_prior))
        chains = (self._chain(rows, seed) for seed in child_seeds(rng, self.n_init))
        best = max(chains, key=lambda chain: chain.history[-1])

        used, self.labels_ = np.unique(best.labels, return_inverse=True)
        self.n_clusters_ = used.size
        self._sums, self._sizes = best.sums[:, used], best.sizes[used]
        weights = self._sizes + self.weight_prior
        self.weights_ = weights / weights.sum()
        raised = self._sums.T + self.profile_prior  # (Q, V), of the features that occur
        self.profiles_ = np.zeros((self.n_clusters_, rows.n_features))
        self.profiles_[:, self._is_present] = raised / raised.sum(axis=1, keepdims=True)
        self.history_ = np.array(best.history) + float(log_multinomial_coefficients(rows).sum())

    def _chain(self, rows: Counts, seed: int) -> Chain:
        """Return the end of a chain that starts from random labels."""
        rng = np.random.RandomState(seed)
        labels = rng.randint(self.n_clusters, size=rows.n_rows).astype(np.int64)
        sums = np.ascontiguousarray(rows.group_sums(labels, self.n_clusters)[:, self._is_present].T)  # (V, Q)
        sizes = np.bincount(labels, minlength=self.n_clusters).astype(np.float64)
        totals = sums.sum(axis=0)
        features = (np.cumsum(self._is_present) - 1)[rows.indices]
        row_totals = rows.row_totals()
        history = []
        for _ in range(self.n_iter):
            uniforms = rng.uniform(size=rows.n_rows)
            gibbs_pass(
                rows.indptr, features, rows.data, row_totals, self._priors, uniforms, labels, sums, totals, sizes
            )
            history.append(log_joint(sums, sizes, self._priors))
        return Chain(labels, sums, sizes, history)

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        csr = self._counts(X, reset=False).to_csr()[:, self._is_present].astype(np.float64)
        return joint_log_density(csr, self._sums, self._sizes, self._priors)
