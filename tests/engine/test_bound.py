"""The bound in plain NumPy against the formulas of the model written out, and against what calculus says of it."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln, gammaln, xlogy

from mmpca.engine.bound import (
    cluster_bound,
    dirichlet_divergence,
    expected_log_theta,
    icl,
    mixture,
    partition_bound,
    responsibilities,
    second_order_change,
    topic_curvature,
    ve_step,
)

SEEDS = range(8)


def random_cluster(seed, n_topics=4, n_features=15, concentration=0.5, total=300):
    """Return topics (K, V), counts (V,) of a cluster and any Dirichlet parameters (K,)."""
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(n_features, concentration), size=n_topics)
    m = rng.multinomial(total, rng.dirichlet(np.ones(n_topics)) @ beta).astype(float)
    return beta, m, rng.gamma(2.0, 5.0, size=n_topics)


def best_bound(m, *, beta, alpha):
    """Return max J(m, .)."""
    return cluster_bound(m, ve_step(m, beta=beta, alpha=alpha), beta=beta, alpha=alpha)


def dirichlet_normaliser(gamma):
    """Return log B(gamma), B the multivariate beta function."""
    return gammaln(gamma).sum() - gammaln(gamma.sum())


def log_evidence(m, *, beta, alpha):
    """Return the logarithm of the integral of prod_v (beta' theta)_v^m_v over theta ~ Dirichlet(alpha); two topics."""

    def density(share):
        theta = np.array([share, 1 - share])
        return np.exp(xlogy(m, theta @ beta).sum() + (alpha - 1) * np.log(theta).sum() - betaln(alpha, alpha))

    return np.log(integrate.quad(density, 0, 1, epsabs=0, epsrel=1e-10)[0])


# --- it agrees with the model's formulas --------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_j_equals_the_evidence_lower_bound_written_out_token_by_token(seed, alpha):
    beta, m, gamma = random_cluster(seed)
    n_topics = len(beta)
    eta, phi = expected_log_theta(gamma), responsibilities(beta, gamma)
    tokens = np.repeat(np.arange(m.size), m.astype(int))
    log_x = sum(xlogy(phi[v], beta[:, v]).sum() for v in tokens)
    log_z = sum(phi[v] @ eta for v in tokens)
    log_theta = gammaln(n_topics * alpha) - n_topics * gammaln(alpha) + (alpha - 1) * eta.sum()
    entropy = stats.dirichlet(gamma).entropy() + sum(stats.entropy(phi[v]) for v in tokens)
    expected = log_x + log_z + log_theta + entropy
    assert cluster_bound(m, gamma, beta=beta, alpha=alpha) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_responsibilities_than_the_optimal_ones_only_lower_the_evidence_lower_bound(seed):
    beta, m, gamma = random_cluster(seed)
    rng = np.random.default_rng(seed)
    eta = expected_log_theta(gamma)
    phi = responsibilities(beta, gamma) * rng.uniform(0.5, 1.5, size=beta.T.shape)
    phi /= phi.sum(axis=1, keepdims=True)
    tokens = m @ (phi @ eta + xlogy(phi, beta.T).sum(axis=1) + stats.entropy(phi, axis=1))
    assert tokens - dirichlet_divergence(gamma, 1.0) < cluster_bound(m, gamma, beta=beta, alpha=1.0)


@pytest.mark.parametrize("gamma", [(0.4, 0.7), (1.0, 1.0), (3.0, 40.0)])
def test_the_moments_of_a_dirichlet_distribution_equal_their_integrals(gamma):
    first, second = gamma
    density = stats.beta(first, second)
    eta = [density.expect(np.log), density.expect(lambda share: np.log1p(-share))]
    np.testing.assert_allclose(expected_log_theta(np.array(gamma)), eta, rtol=1e-6)
    divergence = density.expect(lambda share: density.logpdf(share) - stats.beta(0.8, 0.8).logpdf(share))
    assert dirichlet_divergence(np.array(gamma), 0.8) == pytest.approx(divergence, rel=1e-6)


def test_a_distribution_does_not_diverge_from_itself():
    assert dirichlet_divergence(np.full(5, 0.7), 0.7) == pytest.approx(0, abs=1e-14)
    assert dirichlet_divergence(np.array([0.7, 0.8]), 0.7) > 0


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_stays_below_the_evidence_that_it_bounds_and_is_near_it(seed, alpha):
    beta, m, _ = random_cluster(seed, n_topics=2, n_features=6, total=25)
    gap = log_evidence(m, beta=beta, alpha=alpha) - best_bound(m, beta=beta, alpha=alpha)
    assert -1e-9 < gap < 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_mixture_and_responsibilities_are_the_two_factors_of_the_joint_weights(seed):
    beta, _, gamma = random_cluster(seed)
    joint = beta * np.exp(expected_log_theta(gamma))[:, None]
    np.testing.assert_allclose(responsibilities(beta, gamma).T * mixture(beta, gamma), joint, rtol=1e-13)
    np.testing.assert_allclose(responsibilities(beta, gamma).sum(axis=1), 1, rtol=1e-13)


def test_a_feature_without_probability_has_no_responsibilities():
    beta = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    phi = responsibilities(beta, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(phi[2], 0)
    np.testing.assert_allclose(phi[:2].sum(axis=1), 1)


def test_the_bound_of_a_partition_sums_over_the_clusters_and_their_weights():
    beta, first, _ = random_cluster(0)
    _, second, _ = random_cluster(1)
    sizes = np.array([3, 7])
    expected = best_bound(first, beta=beta, alpha=1.0) + best_bound(second, beta=beta, alpha=1.0)
    expected += 3 * np.log(0.3) + 7 * np.log(0.7)
    bound = partition_bound(np.array([first, second]), sizes, beta=beta, alpha=1.0)
    assert bound == pytest.approx(expected, rel=1e-14)


def test_the_icl_is_the_papers_formula():
    value = icl(-500.0, n_clusters=6, n_topics=4, n_samples=400, n_features=917)
    assert value == pytest.approx(-500 - 4 * 916 / 2 * np.log(6) - 5 / 2 * np.log(400), rel=1e-14)


def test_the_icl_of_a_single_cluster_is_its_bound():
    assert icl(-500.0, n_clusters=1, n_topics=4, n_samples=400, n_features=917) == -500.0


# --- it agrees with special cases ---------------------------------------------------------------------------------


def test_one_topic_gives_the_multinomial_likelihood():
    beta, m, _ = random_cluster(0, n_topics=1)
    gamma = ve_step(m, beta=beta, alpha=1.0)
    np.testing.assert_allclose(gamma, 1 + m.sum())
    assert best_bound(m, beta=beta, alpha=1.0) == pytest.approx(xlogy(m, beta[0]).sum(), rel=1e-13)
    np.testing.assert_array_equal(topic_curvature(m, gamma, beta=beta, alpha=1.0), [[0.0]])


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_topics_without_common_features_give_the_exact_evidence(alpha):
    rng = np.random.default_rng(0)
    beta = np.zeros((3, 12))
    for k in range(3):
        beta[k, 4 * k : 4 * k + 4] = rng.dirichlet(np.ones(4))
    m = rng.integers(0, 20, size=12).astype(float)
    s = m.reshape(3, 4).sum(axis=1)
    expected = xlogy(m, beta.sum(axis=0)).sum()
    expected += dirichlet_normaliser(alpha + s) - dirichlet_normaliser(np.full(3, alpha))
    np.testing.assert_allclose(ve_step(m, beta=beta, alpha=alpha), alpha + s, rtol=1e-12)
    assert best_bound(m, beta=beta, alpha=alpha) == pytest.approx(expected, rel=1e-13)


def test_identical_topics_share_the_counts_equally():
    beta = np.tile(np.random.default_rng(0).dirichlet(np.ones(6)), (3, 1))
    m = np.arange(6.0)
    np.testing.assert_allclose(ve_step(m, beta=beta, alpha=2.0), 2 + 15 / 3, rtol=1e-12)


def test_a_cluster_without_counts_contributes_nothing():
    beta, m, _ = random_cluster(0)
    np.testing.assert_allclose(ve_step(0 * m, beta=beta, alpha=0.6), 0.6)
    assert best_bound(0 * m, beta=beta, alpha=0.6) == pytest.approx(0, abs=1e-13)


# --- it keeps its invariants --------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_of_the_fixed_point_never_lowers_the_bound(seed, alpha):
    beta, m, gamma = random_cluster(seed)
    values = [cluster_bound(m, gamma, beta=beta, alpha=alpha)]
    for _ in range(50):
        gamma = ve_step(m, beta=beta, alpha=alpha, gamma=gamma, max_iter=1)
        values.append(cluster_bound(m, gamma, beta=beta, alpha=alpha))
        assert gamma.sum() == pytest.approx(len(beta) * alpha + m.sum(), rel=1e-13)
    assert np.diff(values).min() >= -1e-12 * abs(values[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_maximum_does_not_depend_on_where_the_fixed_point_starts(seed):
    beta, m, gamma = random_cluster(seed)
    np.testing.assert_allclose(
        ve_step(m, beta=beta, alpha=1.0, gamma=gamma), ve_step(m, beta=beta, alpha=1.0), rtol=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_gamma_has_a_higher_bound(seed):
    beta, m, _ = random_cluster(seed)
    gamma = ve_step(m, beta=beta, alpha=1.0)
    top = cluster_bound(m, gamma, beta=beta, alpha=1.0)
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 0.1, 1.0):
        other = gamma * np.exp(scale * rng.standard_normal(gamma.size))
        assert cluster_bound(m, other, beta=beta, alpha=1.0) < top


@pytest.mark.parametrize("seed", SEEDS)
def test_the_maximum_is_convex_in_the_counts(seed):
    beta, first, _ = random_cluster(seed)
    second = np.random.default_rng(seed).permutation(first)
    ends = best_bound(first, beta=beta, alpha=1.0), best_bound(second, beta=beta, alpha=1.0)
    for share in (0.1, 0.5, 0.8):
        between = best_bound(share * first + (1 - share) * second, beta=beta, alpha=1.0)
        assert between <= share * ends[0] + (1 - share) * ends[1] + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_curvature_is_symmetric_and_positive_definite(seed):
    beta, m, _ = random_cluster(seed)
    curvature = topic_curvature(m, ve_step(m, beta=beta, alpha=1.0), beta=beta, alpha=1.0)
    np.testing.assert_allclose(curvature, curvature.T, rtol=1e-8, atol=1e-12)
    assert np.linalg.eigvalsh(curvature).min() > 0


# --- expansions in the counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_first_and_second_order_are_the_derivatives_of_the_maximum(seed, alpha):
    beta, m, _ = random_cluster(seed, total=3000)
    m += 1
    d = np.random.default_rng(seed).integers(0, 5, size=m.size).astype(float)
    gamma = ve_step(m, beta=beta, alpha=alpha)
    step = 0.01
    low, middle, high = (best_bound(m + t * d, beta=beta, alpha=alpha) for t in (-step, 0, step))
    s = d @ responsibilities(beta, gamma)
    curvature = topic_curvature(m, gamma, beta=beta, alpha=alpha)
    assert (high - low) / (2 * step) == pytest.approx(d @ np.log(mixture(beta, gamma)), rel=1e-7)
    assert (high - 2 * middle + low) / step**2 == pytest.approx(s @ curvature @ s, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_of_the_second_order_expansion_shrinks_with_the_cube_of_the_change(seed, sign):
    beta, m, _ = random_cluster(seed, total=200)
    m += 1
    d = 0.2 * np.random.default_rng(seed).dirichlet(np.full(m.size, 0.3)) * m.sum()
    d = np.minimum(d, 0.5 * m)
    gamma = ve_step(m, beta=beta, alpha=1.0)
    start = best_bound(m, beta=beta, alpha=1.0)
    errors = []
    for t in (1 / 32, 1 / 64):
        change = best_bound(m + sign * t * d, beta=beta, alpha=1.0) - start
        errors.append(change - second_order_change(t * d, m, gamma, beta=beta, alpha=1.0, sign=sign))
    assert abs(errors[0]) > 1e-10  # far above rounding
    assert 7 < errors[0] / errors[1] < 9


# --- it is unchanged under permutations ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_topics_features_and_clusters_does_not_matter(seed):
    beta, first, _ = random_cluster(seed)
    counts, sizes = np.array([first, first[::-1], 2 * first]), np.array([1, 5, 3])
    expected = partition_bound(counts, sizes, beta=beta, alpha=1.0)
    rng = np.random.default_rng(seed)
    topics, features, clusters = (rng.permutation(n) for n in (*beta.shape, 3))
    permuted = partition_bound(
        counts[clusters][:, features], sizes[clusters], beta=beta[topics][:, features], alpha=1.0
    )
    assert permuted == pytest.approx(expected, rel=1e-12)
