"""Intervals for the topic shares of clusters."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mmpca import MMPCA
from mmpca.simulate import simulate_mmpca


def draw(seed):
    """Draw rows of three clusters that mix three topics, each with eight features of its own and six shared ones."""
    topics = np.hstack([np.kron(np.eye(3), np.full(8, 0.1)), np.full((3, 6), 0.2 / 6)])
    theta = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]]
    return simulate_mmpca(90, topics=topics, cluster_topics=theta, lengths=120, random_state=seed)


@pytest.fixture(scope="module")
def fits():
    data = [draw(seed) for seed in range(3)]
    return [(each, MMPCA(3, 3, topics="lda", n_init=2, random_state=0).fit(each.X)) for each in data]


def test_most_intervals_contain_the_true_shares(fits):
    covered = []
    for data, model in fits:
        lower, upper = model.theta_interval(0.95)
        clusters = [np.bincount(model.labels_[data.labels == q], minlength=3).argmax() for q in range(3)]
        topics = linear_sum_assignment(-(data.topics @ model.components_.T))[1]
        at = np.ix_(clusters, topics)
        covered.append((lower[at] <= data.cluster_topics) & (data.cluster_topics <= upper[at]))
        assert (upper - lower).mean() < 0.5
    assert np.mean(covered) >= 0.85


def test_intervals_are_shares_repeatable_and_wider_at_higher_levels(fits):
    _, model = fits[0]
    lower, upper = model.theta_interval(0.95)
    assert (lower >= 0).all()
    assert (lower < upper).all()
    assert (upper <= 1).all()
    np.testing.assert_array_equal(model.theta_interval(0.95)[0], lower)
    narrow = model.theta_interval(0.5)
    assert (narrow[0] >= lower).all()
    assert (narrow[1] <= upper).all()
    assert ((narrow[1] - narrow[0]) < (upper - lower)).any()


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1])
def test_a_level_that_is_no_share_is_an_error(fits, level):
    with pytest.raises(ValueError, match="level"):
        fits[0][1].theta_interval(level)


def test_a_single_cluster_or_topic_has_an_interval():
    X = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], size=20)
    for sizes in ((1, 2), (2, 1)):
        lower, upper = MMPCA(*sizes, topics="lda", n_init=1, random_state=0).fit(X).theta_interval()
        assert (lower <= upper).all()


def test_given_topics_are_certain_so_intervals_are_narrow_and_contain_the_true_shares():
    data = draw(0)
    model = MMPCA(3, 3, topics=data.topics, n_init=2, random_state=0).fit(data.X)
    lower, upper = model.theta_interval(0.99)
    clusters = [np.bincount(model.labels_[data.labels == q], minlength=3).argmax() for q in range(3)]
    assert (lower[clusters] <= data.cluster_topics).all()
    assert (data.cluster_topics <= upper[clusters]).all()
    assert (upper - lower).max() < 0.1
