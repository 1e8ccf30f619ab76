"""Calibration tables: the accuracy of the most certain rows, and how often intervals contain the truth."""

import numpy as np

from calibration import classes_of, interval_table, noisy_shares, surest_accuracy
from mmpca.simulate import paper_design


def test_a_cluster_that_holds_two_classes_shows_in_its_surest_rows_but_a_blurred_border_does_not():
    rng = np.random.default_rng(0)
    p = np.tile(np.linspace(0.51, 0.99, 200), 2)
    clusters = np.repeat([0, 1], 200)
    probabilities = np.where(np.eye(2, dtype=bool)[clusters], p[:, None], 1 - p[:, None])
    is_right = rng.random(400) < p
    blurred = np.where(is_right, clusters, 1 - clusters)
    mixed = np.where(clusters == 0, rng.integers(0, 2, 400) * 2, 1)  # classes 0 and 2 share a cluster
    assert surest_accuracy(probabilities, np.array([0, 1]), blurred) > 0.9
    assert surest_accuracy(probabilities, np.array([0, 1]), mixed) < 0.85


def test_clusters_are_matched_one_to_one_or_mapped_to_the_most_frequent_class():
    labels, truth = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), np.array([0, 0, 1, 0, 0, 1])
    assert classes_of(labels, truth, 2, is_matched=False).tolist() == [0, 0]
    assert sorted(classes_of(labels, truth, 2, is_matched=True).tolist()) == [0, 1]


def test_the_shares_that_intervals_should_contain_are_those_after_the_noise():
    data = paper_design(n_samples=3000, noise=0.6, random_state=0)
    drawn = np.array([data.X[data.labels == q].sum(axis=0) for q in range(6)])
    drawn = drawn / drawn.sum(axis=1, keepdims=True)
    assert np.abs(drawn - noisy_shares(data) @ data.topics).sum(axis=1).max() < 0.1
    assert np.abs(drawn - data.cluster_topics @ data.topics).sum(axis=1).min() > 0.15


def test_a_design_has_a_line_of_intervals_most_of_which_contain_the_true_shares():
    table = interval_table(1, [(40, 0.0)])
    n_rows, noise, contained, *_, width = (next(iter(column.cells)) for column in table.columns)
    assert (n_rows, noise) == ("40", "0")
    assert float(contained) > 0.7
    assert 0 < float(width) < 0.3
