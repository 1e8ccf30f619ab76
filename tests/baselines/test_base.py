"""Properties that hold for every baseline."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mmpca import baselines
from mmpca.baselines import (
    GMMLDA,
    NMFEM,
    IntegratedMultinomialMixture,
    MultinomialMixture,
    PoissonMixture,
    PolyaMixture,
)
from mmpca.errors import CountsError

MIXTURES = [MultinomialMixture, NMFEM, PoissonMixture, partial(PoissonMixture, algorithm="cem")]
MIXTURE_NAMES = ["multinomial", "nmf-em", "poisson", "poisson-cem"]


def test_finds_well_separated_clusters_of_rows_with_unequal_totals(make_baseline, make_blocks):
    sample = make_blocks()
    labels = make_baseline(3).fit_predict(sample.X)
    assert adjusted_rand_score(sample.labels, labels) == 1.0


def test_has_a_label_for_each_row(make_baseline, make_blocks):
    sample = make_blocks(n_rows=20)
    model = make_baseline(3).fit(sample.X)
    assert model.labels_.shape == (20,)
    assert model.labels_.dtype.kind == "i"
    assert set(model.labels_) <= {0, 1, 2}
    assert model.n_features_in_ == sample.X.shape[1]


def test_gives_the_same_result_for_the_same_seed(make_baseline, make_blocks):
    sample = make_blocks(1, n_rows=20, shortest=5, longest=10)
    first, second = (make_baseline(3).fit(sample.X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(getattr(first, "history_", 0), getattr(second, "history_", 0))


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_gives_the_same_result_for_sparse_and_dense_counts(form, make_baseline, make_blocks):
    sample = make_blocks(1, n_rows=20, shortest=5, longest=10)
    dense, thin = make_baseline(3).fit(sample.X), make_baseline(3).fit(form(sample.X))
    np.testing.assert_array_equal(dense.labels_, thin.labels_)


def test_does_not_change_the_counts(make_baseline, make_blocks):
    X = sparse.csr_array(make_blocks(n_rows=20).X.astype(np.int32))
    before = X.copy()
    make_baseline(3).fit(X)
    assert abs(X - before).sum() == 0


@pytest.mark.parametrize(
    "kind", [*MIXTURES, IntegratedMultinomialMixture, PolyaMixture], ids=[*MIXTURE_NAMES, "integrated", "polya"]
)
def test_never_lowers_its_objective(kind, make_blocks):
    model = kind(4, n_init=2, random_state=0).fit(make_blocks(2, shortest=5, longest=30).X)
    assert len(model.history_) == model.n_iter_
    assert np.all(np.diff(model.history_) >= -1e-9 * abs(model.history_[-1]))


def test_takes_a_single_row(make_baseline):
    if isinstance(make_baseline(1), GMMLDA):
        pytest.skip("a covariance needs two rows; the error is tested in test_topic_space.py")
    assert make_baseline(1).fit_predict([[3, 0, 2, 1]]).tolist() == [0]


def test_puts_all_rows_into_one_cluster_if_there_is_one(make_baseline, make_blocks):
    assert set(make_baseline(1).fit_predict(make_blocks(n_rows=12).X)) == {0}


def test_takes_as_many_clusters_as_rows(make_baseline, make_blocks):
    labels = make_baseline(6).fit_predict(make_blocks(n_rows=6).X)
    assert labels.shape == (6,)
    assert labels.max() < 6


def test_takes_identical_rows(make_baseline):
    labels = make_baseline(3).fit_predict(np.tile([4, 0, 3, 1], (8, 1)))
    assert labels.shape == (8,)


def test_columns_without_counts_do_not_matter(make_baseline, make_blocks):
    X = make_blocks(n_rows=20).X
    wider = np.hstack([np.zeros((20, 2), dtype=int), X, np.zeros((20, 3), dtype=int)])
    labels, wider_labels = make_baseline(3).fit_predict(X), make_baseline(3).fit_predict(wider)
    assert adjusted_rand_score(labels, wider_labels) == 1.0


def test_takes_a_single_column(make_baseline):
    assert make_baseline(2).fit_predict([[1], [200], [3]]).shape == (3,)


def test_takes_huge_counts(make_baseline, make_blocks):
    sample = make_blocks(n_rows=12)
    labels = make_baseline(3).fit_predict(sample.X * 10**6)
    assert adjusted_rand_score(sample.labels, labels) == 1.0


def test_can_be_cloned_with_its_parameters(make_baseline):
    model = make_baseline(3)
    assert str(clone(model).get_params(deep=False)) == str(model.get_params(deep=False))


@pytest.mark.parametrize(
    ("X", "place"),
    [([[1, -2], [1, 1]], (0, 1)), ([[1, 0.5], [1, 1]], (0, 1)), ([[1, 2], [0, 0]], (1, None))],
)
def test_an_invalid_count_raises_an_error_with_its_place(X, place, make_baseline):
    with pytest.raises(CountsError) as raised:
        make_baseline(1).fit(X)
    assert (raised.value.row, raised.value.column) == place


def test_more_clusters_than_rows_raise(make_baseline):
    with pytest.raises(ValueError, match="n_clusters"):
        make_baseline(3).fit([[1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("name", "value"), [("n_clusters", 0), ("n_clusters", 2.5), ("n_clusters", True), ("n_init", 0)]
)
def test_an_invalid_parameter_raises(name, value, make_baseline):
    with pytest.raises(ValueError, match=name):
        make_baseline(**{"n_clusters": 1, name: value}).fit([[1, 2], [2, 1]])


def test_an_error_leaves_an_earlier_fit_untouched():
    model = MultinomialMixture(2, random_state=0).fit([[9, 1, 0], [1, 0, 9]])
    with pytest.raises(CountsError):
        model.fit([[1, -1], [1, 1]])
    assert model.n_features_in_ == 3
    assert model.predict([[5, 0, 0]]) == model.labels_[0]


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (PoissonMixture(2, random_state=0), {"library_sizes": [1.0, 1.0]}),
        (PoissonMixture(2, random_state=0), {"conditions": ["a", "b"]}),
        (GMMLDA(1, 2, random_state=0), {}),  # a single row
    ],
)
def test_rows_that_do_not_match_the_parameters_leave_an_earlier_fit_untouched(model, wrong):
    model.fit([[9, 1, 0], [1, 0, 9], [8, 1, 0], [0, 1, 9]])
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match=next(iter(wrong), "GMMLDA")):
        model.set_params(**wrong).fit([[1, 2, 3, 4]] if not wrong else [[1, 2, 3, 4], [2, 1, 0, 5]])
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("name", baselines.__all__)
def test_has_five_starts_or_more_by_default(name):
    assert getattr(baselines, name)().n_init >= 5


@pytest.mark.parametrize("start", ["kmeans", "random"])
@pytest.mark.parametrize("kind", [*MIXTURES, PolyaMixture], ids=[*MIXTURE_NAMES, "polya"])
def test_em_never_lowers_its_likelihood_on_hard_rows_of_unequal_totals(kind, start, make_blocks):
    X = make_blocks(n_clusters=4, shortest=3, longest=300).X
    history = kind(5, start=start, n_init=1, tol=0, max_iter=60, random_state=0).fit(X).history_
    assert np.all(np.diff(history) >= -1e-9 * abs(history[-1]))
    assert history[-1] > history[0] or start == "kmeans"  # k-means may already be a maximum
