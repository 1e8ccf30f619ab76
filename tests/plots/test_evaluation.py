"""Figures of agreement and stability."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from mmpca import plots
from mmpca.plots.style import COLORS, EMPHASIS


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_classes_are_sorted_like_the_clusters_they_match():
    known = ["b", "b", "b", "a", "a", "c"]
    ax = plots.confusion(known, [0, 0, 1, 1, 1, 2])
    assert ticks(ax.yaxis) == ["b", "a", "c"]
    assert {tuple(text.get_position()): text.get_text() for text in ax.texts} == {
        (0, 0): "2",
        (1, 0): "1",
        (1, 1): "2",
        (2, 2): "1",
    }
    np.testing.assert_allclose(ax.images[0].get_array(), [[2 / 3, 1 / 3, 0], [0, 1, 0], [0, 0, 1]])


def test_classes_without_a_matching_cluster_come_last():
    ax = plots.confusion(["x", "y", "y"], [0, 0, 0])
    assert ticks(ax.yaxis) == ["y", "x"]


def test_a_cluster_without_a_class_keeps_its_column():
    ax = plots.confusion(["x", "x", "y"], [0, 2, 5])
    assert ticks(ax.xaxis) == ["0", "2", "5"]
    np.testing.assert_allclose(np.sort(ax.images[0].get_array(), axis=1), [[0, 0.5, 0.5], [0, 0, 1]])


@pytest.mark.parametrize(("known", "clusters"), [(["a"], [0, 1]), ([], [])])
def test_classes_and_clusters_of_different_rows_are_rejected(known, clusters):
    with pytest.raises(ValueError):  # noqa: PT011 (raised by mmpca.evaluation)
        plots.confusion(known, clusters)


def test_stability_draws_means_and_interquartile_ranges():
    ax = plots.stability([[1.0, 0.2], [0.5, np.nan], [0.9, 0.4]])
    ranges, means = ax.lines[1::2], ax.lines[2::2]
    np.testing.assert_allclose([dot.get_xdata()[0] for dot in means], [0.8, 0.3])
    np.testing.assert_allclose(ranges[0].get_xdata(), [0.7, 0.95])
    assert [to_hex(dot.get_color()).upper() for dot in means] == [COLORS[0], EMPHASIS]


def test_stability_accepts_a_result_or_one_number_per_cluster():
    values = np.array([[0.9, 0.7], [0.8, 0.6]])
    for result, expected in ((SimpleNamespace(jaccard=values), [0.85, 0.65]), (values[0], [0.9, 0.7])):
        ax = plots.stability(result, names=["first", "second"])
        np.testing.assert_allclose([dot.get_xdata()[0] for dot in ax.lines[2::2]], expected)
        assert ticks(ax.yaxis) == ["first", "second"]


def test_a_cluster_without_values_gets_an_empty_line():
    ax = plots.stability([[np.nan, 0.9]])
    assert len(ax.lines) == 3
    assert len(ticks(ax.yaxis)) == 2


@pytest.mark.parametrize(
    ("values", "names", "wrong"),
    [([0.5, 1.5], None, "result"), ([-0.1, 1.0], None, "result"), ([0.5, 0.5], ["a"], "names")],
)
def test_values_that_are_no_similarities_and_missing_names_are_rejected(values, names, wrong):
    with pytest.raises(ValueError, match=wrong):
        plots.stability(values, names=names)


@pytest.mark.parametrize(
    "draw", [lambda ax: plots.stability([0.5], ax=ax), lambda ax: plots.confusion(["a"], [0], ax=ax)]
)
def test_figures_use_the_axes_passed_to_them(draw):
    ax = plt.figure().add_subplot()
    assert draw(ax) is ax
