"""Figures of agreement and stability."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from mmpca import plots
from mmpca.plots.style import COLOURS, EMPHASIS


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_classes_stand_where_their_clusters_are():
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


def test_classes_without_a_cluster_of_their_own_come_last():
    ax = plots.confusion(["x", "y", "y"], [0, 0, 0])
    assert ticks(ax.yaxis) == ["y", "x"]


def test_classes_and_clusters_must_fit():
    with pytest.raises(ValueError, match="one entry for each row, but there are 1 and 2"):
        plots.confusion(["a"], [0, 1])
    with pytest.raises(ValueError, match="clusters must be whole numbers from 0"):
        plots.confusion(["a"], ["0"])


def test_stability_draws_means_and_middle_halves():
    ax = plots.stability([[1.0, 0.2], [0.5, np.nan], [0.9, 0.4]])
    halves, means = ax.lines[1::2], ax.lines[2::2]
    np.testing.assert_allclose([dot.get_xdata()[0] for dot in means], [0.8, 0.3])
    np.testing.assert_allclose(halves[0].get_xdata(), [0.7, 0.95])
    assert [to_hex(dot.get_color()).upper() for dot in means] == [COLOURS[0], EMPHASIS]


def test_stability_takes_a_result_or_one_number_for_each_cluster():
    values = np.array([[0.9, 0.7], [0.8, 0.6]])
    for result, expected in ((SimpleNamespace(jaccard=values), [0.85, 0.65]), (values[0], [0.9, 0.7])):
        ax = plots.stability(result, names=["first", "second"])
        np.testing.assert_allclose([dot.get_xdata()[0] for dot in ax.lines[2::2]], expected)
        assert ticks(ax.yaxis) == ["first", "second"]


def test_clusters_that_were_never_drawn_leave_their_line_empty():
    ax = plots.stability([[np.nan, 0.9]])
    assert len(ax.lines) == 3
    assert len(ticks(ax.yaxis)) == 2


def test_what_is_no_stability_is_refused():
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        plots.stability([0.5, 1.5])
    with pytest.raises(ValueError, match="names must have one entry for each of the 2 clusters, but has 1"):
        plots.stability([0.5, 0.5], names=["a"])


@pytest.mark.parametrize(
    "draw", [lambda ax: plots.stability([0.5], ax=ax), lambda ax: plots.confusion(["a"], [0], ax=ax)]
)
def test_given_axes_are_drawn_on(draw):
    ax = plt.figure().add_subplot()
    assert draw(ax) is ax
