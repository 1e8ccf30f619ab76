"""Figures of a fitted model."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mmpca import MMPCA, plots
from mmpca.model.starts import StartReport

FUNCTIONS = (plots.cluster_topics, plots.bound_history, plots.cluster_sizes)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def model():
    return SimpleNamespace(
        weights_=np.array([0.75, 0.25]),
        labels_=np.array([0, 0, 1, 0]),
        cluster_topics_=np.array([[0.9, 0.1], [0.2, 0.8]]),
        components_=np.array([[0.6, 0.3, 0.08, 0.02, 0.0], [0.6, 0.0, 0.0, 0.2, 0.2]]),
        bound_history_=np.array([-30.0, -20.0, -18.0]),
        starts_=[StartReport("random", 1, bound, 2, True, 0.1) for bound in (-18.0, -19.0)],
        feature_names_in_=np.array(["plain", "$5 or $6", "a" * 40, "rare", "never"], dtype=object),
    )


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_the_heat_map_tells_the_shares_in_per_cent(model):
    ax = plots.cluster_topics(model)
    told = {tuple(text.get_position()): text.get_text() for text in ax.texts}
    assert told == {(0, 0): "90", (1, 0): "10", (0, 1): "20", (1, 1): "80"}
    np.testing.assert_array_equal(ax.images[0].get_array(), model.cluster_topics_)
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_a_large_heat_map_has_no_numbers(model):
    model.cluster_topics_ = np.full((20, 30), 1 / 30)
    assert len(plots.cluster_topics(model).texts) == 0


def test_the_features_of_a_topic_come_by_share_the_largest_on_top(model):
    ax = plots.topic_features(model, 0, n_features=3)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [60.0, 30.0, 8.0])
    assert ax.yaxis_inverted()
    assert names(ax.yaxis)[0] == "plain"


def test_lift_puts_what_is_common_everywhere_behind_and_leaves_rare_features_out(model):
    ax = plots.topic_features(model, 0, by="lift")
    common = model.weights_ @ model.cluster_topics_ @ model.components_
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.3 / common[1], 0.08 / common[2], 1.0])
    assert names(ax.yaxis)[-1] == "plain"


def test_entropy_puts_what_all_topics_have_alike_out_and_what_one_has_first(model):
    ax = plots.topic_features(model, 0, by="entropy")
    # The first feature has the same share in both topics, the second and third are in this one alone.
    assert names(ax.yaxis)[:2] == [r"\$5 or \$6", "a" * 23 + "…"]
    assert "plain" not in names(ax.yaxis)
    shared = np.array([0.02, 0.2]) / 0.22
    weight = 1 + (shared * np.log2(shared)).sum()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [30.0, 8.0, 2.0 * weight])


def test_of_a_single_topic_entropy_says_nothing(model):
    model.components_ = model.components_[:1]
    ax = plots.topic_features(model, 0, by="entropy", n_features=2)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [60.0, 30.0])


def test_features_without_probability_are_not_drawn(model):
    assert len(plots.topic_features(model, 0, n_features=10).patches) == 4


def test_all_topics_share_a_figure(model):
    figure = plots.topics(model, n_features=2)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["topic 0", "topic 1"]
    assert [len(ax.patches) for ax in figure.axes] == [2, 2]
    given = plt.figure()
    assert plots.topics(model, figure=given) is given


def test_only_the_lowest_topics_name_their_axis(model):
    model.components_ = np.tile(model.components_, (3, 1))
    told = [bool(ax.get_xlabel()) for ax in plots.topics(model).axes]
    assert told == [False, False, True, True, True, True]


def test_long_names_are_cut_and_dollars_are_no_formulas(model):
    ax = plots.topic_features(model, 0)
    assert names(ax.yaxis)[1:3] == [r"\$5 or \$6", "a" * 23 + "…"]
    ax.figure.canvas.draw()


def test_features_without_names_go_by_their_numbers(model):
    del model.feature_names_in_
    assert names(plots.topic_features(model, 1).yaxis) == ["feature 0", "feature 3", "feature 4"]


def test_what_is_no_ranking_or_topic_is_refused(model):
    with pytest.raises(ValueError, match="by must be 'share', 'lift' or 'entropy', but it is 'size'"):
        plots.topic_features(model, 0, by="size")
    with pytest.raises(ValueError, match="topic must be from 0 to 1, but it is 2"):
        plots.topic_features(model, 2)


def test_the_history_shows_the_best_start_and_the_ends_of_others(model):
    ax = plots.bound_history(model)
    best, others = ax.lines
    np.testing.assert_array_equal(best.get_ydata(), [-12.0, -2.0, 0.0])
    np.testing.assert_array_equal(best.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(others.get_xydata(), [[2, -1.0]])
    assert ax.get_title(loc="left") == "best bound: -18.0"


def test_a_single_start_needs_no_legend(model):
    model.starts_ = model.starts_[:1]
    ax = plots.bound_history(model)
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


def test_the_sizes_are_counts_of_labels(model):
    ax = plots.cluster_sizes(model)
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert [text.get_text() for text in ax.texts] == ["3", "1"]


@pytest.mark.parametrize("draw", FUNCTIONS)
def test_given_axes_are_drawn_on(draw, model):
    ax = plt.figure().add_subplot()
    assert draw(model, ax=ax) is ax


def test_a_real_model_of_one_cluster_can_be_drawn():
    model = MMPCA(1, 1, n_init=1, random_state=0).fit(np.array([[1, 2], [2, 2], [1, 3]]))
    for draw in FUNCTIONS:
        draw(model).figure.canvas.draw()
    plots.topic_features(model, 0).figure.canvas.draw()
