r"""Soft assignments: the model in which a row belongs to every cluster with a probability.

With responsibilities :math:`r_{iq}`, :math:`M_q = \sum_i r_{iq} x_i` and :math:`n_q = \sum_i r_{iq}` the bound is

.. math:: L(r) = \sum_q J(M_q, \gamma_q) + \sum_q n_q \log(n_q / N) - T \sum_{iq} r_{iq} \log r_{iq}

at temperature T = 1: hard responsibilities have no entropy, and the bound of their partition. `vbem` climbs it with
the topics updated as well (the probabilistic clustering-projection model of Yu et al., 2005); `anneal` lowers the
temperature with the topics held fixed, and gives labels to start a search from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax, xlogy

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.engine.bound import Array, cluster_bound
from mmpca.engine.bound import responsibilities as phi_of_features
from mmpca.engine.loop import ROUNDING, Callback, Progress, Run
from mmpca.engine.refit import update_topics
from mmpca.engine.state import State, build

Labels = NDArray[np.int32]

# Annealing, as measured best: between temperatures, at each of them, and its noise as a share of the temperature.
COOLING, MAX_TEMPERATURES = 0.7, 30
EPOCHS_PER_TEMPERATURE = 5
PERTURBATION = 1.0
LEAST_SHARE = 1e-300  # of a cluster in the rows


class Soft(NamedTuple):
    """Where variational EM with soft assignments ended."""

    labels: Labels  # the most probable cluster of each row, (N,); every cluster has one
    responsibilities: Array  # r_iq, rows sum to one, (N, Q)
    weights: Array  # pi, (Q,)
    gamma: Array  # (Q, K)
    beta: Array  # (K, V)
    run: Run  # the history of the soft bound; a move is a row whose most probable cluster changes


class Fit(NamedTuple):
    """Responsibilities and what is maximal given them; an epoch makes a new one."""

    responsibilities: Array  # (N, Q)
    sizes: Array  # n_q, (Q,)
    state: State  # counts, gamma, weight and value are those of the soft meta-observations; no tables
    bound: float


# --- one epoch --------------------------------------------------------------------------------------------------


def joint_scores(X: sparse.csr_array, fit: Fit) -> Array:
    """Return log pi_q + sum_v x_iv C_qv, shape (N, Q), C_qv = log sum_k beta_kv exp(eta_qk)."""
    mixture = fit.state.weight @ fit.state.beta  # (Q, V)
    # A feature without probability is absent from the data: any finite number will do.
    table = np.log(np.maximum(mixture, np.finfo(np.float64).tiny))
    with np.errstate(divide="ignore"):  # a cluster that no row belongs to stays so
        log_weights = np.log(fit.sizes / fit.sizes.sum())
    scores: Array = X @ np.ascontiguousarray(table.T) + log_weights
    return scores


def temper(scores: Array, temperature: float) -> Array:
    """Return the responsibilities that maximise sum r scores + T entropy(r); (N, Q), rows sum to one."""
    # Differences first: they may be divided by a small temperature, and minus infinity stays what it is.
    shares: Array = softmax((scores - scores.max(axis=1, keepdims=True)) / temperature, axis=1)
    return shares


def gather(X: sparse.csr_array, shares: Array, state: State, *, temperature: float, with_topics: bool) -> Fit:
    """Return the fit of given responsibilities: soft meta-observations, topics if asked for, and the VE-steps.

    The topics are updated first, under the shares of topics in features that the state has.
    """
    state = state._replace(
        counts=np.ascontiguousarray((X.T @ shares).T),
        **{name: getattr(state, name).copy() for name in ("gamma", "weight", "value", "curvature", "totals", "aged")},
    )
    state.totals[:] = state.counts.sum(axis=1)
    if with_topics:
        state = state._replace(beta=update_topics(state))
        state.curvature[:] = np.nan
    _ve_steps(state)
    sizes = shares.sum(axis=0)
    entropy = -float(xlogy(shares, shares).sum())
    bound = float(state.value.sum() + xlogy(sizes, sizes / sizes.sum()).sum()) + temperature * entropy
    return Fit(shares, sizes, state, bound)


def _ve_steps(state: State) -> None:
    """Maximise J of every cluster, in place; a step that ends in a lower maximum, under a small prior, is undone."""
    for q in range(state.n_clusters):
        gamma, weight = state.gamma[q].copy(), state.weight[q].copy()
        floor = cluster_bound(state.counts[q], gamma, beta=state.beta, alpha=state.alpha)
        kernels.refresh_cluster(state, q, False)
        if state.value[q] < floor - ROUNDING * abs(floor):
            state.gamma[q], state.weight[q], state.value[q], state.curvature[q] = gamma, weight, floor, np.nan


def epoch(X: sparse.csr_array, fit: Fit, *, temperature: float = 1.0, with_topics: bool = False) -> Fit:
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

    A cluster that is nowhere the most probable takes the row that is nearest to it, from one with other rows.
    """
    labels: Labels = shares.argmax(axis=1).astype(np.int32)
    sizes = np.bincount(labels, minlength=shares.shape[1])
    for q in np.flatnonzero(sizes == 0):
        i = int(np.where(sizes[labels] > 1, shares[:, q], -1.0).argmax())
        sizes[labels[i]] -= 1
        labels[i], sizes[q] = q, 1
    return labels


# --- variational EM ---------------------------------------------------------------------------------------------


def vbem(state: State, *, max_epochs: int = 500, tol: float = 1e-7, callback: Callback | None = None) -> Soft:
    """Climb the soft bound from the state's partition, topics updated in every epoch.

    Parameters
    ----------
    state : State
        Where to start; it is not changed.
    max_epochs : int
    tol : float
        Stop when an epoch raises the bound by less than this share of its magnitude.
    callback : callable, optional
        Called with a `Progress` after each epoch; a true answer stops there, and so does Ctrl-C, which leaves the last
        finished epoch.

    Returns
    -------
    Soft
        The bounds are soft ones, of the data instead of data and labels: they do not compare with those of a search.
    """
    X = state.rows.to_csr().astype(np.float64)
    fit = gather(X, one_hot(state.labels, state.n_clusters), state, temperature=1.0, with_topics=False)
    bounds, n_moves = [fit.bound], list[int]()
    is_converged, is_stopped = False, False
    try:
        while not (is_converged or is_stopped) and len(n_moves) < max_epochs:
            new = epoch(X, fit, with_topics=True)
            is_converged = new.bound - fit.bound <= tol * abs(new.bound)
            n_moves.append(_n_moves(fit, new))
            fit = new if new.bound >= fit.bound else fit  # rounding
            bounds.append(fit.bound)
            if callback is not None:
                n_rows = state.rows.n_rows
                is_stopped = bool(callback(Progress(len(n_moves), n_rows, n_rows, n_moves[-1], fit.bound)))
    except KeyboardInterrupt:
        is_stopped = True
    run = Run(bounds, n_moves, is_converged and not is_stopped, is_stopped)
    # A cluster that no row belongs to any more keeps a logarithm.
    weights = np.maximum(fit.sizes / fit.sizes.sum(), LEAST_SHARE)
    return Soft(harden(fit.responsibilities), fit.responsibilities, weights, fit.state.gamma, fit.state.beta, run)


def _n_moves(old: Fit, new: Fit) -> int:
    """Return in how many rows the most probable cluster differs."""
    return int((old.responsibilities.argmax(axis=1) != new.responsibilities.argmax(axis=1)).sum())


# --- annealing --------------------------------------------------------------------------------------------------


def anneal(rows: Counts, *, n_clusters: int, beta: Array, alpha: float, rng: np.random.Generator) -> Labels:
    """Return labels to start a search from: soft assignments cooled down to temperature 1, then hardened.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_clusters : int
        No more than rows.
    beta : array of shape (K, V)
        Topics, held fixed.
    alpha : float
        Prior of the clusters' topic shares.
    rng : Generator
        Draws the first partition and what keeps the clusters apart.

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
            # Equal weights: what a cluster lost while all were alike, it would not get back.
            scores = joint_scores(X, fit._replace(sizes=np.ones(n_clusters)))
            if step == 0:  # clusters that coincide would do so for ever
                scores += PERTURBATION * temperature * rng.standard_normal(scores.shape)
            fit = gather(X, temper(scores, temperature), fit.state, temperature=temperature, with_topics=False)
    return harden(fit.responsibilities)


def critical_temperature(X: sparse.csr_array, state: State) -> float:
    r"""Return the temperature above which all clusters become equal, given the state of clusters drawn at random.

    With :math:`s_i` the topic counts of a row, a small change :math:`u = \sum_i dr_{iq} s_i` of a cluster changes its
    eta by A u and its scores by :math:`s_i' A u`, so that an epoch at temperature T makes it
    :math:`\sum_i s_i s_i' A u / (Q T)`: it grows as long as T is below the largest eigenvalue of
    :math:`\sum_i s_i s_i' A / Q`. Not below 1; where no curvature exists, under a small prior, 1.
    """
    topic_counts = X @ phi_of_features(state.beta, state.gamma.mean(axis=0))  # (N, K)
    growth = topic_counts.T @ topic_counts @ state.curvature.mean(axis=0) / state.n_clusters  # (K, K)
    return max(1.0, float(np.linalg.eigvals(growth).real.max())) if np.isfinite(growth).all() else 1.0


def cooling(first: float) -> Array:
    """Return falling temperatures in equal ratios, from the first down to 1."""
    n_steps = min(int(np.ceil(np.log(first) / -np.log(COOLING))), MAX_TEMPERATURES - 1)
    return np.geomspace(first, 1.0, n_steps + 1) if n_steps else np.ones(1)
