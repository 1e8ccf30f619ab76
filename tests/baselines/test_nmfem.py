import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import NMFEM
from mmpca.baselines.mixtures import SharedTopics
from mmpca.simulate import simulate_mmpca, sparse_topics

TINY_X = np.array([[3, 0, 1, 2], [5, 1, 0, 1], [0, 2, 2, 7], [1, 9, 8, 0], [0, 1, 1, 3], [2, 2, 1, 1]])


def shared(n_clusters, n_topics, n_features, n_updates=1):
    return SharedTopics(n_clusters, n_topics, is_present=np.ones(n_features, bool), n_updates=n_updates, seed=0)


def test_an_update_is_em_for_the_topic_of_each_count():
    sums = np.array([[5.0, 2.0, 0.0, 1.0], [1.0, 4.0, 3.0, 3.0]])
    step = shared(2, 3, 4)
    theta, beta = np.zeros((2, 3)), np.zeros((3, 4))
    for q in range(2):
        for v in range(4):
            origin = step.theta[q] * step.beta[:, v]  # (K,), of the counts of feature v in cluster q
            expected = sums[q, v] * origin / origin.sum()
            theta[q] += expected
            beta[:, v] += expected
    step._update(sums)
    np.testing.assert_allclose(step.theta, theta / theta.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(step.beta, beta / beta.sum(axis=1, keepdims=True))


def test_updates_never_lower_the_likelihood_of_the_sums():
    sums = np.random.default_rng(0).poisson(3.0, size=(5, 12)).astype(float)
    step = shared(5, 2, 12)
    values = [np.sum(sums * np.log(step.estimate(sums))) for _ in range(50)]
    assert np.all(np.diff(values) >= -1e-9)


def test_as_many_topics_as_clusters_leave_profiles_free():
    sums = np.random.default_rng(0).poisson(5.0, size=(3, 6)).astype(float) + 1
    profiles = shared(3, 3, 6, n_updates=100).estimate(sums)
    np.testing.assert_allclose(profiles, sums / sums.sum(axis=1, keepdims=True), atol=2e-3)


def test_one_topic_gives_all_clusters_the_same_profile():
    model = NMFEM(3, 1, random_state=0).fit(TINY_X)
    np.testing.assert_allclose(model.profiles_, np.tile(TINY_X.sum(axis=0) / TINY_X.sum(), (3, 1)))


def test_criteria_agree_with_their_definitions():
    model = NMFEM(2, 2, random_state=0).fit(TINY_X)
    profiles = model.cluster_topics_ @ model.components_
    joint = np.array(
        [
            [np.log(w) + multinomial.logpmf(x, x.sum(), p / p.sum()) for w, p in zip(model.weights_, profiles)]  # noqa: B905
            for x in TINY_X
        ]
    )
    assert model.log_likelihood_ == pytest.approx(logsumexp(joint, axis=1).sum())
    assert model.history_[-1] == pytest.approx(model.log_likelihood_)
    n_parameters = 2 * 1 + 2 * 3 + 1  # shares, topics, weights
    assert model.bic_ == pytest.approx(model.log_likelihood_ - n_parameters / 2 * np.log(6))
    np.testing.assert_array_equal(model.labels_, joint.argmax(axis=1))


@pytest.mark.parametrize("start", ["kmeans", "anneal"])
def test_recovers_its_own_model_where_clusters_share_topics(start):
    shares = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.45, 0.1, 0.45], [0.1, 0.45, 0.45]])
    topics = sparse_topics(3, 60, 0.1, 0)
    data = simulate_mmpca(n_samples=100, lengths=200, topics=topics, cluster_topics=shares, random_state=0)
    model = NMFEM(5, 3, start=start, n_init=4, random_state=0).fit(data.X)
    assert adjusted_rand_score(data.labels, model.labels_) > 0.95
    assert np.all(np.diff(model.history_) >= -1e-6)
    np.testing.assert_allclose(model.cluster_topics_.sum(axis=1), 1)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)


def test_prediction_of_the_fitted_rows_is_their_label(make_blocks):
    X = make_blocks(3, shortest=3, longest=8).X
    model = NMFEM(4, 2, random_state=0, n_init=2).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", ["n_topics", "n_updates"])
def test_an_invalid_number_raises(name):
    with pytest.raises(ValueError, match=name):
        NMFEM(2, **{name: 0}).fit(TINY_X)
