import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import MultinomialMixture
from mmpca.baselines.mixtures import TEMPERATURES, FreeProfiles, annealed_partition, run_em
from mmpca.counts import as_counts

TINY_X = np.array([[3, 0, 1], [5, 1, 0], [0, 2, 2], [1, 9, 8], [0, 1, 1]])


def joint_by_scipy(X, weights, profiles):
    """Return the log of weight times density, (N, Q), coefficients included."""
    return np.array(
        [[np.log(w) + multinomial.logpmf(x, x.sum(), p) for w, p in zip(weights, profiles, strict=True)] for x in X]
    )


def em_by_loops(X, labels, n_clusters, smoothing, n_iter):
    """Return weights and profiles after some iterations of EM, as loops over probabilities."""
    R = np.eye(n_clusters)[labels]
    for _ in range(n_iter):
        weights = [R[:, q].sum() / len(X) for q in range(n_clusters)]
        raised = [sum(R[i, q] * X[i] for i in range(len(X))) + smoothing for q in range(n_clusters)]
        profiles = [p / p.sum() for p in raised]
        for i, x in enumerate(X):
            densities = [w * np.prod(p**x) for w, p in zip(weights, profiles, strict=True)]
            R[i] = np.array(densities) / sum(densities)
    return np.array(weights), np.array(profiles)


@pytest.mark.parametrize("n_iter", [1, 2, 7])
def test_em_agrees_with_loops_over_probabilities(n_iter):
    labels = np.array([0, 1, 0, 1, 1])
    csr = as_counts(TINY_X).to_csr().astype(float)
    run = run_em(csr, labels, 2, FreeProfiles(np.full(3, 0.3)), max_iter=n_iter, tol=-np.inf)
    weights, profiles = em_by_loops(TINY_X, labels, 2, 0.3, n_iter)
    np.testing.assert_allclose(run.weights, weights, rtol=1e-10)
    np.testing.assert_allclose(run.profiles, profiles, rtol=1e-10)


def test_criteria_agree_with_their_definitions():
    model = MultinomialMixture(2, random_state=0).fit(TINY_X)
    joint = joint_by_scipy(TINY_X, model.weights_, model.profiles_)
    R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    entropy = -np.sum(R * np.log(np.maximum(R, 1e-300)))
    assert model.log_likelihood_ == pytest.approx(logsumexp(joint, axis=1).sum())
    assert model.bic_ == pytest.approx(model.log_likelihood_ - 5 / 2 * np.log(5))  # 2 x 2 probabilities, 1 weight
    assert model.icl_ == pytest.approx(model.bic_ - entropy)
    np.testing.assert_allclose(model.predict_proba(TINY_X), R, atol=1e-12)


def test_history_ends_with_likelihood_plus_log_prior():
    model = MultinomialMixture(2, smoothing=0.7, random_state=0).fit(TINY_X)
    assert model.history_[-1] == pytest.approx(model.log_likelihood_ + 0.7 * np.log(model.profiles_).sum())


def test_prediction_of_the_fitted_rows_is_their_label(make_blocks):
    X = make_blocks(3, shortest=3, longest=8).X
    model = MultinomialMixture(4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_features_that_never_occurred_are_ignored():
    model = MultinomialMixture(2, random_state=0).fit([[9, 1, 0], [1, 9, 0], [8, 1, 0]])
    np.testing.assert_allclose(model.predict_proba([[2, 1, 50]]), model.predict_proba([[2, 1, 0]]))
    np.testing.assert_array_equal(model.profiles_[:, 2], 0)


def test_a_row_without_counts_has_the_weights_as_probabilities():
    model = MultinomialMixture(2, random_state=0).fit([[9, 1], [1, 9], [8, 1]])
    np.testing.assert_allclose(model.predict_proba([[0, 0]])[0], model.weights_)


@pytest.mark.parametrize("start", ["kmeans", "anneal"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_recovers_its_own_model_with_totals_from_20_to_2000(start, smoothing, draw):
    rng = np.random.default_rng(5)
    profiles = rng.dirichlet(np.full(60, 0.3), size=5)
    labels = rng.choice(5, p=[0.4, 0.3, 0.15, 0.1, 0.05], size=150)
    totals = np.exp(rng.uniform(np.log(20), np.log(2000), 150)).astype(int)
    model = MultinomialMixture(5, smoothing=smoothing, start=start, random_state=0)
    model.fit(draw(rng, profiles, totals, labels))
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    assert np.all(np.diff(model.history_) >= -1e-7)


def test_multiplying_a_rows_counts_does_not_change_its_cluster(make_blocks):
    sample = make_blocks()
    factors = np.random.default_rng(0).integers(1, 50, size=(len(sample.X), 1))
    labels = MultinomialMixture(3, random_state=0).fit_predict(sample.X * factors)
    assert adjusted_rand_score(sample.labels, labels) == 1.0


def test_one_cluster_is_the_profile_of_all_rows():
    model = MultinomialMixture(1, smoothing=0).fit(TINY_X)
    np.testing.assert_allclose(model.profiles_[0], TINY_X.sum(axis=0) / TINY_X.sum())
    assert model.icl_ == pytest.approx(model.bic_)


def test_annealing_finds_clusters_from_an_uninformative_partition(make_blocks):
    sample = make_blocks(4)
    rows = as_counts(sample.X)
    step = FreeProfiles(np.full(rows.n_features, 0.1))
    # The rows of each cluster are dealt out in turn, so that all first profiles are nearly equal.
    order = np.argsort(sample.labels, kind="stable")
    useless = np.empty_like(sample.labels)
    useless[order] = np.arange(len(order)) % 3
    found = annealed_partition(rows.to_csr().astype(float), useless, 3, step)
    assert TEMPERATURES[0] > TEMPERATURES[-1] > 1
    assert adjusted_rand_score(sample.labels, found) == 1.0


def test_a_cluster_without_rows_has_the_profile_of_all():
    profiles = FreeProfiles(np.zeros(2)).estimate(np.array([[3.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_allclose(profiles, [[0.75, 0.25], [0.75, 0.25]])


@pytest.mark.parametrize(("name", "value"), [("smoothing", -1), ("start", "best"), ("tol", np.nan), ("max_iter", 0)])
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        MultinomialMixture(2, **{name: value}).fit(TINY_X)
