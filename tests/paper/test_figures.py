"""The figures of the paper's experiments."""

import pytest
from matplotlib.patches import Rectangle

from mmpca.paper.figures import choice_maps

COUNTS = {("icl", 1.0): {(5, 4): 2}, ("predictive", 1.0): {(5, 4): 1, (6, 3): 1}}


def frames(truth):
    """Return the corners of the frames in each map."""
    figure = choice_maps(COUNTS, n_clusters=(5, 6), n_topics=(3, 4), truth=truth)
    return [[patch.get_xy() for patch in ax.patches if isinstance(patch, Rectangle)] for ax in figure.axes]


def test_the_true_cell_is_framed_in_each_map():
    assert frames((6, 4)) == [[(0.5, 0.5)]] * 2


@pytest.mark.parametrize("truth", [(7, 4), (6, 5), (7, 5)])
def test_a_grid_without_the_true_cell_has_no_frame(truth):
    assert frames(truth) == [[], []]
