"""The overdispersion index is one under the model and larger when it fails; variance factors are those of the data."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmpca.backend import LocalRows, open_threads
from mmpca.counts import as_counts
from mmpca.distributed.sources import load
from mmpca.model.dispersion import LARGE_INDEX, Bursts, advice, burstiness, overdispersion
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics


def simulate(seed, *, n_rows=300, n_features=50, length=100, n_clusters=4, n_topics=3):
    """Return counts, labels, topics and cluster topics of the model."""
    rng = np.random.default_rng(seed)
    data = simulate_mmpca(
        n_rows,
        topics=sparse_topics(n_topics, n_features, 0.3, rng),
        cluster_topics=rng.dirichlet(np.ones(n_topics), n_clusters),
        lengths=length,
        random_state=rng,
    )
    return data.X.toarray(), data.labels, {"topics": data.topics, "cluster_topics": data.cluster_topics}


def index(X, labels, fitted):
    return overdispersion(as_counts(X), labels, **fitted)


def reference(X, labels, *, topics, cluster_topics):
    """Return the index overall and by cluster, written out row by row."""
    profiles = cluster_topics @ topics
    ratios = []
    for x, q in zip(X, labels, strict=True):
        mean, p = x.sum() * profiles[q], profiles[q]
        ratios.append(((x - mean) ** 2).sum() / (mean * (1 - p)).sum())
    share = 1 - min(cluster_topics.shape) / len(X)
    ratios = np.array(ratios) / share
    clusters = [ratios[labels == q].mean() if (labels == q).any() else np.nan for q in range(len(profiles))]
    return ratios.mean(), np.array(clusters)


# --- it agrees with the formula ---------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(4, 30),
    n_features=st.integers(3, 30),
    length=st.sampled_from([1, 10, 1000]),
    n_clusters=st.integers(1, 6),
    n_topics=st.integers(1, 3),
)
def test_it_equals_its_formula(seed, n_rows, n_features, length, n_clusters, n_topics):
    shape = {"n_rows": n_rows, "n_features": n_features, "length": length}
    X, labels, fitted = simulate(seed, **shape, n_clusters=n_clusters, n_topics=n_topics)
    found = index(X, labels, fitted)
    overall, clusters = reference(X, labels, **fitted)
    assert found.overall == pytest.approx(overall, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.clusters, clusters, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("length", [1, 10, 1000])
@pytest.mark.parametrize("n_features", [3, 50, 1000])
def test_it_is_one_under_the_model_at_any_length_and_number_of_features(length, n_features):
    found = index(*simulate(1, n_rows=600, length=length, n_features=n_features))
    assert found.overall == pytest.approx(1, abs=0.15)
    np.testing.assert_allclose(found.clusters, 1, atol=0.35)


@pytest.mark.parametrize("length", [20, 250])
def test_it_is_one_on_the_design_of_the_paper(length):
    data = paper_design(length=length, noise=0.2, random_state=0)
    noisy = 0.8 * data.cluster_topics + 0.2 / 4
    found = index(data.X, data.labels, {"topics": data.topics, "cluster_topics": noisy})
    assert found.overall == pytest.approx(1, abs=0.03)


def test_degrees_of_freedom_correct_for_fitted_topics():
    values = []
    for seed in range(200):
        X = np.random.default_rng(seed).multinomial(100, [0.2, 0.3, 0.5], size=5)
        fitted = {"topics": X.sum(axis=0, keepdims=True) / X.sum(), "cluster_topics": np.ones((1, 1))}
        values.append(index(X, np.zeros(5, dtype=int), fitted).overall)
    assert np.mean(values) == pytest.approx(1, abs=0.12)  # without them: 0.8


# --- it finds overdispersion ------------------------------------------------------------------------------------


def test_counts_that_come_in_clumps_have_their_size_as_index():
    X, labels, fitted = simulate(0)
    single, clumps = index(X, labels, fitted), index(9 * X, labels, fitted)
    assert clumps.overall == pytest.approx(9 * single.overall, rel=1e-9)
    np.testing.assert_allclose(clumps.clusters, 9 * single.clusters, rtol=1e-9)


def test_rows_with_shares_of_their_own_have_the_variance_of_a_dirichlet_multinomial():
    rng = np.random.default_rng(0)
    topic, precision, length = np.array([0.1, 0.2, 0.3, 0.4]), 50.0, 400
    X = np.array([rng.multinomial(length, p) for p in rng.dirichlet(precision * topic, size=2000)])
    fitted = {"topics": topic[None], "cluster_topics": np.ones((1, 1))}
    found = index(X, np.zeros(2000, dtype=int), fitted).overall
    assert found == pytest.approx(1 + (length - 1) / (precision + 1), rel=0.05)


def test_an_overdispersed_cluster_stands_out():
    X, labels, fitted = simulate(0)
    X[labels == 2] *= 20
    found = index(X, labels, fitted)
    assert found.clusters[2] > 10
    assert found.clusters[[0, 1, 3]].max() < 2


def test_no_single_row_decides():
    X, labels, fitted = simulate(0)
    before = index(X, labels, fitted).overall
    X[0] *= 1000
    assert index(X, labels, fitted).overall < before + 1000 / 150


# --- it is unchanged under relabelling and permutation ----------------------------------------------------------


def test_the_order_of_rows_features_clusters_and_topics_does_not_matter():
    X, labels, fitted = simulate(0)
    rng = np.random.default_rng(0)
    rows, features = (rng.permutation(n) for n in X.shape)
    clusters, topics = (rng.permutation(n) for n in fitted["cluster_topics"].shape)
    permuted = {
        "topics": fitted["topics"][topics][:, features],
        "cluster_topics": fitted["cluster_topics"][clusters][:, topics],
    }
    same = index(X[rows][:, features], np.argsort(clusters)[labels[rows]], permuted)
    found = index(X, labels, fitted)
    assert same.overall == pytest.approx(found.overall, rel=1e-12)
    np.testing.assert_allclose(same.clusters, found.clusters[clusters], rtol=1e-9)


def test_it_is_the_same_in_threads_and_in_parts_bit_for_bit():
    X, labels, fitted = simulate(0, n_rows=1000)
    alone = index(X, labels, fitted)
    with open_threads(2) as threads:
        for backend in (LocalRows(as_counts(X), threads), load([X[:333], X[333:400], X[400:]]).backend):
            found = overdispersion(backend, labels, **fitted)
            assert found.overall == alone.overall
            np.testing.assert_array_equal(found.clusters, alone.clusters)


# --- it needs little memory -------------------------------------------------------------------------------------


def test_it_needs_less_memory_than_the_counts_or_the_scores_of_all_clusters():
    X, labels, fitted = simulate(0, n_rows=5000, n_features=200, length=100, n_clusters=50)
    rows = as_counts(X)
    overdispersion(rows, labels, **fitted)  # compile first
    tracemalloc.start()
    overdispersion(rows, labels, **fitted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 < min(8 * rows.nnz, 8 * len(X) * 50)


# --- it survives awkward input ----------------------------------------------------------------------------------


def test_one_feature_has_no_variance_to_compare():
    fitted = {"topics": np.ones((1, 1)), "cluster_topics": np.ones((2, 1))}
    found = index(np.full((4, 1), 7), np.array([0, 0, 1, 1]), fitted)
    assert np.isnan(found.overall)
    assert np.isnan(found.clusters).all()


def test_a_cluster_with_a_single_feature_is_left_out():
    X, labels, fitted = simulate(0, n_clusters=1)
    topics = np.vstack([fitted["topics"], np.eye(1, X.shape[1])])
    both = np.vstack([np.append(fitted["cluster_topics"][0], 0.0), [0, 0, 0, 1.0]])
    single = np.zeros((5, X.shape[1]), dtype=int)
    single[:, 0] = 3
    found = index(
        np.vstack([X, single]), np.append(labels, np.ones(5, dtype=int)), {"topics": topics, "cluster_topics": both}
    )
    assert found.overall == pytest.approx(1, abs=0.15)
    assert np.isnan(found.clusters[1])


def test_as_many_clusters_and_topics_as_rows_leave_nothing_to_compare():
    X, _, fitted = simulate(0, n_rows=3, n_clusters=3, n_topics=3)
    found = index(X, np.arange(3), fitted)
    assert np.isnan(found.overall)


def test_identical_rows_do_not_vary():
    X = np.tile([2, 3, 5], (10, 1))
    fitted = {"topics": np.array([[0.2, 0.3, 0.5]]), "cluster_topics": np.ones((1, 1))}
    assert index(X, np.zeros(10, dtype=int), fitted).overall == pytest.approx(0, abs=1e-9)


def test_counts_of_a_million_do_not_cancel():
    X, labels, fitted = simulate(0, length=100)
    found, plain = index(X * 1_000_000, labels, fitted), index(X, labels, fitted)
    assert found.overall == pytest.approx(1_000_000 * plain.overall, rel=1e-6)


# --- variance factors -------------------------------------------------------------------------------------------


def bursty(n_rows, profile, factors, length, seed=0):
    """Return negative binomial counts with means L p_v and variance factors phi_v."""
    rng = np.random.default_rng(seed)
    shape = np.asarray(length).reshape(-1, 1) * profile / (factors - 1.0)
    return rng.poisson(rng.gamma(np.broadcast_to(shape, (n_rows, len(profile)))) * (factors - 1.0))


def one_cluster(X):
    return burstiness(as_counts(X), np.zeros(len(X), dtype=int), 1)


def reference_factors(X, labels, n_clusters):
    """Return the unshrunk moments, written out cluster by cluster."""
    observed, expected = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for q in range(n_clusters):
        rows = X[labels == q]
        if len(rows) < 2:
            continue
        totals, p = rows.sum(axis=1, keepdims=True), rows.sum(axis=0) / rows.sum()
        observed += len(rows) / (len(rows) - 1) * ((rows - totals * p) ** 2 / totals).sum(axis=0)
        expected += len(rows) * p * (1 - p)
    return np.divide(observed, expected, out=np.ones_like(observed), where=expected > 0)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(6, 40), n_clusters=st.integers(1, 5))
def test_factors_are_the_moments_within_clusters_shrunk_toward_their_median(seed, n_rows, n_clusters):
    X, labels, _ = simulate(seed, n_rows=n_rows, n_features=12, length=30, n_clusters=n_clusters)
    X, labels = X * np.random.default_rng(seed).integers(1, 5, (n_rows, 1)), labels % n_clusters
    found = burstiness(as_counts(X), labels, n_clusters)
    raw, n_seen = reference_factors(X, labels, n_clusters), (X > 0).sum(axis=0)
    members = np.equal.outer(np.arange(n_clusters), labels)
    informative = ((members.sum(axis=1) > 1)[:, None] * (members @ X)).sum(axis=0) > 0
    often = (n_seen >= 3) & informative
    middle = np.median(raw[often]) if often.any() else 1.0
    expected = np.maximum((n_seen * raw + 10 * middle) / (n_seen + 10), 1)
    np.testing.assert_allclose(found.factors, expected, rtol=1e-4)
    sums = members @ X
    profiles = np.divide(sums, sums.sum(axis=1, keepdims=True), out=np.zeros(sums.shape), where=sums > 0)
    mean = np.divide((sums * profiles).sum(axis=0), X.sum(axis=0), out=np.zeros(12), where=X.sum(axis=0) > 0)
    np.testing.assert_allclose(found.profile, mean, rtol=1e-12)


@pytest.mark.parametrize("factor", [1.5, 4.0, 30.0])
def test_factors_of_negative_binomial_rows_are_recovered(factor):
    profile = np.random.default_rng(1).dirichlet(np.ones(200))
    lengths = np.random.default_rng(2).integers(500, 5000, 800)
    factors = np.where(np.arange(200) % 2, factor, 2.0)
    found = one_cluster(bursty(800, profile, factors, lengths)).factors
    is_common = profile > 0.002
    np.testing.assert_allclose(np.median(found[is_common & (factors == factor)]), factor, rtol=0.1)
    np.testing.assert_allclose(np.median(found[is_common & (factors == 2.0)]), 2.0, rtol=0.1)


@pytest.mark.parametrize("concentration", [30, 100, 300])
def test_factors_of_dirichlet_multinomial_rows_imply_their_concentration(concentration):
    rng = np.random.default_rng(0)
    profiles, length = rng.dirichlet(np.ones(60), 3), 300
    labels = np.repeat([0, 1, 2], 200)
    X = np.array([rng.multinomial(length, rng.dirichlet(concentration * profiles[q])) for q in labels])
    factors = burstiness(as_counts(X), labels, 3).factors  # (L + s) / (1 + s)
    implied = (length - np.median(factors)) / (np.median(factors) - 1)
    assert implied == pytest.approx(concentration, rel=0.2)


def test_factors_are_about_one_and_counts_stay_the_same_under_the_model():
    X, labels, _ = simulate(3, n_rows=1000)
    found = burstiness(as_counts(X), labels, 4)
    assert found.factors.max() < 1.3
    effective = found.units.convert(as_counts(X))
    np.testing.assert_array_equal(effective.indices, as_counts(X).indices)
    assert effective.data.sum() > 0.95 * X.sum()


def test_factors_do_not_depend_on_the_order_of_rows_features_and_clusters():
    X, labels, _ = simulate(0)
    rng = np.random.default_rng(0)
    rows, features, clusters = (rng.permutation(n) for n in (*X.shape, 4))
    found = burstiness(as_counts(5 * X), labels, 4)
    same = burstiness(as_counts(5 * X[rows][:, features]), clusters[labels[rows]], 4)
    np.testing.assert_allclose(same.factors, found.factors[features], rtol=1e-9)
    np.testing.assert_allclose(same.profile, found.profile[features], rtol=1e-12)


def test_factors_are_the_same_in_threads_and_in_parts_bit_for_bit():
    X, labels, _ = simulate(0, n_rows=1000)
    X = X * np.random.default_rng(0).integers(1, 100, (1000, 1))
    alone = burstiness(as_counts(X), labels, 4)
    with open_threads(2) as threads:
        for backend in (LocalRows(as_counts(X), threads), load([X[:333], X[333:400], X[400:]]).backend):
            for one, other in zip(burstiness(backend, labels, 4), alone, strict=True):
                np.testing.assert_array_equal(one, other)


AWKWARD = {
    "one count in each row": (np.eye(6, dtype=int), np.array([0, 0, 0, 1, 1, 1])),
    "clusters of one row": (np.array([[3, 1, 0], [0, 9, 1], [2, 2, 2]]), np.array([0, 1, 2])),
    "a feature in one row": (np.array([[3, 1, 900], [2, 2, 0], [1, 3, 0], [2, 1, 0]]), np.zeros(4, dtype=int)),
    "a single feature": (np.array([[3], [1], [7]]), np.zeros(3, dtype=int)),
    "an empty cluster and an empty column": (np.array([[3, 0, 1], [4, 0, 2], [1, 0, 3]]), np.array([0, 0, 2])),
    "identical rows": (np.tile([2, 3, 5], (10, 1)), np.zeros(10, dtype=int)),
    "counts up to the largest": (np.array([[2**31 - 1, 1], [1, 2**31 - 1], [5, 5]]), np.zeros(3, dtype=int)),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_factors_and_effective_counts_survive_awkward_input(name):
    X, labels = AWKWARD[name]
    found = burstiness(as_counts(X), labels, 3)
    assert np.isfinite(found.factors).all()
    assert (found.factors >= 1).all()
    assert ((found.profile >= 0) & (found.profile <= 1)).all()
    effective = found.units.convert(as_counts(X)).data
    assert ((effective >= 1) & (effective <= as_counts(X).data)).all()


def test_effective_counts_of_a_feature_share_the_length_of_their_row():
    """The expected effective count is proportional to the row's total: profiles do not depend on it."""
    profile, factors = np.array([0.02, 0.08, 0.3, 0.6]), np.array([3.0, 5.0, 20.0, 50.0])
    found = Bursts(factors, profile)
    means = [
        found.units.convert(as_counts(np.maximum(bursty(4000, profile, factors, length), 1))).to_csr().mean(axis=0)
        / length
        for length in (2000, 8000)
    ]
    np.testing.assert_allclose(means[0], means[1], rtol=0.1)


# --- the advice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stabilize", [None, "sqrt"])
@pytest.mark.parametrize(("is_command", "remedy"), [(False, 'dispersion="polya"'), (True, "--dispersion polya")])
def test_advice_on_a_large_index_names_it_and_the_remedy_in_the_words_of_the_reader(is_command, remedy, stabilize):
    text = advice(137.18, dispersion="multinomial", stabilize=stabilize, is_command=is_command)
    assert text is not None
    assert "137 times" in text
    assert remedy in text
    assert ("--" in text) == is_command


@pytest.mark.parametrize("overall", [1.0, LARGE_INDEX, np.nan])
def test_there_is_no_advice_on_a_small_index(overall):
    assert advice(overall, dispersion="multinomial", stabilize=None) is None


def test_there_is_no_advice_if_the_variance_is_already_modeled():
    assert advice(100.0, dispersion="polya", stabilize=None) is None
