import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import MultinomialMixture, PoissonMixture
from mmpca.baselines.mixtures import ConditionProfiles

CONDITIONS = np.array(["a", "a", "b", "b", "b", "c"])
SIZES = np.array([1.0, 3.0, 2.0, 0.5, 1.5, 2.0])
TINY_X = np.array([[3, 8, 1, 0, 1, 4], [5, 11, 0, 1, 0, 2], [0, 2, 2, 1, 3, 0], [1, 2, 9, 3, 8, 1], [0, 0, 4, 1, 1, 9]])


def draw_expression(rng, n_rows=120):
    """Draw counts of three clusters; levels of rows differ by a factor of 100, library sizes by one of 10."""
    conditions = np.repeat(np.arange(4), 3)
    sizes = rng.uniform(0.2, 2.0, 12)
    sizes /= sizes.sum()
    rates = np.array([[3, 1, 0.3, 0.5], [0.4, 2, 1, 1], [0.5, 0.4, 1, 3]])[:, conditions]
    rates /= (rates * sizes).sum(axis=1, keepdims=True)
    labels = rng.integers(3, size=n_rows)
    levels = np.exp(rng.uniform(np.log(40), np.log(4000), n_rows))
    X = rng.poisson(levels[:, None] * rates[labels] * sizes)
    return X, labels, conditions, sizes, rates


@pytest.mark.parametrize("algorithm", ["em", "cem"])
@pytest.mark.parametrize("start", ["kmeans", "proportions", "anneal", "random"])
def test_recovers_its_own_model_with_unequal_levels_and_library_sizes(algorithm, start):
    X, labels, conditions, sizes, rates = draw_expression(np.random.default_rng(0))
    model = PoissonMixture(3, algorithm=algorithm, conditions=conditions, start=start, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    assert np.all(np.diff(model.history_) >= -1e-7)
    given = PoissonMixture(3, conditions=conditions, library_sizes=sizes, random_state=0).fit(X)
    order = [np.bincount(labels[given.labels_ == q]).argmax() for q in range(3)]
    np.testing.assert_allclose(given.rates_, rates[order], rtol=0.1)


def test_criteria_agree_with_their_definitions():
    model = PoissonMixture(2, conditions=CONDITIONS, library_sizes=SIZES, random_state=0).fit(TINY_X)
    means = TINY_X.sum(axis=1)[:, None, None] * model.rates_ * (SIZES / SIZES.sum())  # (N, Q, V)
    joint = np.log(model.weights_) + poisson.logpmf(TINY_X[:, None, :], means).sum(axis=2)
    assert model.log_likelihood_ == pytest.approx(logsumexp(joint, axis=1).sum())
    assert model.bic_ == pytest.approx(model.log_likelihood_ - 5 / 2 * np.log(5))  # 2 x 2 rates, 1 weight
    np.testing.assert_array_equal(model.labels_, joint.argmax(axis=1))


def test_cem_history_ends_with_the_classification_likelihood():
    model = PoissonMixture(2, algorithm="cem", smoothing=0, random_state=0).fit(TINY_X)
    means = TINY_X.sum(axis=1)[:, None] * model.profiles_[model.labels_]
    expected = np.log(model.weights_[model.labels_]).sum() + poisson.logpmf(TINY_X, means).sum()
    assert model.history_[-1] == pytest.approx(expected)


def test_rates_are_the_published_estimate():
    _, conditions = np.unique(CONDITIONS, return_inverse=True)
    sizes = SIZES / SIZES.sum()
    R = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0], [0.5, 0.5]])
    profiles = ConditionProfiles(conditions, sizes, 0.0).estimate(R.T @ TINY_X)
    for q in range(2):
        for v in range(6):
            mates = conditions == conditions[v]
            counts = sum(R[i, q] * TINY_X[i, mates].sum() for i in range(5))
            levels = sum(R[i, q] * TINY_X[i].sum() for i in range(5))
            rate = counts / (sizes[mates].sum() * levels)
            assert profiles[q, v] == pytest.approx(rate * sizes[v])


def test_is_the_multinomial_mixture_where_each_column_is_its_own_condition(make_blocks):
    X = make_blocks(3, shortest=5, longest=30).X
    counts, totals = (model(4, smoothing=0, random_state=0).fit(X) for model in (PoissonMixture, MultinomialMixture))
    np.testing.assert_array_equal(counts.labels_, totals.labels_)
    np.testing.assert_allclose(counts.profiles_, totals.profiles_, atol=1e-12)


def test_profiles_sum_to_one_and_average_rates_are_one():
    model = PoissonMixture(2, conditions=CONDITIONS, random_state=0).fit(TINY_X)
    np.testing.assert_allclose(model.profiles_.sum(axis=1), 1)
    np.testing.assert_allclose(model.rates_ @ model.library_sizes_, 1)
    assert len(np.unique(model.rates_[0].round(9))) == 3


def test_prediction_of_the_fitted_rows_is_their_label():
    X, _, conditions, *_ = draw_expression(np.random.default_rng(1))
    model = PoissonMixture(4, conditions=conditions, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_smoothing_shrinks_rates_toward_one():
    loose, tight = (PoissonMixture(2, smoothing=s, random_state=0).fit(TINY_X).rates_ for s in (0.0, 1e6))
    np.testing.assert_allclose(tight, 1, atol=1e-3)
    assert np.abs(loose - 1).max() > 0.5


def test_a_cluster_without_rows_has_the_profile_of_all():
    profiles = ConditionProfiles(np.arange(2), np.array([0.5, 0.5]), 0.0).estimate(np.array([[3.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_allclose(profiles, [[0.75, 0.25], [0.75, 0.25]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("algorithm", "sem"),
        ("conditions", [1, 2]),
        ("library_sizes", "mean"),
        ("library_sizes", [1, 1, 0, 1, 1, 1]),  # column 2 has counts
        ("library_sizes", [1, 1, 1, np.nan, 1, 1]),
    ],
)
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        PoissonMixture(2, **{name: value}).fit(TINY_X)
