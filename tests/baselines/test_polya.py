import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet_multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import MultinomialMixture, PolyaMixture
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.baselines.polya import AlphaStep, as_pairs, joint_log_density, run_em
from mmpca.counts import as_counts

TINY_X = np.array([[3, 0, 1], [5, 1, 0], [0, 2, 2], [1, 9, 8], [0, 1, 1]])


def joint_by_scipy(X, weights, alphas):
    """Return the log of weight times density, (N, Q), coefficients included."""
    return np.array(
        [
            [np.log(w) + dirichlet_multinomial.logpmf(x, a, x.sum()) for w, a in zip(weights, alphas, strict=True)]
            for x in X
        ]
    )


def expected_objective(alpha, X, shares, smoothing, rate):
    """Return the weighted log density of rows in one cluster plus the log-prior, without coefficients."""
    total = alpha.sum()
    rows = gammaln(alpha + X).sum(axis=1) - gammaln(alpha).sum() + gammaln(total) - gammaln(total + X.sum(axis=1))
    return shares @ rows + np.sum(smoothing * np.log(alpha) - rate * alpha)


def draw_rows(rng, alphas, totals, labels):
    """Return counts of rows that each draw a profile of their own."""
    return np.array([rng.multinomial(n, rng.dirichlet(alphas[q])) for n, q in zip(totals, labels, strict=True)])


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_clusters = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    X = rng.integers(0, draw(st.sampled_from([2, 6, 3000])), size=(n_rows, draw(st.integers(1, 6))))
    X[0] += 1  # every feature occurs
    X[:, 0] += 1
    alphas = rng.gamma(0.5, draw(st.sampled_from([0.1, 10.0, 1e5])), size=(X.shape[1], n_clusters)) + 1e-3
    return X, rng.dirichlet(np.ones(n_clusters), size=n_rows), alphas


@given(problems())
@settings(max_examples=60, deadline=None)
def test_densities_agree_with_scipy(problem):
    X, shares, alphas = problem
    weights = shares.mean(axis=0)
    found = joint_log_density(as_pairs(as_counts(X).to_csr()), weights, alphas)
    expected = joint_by_scipy(X, weights, alphas.T) - log_multinomial_coefficients(as_counts(X))[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-5)


@given(problems(), st.sampled_from([1e-3, 0.1, 2.0]), st.sampled_from([1e-3, 0.1]))
@settings(max_examples=60, deadline=None)
def test_the_m_step_never_lowers_the_objective_of_a_cluster(problem, smoothing, rate):
    X, shares, alphas = problem
    step = AlphaStep(as_pairs(as_counts(X).to_csr()), smoothing, rate)
    expected = step.expected(shares)
    for _ in range(5):
        before = [expected_objective(a, X, r, smoothing, rate) for a, r in zip(alphas.T, shares.T, strict=True)]
        np.testing.assert_allclose(step.objective(alphas, *expected), before, rtol=1e-7, atol=1e-5)
        alphas = step.improve(alphas, *expected)
        after = [expected_objective(a, X, r, smoothing, rate) for a, r in zip(alphas.T, shares.T, strict=True)]
        assert np.all(alphas > 0)
        assert np.all(np.subtract(after, before) >= -1e-8 * np.abs(before) - 1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_one_cluster_is_the_fit_of_a_single_dirichlet_multinomial(rate):
    rng = np.random.default_rng(1)
    X = draw_rows(rng, np.array([[2.0, 0.5, 4.0, 1.0]]), rng.integers(10, 80, size=40), np.zeros(40, dtype=int))

    def loss(logs):
        return -expected_objective(np.exp(logs), X, np.ones(40), 0.1, rate)

    best = minimize(loss, np.zeros(4), tol=1e-12)
    model = PolyaMixture(1, rate=rate, n_init=1, tol=0, random_state=0).fit(X)
    np.testing.assert_allclose(model.alphas_[0], np.exp(best.x), rtol=1e-4)
    coefficients = log_multinomial_coefficients(as_counts(X)).sum()
    assert model.history_[-1] == pytest.approx(-best.fun + coefficients, abs=1e-6)


def test_criteria_agree_with_their_definitions():
    model = PolyaMixture(2, random_state=0).fit(TINY_X)
    joint = joint_by_scipy(TINY_X, model.weights_, model.alphas_)
    R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    entropy = -np.sum(R * np.log(np.maximum(R, 1e-300)))
    assert model.log_likelihood_ == pytest.approx(logsumexp(joint, axis=1).sum())
    assert model.bic_ == pytest.approx(model.log_likelihood_ - 7 / 2 * np.log(5))  # 2 x 3 parameters, 1 weight
    assert model.icl_ == pytest.approx(model.bic_ - entropy)
    np.testing.assert_allclose(model.predict_proba(TINY_X), R, atol=1e-9)
    np.testing.assert_array_equal(model.predict(TINY_X), model.labels_)
    prior = np.sum(0.1 * np.log(model.alphas_) - 0.01 * model.alphas_)
    assert model.history_[-1] == pytest.approx(model.log_likelihood_ + prior)


def test_profiles_and_concentrations_are_those_of_the_parameters(make_blocks):
    model = PolyaMixture(3, n_init=1, random_state=0).fit(make_blocks().X)
    np.testing.assert_allclose(model.profiles_.sum(axis=1), 1)
    np.testing.assert_allclose(model.profiles_ * model.concentrations_[:, None], model.alphas_)


def test_relabeled_starts_lead_to_relabeled_clusters(make_blocks):
    sample = make_blocks(2, shortest=5, longest=30)
    pairs = as_pairs(as_counts(sample.X).to_csr())
    runs = [
        run_em(pairs, labels, 3, AlphaStep(pairs, 0.1, 0.01), max_iter=5, tol=0)
        for labels in (sample.labels, np.array([2, 0, 1])[sample.labels])
    ]
    np.testing.assert_allclose(runs[0].alphas, runs[1].alphas[:, [2, 0, 1]], rtol=1e-6)
    np.testing.assert_allclose(runs[0].history, runs[1].history, rtol=1e-9)


def test_recovers_clusters_with_the_same_mean_that_differ_in_concentration():
    rng = np.random.default_rng(3)
    mean = rng.dirichlet(np.full(30, 5.0))
    labels = np.arange(120) % 2
    X = draw_rows(rng, np.array([5 * mean, 500 * mean]), rng.integers(100, 400, size=120), labels)
    model = PolyaMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    assert sorted(model.concentrations_ > 50) == [False, True]
    blind = MultinomialMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(labels, blind.labels_) < 0.5


@pytest.mark.parametrize("start", ["auto", "kmeans", "hellinger", "random"])
def test_recovers_overdispersed_clusters_and_their_parameters(start):
    rng = np.random.default_rng(4)
    alphas = rng.gamma(1.0, 1.0, size=(4, 25)) + 0.05
    labels = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=300)
    X = draw_rows(rng, alphas, rng.integers(80, 800, size=300), labels)
    model = PolyaMixture(4, start=start, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    order = [np.bincount(model.labels_[labels == q]).argmax() for q in range(4)]
    np.testing.assert_allclose(model.concentrations_[order], alphas.sum(axis=1), rtol=0.25)
    np.testing.assert_allclose(model.profiles_[order], alphas / alphas.sum(axis=1, keepdims=True), atol=0.03)


def test_features_that_never_occurred_are_ignored():
    model = PolyaMixture(2, random_state=0).fit([[9, 1, 0], [1, 9, 0], [8, 1, 0]])
    np.testing.assert_allclose(model.predict_proba([[2, 1, 50]]), model.predict_proba([[2, 1, 0]]))
    np.testing.assert_array_equal(model.alphas_[:, 2], 0)


def test_a_row_without_counts_has_the_weights_as_probabilities():
    model = PolyaMixture(2, random_state=0).fit([[9, 1], [1, 9], [8, 1]])
    np.testing.assert_allclose(model.predict_proba([[0, 0]])[0], model.weights_)


@pytest.mark.parametrize(("name", "value"), [("smoothing", 0), ("rate", 0), ("start", "anneal"), ("tol", -1.0)])
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        PolyaMixture(**{name: value}).fit([[1]])
