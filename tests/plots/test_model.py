"""Figures of a fitted model."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mmpca import MMPCA, plots

FUNCTIONS = (plots.cluster_topics, plots.bound_history, plots.cluster_sizes)


@pytest.fixture
def model():
    return SimpleNamespace(
        weights_=np.array([0.75, 0.25]),
        labels_=np.array([0, 0, 1, 0]),
        cluster_sizes=np.array([3, 1]),
        cluster_topics_=np.array([[0.9, 0.1], [0.2, 0.8]]),
        components_=np.array([[0.6, 0.3, 0.08, 0.02, 0.0], [0.6, 0.0, 0.0, 0.2, 0.2]]),
        cluster_counts_=np.array([[60.0, 30.0, 8.0, 2.0, 0.0], [60.0, 6.0, 2.0, 16.0, 16.0]]),
        n_features_in_=5,
        bound_history_=np.array([-30.0, -20.0, -18.0]),
        starts_=[SimpleNamespace(bound=bound, n_epochs=2) for bound in (-18.0, -19.0)],
        feature_names_in_=np.array(["plain", "$5 or $6", "a" * 40, "rare", "never"], dtype=object),
    )


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_the_heat_map_shows_shares_in_percent(model):
    ax = plots.cluster_topics(model)
    numbers = {tuple(text.get_position()): text.get_text() for text in ax.texts}
    assert numbers == {(0, 0): "90", (1, 0): "10", (0, 1): "20", (1, 1): "80"}
    np.testing.assert_array_equal(ax.images[0].get_array(), model.cluster_topics_)
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_a_large_heat_map_has_no_numbers(model):
    del model.feature_names_in_
    model.cluster_topics_ = np.full((20, 30), 1 / 30)
    model.weights_, model.components_ = np.full(20, 1 / 20), np.full((30, 5), 0.2)
    assert len(plots.cluster_topics(model).texts) == 0


def test_features_are_ranked_by_share_with_the_largest_on_top(model):
    ax = plots.topic_features(model, 0, n_features=3, by="share")
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [60.0, 30.0, 8.0])
    assert ax.yaxis_inverted()
    assert names(ax.yaxis)[0] == "plain"


def test_lift_ranks_common_features_last_and_leaves_out_rare_ones(model):
    ax = plots.topic_features(model, 0, by="lift")
    common = model.weights_ @ model.cluster_topics_ @ model.components_
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.3 / common[1], 0.08 / common[2], 1.0])
    assert names(ax.yaxis)[-1] == "plain"


def test_entropy_drops_features_shared_by_all_topics_and_favors_specific_ones(model):
    ax = plots.topic_features(model, 0, by="entropy")
    # The first feature has the same share in both topics; the second and third occur only in this one.
    assert names(ax.yaxis)[:2] == [r"\$5 or \$6", "a" * 23 + "…"]
    assert "plain" not in names(ax.yaxis)
    shared = np.array([0.02, 0.2]) / 0.22
    weight = 1 + (shared * np.log2(shared)).sum()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [30.0, 8.0, 2.0 * weight])


def test_with_a_single_topic_entropy_equals_share(model):
    model.components_ = model.components_[:1]
    ax = plots.topic_features(model, 0, by="entropy", n_features=2)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [60.0, 30.0])


def test_features_with_zero_probability_are_not_drawn(model):
    assert len(plots.topic_features(model, 0, n_features=10, by="share").patches) == 4


def test_distinctive_features_are_those_of_the_tables(model):
    assert names(plots.topic_features(model, 0).yaxis) == [r"\$5 or \$6", "a" * 23 + "…"]
    figure = plots.distinctive_features(model)
    assert [names(ax.yaxis) for ax in figure.axes] == [[r"\$5 or \$6"], ["rare"]]
    np.testing.assert_allclose([bar.get_width() for bar in figure.axes[1].patches], [16.0])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["cluster 0\n3 rows", "cluster 1\n1 row"]


def test_names_of_clusters_and_topics_are_shown(model):
    model._cluster_names, model._topic_names = {1: "rugby"}, {0: "$ and $"}
    heat = plots.cluster_topics(model)
    assert names(heat.yaxis)[1] == "1: rugby"
    assert names(heat.xaxis)[0] == r"0: \$ and \$"
    assert names(plots.cluster_sizes(model).yaxis)[1] == "1: rugby"
    assert plots.distinctive_features(model).axes[1].get_title(loc="left") == "cluster 1: rugby\n1 row"
    assert plots.topics(model).axes[0].get_title(loc="left") == r"topic 0: \$ and \$"
    del model.feature_names_in_
    assert names(plots.cluster_sizes(model).yaxis) == ["0", "1: rugby"]  # numbers of features are no names
    heat.figure.canvas.draw()


def test_every_topic_has_a_panel(model):
    figure = plots.topics(model, n_features=2, by="share")
    assert [len(ax.patches) for ax in figure.axes] == [2, 2]
    given = plt.figure()
    assert plots.topics(model, figure=given) is given


def test_only_the_bottom_panels_label_their_axis(model):
    model.components_ = np.tile(model.components_, (3, 1))
    has_label = [bool(ax.get_xlabel()) for ax in plots.topics(model, by="share").axes]
    assert has_label == [False, False, True, True, True, True]


def test_long_names_are_shortened_and_dollar_signs_are_no_formulas(model):
    ax = plots.topic_features(model, 0, by="share")
    assert names(ax.yaxis)[1:3] == [r"\$5 or \$6", "a" * 23 + "…"]
    ax.figure.canvas.draw()


def test_unnamed_features_show_their_index(model):
    del model.feature_names_in_
    assert [name.split()[-1] for name in names(plots.topic_features(model, 1, by="share").yaxis)] == ["0", "3", "4"]


@pytest.mark.parametrize(("topic", "by", "wrong"), [(0, "size", "by"), (2, "share", "topic"), (-1, "share", "topic")])
def test_unknown_rankings_and_topics_are_rejected(model, topic, by, wrong):
    with pytest.raises(ValueError, match=wrong):
        plots.topic_features(model, topic, by=by)


def test_the_history_shows_the_best_start_and_the_final_bounds_of_the_others(model):
    ax = plots.bound_history(model)
    best, others = ax.lines
    np.testing.assert_array_equal(best.get_ydata(), [-12.0, -2.0, 0.0])
    np.testing.assert_array_equal(best.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(others.get_xydata(), [[2, -1.0]])
    assert "-18.0" in ax.get_title(loc="left")


def test_a_single_start_needs_no_legend(model):
    model.starts_ = model.starts_[:1]
    ax = plots.bound_history(model)
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


def test_cluster_sizes_are_counts_of_labels(model):
    ax = plots.cluster_sizes(model)
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert [text.get_text() for text in ax.texts] == ["3", "1"]


@pytest.mark.parametrize("draw", FUNCTIONS)
def test_figures_use_the_axes_passed_to_them(draw, model):
    ax = plt.figure().add_subplot()
    assert draw(model, ax=ax) is ax


def test_a_fitted_model_with_one_cluster_can_be_drawn():
    model = MMPCA(1, 1, topics="lda", n_init=1, random_state=0).fit(np.array([[1, 2], [2, 2], [1, 3]]))
    for draw in FUNCTIONS:
        draw(model).figure.canvas.draw()
    plots.topic_features(model, 0).figure.canvas.draw()
