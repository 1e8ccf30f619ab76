"""Rows in topic space."""

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from mmpca import MMPCA, plots
from mmpca.plots.model import CORNERS, MAX_ROWS
from mmpca.plots.rows import principal_coordinates


def stand_in(clusters):
    """Return a model whose rows are already topic shares."""
    return SimpleNamespace(transform=lambda X: X, predict=lambda X: np.asarray(clusters))


def places(ax):
    """Return where the rows of each cluster were drawn."""
    return [points.get_offsets().data for points in ax.collections]


def test_with_three_topics_pure_rows_are_at_the_corners_of_a_triangle():
    ax = plots.topic_space(stand_in([0, 1, 2]), np.eye(3))
    np.testing.assert_allclose(np.concatenate(places(ax)), CORNERS)
    assert {"topic 0", "topic 1", "topic 2"} <= {text.get_text() for text in ax.texts}


def test_a_row_with_equal_shares_is_at_the_center_of_the_triangle():
    ax = plots.topic_space(stand_in([0]), np.full((1, 3), 1 / 3))
    np.testing.assert_allclose(places(ax)[0][0], CORNERS.mean(axis=0))


def test_with_two_topics_each_cluster_has_a_strip():
    shares = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    ax = plots.topic_space(stand_in([0, 0, 1]), shares)
    drawn = np.concatenate(places(ax))
    np.testing.assert_allclose(drawn[:, 0], shares[:, 1])
    assert (np.abs(drawn[:, 1] - [0, 0, 1]) < 0.5).all()


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_clusters_are_separated_even_if_most_variation_lies_elsewhere(n_clusters):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_clusters), 40)
    # The clusters differ a little in topics 0 and 1; topics 2 to 4 vary a lot within them.
    shares = np.column_stack([0.01 * groups, 0.01 * (groups % 2), rng.dirichlet([1, 1, 1], len(groups)) * 0.8])
    shares[:, :2] += 0.001 * rng.random((len(groups), 2))
    shares = shares / shares.sum(axis=1, keepdims=True)
    drawn = places(plots.topic_space(stand_in(groups), shares))
    for own, others in itertools.pairwise(drawn):
        gap = np.linalg.norm(own.mean(axis=0) - others.mean(axis=0))
        assert gap > 3 * max(own.std(axis=0)[0], others.std(axis=0)[0])


def test_the_projection_is_linear():
    rng = np.random.default_rng(0)
    shares, groups = rng.dirichlet(np.ones(5), 60), np.arange(60) % 3
    drawn = np.empty((60, 2))
    for q, own in enumerate(places(plots.topic_space(stand_in(groups), shares))):
        drawn[groups == q] = own
    design = np.column_stack([shares, np.ones(60)])
    fitted = design @ np.linalg.lstsq(design, drawn, rcond=None)[0]
    np.testing.assert_allclose(drawn, fitted, atol=1e-8)


@pytest.mark.parametrize("shares", [np.full((6, 4), 0.25), np.eye(4)[[0, 0, 0, 1, 1, 1]], np.eye(5)])
def test_rows_without_variation_can_be_drawn(shares):
    for groups in (np.zeros(len(shares), dtype=int), np.arange(len(shares)), np.arange(len(shares)) // 3):
        plots.topic_space(stand_in(groups), shares).figure.canvas.draw()


def test_a_subset_of_many_rows_is_drawn_and_the_title_says_so():
    n_rows = 2 * MAX_ROWS
    shares = np.random.default_rng(0).dirichlet(np.ones(3), n_rows)
    ax = plots.topic_space(stand_in(np.arange(n_rows) % 4), shares)
    assert sum(len(own) for own in places(ax)) == MAX_ROWS
    assert f"{n_rows:,}" in ax.get_title(loc="left")


def test_a_fitted_model_can_be_drawn_with_its_own_labels():
    X = np.random.default_rng(0).poisson(3, (30, 12))
    model = MMPCA(3, 4, topics="lda", n_init=1, random_state=0).fit(X)
    ax = plots.topic_space(model, X, clusters=model.labels_)
    assert [len(own) for own in places(ax)] == [n for n in np.bincount(model.labels_).tolist() if n]
    given = plt.figure().add_subplot()
    assert plots.topic_space(model, X, ax=given) is given


def test_clusters_of_other_rows_are_rejected():
    with pytest.raises(ValueError, match="clusters"):
        plots.topic_space(stand_in([0]), np.eye(3), clusters=[0, 1])


def test_principal_coordinates_reproduce_euclidean_distances():
    rng = np.random.default_rng(0)
    X = rng.poisson(20, (12, 3)) + 1
    positions, shares = principal_coordinates(X, "aitchison")  # three parts have two log-ratios: nothing is lost
    logs = np.log(X + 0.5)
    logs -= logs.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(pdist(positions), pdist(logs), rtol=1e-8)
    assert shares.sum() == pytest.approx(1.0)


def test_bray_curtis_does_not_depend_on_totals():
    X = np.array([[9, 1, 0], [8, 2, 0], [0, 1, 9], [0, 2, 8]])
    first, second = (principal_coordinates(rows)[0] for rows in (X, X * np.array([[1], [10], [100], [1]])))
    np.testing.assert_allclose(pdist(first), pdist(second))


def test_an_ordination_draws_every_row_in_the_color_of_its_cluster():
    X, labels = np.random.default_rng(0).poisson(3, (30, 8)) + 1, np.repeat([0, 1, 2], 10)
    for metric in ("braycurtis", "aitchison"):
        ax = plots.ordination(X, labels, metric=metric)
        assert [len(drawn.get_offsets()) for drawn in ax.collections] == [10, 10, 10]
        plt.close(ax.figure)
    with pytest.raises(ValueError, match="metric"):
        plots.ordination(X, labels, metric="euclidean")
    with pytest.raises(ValueError, match="clusters"):
        plots.ordination(X, labels[:-1])
    plt.close("all")
