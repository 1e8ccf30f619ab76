"""Latent Dirichlet allocation of the rows, with a row prior chosen from the data.

A strong row prior suits rows that mix all topics, a weak one texts about a single thing; a wrong one makes the topics
wrong. The likelihood of the fitted counts cannot choose it (it prefers the weakest), and neither can an estimate from
the fitted shares, which are overfitted already. Held-out counts can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import (
    EXACT_BITS,
    SERIAL,
    LocalRows,
    RowBackend,
    Rows,
    Threads,
    column_totals,
    even_slices,
    map_rows,
    row_entries,
    slices_of,
)
from mmpca.counts import Counts
from mmpca.monitor import Monitor
from mmpca.topics import kernels
from mmpca.topics.em import SMOOTHING, Array, EMFit, Mixture, Problem, fitted_shares, random_mixture, run_em, topics_of
from mmpca.topics.spectral import grouped_counts
from mmpca.topics.thinning import count_folds, held_out_rows, held_out_score, split_counts

ROW_PRIORS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SMOOTHINGS = (SMOOTHING, 3 * SMOOTHING, 10 * SMOOTHING, 30 * SMOOTHING, 100 * SMOOTHING)
MAX_PASSES, TOL = 1000, 1e-5  # of the final run of EM
SEARCH_PASSES, SEARCH_TOL = 200, 1e-4  # accurate enough to compare priors
# If the rows are of many kinds, random starts end in topics of very different quality, and only one in six may be good.
# Small data therefore get more starts, until three of them have reached the same objective.
LEAST_STARTS, MOST_STARTS, N_AGREEING = 3, 20, 3
SAME_OBJECTIVE = 3.0  # nats
TRIAL_PASSES = 9  # over a sample, before it must have improved the score
REFINING_PASSES, GROUPED_PASSES = 3, 5  # over all rows, after EM on a sample or starting from groups of rows
FOLD_STARTS = 2
SCALE_BITS = 20  # expected counts are rounded to multiples of 2**-20, to make their sums exact in any order


class Budget(NamedTuple):
    """Limits on the work for large data, counted in entries times topics: about 300 million a second."""

    search_work: int = 2_000_000  # per pass, to choose the prior
    search_cover: int = 25  # least number of entries per feature there: thinner data prefer too strong a prior
    search_effort: int = 400_000_000  # of all passes of a run, to choose the prior
    start_effort: int = 600_000_000  # after which no further start begins
    final_work: int = 40_000_000  # per pass, to fit the topics
    final_effort: int = 2_000_000_000  # of all these passes: large data stop before EM has converged
    least_passes: int = 60  # whatever the effort
    least_search_passes: int = 30  # the same, to choose the prior
    grouped_entries: int = 40_000_000  # of the rows whose main directions are computed
    refined_entries: int = 2**20  # of the rows whose shares are in memory at a time


BUDGET = Budget()


class LDAFit(NamedTuple):
    """Topics, and how they were found."""

    beta: Array  # (K, V), rows sum to one; zero for features that never occur
    row_prior: float
    score: float  # mean log-likelihood of a held-out count
    scores: dict[float, float]  # the same for each row prior that was tried, from the first start
    n_passes: int  # over all runs
    converged: bool  # whether the last run converged


class _Options(NamedTuple):
    """Parameters of a fit, for the functions that run on the backend of the rows."""

    n_topics: int
    is_present: NDArray[np.bool_]  # (V,)
    grid: tuple[float, ...]
    smoothing: float
    n_init: int | Literal["auto"]
    max_passes: int
    tol: float
    budget: Budget


def fit_lda(
    rows: Counts | RowBackend,
    n_topics: int,
    *,
    rng: np.random.Generator,
    row_prior: float | Literal["auto"] = "auto",
    smoothing: float = SMOOTHING,
    n_init: int | Literal["auto"] = "auto",
    max_passes: int = MAX_PASSES,
    tol: float = TOL,
    monitor: Monitor | None = None,
    budget: Budget = BUDGET,
) -> LDAFit:
    """Fit topics to rows.

    The row prior and the best of several starts are found on four fifths of the counts and scored on the others; then
    EM runs on all counts. For large data, the prior is chosen on a random sample of the rows, the topics are fitted to
    a larger sample, and a few passes over all rows refine them. If the first sample has at most half of the rows, the
    topics start from groups of rows that are close to each other in the main directions of all rows, which show topics
    that no random start on a sample finds.

    Parameters
    ----------
    rows : Counts of shape (N, V) or RowBackend
        Samples of the rows of a backend are collected in one process; passes over all rows run on its blocks. The
        result does not depend on the number of threads.
    n_topics : int
    rng : Generator
        Draws starts, splits and samples.
    row_prior : float or "auto"
        Symmetric Dirichlet prior of the rows' shares, in pseudo-tokens per topic.
    smoothing : float
        Symmetric Dirichlet prior of the topics, in pseudo-tokens per feature.
    n_init : int or "auto"
        Random starts; the one with the highest objective is kept. "auto": see :func:`choose_row_prior`.
    max_passes, tol : int, float
        A run ends after this many passes, or when a pass changes the topics by less than `tol` in mean total variation.
    monitor : Monitor, optional
        Receives the progress as stage "topics"; if it is stopped, the topics found so far are returned.
    budget : Budget
        Limits on the work for large data.

    Returns
    -------
    LDAFit

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.simulate import paper_design
    >>> from mmpca.topics import fit_lda
    >>> rows = as_counts(paper_design(n_samples=100, random_state=0).X)
    >>> fit = fit_lda(rows, 4, rng=np.random.default_rng(0))
    >>> fit.beta.shape == (4, rows.n_features)
    True
    """
    backend: RowBackend = LocalRows(rows) if isinstance(rows, Counts) else rows
    monitor = Monitor() if monitor is None else monitor
    every = np.arange(backend.n_rows)
    n_entries = map_rows(backend, row_entries, every)  # (N,)
    totals = backend.map_reduce(column_totals, every)  # (V,)
    grid = ROW_PRIORS if isinstance(row_prior, str) else (float(row_prior),)
    options = _Options(n_topics, totals > 0, grid, smoothing, n_init, max_passes, tol, budget)
    n_search = max(budget.search_work // n_topics, budget.search_cover * int(options.is_present.sum()))
    some = sample_rows(n_entries, n_search, rng)
    # Other processes have neither these threads nor the callback.
    run = (backend.threads if isinstance(backend, LocalRows) else SERIAL, monitor)
    if n_topics > 1 and backend.n_rows >= 2 * len(some):
        grouped = _fit_groups(backend, some, n_entries, totals, options, rng, run)
        if grouped is not None:
            return _refine(backend, grouped, GROUPED_PASSES, int(totals.max()), options, monitor)
    monitor.begin("topics", "topics: choosing the row prior")
    choice, rng = backend.apply(_choose, some, options, rng, *run)  # a worker advances a copy of the generator
    beta = np.ascontiguousarray(choice.mixture.beta_rows.T)
    fit = LDAFit(beta, choice.row_prior, choice.score, choice.scores, choice.n_passes, converged=False)
    if len(some) == backend.n_rows:
        monitor.begin("topics", "topics: fitting")
        small: LDAFit = backend.apply(_continue, some, fit, choice.mixture.theta, options, max_passes, *run)
        return small
    sample = sample_rows(n_entries, budget.final_work // n_topics, rng)
    fit = _fit_sample(backend, sample, n_entries, fit, options, max_passes, run)
    if len(sample) == backend.n_rows:
        return fit
    return _refine(backend, fit, REFINING_PASSES, int(totals.max()), options, monitor)


def sample_rows(n_entries: NDArray[np.int64], limit: int, rng: np.random.Generator) -> Rows:
    """Return all rows, or a random sample with at most `limit` entries in total but at least one row; sorted.

    `n_entries` is the number of entries of each row, shape (N,).
    """
    if n_entries.sum() <= limit:
        return np.arange(len(n_entries))
    order = rng.permutation(len(n_entries))
    n_taken = int(np.searchsorted(np.cumsum(n_entries[order]), limit, side="right"))
    return np.sort(order[: max(1, n_taken)])


def affordable_passes(max_passes: int, work: int, effort: int, least: int = BUDGET.least_passes) -> int:
    """Return the number of passes of the given work that the effort allows, within `least` and `max_passes`."""
    return min(max_passes, max(least, effort // work))


def _choose(
    rows: Counts, options: _Options, rng: np.random.Generator, threads: Threads, monitor: Monitor
) -> tuple[PriorChoice, np.random.Generator]:
    """Choose the row prior; return the generator as well."""
    n_passes, work = min(SEARCH_PASSES, options.max_passes), rows.nnz * options.n_topics
    choice = choose_row_prior(
        rows,
        options.n_topics,
        rng=rng,
        grid=options.grid,
        smoothing=options.smoothing,
        n_init=options.n_init,
        is_present=options.is_present,
        max_passes=affordable_passes(n_passes, work, options.budget.search_effort, options.budget.least_search_passes),
        tol=max(SEARCH_TOL, options.tol),
        start_effort=options.budget.start_effort,
        threads=threads,
        monitor=monitor,
    )
    return choice, rng


def _continue(
    rows: Counts,
    fit: LDAFit,
    theta: Array | None,
    options: _Options,
    max_passes: int,
    threads: Threads,
    monitor: Monitor,
) -> LDAFit:
    """Continue from given topics by EM; without shares, fit these first."""
    beta_rows = np.ascontiguousarray(fit.beta.T)
    if theta is None:
        theta = fitted_shares(rows, beta_rows, fit.row_prior, threads=threads)
    problem = Problem(rows, options.is_present, fit.row_prior, options.smoothing)
    start = Mixture(theta, beta_rows)
    found = run_em(problem, start, max_passes=max_passes, tol=options.tol, threads=threads, monitor=monitor)
    beta = np.ascontiguousarray(found.mixture.beta_rows.T)
    return fit._replace(beta=beta, n_passes=fit.n_passes + found.n_passes, converged=found.converged)


# --- large data -------------------------------------------------------------------------------------------------


def _fit_sample(
    backend: RowBackend,
    sample: Rows,
    n_entries: NDArray[np.int64],
    fit: LDAFit,
    options: _Options,
    max_passes: int,
    run: tuple[Threads, Monitor],
) -> LDAFit:
    """Continue from given topics on a sample, as far as the budget allows."""
    work, budget = int(n_entries[sample].sum()) * options.n_topics, options.budget
    n_passes = affordable_passes(max_passes, work, budget.final_effort, budget.least_passes)
    # EM usually converges before `max_passes`, but not before a number that the budget has lowered.
    run[1].begin("topics", "topics: fitting a sample", n_passes if n_passes < options.max_passes else 0)
    found: LDAFit = backend.apply(_continue, sample, fit, None, options, n_passes, *run)
    return found


def _fit_groups(
    backend: RowBackend,
    some: Rows,
    n_entries: NDArray[np.int64],
    totals: Array,
    options: _Options,
    rng: np.random.Generator,
    run: tuple[Threads, Monitor],
) -> LDAFit | None:
    """Return topics that start from the main directions of the other rows, or None if these show nothing.

    The criterion is the likelihood of held-out counts of `some` rows, which the topics have not seen: they must
    predict better than the frequencies of the features. EM on a sample continues only as long as it improves the score:
    a few passes show whether it learns the topics or merely its own sample.
    """
    n_topics, budget = options.n_topics, options.budget
    others = np.delete(np.arange(backend.n_rows), some)
    among = others[sample_rows(n_entries[others], budget.grouped_entries, rng)]
    counts = grouped_counts(backend, among, totals, n_topics, rng, run[1])  # (V, K)
    seed = int(rng.integers(2**63))

    def scores(beta_rows: Array, grid: tuple[float, ...]) -> dict[float, float]:
        found: dict[float, float] = backend.apply(scores_of_topics, some, beta_rows, grid, seed, run[0])
        return found

    run[1].begin("topics", "topics: choosing the row prior")
    beta_rows = topics_of(counts, options.is_present, options.smoothing)
    by_prior = scores(beta_rows, options.grid)
    row_prior = max(by_prior, key=lambda prior: by_prior[prior])
    frequencies = topics_of(counts.sum(axis=1, keepdims=True), options.is_present, options.smoothing)  # (V, 1)
    if not by_prior[row_prior] > scores(frequencies, (1.0,))[1.0]:
        return None
    fit = LDAFit(np.ascontiguousarray(beta_rows.T), row_prior, by_prior[row_prior], by_prior, 0, converged=False)
    sample = others[sample_rows(n_entries[others], budget.final_work // n_topics, rng)]
    n_trial = min(TRIAL_PASSES, options.max_passes)
    for n_passes in (n_trial, options.max_passes - n_trial):
        if n_passes == 0 or fit.converged or run[1].is_stopped:
            break
        longer = _fit_sample(backend, sample, n_entries, fit, options, n_passes, run)
        score = scores(np.ascontiguousarray(longer.beta.T), (row_prior,))[row_prior]
        if not score > fit.score:
            break
        fit = longer._replace(score=score)
    return fit


def scores_of_topics(
    rows: Counts, beta_rows: Array, grid: tuple[float, ...], seed: int, threads: Threads
) -> dict[float, float]:
    """Return the held-out score, for each row prior, of topics that were fitted to other rows."""
    split = split_counts(rows, np.random.default_rng(seed))
    shares = {prior: fitted_shares(split.kept, beta_rows, prior, threads=threads) for prior in grid}
    return {prior: held_out_score(split.held_out, theta, beta_rows.T) for prior, theta in shares.items()}


def _refine(
    backend: RowBackend, fit: LDAFit, n_passes: int, largest_total: int, options: _Options, monitor: Monitor
) -> LDAFit:
    """Improve the topics by a few passes of EM over all rows."""
    beta_rows, every = np.ascontiguousarray(fit.beta.T), np.arange(backend.n_rows)
    scale = float(2.0 ** min(SCALE_BITS, EXACT_BITS - largest_total.bit_length()))  # all sums stay exact
    shared = (fit.row_prior, scale, options.budget.refined_entries, monitor)
    monitor.begin("topics", "topics: refining on all rows", n_passes * backend.n_rows)
    for _ in range(n_passes):
        if monitor.is_stopped:
            break
        counts = backend.map_reduce(expected_topics, every, shared=(beta_rows, *shared))
        beta_rows = topics_of(counts / scale, options.is_present, options.smoothing)
    return fit._replace(beta=np.ascontiguousarray(beta_rows.T))


def expected_topics(
    block: Counts,
    rows: Rows,
    beta_rows: Array,
    row_prior: float,
    scale: float,
    n_entries: int,
    monitor: Monitor,
    threads: Threads,
) -> Array:
    """Return the expected counts of features in topics, (V, K), times `scale` and rounded, over some rows of a block.

    Shares are in memory for about `n_entries` entries at a time.
    """
    selected = block.take(rows)

    def add(part: slice, counts: Array) -> None:
        stretch = selected.take(part)
        for at in even_slices(stretch.indptr, -(-stretch.nnz // n_entries)):
            theta = fitted_shares(stretch.take(at), beta_rows, row_prior)
            kernels.gather_topics(stretch, at.start, at.stop, theta, beta_rows, scale, counts)
            monitor.step(at.stop - at.start)

    return threads.sum_slices(add, slices_of(selected), beta_rows.shape)


# --- the row prior ----------------------------------------------------------------------------------------------


class PriorChoice(NamedTuple):
    """The best start at the best prior, and how well the first start did under each prior that was tried."""

    row_prior: float
    score: float  # mean log-likelihood of a held-out count: also comparable between numbers of topics
    mixture: Mixture
    objective: float  # of EM, on the counts that were kept
    n_passes: int  # of all runs
    scores: dict[float, float]


def choose_row_prior(
    rows: Counts,
    n_topics: int,
    *,
    rng: np.random.Generator,
    grid: Sequence[float] = ROW_PRIORS,
    smoothing: float = SMOOTHING,
    n_init: int | Literal["auto"] = "auto",
    is_present: NDArray[np.bool_] | None = None,
    max_passes: int = SEARCH_PASSES,
    tol: float = SEARCH_TOL,
    same_objective: float = SAME_OBJECTIVE,
    start_effort: int = BUDGET.start_effort,
    threads: Threads = SERIAL,
    monitor: Monitor | None = None,
) -> PriorChoice:
    """Choose the row prior that makes held-out counts most likely.

    The search starts in the middle of the grid, or lower if the prior would outweigh the counts of a row there, and
    goes up as long as the score rises, or else down; each fit starts from its neighbor's. At the best prior, further
    random starts compete, and the one with the highest objective is kept: the objective separates the maxima of EM more
    clearly than held-out counts do, which only break ties.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    rng : Generator
        Splits the counts and draws the starts.
    grid : sequence of float
        Row priors, ascending.
    smoothing : float
        Symmetric Dirichlet prior of the topics, in pseudo-tokens per feature.
    n_init : int or "auto"
        Random starts, including the one that searches the grid. "auto" makes three, and on small data up to twenty,
        until three have reached the same objective as the best.
    is_present : array of bool, shape (V,), optional
        Features with positive probability in the topics; by default those that occur.
    max_passes, tol : int, float
        A run ends after this many passes, or when a pass changes the topics by less than `tol` in mean total variation.
    same_objective : float
        Differences below this many nats are ties.
    start_effort : int
        With "auto", no further start after those that took more than this many entries times topics times passes; there
        are at least two.
    threads : Threads
        The result does not depend on them.
    monitor : Monitor, optional
        Receives each pass as a step; if it is stopped, the best choice so far is returned.

    Returns
    -------
    PriorChoice

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.simulate import paper_design
    >>> from mmpca.topics import choose_row_prior
    >>> rows = as_counts(paper_design(n_samples=100, random_state=0).X)
    >>> choose_row_prior(rows, 4, rng=np.random.default_rng(0)).row_prior
    30.0
    """
    monitor = Monitor() if monitor is None else monitor
    split = split_counts(rows, rng)
    is_present = rows.column_totals() > 0 if is_present is None else is_present
    problem = Problem(split.kept, is_present, grid[0], smoothing)

    def attempt(row_prior: float, start: Mixture) -> PriorChoice:
        under = problem._replace(row_prior=row_prior)
        fit = run_em(under, start, max_passes=max_passes, tol=tol, threads=threads, monitor=monitor)
        score = held_out_score(split.held_out, fit.mixture.theta, fit.mixture.beta_rows.T)
        return PriorChoice(row_prior, score, fit.mixture, fit.objective, fit.n_passes, {})

    mean_length = rows.data.sum() / rows.n_rows
    middle = min(len(grid) // 2, int(np.searchsorted(grid, mean_length / n_topics)))
    tried = [attempt(grid[middle], random_mixture(problem, n_topics, rng))]
    for direction in (grid[middle + 1 :], grid[:middle][::-1]):
        best = tried[0]
        for row_prior in direction:
            if monitor.is_stopped:
                break
            tried.append(attempt(row_prior, best.mixture))
            if tried[-1].score <= best.score:
                break
            best = tried[-1]
        if best is not tried[0]:  # the score rose on the way up: lower priors need not be tried
            break
    best = max(tried, key=lambda one: one.score)  # the first, if there are ties
    ends = [best]
    while not monitor.is_stopped:
        effort = sum(one.n_passes for one in ends[1:]) * split.kept.nnz * n_topics
        if _are_enough([one.objective for one in ends], n_init, same_objective, is_expensive=effort >= start_effort):
            break
        ends.append(attempt(best.row_prior, random_mixture(problem, n_topics, rng)))
    highest = max(one.objective for one in ends)
    best = max((one for one in ends if one.objective >= highest - same_objective), key=lambda one: one.score)
    n_passes = sum(one.n_passes for one in tried + ends[1:])
    return best._replace(n_passes=n_passes, scores={one.row_prior: one.score for one in tried})


def _are_enough(
    objectives: Sequence[float], n_init: int | Literal["auto"], same_objective: float, *, is_expensive: bool
) -> bool:
    """Return True if the starts that reached these objectives are enough."""
    if not isinstance(n_init, str):
        return len(objectives) >= n_init
    if len(objectives) < LEAST_STARTS - is_expensive:
        return False
    n_equal = sum(value >= max(objectives) - same_objective for value in objectives)
    return n_equal >= N_AGREEING or len(objectives) >= MOST_STARTS or is_expensive


# --- cross-validation over single counts ------------------------------------------------------------------------


def predicted_rows(
    rows: Counts,
    n_topics: int,
    row_prior: float,
    *,
    n_folds: int,
    folds_rng: np.random.Generator,
    starts_rng: np.random.Generator,
    max_passes: int = SEARCH_PASSES,
    tol: float = SEARCH_TOL,
    n_init: int = FOLD_STARTS,
) -> Array:
    """Return the cross-validated log-likelihood of each row, (N,): each count is predicted by a fit to the other folds.

    Every count is predicted once, so the sum needs no scaling. All starts are random, because a start from a fit to all
    counts would have seen the counts to predict. The row prior and the smoothing are those that predict the first
    fold best: with a fixed smoothing, sparse data would favor more topics merely because more topics are smoother
    together.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_topics : int
    row_prior : float
        First value to try.
    n_folds : int
        At least 2.
    folds_rng, starts_rng : Generator
        Two generators, so that different numbers of topics can share the same folds and be compared row by row.
    max_passes, tol : int, float
        Limits of each run of EM.
    n_init : int
        Random starts per fold; the one with the highest objective is kept.

    Returns
    -------
    scores : array of shape (N,)
    """

    def fit(problem: Problem, start: Mixture) -> EMFit:
        return run_em(problem, start, max_passes=max_passes, tol=tol)

    total, problem = np.zeros(rows.n_rows), Problem(rows, rows.column_totals() > 0, row_prior, SMOOTHING)
    for fold, (kept, held_out) in enumerate(count_folds(rows, n_folds, folds_rng)):
        problem = problem._replace(rows=kept)
        fits = [fit(problem, random_mixture(problem, n_topics, starts_rng)) for _ in range(n_init)]
        mixture = max(fits, key=lambda one: one.objective).mixture
        by_row = held_out_rows(held_out, mixture.theta, mixture.beta_rows.T)
        is_rising = fold == 0
        while is_rising:  # move to the first neighboring pair of priors that predicts better
            is_rising = False
            for neighbor in _neighbors(problem):
                other = fit(neighbor, mixture).mixture
                other_by_row = held_out_rows(held_out, other.theta, other.beta_rows.T)
                if other_by_row.sum() > by_row.sum():
                    problem, mixture, by_row, is_rising = neighbor, other, other_by_row, True
                    break
        total += by_row
    return total


def _neighbors(problem: Problem) -> Iterator[Problem]:
    """Yield the problem with one prior a step up or down its grid, the smoothing first."""

    def beside(value: float, grid: Sequence[float]) -> list[float]:
        return [x for x in grid if x > value][:1] + [x for x in grid if x < value][-1:]

    for smoothing in beside(problem.smoothing, SMOOTHINGS):
        yield problem._replace(smoothing=smoothing)
    for row_prior in beside(problem.row_prior, ROW_PRIORS):
        yield problem._replace(row_prior=row_prior)
