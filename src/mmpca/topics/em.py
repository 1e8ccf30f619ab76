r"""Maximum a posteriori topics and shares by EM, accelerated.

With theta (N, K) the topic shares of the rows and beta (K, V) the topics, the objective is

.. math:: F = \sum_{iv} x_{iv} \log \sum_k \theta_{ik} \beta_{kv}
              + a \sum_{ik} \log \theta_{ik} + b \sum_{kv} \log \beta_{kv}

with `a` the row prior and `b` the smoothing, over the features that occur. A step of EM sets theta_ik in proportion to
a + n_ik and beta_kv to b + n_kv, with n the expected counts: the update of collapsed variational Bayes of order zero,
but for the token's own share, which is not taken out. That saves memory, as nothing is kept for single tokens, and
time: F never decreases under EM, so that leaps ahead are safe when F is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.places import MAX_PIECES, ForRows, each_of, even_pieces, in_turn, n_pieces, one_thread
from mmpca.stages import QUIET, Stages

Array = NDArray[np.float64]
Callback = Callable[[int], object]

SMOOTHING = 0.05
GROWTH = 4.0  # of the longest leap while leaps succeed
LEAST_SINGLE_TOL = 1e-4  # of shares, from which on they are fitted in single precision
LEAST_KEPT = 0.01  # of a probability, however far a leap would take it


class Mixture(NamedTuple):
    """Topic shares of the rows and topics: what EM improves."""

    theta: Array  # (N, K), rows sum to one
    beta_rows: Array  # (V, K), columns sum to one; zero for features that never occur


class Problem(NamedTuple):
    """Counts and the priors under which they are fitted."""

    rows: Counts
    is_present: NDArray[np.bool_]  # (V,), features that topics may hold
    row_prior: float
    smoothing: float


class Limits(NamedTuple):
    """When a run ends: after so many passes, or when a step changes the topics by less in mean total variation."""

    max_passes: int
    tol: float


class Fit(NamedTuple):
    """Where a run ended."""

    mixture: Mixture
    objective: float
    n_passes: int
    converged: bool


def random_mixture(problem: Problem, n_topics: int, rng: np.random.Generator) -> Mixture:
    """Draw shares evenly and topics near the flat one, to start from."""
    theta = rng.dirichlet(np.ones(n_topics), problem.rows.n_rows)
    beta_rows = np.zeros((problem.rows.n_features, n_topics))
    beta_rows[problem.is_present] = rng.uniform(0.5, 1.5, (problem.is_present.sum(), n_topics))
    return Mixture(theta, beta_rows / beta_rows.sum(axis=0))


# --- one step ---------------------------------------------------------------------------------------------------


def plain_step(problem: Problem, mixture: Mixture) -> tuple[Mixture, float]:
    """Return a step of EM and the objective before it, in plain NumPy on a dense matrix: what a `Stepper` equals."""
    X = problem.rows.to_csr().toarray().astype(np.float64)  # (N, V)
    theta, beta_rows = mixture
    profile = theta @ beta_rows.T  # (N, V)
    ratio = np.divide(X, profile, out=np.zeros_like(X), where=X > 0)
    new_theta = problem.row_prior + theta * (ratio @ beta_rows)  # (N, K)
    counts = beta_rows * (ratio.T @ theta)  # (V, K)
    log_likelihood = float(np.sum(X * np.log(profile, out=np.zeros_like(X), where=X > 0)))
    step = Mixture(new_theta / new_theta.sum(axis=1, keepdims=True), topics_of(problem, counts))
    return step, log_likelihood + log_prior(problem, mixture)


def topics_of(problem: Problem, counts: Array) -> Array:
    """Return topics (V, K) from the expected counts of features in topics (V, K)."""
    smoothed = np.where(problem.is_present[:, None], counts + problem.smoothing, 0.0)
    topics: Array = smoothed / smoothed.sum(axis=0)
    return topics


def log_prior(problem: Problem, mixture: Mixture) -> float:
    """Return the log prior of shares and topics, up to a constant."""
    log_beta = np.log(mixture.beta_rows[problem.is_present]).sum()
    return float(problem.row_prior * np.log(mixture.theta).sum() + problem.smoothing * log_beta)


class Stepper:
    """Steps of EM for one problem, on pieces of the rows that do not depend on the number of threads."""

    def __init__(self, problem: Problem, for_rows: ForRows = one_thread) -> None:
        rows = problem.rows
        self.problem, self._for_rows = problem, for_rows
        self._pieces = even_pieces(rows.indptr, n_pieces(rows.nnz, rows.n_features))

    def __call__(self, mixture: Mixture, *, is_scored: bool = False) -> tuple[Mixture, float]:
        """Return the mixture after a step and the objective before it, NaN unless asked for."""
        (theta, beta_rows), (rows, _, row_prior, _) = mixture, self.problem
        new_theta = np.empty_like(theta)

        def step(piece: slice) -> tuple[Array, float]:
            counts, ends = np.zeros_like(beta_rows), (piece.start, piece.stop)
            return counts, kernels.em_block(rows, *ends, theta, beta_rows, row_prior, is_scored, new_theta, counts)

        counts, value = np.zeros_like(beta_rows), log_prior(self.problem, mixture) if is_scored else np.nan
        for piece_counts, piece_value in in_turn(step, self._pieces, self._for_rows):
            counts += piece_counts
            value += piece_value
        return Mixture(new_theta, topics_of(self.problem, counts * beta_rows)), value


# --- many steps -------------------------------------------------------------------------------------------------


class Runner:
    """Runs of EM with common threads and a common count of passes.

    Parameters
    ----------
    for_rows : callable
        Threads that share the rows; the result does not depend on them.
    callback : callable, optional
        Called with the number of passes so far; a true answer ends this run and all that follow.
    stages : Stages
        Told of each pass as a step.
    """

    def __init__(
        self, for_rows: ForRows = one_thread, callback: Callback | None = None, stages: Stages = QUIET
    ) -> None:
        self.n_passes = 0
        self.is_stopped = False
        self.for_rows = for_rows
        self.stages = stages
        self._callback = callback

    def __call__(self, problem: Problem, start: Mixture, limits: Limits) -> Fit:
        """Improve a mixture until it settles.

        Two steps show where EM is heading; a leap goes on from there, and a third step lands. If the objective is
        lower there, the leap is taken back. Leaps may become longer while they succeed: SQUAREM, with the third step
        length of Varadhan and Roland (2008).
        """
        step, n_before = Stepper(problem, self.for_rows), self.n_passes
        mixture, fallback, least, change, length, longest = start, start, -np.inf, np.inf, 1.0, 1.0
        while self.n_passes - n_before < limits.max_passes and change >= limits.tol and not self.is_stopped:
            n_told = self.n_passes
            once, objective = step(mixture, is_scored=True)
            if objective < least:
                mixture, longest = fallback, max(1.0, length / GROWTH)
                once, objective = step(mixture, is_scored=True)
                self.n_passes += 1
            elif length == longest:
                longest *= GROWTH
            fallback, _ = step(once)
            least, change = objective, _distance(once, fallback)
            leap, length = _leap(mixture, once, fallback, longest)
            mixture, _ = step(leap)
            self.n_passes += 3
            self.stages.step(self.n_passes - n_told)
            self.is_stopped = self._callback is not None and bool(self._callback(self.n_passes))
        _, objective = step(mixture, is_scored=True)
        if objective < least:  # the last leap was not looked at yet
            mixture, (_, objective) = fallback, step(fallback, is_scored=True)
        return Fit(mixture, objective, self.n_passes - n_before, change < limits.tol)


def _distance(mixture: Mixture, other: Mixture) -> float:
    """Return the mean total variation between the topics."""
    return 0.5 * float(np.abs(mixture.beta_rows - other.beta_rows).sum(axis=0).mean())


def _leap(start: Mixture, once: Mixture, twice: Mixture, longest: float) -> tuple[Mixture, float]:
    """Extrapolate two steps of EM; return where that leads and how long the leap is, 1 for the two steps alone."""
    slope = [b - a for a, b in zip(start, once, strict=True)]
    bend = [c - b - d for b, c, d in zip(once, twice, slope, strict=True)]
    length = min(max(1.0, np.sqrt(_square(slope) / max(_square(bend), 1e-300))), longest)
    theta, beta_rows = (
        np.maximum(a + 2 * length * d + length**2 * e, LEAST_KEPT * c)
        for a, c, d, e in zip(start, twice, slope, bend, strict=True)
    )
    return Mixture(theta / theta.sum(axis=1, keepdims=True), beta_rows / beta_rows.sum(axis=0)), length


def _square(arrays: list[Array]) -> float:
    """Return the sum of squares of all entries; not by BLAS, whose threads would decide the order of the sum."""
    return sum(float(np.einsum("ij,ij->", array, array)) for array in arrays)


# --- topics held fixed ------------------------------------------------------------------------------------------


def fitted_shares(
    rows: Counts,
    beta_rows: Array,
    row_prior: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 30,
    for_rows: ForRows = one_thread,
) -> Array:
    """Return the most probable topic shares of each row (N, K) under topics (V, K).

    A row stops when no share changes by more than `tol`; by default where it is good enough to start from. Features
    that no topic knows are passed over; a row without others has equal shares.
    """
    n_topics, longest = beta_rows.shape[1], int(np.diff(rows.indptr).max(initial=0))
    theta = np.empty((rows.n_rows, n_topics))
    # Single precision moves half the memory, and its rounding is nothing beside such a tolerance.
    topics = beta_rows.astype(np.float32) if tol >= LEAST_SINGLE_TOL else beta_rows

    def fit(piece: slice) -> None:
        own = np.empty((longest, n_topics), dtype=topics.dtype)
        kernels.fit_shares(rows, piece.start, piece.stop, topics, row_prior, tol, max_iter, own, theta)

    each_of(fit, even_pieces(rows.indptr, MAX_PIECES), for_rows)
    return theta
