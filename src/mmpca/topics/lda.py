"""Topics from a latent Dirichlet allocation of the rows, its row prior chosen from the data."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts, no_rows
from mmpca.places import (
    EXACT_BITS,
    ForRows,
    Here,
    Place,
    Rows,
    column_totals,
    even_pieces,
    in_threads,
    joined,
    pieces_of,
    row_entries,
    summed,
    threads,
)
from mmpca.stages import QUIET, Stages
from mmpca.topics import costs
from mmpca.topics.em import (
    SMOOTHING,
    Array,
    Callback,
    Limits,
    Mixture,
    Problem,
    Runner,
    fitted_shares,
    topics_of,
)
from mmpca.topics.prior import GRID, SEARCH, PriorChoice, choose_row_prior
from mmpca.topics.spectral import grouped_counts
from mmpca.topics.splits import held_out_score, split_counts

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
TRIAL_PASSES = 9  # after which a sample has to show that it is of use
GROUPED_ENTRIES = 40_000_000  # of the rows whose main directions are looked for
REFINING_PASSES, GROUPED_PASSES = 3, 5  # over all rows, after a fit of some or from groups of rows
REFINED_ENTRIES = 2**20  # of the rows whose shares are held at a time
CHOOSING = ("topics: choosing a prior, pass {step}", costs.USUAL_SEARCH)
SCALE_BITS = 20  # of expected counts, which are rounded so that their sums are exact in any order


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
    stages: Stages = QUIET,
) -> Array:
    """Return topics (K, V) that mix to the rows, each row having shares of its own; see :func:`fit_lda`."""
    return fit_lda(
        rows, n_topics, rng=rng, row_prior=row_prior, smoothing=smoothing, n_init=n_init, max_passes=max_passes,
        tol=tol, n_threads=n_threads, callback=callback, stages=stages,
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
    stages: Stages = QUIET,
) -> LDAFit:
    """Fit topics to rows.

    The prior and the best of several starts are found on four fifths of the counts, scored on the others; from there,
    EM runs on all counts. Of large data, the prior is chosen on as many random rows as keep a pass within
    `SEARCH_WORK` or have `SEARCH_COVER` entries a feature; the topics are fitted on as many as keep it within
    `FINAL_WORK`, in no more passes than `FINAL_EFFORT` affords, and refined by a few passes over all rows. Where there
    are twice as many rows as the prior is chosen on, the topics start from groups of rows that are alike in the main
    directions of up to `GROUPED_ENTRIES` entries, which show topics that no random start on a sample finds.

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
    stages : Stages
        Told how far it is.
    """
    settings = Settings(row_prior, smoothing, n_init, max_passes, tol)
    return fit_lda_at(
        Here(rows), n_topics, rng=rng, settings=settings, n_threads=n_threads, callback=callback, stages=stages
    )


class Settings(NamedTuple):
    """Parameters of :func:`fit_lda`."""

    row_prior: float | Literal["auto"] = "auto"
    smoothing: float = SMOOTHING
    n_init: int | Literal["auto"] = "auto"
    max_passes: int = FINAL.max_passes
    tol: float = FINAL.tol


def fit_lda_at(
    place: Place,
    n_topics: int,
    *,
    rng: np.random.Generator,
    settings: Settings | None = None,
    n_threads: int = 1,
    callback: Callback | None = None,
    stages: Stages = QUIET,
) -> LDAFit:
    """Fit topics to rows wherever they are; see :func:`fit_lda`.

    What is fitted to a part of the rows is fitted in one place; the last passes over all rows are made where these are.
    Threads and the callback are for rows in this process.
    """
    with threads(n_threads) as pool:
        # Runs elsewhere have neither threads nor anybody to tell; stages know that they were sent.
        for_rows = in_threads(pool)
        run = Runner(for_rows, callback, stages) if place.is_here else Runner(stages=stages)
        return _fit_at(place.using(for_rows), n_topics, rng, settings or Settings(), run)


def _fit_at(place: Place, n_topics: int, rng: np.random.Generator, settings: Settings, run: Runner) -> LDAFit:
    every = np.arange(place.n_rows)
    entries = joined(place, row_entries, every)  # (N,)
    totals = place.total(column_totals, every)
    is_present = totals > 0
    some = sampled(entries, _search_entries(n_topics, is_present), rng)
    tried = _Tried(n_topics, is_present, settings, int(totals.max()))
    n_entries, n_scored = int(entries.sum()), int(entries[some].sum())
    if len(some) == place.n_rows:
        run.stages.expect(_of_whole(n_entries, tried))
        run.stages.begin("prior", *CHOOSING, is_sure=False)
        whole: LDAFit = place.together(_fit_whole, some, n_topics, is_present, settings, rng, run)
        return whole
    is_grouped = n_topics > 1 and place.n_rows >= 2 * len(some)
    run.stages.expect(_expected(n_entries, n_scored, tried, is_grouped=is_grouped))
    if is_grouped:
        grouped = _grouped(place, some, entries, totals, tried, rng, run)
        if grouped is not None:
            return grouped._replace(beta=_refined(place, grouped, tried, GROUPED_PASSES, run.stages))
        run.stages.expect(_expected(n_entries, n_scored, tried, is_grouped=False))
    run.stages.begin("prior", *CHOOSING, is_sure=False)
    first, rng = place.together(_fit_first, some, tried, rng, run)  # that of the caller may be a copy elsewhere
    larger = sampled(entries, FINAL_WORK // n_topics, rng)
    _begin_sample(run.stages, int(entries[larger].sum()), tried)
    fit = place.together(_fit_sample, larger, first, tried, run)
    if len(larger) == place.n_rows:
        return fit
    return fit._replace(beta=_refined(place, fit, tried, REFINING_PASSES, run.stages))


class _Tried(NamedTuple):
    """What the fits of some rows have in common."""

    n_topics: int
    is_present: NDArray[np.bool_]  # (V,)
    settings: Settings
    largest_total: int  # of a feature

    @property
    def scale(self) -> float:
        """What expected counts are multiplied by before they are rounded: no sum of them is too large to be exact."""
        return float(2.0 ** min(SCALE_BITS, EXACT_BITS - self.largest_total.bit_length()))

    @property
    def grid(self) -> tuple[float, ...]:
        """Row priors to choose from."""
        return GRID if isinstance(self.settings.row_prior, str) else (float(self.settings.row_prior),)


def _fit_whole(
    rows: Counts,
    n_topics: int,
    is_present: NDArray[np.bool_],
    settings: Settings,
    rng: np.random.Generator,
    run: Runner,
) -> LDAFit:
    """Choose the row prior, and fit the topics."""
    choice = _choose(rows, _Tried(n_topics, is_present, settings, 1), rng, run)
    problem = Problem(rows, is_present, choice.row_prior, settings.smoothing)
    run.stages.begin("topics", "topics: pass {step}", costs.USUAL_PASSES, is_sure=False)
    fit = run(problem, choice.mixture, Limits(settings.max_passes, settings.tol))
    beta = np.ascontiguousarray(fit.mixture.beta_rows.T)
    return LDAFit(beta, choice.row_prior, choice.score, choice.scores, run.n_passes, fit.converged)


def _fit_first(
    rows: Counts, tried: _Tried, rng: np.random.Generator, run: Runner
) -> tuple[LDAFit, np.random.Generator]:
    """Choose the row prior on some rows; return the topics that came with it, and the generator as it was left."""
    choice = _choose(rows, tried, rng, run)
    beta = np.ascontiguousarray(choice.mixture.beta_rows.T)
    return LDAFit(beta, choice.row_prior, choice.score, choice.scores, run.n_passes, converged=False), rng


def _choose(rows: Counts, tried: _Tried, rng: np.random.Generator, run: Runner) -> PriorChoice:
    settings = tried.settings
    limits = Limits(min(SEARCH.max_passes, settings.max_passes), max(SEARCH.tol, settings.tol))
    return choose_row_prior(
        rows, tried.n_topics, rng=rng, grid=tried.grid, smoothing=settings.smoothing, n_init=settings.n_init,
        is_present=tried.is_present, limits=affordable(limits, rows.nnz * tried.n_topics, SEARCH_EFFORT), run=run,
    )  # fmt: skip


def _grouped(
    place: Place,
    some: Rows,
    entries: NDArray[np.int64],
    totals: Array,
    tried: _Tried,
    rng: np.random.Generator,
    run: Runner,
) -> LDAFit | None:
    """Return topics that start from the main directions of the other rows, if these show anything.

    What counts is how likely they make held-out counts of `some` rows, which they have not seen: they must do better
    than the features' frequencies. EM on a sample goes on from them as long as that does better still: a few passes
    show whether it learns the topics, or only its own sample.
    """
    others = np.delete(np.arange(place.n_rows), some)
    among = others[sampled(entries[others], GROUPED_ENTRIES, rng)]
    counts = grouped_counts(place, among, totals, tried.n_topics, rng, run.stages)
    problem = Problem(no_rows(place.n_features), tried.is_present, np.nan, tried.settings.smoothing)
    seed = int(rng.integers(2**63))

    def scores(beta_rows: Array, grid: tuple[float, ...]) -> dict[float, float]:
        found: dict[float, float] = place.together(_fixed_scores, some, beta_rows, grid, seed, run)
        return found

    run.stages.begin("scores", "topics: prior")
    beta_rows = topics_of(problem, counts)
    by_prior = scores(beta_rows, tried.grid)
    row_prior = max(by_prior, key=lambda prior: by_prior[prior])
    if not by_prior[row_prior] > scores(topics_of(problem, counts.sum(axis=1, keepdims=True)), (1.0,))[1.0]:
        return None
    fit = LDAFit(np.ascontiguousarray(beta_rows.T), row_prior, by_prior[row_prior], by_prior, 0, converged=False)
    sample = others[sampled(entries[others], FINAL_WORK // tried.n_topics, rng)]
    _begin_sample(run.stages, int(entries[sample].sum()), tried)
    n_trial = min(TRIAL_PASSES, tried.settings.max_passes)
    for n_passes in (n_trial, tried.settings.max_passes - n_trial):
        if n_passes == 0 or fit.converged or run.is_stopped:
            break
        limited = tried._replace(settings=tried.settings._replace(max_passes=n_passes))
        longer: LDAFit = place.together(_fit_sample, sample, fit, limited, run)
        score = scores(np.ascontiguousarray(longer.beta.T), (row_prior,))[row_prior]
        if not score > fit.score:
            break
        fit = longer._replace(score=score)
    return fit


def _fixed_scores(
    rows: Counts, beta_rows: Array, grid: tuple[float, ...], seed: int, run: Runner
) -> dict[float, float]:
    """Return the held-out score of topics that have not seen the rows under each row prior."""
    split = split_counts(rows, np.random.default_rng(seed))
    shares = {prior: fitted_shares(split.kept, beta_rows, prior, for_rows=run.for_rows) for prior in grid}
    return {prior: held_out_score(split.held_out, theta, beta_rows.T) for prior, theta in shares.items()}


def _fit_sample(rows: Counts, first: LDAFit, tried: _Tried, run: Runner) -> LDAFit:
    """Go on from given topics on as many rows as a pass may have."""
    n_before, settings = run.n_passes, tried.settings
    beta_rows = np.ascontiguousarray(first.beta.T)
    theta = fitted_shares(rows, beta_rows, first.row_prior, for_rows=run.for_rows)
    limits = _sample_limits(rows.nnz, tried)
    problem = Problem(rows, tried.is_present, first.row_prior, settings.smoothing)
    fit = run(problem, Mixture(theta, beta_rows), limits)
    beta = np.ascontiguousarray(fit.mixture.beta_rows.T)
    n_passes = first.n_passes + run.n_passes - n_before
    return first._replace(beta=beta, n_passes=n_passes, converged=fit.converged)


def _sample_limits(n_entries: int, tried: _Tried) -> Limits:
    """Return when EM on a sample ends."""
    limits = Limits(tried.settings.max_passes, tried.settings.tol)
    return affordable(limits, n_entries * tried.n_topics, FINAL_EFFORT)


def expected_costs(rows: Counts, n_topics: int) -> dict[str, float]:
    """Return what the stages of :func:`fit_lda` cost, before it begins, in the unit of `mmpca.topics.costs`."""
    tried = _Tried(n_topics, rows.column_totals() > 0, Settings(), 1)
    n_scored = _search_entries(n_topics, tried.is_present)
    if rows.nnz <= n_scored:
        return _of_whole(rows.nnz, tried)
    return _expected(rows.nnz, n_scored, tried, is_grouped=n_topics > 1 and rows.nnz >= 2 * n_scored)


def _search_entries(n_topics: int, is_present: NDArray[np.bool_]) -> int:
    """Return how many entries the rows have that choose the prior."""
    return max(SEARCH_WORK // n_topics, SEARCH_COVER * int(is_present.sum()))


def _paced(found: dict[str, float], tried: _Tried) -> dict[str, float]:
    pace = costs.pace(tried.is_present.size, tried.n_topics)
    return {name: pace * cost for name, cost in found.items()}


def _of_whole(n_entries: int, tried: _Tried) -> dict[str, float]:
    """Return the expected costs of the stages where all rows choose the prior."""
    return _paced(costs.of_whole(n_entries, tried.n_topics), tried)


def _expected(n_entries: int, n_scored: int, tried: _Tried, *, is_grouped: bool) -> dict[str, float]:
    """Return the expected costs of the stages where rows of `n_scored` entries choose the prior."""
    n_topics = tried.n_topics
    n_sampled = max(1, min(n_entries, FINAL_WORK // n_topics))
    n_passes, n_refining = _sample_limits(n_sampled, tried).max_passes, GROUPED_PASSES
    before = costs.of_directions(min(n_entries, GROUPED_ENTRIES), n_scored, n_topics, len(tried.grid))
    if not is_grouped:
        before, n_refining = costs.of_first(n_scored, n_topics), REFINING_PASSES if n_sampled < n_entries else 0
    return _paced(before | costs.of_sample(n_sampled, n_passes, n_entries, n_refining, n_topics), tried)


def _begin_sample(stages: Stages, n_entries: int, tried: _Tried) -> None:
    """Tell that EM on a sample begins: of large data all passes are made, others settle before."""
    n_passes = _sample_limits(n_entries, tried).max_passes
    if n_passes <= costs.USUAL_PASSES:
        stages.begin("sample", "topics: pass {step} of {n_steps} over a sample", n_passes)
    else:
        stages.begin("sample", "topics: pass {step} over a sample", costs.USUAL_PASSES, is_sure=False)


def _refined(place: Place, fit: LDAFit, tried: _Tried, n_passes: int, stages: Stages) -> Array:
    """Return topics (K, V) after a few passes over all rows."""
    beta_rows, every = np.ascontiguousarray(fit.beta.T), np.arange(place.n_rows)
    problem = Problem(no_rows(place.n_features), tried.is_present, fit.row_prior, tried.settings.smoothing)
    stages.begin("refining", "topics: all rows", n_passes * place.n_rows)
    for number in range(n_passes):
        stages.reach(number * place.n_rows, f"topics: pass {number + 1} of {n_passes} over all rows")
        counts = place.total(expected_topics, every, shared=(beta_rows, fit.row_prior, tried.scale, stages))
        beta_rows = topics_of(problem, counts / tried.scale)
    return np.ascontiguousarray(beta_rows.T)


def expected_topics(
    part: Counts, rows: Rows, beta_rows: Array, row_prior: float, scale: float, stages: Stages, for_rows: ForRows
) -> Array:
    """Return the expected counts of topics in features, (V, K), times `scale` and rounded, of all rows of a part.

    The shares of a part of the rows are held at a time.
    """

    def add(at: slice, counts: Array) -> None:
        piece = part.take(at)
        for some in even_pieces(piece.indptr, -(-piece.nnz // REFINED_ENTRIES)):
            theta = fitted_shares(piece.take(some), beta_rows, row_prior)
            kernels.gather_topics(piece, some.start, some.stop, theta, beta_rows, scale, counts)
            stages.step(some.stop - some.start)

    return summed(add, pieces_of(part, rows), beta_rows.shape, for_rows)


def sample_rows(rows: Counts, n_entries: int, rng: np.random.Generator) -> Counts:
    """Return the rows themselves, or as many at random as have so many entries together, one at least."""
    some = sampled(np.diff(rows.indptr), n_entries, rng)
    return rows if len(some) == rows.n_rows else rows.take(some)


def sampled(entries: NDArray[np.int64], n_entries: int, rng: np.random.Generator) -> Rows:
    """Return all rows, or as many at random as have so many entries together, one at least; in their order."""
    if entries.sum() <= n_entries:
        return np.arange(len(entries))
    order = rng.permutation(len(entries))
    n_taken = int(np.searchsorted(np.cumsum(entries[order]), n_entries, side="right"))
    return np.sort(order[: max(1, n_taken)])


def affordable(limits: Limits, work: int, effort: int) -> Limits:
    """Return limits with no more passes of the given work than the effort is enough for."""
    return limits._replace(max_passes=min(limits.max_passes, max(LEAST_PASSES, effort // work)))
