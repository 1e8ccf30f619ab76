r"""Compare numbers of topics by held-out rows and features.

Topics are learned from some rows and judged on the others. There, the features are divided into two random halves: the
counts of one half give the topic shares of a row, and these predict its counts in the other half. Too few topics cannot
predict them; too many have learned the noise of their own rows.

Holding out counts of the same features would not work: a feature that occurs in bursts predicts itself, so every
additional topic made of a few features helps. Bursts of one feature say nothing about others.

If :math:`\theta` are the shares of a row and :math:`b_{kA}` the sum of topic k over half A, the counts in A, given
their total, are multinomial with shares proportional to :math:`\theta_k b_{kA}` of the topics :math:`\beta_k / b_{kA}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.backend import SERIAL, Threads
from mmpca.counts import Counts
from mmpca.topics.em import SMOOTHING, EMFit, Problem, fitted_shares, random_mixture, run_em
from mmpca.topics.lda import ROW_PRIORS, SMOOTHINGS
from mmpca.topics.thinning import held_out_rows

Array = NDArray[np.float64]
Halves = tuple[NDArray[np.intp], NDArray[np.intp]]  # features

N_PARTS = 5  # of the rows; a fold holds out one of them
SMALL = 100_000  # entries up to which all parts are held out in turn, and there are several starts
MAX_PASSES, FEW_PASSES, TOL = 100, 50, 3e-4  # few on large data
SHARE_TOL, SHARE_STEPS = 1e-3, 30
LEAST_MASS = 1e-12  # of a topic in half of the features
PATIENCE = 2  # larger numbers to try without one that is clearly better


class HeldOut(NamedTuple):
    """How well a number of topics predicts, and the priors that it was found to need."""

    by_row: Array  # log-likelihood of the predicted counts of each held-out row
    n_counts: int  # predicted counts
    row_prior: float
    smoothing: float
    share_prior: float
    fold: NDArray[np.int64]  # of each held-out row


class Fold(NamedTuple):
    """Rows to learn from, and rows to predict from halves of their features."""

    fitted: Counts
    known: tuple[Counts, Counts]  # the held-out rows in each half of the features
    halves: Halves
    is_present: NDArray[np.bool_]  # (V,)


def make_folds(rows: Counts, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Return up to five folds, each with a fifth of the rows held out."""
    parts = np.array_split(rng.permutation(rows.n_rows), N_PARTS)
    halves = random_halves(rows.n_features, rng)
    is_present, folds = rows.column_totals() > 0, []
    for part in parts[:n_folds]:
        known = in_halves(rows.take(np.sort(part)), halves)
        folds.append(Fold(rows.take(np.setdiff1d(np.arange(rows.n_rows), part)), known, halves, is_present))
    return folds


def random_halves(n_features: int, rng: np.random.Generator) -> Halves:
    """Divide features 0, ..., V - 1 at random; ascending in each half."""
    order = rng.permutation(n_features)
    return np.sort(order[::2]), np.sort(order[1::2])


def in_halves(rows: Counts, halves: Halves) -> tuple[Counts, Counts]:
    """Return the rows with the features of each half."""
    X = rows.to_csr()
    return _as_counts(X[:, halves[0]]), _as_counts(X[:, halves[1]])


def _as_counts(X: sparse.csr_array) -> Counts:
    X.sort_indices()
    return Counts(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32), X.shape[1])


def predict_halves(fold: Fold, beta_rows: Array, prior: float, threads: Threads = SERIAL) -> Array:
    """Return the log-likelihood of each held-out row, each half of its features predicted from the other, (n,).

    beta_rows: (V, K).
    """
    masses = [np.maximum(beta_rows[half].sum(axis=0), LEAST_MASS) for half in fold.halves]  # (K,) each
    parts = [np.ascontiguousarray(beta_rows[half] / mass) for half, mass in zip(fold.halves, masses, strict=True)]
    total = np.zeros(fold.known[0].n_rows)
    for known, unknown in ((0, 1), (1, 0)):
        shares = fitted_shares(
            fold.known[known], parts[known], prior, tol=SHARE_TOL, max_iter=SHARE_STEPS, threads=threads
        )
        shares *= masses[unknown] / masses[known]
        shares /= shares.sum(axis=1, keepdims=True)
        total += held_out_rows(fold.known[unknown], shares, parts[unknown].T)
    return total


def cross_fitted(by_prior: Mapping[float, Array]) -> Array:
    """Return scores of rows under the prior that is best for the other rows, (n,): odd for even rows, and vice versa.

    The best of several priors always looks a little better than it is, and one topic has no prior to choose.
    """
    table = np.array(list(by_prior.values()))  # (n_priors, n)
    result = np.empty(table.shape[1])
    for own, other in ((0, 1), (1, 0)):
        best = int(table[:, other::2].sum(axis=1).argmax())
        result[own::2] = table[best, own::2]
    return result


def hold_out(
    folds: Sequence[Fold], n_topics: int, before: HeldOut | None, rng: np.random.Generator, threads: Threads = SERIAL
) -> HeldOut:
    """Learn topics on each fold and predict its held-out rows.

    The priors start from those of a smaller number of topics and move to neighbors on their grids for as long as these
    predict the first fold better.

    Parameters
    ----------
    folds : sequence of Fold
    n_topics : int
    before : HeldOut or None
        The result of a smaller number of topics.
    rng : Generator
        Draws the starts.
    threads : Threads
        The result does not depend on them.
    """
    n_starts = 2 if folds[0].fitted.nnz <= SMALL else 1
    row_prior, smoothing, share_prior = (1.0, 3 * SMOOTHING, 1.0) if before is None else before[2:5]
    by_row: list[Array] = []
    for number, fold in enumerate(folds):
        problem = Problem(fold.fitted, fold.is_present, row_prior, smoothing)

        def fit(problem: Problem, start: EMFit | None) -> EMFit:
            mixture = random_mixture(problem, n_topics, rng) if start is None else start.mixture
            return run_em(
                problem, mixture, max_passes=MAX_PASSES if n_starts > 1 else FEW_PASSES, tol=TOL, threads=threads
            )

        def scores(found: EMFit, fold: Fold = fold, prior: float = share_prior) -> dict[float, Array]:
            priors = [prior] if n_topics == 1 else [prior, *_beside(prior, ROW_PRIORS)]
            return {prior: predict_halves(fold, found.mixture.beta_rows, prior, threads) for prior in priors}

        found = max((fit(problem, None) for _ in range(n_starts)), key=lambda one: one.objective)
        by_prior = scores(found)
        # On large data, the priors are chosen again whenever the number of topics has doubled.
        if number == 0 and n_topics > 1 and (n_starts > 1 or n_topics & (n_topics - 1) == 0):
            problem, by_prior = _climb(problem, found, by_prior, fit, scores)
            row_prior, smoothing = problem.row_prior, problem.smoothing
            share_prior = max(by_prior, key=lambda prior: float(by_prior[prior].sum()))
        by_row.append(cross_fitted(by_prior))
    n_counts = sum(int(half.data.sum(dtype=np.int64)) for fold in folds for half in fold.known)
    numbers = np.repeat(np.arange(len(folds)), [len(rows) for rows in by_row])
    return HeldOut(np.concatenate(by_row), n_counts, row_prior, smoothing, share_prior, numbers)


def _climb(
    problem: Problem,
    found: EMFit,
    by_prior: dict[float, Array],
    fit: Callable[[Problem, EMFit | None], EMFit],
    scores: Callable[[EMFit], dict[float, Array]],
) -> tuple[Problem, dict[float, Array]]:
    """Move to neighboring priors of rows or topics for as long as they predict better."""
    is_rising = True
    while is_rising:
        is_rising = False
        for neighbor in _neighbors(problem):
            other = fit(neighbor, found)
            other_scores = scores(other)
            if cross_fitted(other_scores).sum() > cross_fitted(by_prior).sum():
                problem, found, by_prior, is_rising = neighbor, other, other_scores, True
                break
    return problem, by_prior


def _neighbors(problem: Problem) -> Iterator[Problem]:
    """Yield the problem with one prior a step up or down its grid."""
    for row_prior in _beside(problem.row_prior, ROW_PRIORS):
        yield problem._replace(row_prior=row_prior)
    for smoothing in _beside(problem.smoothing, SMOOTHINGS):
        yield problem._replace(smoothing=smoothing)


def _beside(value: float, grid: Sequence[float]) -> list[float]:
    """Return the neighbors of a value on an ascending grid."""
    return [x for x in grid if x > value][:1] + [x for x in grid if x < value][-1:]


# --- the choice -------------------------------------------------------------------------------------------------


def numbers_to_try(tried: Mapping[int, HeldOut], largest: int) -> Iterator[int]:
    """Yield 1, 2, ... topics while `tried` receives their results, until larger numbers are not clearly better.

    Beyond eight, steps are a quarter of the number.
    """
    n = 1
    while n <= largest and sum(k > simplest(tried) for k in tried) < PATIENCE if tried else True:
        yield n
        n += max(1, n // 4)


def losses(tried: Mapping[int, HeldOut]) -> dict[int, tuple[float, float]]:
    r"""Return the loss of each number of topics against the best one, with its standard error, in nats.

    If row i loses :math:`d_i`, the loss is :math:`\sum_i d_i`. If rows were independent, its error would be
    :math:`\sqrt{R\,\mathrm{var}(d)}`; but the rows of a fold share topics, which may be unlucky. With the losses
    :math:`D_f` of F folds, the error is therefore at least :math:`\sqrt{F\,\mathrm{var}(D)}`.
    """
    best = max(tried.values(), key=lambda one: float(one.by_row.sum())).by_row
    found = {}
    for k, one in tried.items():
        loss = best - one.by_row
        by_fold = np.bincount(one.fold, loss).astype(np.float64)
        found[k] = (float(loss.sum()), max(_error_of_sum(loss), _error_of_sum(by_fold)))
    return found


def _error_of_sum(values: Array) -> float:
    """Return the standard error of the sum of independent values; 0 for a single one."""
    return float(np.sqrt(len(values)) * np.std(values, ddof=min(1, len(values) - 1)))


def simplest(tried: Mapping[int, HeldOut]) -> int:
    """Return the smallest number of topics whose loss is at most one standard error."""
    return min(k for k, (loss, error) in losses(tried).items() if loss <= error)
