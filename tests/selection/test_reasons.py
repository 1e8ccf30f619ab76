"""A choice in words."""

import numpy as np
import pytest

from mmpca.selection.reasons import number, sentence


def results(by_topics, error=None):
    """Return a grid of one number of clusters and the given scores by the number of topics."""
    n = len(by_topics)
    columns = {"n_clusters": np.full(n, 2), "n_topics": np.arange(1, n + 1), "predictive": np.array(by_topics)}
    return columns if error is None else columns | {"predictive_error": np.array(error)}


@pytest.mark.parametrize(
    ("behind", "error", "verdict"),
    [
        (40.0, 5.0, "clear"),
        (40.0, 20.0, "likely"),  # two standard errors
        (40.0, 50.0, "a close call"),
        (5.0, 0.1, "likely"),  # certain, but little
        (2.0, 0.1, "a close call"),
    ],
)
def test_a_number_of_topics_is_as_clear_as_its_standard_error_allows(behind, error, verdict):
    told = sentence(results([-900.0, 0.0, -behind], [30.0, 0.0, error]), "predictive")
    assert f"the number of topics is {verdict}: 1 topic is 900 nats (standard error 30) worse" in told


def test_a_number_that_is_no_neighbour_can_make_it_a_close_call():
    told = sentence(results([-1.0, -50.0, 0.0, -50.0]), "predictive")
    assert "the number of topics is a close call: 2 topics are 50 nats worse and 4 topics are 50 nats worse" in told


def test_without_errors_nats_alone_decide():
    assert "is clear: 1 topic is 10 nats worse" in sentence(results([-10.0, 0.0]), "predictive")


def test_the_next_best_cell_is_named():
    told = sentence(results([-6.8, -50.0, 0.0, -40.0], [2.5, 0.0, 0.0, 9.0]), "predictive")
    assert told.endswith("; next best are 2 clusters and 1 topic, 6.8 nats (standard error 2.5) behind.")
    assert "next best" not in sentence(results([0.0]), "predictive")


def test_no_more_are_advised_than_there_can_be():
    rising = results([-50.0, 0.0])
    assert "(at the edge of the grid: try more)" in sentence(rising, "predictive", (9, 9))
    assert "edge" not in sentence(rising, "predictive", (9, int(rising["n_topics"].max())))


@pytest.mark.parametrize(("value", "text"), [(1020.4, "1,020"), (99.96, "100"), (12.61, "12.6"), (0.2591, "0.259")])
def test_numbers_are_written_as_they_are_read(value, text):
    assert number(value) == text
