r"""EM for topics and topic shares, accelerated by SQUAREM, and shares of rows under fixed topics.

With theta (N, K) the topic shares of the rows and beta (K, V) the topics, EM maximizes the log posterior

.. math:: F = \sum_{iv} x_{iv} \log \sum_k \theta_{ik} \beta_{kv}
              + a \sum_{ik} \log \theta_{ik} + b \sum_{kv} \log \beta_{kv}

with `a` the row prior and `b` the smoothing, over the features that occur. A step sets theta_ik proportional to
a + n_ik and beta_kv to b + n_kv, with n the expected counts. This is the update of collapsed variational Bayes of order
zero (CVB0) without removing each token's own share: nothing is stored per token, and F never decreases, which makes
extrapolation safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from mmpca.backend import MAX_SLICES, SERIAL, Rows, Threads, even_slices, slices_of
from mmpca.counts import Counts
from mmpca.monitor import Monitor
from mmpca.topics import kernels

Array = NDArray[np.float64]

SMOOTHING = 0.05
GROWTH = 4.0  # factor by which the longest extrapolation grows while extrapolations succeed
LEAST_SINGLE_TOL = 1e-4  # shares with at least this tolerance are fitted in single precision
LOG_FACTORS = 8  # probabilities whose product gets one logarithm
LEAST_KEPT = 0.01  # share of a probability that survives any extrapolation


class Mixture(NamedTuple):
    """Topic shares of the rows, and topics."""

    theta: Array  # (N, K), rows sum to one
    beta_rows: Array  # (V, K), columns sum to one; zero for features that never occur


class Problem(NamedTuple):
    """Counts, and the priors under which they are fitted."""

    rows: Counts
    is_present: NDArray[np.bool_]  # (V,), features with positive probability in the topics
    row_prior: float
    smoothing: float


class EMFit(NamedTuple):
    """Result of a run of EM."""

    mixture: Mixture
    objective: float
    n_passes: int
    converged: bool


# --- one step ---------------------------------------------------------------------------------------------------


def random_mixture(problem: Problem, n_topics: int, rng: np.random.Generator) -> Mixture:
    """Draw uniform shares and nearly flat topics."""
    theta = rng.dirichlet(np.ones(n_topics), problem.rows.n_rows)
    beta_rows = np.zeros((problem.rows.n_features, n_topics))
    beta_rows[problem.is_present] = rng.uniform(0.5, 1.5, (problem.is_present.sum(), n_topics))
    return Mixture(theta, beta_rows / beta_rows.sum(axis=0))


def plain_step(problem: Problem, mixture: Mixture) -> tuple[Mixture, float]:
    """Return a step of EM and the objective before it: :func:`em_step` in plain NumPy on a dense matrix."""
    X = problem.rows.to_csr().toarray().astype(np.float64)  # (N, V)
    theta, beta_rows = mixture
    profile = theta @ beta_rows.T  # (N, V)
    ratio = np.divide(X, profile, out=np.zeros_like(X), where=X > 0)
    new_theta = problem.row_prior + theta * (ratio @ beta_rows)  # (N, K)
    counts = beta_rows * (ratio.T @ theta)  # (V, K)
    log_likelihood = float(np.sum(X * np.log(profile, out=np.zeros_like(X), where=X > 0)))
    new_beta_rows = topics_of(counts, problem.is_present, problem.smoothing)
    step = Mixture(new_theta / new_theta.sum(axis=1, keepdims=True), new_beta_rows)
    return step, log_likelihood + log_prior(problem, mixture)


def em_step(
    problem: Problem,
    mixture: Mixture,
    *,
    is_scored: bool = False,
    slices: Sequence[slice] | None = None,
    threads: Threads = SERIAL,
) -> tuple[Mixture, float]:
    """Return the mixture after a step of EM, and the objective before it (NaN unless `is_scored`).

    The slices of the rows are summed separately. By default they depend on the counts alone, never on the threads.
    """
    (theta, beta_rows), (rows, is_present, row_prior, smoothing) = mixture, problem
    new_theta = np.empty_like(theta)

    def step(part: slice) -> tuple[Array, float]:
        counts, ends = np.zeros_like(beta_rows), (part.start, part.stop)
        return counts, kernels.em_block(rows, *ends, theta, beta_rows, row_prior, is_scored, new_theta, counts)

    counts, value = np.zeros_like(beta_rows), log_prior(problem, mixture) if is_scored else np.nan
    for part_counts, part_value in threads.imap(step, slices_of(rows) if slices is None else slices):
        counts += part_counts
        value += part_value
    counts *= beta_rows
    return Mixture(new_theta, topics_of(counts, is_present, smoothing)), value


def topics_of(counts: Array, is_present: NDArray[np.bool_], smoothing: float) -> Array:
    """Return topics (V, K) from the expected counts of features in topics (V, K)."""
    topics: Array = counts + smoothing
    topics[~is_present] = 0.0
    topics /= topics.sum(axis=0)
    return topics


def log_prior(problem: Problem, mixture: Mixture) -> float:
    """Return the log prior of shares and topics, up to a constant."""
    log_beta = _sum_logs(mixture.beta_rows[problem.is_present])
    return problem.row_prior * _sum_logs(mixture.theta) + problem.smoothing * log_beta


def _sum_logs(shares: Array) -> float:
    """Return the sum of the logarithms, most of them taken of products: with many topics, they would take longest."""
    n_whole = shares.shape[1] - shares.shape[1] % LOG_FACTORS
    products = np.ones((len(shares), n_whole // LOG_FACTORS))
    for j in range(LOG_FACTORS):
        products *= shares[:, j:n_whole:LOG_FACTORS]
    is_small = products < 1e-250
    whole = np.log(products, where=~is_small, out=np.zeros_like(products)).sum()
    if is_small.any():
        at = np.argwhere(is_small)
        factors = shares[at[:, 0, None], LOG_FACTORS * at[:, 1, None] + np.arange(LOG_FACTORS)]
        whole += np.log(factors).sum()
    return float(whole + np.log(shares[:, n_whole:]).sum())


# --- many steps -------------------------------------------------------------------------------------------------


def run_em(
    problem: Problem,
    start: Mixture,
    *,
    max_passes: int,
    tol: float,
    threads: Threads = SERIAL,
    monitor: Monitor | None = None,
) -> EMFit:
    """Improve a mixture by EM until the topics converge.

    Two steps show the direction of EM; an extrapolation continues in it, and a third step follows. If the objective is
    lower there, the extrapolation is undone. Extrapolations grow longer while they succeed. This is SQUAREM with the
    third step length of Varadhan and Roland (2008).

    Parameters
    ----------
    problem : Problem
    start : Mixture
    max_passes : int
        Number of steps; the last extrapolation may exceed it.
    tol : float
        The run ends when a step changes the topics by less than this in mean total variation.
    threads : Threads
        The result does not depend on them.
    monitor : Monitor, optional
        Receives each pass as a step; the run ends when it is stopped.
    """
    monitor = Monitor() if monitor is None else monitor
    step = partial(em_step, problem, slices=slices_of(problem.rows), threads=threads)
    mixture, fallback, least, change, length, longest, n_passes = start, start, -np.inf, np.inf, 1.0, 1.0, 0
    while n_passes < max_passes and change >= tol and not monitor.is_stopped:
        n_before = n_passes
        once, objective = step(mixture, is_scored=True)
        if objective < least:
            mixture, longest = fallback, max(1.0, length / GROWTH)
            once, objective = step(mixture, is_scored=True)
            n_passes += 1
        elif length == longest:
            longest *= GROWTH
        fallback, _ = step(once)
        least = objective
        moved = once.beta_rows - fallback.beta_rows
        change = 0.5 * float(np.abs(moved, out=moved).sum(axis=0).mean())
        extrapolated, length = _extrapolate(mixture, once, fallback, longest)
        mixture, _ = step(extrapolated)
        n_passes += 3
        monitor.step(n_passes - n_before)
    _, objective = step(mixture, is_scored=True)
    if objective < least:  # the last extrapolation has not been checked yet
        mixture, (_, objective) = fallback, step(fallback, is_scored=True)
    return EMFit(mixture, objective, n_passes, change < tol)


def _extrapolate(start: Mixture, once: Mixture, twice: Mixture, longest: float) -> tuple[Mixture, float]:
    """Extrapolate two steps of EM; return the result and the step length, which is 1 for the two steps alone."""
    # Fits of small data take many steps, and arithmetic in place takes half the time.
    slope = [b - a for a, b in zip(start, once, strict=True)]
    bend = [c - b for b, c in zip(once, twice, strict=True)]
    for d, e in zip(slope, bend, strict=True):
        e -= d
    # Squares not by BLAS, whose number of threads would determine the order of the sum.
    squares = [sum(float(np.einsum("ij,ij->", array, array)) for array in arrays) for arrays in (slope, bend)]
    length = min(max(1.0, np.sqrt(squares[0] / max(squares[1], 1e-300))), longest)
    for a, c, d, e in zip(start, twice, slope, bend, strict=True):
        d *= 2 * length
        d += a
        e *= length**2
        d += e
        np.maximum(d, np.multiply(c, LEAST_KEPT, out=e), out=d)
    theta, beta_rows = slope
    theta /= theta.sum(axis=1, keepdims=True)
    beta_rows /= beta_rows.sum(axis=0)
    return Mixture(theta, beta_rows), length


# --- shares under fixed topics ----------------------------------------------------------------------------------


def fitted_shares(
    rows: Counts,
    beta_rows: Array,
    row_prior: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 30,
    dtype: Any = None,
    threads: Threads = SERIAL,
) -> Array:
    """Return the most probable topic shares of each row (N, K) under topics (V, K).

    A row stops when no share changes by more than `tol`; the defaults are accurate enough to start from. Features
    that have probability zero in all topics are ignored; a row without any others has equal shares. By default the
    arithmetic is in single precision where the tolerance allows it.
    """
    n_topics, longest = beta_rows.shape[1], int(np.diff(rows.indptr).max(initial=0))
    theta = np.empty((rows.n_rows, n_topics))
    if dtype is None:  # single precision moves half the memory, and its rounding is far below such a tolerance
        dtype = np.float32 if tol >= LEAST_SINGLE_TOL else np.float64
    topics = beta_rows.astype(dtype, copy=False)

    def fit(part: slice) -> None:
        own = np.empty((longest, n_topics), dtype=dtype)
        kernels.fit_shares(rows, part.start, part.stop, topics, row_prior, tol, max_iter, own, theta)

    threads.map(fit, even_slices(rows.indptr, MAX_SLICES))
    return theta


def plain_fitted_shares(rows: Counts, beta_rows: Array, row_prior: float, *, tol: float, max_iter: int) -> Array:
    """Return the result of :func:`fitted_shares` in plain NumPy."""
    theta = np.empty((rows.n_rows, beta_rows.shape[1]))
    for i, x in enumerate(rows.to_csr().toarray().astype(np.float64)):
        is_known = (x > 0) & (beta_rows.sum(axis=1) > 0)
        x, own = x[is_known], beta_rows[is_known]
        share = np.full(beta_rows.shape[1], 1.0 / beta_rows.shape[1])
        for _ in range(max_iter):
            last, share = share, row_prior + share * (x / (own @ share) @ own)
            share /= share.sum()
            if np.abs(share - last).max() <= tol:
                break
        theta[i] = share
    return theta


def topic_shares(
    rows: Counts,
    beta: Array,
    *,
    prior: float | Array,
    tol: float = 1e-6,
    max_iter: int = 200,
    threads: Threads = SERIAL,
    monitor: Monitor | None = None,
) -> Array:
    """Return the expected topic shares of each row under fixed topics.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    beta : array of shape (K, V)
        Topics; rows sum to one. Features with probability zero in all of them are ignored.
    prior : float or array of shape (K,)
        Dirichlet prior of a row's shares; a number stands for the same prior of every topic.
    tol, max_iter : float, int
        The fixed-point iteration of a row stops when no parameter changes by more than `tol` times the row's total.
    threads : Threads
        The result does not depend on them.
    monitor : Monitor, optional
        Receives each row as a step of the running stage.

    Returns
    -------
    shares : array of shape (N, K)
        Rows sum to one; a row without counts has equal shares.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.topics import topic_shares
    >>> beta = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> topic_shares(as_counts([[8, 9, 1]]), beta, prior=1.0).round(2)
    array([[0.9, 0.1]])
    """
    gamma = np.empty((rows.n_rows, len(beta)))
    beta_rows, alpha = np.ascontiguousarray(beta.T), np.full(len(beta), prior, dtype=np.float64)

    def fold_in(some: Rows) -> None:
        kernels.fold_in(rows, some, beta_rows, alpha, tol, max_iter, gamma)
        if monitor is not None:
            monitor.step(len(some))

    threads.for_rows(fold_in, np.arange(rows.n_rows))
    shares: Array = gamma / gamma.sum(axis=1, keepdims=True)
    return shares


def plain_topic_shares(rows: Counts, beta: Array, *, prior: float | Array, tol: float, max_iter: int) -> Array:
    """Return the result of :func:`topic_shares` in plain NumPy, for topics without features of probability zero."""
    gamma = np.empty((rows.n_rows, len(beta)))
    for i, x in enumerate(rows.to_csr().toarray().astype(np.float64)):
        gamma[i] = prior + x.sum() / len(beta)
        for _ in range(max_iter):
            last, weighted = gamma[i].copy(), np.exp(digamma(gamma[i]))[:, None] * beta  # (K, V)
            gamma[i] = prior + weighted / weighted.sum(axis=0) @ x
            if np.abs(gamma[i] - last).max() <= tol * (x.sum() + 1.0):
                break
    shares: Array = gamma / gamma.sum(axis=1, keepdims=True)
    return shares
