"""The prior of the rows' topic shares, chosen by what it predicts.

Rows that mix all topics want a strong prior, texts about one thing a weak one, and the topics are the better the better
it fits. The likelihood of the fitted counts cannot tell (it prefers the weakest), nor can an estimate from the fitted
shares, which are overfitted already; counts that were held out can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.topics.em import SMOOTHING, Limits, Mixture, Problem, Runner, random_mixture
from mmpca.topics.splits import held_out_score, split_counts

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
N_INIT = 3
SEARCH = Limits(max_passes=200, tol=1e-4)  # enough to compare priors: the fit that follows goes on


class Attempt(NamedTuple):
    """What was fitted to the counts that were kept, and how likely it makes the others."""

    row_prior: float
    score: float
    mixture: Mixture


class PriorChoice(NamedTuple):
    """The best attempt, and how the first start did under each prior that was tried."""

    row_prior: float
    score: float  # mean log-likelihood of a held-out count: also to compare numbers of topics
    mixture: Mixture
    scores: dict[float, float]


def choose_row_prior(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    grid: Sequence[float] = GRID,
    smoothing: float = SMOOTHING,
    n_init: int = N_INIT,
    is_present: NDArray[np.bool_] | None = None,
    limits: Limits = SEARCH,
    run: Runner | None = None,
) -> PriorChoice:
    """Return the row prior of the grid under which held-out counts are the most likely.

    From the middle of the grid the search goes up as long as the score rises, or else down; each fit starts
    from its neighbour's. At the prior that was best, further random starts compete.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    rng : Generator
        Splits the counts and draws the starts.
    grid : sequence of float
        Ascending.
    smoothing : float
    n_init : int
        Random starts, of which one serves to walk along the grid.
    is_present : array of shape (V,), optional
        Features that topics may hold; by default those that occur.
    limits : Limits
        Of each single run.
    run : Runner, optional
        Brings threads and a callback.
    """
    run = Runner() if run is None else run
    split = split_counts(rows, rng)
    is_present = rows.column_totals() > 0 if is_present is None else is_present
    problem = Problem(split.kept, is_present, grid[0], smoothing)

    def attempt(row_prior: float, start: Mixture) -> Attempt:
        mixture = run(problem._replace(row_prior=row_prior), start, limits).mixture
        return Attempt(row_prior, held_out_score(split.held_out, mixture.theta, mixture.beta_rows.T), mixture)

    tried = _walk(grid, random_mixture(problem, n_topics, rng), attempt, run)
    best = max(tried, key=lambda one: one.score)  # the first of equals
    for _ in range(n_init - 1):
        if not run.is_stopped:
            rival = attempt(best.row_prior, random_mixture(problem, n_topics, rng))
            best = max(best, rival, key=lambda one: one.score)
    return PriorChoice(*best, {one.row_prior: one.score for one in tried})


def _walk(
    grid: Sequence[float], start: Mixture, attempt: Callable[[float, Mixture], Attempt], run: Runner
) -> list[Attempt]:
    """Return what was tried along the grid: up from its middle while the score rises, or else down."""
    middle = len(grid) // 2
    tried = [attempt(grid[middle], start)]
    for way in (grid[middle + 1 :], grid[:middle][::-1]):
        best = tried[0]
        for row_prior in way:
            if run.is_stopped:
                return tried
            tried.append(attempt(row_prior, best.mixture))
            if tried[-1].score <= best.score:
                break
            best = tried[-1]
        if best is not tried[0]:  # on the way up it got better: what is below was passed already
            break
    return tried
