"""Agreement of partitions, with known labels and with refits."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.exceptions import NotFittedError

from mmpca import MMPCA, MMPCASearch
from mmpca.baselines import SphericalKMeans
from mmpca.evaluation import agreement, matched_confusion, stability
from mmpca.evaluation.partitions import matched_jaccard
from mmpca.simulate import paper_design

PARTITIONS = st.integers(1, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)])
)


# --- known labels -----------------------------------------------------------------------------------------------


def rand_by_pairs(truth, found):
    """Return the adjusted Rand index from its definition on pairs of rows."""
    pairs = np.triu_indices(len(truth), 1)
    together, found_together = (np.equal.outer(y, y)[pairs] for y in (np.array(truth), np.array(found)))
    both, n_pairs = np.sum(together & found_together), len(together)
    expected = together.sum() * found_together.sum() / n_pairs
    largest = (together.sum() + found_together.sum()) / 2
    return (both - expected) / (largest - expected)


def test_the_rand_index_agrees_with_its_definition_on_pairs_of_rows():
    truth, found = [0, 0, 0, 1, 1, 2, 2, 2], [1, 1, 0, 0, 0, 2, 2, 1]
    assert agreement(truth, found).ari == pytest.approx(rand_by_pairs(truth, found))


@given(PARTITIONS)
def test_agreement_is_symmetric_and_one_for_equal_partitions(partitions):
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


def test_clusters_without_a_class_and_classes_without_a_cluster_are_kept():
    wide = matched_confusion(["a", "a", "b", "b"], [0, 1, 2, 2])
    tall = matched_confusion([0, 1, 2, 2], ["a", "a", "b", "b"])
    assert wide.table.shape == (2, 3)
    assert tall.table.shape == (3, 2)
    assert wide.accuracy == tall.accuracy == 0.75


@pytest.mark.parametrize("function", [agreement, matched_confusion])
@pytest.mark.parametrize(("truth", "found"), [([0, 1], [0]), ([], []), ([[0]], [[0]])])
def test_labels_of_different_rows_are_refused(function, truth, found):
    with pytest.raises(ValueError, match=r"\btruth\b.*\bfound\b"):
        function(truth, found)


# --- refits -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=120, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(data.X)


@given(PARTITIONS)
def test_the_matching_has_the_largest_sum_of_all(partitions):
    labels, others = map(np.array, partitions)
    members = [[set(np.flatnonzero(y == q)) for q in range(4)] for y in (labels, others)]
    table = [[len(a & b) / max(1, len(a | b)) for b in members[1]] for a in members[0]]
    best = max(sum(table[q][p] for q, p in enumerate(order)) for order in permutations(range(4)))
    assert np.nansum(matched_jaccard(labels, others, 4)) == pytest.approx(best)


@given(PARTITIONS)
def test_a_relabeled_partition_is_recovered_completely(partitions):
    labels = np.array(partitions[0])
    found = matched_jaccard(labels, 7 - labels, 4)
    assert (found[np.unique(labels)] == 1).all()
    assert np.isnan(found).sum() == 4 - len(np.unique(labels))


def test_a_cluster_without_a_match_has_similarity_zero():
    np.testing.assert_array_equal(matched_jaccard([0, 0, 1], [5, 5, 5], 2), [2 / 3, 0])


@pytest.mark.parametrize("how", ["rows", "counts"])
def test_clear_clusters_are_recovered(data, model, how):
    found = stability(model, data.X, how=how, n_refits=3, random_state=0)
    assert found.jaccard.shape == (3, 6)
    assert (found.clusters > 0.9).all()
    assert (found.ari > 0.9).all()
    assert found.verdicts == ["stable"] * 6


def test_a_superfluous_cluster_is_not_recovered(data):
    model = MMPCA(7, 4, topics="lda", n_init=1, random_state=0).fit(data.X)
    verdicts = stability(model, data.X, n_refits=4, random_state=0).verdicts
    assert 0 < verdicts.count("stable") < 7


def test_the_result_does_not_depend_on_the_number_of_jobs_nor_change_the_model(data, model):
    before = model.labels_.copy()
    with parallel_config("threading"):
        one, two = (stability(model, data.X, n_refits=2, n_jobs=n, random_state=3) for n in (1, 2))
    np.testing.assert_array_equal(one.jaccard, two.jaccard)
    np.testing.assert_array_equal(model.labels_, before)


def test_other_clusterers_can_be_refitted():
    X = np.kron(np.eye(3, dtype=int), np.full((8, 2), 5)) + 1
    baseline = SphericalKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(stability(baseline, X, n_refits=2, random_state=0).jaccard, np.ones((2, 3)))


def test_a_search_does_not_make_clusters_of_noise_stable():
    noise = np.random.default_rng(0).multinomial(60, np.full(30, 1 / 30), 80)
    best = MMPCASearch(4, 2, n_init=1, random_state=0).fit(noise).best_estimator_
    assert not isinstance(best.start, str)  # a refit that starts there would find the same clusters
    assert not isinstance(best.topics, str)
    assert "stable" not in stability(best, noise, n_refits=4, random_state=0).verdicts


def test_a_small_cluster_may_be_missing_from_a_refit():
    X = np.vstack([np.tile([9, 1, 0, 0], (30, 1)), [[0, 0, 5, 5]]])
    model = MMPCA(2, 2, start=np.repeat([0, 1], [30, 1]), random_state=0).fit(X)
    found = stability(model, X, n_refits=4, share=0.5, random_state=0)
    assert np.isnan(found.jaccard[:, 1]).any()


def test_an_unfitted_model_is_refused(data):
    with pytest.raises(NotFittedError):
        stability(MMPCA(2, 2), data.X)


@pytest.mark.parametrize(
    "arguments",
    [{"how": "columns"}, {"n_refits": 0}, {"share": 1.0}, {"share": 0}, {"X": np.ones((5, 917), dtype=int)}],
)
def test_invalid_arguments_are_refused_by_name(data, model, arguments):
    with pytest.raises(ValueError, match=rf"\b{next(iter(arguments))}\b"):
        stability(model, **({"X": data.X} | arguments))
