"""The prior of the rows' topic shares, chosen by what it predicts.

Rows that mix all topics want a strong prior, texts about one thing a weak one, and the topics are the better the better
it fits. The likelihood of the fitted counts cannot tell (it prefers the weakest), nor can an estimate from the fitted
shares, which are overfitted already; counts that were held out can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.topics.em import SMOOTHING, Limits, Mixture, Problem, Runner, random_mixture
from mmpca.topics.splits import held_out_score, split_counts

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Where kinds of rows are many, random starts end in topics of very different worth, and one in six may be good. So on
# small data there are more of them, until three have ended where the best did.
LEAST_STARTS, MOST_STARTS, AGREEING = 3, 20, 3
SAME_OBJECTIVE = 3.0  # nats: less is no difference
START_EFFORT = 600_000_000  # entries times topics times passes after which no further start begins: two seconds
SEARCH = Limits(max_passes=200, tol=1e-4)  # enough to compare priors: the fit that follows goes on


class Attempt(NamedTuple):
    """What was fitted to the counts that were kept, and how likely it makes the others."""

    row_prior: float
    score: float
    mixture: Mixture
    objective: float


class PriorChoice(NamedTuple):
    """The best start at the best prior, and how the first one did under each prior that was tried."""

    row_prior: float
    score: float  # mean log-likelihood of a held-out count: also to compare numbers of topics
    mixture: Mixture
    objective: float  # that EM reached on the counts that were kept
    scores: dict[float, float]


def choose_row_prior(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    grid: Sequence[float] = GRID,
    smoothing: float = SMOOTHING,
    n_init: int | Literal["auto"] = "auto",
    is_present: NDArray[np.bool_] | None = None,
    limits: Limits = SEARCH,
    run: Runner | None = None,
) -> PriorChoice:
    """Return the row prior of the grid under which held-out counts are the most likely.

    From the middle of the grid the search goes up as long as the score rises, or else down; each fit starts
    from its neighbour's. At the prior that was best, further random starts compete: the one with the highest objective
    is kept, which tells maxima of EM apart more clearly than held-out counts do, and these decide between equals.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    rng : Generator
        Splits the counts and draws the starts.
    grid : sequence of float
        Ascending.
    smoothing : float
    n_init : int or "auto"
        Random starts, of which one serves to walk along the grid. "auto" makes three, and on small data up to
        twenty, until three have ended where the best did.
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
        mixture, objective, *_ = run(problem._replace(row_prior=row_prior), start, limits)
        score = held_out_score(split.held_out, mixture.theta, mixture.beta_rows.T)
        return Attempt(row_prior, score, mixture, objective)

    tried = _walk(grid, random_mixture(problem, n_topics, rng), attempt, run)
    best = max(tried, key=lambda one: one.score)  # the first of equals
    ended, n_before = [best], run.n_passes
    while not run.is_stopped:
        effort = (run.n_passes - n_before) * split.kept.nnz * n_topics
        if _is_enough([one.objective for one in ended], n_init, effort):
            break
        ended.append(attempt(best.row_prior, random_mixture(problem, n_topics, rng)))
    highest = max(one.objective for one in ended)
    equals = [one for one in ended if one.objective >= highest - SAME_OBJECTIVE]
    return PriorChoice(*max(equals, key=lambda one: one.score), {one.row_prior: one.score for one in tried})


def _is_enough(objectives: Sequence[float], n_init: int | Literal["auto"], effort: int) -> bool:
    """Tell whether starts that ended at these objectives, after so much work, are enough."""
    if not isinstance(n_init, str):
        return len(objectives) >= n_init
    if len(objectives) < LEAST_STARTS:
        return False
    n_equal = sum(value >= max(objectives) - SAME_OBJECTIVE for value in objectives)
    return n_equal >= AGREEING or len(objectives) >= MOST_STARTS or effort >= START_EFFORT


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
