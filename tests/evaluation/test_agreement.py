from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmpca.evaluation import agreement, matched_confusion

PARTITIONS = st.integers(1, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)])
)


def rand_by_pairs(truth, found):
    """Return the adjusted Rand index from its definition on pairs of rows."""
    pairs = np.triu_indices(len(truth), 1)
    together, found_together = (np.equal.outer(y, y)[pairs] for y in (np.array(truth), np.array(found)))
    both, n_pairs = np.sum(together & found_together), len(together)
    expected = together.sum() * found_together.sum() / n_pairs
    largest = (together.sum() + found_together.sum()) / 2
    return (both - expected) / (largest - expected)


def test_agrees_with_the_definition_on_pairs_of_rows():
    truth, found = [0, 0, 0, 1, 1, 2, 2, 2], [1, 1, 0, 0, 0, 2, 2, 1]
    assert agreement(truth, found).ari == pytest.approx(rand_by_pairs(truth, found))


@given(PARTITIONS)
def test_is_symmetric_and_one_for_equal_partitions(partitions):
    truth, found = partitions
    assert agreement(truth, found) == pytest.approx(agreement(found, truth))
    assert agreement(truth, [7 - label for label in truth]) == pytest.approx((1, 1))


@given(PARTITIONS)
def test_the_matching_is_the_best_of_all(partitions):
    truth, found = np.array(partitions[0]), np.array(partitions[1])
    confusion = matched_confusion(truth, found)
    best = max(np.mean(np.array(names)[found] == truth) for names in permutations(range(4)))
    assert confusion.accuracy == pytest.approx(best)


@given(PARTITIONS)
def test_the_table_counts_the_rows_of_each_class_in_each_cluster(partitions):
    truth, found = np.array(partitions[0]), np.array(partitions[1])
    table, classes, clusters, accuracy = matched_confusion(truth, found)
    for a, row in zip(classes, table, strict=True):
        for b, count in zip(clusters, row, strict=True):
            assert count == np.sum((truth == a) & (found == b))
    assert accuracy == np.trace(table) / len(truth)


def test_keeps_clusters_without_a_class_and_classes_without_a_cluster():
    wide = matched_confusion(["a", "a", "b", "b"], [0, 1, 2, 2])
    tall = matched_confusion([0, 1, 2, 2], ["a", "a", "b", "b"])
    assert wide.table.shape == (2, 3)
    assert tall.table.shape == (3, 2)
    assert wide.accuracy == tall.accuracy == 0.75


@pytest.mark.parametrize("function", [agreement, matched_confusion])
@pytest.mark.parametrize(("truth", "found"), [([0, 1], [0]), ([], []), ([[0]], [[0]])])
def test_refuses_labels_that_do_not_belong_together(function, truth, found):
    with pytest.raises(ValueError, match="both partitions must have one label for each row, but their shapes are"):
        function(truth, found)
