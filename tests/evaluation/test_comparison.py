"""Methods side by side."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import SphericalKMeans
from mmpca.errors import CountsError
from mmpca.evaluation import all_methods, compare

QUICK = ["spherical k-means", "multinomial mixture"]
X = np.kron(np.eye(3, dtype=int), np.full((4, 2), 5)) + 1
TRUTH = np.repeat(["a", "b", "c"], 4)


class Hungry(ClusterMixin, BaseEstimator):
    """Allocates 20 megabytes and returns one cluster."""

    def fit(self, X, y=None):
        self.labels_ = np.zeros(20_000_000, dtype=np.int8)[: X.shape[0]].astype(int)
        return self


def test_each_method_has_agreement_time_memory_and_labels():
    rows = compare(X, 3, 2, labels=TRUTH, methods=QUICK, random_state=0)
    assert [row.method for row in rows] == QUICK
    for row in rows:
        assert row.ari == adjusted_rand_score(TRUTH, row.labels) == 1.0
        assert row.nmi == pytest.approx(1.0)
        assert row.seconds > 0
        assert row.peak_megabytes > 0
        assert row.labels.shape == (12,)


def test_agreement_and_memory_are_optional():
    (row,) = compare(X, 3, 2, methods="spherical k-means", random_state=0, measure_memory=False)
    assert row.peak_megabytes is None
    assert row.ari is None
    assert row.nmi is None


def test_labels_equal_those_of_the_method_itself():
    (row,) = compare(X, 3, 2, methods=QUICK[:1], random_state=0)
    np.testing.assert_array_equal(row.labels, SphericalKMeans(3, random_state=0).fit_predict(X))


def test_labels_depend_only_on_the_seed():
    first, second = (compare(X, 3, 2, methods=QUICK, random_state=3, measure_memory=False) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("is_traced", [False, True])
def test_the_memory_of_a_fit_is_measured(is_traced):
    if is_traced:
        tracemalloc.start()
    try:
        (row,) = compare(X, 1, 1, methods={"hungry": Hungry()})
        assert 20 <= row.peak_megabytes < 25
        assert tracemalloc.is_tracing() == is_traced
    finally:
        tracemalloc.stop()


def test_own_estimators_are_compared_and_stay_unfitted():
    mine = SphericalKMeans(2, random_state=0)
    (row,) = compare(X, 3, 2, methods={"mine": mine})
    assert row.method == "mine"
    assert len(np.unique(row.labels)) == 2
    assert not hasattr(mine, "labels_")


def test_the_callback_sees_each_method():
    reports = []
    compare(X, 3, 2, methods=QUICK, random_state=0, measure_memory=False, callback=reports.append)
    assert [(report.stage, report.n_done, report.n_steps) for report in reports] == [
        ("methods", n_done, 2) for n_done in range(3)
    ]
    assert [report.text for report in reports[:2]] == QUICK


def test_a_true_answer_of_the_callback_keeps_the_finished_methods():
    rows = compare(X, 3, 2, methods=QUICK, random_state=0, callback=lambda progress: progress.n_done == 1)
    assert [row.method for row in rows] == QUICK[:1]


def test_mmpca_and_every_baseline_are_offered():
    methods = all_methods(3, 2, random_state=5)
    kinds = {type(method).__name__ for method in methods.values()}
    assert next(iter(methods)) == "MMPCA"
    assert len(kinds) == 12
    for method in methods.values():
        assert method.n_clusters == 3
        assert method.random_state == 5


def test_unknown_methods_wrong_labels_and_invalid_counts_are_refused():
    with pytest.raises(ValueError, match="DBSCAN"):
        compare(X, 3, 2, methods=["DBSCAN"])
    with pytest.raises(ValueError, match="labels"):
        compare(X, 3, 2, labels=[0, 1])
    with pytest.raises(CountsError):
        compare([[-1]], 1, 1)
