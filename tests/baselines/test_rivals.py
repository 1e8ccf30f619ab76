"""What holds for every rival: one interface, the same care."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mmpca import baselines
from mmpca.baselines import GMMLDA, NMFEM, DirichletMultinomialMixture, MultinomialMixture, PoissonMixture
from mmpca.errors import CountsError

MIXTURES = [MultinomialMixture, NMFEM, PoissonMixture, partial(PoissonMixture, algorithm="cem")]
MIXTURE_NAMES = ["multinomial", "nmf-em", "poisson", "poisson-cem"]


def test_finds_well_separated_clusters_of_rows_with_unequal_totals(make_rival, make_blocks):
    sample = make_blocks()
    labels = make_rival(3).fit_predict(sample.X)
    assert adjusted_rand_score(sample.labels, labels) == 1.0


def test_has_a_label_for_each_row(make_rival, make_blocks):
    sample = make_blocks(n_rows=20)
    model = make_rival(3).fit(sample.X)
    assert model.labels_.shape == (20,)
    assert model.labels_.dtype.kind == "i"
    assert set(model.labels_) <= {0, 1, 2}
    assert model.n_features_in_ == sample.X.shape[1]


def test_gives_the_same_result_for_the_same_seed(make_rival, make_blocks):
    sample = make_blocks(1, n_rows=20, shortest=5, longest=10)
    first, second = (make_rival(3).fit(sample.X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(getattr(first, "history_", 0), getattr(second, "history_", 0))


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_gives_the_same_result_for_sparse_and_dense_counts(form, make_rival, make_blocks):
    sample = make_blocks(1, n_rows=20, shortest=5, longest=10)
    dense, thin = make_rival(3).fit(sample.X), make_rival(3).fit(form(sample.X))
    np.testing.assert_array_equal(dense.labels_, thin.labels_)


def test_leaves_the_counts_as_they_are(make_rival, make_blocks):
    X = sparse.csr_array(make_blocks(n_rows=20).X.astype(np.int32))
    before = X.copy()
    make_rival(3).fit(X)
    assert abs(X - before).sum() == 0


@pytest.mark.parametrize("kind", [*MIXTURES, DirichletMultinomialMixture], ids=[*MIXTURE_NAMES, "dirichlet"])
def test_never_lowers_what_it_maximises(kind, make_blocks):
    model = kind(4, n_init=2, random_state=0).fit(make_blocks(2, shortest=5, longest=30).X)
    assert len(model.history_) == model.n_iter_
    assert np.all(np.diff(model.history_) >= -1e-9 * abs(model.history_[-1]))


def test_takes_a_single_row(make_rival):
    if isinstance(make_rival(1), GMMLDA):
        pytest.skip("a covariance needs two rows; the refusal is tested in test_topic_space.py")
    assert make_rival(1).fit_predict([[3, 0, 2, 1]]).tolist() == [0]


def test_puts_all_rows_into_one_cluster_if_there_is_one(make_rival, make_blocks):
    assert set(make_rival(1).fit_predict(make_blocks(n_rows=12).X)) == {0}


def test_takes_as_many_clusters_as_rows(make_rival, make_blocks):
    labels = make_rival(6).fit_predict(make_blocks(n_rows=6).X)
    assert labels.shape == (6,)
    assert labels.max() < 6


def test_takes_identical_rows(make_rival):
    labels = make_rival(3).fit_predict(np.tile([4, 0, 3, 1], (8, 1)))
    assert labels.shape == (8,)


def test_is_indifferent_to_columns_without_counts(make_rival, make_blocks):
    X = make_blocks(n_rows=20).X
    wider = np.hstack([np.zeros((20, 2), dtype=int), X, np.zeros((20, 3), dtype=int)])
    labels, wider_labels = make_rival(3).fit_predict(X), make_rival(3).fit_predict(wider)
    assert adjusted_rand_score(labels, wider_labels) == 1.0


def test_takes_a_single_column(make_rival):
    assert make_rival(2).fit_predict([[1], [200], [3]]).shape == (3,)


def test_takes_huge_counts(make_rival, make_blocks):
    sample = make_blocks(n_rows=12)
    labels = make_rival(3).fit_predict(sample.X * 10**6)
    assert adjusted_rand_score(sample.labels, labels) == 1.0


def test_can_be_cloned_with_its_parameters(make_rival):
    model = make_rival(3)
    assert str(clone(model).get_params(deep=False)) == str(model.get_params(deep=False))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, -2], [1, 1]], r"X\[0, 1\] = -2"),
        ([[1, 0.5], [1, 1]], r"X\[0, 1\] = 0.5"),
        ([[1, 2], [0, 0]], r"1 empty row .*: 1\."),
    ],
)
def test_names_the_place_of_what_is_no_count(X, message, make_rival):
    with pytest.raises(CountsError, match=message):
        make_rival(1).fit(X)


def test_refuses_more_clusters_than_rows(make_rival):
    with pytest.raises(ValueError, match="n_clusters=3 clusters need as many rows, but n_samples = 2"):
        make_rival(3).fit([[1, 2], [2, 1]])


@pytest.mark.parametrize("wrong", [{"n_clusters": 0}, {"n_clusters": 2.5}, {"n_clusters": True}, {"n_init": 0}])
def test_refuses_wrong_parameters(wrong, make_rival):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=rf"{name} must be .*a whole number of at least 1, but it is {value}\."):
        make_rival(**{"n_clusters": 1, **wrong}).fit([[1, 2], [2, 1]])


def test_a_refusal_leaves_an_earlier_fit_as_it_was():
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
        (GMMLDA(1, 2, random_state=0), {}),  # of a single row
    ],
)
def test_rows_that_do_not_fit_the_parameters_leave_an_earlier_fit_as_it_was(model, wrong):
    model.fit([[9, 1, 0], [1, 0, 9], [8, 1, 0], [0, 1, 9]])
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match=r"library_sizes|conditions|at least 2 rows"):
        model.set_params(**wrong).fit([[1, 2, 3, 4]] if not wrong else [[1, 2, 3, 4], [2, 1, 0, 5]])
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("rival", baselines.__all__)
def test_has_five_starts_or_more_by_default(rival):
    assert getattr(baselines, rival)().n_init >= 5


@pytest.mark.parametrize("start", ["kmeans", "random"])
@pytest.mark.parametrize("kind", MIXTURES, ids=MIXTURE_NAMES)
def test_em_never_lowers_its_likelihood_on_hard_rows_of_unequal_totals(kind, start, make_blocks):
    X = make_blocks(n_clusters=4, shortest=3, longest=300).X
    history = kind(5, start=start, n_init=1, tol=0, max_iter=60, random_state=0).fit(X).history_
    assert np.all(np.diff(history) >= -1e-9 * abs(history[-1]))
    assert history[-1] > history[0] or start == "kmeans"  # which can be a maximum already
