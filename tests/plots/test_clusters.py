"""Figures that compare clusters."""

import numpy as np
import pytest

from mmpca import MMPCA, plots
from mmpca.plots.rows import row_layout
from mmpca.simulate import paper_design


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(data.X)


def test_the_heat_map_has_the_clusters_in_the_order_of_the_tree(model):
    tree, ax = plots.theta_heatmap(model).axes
    shown = [int(name.split(":")[0]) for name in ticks(ax.yaxis)]
    assert sorted(shown) == list(range(6))
    np.testing.assert_allclose(ax.images[0].get_array(), model.cluster_topics_[shown])
    first, second = model.merge_path().linkage[0, :2].astype(int)
    assert abs(shown.index(first) - shown.index(second)) == 1
    # The branches of the tree end beside the lines of the heat map.
    assert tree.get_ylim() == (0, 60)


def test_one_cluster_has_a_heat_map_without_a_tree(data):
    figure = plots.theta_heatmap(MMPCA(1, 2, topics="lda", n_init=1, random_state=0).fit(data.X))
    assert figure.axes[1].images[0].get_array().shape == (1, 2)


def test_dots_are_as_large_as_the_share_of_rows_with_the_feature(data, model):
    ax = plots.marker_dotplot(model, data.X, n_features=2, clusters=model.labels_)
    features = [int(name.split()[-1]) for name in ticks(ax.xaxis)]
    assert 6 <= len(features) <= 12
    sizes = ax.collections[0].get_sizes().reshape(6, -1)
    present = np.array([(data.X.toarray()[model.labels_ == q][:, features] > 0).mean(axis=0) for q in range(6)])
    np.testing.assert_allclose(sizes / sizes.max(), present / present.max())


def test_bars_are_ranked_by_share_or_by_lift(model):
    profile = model.cluster_counts_[0] / model.cluster_counts_[0].sum()
    by_share = plots.relevance_bars(model, 0, weight=1.0, n_features=5)
    assert [int(name.split()[-1]) for name in ticks(by_share.yaxis)][::-1] == np.argsort(-profile, kind="stable")[
        :5
    ].tolist()
    widths = [bar.get_width() for bar in by_share.patches[:5]]
    np.testing.assert_allclose(widths, 100 * np.sort(profile)[-5:])
    overall = model.cluster_counts_.sum(axis=0) / model.cluster_counts_.sum()
    by_lift = plots.relevance_bars(model, 0, weight=0.0, n_features=5)
    lifts = [profile[v] / overall[v] for v in (int(name.split()[-1]) for name in ticks(by_lift.yaxis))]
    assert lifts == sorted(lifts)


@pytest.mark.parametrize(
    ("cluster", "weight", "wrong"), [(6, 0.5, "cluster"), (-1, 0.5, "cluster"), (0, 1.5, "weight")]
)
def test_bars_of_a_cluster_or_with_a_weight_that_does_not_exist_are_rejected(model, cluster, weight, wrong):
    with pytest.raises(ValueError, match=rf"^{wrong}\b"):
        plots.relevance_bars(model, cluster, weight=weight)


def test_labels_of_a_cluster_add_up_to_all_its_rows():
    ax = plots.label_composition(["a", "a", "b", "c"], [0, 0, 1, 1], names=["first", "second"])
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, 2)
    np.testing.assert_allclose(widths, [[100, 0], [0, 50], [0, 50]])
    assert [name.split()[0] for name in ticks(ax.yaxis)] == ["first", "second"]


def test_many_labels_share_a_gray_bar():
    ax = plots.label_composition(np.repeat(np.arange(30), 3), np.zeros(90, int))
    assert len(ax.get_legend().get_texts()) == 21
    assert ax.patches[-1].get_width() == pytest.approx(100 / 3)
    assert len({patch.get_facecolor() for patch in ax.patches}) == 21


def test_strips_are_sorted_and_mark_where_borderline_rows_begin():
    ax = plots.certainty_strips([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8], [0.0, 1.0]], [0, 0, 1, 1])
    first, second = (0.42 + line - curve.get_ydata()[:-1] for line, curve in enumerate(ax.lines))
    np.testing.assert_allclose(first / 0.84, [0.9, 0.6])
    np.testing.assert_allclose(second / 0.84, [1.0, 0.8])
    [mark] = [c for c in ax.collections if hasattr(c, "get_segments")]
    assert mark.get_segments()[0][0, 0] == 50


def test_a_cluster_of_the_tree_stands_below_the_one_it_comes_from():
    ax = plots.clustree([[0, 0, 0, 0], [0, 0, 1, 1], [2, 2, 0, 1]])
    levels = [np.asarray(dots.get_offsets()) for dots in ax.collections]
    assert [len(level) for level in levels] == [1, 2, 3]
    assert np.argmin(levels[2][:, 0]) == 2  # its rows come from the cluster on the left
    assert len(ax.lines) == 2 + 3
    assert ticks(ax.yaxis) == ["1", "2", "3"]


@pytest.mark.parametrize("partitions", [[], [[0, 1], [0, 1, 1]]])
def test_partitions_of_different_rows_are_rejected(partitions):
    with pytest.raises(ValueError, match="partitions"):
        plots.clustree(partitions)


@pytest.mark.parametrize("call", [plots.label_composition, plots.certainty_strips])
def test_columns_of_different_lengths_are_rejected(call):
    with pytest.raises(ValueError, match=r"\b1\b.*\b2\b"):
        call([0.5], [0, 1])


# --- the map ----------------------------------------------------------------------------------------------------


def test_rows_of_a_cluster_lie_together_on_the_map(data, model):
    ax = plots.row_map(model, data.X, clusters=model.labels_, names=list("abcdef"))
    positions = row_layout(model.transform(data.X), model.labels_)
    assert positions.min() >= 0
    assert positions.max() <= 1
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (model.labels_[distances.argmin(axis=1)] == model.labels_).mean() > 0.9
    assert {text.get_text() for text in ax.texts} == set("abcdef")


def test_the_map_is_the_same_each_time(data, model):
    shares = model.transform(data.X)
    np.testing.assert_array_equal(row_layout(shares, model.labels_), row_layout(shares, model.labels_))


def test_rows_that_are_not_placed_by_tsne_lie_near_those_they_resemble():
    rng = np.random.default_rng(0)
    clusters = np.repeat([0, 1, 2], 1000)
    shares = np.concatenate([rng.dirichlet(mean, 1000) for mean in 20 * np.eye(3) + 2])
    positions = row_layout(shares, clusters)
    assert positions.shape == (3000, 2)
    centers = np.array([positions[clusters == q].mean(axis=0) for q in range(3)])
    nearest = np.linalg.norm(positions[:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest == clusters).mean() > 0.95


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_few_or_equal_rows_have_a_map(n_rows):
    positions = row_layout(np.full((n_rows, 3), 1 / 3), np.zeros(n_rows, int))
    assert np.isfinite(positions).all()


def test_rows_are_colored_by_a_number_with_a_color_bar(data, model):
    ax = plots.row_map(model, data.X, clusters=model.labels_, color_by=np.arange(120))
    assert len(ax.collections) == 1
    assert len(ax.figure.axes) == 2
    with pytest.raises(ValueError, match="color_by"):
        plots.row_map(model, data.X, color_by=[1.0])


def test_panels_over_time_show_the_shares_and_intervals_of_the_table():
    table = {
        "kind": ["cluster"] * 4 + ["topic"] * 2,
        "number": [0, 0, 1, 1, 0, 0],
        "name": ["a", "a", "b", "b", "t", "t"],
        "group": [2020, 2021, 2020, 2021, 2020, 2021],
        "share": [0.2, 0.5, 0.8, 0.5, 1.0, 1.0],
        "lower": [0.1, 0.3, 0.7, 0.3, 0.9, 0.9],
        "upper": [0.3, 0.7, 0.9, 0.7, 1.0, 1.0],
    }
    figure = plots.clusters_over(table)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["0: a", "1: b"]
    assert figure.axes[1].lines[0].get_ydata().tolist() == [80.0, 50.0]
    points = plots.clusters_over(table, numbers=[1], connect=False)
    (bars,) = points.axes[0].containers
    segments = bars[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in segments], [[70, 90], [30, 70]])
    assert len(plots.clusters_over(table, kind="topic").axes) == 1
    with pytest.raises(ValueError, match="kind"):
        plots.clusters_over({name: column[:4] for name, column in table.items()}, kind="topic")
