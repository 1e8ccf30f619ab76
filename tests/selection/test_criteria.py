"""Criteria follow their formulas, and the strength of the evidence follows the scores."""

import numpy as np
import pytest

from mmpca.selection import criteria
from mmpca.selection.criteria import Support, predictions, predictive_error, reason, support


def test_scores_penalize_each_parameter_of_the_clusters():
    bounds, q, k = np.array([-10.0, -8.0]), np.array([2, 3]), np.array([4, 4])
    np.testing.assert_allclose(criteria.cluster_score(bounds, q, k, 50), bounds - np.array([7, 11]) / 2 * np.log(50))
    icl = criteria.icl(bounds, q, k, n_samples=50, n_features=21)
    np.testing.assert_allclose(icl, bounds - 4 * 20 / 2 * np.log(q) - (q - 1) / 2 * np.log(50))


def test_predictions_of_some_rows_are_scaled_to_all_counts():
    predicted = {2: np.array([-30.0, -50.0, -20.0]), 3: np.array([-20.0, -45.0, -25.0])}
    score, n_topics = np.array([-7.0, -5.0, -9.0, -4.0]), np.array([2, 2, 3, 3])
    columns = predictions(predicted, 40, score, n_topics, n_counts=400)
    np.testing.assert_allclose(columns["held_out"], [-2.5, -2.5, -2.25, -2.25])
    np.testing.assert_allclose(columns["predictive"], [-1002, -1000, -905, -900])
    error = 10 * np.sqrt(3) * np.std([10, 5, -5], ddof=1)
    np.testing.assert_allclose(columns["predictive_error"], [error, error, 0, 0])


def test_a_single_row_has_no_standard_error():
    assert predictive_error({1: np.array([-3.0]), 2: np.array([-2.0])}) == {1: 0.0, 2: 0.0}


@pytest.mark.parametrize(
    ("nats", "error", "strength"),
    [
        (40.0, 5.0, "strong"),
        (10.0, 0.0, "strong"),
        (40.0, 20.0, "moderate"),  # two standard errors
        (5.0, 0.1, "moderate"),  # certain, but small
        (40.0, 50.0, "weak"),
        (2.0, 0.1, "weak"),
    ],
)
def test_evidence_is_as_strong_as_the_difference_and_its_standard_error_allow(nats, error, strength):
    behind = {1: (900.0, 30.0), 2: (0.0, 0.0), 3: (nats, error)}
    assert support(2, behind) == Support(strength, 3, "")


def test_numbers_that_are_not_neighbors_count_as_well():
    behind = {1: (1.0, 0.0), 2: (50.0, 0.0), 3: (0.0, 0.0), 4: (50.0, 0.0)}
    assert support(3, behind) == Support("weak", 1, "")


def test_a_number_without_alternatives_has_no_support():
    assert support(3, {3: (0.0, 0.0)}) == Support("", None, "")


@pytest.mark.parametrize(
    ("chosen", "most", "beyond"), [(2, 9, "fewer"), (3, 9, ""), (4, 9, "more"), (4, 4, ""), (1, 9, "")]
)
def test_the_edge_of_the_grid_is_noted_unless_it_is_the_edge_of_the_possible(chosen, most, beyond):
    tried = (1, 2) if chosen == 1 else (2, 3, 4)
    assert support(chosen, {number: (float(number != chosen), 0.0) for number in tried}, most).beyond == beyond


@pytest.mark.parametrize("criterion", criteria.CRITERIA)
@pytest.mark.parametrize("n_cells", [1, 3])
def test_every_choice_has_a_reason(criterion, n_cells):
    columns = {"n_clusters": np.arange(1, n_cells + 1), "n_topics": np.full(n_cells, 2)}
    assert reason(columns | {criterion: -np.arange(n_cells, dtype=float)}, criterion)
