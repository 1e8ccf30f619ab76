"""Choices between candidates, by agreement between two halves of the features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from mmpca import MMPCA
from mmpca.backend import LocalRows
from mmpca.counts import as_counts
from mmpca.model.choices import HalvesAgreement, best_source, draw_rows, is_hopeless, partition_agreement, sources_left
from mmpca.simulate import paper_design

PARTITIONS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60)


@given(PARTITIONS)
def test_agreement_is_that_of_scikit_learn_whatever_the_numbers_of_the_clusters(pairs):
    first, second = np.array(pairs, dtype=np.int32).T
    found, renumbered = partition_agreement(first, second), partition_agreement(4 - first, second)
    chance = expected_mutual_information(contingency_matrix(first, second, sparse=True), len(first))
    assert found.information == pytest.approx(mutual_info_score(first, second) - chance, abs=1e-9)
    has_room = chance < mutual_info_score(first, first) - 1e-9 or chance < mutual_info_score(second, second) - 1e-9
    expected = adjusted_mutual_info_score(first, second) if has_room else 0.0  # any two partitions agree as well
    assert found.share == pytest.approx(expected, abs=1e-6)
    assert found.ari == pytest.approx(adjusted_rand_score(first, second))
    np.testing.assert_allclose(renumbered, found, atol=1e-9)


def test_a_single_cluster_shares_no_information_although_it_is_always_found_again():
    one = np.zeros(30, dtype=np.int32)
    assert partition_agreement(one, one) == HalvesAgreement(0.0, 0.0, 0.0, 1.0)


def test_many_clusters_found_mostly_again_share_more_than_two_found_always():
    rng = np.random.default_rng(0)
    six = np.arange(600) % 6
    two, noisy = six // 3, np.where(rng.random(600) < 0.2, rng.integers(6, size=600), six)
    assert partition_agreement(six, noisy).ari < partition_agreement(two, two).ari
    assert partition_agreement(six, noisy).information > partition_agreement(two, two).information


def test_unrelated_partitions_share_nothing_up_to_their_error():
    rng = np.random.default_rng(1)
    found = [partition_agreement(*rng.integers(8, size=(2, 400))) for _ in range(200)]
    assert abs(np.mean([one.information for one in found])) < 0.01


def splits(*values, share=0.5):
    """Return the agreements of a source over splits, by the information that partitions share."""
    return [HalvesAgreement(value, 0.05, share, 0.5) for value in values]


def test_a_source_needs_a_lead_beyond_its_error_over_all_splits():
    lda = splits(1.0, 1.0, 1.0)
    assert best_source({"lda": lda, "mixture": splits(1.2, 1.1, 1.15)}) == "mixture"
    assert best_source({"lda": lda, "mixture": splits(1.2, 0.9, 0.95)}) == "lda"
    assert best_source({"lda": lda, "tfidf": splits(1.2, 1.1, 1.15, share=0.3)}) == "tfidf"
    assert best_source({"mixture": lda, "tfidf": splits(1.2, 1.1, 1.15, share=0.499)}) == "mixture"
    assert best_source({"mixture": lda, "tfidf": splits(1.2, 1.1, 1.15, share=0.6)}) == "tfidf"
    assert best_source({"mixture": lda, "tfidf": splits(1.2, 0.9, 0.95, share=0.6)}) == "mixture"
    assert is_hopeless(lda[0], splits(0.8)[0])
    assert not is_hopeless(lda[0], splits(0.9)[0])


def test_close_sources_without_topics_are_compared_on_further_splits():
    mixture, close = splits(1.0, 1.2, 1.1), splits(1.3, 1.1, 1.25, share=0.6)
    assert sources_left({"mixture": mixture[:2], "tfidf": close[:2]}) == ["mixture", "tfidf"]
    assert sources_left({"mixture": mixture, "tfidf": close}) == ["mixture", "tfidf"]
    assert sources_left({"mixture": mixture, "tfidf": splits(1.5, 1.7, 1.6, share=0.6)}) == ["tfidf"]
    assert sources_left({"mixture": mixture, "tfidf": splits(0.9, 1.1, 1.0)}) == ["mixture"]
    assert sources_left({"lda": splits(1.2, 1.2, 1.2), "mixture": mixture, "tfidf": close}) == ["lda"]


def test_a_close_choice_counts_the_splits_of_earlier_comparisons():
    close = {"mixture": splits(1.0, 1.2, 1.1), "tfidf": splits(1.1, 1.0, 1.15, share=0.6)}
    earlier = 2 * list(zip(splits(1.0, 1.0, 1.0), splits(1.3, 1.2, 1.3, share=0.6), strict=True))
    assert (best_source(close), sources_left(close, [])) == ("mixture", ["mixture", "tfidf"])
    assert sources_left(close) == ["mixture"]  # a single fit adds further splits only if "tfidf" leads
    assert (best_source(close, earlier), sources_left(close, earlier)) == ("tfidf", ["tfidf"])
    opposite = [(tfidf, mixture) for mixture, tfidf in earlier]
    assert (best_source(close, opposite), sources_left(close, opposite)) == ("mixture", ["mixture"])


@pytest.fixture(scope="module")
def short_rows():
    """Return short rows of clusters that share no topics; LDA does not find these clusters."""
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(200, 0.05), 12)
    X = np.array([rng.multinomial(20, profiles[q]) for q in rng.integers(12, size=600)])
    return LocalRows(as_counts(X[:, X.any(axis=0)]))


def test_a_fit_counts_earlier_comparisons_and_adds_its_own_unless_its_samples_are_smaller(short_rows):
    def source(compared):
        before = list(compared)
        model = MMPCA(12, 12, n_init=1, random_state=0).fit_rows(short_rows, attributes={}, compared=compared)
        assert compared == before
        return model.topics_source_

    worse, better = splits(1.0, 1.1, 1.0, 1.1), splits(1.3, 1.2, 1.2, 1.3, share=0.6)
    assert source(5 * list(zip(worse, better, strict=True))) == "tfidf"
    assert source(5 * list(zip(better, worse, strict=True))) == "mixture"


def test_a_sample_of_the_rows_is_drawn_for_each_split_unless_there_are_no_others():
    rows = as_counts(np.arange(1, 31).reshape(10, 3))
    few = draw_rows(LocalRows(rows), 4, np.random.default_rng(0))
    assert len({tuple(next(few).data) for _ in range(3)}) == 3
    every = draw_rows(LocalRows(rows), 10, np.random.default_rng(0))
    assert [tuple(next(every).data) for _ in range(3)] == 3 * [tuple(rows.data)]


@pytest.mark.parametrize(("balance", "noise", "seed"), [(1.0, 0.4, 1001), (1.0, 0.3, 1), (0.7, 0.4, 4), (0.7, 0.5, 2)])
def test_data_of_the_model_take_their_topics_from_lda_however_noisy_or_unbalanced(balance, noise, seed):
    X = paper_design(400, balance=balance, noise=noise, random_state=seed).X
    assert MMPCA(6, 4, n_init=1, random_state=seed).fit(X).topics_source_ == "lda"


@pytest.mark.parametrize("X", [np.eye(4, 5, dtype=int) + 1, np.ones((5, 3), dtype=int), np.arange(1, 13).reshape(6, 2)])
def test_too_few_rows_or_features_for_a_comparison_take_their_topics_from_lda(X):
    assert MMPCA(len(X), 2, random_state=0).fit(X).topics_source_ == "lda"
