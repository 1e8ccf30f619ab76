"""Using a fit: clusters, probabilities and topic shares of new rows, and rows drawn from the model."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA
from mmpca.engine.bound import ve_step
from mmpca.simulate import simulate_mmpca


@pytest.fixture(scope="module")
def new_rows(data):
    """Return rows that were not fitted, of lengths from one token on."""
    lengths = np.repeat([1, 2, 5, 60, 500], 8)
    drawn = simulate_mmpca(40, topics=data.topics, cluster_topics=data.cluster_topics, lengths=lengths, random_state=9)
    return drawn.X.toarray()


def brute_force_joint(model, X):
    """Return log pi_q + sum_v x_iv log (theta_q beta)_v, one term after the other."""
    joint = np.empty((len(X), model.n_clusters))
    for i, x in enumerate(X):
        for q, theta in enumerate(model.cluster_topics_):
            joint[i, q] = np.log(model.weights_[q])
            for v in np.flatnonzero(x):
                profile = sum(theta[k] * model.components_[k, v] for k in range(model.n_topics))
                joint[i, q] += x[v] * np.log(profile)
    return joint


# --- before the fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "transform"])
def test_a_model_has_to_be_fitted_before_it_is_used(X, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(MMPCA(), method)(X)


@pytest.mark.parametrize("method", ["sample", "get_feature_names_out"])
def test_a_model_has_to_be_fitted_before_it_draws_or_names_anything(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(MMPCA(), method)()


# --- clusters ---------------------------------------------------------------------------------------------------


def test_predict_is_the_brute_force_maximum(model, new_rows):
    predicted = model.predict(new_rows)
    assert predicted.dtype == np.int32
    np.testing.assert_array_equal(predicted, brute_force_joint(model, new_rows).argmax(axis=1))
    assert len(np.unique(predicted)) == 4


def test_probabilities_are_those_of_bayes_and_their_maximum_is_predicted(model, new_rows):
    probabilities = model.predict_proba(new_rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(new_rows))
    joint = np.exp(brute_force_joint(model, new_rows[:24]))  # short rows: nothing underflows
    np.testing.assert_allclose(probabilities[:24], joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_score_is_the_mean_log_likelihood(model, new_rows):
    short = new_rows[:24]
    expected = np.log(np.exp(brute_force_joint(model, short)).sum(axis=1)).mean()
    score = model.score(short)
    assert isinstance(score, float)
    assert score == pytest.approx(expected, rel=1e-12)
    assert score == model.score(short, y=np.zeros(24))


def test_the_score_of_long_rows_does_not_underflow(model, new_rows):
    joint = brute_force_joint(model, 1000 * new_rows)
    assert np.exp(joint).max() == 0
    assert model.score(1000 * new_rows) == pytest.approx(joint.max(axis=1).mean(), rel=1e-3)


def test_most_fitted_rows_are_predicted_into_their_own_cluster(X, model):
    assert (model.predict(X) == model.labels_).mean() > 0.95


def test_rows_without_counts_fall_into_the_largest_cluster(X, model):
    predicted = model.predict(np.zeros((3, 25)))
    assert predicted.tolist() == [model.weights_.argmax()] * 3
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 25)))[0], model.weights_, rtol=1e-12)
    assert model.score(np.zeros((2, 25))) == pytest.approx(0, abs=1e-12)


def test_a_row_is_predicted_alike_alone_and_in_company(model, new_rows):
    alone = np.concatenate([model.predict_proba(row[None]) for row in new_rows])
    np.testing.assert_array_equal(alone, model.predict_proba(new_rows))
    alone = np.concatenate([model.transform(row[None]) for row in new_rows])
    np.testing.assert_array_equal(alone, model.transform(new_rows))


# --- topic space ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.3, 1.0, 10.0])
def test_transform_is_the_fixed_point_of_each_row(X, new_rows, prior):
    model = MMPCA(4, 3, topic_prior=prior, n_init=1, random_state=0).fit(X)
    shares = model.transform(new_rows)
    gamma = np.array([ve_step(x, beta=model.components_, alpha=prior) for x in new_rows.astype(float)])
    np.testing.assert_allclose(shares, gamma / gamma.sum(axis=1, keepdims=True), atol=2e-4)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_transform_gives_a_row_without_counts_equal_shares(model):
    np.testing.assert_allclose(model.transform(np.zeros((1, 25))), np.full((1, 3), 1 / 3), rtol=1e-12)


def test_fit_transform_is_fit_and_then_transform(X, model):
    np.testing.assert_array_equal(MMPCA(4, 3, n_init=3, random_state=0).fit_transform(X), model.transform(X))


# --- drawing rows -----------------------------------------------------------------------------------------------


def test_a_sample_has_the_mean_length_of_the_fitted_rows_unless_told_otherwise(X):
    uneven = X.copy()
    uneven[:40] *= 3
    model = MMPCA(4, 3, n_init=1, random_state=0).fit(uneven)
    drawn, labels = model.sample(7, random_state=0)
    assert drawn.shape == (7, 25)
    assert labels.shape == (7,)
    assert (drawn.sum(axis=1) == round(uneven.sum() / 80)).all()
    assert (model.sample(7, lengths=11, random_state=0)[0].sum(axis=1) == 11).all()
    lengths = np.arange(1, 8)
    np.testing.assert_array_equal(model.sample(7, lengths=lengths, random_state=0)[0].sum(axis=1), lengths)
    assert model.sample(random_state=0)[0].shape == (1, 25)


def test_the_same_seed_draws_the_same_sample(model):
    first, again, other = (model.sample(20, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0].toarray(), again[0].toarray())
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0].toarray(), other[0].toarray())


def test_a_sample_follows_the_weights_and_the_profiles_of_the_clusters(model):
    n_samples, length = 5000, 40
    drawn, labels = model.sample(n_samples, lengths=length, random_state=0)
    shares = np.bincount(labels, minlength=4) / n_samples
    assert (np.abs(shares - model.weights_) <= 4 * np.sqrt(model.weights_ / n_samples)).all()
    profiles = model.cluster_topics_ @ model.components_
    assert np.abs(profiles[:, None] - profiles[None]).max() > 0.05  # they differ by more than the tolerance below
    for q, profile in enumerate(profiles):
        tokens = drawn[labels == q].sum(axis=0)
        error = np.abs(tokens / tokens.sum() - profile)
        assert (error <= 5 * np.sqrt(profile / tokens.sum())).all()


def test_refitting_a_sample_recovers_its_clusters(paper):
    model = MMPCA(6, 4, n_init=2, random_state=0).fit(paper.X)
    drawn, labels = model.sample(300, random_state=1)
    again = MMPCA(6, 4, n_init=2, random_state=0).fit(drawn)
    assert adjusted_rand_score(labels, again.labels_) > 0.95
    assert adjusted_rand_score(labels, model.predict(drawn)) > 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, got 0"),
        ({"lengths": 0}, "lengths must be at least 1, got 0 for row 0"),
        ({"lengths": 2.5}, "lengths must be integers, got dtype float64"),
        ({"n_samples": 3, "lengths": [1, 2]}, r"one for each of the 3 rows, got shape \(2,\)"),
        ({"random_state": "x"}, "random_state must be None, a non-negative integer"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.sample(**arguments)
