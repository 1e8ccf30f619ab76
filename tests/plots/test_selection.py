"""Figures of the choice of (Q, K) and of merges."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from mmpca import plots
from mmpca.plots.style import EMPHASIS

RESULTS = {
    "n_clusters": np.array([2, 3, 5, 2, 3, 5]),
    "n_topics": np.array([2, 2, 2, 3, 3, 3]),
    "predictive": np.array([-150.0, -120.0, -130.0, -104.25, -100.0, -2100.0]),
    "icl": np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]),
}
PATH = SimpleNamespace(linkage=np.array([[0, 2, 5.0, 2], [1, 3, 9.0, 3]]), bounds=np.array([-30.0, -26.0, -21.0]))


def test_the_heat_map_shows_how_far_each_cell_is_below_the_best():
    ax = plots.criterion_heatmap(RESULTS)
    numbers = {tuple(text.get_position()): text.get_text() for text in ax.texts}
    # columns are 2, 3 and 5 clusters, rows 2 and 3 topics
    assert numbers == {(0, 0): "50", (1, 0): "20", (2, 0): "30", (0, 1): "4.2", (1, 1): "best", (2, 1): "2,000"}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "3", "5"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "3"]


def test_the_heat_map_frames_the_best_cell():
    frames = [patch for patch in plots.criterion_heatmap(RESULTS).patches if isinstance(patch, Rectangle)]
    assert [frame.get_xy() for frame in frames] == [(0.5, 0.5)]
    assert to_hex(frames[0].get_edgecolor()) == EMPHASIS.lower()


def test_another_criterion_can_be_drawn():
    ax = plots.criterion_heatmap(RESULTS, criterion="icl")
    assert ax.get_title(loc="left").startswith("icl")
    assert {text.get_text() for text in ax.texts} == {"best", "1.0", "2.0", "3.0", "4.0", "5.0"}


def test_a_combination_that_was_not_tried_stays_empty():
    ax = plots.criterion_heatmap({name: column[:-1] for name, column in RESULTS.items()})
    assert len(ax.texts) == 5


def test_each_number_of_topics_has_a_curve_and_the_maximum_is_marked():
    ax = plots.criterion_curves(RESULTS)
    curves = {line.get_label(): line for line in ax.lines if line.get_label() in {"2", "3"}}
    np.testing.assert_array_equal(curves["2"].get_xdata(), [2, 3, 5])
    np.testing.assert_array_equal(curves["2"].get_ydata(), [-50, -20, -30])
    np.testing.assert_array_equal(curves["3"].get_ydata(), [-4.25, 0, -2000])
    [maximum] = ax.texts
    assert maximum.xy == (3, 0.0)


def test_the_dendrogram_has_a_leaf_for_each_cluster_and_losses_as_heights():
    ax = plots.dendrogram(PATH, names=["a", "b", "c"])
    assert sorted(label.get_text() for label in ax.get_xticklabels()) == ["a", "b", "c"]
    heights = {segment[1, 1] for collection in ax.collections for segment in collection.get_segments()}
    assert heights == {5.0, 9.0}


def test_a_dendrogram_of_one_cluster_has_no_branch():
    ax = plots.dendrogram(SimpleNamespace(linkage=np.zeros((0, 4)), bounds=np.array([-3.0])))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0"]


@pytest.mark.parametrize(
    "draw", [plots.criterion_heatmap, plots.criterion_curves, lambda x, ax: plots.dendrogram(PATH, ax=ax)]
)
def test_figures_use_the_axes_passed_to_them(draw):
    _, ax = plt.subplots()
    assert draw(RESULTS, ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_a_missing_column_is_rejected():
    with pytest.raises(ValueError, match="bic"):
        plots.criterion_curves(RESULTS, criterion="bic")


def test_without_matplotlib_the_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"mmpca\[plots\]"):
        plots.criterion_heatmap(RESULTS)


@pytest.mark.parametrize("draw", [plots.criterion_heatmap, plots.criterion_curves])
def test_results_without_a_predictive_column_are_drawn_by_icl(draw):
    results = {name: column for name, column in RESULTS.items() if name != "predictive"}
    ax = draw(results)
    assert "icl" in ax.get_title(loc="left") + ax.get_ylabel()


def test_curves_of_numbers_of_clusters_have_the_errors_of_the_results():
    results = {"n_clusters": [2, 3], "n_topics": [2, 2], "shares": [-70.0, -50.0], "shares_error": [6.0, 0.0]}
    [bars] = plots.criterion_curves(results).collections
    np.testing.assert_array_equal(bars.get_segments()[0], [[2, -26], [2, -14]])


def test_names_below_a_dendrogram_do_not_overlap():
    names = [f"a long name of cluster {q}" for q in range(12)]
    linkage = np.array([[q if q == 0 else 11 + q, q + 1, q + 1, q + 2] for q in range(11)], dtype=float)
    ax = plots.dendrogram(SimpleNamespace(linkage=linkage, bounds=np.zeros(12)), names=names)
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    assert min(box.y0 for box in boxes) >= 0
