"""Topics learned from rows are close to the true ones, under a row prior that held-out counts choose."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mmpca.backend import SERIAL, LocalRows, open_threads, slices_of
from mmpca.counts import as_counts
from mmpca.monitor import Monitor
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics import Budget, choose_row_prior, count_folds, em, fit_lda, held_out_score, lda, split_counts
from mmpca.topics.lda import ROW_PRIORS, SMOOTHINGS, expected_topics, predicted_rows, sample_rows
from mmpca.topics.thinning import held_out_rows

N_TOPICS = 4


def simulated(seed, n_samples=200, n_features=80):
    """Return rows that mix well separated topics, each with its own shares."""
    topics = sparse_topics(N_TOPICS, n_features, 0.1, random_state=seed)
    mixtures = np.random.default_rng(seed).dirichlet(np.full(N_TOPICS, 0.3), size=60)
    return simulate_mmpca(n_samples, topics=topics, cluster_topics=mixtures, lengths=200, random_state=seed)


@pytest.fixture(scope="module")
def data():
    return simulated(0)


@pytest.fixture(scope="module")
def rows(data):
    return as_counts(data.X)


@pytest.fixture(scope="module")
def fitted(rows):
    return fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0))


def learn(rows, n_topics=N_TOPICS, seed=0, **options):
    return fit_lda(rows, n_topics, rng=np.random.default_rng(seed), **options).beta


def distance(topics, others):
    """Return the mean total variation between topics, in their best matching."""
    distances = 0.5 * np.abs(topics[:, None] - others[None]).sum(axis=2)
    return distances[linear_sum_assignment(distances)].mean()


# --- the topics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_well_separated_topics_are_recovered(seed):
    data = simulated(seed)
    assert distance(learn(as_counts(data.X)), data.topics) < 0.06
    assert distance(sparse_topics(N_TOPICS, 80, 0.1, random_state=99), data.topics) > 0.5  # by chance


def test_the_same_seed_learns_the_same_topics(rows, fitted):
    again, other = learn(rows), learn(rows, seed=1)
    np.testing.assert_array_equal(again, fitted.beta)
    assert not np.array_equal(other, fitted.beta)
    assert distance(other, fitted.beta) < 0.02  # the same, in another order


@pytest.mark.parametrize("n_topics", [1, 2, 7])
def test_topics_are_distributions_over_the_features_that_occur(data, n_topics):
    X = data.X.toarray()
    X[:, [3, 50]] = 0
    topics = learn(as_counts(X), n_topics, n_init=1)
    assert topics.shape == (n_topics, 80)
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(topics > 0, np.tile(X.sum(axis=0) > 0, (n_topics, 1)))


def test_a_single_topic_is_the_smoothed_column_shares(rows):
    smoothed = rows.column_totals() + em.SMOOTHING * (rows.column_totals() > 0)
    np.testing.assert_allclose(learn(rows, 1), [smoothed / smoothed.sum()], rtol=1e-12)


def test_more_smoothing_makes_flatter_topics(rows):
    sharp, flat = (learn(rows, row_prior=1.0, n_init=1, smoothing=smoothing) for smoothing in (0.01, 100.0))
    assert (np.sort(flat.max(axis=1)) < np.sort(sharp.max(axis=1))).all()
    present = rows.column_totals() > 0
    assert flat[:, present].min() > 10 * sharp[:, present].min()


@pytest.mark.parametrize("seed", range(2))
def test_the_largest_counts_give_finite_topics(data, seed):
    X = data.X.toarray()[:60]
    topics = learn(as_counts(X.astype(np.int64) * ((2**31 - 1) // X.max())), seed=seed, n_init=1)
    assert (topics >= 0).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("X", [[[3, 0, 1]], [[1]], [[5], [2]], [[1, 0], [0, 1]]])
def test_single_rows_features_and_tokens_are_fitted(X):
    rows = as_counts(X)
    np.testing.assert_allclose(learn(rows, min(2, rows.n_features)).sum(axis=1), 1, rtol=1e-12)


def test_an_absent_feature_does_not_change_the_other_topics(rows, fitted):
    X = rows.to_csr().toarray()
    wide = np.hstack([X, np.zeros((len(X), 40), dtype=int)])
    np.testing.assert_allclose(learn(as_counts(wide))[:, :80], fitted.beta, rtol=1e-9)


def test_passes_end_when_the_topics_converge(rows):
    loose, tight, limited = (
        fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), n_init=3, **options)
        for options in ({"tol": 1e-2}, {"tol": 1e-7}, {"tol": 0.0, "max_passes": 6})
    )
    assert loose.converged
    assert tight.converged
    assert loose.n_passes < tight.n_passes
    assert not limited.converged
    assert limited.n_passes <= 8 * (6 + 4)  # at most eight runs, each of which may finish its extrapolation


def test_the_number_of_threads_changes_nothing():
    rows = as_counts(np.random.default_rng(0).poisson(1.0, (700, 100)))
    assert len(slices_of(rows)) == 2
    options = {"max_passes": 6, "row_prior": 10.0, "n_init": 1}
    one = fit_lda(rows, 4, rng=np.random.default_rng(0), **options)
    with open_threads(3) as threads:
        other = fit_lda(LocalRows(rows, threads), 4, rng=np.random.default_rng(0), **options)
    np.testing.assert_array_equal(one.beta, other.beta)
    assert one.scores == other.scores


# --- progress ---------------------------------------------------------------------------------------------------


def reports_of(rows, n_topics=N_TOPICS, **options):
    """Return the progress reports of a fit, and its result."""
    reports = []
    fit = fit_lda(rows, n_topics, rng=np.random.default_rng(0), monitor=Monitor(reports.append), **options)
    return reports, fit


def test_all_passes_are_reported(rows, fitted):
    reports, fit = reports_of(rows)
    np.testing.assert_array_equal(fit.beta, fitted.beta)
    assert {report.stage for report in reports} == {"topics"}
    by_text = {report.text: report.n_done for report in reports}
    assert len(by_text) == 2  # the prior, the topics
    assert sum(by_text.values()) == fit.n_passes


def test_a_callback_stops_the_passes_and_keeps_the_topics(rows):
    seen = []
    monitor = Monitor(lambda progress: seen.append(progress.n_done) or progress.n_done >= 9)
    stopped = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), monitor=monitor)
    assert seen[:4] == [0, 3, 6, 9]
    assert stopped.n_passes == 9
    assert not stopped.converged
    np.testing.assert_allclose(stopped.beta.sum(axis=1), 1, rtol=1e-12)


# --- the row prior ----------------------------------------------------------------------------------------------


def with_concentration(concentration, n_topics=3, n_samples=150, seed=0):
    """Return rows whose shares are Dirichlet with a given concentration."""
    topics = sparse_topics(n_topics, 60, 0.1, random_state=seed)
    shares = np.random.default_rng(seed).dirichlet(np.full(n_topics, concentration), size=n_samples)
    return as_counts(np.random.default_rng(seed + 1).multinomial(100, shares @ topics))


def of_many_kinds(seed, n_kinds=14, n_samples=400):
    """Return rows of several kinds, each with a topic of its own besides the features that all of them share."""
    own, shared = sparse_topics(n_kinds, 120, 0.1, random_state=seed), sparse_topics(1, 120, 0.3, random_state=seed + 1)
    rng = np.random.default_rng(seed)
    return as_counts(rng.multinomial(60, (0.5 * own + 0.5 * shared)[rng.integers(n_kinds, size=n_samples)]))


@pytest.fixture(scope="module")
def mixed():
    return with_concentration(1.0)


@pytest.fixture(scope="module")
def chosen(mixed):
    return choose(mixed)


def choose(rows, n_topics=3, seed=0, **options):
    return choose_row_prior(rows, n_topics, rng=np.random.default_rng(seed), **options)


def test_a_given_prior_is_the_only_one_tried(rows):
    fit = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), row_prior=2.5, n_init=1)
    assert fit.row_prior == 2.5
    assert list(fit.scores) == [2.5]
    assert distance(learn(rows, row_prior=0.1, n_init=1), learn(rows, row_prior=30.0, n_init=1)) > 0.01


def test_the_prior_with_the_best_score_is_used(fitted):
    assert fitted.row_prior == max(fitted.scores, key=fitted.scores.__getitem__)
    assert fitted.converged


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_the_chosen_prior_gives_better_topics_than_that_of_the_paper(noise):
    data = paper_design(noise=noise, random_state=3)
    rows = as_counts(data.X)
    fit = fit_lda(rows, 4, rng=np.random.default_rng(0))
    assert 10 <= fit.row_prior <= 100
    assert distance(fit.beta, data.topics) < 0.6 * distance(learn(rows, 4, row_prior=1.0), data.topics)


def test_rows_that_mix_all_topics_get_a_stronger_prior_than_rows_of_single_ones():
    weak, strong = (choose(with_concentration(concentration), n_init=1) for concentration in (0.1, 30.0))
    assert weak.row_prior <= 0.3
    assert strong.row_prior >= 10


@pytest.mark.parametrize("concentration", [0.03, 0.1, 1.0, 5.0, 30.0, 300.0])
def test_the_search_goes_from_the_middle_to_one_step_beyond_the_best(concentration):
    tried = list(choose(with_concentration(concentration, n_samples=80), n_init=1).scores.items())
    middle = ROW_PRIORS[len(ROW_PRIORS) // 2]
    assert tried[0][0] == middle
    assert tried[1][0] > middle
    for way in ([pair for pair in tried if pair[0] >= middle], [pair for pair in tried if pair[0] <= middle]):
        scores = [score for _, score in way]
        assert scores[:-1] == sorted(scores[:-1])  # it rises, except perhaps in the last step
        assert [prior for prior, _ in way] == sorted((prior for prior, _ in way), reverse=way[-1][0] < middle)
    if tried[1][1] > tried[0][1]:  # it rose on the way up
        assert all(prior >= middle for prior, _ in tried)
    ends = {min(tried)[0], max(tried)[0]}
    best = max(tried, key=lambda pair: pair[1])[0]
    assert best not in ends - {ROW_PRIORS[0], ROW_PRIORS[-1], middle}


def test_a_grid_of_one_value_is_not_searched(mixed):
    choice = choose(mixed, grid=(2.0,), n_init=1)
    assert choice.row_prior == 2.0
    assert list(choice.scores) == [2.0]


def test_the_score_is_that_of_the_mixture_on_the_held_out_counts(mixed, chosen):
    held_out = split_counts(mixed, np.random.default_rng(0)).held_out
    expected = held_out_score(held_out, chosen.mixture.theta, chosen.mixture.beta_rows.T)
    assert chosen.score == pytest.approx(expected, rel=1e-12)
    assert chosen.scores[chosen.row_prior] == max(chosen.scores.values())


def test_more_starts_reach_objectives_at_least_as_high_up_to_ties():
    rows = of_many_kinds(1)
    one, two, five = (choose(rows, 14, n_init=n_init, grid=(0.1,)).objective for n_init in (1, 2, 5))
    assert two >= one - lda.SAME_OBJECTIVE
    assert five >= two - lda.SAME_OBJECTIVE
    assert five > one


def test_among_starts_with_equal_objectives_the_best_score_decides():
    rows = of_many_kinds(1)
    options = {"grid": (0.1,), "same_objective": np.inf}
    scores = [choose(rows, 14, n_init=n_init, **options).score for n_init in (1, 2, 5)]
    assert scores == sorted(scores)
    assert scores[2] > scores[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_starts_that_disagree_are_followed_by_more_of_them(seed):
    rows = of_many_kinds(seed)
    three, auto = choose(rows, 14, n_init=3, grid=(0.1,)), choose(rows, 14, grid=(0.1,))
    assert auto.n_passes > 1.5 * three.n_passes
    assert auto.objective > three.objective + 50


def test_three_starts_that_agree_are_enough(mixed, chosen):
    three = choose(mixed, n_init=3)
    assert three.n_passes == chosen.n_passes
    np.testing.assert_array_equal(chosen.mixture.beta_rows, three.mixture.beta_rows)


@pytest.mark.parametrize(
    ("objectives", "is_expensive", "expected"),
    [
        ([0.0, 0.0], False, False),
        ([-1.5, -3.0, 0.0], False, True),
        ([-4.5, -3.0, 0.0], False, False),
        ([-90.0, -90.0, -90.0, 0.0], False, False),
        ([-90.0, 0.0, -90.0, 0.0, -1.0], False, True),
        ([-90.0, -50.0, 0.0], True, True),
        ([-90.0, 0.0], True, True),
        ([-90.0], True, False),
        ([9.0 * n for n in range(lda.MOST_STARTS - 1)], False, False),
        ([9.0 * n for n in range(lda.MOST_STARTS)], False, True),
    ],
)
def test_starts_are_enough_when_three_agree_with_the_best_or_they_become_too_many(objectives, is_expensive, expected):
    assert lda._are_enough(objectives, "auto", 3.0, is_expensive=is_expensive) is expected
    assert lda._are_enough(objectives, len(objectives), 3.0, is_expensive=is_expensive)
    assert not lda._are_enough(objectives, len(objectives) + 1, 3.0, is_expensive=is_expensive)


@pytest.mark.parametrize("n_topics", [2, 3])
def test_held_out_counts_show_the_number_of_topics(n_topics):
    rows = with_concentration(1.0, n_topics=n_topics, n_samples=300)
    scores = {k: choose(rows, k, n_init=2).score for k in (1, 2, 3, 4)}
    assert max(scores, key=scores.__getitem__) == n_topics


def test_features_that_do_not_occur_can_have_positive_probability(mixed, chosen):
    absent = mixed.column_totals() == 0
    assert absent.any()
    assert (chosen.mixture.beta_rows[absent] == 0).all()
    assert (choose(mixed, is_present=np.ones(60, dtype=bool), n_init=1).mixture.beta_rows > 0).all()


def test_a_stop_ends_the_search_and_the_starts(mixed):
    monitor = Monitor(lambda progress: progress.n_done >= 3)
    choice = choose(mixed, monitor=monitor)
    assert choice.n_passes == 3
    assert list(choice.scores) == [3.0]


# --- large data: learned on a sample, refined on all rows -------------------------------------------------------


@pytest.mark.parametrize("final_share", [5.0, 0.5])
def test_topics_from_samples_are_close_to_those_of_all_rows(data, rows, fitted, final_share):
    """The prior from a fifth of the rows; the topics from all of them, or from a half and then refined."""
    work = rows.nnz * N_TOPICS
    budget = Budget(search_work=work // 5, search_cover=1, final_work=int(final_share * work))
    sampled = learn(rows, budget=budget)
    assert not np.array_equal(sampled, fitted.beta)
    assert distance(sampled, fitted.beta) < 0.03
    assert distance(sampled, data.topics) < 0.06
    np.testing.assert_allclose(sampled.sum(axis=1), 1, rtol=1e-12)
    with open_threads(2) as threads:
        np.testing.assert_array_equal(sampled, learn(LocalRows(rows, threads), budget=budget))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.99])
def test_a_sample_keeps_within_the_limit_and_uses_most_of_it(rows, share):
    n_entries, limit = np.diff(rows.indptr), int(share * rows.nnz)
    sample = sample_rows(n_entries, limit, np.random.default_rng(0))
    assert (np.diff(sample) > 0).all()
    assert limit - 2 * n_entries.max() < n_entries[sample].sum() <= limit


def test_a_sample_has_all_rows_if_they_fit_and_at_least_one_otherwise(rows):
    n_entries = np.diff(rows.indptr)
    np.testing.assert_array_equal(sample_rows(n_entries, rows.nnz, np.random.default_rng(0)), np.arange(rows.n_rows))
    assert len(sample_rows(n_entries, 1, np.random.default_rng(0))) == 1


@pytest.mark.parametrize(
    ("max_passes", "work", "effort", "expected"),
    [(500, 10, 1_000, 100), (500, 10, 1_000_000, 500), (500, 1_000, 10, 60), (5, 1_000, 10, 5)],
)
def test_large_data_have_the_passes_that_the_effort_allows_but_not_too_few(max_passes, work, effort, expected):
    assert lda.affordable_passes(max_passes, work, effort) == expected


def test_refining_uses_the_rows_and_features_outside_the_sample(rows):
    """With one topic, the result of refining is known, even if the sample has a single row."""
    budget = Budget(search_work=1, search_cover=0, final_work=1, refined_entries=rows.nnz // 3)
    np.testing.assert_allclose(learn(rows, 1, budget=budget), learn(rows, 1), rtol=1e-9)
    topics = learn(rows, N_TOPICS, budget=budget)
    np.testing.assert_array_equal((topics > 0).all(axis=0), rows.column_totals() > 0)


@pytest.fixture(scope="module")
def beta_rows(rows):
    return np.ascontiguousarray(sparse_topics(N_TOPICS, rows.n_features, 0.5, random_state=3).T)


def expected_counts(block, some, beta_rows, threads=SERIAL, n_entries=2**20):
    return expected_topics(block, some, beta_rows, 1.0, 2.0**20, n_entries, Monitor(), threads)


def test_expected_counts_are_those_of_em(rows, beta_rows):
    theta = em.fitted_shares(rows, beta_rows, 1.0)
    X = rows.to_csr().toarray()
    plain = beta_rows * ((X / np.maximum(theta @ beta_rows.T, 1e-300)).T @ theta)
    found = expected_counts(rows, np.arange(rows.n_rows), beta_rows)
    np.testing.assert_allclose(found / 2.0**20, plain, atol=1e-4)


def test_expected_counts_do_not_depend_on_the_division_of_the_rows(rows, beta_rows):
    every = np.arange(rows.n_rows)
    whole = expected_counts(rows, every, beta_rows)
    blocks = [rows.take(slice(0, 70)), rows.take(slice(70, rows.n_rows))]
    np.testing.assert_array_equal(
        whole, sum(expected_counts(block, np.arange(block.n_rows), beta_rows) for block in blocks)
    )
    some = np.random.default_rng(0).permutation(rows.n_rows)[:90]
    others = np.setdiff1d(every, some)
    np.testing.assert_array_equal(
        whole, expected_counts(rows, some, beta_rows) + expected_counts(rows, others, beta_rows)
    )
    with open_threads(2) as threads:
        np.testing.assert_array_equal(whole, expected_counts(rows, every, beta_rows, threads, n_entries=100))


def test_refining_does_not_copy_the_rows(rows, beta_rows, monkeypatch):
    shared, fitted_shares = [], lda.fitted_shares

    def recorded(some, *arguments):
        shared.append(np.shares_memory(some.data, rows.data) and np.shares_memory(some.indices, rows.indices))
        return fitted_shares(some, *arguments)

    monkeypatch.setattr(lda, "fitted_shares", recorded)
    expected_counts(rows, np.arange(rows.n_rows), beta_rows, n_entries=rows.nnz // 10)
    assert len(shared) >= 8
    assert all(shared)


# --- cross-validation -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_topics():
    """Return 120 rows of 100 counts that mix three topics."""
    topics = sparse_topics(3, 40, 0.3, random_state=1)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    return as_counts(simulate_mmpca(120, topics=topics, cluster_topics=shares, lengths=100, random_state=1).X)


def predicted(rows, n_topics, *, folds_seed=1, starts_seed=2, n_folds=5, row_prior=3.0):
    return predicted_rows(
        rows,
        n_topics,
        row_prior,
        n_folds=n_folds,
        folds_rng=np.random.default_rng(folds_seed),
        starts_rng=np.random.default_rng(starts_seed),
    )


def test_a_single_topic_predicts_with_the_smoothed_frequencies_of_the_other_folds(three_topics):
    expected, smoothings = np.zeros(three_topics.n_rows), []
    for split in count_folds(three_topics, 5, np.random.default_rng(1)):
        totals, held_out = split.kept.column_totals(), split.held_out.to_csr()

        def by_row(smoothing, totals=totals, held_out=held_out):
            beta = totals + smoothing
            return held_out @ np.log(beta / beta.sum())

        if not smoothings:  # up the grid while the first fold is predicted better
            smoothings = list(SMOOTHINGS[:1])
            for smoothing in SMOOTHINGS[1:]:
                if by_row(smoothing).sum() <= by_row(smoothings[-1]).sum():
                    break
                smoothings.append(smoothing)
        expected += by_row(smoothings[-1])
    np.testing.assert_allclose(predicted(three_topics, 1), expected, rtol=1e-9)


def test_the_true_number_of_topics_predicts_best(three_topics):
    totals = {k: predicted(three_topics, k, n_folds=3).sum() for k in (1, 2, 3, 4, 6)}
    assert max(totals, key=totals.get) == 3


def test_sparse_data_do_not_favor_more_and_more_topics():
    few = as_counts(paper_design(n_samples=40, length=120, random_state=5).X)
    assert predicted(few, 8, row_prior=30.0).sum() < predicted(few, 4, row_prior=30.0).sum()

    def with_fixed_priors(n_topics):
        rng, total = np.random.default_rng(2), 0.0
        for kept, held_out in count_folds(few, 5, np.random.default_rng(1)):
            problem = em.Problem(kept, few.column_totals() > 0, 30.0, em.SMOOTHING)
            mixture = em.run_em(problem, em.random_mixture(problem, n_topics, rng), max_passes=200, tol=1e-4).mixture
            total += held_out_rows(held_out, mixture.theta, mixture.beta_rows.T).sum()
        return total

    assert with_fixed_priors(8) > with_fixed_priors(4)  # the reason why the smoothing is chosen, too


def test_predictions_depend_on_the_seeds_only(three_topics):
    first = predicted(three_topics, 3, n_folds=3)
    np.testing.assert_array_equal(predicted(three_topics, 3, n_folds=3), first)
    assert predicted(three_topics, 3, n_folds=3, starts_seed=9).sum() == pytest.approx(first.sum(), rel=2e-3)


def test_a_fit_does_not_see_the_counts_that_it_predicts():
    lonely = as_counts(np.eye(40, dtype=int))  # a feature per row: nothing of it is left once it is held out
    assert (predicted(lonely, 3) <= np.log(1 / 40) + 1e-9).all()


def test_neighboring_priors_stay_on_the_grids():
    problem = em.Problem(None, None, ROW_PRIORS[-1], SMOOTHINGS[0])
    assert [(x.row_prior, x.smoothing) for x in lda._neighbors(problem)] == [
        (ROW_PRIORS[-1], SMOOTHINGS[1]),
        (ROW_PRIORS[-2], SMOOTHINGS[0]),
    ]
