"""Numbers of topics by held-out features."""

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.selection import held_out
from mmpca.selection.held_out import HeldOut


@pytest.fixture(scope="module")
def folds(data):
    return held_out.make_folds(as_counts(data.X), 5, np.random.default_rng(0))


def result(*by_row, fold=None):
    fold = np.zeros(len(by_row), dtype=int) if fold is None else np.array(fold)
    return HeldOut(np.array(by_row, dtype=float), 10, 1.0, 0.05, 1.0, fold)


def test_every_row_and_feature_is_held_out_once(data, folds):
    assert sum(fold.known[0].n_rows for fold in folds) == data.X.shape[0]
    assert sum(half.data.sum() for fold in folds for half in fold.known) == data.X.sum()
    for fold in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate(fold.halves)), np.arange(data.X.shape[1]))
        assert fold.fitted.n_rows + fold.known[0].n_rows == data.X.shape[0]


def test_one_topic_predicts_by_the_frequencies_within_each_half(data, folds):
    profile = np.random.default_rng(1).dirichlet(np.ones(data.X.shape[1]))
    found = held_out.predict_halves(folds[0], profile[:, None], 1.0)
    expected = np.zeros(len(found))
    for half, known in zip(folds[0].halves, folds[0].known, strict=True):
        expected += known.to_csr() @ np.log(profile[half] / profile[half].sum())
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_true_topics_predict_better_than_one(data, folds):
    true = held_out.predict_halves(folds[0], np.ascontiguousarray(data.topics.T) + 1e-9, 1.0)
    one = held_out.predict_halves(folds[0], data.topics.mean(axis=0)[:, None] + 1e-9, 1.0)
    assert true.sum() > one.sum()


def test_rows_are_scored_under_the_prior_that_other_rows_prefer():
    by_prior = {1.0: np.array([0.0, -9.0, 0.0, -9.0]), 3.0: np.array([-5.0, 0.0, -5.0, 0.0])}
    np.testing.assert_array_equal(held_out.cross_fitted(by_prior), [-5.0, -9.0, -5.0, -9.0])


def test_the_smallest_number_within_one_standard_error_is_chosen():
    tried = {1: result(-9, -9, -9, -9), 2: result(-2, 0, 0, -2), 3: result(0, -1, -1, 0)}
    assert held_out.losses(tried)[3] == (0.0, 0.0)
    assert held_out.losses(tried)[2][0] == 2.0
    assert held_out.simplest(tried) == 2


def test_a_fold_with_unlucky_topics_is_no_evidence_for_more_topics():
    rows = [0.0, 0.1, -5.0, -5.1, 0.0, 0.1]
    for fold, chosen in (([0] * 6, 3), ([0, 0, 1, 1, 2, 2], 2)):
        tried = {2: result(*rows, fold=fold), 3: result(*np.zeros(6), fold=fold)}
        assert held_out.losses(tried)[2][0] == pytest.approx(9.9)
        assert held_out.simplest(tried) == chosen


def test_numbers_start_at_one_and_end_when_larger_ones_are_not_clearly_better():
    tried = {}
    for k in held_out.numbers_to_try(tried, 100):
        tried[k] = result(*(-abs(k - 12) * np.array([1.0, 1.1])))
    assert list(tried) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18]
    assert held_out.simplest(tried) == 12


def test_there_are_never_more_topics_than_features():
    tried = {}
    for k in held_out.numbers_to_try(tried, 3):
        tried[k] = result(float(k), float(k))
    assert list(tried) == [1, 2, 3]
