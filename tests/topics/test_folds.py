"""Counts predicted from the other folds."""

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics import folds, held_out_score
from mmpca.topics.em import SMOOTHING, Problem, Runner, random_mixture
from mmpca.topics.folds import fold_counts, predicted_rows
from mmpca.topics.prior import GRID, SEARCH
from mmpca.topics.splits import held_out_rows


@pytest.fixture(scope="module")
def rows():
    """Return 120 rows of 100 counts that mix three topics."""
    topics = sparse_topics(3, 40, 0.3, random_state=1)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    return as_counts(simulate_mmpca(120, topics=topics, cluster_topics=shares, lengths=100, random_state=1).X)


def predicted(rows, n_topics, *, folds_seed=1, starts_seed=2, n_folds=5, row_prior=3.0):
    return predicted_rows(
        rows,
        n_topics,
        row_prior,
        n_folds=n_folds,
        folds_rng=np.random.default_rng(folds_seed),
        starts_rng=np.random.default_rng(starts_seed),
    )


def test_every_count_is_held_out_once_and_kept_otherwise(rows):
    whole = rows.to_csr().toarray()
    parts = list(fold_counts(rows, 4, np.random.default_rng(0)))
    assert len(parts) == 4
    for part in parts:
        np.testing.assert_array_equal((part.kept.to_csr() + part.held_out.to_csr()).toarray(), whole)
    np.testing.assert_array_equal(sum(part.held_out.to_csr() for part in parts).toarray(), whole)


def test_folds_are_equally_large_but_for_chance():
    counts = as_counts(np.full((50, 20), 40))
    sizes = [part.held_out.data.sum() for part in fold_counts(counts, 5, np.random.default_rng(0))]
    np.testing.assert_allclose(sizes, 8000, atol=5 * np.sqrt(40_000 * 0.2 * 0.8))


def test_rows_sum_to_the_score_of_all_counts(rows):
    split = next(fold_counts(rows, 5, np.random.default_rng(0)))
    rng = np.random.default_rng(3)
    shares, beta = rng.dirichlet(np.ones(3), rows.n_rows), rng.dirichlet(np.ones(rows.n_features), 3)
    by_row = held_out_rows(split.held_out, shares, beta)
    X = split.held_out.to_csr().toarray()
    np.testing.assert_allclose(by_row, (X * np.log(shares @ beta)).sum(axis=1), rtol=1e-12)
    assert held_out_score(split.held_out, shares, beta) == pytest.approx(by_row.sum() / X.sum(), rel=1e-12)


def test_one_topic_predicts_with_the_smoothed_frequencies_of_the_other_folds(rows):
    expected, smoothings = np.zeros(rows.n_rows), []
    for split in fold_counts(rows, 5, np.random.default_rng(1)):
        totals, held_out = split.kept.column_totals(), split.held_out.to_csr()

        def by_row(smoothing, totals=totals, held_out=held_out):
            beta = totals + smoothing
            return held_out @ np.log(beta / beta.sum())

        if not smoothings:  # up the grid while the first fold is predicted better
            smoothings = list(folds.SMOOTHINGS[:1])
            for smoothing in folds.SMOOTHINGS[1:]:
                if by_row(smoothing).sum() <= by_row(smoothings[-1]).sum():
                    break
                smoothings.append(smoothing)
        expected += by_row(smoothings[-1])
    np.testing.assert_allclose(predicted(rows, 1), expected, rtol=1e-9)


def test_the_true_number_of_topics_predicts_best(rows):
    totals = {k: predicted(rows, k).sum() for k in range(1, 7)}
    assert max(totals, key=totals.get) == 3


def test_few_counts_do_not_ask_for_more_and_more_topics():
    few = as_counts(paper_design(n_samples=40, length=120, random_state=5).X)
    by_topics = {k: predicted(few, k, row_prior=30.0) for k in (4, 8)}
    assert by_topics[8].sum() < by_topics[4].sum()

    def with_fixed_priors(n_topics):
        rng, total = np.random.default_rng(2), 0.0
        for split in fold_counts(few, 5, np.random.default_rng(1)):
            problem = Problem(split.kept, few.column_totals() > 0, 30.0, SMOOTHING)
            mixture = Runner()(problem, random_mixture(problem, n_topics, rng), SEARCH).mixture
            total += held_out_rows(split.held_out, mixture.theta, mixture.beta_rows.T).sum()
        return total

    assert with_fixed_priors(8) > with_fixed_priors(4)  # why the smoothing is chosen, too


def test_the_same_seeds_predict_the_same_and_other_starts_nearly(rows):
    np.testing.assert_array_equal(predicted(rows, 3), predicted(rows, 3))
    assert predicted(rows, 3, starts_seed=9).sum() == pytest.approx(predicted(rows, 3).sum(), rel=2e-3)


def test_the_fit_does_not_see_what_it_predicts():
    lonely = as_counts(np.eye(40, dtype=int))  # a feature for each row: nothing of it is left once it is held out
    assert (predicted(lonely, 3) <= np.log(1 / 40) + 1e-9).all()


def test_neighbours_stay_on_the_grids():
    problem = Problem(None, None, GRID[-1], folds.SMOOTHINGS[0])
    assert [(x.row_prior, x.smoothing) for x in folds._neighbours(problem)] == [
        (GRID[-1], folds.SMOOTHINGS[1]),
        (GRID[-2], folds.SMOOTHINGS[0]),
    ]
