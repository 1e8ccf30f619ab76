"""Figures look like the reviewed pictures in the folder `baseline`."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mmpca import plots
from mmpca.plots.style import COLORS

RNG = np.random.default_rng(0)
SHARES = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]])
LABELS = np.repeat([0, 1, 2], [20, 10, 5])
RESULTS = {
    "n_clusters": np.tile([2, 3, 4], 3),
    "n_topics": np.repeat([2, 3, 4], 3),
    "predictive": np.array([-900.0, -300.0, -310.0, -200.0, -100.0, -104.0, -260.0, -130.0, -118.0]),
}
COUNTS = np.random.default_rng(1).poisson(2.0 * SHARES[LABELS][:, [0, 0, 1, 1, 2, 3]])
REFITS = np.array([[0.95, 0.7, 0.3], [0.9, 0.8, 0.5], [1.0, 0.65, 0.4], [0.92, 0.75, np.nan]])
PATH = SimpleNamespace(linkage=np.array([[0, 2, 5.0, 2], [1, 3, 9.0, 3]]), bounds=np.array([-30.0, -26.0, -21.0]))


class Fitted(SimpleNamespace):
    """The attributes of a fitted model that the figures use."""

    def transform(self, X):
        return X

    def predict(self, X):
        return LABELS


def fitted():
    counts = np.array([[40, 30, 20, 10, 5, 0], [10, 12, 1, 0, 30, 5], [3, 2, 2, 1, 1, 20]], dtype=float)
    return Fitted(
        n_features_in_=6,
        cluster_counts_=counts,
        cluster_row_counts_=np.minimum(counts, np.bincount(LABELS)[:, None]).astype(np.int64),
        weights_=np.bincount(LABELS) / len(LABELS),
        labels_=LABELS,
        cluster_sizes=np.bincount(LABELS),
        cluster_topics_=SHARES,
        components_=np.array([[5, 4, 3, 2, 1, 0], [3, 3, 0, 0, 9, 1], [1, 1, 1, 1, 1, 9], [8, 0, 6, 0, 4, 0]]) / 20,
        bound_history_=np.array([-300.0, -150.0, -120.0, -118.0]),
        starts_=[SimpleNamespace(bound=bound, n_epochs=3) for bound in (-118.0, -140.0, -119.0)],
    )


def rows(n_topics):
    """Return topic shares of rows, scattered around those of their clusters."""
    means = SHARES[:, :n_topics] + 0.05
    noisy = np.array([np.random.default_rng(i).dirichlet(60 * means[q]) for i, q in enumerate(LABELS)])
    return noisy / noisy.sum(axis=1, keepdims=True)


PICTURES = {
    "cluster_topics": lambda ax: plots.cluster_topics(fitted(), ax=ax),
    "topic_features": lambda ax: plots.topic_features(fitted(), 0, by="share", ax=ax),
    "topic_features_lift": lambda ax: plots.topic_features(fitted(), 0, by="lift", ax=ax),
    "topic_features_entropy": lambda ax: plots.topic_features(fitted(), 0, by="entropy", ax=ax),
    "bound_history": lambda ax: plots.bound_history(fitted(), ax=ax),
    "cluster_sizes": lambda ax: plots.cluster_sizes(fitted(), ax=ax),
    "criterion_heatmap": lambda ax: plots.criterion_heatmap(RESULTS, ax=ax),
    "criterion_curves": lambda ax: plots.criterion_curves(RESULTS, ax=ax),
    "dendrogram": lambda ax: plots.dendrogram(PATH, ax=ax),
    "topic_space_line": lambda ax: plots.topic_space(fitted(), rows(2), ax=ax),
    "topic_space_simplex": lambda ax: plots.topic_space(fitted(), rows(3), ax=ax),
    "topic_space_plane": lambda ax: plots.topic_space(fitted(), rows(4), ax=ax),
    "marker_dotplot": lambda ax: plots.marker_dotplot(fitted(), COUNTS, clusters=LABELS, n_features=2, ax=ax),
    "relevance_bars": lambda ax: plots.relevance_bars(fitted(), 1, ax=ax),
    "label_composition": lambda ax: plots.label_composition(np.roll(LABELS, 3), LABELS, ax=ax),
    "certainty_strips": lambda ax: plots.certainty_strips(np.linspace(0.5, 1.0, 35), LABELS, ax=ax),
    "clustree": lambda ax: plots.clustree([LABELS * 0, LABELS > 0, LABELS, np.arange(35) // 10], ax=ax),
    "confusion": lambda ax: plots.confusion(np.roll(LABELS, 3), LABELS, ax=ax),
    "stability": lambda ax: plots.stability(REFITS, ax=ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_looks_like_its_baseline(name, canvas, assert_looks_like):
    assert_looks_like(PICTURES[name](canvas).figure, name)


def test_panels_of_topics_look_like_their_baseline(assert_looks_like):
    assert_looks_like(plots.topics(fitted(), n_features=4, by="share", figure=plt.figure(figsize=(4.0, 3.0))), "topics")


def test_panels_of_clusters_look_like_their_baseline(assert_looks_like):
    assert_looks_like(
        plots.distinctive_features(fitted(), n_features=4, figure=plt.figure(figsize=(4.0, 3.0))),
        "distinctive_features",
    )


def test_every_function_has_a_baseline():
    drawn = {
        name
        for name in plots.__all__
        if any(picture.startswith(name) for picture in [*PICTURES, "distinctive_features", "topics"])
    }
    # Points of t-SNE and principal coordinates differ between machines, and some layouts depend on fonts: these are
    # tested by their artists, in test_clusters.py and tests/evaluation/test_ecology.py.
    assert drawn | {"row_map", "ordination", "theta_heatmap", "clusters_over"} == set(plots.__all__)


def test_a_different_result_looks_different(difference):
    def draw(values):
        ax = plt.figure(figsize=(4.0, 3.0)).add_axes((0.12, 0.12, 0.8, 0.8))
        return plots.stability(values, ax=ax).figure

    assert difference(draw(REFITS), draw(REFITS)) == 0
    assert difference(draw(REFITS), draw(REFITS[:, ::-1])) > 0.12


def seen_by(hexadecimal, blindness):
    """Return a color as a color-blind reader sees it, in linear RGB (Machado et al. 2009, severity 1)."""
    matrices = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    }
    values = np.array([int(hexadecimal[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return np.clip(np.array(matrices[blindness]) @ linear, 0, 1)


@pytest.mark.parametrize("blindness", ["protan", "deutan"])
def test_cluster_colors_differ_for_color_blind_readers(blindness):
    seen = [seen_by(color, blindness) ** (1 / 2.2) for color in COLORS]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert np.linalg.norm(one - other) > 0.12
