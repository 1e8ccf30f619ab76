"""Topics learned from the rows: they are near the true ones, under a prior that was chosen well."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mmpca import places
from mmpca.counts import as_counts
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.stages import QUIET
from mmpca.topics import em, fit_lda, lda, learn_topics

N_TOPICS = 4


def simulated(seed, n_samples=300, n_features=80):
    """Return rows that mix well separated topics, each in its own way."""
    topics = sparse_topics(N_TOPICS, n_features, 0.1, random_state=seed)
    mixtures = np.random.default_rng(seed).dirichlet(np.full(N_TOPICS, 0.3), size=60)
    return simulate_mmpca(n_samples, topics=topics, cluster_topics=mixtures, lengths=200, random_state=seed)


@pytest.fixture(scope="module")
def data():
    return simulated(0)


@pytest.fixture(scope="module")
def rows(data):
    return as_counts(data.X)


def learn(rows, n_topics=N_TOPICS, seed=0, **options):
    return learn_topics(rows, n_topics, rng=np.random.default_rng(seed), **options)


def distance(topics, others):
    """Return the mean total variation between topics, matched as well as can be."""
    distances = 0.5 * np.abs(topics[:, None] - others[None]).sum(axis=2)
    return distances[linear_sum_assignment(distances)].mean()


# --- what is learned --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_well_separated_topics_are_recovered(seed):
    data = simulated(seed)
    learned = learn(as_counts(data.X))
    assert distance(learned, data.topics) < 0.05
    assert distance(sparse_topics(N_TOPICS, 80, 0.1, random_state=99), data.topics) > 0.5  # as chance would have it


def test_the_same_seed_learns_the_same_topics(rows):
    first, again, other = (learn(rows, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert distance(first, other) < 0.02  # the same, in another order


@pytest.mark.parametrize("n_topics", [1, 2, 7])
def test_topics_are_distributions_over_the_features_that_occur(data, n_topics):
    X = data.X.toarray()
    X[:, [3, 50]] = 0
    topics = learn(as_counts(X), n_topics)
    assert topics.shape == (n_topics, 80)
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(topics > 0, np.tile(X.sum(axis=0) > 0, (n_topics, 1)))


def test_one_topic_is_the_smoothed_column_shares(rows):
    smoothed = rows.column_totals() + em.SMOOTHING * (rows.column_totals() > 0)
    np.testing.assert_allclose(learn(rows, 1), [smoothed / smoothed.sum()], rtol=1e-12)


def test_more_smoothing_makes_flatter_topics(rows):
    sharp, flat = learn(rows, smoothing=0.01), learn(rows, smoothing=100.0)
    assert (np.sort(flat.max(axis=1)) < np.sort(sharp.max(axis=1))).all()
    present = rows.column_totals() > 0
    assert flat[:, present].min() > 10 * sharp[:, present].min()


def test_the_row_prior_is_used(rows):
    assert distance(learn(rows, row_prior=0.1), learn(rows, row_prior=30.0)) > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_counts_give_finite_topics(data, seed):
    X = data.X.toarray()[:60]
    huge = as_counts(X.astype(np.int64) * ((2**31 - 1) // X.max()))
    topics = learn(huge, seed=seed)
    assert np.isfinite(topics).all()
    assert (topics >= 0).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)


def test_single_rows_features_and_tokens_are_no_trouble():
    for X in ([[3, 0, 1]], [[1]], [[5], [2]], [[1, 0], [0, 1]]):
        rows = as_counts(X)
        topics = learn(rows, min(2, rows.n_features))
        np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-12)


# --- passes -----------------------------------------------------------------------------------------------------


def test_the_callback_counts_the_passes_and_stops_them(rows):
    seen = []

    def stop_at_third_call(number):
        seen.append(number)
        return len(seen) == 3

    stopped = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), callback=stop_at_third_call)
    assert seen == [3, 6, 9]
    assert stopped.n_passes == 9
    assert not stopped.converged
    np.testing.assert_allclose(stopped.beta.sum(axis=1), 1, rtol=1e-12)


def test_passes_end_when_the_topics_settle(rows):
    loose, tight, limited = (
        fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), n_init=3, **options)
        for options in ({"tol": 1e-2}, {"tol": 1e-7}, {"tol": 0.0, "max_passes": 6})
    )
    assert loose.converged
    assert tight.converged
    assert loose.n_passes < tight.n_passes
    assert not limited.converged
    assert limited.n_passes <= 8 * (6 + 4)  # eight runs at most, each of which may finish its leap


def test_an_absent_feature_does_not_change_the_other_topics(rows):
    X = rows.to_csr().toarray()
    wide = np.hstack([X, np.zeros((len(X), 40), dtype=int)])
    np.testing.assert_allclose(learn(as_counts(wide))[:, :80], learn(rows), rtol=1e-9)


# --- the prior is chosen ----------------------------------------------------------------------------------------


def test_a_given_prior_is_used_and_the_only_one_tried(rows):
    fit = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), row_prior=2.5)
    assert fit.row_prior == 2.5
    assert list(fit.scores) == [2.5]
    np.testing.assert_array_equal(fit.beta, learn(rows, row_prior=2.5))


def test_the_chosen_prior_is_the_default_and_its_topics_are_those_of_the_fit(rows):
    fit = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0))
    assert fit.row_prior == max(fit.scores, key=fit.scores.__getitem__)
    assert fit.converged
    np.testing.assert_array_equal(fit.beta, learn(rows))


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_the_chosen_prior_gives_better_topics_than_that_of_the_paper(noise):
    data = paper_design(noise=noise, random_state=3)
    rows = as_counts(data.X)
    fit = fit_lda(rows, 4, rng=np.random.default_rng(0))
    assert 10 <= fit.row_prior <= 100
    assert distance(fit.beta, data.topics) < 0.6 * distance(learn(rows, 4, row_prior=1.0), data.topics)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_the_number_of_threads_changes_nothing(n_threads, monkeypatch):
    rows = as_counts(paper_design(noise=0.2, random_state=0).X)
    monkeypatch.setattr(places, "PIECE_ENTRIES", rows.nnz // 4)
    assert places.n_pieces(rows.nnz, rows.n_features) == 4
    one = fit_lda(rows, 4, rng=np.random.default_rng(0), max_passes=20)
    other = fit_lda(rows, 4, rng=np.random.default_rng(0), max_passes=20, n_threads=n_threads)
    np.testing.assert_array_equal(one.beta, other.beta)
    assert one.scores == other.scores


# --- large data: learned on some rows, refined on all -----------------------------------------------------------


@pytest.mark.parametrize("final_share", [5.0, 0.5])
def test_topics_from_samples_of_the_rows_are_close_to_those_of_all(data, rows, monkeypatch, final_share):
    """The prior from a fifth of the rows; the topics from all of them, or from a half, then refined."""
    full = learn(rows)
    monkeypatch.setattr(lda, "SEARCH_WORK", rows.nnz * N_TOPICS // 5)
    monkeypatch.setattr(lda, "SEARCH_COVER", 1)
    monkeypatch.setattr(lda, "FINAL_WORK", int(final_share * rows.nnz * N_TOPICS))
    sampled = learn(rows)
    assert not np.array_equal(sampled, full)
    assert distance(sampled, full) < 0.03
    assert distance(sampled, data.topics) < 0.05
    np.testing.assert_allclose(sampled.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(sampled, learn(rows, n_threads=2))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.99])
def test_a_sample_keeps_within_the_limit_and_uses_most_of_it(rows, share):
    limit = int(share * rows.nnz)
    sample = lda.sample_rows(rows, limit, np.random.default_rng(0))
    assert 0 < sample.n_rows < rows.n_rows
    assert limit - 2 * np.diff(rows.indptr).max() < sample.nnz <= limit


def test_large_data_have_as_many_passes_as_the_effort_allows_and_not_too_few():
    limits = em.Limits(max_passes=500, tol=1e-4)
    assert lda.affordable(limits, 10, 1_000) == limits._replace(max_passes=100)
    assert lda.affordable(limits, 10, 1_000_000) == limits
    assert lda.affordable(limits, 1_000, 10).max_passes == lda.LEAST_PASSES
    assert lda.affordable(em.Limits(5, 0.0), 1_000, 10).max_passes == 5


def test_all_rows_are_used_where_they_fit(rows):
    assert lda.sample_rows(rows, rows.nnz, np.random.default_rng(0)) is rows


def test_refining_uses_the_rows_and_features_outside_the_sample(rows, monkeypatch):
    """One row is sampled at least; with one topic the result is then known."""
    expected = learn(rows, 1)
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 0)
    monkeypatch.setattr(lda, "FINAL_WORK", 1)
    monkeypatch.setattr(lda, "REFINED_ENTRIES", rows.nnz // 3)
    assert lda.sample_rows(rows, 1, np.random.default_rng(0)).n_rows == 1
    np.testing.assert_allclose(learn(rows, 1), expected, rtol=1e-9)
    topics = learn(rows, N_TOPICS)
    np.testing.assert_array_equal((topics > 0).all(axis=0), rows.column_totals() > 0)


def test_refining_makes_no_copy_of_the_rows(rows, monkeypatch):
    monkeypatch.setattr(places, "PIECE_ENTRIES", rows.nnz // 4)
    monkeypatch.setattr(lda, "REFINED_ENTRIES", rows.nnz // 10)
    seen, real = [], lda.fitted_shares

    def watched(some, *arguments):
        seen.append(np.shares_memory(some.data, rows.data) and np.shares_memory(some.indices, rows.indices))
        return real(some, *arguments)

    monkeypatch.setattr(lda, "fitted_shares", watched)
    beta_rows = np.full((rows.n_features, 2), 1 / rows.n_features)
    lda.expected_topics(rows, np.arange(rows.n_rows), beta_rows, 1.0, 1.0, QUIET, places.one_thread)
    assert len(seen) >= 8
    assert all(seen)
