"""The LDA estimator: topics, shares, perplexity, and errors."""

import logging

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mmpca.counts import as_counts
from mmpca.errors import CountsError
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import LDA, fit_lda, held_out_score, split_counts

FITTED = ("components_", "row_prior_", "prior_scores_", "n_passes_", "converged_", "n_features_in_")


@pytest.fixture(scope="module")
def X():
    topics = sparse_topics(3, 40, 0.1, random_state=1)
    shares = np.random.default_rng(1).dirichlet(np.full(3, 0.5), size=30)
    return simulate_mmpca(120, topics=topics, cluster_topics=shares, lengths=100, random_state=1).X


@pytest.fixture(scope="module")
def model(X):
    return LDA(3, random_state=0).fit(X)


def assert_same_fit(one, other):
    for name in FITTED:
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)


# --- fitting ----------------------------------------------------------------------------------------------------


def test_topics_are_distributions_and_the_prior_is_the_best_scored(X, model):
    assert model.components_.shape == (3, 40)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal((model.components_ > 0).all(axis=0), X.sum(axis=0) > 0)
    assert model.row_prior_ == max(model.prior_scores_, key=model.prior_scores_.__getitem__)
    assert model.converged_
    assert model.n_features_in_ == 40


def test_the_topics_are_those_of_fit_lda(X, model):
    seed = np.random.RandomState(0).randint(2**31)
    fit = fit_lda(as_counts(X), 3, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(model.components_, fit.beta)


@pytest.mark.parametrize(
    "make", [lambda X: X.toarray(), sparse.csc_array, sparse.coo_matrix, lambda X: X.astype(float)]
)
def test_any_matrix_type_gives_the_same_fit(X, model, make):
    assert_same_fit(LDA(3, random_state=0).fit(make(X)), model)


def test_the_fit_does_not_depend_on_threads(X, model):
    assert_same_fit(LDA(3, random_state=0, n_jobs=2).fit(X), model)
    other = clone(model).set_params(n_jobs=3)
    np.testing.assert_array_equal(other.fit(X).transform(X), model.transform(X))


def test_parameters_reach_the_fit(X):
    given = LDA(3, row_prior=2, smoothing=5.0, n_init=1, max_passes=6, tol=0.0, random_state=0).fit(X)
    assert given.row_prior_ == 2.0
    assert list(given.prior_scores_) == [2.0]
    assert not given.converged_
    assert given.n_passes_ <= 16
    sharp = LDA(3, row_prior=2, smoothing=0.01, random_state=0).fit(X)
    assert given.components_[:, X.sum(axis=0) > 0].min() > 10 * sharp.components_[:, X.sum(axis=0) > 0].min()


def test_a_callback_receives_the_progress_and_stops_the_fit(X):
    reports = []
    stopped = LDA(3, random_state=0).fit(X, callback=lambda progress: reports.append(progress) or progress.n_done >= 6)
    assert stopped.n_passes_ == 6
    assert [progress.n_done for progress in reports[:3]] == [0, 3, 6]
    assert {progress.stage for progress in reports} == {"topics", "done"}
    assert not stopped.converged_
    np.testing.assert_allclose(stopped.transform(X).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(("verbose", "least", "most"), [(0, 0, 0), (1, 1, 1), (2, 3, 10)])
def test_verbose_logs_the_prior_and_then_the_passes(X, caplog, verbose, least, most):
    with caplog.at_level(logging.INFO, logger="mmpca"):
        LDA(2, row_prior=1.0, n_init=1, max_passes=3, random_state=0, verbose=verbose).fit(X)
    assert least <= len(caplog.records) <= most


@pytest.mark.parametrize("counts", [[[3, 0, 1]], [[4], [2]], [[2, 1]] * 5, [[10**6, 3], [2, 10**6], [10**6, 1]]])
@pytest.mark.parametrize("n_topics", [1, 2])
def test_degenerate_data_are_fitted(counts, n_topics):
    model = LDA(n_topics, random_state=0).fit(counts)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(model.transform(counts).sum(axis=1), 1, rtol=1e-12)
    assert 1 <= model.perplexity(counts) <= len(counts[0]) * 1.01


# --- rows in topic space ----------------------------------------------------------------------------------------


def test_shares_of_a_row_do_not_depend_on_other_rows(X, model):
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.transform(X[[7, 3]]), shares[[7, 3]])
    np.testing.assert_array_equal(LDA(3, random_state=0).fit_transform(X), shares)


def test_feature_names_go_in_and_out(X):
    frame = pd.DataFrame(X.toarray(), columns=[f"word {v}" for v in range(40)])
    model = LDA(2, row_prior=1.0, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.transform(frame).columns) == ["lda0", "lda1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


def test_it_works_in_a_pipeline(X, model):
    pipeline = make_pipeline(FunctionTransformer(accept_sparse=True), LDA(3, random_state=0)).fit(X)
    np.testing.assert_array_equal(pipeline.transform(X), model.transform(X))


# --- perplexity -------------------------------------------------------------------------------------------------


def test_perplexity_is_that_of_the_mixtures(X, model):
    profile = model.transform(X) @ model.components_  # (N, V)
    counts = X.toarray()
    log_likelihood = np.sum(counts[counts > 0] * np.log(profile[counts > 0])) / counts.sum()
    log_likelihood += np.log(1 - 1 / (counts.sum() + 1))  # some features never occur
    assert model.score(X) == pytest.approx(log_likelihood, rel=1e-10)
    assert model.perplexity(X) == pytest.approx(np.exp(-log_likelihood), rel=1e-10)


def test_held_out_counts_are_scored_under_the_shares_of_the_kept_ones(X, model):
    split = split_counts(as_counts(X), np.random.default_rng(0))
    kept, held_out = split.kept.to_csr(), split.held_out.to_csr()
    expected = held_out_score(split.held_out, model.transform(kept), model.components_)
    expected += np.log(1 - 1 / (X.sum() + 1))  # some features never occur
    assert model.perplexity(kept, held_out) == pytest.approx(np.exp(-expected), rel=1e-10)
    assert model.perplexity(kept, held_out) > model.perplexity(kept)


def test_the_right_number_of_topics_predicts_better_than_too_few(X):
    split = split_counts(as_counts(X), np.random.default_rng(0))
    kept, held_out = split.kept.to_csr(), split.held_out.to_csr()
    one, three = (LDA(k, random_state=0).fit(kept).perplexity(kept, held_out) for k in (1, 3))
    assert three < 0.9 * one


def test_features_that_never_occurred_in_fitting_are_improbable_and_leave_the_shares_unchanged(X, model):
    (absent,) = np.flatnonzero(X.sum(axis=0) == 0)[:1]
    n_absent, n_counts = int((X.sum(axis=0) == 0).sum()), int(X.sum())
    counts = X.toarray()
    more = counts.copy()
    more[:, absent] = 3
    np.testing.assert_array_equal(model.transform(more), model.transform(counts))
    only = more - counts
    assert model.score(only) == pytest.approx(-np.log((n_counts + 1) * n_absent), rel=1e-12)
    together = n_counts * model.score(counts) + only.sum() * model.score(only)
    assert model.score(more) == pytest.approx(together / more.sum(), rel=1e-12)


def test_fewer_rows_do_not_predict_better_because_they_have_seen_fewer_features(X):
    few, many = (LDA(2, row_prior=1.0, random_state=0).fit(X[:n]) for n in (3, 60))
    assert (few.components_.sum(axis=0) > 0).sum() < (many.components_.sum(axis=0) > 0).sum()
    assert few.score(X[60:]) < many.score(X[60:])


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_topics", 0),
        ("n_topics", 2.0),
        ("n_topics", True),
        ("row_prior", "best"),
        ("row_prior", 0.0),
        ("smoothing", -1.0),
        ("smoothing", np.nan),
        ("n_init", 0),
        ("max_passes", 0),
        ("tol", -0.1),
        ("n_jobs", 0),
        ("verbose", -1),
    ],
)
def test_an_invalid_parameter_is_named(X, parameter, value):
    with pytest.raises(ValueError, match=f"^{parameter} "):
        LDA().set_params(**{parameter: value}).fit(X)


@pytest.mark.parametrize(
    ("counts", "row", "column"), [([[1, 2, 0], [0, 1, -1]], 1, 2), ([[1, 2, 0], [0, 0, 0]], 1, None)]
)
def test_invalid_counts_are_located_and_leave_the_model_unchanged(X, model, counts, row, column):
    fitted = clone(model).fit(X)
    with pytest.raises(CountsError) as error:
        fitted.fit(counts)
    assert (error.value.row, error.value.column) == (row, column)
    assert vars(fitted).keys() == vars(model).keys()
    assert_same_fit(fitted, model)


def test_held_out_counts_of_other_rows_are_an_error(X, model):
    with pytest.raises(ValueError, match="119"):
        model.perplexity(X, X[1:])


@pytest.mark.parametrize("method", ["transform", "perplexity", "score"])
def test_methods_need_a_fitted_model(X, method):
    with pytest.raises(NotFittedError):
        getattr(LDA(), method)(X)
