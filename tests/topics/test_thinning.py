"""Thinning loses no count, and the score is the mean log-likelihood of held-out counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from mmpca.counts import as_counts
from mmpca.topics import count_folds, held_out_score, known_counts, split_counts
from mmpca.topics.thinning import held_out_rows

COUNTS = st_numpy.arrays(
    np.int64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=st.sampled_from([0, 0, 1, 2, 30, 2**31 - 1])
)


def dense(rows):
    return rows.to_csr().toarray().astype(np.int64)


@settings(max_examples=50, deadline=None)
@given(COUNTS, st.integers(0, 2**32 - 1))
def test_both_parts_of_a_split_add_up_to_all_counts_and_hold_no_zeros(X, seed):
    split = split_counts(as_counts(X, empty_rows="allow"), np.random.default_rng(seed))
    np.testing.assert_array_equal(sum(map(dense, split)), X)
    for part in split:
        assert (part.data > 0).all()
        assert (part.indptr.dtype, part.indices.dtype, part.data.dtype) == (np.int64, np.int32, np.int32)


@settings(max_examples=30, deadline=None)
@given(COUNTS, st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_every_count_is_held_out_in_one_fold_and_kept_in_the_others(X, n_folds, seed):
    folds = list(count_folds(as_counts(X, empty_rows="allow"), n_folds, np.random.default_rng(seed)))
    assert len(folds) == n_folds
    for fold in folds:
        np.testing.assert_array_equal(dense(fold.kept) + dense(fold.held_out), X)
    np.testing.assert_array_equal(sum(dense(fold.held_out) for fold in folds), X)


def test_the_kept_share_is_as_requested():
    rows = as_counts(np.full((20, 50), 1000))
    for share in (0.5, 0.8):
        kept = split_counts(rows, np.random.default_rng(0), kept_share=share).kept
        assert kept.data.sum() / 1e6 == pytest.approx(share, abs=0.005)


def test_folds_have_equal_expected_sizes():
    counts = as_counts(np.full((50, 20), 40))
    sizes = [fold.held_out.data.sum() for fold in count_folds(counts, 5, np.random.default_rng(0))]
    np.testing.assert_allclose(sizes, 8000, atol=5 * np.sqrt(40_000 * 0.2 * 0.8))


def test_the_same_seed_splits_the_same_way():
    rows = as_counts(np.arange(1, 21).reshape(4, 5))
    first, again, other = (split_counts(rows, np.random.default_rng(seed)).kept.to_csr() for seed in (0, 0, 1))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


def test_known_counts_are_those_with_positive_probability():
    rows = as_counts([[1, 2, 0], [0, 3, 0], [4, 0, 5]])
    known = known_counts(rows, np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]))
    np.testing.assert_array_equal(dense(known), [[1, 0, 0], [0, 0, 0], [4, 0, 5]])


@pytest.fixture
def scored():
    """Return counts, shares and topics at random."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (9, 7))
    return X, rng.dirichlet(np.ones(3), 9), rng.dirichlet(np.ones(7), 3)


@pytest.mark.parametrize("chunk", [1, 10, 2**22])
def test_the_score_is_the_mean_log_likelihood_of_a_count(scored, chunk):
    X, shares, beta = scored
    rows = as_counts(X, empty_rows="allow")
    expected = (X * np.log(shares @ beta)).sum(axis=1)
    np.testing.assert_allclose(held_out_rows(rows, shares, beta, chunk=chunk), expected, rtol=1e-12)
    assert held_out_score(rows, shares, beta) == pytest.approx(expected.sum() / X.sum(), rel=1e-12)


def test_true_shares_and_topics_score_higher_than_others(scored):
    _, shares, beta = scored
    X = np.random.default_rng(1).multinomial(1000, shares @ beta)
    score = held_out_score(as_counts(X), shares, beta)
    assert score > held_out_score(as_counts(X), shares[::-1], beta) + 0.01
    assert score > held_out_score(as_counts(X), shares, beta[[1, 2, 0]]) + 0.01


def test_an_impossible_count_scores_minus_infinity_and_no_counts_score_zero(scored):
    X, shares, beta = scored
    beta = beta.copy()
    beta[:, 2] = 0
    assert held_out_score(as_counts(X, empty_rows="allow"), shares, beta) == -np.inf
    assert held_out_score(as_counts(np.zeros_like(X), empty_rows="allow"), shares, beta) == 0
