"""Topics that start from the main directions of all rows."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import svds

from mmpca.backend import SERIAL, LocalRows, open_threads
from mmpca.counts import as_counts
from mmpca.monitor import Monitor
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import Budget, fit_lda, kernels, lda, spectral

N_TOPICS = 6
BUDGET = Budget(search_work=1, search_cover=2, final_work=N_TOPICS * 5_000)  # 160 rows choose the prior


@pytest.fixture(scope="module")
def data():
    """Return many short rows of many features: each feature occurs in few of them."""
    rng = np.random.default_rng(0)
    topics = sparse_topics(N_TOPICS, 1500, 0.1, random_state=0)
    return simulate_mmpca(
        4000, topics=topics, cluster_topics=rng.dirichlet(np.full(N_TOPICS, 0.2), 8), lengths=25, noise=0.1,
        random_state=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows(data):
    return as_counts(data.X)


@pytest.fixture(scope="module")
def topicless():
    """Return rows without any topics."""
    return as_counts(np.random.default_rng(0).poisson(0.3, (600, 400)))


def fit(rows, n_topics=N_TOPICS, **options):
    return fit_lda(rows, n_topics, rng=np.random.default_rng(0), **options)


def overlap(topics, others):
    """Return the mean probability that topics share, in their best matching."""
    shared = np.minimum(topics[:, None], others[None]).sum(axis=2)
    return shared[linear_sum_assignment(-shared)].mean()


def directions_of(rows):
    totals = rows.column_totals().astype(float)
    every, rng = np.arange(rows.n_rows), np.random.default_rng(0)
    return spectral.main_directions(LocalRows(rows), every, totals, N_TOPICS, rng, Monitor())


# --- directions -------------------------------------------------------------------------------------------------


def test_directions_are_the_leading_singular_vectors(rows):
    X, totals = rows.to_csr(), rows.column_totals()
    weight = np.where(totals > 0, 1 / np.sqrt(totals + totals[totals > 0].mean()), 0.0)
    weighted = X.multiply(1 / np.sqrt(rows.row_totals())[:, None]).multiply(weight).tocsr()
    vectors = svds(weighted, k=4, random_state=0)[2][::-1][1:].T
    found = directions_of(rows)[totals > 0] / weight[totals > 0, None]  # columns of length one
    cosines = np.linalg.svd(found.T @ vectors[totals > 0], compute_uv=False)
    assert cosines.min() > 0.99


def test_rows_are_close_to_the_center_of_their_cluster(data, rows):
    points = np.empty((rows.n_rows, N_TOPICS - 1))
    kernels.project(rows, np.arange(rows.n_rows), directions_of(rows), points)
    centers = np.stack([points[data.labels == q].mean(axis=0) for q in range(8)])
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == data.labels).mean() > 0.8


def test_sums_do_not_depend_on_the_division_of_the_rows(rows):
    every, basis = np.arange(rows.n_rows), np.random.default_rng(0).standard_normal((rows.n_features, 3))
    centers, scale = np.random.default_rng(1).standard_normal((4, 3)) / 10, 2.0**20
    some = np.random.default_rng(0).permutation(rows.n_rows)[:1500]
    others = np.setdiff1d(every, some)
    with open_threads(2) as threads:
        products = [spectral.products(rows, every, basis, scale, Monitor(), backend) for backend in (SERIAL, threads)]
        sums = [spectral.nearest_sums(rows, every, basis, centers, backend) for backend in (SERIAL, threads)]
    products += [sum(spectral.products(rows, part, basis, scale, Monitor(), SERIAL) for part in (some, others))]
    sums += [sum(spectral.nearest_sums(rows, part, basis, centers, SERIAL) for part in (some, others))]
    for found in products[1:]:
        np.testing.assert_array_equal(found, products[0])
    for found in sums[1:]:
        np.testing.assert_array_equal(found, sums[0])
    np.testing.assert_array_equal(sums[0].sum(axis=1), rows.column_totals())


# --- topics -----------------------------------------------------------------------------------------------------


def test_all_rows_show_topics_that_a_sample_does_not(data, rows):
    found = fit(rows, budget=BUDGET).beta
    sampled = fit(rows.take(slice(0, 200)), row_prior=0.1).beta
    assert overlap(found, data.topics) > overlap(sampled, data.topics) + 0.15
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_prior_is_judged_on_rows_that_the_topics_have_not_seen(rows, monkeypatch):
    seen, scored = [], []
    grouped_counts, scores_of_topics = lda.grouped_counts, lda.scores_of_topics
    monkeypatch.setattr(
        lda, "grouped_counts", lambda backend, among, *rest: seen.append(among) or grouped_counts(backend, among, *rest)
    )
    monkeypatch.setattr(
        lda, "scores_of_topics", lambda sample, *rest: scored.append(sample) or scores_of_topics(sample, *rest)
    )
    fit(rows, budget=BUDGET)
    others = np.setdiff1d(np.arange(rows.n_rows), seen[0])
    np.testing.assert_array_equal(scored[0].indices, rows.take(others).indices)


@pytest.mark.parametrize(
    ("scores", "least", "most"), [((5, 1, 4), 0, 0), ((5, 1, 6, 2), 9, 12), ((5, 1, 6, 7), 60, 80)]
)  # of the groups, of the frequencies, after a few passes over a sample and after all of them
def test_passes_over_a_sample_continue_while_they_predict_better(rows, monkeypatch, scores, least, most):
    given = iter(scores)
    monkeypatch.setattr(lda, "scores_of_topics", lambda rows, beta, grid, *_: dict.fromkeys(grid, float(next(given))))
    found = fit(rows, tol=0.0, budget=BUDGET._replace(final_effort=1))
    assert least <= found.n_passes <= most
    assert found.score == max(scores)
    assert next(given, None) is None


def reports_of(rows, **options):
    """Return the progress of a fit by text, the last report of each, and the result."""
    last = {}
    monitor = Monitor(lambda progress: last.update({progress.text: progress}))
    return last, fit(rows, monitor=monitor, **options)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_pass_over_large_data_is_reported_to_its_end(rows, n_threads):
    budget = BUDGET._replace(final_effort=1)
    with open_threads(n_threads) as threads:
        last, found = reports_of(LocalRows(rows, threads), budget=budget)
    directions, groups, prior, sample, refining = last.values()
    assert {progress.stage for progress in last.values()} == {"topics"}
    assert directions.share == refining.share == 1
    assert groups.share is prior.share is None
    assert sample.n_done >= lda.TRIAL_PASSES
    np.testing.assert_array_equal(found.beta, fit(rows, budget=budget).beta)


def test_rows_without_main_directions_are_fitted_from_a_sample(topicless):
    budget = Budget(search_work=1, search_cover=40, final_work=N_TOPICS * 20_000)
    last, found = reports_of(topicless, budget=budget, row_prior=0.1, n_init=1)
    *_, sample, refining = last.values()
    assert len(last) == 5  # no groups of rows were used: the prior was chosen on a sample
    assert refining.n_steps == lda.REFINING_PASSES * topicless.n_rows
    assert refining.share == 1
    assert sample.n_done > 0
    assert found.n_passes > sample.n_done


def test_a_stop_keeps_distributions(rows):
    monitor = Monitor(lambda progress: True)
    stopped = fit(rows, budget=BUDGET, monitor=monitor)
    np.testing.assert_allclose(stopped.beta.sum(axis=1), 1.0)
    assert stopped.n_passes == 0
