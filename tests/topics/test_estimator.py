"""LDA as an estimator: what it promises about topics, shares and perplexity, and what it refuses."""

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


def test_the_topics_are_those_of_the_function(X, model):
    seed = np.random.RandomState(0).randint(2**31)
    fit = fit_lda(as_counts(X), 3, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(model.components_, fit.beta)


@pytest.mark.parametrize(
    "make", [lambda X: X.toarray(), sparse.csc_array, sparse.coo_matrix, lambda X: X.astype(float)]
)
def test_any_form_of_the_counts_gives_the_same_fit(X, model, make):
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


def test_a_callback_stops_the_fit_and_keeps_what_was_reached(X):
    stopped = LDA(3, random_state=0).fit(X, callback=lambda n_passes: n_passes >= 6)
    assert stopped.n_passes_ == 6
    assert not stopped.converged_
    np.testing.assert_allclose(stopped.transform(X).sum(axis=1), 1, rtol=1e-12)


def test_verbose_reports_the_prior_and_then_the_passes(X, caplog):
    with caplog.at_level(logging.INFO, logger="mmpca"):
        LDA(2, row_prior=1.0, n_init=1, max_passes=3, random_state=0).fit(X)
        assert not caplog.records
        LDA(2, row_prior=1.0, n_init=1, max_passes=3, random_state=0, verbose=2).fit(X)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "pass 3"
    assert messages[-1].startswith("row prior 1 of {1.0: -")


@pytest.mark.parametrize("counts", [[[3, 0, 1]], [[4], [2]], [[2, 1]] * 5, [[10**6, 3], [2, 10**6], [10**6, 1]]])
@pytest.mark.parametrize("n_topics", [1, 2])
def test_degenerate_data_are_fitted(counts, n_topics):
    model = LDA(n_topics, random_state=0).fit(counts)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(model.transform(counts).sum(axis=1), 1, rtol=1e-12)
    assert 1 <= model.perplexity(counts) <= len(counts[0]) * 1.01


# --- rows in topic space ----------------------------------------------------------------------------------------


def test_shares_are_the_rows_own_whatever_else_is_transformed(X, model):
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.transform(X[[7, 3]]), shares[[7, 3]])
    np.testing.assert_array_equal(LDA(3, random_state=0).fit_transform(X), shares)


def test_names_go_in_and_out(X):
    frame = pd.DataFrame(X.toarray(), columns=[f"word {v}" for v in range(40)])
    model = LDA(2, row_prior=1.0, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.transform(frame).columns) == ["lda0", "lda1"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[frame.columns[::-1]])


def test_it_works_in_a_pipeline(X, model):
    pipeline = make_pipeline(FunctionTransformer(accept_sparse=True), LDA(3, random_state=0)).fit(X)
    np.testing.assert_array_equal(pipeline.transform(X), model.transform(X))


# --- perplexity -------------------------------------------------------------------------------------------------


def test_perplexity_is_that_of_the_mixtures(X, model):
    profile = model.transform(X) @ model.components_  # (N, V)
    counts = X.toarray()
    log_likelihood = np.sum(counts[counts > 0] * np.log(profile[counts > 0])) / counts.sum()
    assert model.score(X) == pytest.approx(log_likelihood, rel=1e-10)
    assert model.perplexity(X) == pytest.approx(np.exp(-log_likelihood), rel=1e-10)


def test_counts_held_out_are_scored_under_the_shares_of_the_others(X, model):
    split = split_counts(as_counts(X), np.random.default_rng(0))
    kept, held_out = split.kept.to_csr(), split.held_out.to_csr()
    expected = held_out_score(split.held_out, model.transform(kept), model.components_)
    assert model.perplexity(kept, held_out) == pytest.approx(np.exp(-expected), rel=1e-10)
    assert model.perplexity(kept, held_out) > model.perplexity(kept)


def test_the_right_number_of_topics_predicts_better_than_too_few(X):
    split = split_counts(as_counts(X), np.random.default_rng(0))
    kept, held_out = split.kept.to_csr(), split.held_out.to_csr()
    one, three = (LDA(k, random_state=0).fit(kept).perplexity(kept, held_out) for k in (1, 3))
    assert three < 0.9 * one


def test_features_that_never_occurred_are_passed_over(X, model):
    absent = int(np.flatnonzero(X.sum(axis=0) == 0)[0]) if (X.sum(axis=0) == 0).any() else None
    counts = X.toarray()
    if absent is None:
        absent, counts = 5, counts.copy()
        counts[:, 5] = 0
        counts[counts.sum(axis=1) == 0, 0] = 1
        model = LDA(3, random_state=0).fit(counts)
    more = counts.copy()
    more[:, absent] = 3
    np.testing.assert_array_equal(model.transform(more), model.transform(counts))
    assert model.perplexity(more) == pytest.approx(model.perplexity(counts), rel=1e-12)


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("n_topics", 0, r"n_topics must be a whole number of at least 1, but it is 0\."),
        ("n_topics", 2.0, r"n_topics must be a whole number of at least 1, but it is 2\.0\."),
        ("n_topics", True, r"n_topics must be a whole number of at least 1, but it is True\."),
        ("row_prior", "best", r"row_prior must be \"auto\" or a number from 1e-6 to 1e8, but it is 'best'\."),
        ("row_prior", 0.0, r"row_prior must be \"auto\" or a number from 1e-6 to 1e8, but it is 0\.0\."),
        ("smoothing", -1.0, r"smoothing must be a number from 1e-6 to 1e8, but it is -1\.0\."),
        ("smoothing", np.nan, r"smoothing must be a number from 1e-6 to 1e8, but it is nan\."),
        ("n_init", 0, r'n_init must be "auto" or a whole number of at least 1, but it is 0\.'),
        ("max_passes", 0, r"max_passes must be a whole number of at least 1, but it is 0\."),
        ("tol", -0.1, r"tol must be a number from 0 to 1, but it is -0\.1\."),
        ("n_jobs", 0, r"n_jobs must be None or a whole number but 0, but it is 0\."),
        ("verbose", -1, r"verbose must be a whole number of at least 0, but it is -1\."),
    ],
)
def test_a_wrong_parameter_is_named_with_what_was_expected(X, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        LDA().set_params(**{parameter: value}).fit(X)


def test_what_is_no_count_is_refused_and_leaves_the_model_as_it_was(X, model):
    before, fitted = dict(vars(model)), clone(model).fit(X)
    with pytest.raises(CountsError, match=r"X\[1, 2\] = -1"):
        fitted.fit([[1, 2, 0], [0, 1, -1]])
    with pytest.raises(CountsError, match=r"X has 1 empty row \(n_samples = 2, n_features = 3\): 1\."):
        fitted.fit([[1, 2, 0], [0, 0, 0]])
    assert vars(fitted).keys() == before.keys()
    assert_same_fit(fitted, model)


def test_held_out_counts_of_other_rows_are_refused(X, model):
    with pytest.raises(
        ValueError, match=r"held_out must hold other counts of the 120 rows of X, but it has 119 rows\."
    ):
        model.perplexity(X, X[1:])


@pytest.mark.parametrize("method", ["transform", "perplexity", "score"])
def test_nothing_works_before_fitting(X, method):
    with pytest.raises(NotFittedError):
        getattr(LDA(), method)(X)
