"""Rows whose topic shares vary within clusters: their evidence, and the concentration of the shares."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from scipy.stats import beta as beta_distribution

from mmpca.backend import open_threads
from mmpca.counts import as_counts
from mmpca.engine.shares import (
    NEW_ROW,
    LeftOut,
    expected_topic_counts,
    fit_varying_shares,
    log_weights_without_row,
    plain_evidence,
    row_evidence,
    share_moments,
    share_variance,
    topics_of_entries,
)
from mmpca.model.prediction import topic_counts
from mmpca.topics import fit_lda
from mmpca.topics.em import fitted_shares

IS_COMPILED = not numba.config.DISABLE_JIT


def draw(concentration, *, n=400, length=200, n_clusters=5, n_topics=4, n_features=500, seed=0):
    """Draw rows, their clusters, and the parameters they come from."""
    rng = np.random.default_rng(seed)
    topics = 0.9 * rng.dirichlet(np.full(n_features, 0.05), n_topics) + 0.1 / n_features
    theta = rng.dirichlet(np.full(n_topics, 0.7), n_clusters)
    truth = rng.integers(n_clusters, size=n)
    lengths = np.broadcast_to(length, n)
    X = np.empty((n, n_features), dtype=int)
    for i, q in enumerate(truth):
        shares = theta[q] if np.isinf(concentration) else rng.dirichlet(np.maximum(concentration * theta[q], 1e-9))
        X[i] = rng.multinomial(lengths[i], shares @ topics)
    return X, truth, topics, theta


def concentration_of(rows, labels, **options):
    """Return the concentration of topic shares that vary."""
    return fit_varying_shares(rows, labels, **options).concentration


# --- evidence ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_the_kernel_equals_the_plain_evidence(seed):
    rng = np.random.default_rng(seed)
    n_topics, n_clusters = rng.integers(1, 5, size=2)
    topics = rng.dirichlet(np.full(12, 0.3), n_topics)
    theta = rng.dirichlet(np.ones(n_topics), n_clusters)
    concentration = np.exp(rng.uniform(-1, 6, n_clusters))
    X = rng.poisson(rng.uniform(0.2, 20), (6, 12))
    found = row_evidence(
        as_counts(X, empty_rows="allow"), topics=topics, cluster_topics=theta, concentration=concentration
    )
    for x, values in zip(X, found, strict=True):
        for q in range(n_clusters):
            prior = concentration[q] * np.maximum(theta[q], 1e-12)
            assert values[q] == pytest.approx(plain_evidence(x.astype(float), topics, prior), abs=2e-3)


def test_long_rows_with_a_small_prior_reach_the_fixed_point():
    """Steps become short long before the bound has converged, by different amounts in different clusters."""
    topics = np.array([[0.04, 0.38, 0.28, 0.30], [0.05, 0.43, 0.43, 0.09], [0.01, 0.22, 0.16, 0.61]])
    x, theta = np.array([66, 725, 509, 700]), np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    options = {"topics": topics, "cluster_topics": theta, "concentration": np.full(2, 5.0)}
    (found,) = row_evidence(as_counts([x]), **options)
    expected = [plain_evidence(x.astype(float), topics, 5 * shares) for shares in theta]
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_evidence_is_a_tight_lower_bound_of_the_marginal_likelihood():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(8, 0.5), 2)
    for prior in (np.array([3.0, 1.0]), np.array([20.0, 30.0]), np.array([0.4, 0.8])):
        for length in (1, 10, 60):
            x = rng.multinomial(length, rng.dirichlet(prior) @ topics).astype(float)

            def density(share, x=x, prior=prior):
                profile = share * topics[0] + (1 - share) * topics[1]
                return np.exp(x @ np.log(profile) - x @ np.log(topics.mean(axis=0))) * beta_distribution.pdf(
                    share, *prior
                )

            exact = np.log(quad(density, 0, 1, limit=200)[0]) + x @ np.log(topics.mean(axis=0))
            found = plain_evidence(x, topics, prior)
            assert found <= exact + 1e-6
            assert found > exact - 1.0


def test_evidence_is_exact_where_every_feature_has_one_topic():
    x, prior = np.array([4, 0, 3]), np.array([0.7, 2.0, 1.3])
    exact = gammaln(4.0) - gammaln(11.0) + (gammaln(x + prior) - gammaln(prior)).sum()
    found = row_evidence(
        as_counts([x]), topics=np.eye(3), cluster_topics=prior[None] / 4, concentration=np.array([4.0])
    )
    assert found[0, 0] == pytest.approx(exact, abs=1e-9)


def test_large_concentrations_approach_multinomial_rows():
    X, _, topics, theta = draw(np.inf, n=20, length=50)
    rows, fixed = as_counts(X), X @ np.log(theta @ topics).T
    common = {"topics": topics, "cluster_topics": theta}
    infinite = row_evidence(rows, **common, concentration=np.full(5, np.inf))
    np.testing.assert_allclose(infinite, fixed, rtol=1e-9)
    errors = [
        np.abs(row_evidence(rows, **common, concentration=np.full(5, c)) - fixed).max() for c in (1e2, 1e3, 1e4, 9e4)
    ]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < errors[0] / 100


def test_a_single_count_says_the_same_under_every_concentration():
    _, _, topics, theta = draw(10.0)
    X = np.eye(500, dtype=int)[:40]
    expected = np.log(theta @ topics).T[:40]
    found = row_evidence(as_counts(X), topics=topics, cluster_topics=theta, concentration=np.full(5, 7.0))
    assert (found <= expected + 1e-9).all()  # the bound
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98


def test_evidence_follows_permuted_rows_features_topics_and_clusters():
    X, truth, topics, theta = draw(10.0, n=60, length=30)
    rng = np.random.default_rng(1)
    i, v, k, q = (rng.permutation(size) for size in (60, 500, 4, 5))
    concentration = np.array([3.0, 10.0, np.inf, 50.0, 7.0])
    params = 1.0 + 500 * theta
    left_out = LeftOut(truth.astype(np.int32), params, np.bincount(truth, minlength=5).astype(float), 1.0)
    found = row_evidence(
        as_counts(X), topics=topics, cluster_topics=theta, concentration=concentration, left_out=left_out
    )
    changed = left_out._replace(
        labels=np.argsort(q)[truth[i]].astype(np.int32), topic_params=params[q][:, k], sizes=left_out.sizes[q]
    )
    permuted = row_evidence(
        as_counts(X[i][:, v]),
        topics=topics[k][:, v],
        cluster_topics=theta[q][:, k],
        concentration=concentration[q],
        left_out=changed,
    )
    np.testing.assert_allclose(permuted, found[i][:, q], rtol=1e-6)


def test_evidence_does_not_depend_on_threads_or_other_rows():
    X, _, topics, theta = draw(10.0, n=600 if IS_COMPILED else 300, length=40)
    common = {"topics": topics, "cluster_topics": theta, "concentration": np.full(5, 9.0)}
    alone = row_evidence(as_counts(X), **common)
    with open_threads(3) as threads:
        np.testing.assert_array_equal(row_evidence(as_counts(X), **common, threads=threads), alone)
    np.testing.assert_array_equal(row_evidence(as_counts(X[7:9]), **common), alone[7:9])


def test_unknown_features_and_empty_rows_carry_no_evidence():
    topics, theta = np.array([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]]), np.array([[0.5, 0.5], [0.9, 0.1]])
    for c in (5.0, np.inf):
        common = {"topics": topics, "cluster_topics": theta, "concentration": np.full(2, c)}
        rows = as_counts([[3, 2, 0], [3, 2, 9], [0, 0, 4], [0, 0, 0]], empty_rows="allow")
        found = row_evidence(rows, **common)
        np.testing.assert_allclose(found[1] - found[0], 0, atol=1e-9)
        np.testing.assert_allclose(found[2:], 0, atol=1e-9)


# --- rows left out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [8.0, np.inf])
def test_a_fitted_row_is_less_probable_without_itself(concentration):
    X, truth, topics, _ = draw(8.0, n=25, length=60)
    rows, labels = as_counts(X), truth.astype(np.int32)
    sums = rows.group_sums(labels, 5)
    theta = np.full((5, 4), 0.25)
    for _ in range(300):
        theta = theta * ((sums / (theta @ topics)) @ topics.T) / sums.sum(axis=1, keepdims=True)
    params = 1.0 + sums.sum(axis=1, keepdims=True) * theta
    sizes = np.bincount(truth, minlength=5).astype(float)
    common = {
        "topics": topics, "cluster_topics": params / params.sum(axis=1, keepdims=True),
        "concentration": np.full(5, concentration),
    }  # fmt: skip
    left_out = LeftOut(labels, params, sizes, 1.0)
    together, alone = row_evidence(rows, **common), row_evidence(rows, **common, left_out=left_out)
    own = np.zeros((25, 5), dtype=bool)
    own[np.arange(25), truth] = True
    np.testing.assert_array_equal(alone[~own], together[~own])
    assert (alone[own] < together[own]).mean() > 0.9
    new = left_out._replace(labels=np.full(25, NEW_ROW, np.int32))
    np.testing.assert_array_equal(row_evidence(rows, **common, left_out=new), together)


def test_topics_without_a_row_are_those_of_the_other_rows():
    """Topics are the smoothed profiles of clusters, so they can be learned again from the other rows."""
    rng, n_features, smoothing = np.random.default_rng(3), 12, 0.3
    X, labels = rng.poisson(0.7, (10, n_features)) + np.eye(10, n_features, dtype=int), np.arange(10) % 3
    X[:, -1] = 0
    X[4, -1] = 2  # a feature that no other row has

    def topics_of(counts):
        sums = np.array([counts[labels == q].sum(axis=0) for q in range(3)]) + smoothing
        return sums / sums.sum(axis=1, keepdims=True)

    counts = np.array([X[labels == q].sum(axis=0) for q in range(3)]).astype(float)
    params = counts.sum(axis=1) * np.eye(3) + 1e-12
    left_out = LeftOut(labels.astype(np.int32), params, np.bincount(labels).astype(float), 1e-12, counts, smoothing)
    rows = as_counts(X)
    found = np.vstack([topics for *_, topics in topics_of_entries(rows, topics_of(X), left_out)])
    for i in range(10):
        others = X.copy()
        others[i] = 0
        at = slice(rows.indptr[i], rows.indptr[i + 1])
        expected = topics_of(others)[:, rows.indices[at]].T
        expected[others.sum(axis=0)[rows.indices[at]] == 0] = 0.0
        np.testing.assert_allclose(found[at], expected, rtol=1e-6)
    new = left_out._replace(labels=np.full(10, NEW_ROW, np.int32))
    found = np.vstack([topics for *_, topics in topics_of_entries(rows, topics_of(X), new)])
    np.testing.assert_allclose(found, topics_of(X).T[rows.indices])


def test_the_only_row_of_a_cluster_leaves_the_prior_behind():
    topics, x = np.eye(2), [[5, 1]]
    left_out = LeftOut(np.zeros(1, np.int32), np.array([[6.0, 2.0], [10.0, 10.0]]), np.array([1.0, 4.0]), 1.0)
    common = {"topics": topics, "concentration": np.full(2, 6.0), "left_out": left_out}
    found = row_evidence(as_counts(x), cluster_topics=np.array([[0.75, 0.25], [0.5, 0.5]]), **common)
    assert found[0, 0] == pytest.approx(found[0, 1])  # without the row, the shares of both clusters are equal
    logs = log_weights_without_row(np.array([0.2, 0.8]), left_out)
    assert np.isfinite(logs).all()
    assert logs[0, 0] < np.log(0.2)
    assert logs[0, 1] == np.log(0.8)


# --- moments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [2.0, 10.0, 100.0, np.inf])
def test_moments_are_unbiased_at_any_length(concentration):
    length = np.random.default_rng(1).integers(2, 60, size=6000)
    X, _, topics, theta = draw(concentration, n=6000, length=length, n_clusters=1, n_features=60)
    found = share_moments(as_counts(X), topics, theta[0])
    estimates = found.values / found.scale
    for some in (length < 15, length >= 15):
        error = estimates[some].std() / np.sqrt(some.sum())
        assert abs(estimates[some].mean() - 1 / (concentration + 1)) < 4 * error


def test_moments_equal_a_sum_over_pairs_of_counts():
    rng = np.random.default_rng(0)
    topics, theta = rng.dirichlet(np.ones(6), 3), np.array([0.2, 0.5, 0.3])
    x = np.array([2, 0, 1, 3, 0, 1])
    profile = theta @ topics
    g = topics / profile - 1  # (K, V)
    inverse = np.linalg.inv((topics / profile) @ topics.T)
    tokens = np.repeat(np.arange(6), x)
    pairs = [g[:, a] @ inverse @ g[:, b] for i, a in enumerate(tokens) for j, b in enumerate(tokens) if i != j]
    assert share_moments(as_counts([x]), topics, theta).values[0] == pytest.approx(np.mean(pairs))


def test_shares_fitted_to_the_same_rows_do_not_bias_the_variance():
    rng, estimates = np.random.default_rng(0), []
    for _ in range(300):
        X = np.array([rng.multinomial(50, shares) for shares in rng.dirichlet([2.0, 1.0, 3.0], size=5)])  # c = 6
        rows = as_counts(X)
        found = share_moments(rows, np.eye(3), X.sum(axis=0) / X.sum())
        lengths = [rows.row_totals().astype(float)]
        estimates.append(share_variance([found], lengths, [np.ones(5)]))
    assert np.mean(estimates) == pytest.approx(1 / 7, rel=0.1)  # 20 % less without the correction


# --- concentration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [5.0, 20.0, 100.0])
def test_the_concentration_is_found_under_the_true_topics(concentration):
    found = []
    for seed in range(3):
        X, truth, topics, _ = draw(concentration, seed=seed)
        found.append(concentration_of(as_counts(X), truth, topics=topics, n_clusters=5, alpha=1.0))
    assert np.exp(np.mean(np.log(found))) == pytest.approx(concentration, rel=0.2)


def test_the_concentration_is_found_under_topics_that_were_learned_from_the_rows():
    found = []
    for seed in range(3):
        X, truth, _, _ = draw(5.0, seed=seed)
        rows, members = as_counts(X), np.eye(5)[truth]
        topics = fit_lda(rows, 4, rng=np.random.default_rng(seed), n_init=2).beta
        theta = members.T @ fitted_shares(rows, np.ascontiguousarray(topics.T), 1.0) / members.sum(axis=0)[:, None]
        counts = topic_counts(topics, theta, members.T @ X)
        common = {"topics": topics, "n_clusters": 5, "alpha": 1.0}
        found.append(
            [concentration_of(rows, truth, **common), concentration_of(rows, truth, **common, topic_counts=counts)]
        )
    fixed, estimated = np.exp(np.mean(np.log(found), axis=0))
    assert estimated == pytest.approx(5.0, rel=0.15)
    assert abs(estimated - 5.0) < abs(fixed - 5.0)


def test_expected_topic_counts_add_up_and_follow_the_row_and_its_cluster():
    X, _, topics, theta = draw(10.0, n=30, length=50)
    rows, concentration, expected = as_counts(X), np.full(5, 10.0), np.empty((30, 5, 4))
    row_evidence(rows, topics=topics, cluster_topics=theta, concentration=concentration, expected=expected)
    weights = np.random.default_rng(0).dirichlet(np.ones(5), 30)
    found = expected_topic_counts(rows, topics, weights, expected)
    np.testing.assert_allclose(found.sum(axis=0), X.sum(axis=0), rtol=1e-9)
    by_row = expected[:, :, :, None] * topics  # (N, Q, K, V)
    by_row /= by_row.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found, np.einsum("iq,iv,iqkv->kv", weights, X, by_row), atol=1e-9)


def test_few_of_the_rows_hardly_change_topics_that_many_have_learned():
    X, truth, topics, _ = draw(10.0, n=12, length=40)
    common = {"topics": topics, "n_clusters": 5, "alpha": 1.0}
    changes = [
        np.abs(fit_varying_shares(as_counts(X), truth, **common, topic_counts=n * topics).topics - topics).sum()
        for n in (500.0, 50_000.0)
    ]
    assert changes[0] > 50 * changes[1] > 0
    np.testing.assert_array_equal(fit_varying_shares(as_counts(X[:2]), truth[:2], **common).topics, topics)


def test_clusters_out_of_reach_hold_a_negligible_part_of_a_row():
    X, _, topics, theta = draw(20.0, n=300)
    common = {"topics": topics, "cluster_topics": theta, "concentration": np.full(5, 20.0)}
    every, some = row_evidence(as_counts(X), **common), row_evidence(as_counts(X), **common, reach=12.0)
    is_left_out = np.isinf(some)
    assert 0.1 < is_left_out.mean() < 0.8
    np.testing.assert_array_equal(some[~is_left_out], every[~is_left_out])
    probabilities = np.exp(every - logsumexp(every, axis=1, keepdims=True))
    assert (probabilities * is_left_out).sum(axis=1).max() < 1e-3


def test_rows_that_do_not_vary_have_a_large_concentration():
    X, truth, topics, _ = draw(np.inf)
    assert concentration_of(as_counts(X), truth, topics=topics, n_clusters=5, alpha=1.0) > 1000


def test_labels_cut_off_stray_rows_and_soft_assignments_put_them_back():
    X, _, topics, theta = draw(5.0, n=600)
    rows = as_counts(X)
    # The rows nearest to each cluster, as labels have them: their shares vary too little around the cluster's.
    labels = (X @ np.log(theta @ topics).T).argmax(axis=1)
    moments = [share_moments(rows.take(np.flatnonzero(labels == q)), topics, theta[q]) for q in range(5)]
    sizes = np.bincount(labels, minlength=5)
    hard = share_variance(moments, [np.full(n, 200.0) for n in sizes], [np.ones(n) for n in sizes])
    soft = concentration_of(rows, labels, topics=topics, n_clusters=5, alpha=1.0)
    assert abs(soft - 5.0) < abs(1 / hard - 1 - 5.0)


def test_probabilities_under_the_true_parameters_are_calibrated():
    for concentration in (5.0, 20.0, np.inf):
        X, truth, topics, theta = draw(concentration, n=2000)
        joint = row_evidence(as_counts(X), topics=topics, cluster_topics=theta, concentration=np.full(5, concentration))
        probabilities = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        largest, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
        for low, high in ((0.0, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
            some = (largest >= low) & (largest < high)
            if some.sum() > 50:
                assert abs(largest[some].mean() - is_right[some].mean()) < 0.1
        assert abs(largest.mean() - is_right.mean()) < 0.04


def test_the_concentration_does_not_depend_on_threads_or_the_names_of_clusters():
    X, truth, topics, _ = draw(20.0, n=300)
    rows, common = as_counts(X), {"topics": topics, "n_clusters": 5, "alpha": 1.0}
    found = concentration_of(rows, truth, **common)
    with open_threads(3) as threads:
        assert concentration_of(rows, truth, **common, threads=threads) == found
    assert concentration_of(rows, np.array([3, 1, 4, 0, 2])[truth], **common) == pytest.approx(found, rel=1e-6)
    order = np.random.default_rng(0).permutation(300)
    assert concentration_of(as_counts(X[order]), truth[order], **common) == pytest.approx(found, rel=1e-6)


def test_the_concentration_leaves_every_cluster_a_mode_even_if_most_rows_have_a_single_topic():
    X, truth, topics, _ = draw(0.2)
    found = fit_varying_shares(as_counts(X), truth, topics=topics, n_clusters=5, alpha=1.0)
    assert (found.concentration * found.cluster_topics.max(axis=1) >= 1.0 - 1e-9).all()


@pytest.mark.parametrize(
    ("X", "labels", "n_topics"),
    [
        pytest.param([[1, 0], [0, 1], [1, 0]], [0, 0, 1], 2, id="rows of one count"),
        pytest.param([[3, 1], [1, 3], [2, 2]], [0, 1, 2], 2, id="clusters of one row"),
        pytest.param([[3, 1], [1, 3], [2, 2]], [0, 0, 0], 1, id="one topic"),
        pytest.param([[3, 1], [3, 1], [3, 1]], [0, 0, 0], 2, id="equal rows"),
        pytest.param([[900, 1], [1, 900], [450, 451]], [0, 1, 0], 2, id="long rows"),
    ],
)
def test_awkward_rows_have_a_concentration(X, labels, n_topics):
    topics = np.array([[0.8, 0.2], [0.3, 0.7]])[:n_topics]
    n_clusters = max(labels) + 1
    found = concentration_of(as_counts(X), labels, topics=topics, n_clusters=n_clusters, alpha=1.0)
    assert found > 0
    if n_topics == 1 or max(map(sum, X)) == 1:
        assert found == np.inf  # nothing says that shares vary


def test_a_concentration_counts_topics_that_cannot_be_told_apart_once():
    X, truth, topics, _ = draw(10.0, n=300, n_clusters=2)
    twice = topics[[0, 1, 2, 3, 3]]
    found = concentration_of(as_counts(X), truth, topics=twice, n_clusters=2, alpha=1.0)
    assert np.isfinite(found)
    assert found > 0
