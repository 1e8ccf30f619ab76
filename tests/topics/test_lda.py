"""Topics learned from the rows: they are near the true ones, and the passes that find them keep their sums."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mmpca import kernels
from mmpca.counts import as_counts
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import lda, learn_topics

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


def sums_of(rows, share):
    """Return the counts of topics in rows, in features and in all, entry by entry."""
    by_row, by_feature = np.zeros((rows.n_rows, share.shape[1])), np.zeros((rows.n_features, share.shape[1]))
    for i in range(rows.n_rows):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            by_row[i] += rows.data[p] * share[p].astype(float)
            by_feature[rows.indices[p]] += rows.data[p] * share[p].astype(float)
    return by_row, by_feature, by_feature.sum(axis=0)


def numpy_pass(rows, share, row_prior, smoothing, n_present):
    """Return the shares after a pass of CVB0, the sums of the others taken anew for every token."""
    share = share.astype(float)
    for i in range(rows.n_rows):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            by_row, by_feature, by_topic = (sums - share[p] for sums in sums_of(rows, share))
            v = rows.indices[p]
            new = (by_row[i] + row_prior) * (by_feature[v] + smoothing) / (by_topic + smoothing * n_present)
            share[p] = new / new.sum()
    return share


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
    smoothed = rows.column_totals() + lda.SMOOTHING * (rows.column_totals() > 0)
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

    def stop_after_three(number):
        seen.append(number)
        return number == 3

    stopped = learn(rows, callback=stop_after_three)
    assert seen == [1, 2, 3]
    np.testing.assert_array_equal(stopped, learn(rows, max_passes=3, tol=0.0))


def test_passes_end_when_the_shares_settle(rows):
    loose, tight = [], []
    learn(rows, tol=1e-2, callback=loose.append)
    learn(rows, tol=1e-5, max_passes=2000, callback=tight.append)
    assert len(loose) < len(tight) < 2000
    limited = []
    learn(rows, tol=0.0, max_passes=7, callback=limited.append)
    assert limited == list(range(1, 8))


@pytest.fixture
def small():
    """Return a few rows, with counts above one, and random shares of their tokens."""
    rng = np.random.default_rng(5)
    rows = as_counts(rng.poisson(0.8, (6, 9)) + np.eye(6, 9, dtype=int))
    share = rng.dirichlet(np.ones(3), size=rows.nnz).astype(np.float32)
    return rows, share


def test_a_pass_equals_the_one_in_numpy(small):
    rows, share = small
    assert rows.data.max() > 1
    expected = numpy_pass(rows, share, 0.7, 0.2, 8)
    change = np.abs(expected - share) * rows.data[:, None]
    returned = kernels.cvb0_pass(rows, share, *sums_of(rows, share), 0.7, 0.2, 8)
    np.testing.assert_allclose(share, expected, rtol=1e-5)
    assert returned == pytest.approx(change.sum() / (rows.data.sum() * 3), rel=1e-5)


@pytest.fixture
def after_passes(rows):
    """Return a function from a factor of the counts to them, their shares and the sums after 30 passes."""

    def run(factor):
        larger = rows._replace(data=rows.data * np.int32(factor))
        share = np.random.default_rng(0).random((rows.nnz, N_TOPICS), dtype=np.float32)
        share /= share.sum(axis=1, keepdims=True)
        sums = sums_of(larger, share)
        for _ in range(30):
            kernels.cvb0_pass(larger, share, *sums, 1.0, 0.05, 80)
        return larger, share, sums

    return run


def test_passes_keep_shares_that_sum_to_one_and_sums_that_are_theirs(after_passes):
    rows, share, sums = after_passes(1)
    assert share.min() >= 0
    np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-6)
    by_row, _, by_topic = sums
    np.testing.assert_allclose(by_row.sum(axis=1), rows.row_totals(), rtol=1e-6)
    assert by_topic.sum() == pytest.approx(rows.data.sum(), rel=1e-6)
    for ours, expected in zip(sums, sums_of(rows, share), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("factor", [1, 1000, 1_000_000])
def test_sums_follow_the_stored_shares_to_double_precision(after_passes, factor):
    rows, share, sums = after_passes(factor)
    for ours, expected in zip(sums, sums_of(rows, share), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12 * rows.data.sum())


def test_shares_of_large_counts_are_not_negative(after_passes):
    _, share, _ = after_passes(1_000_000)
    assert share.min() >= 0
    np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-6)


def test_the_first_sums_are_those_of_the_shares(small):
    rows, share = small
    for sums, expected in zip(lda._sums(rows, share), sums_of(rows, share)[:2], strict=True):
        np.testing.assert_allclose(sums, expected, rtol=1e-14)


def test_an_absent_feature_does_not_change_the_other_topics(rows):
    X = rows.to_csr().toarray()
    wide = np.hstack([X, np.zeros((len(X), 40), dtype=int)])
    np.testing.assert_allclose(learn(as_counts(wide))[:, :80], learn(rows), rtol=1e-9)


# --- more tokens than fit: learned on some rows, refined on all --------------------------------------------------


def test_topics_from_a_sample_of_the_rows_are_close_to_those_of_all(data, rows, monkeypatch):
    full = learn(rows)
    monkeypatch.setattr(lda, "MAX_SHARES", rows.nnz * N_TOPICS // 5)
    sampled = learn(rows)
    assert not np.array_equal(sampled, full)
    assert distance(sampled, full) < 0.03
    assert distance(sampled, data.topics) < 0.05
    np.testing.assert_allclose(sampled.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(sampled, learn(rows))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.99])
def test_the_sample_keeps_within_the_limit_and_uses_most_of_it(rows, monkeypatch, share):
    limit = int(share * rows.nnz * N_TOPICS)
    monkeypatch.setattr(lda, "MAX_SHARES", limit)
    sample = lda._sample_rows(rows, N_TOPICS, np.random.default_rng(0))
    assert len(np.unique(sample)) == len(sample) < rows.n_rows
    per_row = np.diff(rows.indptr) * N_TOPICS
    assert limit - 2 * per_row.max() < per_row[sample].sum() <= limit


def test_all_rows_are_used_in_their_order_where_they_fit(rows, monkeypatch):
    monkeypatch.setattr(lda, "MAX_SHARES", rows.nnz * N_TOPICS)
    np.testing.assert_array_equal(lda._sample_rows(rows, N_TOPICS, np.random.default_rng(0)), np.arange(rows.n_rows))


def test_refining_uses_the_rows_and_features_outside_the_sample(rows, monkeypatch):
    """One row is sampled at least; with one topic the result is then known."""
    expected = learn(rows, 1)
    monkeypatch.setattr(lda, "MAX_SHARES", 1)
    assert len(lda._sample_rows(rows, 1, np.random.default_rng(0))) == 1
    np.testing.assert_allclose(learn(rows, 1), expected, rtol=1e-9)
    topics = learn(rows, N_TOPICS)
    np.testing.assert_array_equal((topics > 0).all(axis=0), rows.column_totals() > 0)


def test_expected_counts_divide_every_token_between_the_topics(data, rows):
    counts = lda._expected_counts(rows, data.topics, 1.0)
    assert counts.min() >= 0
    np.testing.assert_allclose(counts.sum(axis=1), rows.column_totals(), rtol=1e-12)
