"""The prior of the rows' topic shares, chosen by what it predicts.

Rows that mix all topics want a strong prior, texts about one thing a weak one, and the topics are the better the better
it fits. The likelihood of the fitted counts cannot tell (it prefers the weakest), nor can an estimate from the fitted
shares, which are overfitted already; counts that were held out can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.topics.em import SMOOTHING, Limits, Mixture, Problem, Runner, random_mixture
from mmpca.topics.splits import held_out_score, split_counts

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
N_INIT = 3
SEARCH = Limits(max_passes=200, tol=1e-4)  # enough to compare priors: the fit that follows goes on


class PriorChoice(NamedTuple):
    """A row prior, how it and its rivals did, and what was fitted with it to the counts that were kept."""

    row_prior: float
    score: float  # of the mixture: the highest
    scores: dict[float, float]  # held-out score of each prior that was tried, from the first start
    mixture: Mixture


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
    split = split_counts(rows, rng)
    is_present = rows.column_totals() > 0 if is_present is None else is_present
    problem = Problem(split.kept, is_present, grid[0], smoothing)
    run = Runner() if run is None else run

    def attempt(row_prior: float, start: Mixture) -> tuple[float, Mixture]:
        mixture = run(problem._replace(row_prior=row_prior), start, limits).mixture
        return held_out_score(split.held_out, mixture.theta, mixture.beta_rows.T), mixture

    position = len(grid) // 2
    score, mixture = attempt(grid[position], random_mixture(problem, n_topics, rng))
    scores = {grid[position]: score}
    for way in (1, -1):
        while 0 <= position + way < len(grid) and not run.is_stopped:
            new_score, new_mixture = attempt(grid[position + way], mixture)
            scores[grid[position + way]] = new_score
            if new_score <= score:
                break
            position, score, mixture = position + way, new_score, new_mixture
        if len(scores) > 2:  # it went up: what is below was passed already
            break
    for _ in range(n_init - 1):
        if run.is_stopped:
            break
        new_score, new_mixture = attempt(grid[position], random_mixture(problem, n_topics, rng))
        if new_score > score:
            score, mixture = new_score, new_mixture
    return PriorChoice(grid[position], score, scores, mixture)
