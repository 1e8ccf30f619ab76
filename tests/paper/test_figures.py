"""The figures of the paper's experiments."""

import pytest
from matplotlib.patches import Rectangle

from mmpca.paper import make, run_tasks, write_output
from mmpca.paper.figures import choice_maps
from mmpca.simulate import paper_design

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


def test_the_design_shows_every_word_of_every_topic_and_sums_to_one(tmp_path):
    experiment = make("design")
    table, _ = write_output(experiment, run_tasks(experiment, tmp_path), tmp_path)
    data = paper_design(1, random_state=0)
    is_word = [kind == "word" for kind in table["kind"]]
    assert sum(is_word) == (data.topics > 0).sum()
    for topic, mean in zip(dict.fromkeys(table["topic"]), data.cluster_topics.mean(axis=0), strict=True):
        rows = [row for row in zip(*table.values(), strict=True) if row[0] == topic]
        assert sum(p for _, kind, _, p in rows if kind == "word") == pytest.approx(1.0)
        assert sum(p for _, kind, _, p in rows if kind == "cluster") == pytest.approx(6 * mean)
