r"""Soft assignments: the model in which a row belongs to every cluster with a probability.

With responsibilities :math:`r_{iq}`, :math:`M_q = \sum_i r_{iq} x_i` and :math:`n_q = \sum_i r_{iq}` the bound is

.. math:: L(r) = \sum_q J(M_q, \gamma_q) + \sum_q n_q \log(n_q / N) - T \sum_{iq} r_{iq} \log r_{iq}

at temperature T = 1. Hard responsibilities have no entropy, and the bound of their partition. `vbem` climbs this bound
and updates the topics as well (the probabilistic clustering-projection model of Yu et al., 2005); `anneal` lowers the
temperature with the topics held fixed, and returns labels to start a search from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax, xlogy

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.engine.bound import Array, Prior, cluster_bound
from mmpca.engine.bound import responsibilities as phi_of_features
from mmpca.engine.refit import em_step, feature_slices
from mmpca.engine.search import ROUNDING, SearchOptions
from mmpca.engine.state import FixedTopics, State, build
from mmpca.monitor import History

Labels = NDArray[np.int32]

# Measured to be best: ratio of temperatures, their number, epochs at each, and noise relative to the temperature.
COOLING, MAX_TEMPERATURES = 0.7, 30
EPOCHS_PER_TEMPERATURE = 5
PERTURBATION = 1.0
LEAST_SHARE = 1e-300  # of the rows in a cluster: its logarithm must stay finite
# Soft assignments converge linearly: smaller relative differences of bounds are not worth the epochs.
MIN_TOL = 1e-7


class SoftFit(NamedTuple):
    """Responsibilities, and the parameters that maximize the bound given them."""

    responsibilities: Array  # r_iq, rows sum to one, (N, Q)
    sizes: Array  # n_q, (Q,)
    state: State  # its clusters are those of the soft meta-observations, without tables
    bound: float

    @property
    def labels(self) -> Labels:
        """The most probable cluster of each row, (N,); every cluster has a row."""
        return harden(self.responsibilities)

    @property
    def weights(self) -> Array:
        """Shares of the clusters pi, (Q,)."""
        return np.maximum(self.sizes / self.sizes.sum(), LEAST_SHARE)


# --- one epoch --------------------------------------------------------------------------------------------------


def joint_scores(X: sparse.csr_array, fit: SoftFit) -> Array:
    """Return log pi_q + sum_v x_iv C_qv, shape (N, Q), C_qv = log sum_k beta_kv exp(eta_qk)."""
    mixture = fit.state.clusters.weight @ fit.state.topics.beta  # (Q, V)
    # A feature without probability is absent from the data: any finite number will do.
    table = np.log(np.maximum(mixture, np.finfo(np.float64).tiny))
    with np.errstate(divide="ignore"):  # an empty cluster stays empty
        log_weights = np.log(fit.sizes / fit.sizes.sum())
    scores: Array = X @ np.ascontiguousarray(table.T) + log_weights
    return scores


def temper(scores: Array, temperature: float) -> Array:
    """Return the responsibilities that maximize sum r scores + T entropy(r); (N, Q), rows sum to one."""
    # Differences come first: they can be divided by a small temperature, and minus infinity stays minus infinity.
    shares: Array = softmax((scores - scores.max(axis=1, keepdims=True)) / temperature, axis=1)
    return shares


def gather(X: sparse.csr_array, shares: Array, state: State, *, temperature: float, with_topics: bool) -> SoftFit:
    """Return the fit of given responsibilities: soft meta-observations, topics if wanted, and the VE-steps.

    Topics are updated first, from the responsibilities of topics for features in the given state.
    """
    counts = np.ascontiguousarray((X.T @ shares).T)
    changed = {name: getattr(state.clusters, name).copy() for name in ("gamma", "weight", "value", "curvature", "aged")}
    clusters = state.clusters._replace(counts=counts, totals=counts.sum(axis=1), **changed)
    state = state._replace(clusters=clusters)
    if with_topics:
        beta, *_ = em_step(state, feature_slices(state))
        state = state._replace(topics=FixedTopics.of(state.topics.alpha, beta))
        clusters.curvature[:] = np.nan
    _ve_steps(state)
    sizes = shares.sum(axis=0)
    entropy = -float(xlogy(shares, shares).sum())
    bound = float(clusters.value.sum() + xlogy(sizes, sizes / sizes.sum()).sum()) + temperature * entropy
    return SoftFit(shares, sizes, state, bound)


def _ve_steps(state: State) -> None:
    """Maximize J of every cluster, in place; a step that ends in a lower maximum, under a small prior, is undone."""
    topics, clusters = state.topics, state.clusters
    for q in range(state.n_clusters):
        gamma, weight = clusters.gamma[q].copy(), clusters.weight[q].copy()
        floor = cluster_bound(clusters.counts[q], gamma, beta=topics.beta, alpha=topics.alpha)
        kernels.refresh_cluster(state, q, False)
        if clusters.value[q] < floor - ROUNDING * abs(floor):
            clusters.gamma[q], clusters.weight[q], clusters.value[q], clusters.curvature[q] = (
                gamma,
                weight,
                floor,
                np.nan,
            )


def epoch(X: sparse.csr_array, fit: SoftFit, *, temperature: float = 1.0, with_topics: bool = False) -> SoftFit:
    """Return the fit after one E-step and one M-step; the bound at this temperature never falls."""
    shares = temper(joint_scores(X, fit), temperature)
    return gather(X, shares, fit.state, temperature=temperature, with_topics=with_topics)


def one_hot(labels: Labels, n_clusters: int) -> Array:
    """Return the responsibilities of a partition, (N, Q)."""
    shares = np.zeros((len(labels), n_clusters))
    shares[np.arange(len(labels)), labels] = 1.0
    return shares


def harden(shares: Array) -> Labels:
    """Return the most probable cluster of each row, (N,).

    A cluster that is the most probable one of no row takes the row nearest to it, from a cluster with other rows.
    """
    labels: Labels = shares.argmax(axis=1).astype(np.int32)
    sizes = np.bincount(labels, minlength=shares.shape[1])
    for q in np.flatnonzero(sizes == 0):
        i = int(np.where(sizes[labels] > 1, shares[:, q], -1.0).argmax())
        sizes[labels[i]] -= 1
        labels[i], sizes[q] = q, 1
    return labels


# --- variational EM ---------------------------------------------------------------------------------------------


def vbem(state: State, options: SearchOptions, *, history: History | None = None) -> SoftFit:
    """Climb the soft bound from the partition of a state, updating the topics in every epoch.

    Parameters
    ----------
    state : State
        Where to start; it does not change.
    options : SearchOptions
        The search stops after `max_epochs`, or when an epoch raises the bound by less than `tol` (at least `MIN_TOL`)
        of its magnitude.
    history : History, optional
        Bounds are added to it: soft ones, of the data instead of data and labels, which are not comparable with those
        of a search. A move is a row whose most probable cluster changes. Ctrl-C keeps the last finished epoch.

    Returns
    -------
    SoftFit
    """
    history = History() if history is None else history
    X, tol = state.rows.to_csr().astype(np.float64), max(options.tol, MIN_TOL)
    fit = gather(X, one_hot(state.labels, state.n_clusters), state, temperature=1.0, with_topics=False)
    history.bounds.append(fit.bound)
    is_converged = False
    try:
        while not (is_converged or history.interrupted) and history.n_epochs < options.max_epochs:
            new = epoch(X, fit, with_topics=True)
            is_converged = new.bound - fit.bound <= tol * abs(new.bound)
            n_moves = int((fit.responsibilities.argmax(axis=1) != new.responsibilities.argmax(axis=1)).sum())
            fit = new if new.bound >= fit.bound else fit  # rounding
            history.block_done(state.rows.n_rows, n_moves)
            history.end_epoch(fit.bound, state.labels)
    except KeyboardInterrupt:
        history.interrupted = True
    history.converged = is_converged and not history.interrupted
    return fit


# --- annealing --------------------------------------------------------------------------------------------------


def anneal(rows: Counts, *, n_clusters: int, beta: Array, alpha: Prior, rng: np.random.Generator) -> Labels:
    """Return labels to start a search from: soft assignments, cooled to temperature 1 and hardened.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_clusters : int
        At most the number of rows.
    beta : array of shape (K, V)
        Topics, held fixed.
    alpha : float or array of shape (K,)
        Prior of the clusters' topic shares.
    rng : Generator
        Draws the first partition, and noise that keeps the clusters apart.

    Returns
    -------
    labels : ndarray of int32, shape (N,)
        Every cluster has a row.
    """
    labels = rng.permutation(np.arange(rows.n_rows) % n_clusters)
    state = build(rows, labels, n_clusters=n_clusters, beta=beta, alpha=alpha)
    X = rows.to_csr().astype(np.float64)
    fit = gather(X, one_hot(state.labels, n_clusters), state, temperature=1.0, with_topics=False)
    for temperature in cooling(critical_temperature(X, state)):
        for step in range(EPOCHS_PER_TEMPERATURE):
            # Equal weights: a cluster could not regain what it lost while all clusters were alike.
            scores = joint_scores(X, fit._replace(sizes=np.ones(n_clusters)))
            if step == 0:  # clusters that coincide would coincide forever
                scores += PERTURBATION * temperature * rng.standard_normal(scores.shape)
            fit = gather(X, temper(scores, temperature), fit.state, temperature=temperature, with_topics=False)
    return harden(fit.responsibilities)


def critical_temperature(X: sparse.csr_array, state: State) -> float:
    r"""Return the temperature above which all clusters become equal, given the state of clusters drawn at random.

    With :math:`s_i` the topic counts of a row, a small change :math:`u = \sum_i dr_{iq} s_i` of a cluster changes its
    eta by A u and its scores by :math:`s_i' A u`, so that an epoch at temperature T makes it
    :math:`\sum_i s_i s_i' A u / (Q T)`: it grows while T is below the largest eigenvalue of
    :math:`\sum_i s_i s_i' A / Q`. At least 1; where the curvature does not exist, under a small prior, 1.
    """
    topic_counts = X @ phi_of_features(state.topics.beta, state.clusters.gamma.mean(axis=0))  # (N, K)
    growth = topic_counts.T @ topic_counts @ state.clusters.curvature.mean(axis=0) / state.n_clusters  # (K, K)
    return max(1.0, float(np.linalg.eigvals(growth).real.max())) if np.isfinite(growth).all() else 1.0


def cooling(first: float) -> Array:
    """Return temperatures that fall in equal ratios from the first to 1."""
    n_steps = min(int(np.ceil(np.log(first) / -np.log(COOLING))), MAX_TEMPERATURES - 1)
    return np.geomspace(first, 1.0, n_steps + 1) if n_steps else np.ones(1)
