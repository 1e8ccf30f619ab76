"""Gibbs sampling for a mixture of multinomials whose profiles and weights are integrated out.

With the row removed, the probability that row `i` belongs to cluster `q` is proportional to

    (n_q + alpha)  prod_v (S_qv + beta) ... (S_qv + beta + x_iv - 1)  /  (T_q + V beta) ... (T_q + V beta + L_i - 1)

where n_q, S_q and T_q are the size, sum and total of the other rows of the cluster. The sampler is also a baseline
(:class:`mmpca.baselines.GSDMM`), and its clusters are one of the sources of topics for the search.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from threading import Event
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from mmpca.counts import Counts

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

PRIORS = (0.1, 0.1)  # of Yin and Wang: beta of the profiles, alpha of the weights
N_PASSES = 30
# Rising factorials of at most this many terms are multiplied out; longer ones take two logarithms of Gamma.
_FEW = 16
ROWS_AT_ONCE = 1024  # between two chances to interrupt a pass


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
    """Draw the cluster of each of some rows given those of all other rows, in place.

    Writes into `labels` (n,) and updates `sums` (V, Q), `totals` (Q,) and `sizes` (Q,); `priors` holds beta and alpha,
    and `uniforms` (n,) are random numbers from 0 to 1. Equals, row by row, a draw from the softmax of
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
    of_sizes, of_prior = (  # logarithms of the multivariate Beta function
        float(gammaln(values).sum() - gammaln(values.sum())) for values in (sizes + alpha, np.full(sizes.size, alpha))
    )
    return float(of_counts + of_totals + (of_sizes - of_prior))


class Chain(NamedTuple):
    """The final state of a chain."""

    labels: Labels  # (N,)
    sums: Array  # of the rows of each cluster, for the features that occur, (V, Q)
    sizes: Array  # (Q,)
    history: list[float]  # log joint probability after each pass


def run_chain(
    rows: Counts,
    n_clusters: int,
    rng: np.random.RandomState,
    *,
    labels: NDArray[Any] | None = None,
    priors: tuple[float, float] = PRIORS,
    n_passes: int = N_PASSES,
    is_stopped: Callable[[], bool] | None = None,
) -> Chain:
    """Run a chain and return its final state.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_clusters : int
        Maximum number of clusters; some may end empty.
    rng : RandomState
    labels : array of int, shape (N,), optional
        Labels to start from; random ones by default.
    priors : tuple of float
        Of the profiles (beta) and of the weights (alpha).
    n_passes : int
        Passes over all rows.
    is_stopped : callable, optional
        Called after each pass; the chain ends if it returns True.

    Returns
    -------
    Chain

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.gibbs import run_chain
    >>> rows = as_counts([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]])
    >>> labels = run_chain(rows, 2, np.random.RandomState(0)).labels
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    options: dict[str, Any] = {"priors": priors, "n_passes": n_passes, "is_stopped": is_stopped}
    return run_chains(rows, n_clusters, [(rng, labels)], **options)[0]


def run_chains(
    rows: Counts,
    n_clusters: int,
    starts: Sequence[tuple[np.random.RandomState, NDArray[Any] | None]],
    *,
    priors: tuple[float, float] = PRIORS,
    n_passes: int = N_PASSES,
    is_stopped: Callable[[], bool] | None = None,
    map_chains: Callable[[Callable[[int], None], Sequence[int]], Iterable[None]] = map,
) -> list[Chain]:
    """Run chains side by side from generators and labels, as in `run_chain`, and return their final states.

    `map_chains` runs the passes, possibly in threads. Each pass is made by the chain that has waited longest, so three
    chains keep two threads busy. After a request to stop, every chain ends after the pass that it is in, but not before
    its first.
    """
    is_present = rows.column_totals() > 0
    features, row_totals = (np.cumsum(is_present) - 1)[rows.indices], rows.row_totals()
    chains = list[Chain]()
    for rng, first in starts:
        labels = np.array(rng.randint(n_clusters, size=rows.n_rows) if first is None else first, dtype=np.int64)
        sums = np.ascontiguousarray(rows.group_sums(labels, n_clusters)[:, is_present].T)  # (V, Q)
        chains.append(Chain(labels, sums, np.bincount(labels, minlength=n_clusters).astype(np.float64), []))
    totals = [chain.sums.sum(axis=0) for chain in chains]

    waiting, is_ending = SimpleQueue[int](), Event()
    for number in range(len(chains)):
        waiting.put(number)

    def make_pass(_: int) -> None:
        number = waiting.get()
        labels, sums, sizes, history = chains[number]
        try:
            if history and is_ending.is_set():
                return
            uniforms = starts[number][0].uniform(size=rows.n_rows)
            for first in range(0, rows.n_rows, ROWS_AT_ONCE):
                some = slice(first, first + ROWS_AT_ONCE)
                ends = rows.indptr[first : first + ROWS_AT_ONCE + 1]
                own = row_totals[some], priors, uniforms[some], labels[some]
                gibbs_pass(ends, features, rows.data, *own, sums, totals[number], sizes)
            history.append(log_joint(sums, sizes, priors))
            if is_stopped is not None and is_stopped():
                is_ending.set()
        finally:
            if len(history) < n_passes:
                waiting.put(number)

    list(map_chains(make_pass, range(n_passes * len(chains))))
    return chains
