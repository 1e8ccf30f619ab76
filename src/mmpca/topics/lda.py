"""Topics from a latent Dirichlet allocation of the rows, its row prior chosen from the data."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.topics.em import (
    SMOOTHING,
    Array,
    Callback,
    Fit,
    Limits,
    Mixture,
    Problem,
    Runner,
    fitted_shares,
    row_parts,
    threads,
    topics_of,
)
from mmpca.topics.prior import GRID, SEARCH, choose_row_prior

FINAL = Limits(max_passes=1000, tol=1e-5)
# Work is counted in entries times topics: about 300 million a second.
SEARCH_WORK = 2_000_000  # of a pass that chooses the prior
SEARCH_COVER = (
    25  # entries a feature that such a pass has at least: thinner data want a stronger prior than all of them
)
SEARCH_EFFORT = 400_000_000  # of all passes of such a run
FINAL_WORK = 40_000_000  # of a pass that fits the topics
FINAL_EFFORT = 2_000_000_000  # of all these passes: large data stop before they settle
LEAST_PASSES = 60  # but not before so many
REFINING_PASSES = 3
REFINED_ENTRIES = 2**20  # of the rows whose shares are held at a time


class LDAFit(NamedTuple):
    """Topics, and how they came about."""

    beta: Array  # (K, V), rows sum to one; zero for features that never occur
    row_prior: float
    score: float  # mean log-likelihood of a held-out count under what was fitted to the others
    scores: dict[float, float]  # the same for each row prior that was tried, from the first start
    n_passes: int  # over all runs
    converged: bool  # whether the last run settled


def learn_topics(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    row_prior: float | Literal["auto"] = "auto",
    smoothing: float = SMOOTHING,
    n_init: int | Literal["auto"] = "auto",
    max_passes: int = FINAL.max_passes,
    tol: float = FINAL.tol,
    n_threads: int = 1,
    callback: Callback | None = None,
) -> Array:
    """Return topics (K, V) that mix to the rows, each row having shares of its own; see :func:`fit_lda`."""
    return fit_lda(
        rows, n_topics, rng=rng, row_prior=row_prior, smoothing=smoothing, n_init=n_init, max_passes=max_passes,
        tol=tol, n_threads=n_threads, callback=callback,
    ).beta  # fmt: skip


def fit_lda(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    row_prior: float | Literal["auto"] = "auto",
    smoothing: float = SMOOTHING,
    n_init: int | Literal["auto"] = "auto",
    max_passes: int = FINAL.max_passes,
    tol: float = FINAL.tol,
    n_threads: int = 1,
    callback: Callback | None = None,
) -> LDAFit:
    """Fit topics to rows.

    The prior and the best of several starts are found on four fifths of the counts, scored on the others; from there,
    EM runs on all counts. Of large data, the prior is chosen on as many random rows as keep a pass within
    `SEARCH_WORK` or have `SEARCH_COVER` entries a feature; the topics are fitted on as many as keep it within
    `FINAL_WORK`, in no more passes than `FINAL_EFFORT` affords, and refined by a few passes over all rows.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    rng : Generator
        Draws starts, splits and samples.
    row_prior : float or "auto"
        Symmetric Dirichlet prior of the rows' shares, counted in tokens of each topic that a row has beforehand.
    smoothing : float
        The same of the topics, counted in tokens of each feature.
    n_init : int or "auto"
        Random starts; the one with the highest objective is kept. "auto": see :func:`choose_row_prior`.
    max_passes, tol : int, float
        A run ends after so many passes, or when one changes the topics by less than `tol` in mean total variation.
    n_threads : int
        The result does not depend on it.
    callback : callable, optional
        Called with the number of passes so far; a true answer stops there.
    """
    grid = GRID if isinstance(row_prior, str) else (float(row_prior),)
    is_present = rows.column_totals() > 0
    with threads(n_threads) as pool:
        run = Runner(pool, callback)
        sample = sample_rows(rows, max(SEARCH_WORK // n_topics, SEARCH_COVER * int(is_present.sum())), rng)
        limits = Limits(min(SEARCH.max_passes, max_passes), max(SEARCH.tol, tol))
        choice = choose_row_prior(
            sample, n_topics, rng=rng, grid=grid, smoothing=smoothing, n_init=n_init, is_present=is_present,
            limits=affordable(limits, sample.nnz * n_topics, SEARCH_EFFORT), run=run,
        )  # fmt: skip
        problem = Problem(rows, is_present, choice.row_prior, smoothing)
        if sample is rows:
            fit = run(problem, choice.mixture, Limits(max_passes, tol))
        else:
            fit = _fit_many(problem, choice.mixture.beta_rows, rng, run, Limits(max_passes, tol))
    beta = np.ascontiguousarray(fit.mixture.beta_rows.T)
    return LDAFit(beta, choice.row_prior, choice.score, choice.scores, run.n_passes, fit.converged)


def sample_rows(rows: Counts, n_entries: int, rng: np.random.Generator) -> Counts:
    """Return the rows themselves, or as many at random as have so many entries together, one at least."""
    if rows.nnz <= n_entries:
        return rows
    order = rng.permutation(rows.n_rows)
    n_taken = int(np.searchsorted(np.cumsum(np.diff(rows.indptr)[order]), n_entries, side="right"))
    return rows.take(np.sort(order[: max(1, n_taken)]))


def affordable(limits: Limits, work: int, effort: int) -> Limits:
    """Return limits with no more passes of the given work than the effort is enough for."""
    return limits._replace(max_passes=min(limits.max_passes, max(LEAST_PASSES, effort // work)))


def _fit_many(problem: Problem, beta_rows: Array, rng: np.random.Generator, run: Runner, limits: Limits) -> Fit:
    """Go on from given topics on as many rows as a pass may have, and refine on all of them."""
    n_topics = beta_rows.shape[1]
    sample = sample_rows(problem.rows, FINAL_WORK // n_topics, rng)
    theta = fitted_shares(sample, beta_rows, problem.row_prior, pool=run.pool)
    limits = affordable(limits, sample.nnz * n_topics, FINAL_EFFORT)
    fit = run(problem._replace(rows=sample), Mixture(theta, beta_rows), limits)
    if sample is problem.rows:
        return fit
    beta_rows = fit.mixture.beta_rows
    for _ in range(REFINING_PASSES):
        beta_rows = _refined(problem, beta_rows, run)
    return fit._replace(mixture=Mixture(fit.mixture.theta, beta_rows))


def _refined(problem: Problem, beta_rows: Array, run: Runner) -> Array:
    """Return topics (V, K) after a step of EM over all rows, the shares of a part of them held at a time."""
    rows, counts = problem.rows, np.zeros_like(beta_rows)
    for first, last in row_parts(rows, -(-rows.nnz // REFINED_ENTRIES)):
        some = rows.take(slice(first, last))
        theta = fitted_shares(some, beta_rows, problem.row_prior, pool=run.pool)
        kernels.em_block(some, 0, some.n_rows, theta, beta_rows, problem.row_prior, False, theta, counts)
    return topics_of(problem, counts * beta_rows)
