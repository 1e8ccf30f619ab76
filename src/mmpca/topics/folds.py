"""Cross-validation over single counts: how well a number of topics predicts the counts that it has not seen.

Each count belongs to one of a few folds. For each fold, topics and shares are fitted to the counts of the others, and
its own are scored: so every count is predicted once, and the sum needs no scaling. All numbers of topics see the same
folds, so that their differences, row by row, have a standard error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.topics.em import SMOOTHING, Fit, Limits, Mixture, Problem, Runner, random_mixture
from mmpca.topics.prior import GRID, SEARCH
from mmpca.topics.splits import Split, held_out_rows, held_out_score, with_data

Array = NDArray[np.float64]

N_INIT = 2  # of each fold: the fit with the better objective on the counts it saw is kept
SMOOTHINGS = (SMOOTHING, 3 * SMOOTHING, 10 * SMOOTHING, 30 * SMOOTHING, 100 * SMOOTHING)


def fold_counts(rows: Counts, n_folds: int, rng: np.random.Generator) -> Iterator[Split]:
    """Yield the counts with one fold held out after the other; each single count is held out once.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.topics import fold_counts
    >>> folds = list(fold_counts(as_counts([[70, 30], [0, 50]]), 5, np.random.default_rng(0)))
    >>> sum(fold.held_out.to_csr() for fold in folds).toarray()
    array([[70, 30],
           [ 0, 50]], dtype=int32)
    """
    left = rows.data.copy()
    for fold in range(n_folds):
        # The next fold's share of what is left: together a multinomial with equal parts, one part in memory at a time.
        taken = rng.binomial(left, 1.0 / (n_folds - fold)).astype(np.int32)
        left -= taken
        yield Split(with_data(rows, rows.data - taken), with_data(rows, taken))


def predicted_rows(
    rows: Counts,
    n_topics: int,
    row_prior: float,
    *,
    n_folds: int,
    folds_rng: np.random.Generator,
    starts_rng: np.random.Generator,
    limits: Limits = SEARCH,
    n_init: int = N_INIT,
) -> Array:
    """Return the log-likelihood of each row's counts, (N,), each count as predicted by a fit to the other folds.

    Starts are random for every fold: those near a fit to all counts would remember what they should predict. Row prior
    and smoothing are those that predict the first fold best: with a fixed smoothing, few counts would want more
    topics for no other reason than that more of them are smoother together.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    row_prior : float
        Where the search for it begins.
    n_folds : int
        At least 2.
    folds_rng, starts_rng : Generator
        Two of them, so that different numbers of topics can have the same folds.
    limits : Limits
        Of each single run.
    n_init : int
        Random starts of each fold.
    """
    total, tuned = np.zeros(rows.n_rows), Problem(rows, rows.column_totals() > 0, row_prior, SMOOTHING)
    for fold, split in enumerate(fold_counts(rows, n_folds, folds_rng)):
        tuned = tuned._replace(rows=split.kept)
        fits = [Runner()(tuned, random_mixture(tuned, n_topics, starts_rng), limits) for _ in range(n_init)]
        best = max(fits, key=lambda fit: fit.objective)
        if fold == 0:
            tuned, best = _tuned(tuned, best, split.held_out, limits)
        total += held_out_rows(split.held_out, best.mixture.theta, best.mixture.beta_rows.T)
    return total


def _tuned(problem: Problem, fit: Fit, held_out: Counts, limits: Limits) -> tuple[Problem, Fit]:
    """Return the priors from which no step along either grid predicts better, and the fit under them."""

    def score_of(mixture: Mixture) -> float:
        return held_out_score(held_out, mixture.theta, mixture.beta_rows.T)

    score, is_rising = score_of(fit.mixture), True
    while is_rising:
        is_rising = False
        for neighbour in _neighbours(problem):
            rival = Runner()(neighbour, fit.mixture, limits)  # from a fit to the same counts
            if (rival_score := score_of(rival.mixture)) > score:
                problem, fit, score, is_rising = neighbour, rival, rival_score, True
                break
    return problem, fit


def _neighbours(problem: Problem) -> Iterator[Problem]:
    """Yield the problem with one prior a step up or down its grid, the smoothing first."""
    for smoothing in _beside(problem.smoothing, SMOOTHINGS):
        yield problem._replace(smoothing=smoothing)
    for row_prior in _beside(problem.row_prior, GRID):
        yield problem._replace(row_prior=row_prior)


def _beside(value: float, grid: Sequence[float]) -> list[float]:
    """Return the next larger and the next smaller value of a grid, where there are such."""
    return [x for x in grid if x > value][:1] + [x for x in grid if x < value][-1:]
