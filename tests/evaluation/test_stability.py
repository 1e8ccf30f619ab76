from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.exceptions import NotFittedError

from mmpca import MMPCA, MMPCASearch
from mmpca.baselines import SphericalKMeans
from mmpca.evaluation import stability
from mmpca.evaluation.stability import matched_jaccard
from mmpca.simulate import paper_design

PARTITIONS = st.integers(1, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)])
)


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=120, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)


@given(PARTITIONS)
def test_the_matching_has_the_largest_sum_of_all(partitions):
    labels, others = map(np.array, partitions)
    members = [[set(np.flatnonzero(y == q)) for q in range(4)] for y in (labels, others)]
    table = [[len(a & b) / max(1, len(a | b)) for b in members[1]] for a in members[0]]
    best = max(sum(table[q][p] for q, p in enumerate(order)) for order in permutations(range(4)))
    assert np.nansum(matched_jaccard(labels, others, 4)) == pytest.approx(best)


@given(PARTITIONS)
def test_a_partition_is_found_again_in_itself_under_other_names(partitions):
    labels = np.array(partitions[0])
    found = matched_jaccard(labels, 7 - labels, 4)
    assert (found[np.unique(labels)] == 1).all()
    assert np.isnan(found).sum() == 4 - len(np.unique(labels))


def test_a_cluster_without_a_match_has_similarity_zero():
    np.testing.assert_array_equal(matched_jaccard([0, 0, 1], [5, 5, 5], 2), [2 / 3, 0])


@pytest.mark.parametrize("how", ["rows", "counts"])
def test_clear_clusters_come_back(data, model, how):
    found = stability(model, data.X, how=how, n_refits=3, random_state=0)
    assert found.jaccard.shape == (3, 6)
    assert (found.clusters > 0.9).all()
    assert (found.ari > 0.9).all()
    assert found.verdicts == ["stable"] * 6


def test_a_cluster_too_many_does_not_come_back(data):
    model = MMPCA(7, 4, n_init=1, random_state=0).fit(data.X)
    verdicts = stability(model, data.X, n_refits=4, random_state=0).verdicts
    assert 0 < verdicts.count("stable") < 7


def test_the_result_does_not_depend_on_the_number_of_jobs_nor_change_the_model(data, model):
    before = model.labels_.copy()
    with parallel_config("threading"):
        one, two = (stability(model, data.X, n_refits=2, n_jobs=n, random_state=3) for n in (1, 2))
    np.testing.assert_array_equal(one.jaccard, two.jaccard)
    np.testing.assert_array_equal(model.labels_, before)


def test_other_clusterers_can_be_refitted(data):
    rival = SphericalKMeans(6, random_state=0).fit(data.X)
    assert stability(rival, data.X, n_refits=2, random_state=0).jaccard.shape == (2, 6)


def test_a_search_does_not_make_clusters_of_noise_stable():
    noise = np.random.default_rng(0).multinomial(60, np.full(30, 1 / 30), 80)
    best = MMPCASearch(4, 2, n_init=1, random_state=0).fit(noise).best_estimator_
    assert not isinstance(best.start, str)  # a refit from there would find the same again
    assert not isinstance(best.topics, str)
    assert "stable" not in stability(best, noise, n_refits=4, random_state=0).verdicts


def test_a_small_cluster_may_be_missing_from_a_refit():
    X = np.vstack([np.tile([9, 1, 0, 0], (30, 1)), [[0, 0, 5, 5]]])
    model = MMPCA(2, 2, start=np.repeat([0, 1], [30, 1]), random_state=0).fit(X)
    found = stability(model, X, n_refits=4, share=0.5, random_state=0)
    assert np.isnan(found.jaccard[:, 1]).any()


def test_needs_a_fitted_model(data):
    with pytest.raises(NotFittedError):
        stability(MMPCA(2, 2), data.X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"how": "columns"}, 'how must be "rows" or "counts", got \'columns\''),
        ({"n_refits": 0}, "n_refits must be a whole number of at least 1, got 0"),
        ({"share": 1.0}, "share must be between 0 and 1, got 1.0"),
        ({"X": np.ones((5, 917), dtype=int)}, "120 rows, but it has 5. Fit the model to X first"),
    ],
)
def test_refuses_what_cannot_be_refitted(data, model, arguments, message):
    with pytest.raises(ValueError, match=message):
        stability(model, **({"X": data.X} | arguments))
