"""Topics from the main directions of all rows."""

import re

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mmpca import kernels, places
from mmpca.counts import as_counts
from mmpca.places import Here, in_threads, one_thread
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.stages import QUIET, Stages
from mmpca.topics import em, fit_lda, lda, spectral
from mmpca.topics.lda import expected_topics

N_TOPICS = 6


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


def overlap(topics, others):
    """Return the mean probability that topics share, matched as well as can be."""
    shared = np.minimum(topics[:, None], others[None]).sum(axis=2)
    return shared[linear_sum_assignment(-shared)].mean()


def matched(labels, truth):
    table = np.zeros((labels.max() + 1, truth.max() + 1))
    np.add.at(table, (labels, truth), 1)
    return table[linear_sum_assignment(-table)].sum() / len(labels)


# --- kernels ----------------------------------------------------------------------------------------------------


def test_products_are_those_of_the_matrices(rows):
    basis = np.random.default_rng(0).standard_normal((rows.n_features, 3))
    X, scale = rows.to_csr().toarray().astype(float), 2.0**20
    means = X @ basis / X.sum(axis=1, keepdims=True)
    found = spectral.products(rows, np.arange(rows.n_rows), basis, scale, QUIET, one_thread)
    np.testing.assert_array_equal(found, X.T @ np.floor(means * scale + 0.5))
    points = np.empty((5, 3))
    kernels.project(rows, np.arange(10, 15), basis, points)
    np.testing.assert_allclose(points, means[10:15])


def test_rows_count_for_the_nearest_centre(rows):
    basis, centres = np.random.default_rng(0).standard_normal((rows.n_features, 2)), np.array([[0.0, 0.1], [0.1, -0.1]])
    X = rows.to_csr().toarray().astype(float)
    means = X @ basis / X.sum(axis=1, keepdims=True)
    nearest = ((means[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    found = spectral.nearest_sums(rows, np.arange(rows.n_rows), basis, centres, one_thread)
    np.testing.assert_array_equal(found[:, :2], np.stack([X[nearest == k].sum(axis=0) for k in range(2)], axis=1))


# --- directions and topics --------------------------------------------------------------------------------------


def test_directions_are_the_leading_singular_vectors(rows):
    X = rows.to_csr().toarray().astype(float)
    totals = X.sum(axis=0)
    weight = np.where(totals > 0, 1 / np.sqrt(totals + totals[totals > 0].mean()), 0.0)
    vectors = np.linalg.svd(X / np.sqrt(X.sum(axis=1, keepdims=True)) * weight, full_matrices=False)[2][1:4].T
    found = spectral.main_directions(Here(rows), np.arange(rows.n_rows), totals, N_TOPICS, np.random.default_rng(0))
    found = found[totals > 0] / weight[totals > 0, None]  # columns of length one
    cosines = np.linalg.svd(found.T @ vectors[totals > 0], compute_uv=False)
    assert cosines.min() > 0.99


def test_rows_are_grouped_as_their_clusters_are(data, rows):
    totals = rows.column_totals().astype(float)
    rng = np.random.default_rng(0)
    directions = spectral.main_directions(Here(rows), np.arange(rows.n_rows), totals, N_TOPICS, rng)
    points = np.empty((rows.n_rows, N_TOPICS - 1))
    kernels.project(rows, np.arange(rows.n_rows), directions, points)
    centres = np.stack([points[data.labels == q].mean(axis=0) for q in range(8)])
    nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert matched(nearest, data.labels) > 0.8


def test_where_a_sample_shows_nothing_all_rows_do(data, rows, monkeypatch):
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 2)  # 160 rows: hopeless
    monkeypatch.setattr(lda, "FINAL_WORK", N_TOPICS * 5_000)
    found = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0)).beta
    monkeypatch.setattr(lda, "_grouped", lambda *_: None)
    sampled = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0)).beta
    assert overlap(found, data.topics) > overlap(sampled, data.topics) + 0.15
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_prior_is_judged_on_rows_that_the_topics_have_not_seen(rows, monkeypatch):
    seen = []
    real = lda.grouped_counts
    monkeypatch.setattr(
        lda, "grouped_counts", lambda place, among, *rest: seen.append(among) or real(place, among, *rest)
    )
    scored = []
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 4)
    scores = lda._fixed_scores
    monkeypatch.setattr(lda, "_fixed_scores", lambda sample, *rest: scored.append(sample) or scores(sample, *rest))
    fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0))
    assert len(seen[0]) + scored[0].n_rows == rows.n_rows


def test_where_main_directions_show_nothing_a_sample_decides(monkeypatch):
    X = np.random.default_rng(0).poisson(0.3, (600, 400))  # no topics at all
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 40)
    monkeypatch.setattr(lda, "GRID", (0.1,))
    asked = []
    real = lda._fit_first
    monkeypatch.setattr(lda, "_fit_first", lambda *given: asked.append(given) or real(*given))
    fit_lda(as_counts(X), 3, rng=np.random.default_rng(0))
    assert asked


# --- sums in any order ------------------------------------------------------------------------------------------


def test_expected_counts_are_those_of_em_in_any_order(rows, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    beta_rows = np.ascontiguousarray(sparse_topics(N_TOPICS, rows.n_features, 0.5, random_state=3).T)
    every = np.arange(rows.n_rows)
    whole = expected_topics(rows, every, beta_rows, 1.0, 2.0**20, QUIET, one_thread)
    cut = rows.n_rows // 3
    parts = [rows.take(slice(0, cut)), rows.take(slice(cut, rows.n_rows))]
    np.testing.assert_array_equal(
        whole,
        sum(
            expected_topics(part, np.arange(part.n_rows), beta_rows, 1.0, 2.0**20, QUIET, one_thread) for part in parts
        ),
    )
    monkeypatch.setattr(places, "PIECE_ENTRIES", 100)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(
            whole, expected_topics(rows, every, beta_rows, 1.0, 2.0**20, QUIET, in_threads(pool))
        )
    theta = em.fitted_shares(rows, beta_rows, 1.0)
    X = rows.to_csr().toarray()
    plain = beta_rows * ((X / np.maximum(theta @ beta_rows.T, 1e-300)).T @ theta)
    np.testing.assert_allclose(whole / 2.0**20, plain, atol=1e-4)


# --- stages -----------------------------------------------------------------------------------------------------


def told_of(rows, n_threads=1):
    """Return all that a fit tells, and what it found."""
    told = []
    fit = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), n_threads=n_threads, stages=Stages(told.append))
    return told, fit


def texts(told, name):
    return list(dict.fromkeys(stage.text for stage in told if stage.name == name))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_pass_of_a_large_fit_is_told_and_their_costs_were_expected(rows, monkeypatch, n_threads):
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 4)
    monkeypatch.setattr(lda, "FINAL_WORK", N_TOPICS * 5_000)
    monkeypatch.setattr(lda, "FINAL_EFFORT", 1)
    monkeypatch.setattr(places, "PIECE_ENTRIES", 100)
    told, fit = told_of(rows, n_threads)
    assert list(dict.fromkeys(stage.name for stage in told)) == ["directions", "groups", "scores", "sample", "refining"]
    assert texts(told, "directions")[1:] == [f"topics: main directions, pass {i} of 6" for i in range(1, 7)]
    assert re.fullmatch(r"topics: pass \d+ of 60 over a sample", texts(told, "sample")[-1])
    assert texts(told, "refining")[1:] == [f"topics: pass {i} of 5 over all rows" for i in range(1, 6)]
    shares = [stage.share for stage in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)  # all stages that were expected came, and made the steps that they said
    assert len(told) > 6 * 5 + lda.TRIAL_PASSES / 4 + 5  # parts of passes as well
    np.testing.assert_array_equal(fit.beta, fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0)).beta)


def test_where_main_directions_show_nothing_the_stages_go_on_with_a_sample(monkeypatch):
    X = np.random.default_rng(0).poisson(0.3, (600, 400))
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 40)
    monkeypatch.setattr(lda, "FINAL_WORK", N_TOPICS * 20_000)
    monkeypatch.setattr(lda, "GRID", (0.1,))
    told, _ = told_of(as_counts(X))
    expected = ["directions", "groups", "scores", "prior", "sample", "refining"]
    assert list(dict.fromkeys(stage.name for stage in told)) == expected
    assert texts(told, "refining")[-1] == "topics: pass 3 of 3 over all rows"
    assert told[-1].share == pytest.approx(1.0)


def test_of_few_rows_the_passes_are_counted_without_an_end(rows):
    told, fit = told_of(rows.take(slice(0, 300)))
    assert [texts(told, name)[0] for name in ("prior", "topics")] == [
        "topics: choosing a prior, pass 1",
        "topics: pass 1",
    ]
    last = [int(texts(told, name)[-1].split()[-1]) - 1 for name in ("prior", "topics")]
    assert sum(last) == fit.n_passes


@pytest.mark.parametrize(
    ("told", "least", "most"), [((5, 1, 4), 0, 0), ((5, 1, 6, 2), 9, 12), ((5, 1, 6, 7), 60, 80)]
)  # scores of the groups, of the frequencies, after a few passes over a sample and after all of them
def test_passes_over_a_sample_go_on_while_they_predict_better(rows, monkeypatch, told, least, most):
    monkeypatch.setattr(lda, "SEARCH_WORK", 1)
    monkeypatch.setattr(lda, "SEARCH_COVER", 4)
    monkeypatch.setattr(lda, "FINAL_EFFORT", 1)
    scores = iter(told)
    monkeypatch.setattr(lda, "_fixed_scores", lambda rows, beta, grid, *_: dict.fromkeys(grid, float(next(scores))))
    fit = fit_lda(rows, N_TOPICS, rng=np.random.default_rng(0), tol=0.0)
    assert least <= fit.n_passes <= most
    assert fit.score == max(told)
    assert next(scores, None) is None
