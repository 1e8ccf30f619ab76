import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from mmpca.simulate import Simulation, simulate_mmpca, sparse_topics
from mmpca.simulate.generative import draw_counts

TOPICS = np.array([[0.4, 0.3, 0.2, 0.1, 0.0], [0.0, 0.1, 0.1, 0.3, 0.5], [0.2, 0.2, 0.2, 0.2, 0.2]])
CLUSTER_TOPICS = np.array([[0.8, 0.1, 0.1], [0.0, 1.0, 0.0]])


def simulate(n_samples=50, **changes):
    arguments = {"topics": TOPICS, "cluster_topics": CLUSTER_TOPICS, "lengths": 30, "random_state": 0}
    return simulate_mmpca(n_samples, **(arguments | changes))


def assert_same_data(first, second):
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.X.toarray(), second.X.toarray())


def assert_plausible(observed, probabilities):
    """Compare counts with their distribution by chi-square: neither too far from it nor suspiciously close."""
    possible = probabilities > 0
    assert observed[~possible].sum() == 0
    expected = observed.sum() * probabilities[possible]
    statistic = ((observed[possible] - expected) ** 2 / expected).sum()
    low, high = stats.chi2.ppf([1e-3, 1 - 1e-3], df=possible.sum() - 1)
    assert low < statistic < high


def slow_counts(rng, labels, lengths, topics, cluster_topics):
    """Draw one token at a time, as the model is defined."""
    X = np.zeros((len(labels), topics.shape[1]), dtype=int)
    for i, (q, length) in enumerate(zip(labels, lengths, strict=True)):
        for _ in range(length):
            for_topic, for_feature = rng.random(2)
            k = np.argmax(np.cumsum(cluster_topics[q]) > for_topic)
            v = np.argmax(np.cumsum(topics[k]) > for_feature)
            X[i, v] += 1
    return X


# --- the result -------------------------------------------------------------------------------------------------


def test_a_simulation_holds_the_counts_and_the_parameters_they_come_from():
    data = simulate(7, weights=[1, 3], noise=0.2, feature_names=list("abcde"))
    assert isinstance(data, Simulation)
    assert data.X.shape == (7, 5)
    assert data.labels.shape == (7,)
    np.testing.assert_array_equal(data.topics, TOPICS)
    np.testing.assert_array_equal(data.cluster_topics, CLUSTER_TOPICS)
    np.testing.assert_array_equal(data.weights, [0.25, 0.75])
    assert data.noise == 0.2
    assert data.feature_names.tolist() == list("abcde")


def test_counts_are_a_canonical_csr_array_of_integers():
    X = simulate(200).X
    assert isinstance(X, sparse.csr_array)
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.int64, np.int32, np.int32)
    # A new matrix on the same arrays does not inherit a flag that was set by hand.
    assert sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
    assert X.data.min() >= 1


def test_labels_are_integers_and_weights_are_uniform_by_default():
    data = simulate()
    assert data.labels.dtype == np.int64
    np.testing.assert_array_equal(data.weights, [0.5, 0.5])


def test_features_are_named_by_number_by_default():
    assert simulate(1).feature_names.tolist() == ["x0", "x1", "x2", "x3", "x4"]


def test_the_result_does_not_share_memory_with_the_arguments():
    topics = TOPICS.copy()
    data = simulate(topics=topics)
    topics[:] = 0
    np.testing.assert_array_equal(data.topics, TOPICS)


# --- the distribution of the draws ------------------------------------------------------------------------------


def test_rows_of_a_cluster_follow_its_mixture_of_topics():
    topics = sparse_topics(4, 300, 0.3, random_state=1)
    cluster_topics = np.random.default_rng(2).dirichlet(np.ones(4), 3)
    data = simulate_mmpca(600, topics=topics, cluster_topics=cluster_topics, lengths=2000, random_state=3)
    for q in range(3):
        probabilities = cluster_topics[q] @ topics
        observed = data.X[data.labels == q].sum(axis=0)
        # Features too rare for the chi-square distribution are pooled.
        is_rare = probabilities * observed.sum() < 10
        pooled = [np.append(x[~is_rare], x[is_rare].sum()) for x in (observed, probabilities)]
        assert_plausible(*pooled)


def test_noise_mixes_uniform_topics_into_those_of_the_cluster():
    data = simulate(4000, noise=0.25, lengths=100)
    for q in range(2):
        probabilities = (0.75 * CLUSTER_TOPICS[q] + 0.25 / 3) @ TOPICS
        assert_plausible(data.X[data.labels == q].sum(axis=0), probabilities)


def test_full_noise_gives_the_uniform_mixture_whatever_the_cluster():
    data = simulate(4000, noise=1.0)
    for q in range(2):
        assert_plausible(data.X[data.labels == q].sum(axis=0), TOPICS.mean(axis=0))
    assert_same_data(data, simulate(4000, noise=1.0, cluster_topics=CLUSTER_TOPICS[::-1]))


def test_counts_within_a_row_have_the_covariance_of_a_multinomial():
    data = simulate(40_000, cluster_topics=CLUSTER_TOPICS[:1])
    p = CLUSTER_TOPICS[0] @ TOPICS
    covariance = np.cov(data.X.toarray().T)
    np.testing.assert_allclose(covariance, 30 * (np.diag(p) - np.outer(p, p)), atol=0.1)


def test_labels_follow_the_weights():
    weights = np.array([0.1, 0.0, 0.6, 0.3])
    data = simulate(20_000, cluster_topics=np.full((4, 3), 1 / 3), weights=weights, lengths=1)
    assert_plausible(np.bincount(data.labels, minlength=4), weights)


def test_weights_are_relative():
    assert_same_data(simulate(weights=[2, 6]), simulate(weights=[0.25, 0.75]))


def test_a_cluster_of_weight_zero_gets_no_row():
    assert (simulate(weights=[0, 1]).labels == 1).all()


class ConstantGenerator(np.random.Generator):
    """A generator whose uniform numbers are all the same."""

    def __init__(self, value):
        super().__init__(np.random.PCG64(0))
        self.value = value

    def random(self, size):
        return np.full(size, self.value)


@pytest.mark.parametrize(("value", "drawn"), [(0.0, 1), (np.nextafter(1, 0), 10)])
def test_probability_zero_is_never_drawn_even_at_the_ends_of_the_unit_interval(value, drawn):
    # The first and the last are impossible, and ten tenths sum to less than one in floating point.
    tenths = np.concatenate([[0.0], np.full(10, 0.1), [0.0]])
    assert np.cumsum(tenths)[-1] < 1
    topics = np.tile(tenths, (12, 1))
    topics[[0, 11]] = np.eye(12)[[0, 11]]
    data = simulate(2, topics=topics, cluster_topics=topics, weights=tenths, random_state=ConstantGenerator(value))
    np.testing.assert_array_equal(data.labels, [drawn, drawn])
    np.testing.assert_array_equal(data.X.toarray(), np.tile(30 * np.eye(12, dtype=int)[drawn], (2, 1)))


def test_draws_agree_with_a_loop_over_tokens():
    labels, lengths = np.array([1, 0, 0, 1, 0]), np.array([3, 50, 1, 20, 7])
    arguments = labels, lengths, TOPICS, CLUSTER_TOPICS
    fast = draw_counts(np.random.default_rng(4), *arguments)
    slow = slow_counts(np.random.default_rng(4), *arguments)
    np.testing.assert_array_equal(fast.toarray(), slow)


@pytest.mark.parametrize("tokens_per_chunk", [1, 10, 57, 300, 10**6])
def test_the_size_of_the_chunks_does_not_change_the_data(tokens_per_chunk):
    rng = np.random.default_rng(0)
    labels, lengths = rng.integers(2, size=60), rng.integers(1, 40, size=60)
    draws = [
        draw_counts(np.random.default_rng(1), labels, lengths, TOPICS, CLUSTER_TOPICS, size)
        for size in (2**20, tokens_per_chunk)
    ]
    np.testing.assert_array_equal(draws[0].toarray(), draws[1].toarray())
    for X in draws:
        assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.int64, np.int32, np.int32)
        assert X.has_canonical_format


# --- special cases and invariants -------------------------------------------------------------------------------


def test_row_totals_are_exactly_the_lengths():
    lengths = np.random.default_rng(0).integers(1, 500, size=300)
    X = simulate(300, lengths=lengths).X
    np.testing.assert_array_equal(X.sum(axis=1), lengths)


@settings(max_examples=30, deadline=None)
@given(
    n_samples=st.integers(1, 12),
    n_clusters=st.integers(1, 5),
    n_topics=st.integers(1, 4),
    n_features=st.integers(1, 8),
    noise=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape_gives_rows_of_the_right_total(n_samples, n_clusters, n_topics, n_features, noise, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 60, size=n_samples)
    data = simulate_mmpca(
        n_samples,
        topics=sparse_topics(n_topics, n_features, random_state=rng),
        cluster_topics=sparse_topics(n_clusters, n_topics, random_state=rng),
        lengths=lengths,
        noise=noise,
        random_state=rng,
    )
    assert data.X.shape == (n_samples, n_features)
    np.testing.assert_array_equal(data.X.sum(axis=1), lengths)
    assert data.labels.min() >= 0
    assert data.labels.max() < n_clusters


def test_one_row_of_one_feature_holds_its_whole_length():
    data = simulate(1, topics=[[1.0]], cluster_topics=[[1.0]], lengths=100_000)
    assert data.X.toarray().tolist() == [[100_000]]


def test_a_row_longer_than_a_chunk_is_drawn_in_full():
    data = simulate(3, lengths=[5, 2**20 + 1, 5])
    np.testing.assert_array_equal(data.X.sum(axis=1), [5, 2**20 + 1, 5])


@pytest.mark.parametrize("tokens_per_chunk", [1, 10**5, 2**22])
def test_long_rows_do_not_depend_on_the_chunks_and_never_have_features_of_probability_zero(tokens_per_chunk):
    topics, mixtures = np.array([[0.1] * 7 + [0.3, 0.0, 0.0]]), np.array([[1.0]])
    lengths = np.array([3, 2**21, 10**17, 5, 9 * 10**18, 9 * 10**18])
    labels = np.zeros(6, dtype=int)
    X, again = (
        draw_counts(np.random.default_rng(0), labels, lengths, topics, mixtures, tokens_per_chunk=chunk)
        for chunk in (tokens_per_chunk, 2**20)
    )
    np.testing.assert_array_equal(X.toarray(), again.toarray())
    np.testing.assert_array_equal(X.sum(axis=1), lengths)
    assert X.toarray()[:, 8:].sum() == 0
    assert X.has_canonical_format
    np.testing.assert_allclose(X.toarray()[2] / 1e17, topics[0], atol=1e-7)


def test_a_wide_matrix_takes_memory_for_its_tokens_only():
    # As a dense matrix of int64 this would take 16 GB.
    topics = np.full((1, 10**6), 1e-6)
    X = simulate(2000, topics=topics, cluster_topics=[[1.0]], lengths=10).X
    assert X.shape == (2000, 10**6)
    assert X.nnz <= 20_000


# --- seeds ------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_data():
    assert_same_data(simulate(random_state=7), simulate(random_state=7))


def test_another_seed_gives_other_data():
    assert (simulate(random_state=7).X != simulate(random_state=8).X).nnz > 0


def test_an_integer_seed_is_the_seed_of_a_generator():
    assert_same_data(simulate(random_state=7), simulate(random_state=np.random.default_rng(7)))


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_moves_on_from_call_to_call_and_repeats_from_its_seed(make):
    rng, twin = make(3), make(3)
    first, second = simulate(random_state=rng), simulate(random_state=rng)
    assert (first.X != second.X).nnz > 0
    assert_same_data(first, simulate(random_state=twin))
    assert_same_data(second, simulate(random_state=twin))


def test_no_seed_gives_new_data_each_time():
    assert (simulate(random_state=None).X != simulate(random_state=None).X).nnz > 0


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_samples", 0),
        ("n_samples", 2.5),
        ("topics", [0.5, 0.5]),  # no matrix
        ("topics", np.zeros((0, 3))),
        ("topics", [[0.5, 0.5], [1.5, -0.5]]),
        ("topics", [[np.nan, 0.5]]),
        ("topics", [[0.5, 0.5], [2, 1]]),  # does not sum to one
        ("cluster_topics", [1, 0, 0]),
        ("cluster_topics", [[1, 1, -1]]),
        ("cluster_topics", [[0.2, 0.2, 0.2]]),
        ("cluster_topics", [[0.5, 0.5]]),  # one topic too few
        ("weights", [1, 2, 3]),
        ("weights", [1, -2]),
        ("weights", [np.inf, 1]),
        ("weights", [0, 0]),
        ("lengths", 2.5),
        ("lengths", [3, 4]),
        ("lengths", np.repeat([3, 0], 25)),
        ("noise", 1.5),
        ("noise", -0.1),
        ("noise", np.nan),
        ("noise", None),
        ("feature_names", ["a", "b"]),
        ("random_state", -1),
        ("random_state", "seed"),
    ],
)
def test_an_invalid_argument_raises_an_error_that_names_it(name, value):
    with pytest.raises(ValueError, match=name):
        simulate(**{name: value})


def test_float32_distributions_sum_to_one_closely_enough():
    topics = sparse_topics(3, 5000, 0.3, random_state=0).astype(np.float32)
    assert simulate(10, topics=topics).X.shape == (10, 5000)
