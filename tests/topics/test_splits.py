"""Counts split into two: nothing is lost, and the score is the mean log-likelihood of what was held out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from mmpca.counts import as_counts
from mmpca.topics import held_out_score, split_counts, splits

COUNTS = st_numpy.arrays(
    np.int64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=st.sampled_from([0, 0, 1, 2, 30, 2**31 - 1])
)


@settings(max_examples=50, deadline=None)
@given(COUNTS, st.integers(0, 2**32 - 1))
def test_the_two_parts_add_up_to_the_whole_and_hold_no_zeros(X, seed):
    split = split_counts(as_counts(X, empty_rows="allow"), np.random.default_rng(seed))
    np.testing.assert_array_equal(sum(part.to_csr().toarray().astype(np.int64) for part in split), X)
    for part in split:
        assert (part.data > 0).all()
        assert (part.indptr.dtype, part.indices.dtype, part.data.dtype) == (np.int64, np.int32, np.int32)


def test_the_share_that_is_kept_is_as_asked_for():
    rows = as_counts(np.full((20, 50), 1000))
    for share in (0.5, 0.8):
        kept = split_counts(rows, np.random.default_rng(0), kept_share=share).kept
        assert kept.data.sum() / 1e6 == pytest.approx(share, abs=0.005)


def test_the_same_seed_splits_the_same_way():
    rows = as_counts(np.arange(1, 21).reshape(4, 5))
    first, again, other = (split_counts(rows, np.random.default_rng(seed)).kept.to_csr() for seed in (0, 0, 1))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


@pytest.fixture
def scored():
    """Return counts, shares and topics at random."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (9, 7))
    return X, rng.dirichlet(np.ones(3), 9), rng.dirichlet(np.ones(7), 3)


@pytest.mark.parametrize("chunk", [1, 10, 2**22])
def test_the_score_is_the_mean_log_likelihood_of_a_count(scored, monkeypatch, chunk):
    monkeypatch.setattr(splits, "_CHUNK", chunk)
    X, shares, beta = scored
    expected = (X * np.log(shares @ beta)).sum() / X.sum()
    assert held_out_score(as_counts(X, empty_rows="allow"), shares, beta) == pytest.approx(expected, rel=1e-12)


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
