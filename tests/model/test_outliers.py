"""Outliers: scores are uniform without outliers, whatever the dispersion and the length, and small for outliers."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest

import mmpca
from mmpca import MMPCA
from mmpca.model.outliers import Reference, draw_dirichlet_multinomial, standardization, standardize
from mmpca.simulate import simulate_mmpca, sparse_topics

N_ROWS, N_FEATURES = 1200, 150
CLUSTER_TOPICS = np.array([[0.9, 0.1, 0.0, 0.0], [0.0, 0.8, 0.2, 0.0], [0.0, 0.0, 0.9, 0.1], [0.1, 0.0, 0.0, 0.9]])


def lengths_from(low, high, n_rows, seed):
    return np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), n_rows)).astype(int)


@pytest.fixture(scope="module")
def drawn():
    topics = sparse_topics(4, N_FEATURES, 0.3, random_state=1)
    lengths = lengths_from(10, 300, N_ROWS, 0)
    return simulate_mmpca(N_ROWS, topics=topics, cluster_topics=CLUSTER_TOPICS, lengths=lengths, random_state=0)


@pytest.fixture(scope="module")
def model(drawn):
    return MMPCA(4, 4, random_state=0).fit(drawn.X)


@pytest.fixture(scope="module")
def bursty(drawn):
    """Return rows whose counts vary four times as much as multinomial ones."""
    rng, profiles = np.random.default_rng(0), CLUSTER_TOPICS @ drawn.topics
    lengths = drawn.X.sum(axis=1)
    rows = [
        draw_dirichlet_multinomial(int(n), 1, profiles[q], 4.0, rng) for n, q in zip(lengths, drawn.labels, strict=True)
    ]
    return sparse.csr_array(sparse.vstack(rows))


def assert_uniform(scores, X):
    """Assert that few scores are small, among short and among long rows."""
    lengths = np.asarray(X.sum(axis=1)).ravel()
    is_short = lengths < np.median(lengths)
    for some in (is_short, ~is_short):
        assert kstest(scores[some], "uniform").statistic < 0.08
        assert (scores[some] < 0.01).mean() < 0.025
        assert 0.02 < (scores[some] < 0.05).mean() < 0.09


def test_scores_of_rows_from_the_model_are_uniform_for_short_and_long_rows(model, drawn):
    assert_uniform(model.outlier_scores(drawn.X), drawn.X)


def test_scores_of_new_rows_from_the_model_are_uniform(model, drawn):
    lengths = lengths_from(10, 300, N_ROWS, 1)
    new = simulate_mmpca(N_ROWS, topics=drawn.topics, cluster_topics=CLUSTER_TOPICS, lengths=lengths, random_state=1)
    assert_uniform(model.outlier_scores(new.X), new.X)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("dispersion", ["multinomial", "polya"])
def test_scores_of_overdispersed_rows_are_uniform(bursty, dispersion):
    fitted = MMPCA(4, 4, n_init=2, topics="lda", dispersion=dispersion, random_state=0).fit(bursty)
    assert_uniform(fitted.outlier_scores(bursty), bursty)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("name", ["drawn", "bursty"])
def test_planted_outliers_are_found_among_fitted_rows(name, drawn, bursty):
    # With variance factors, as many counts of a rare feature would be a burst like others.
    X, rng = {"drawn": drawn.X, "bursty": bursty}[name], np.random.default_rng(2)
    # Each outlier has ten features of its own, so that they do not form a cluster.
    planted = np.zeros((20, N_FEATURES), dtype=int)
    for row in planted:
        row[rng.choice(N_FEATURES, 10, replace=False)] = 8
    both = sparse.csr_array(sparse.vstack([X, sparse.csr_array(planted)]))
    fitted = MMPCA(4, 4, n_init=2, topics="lda", dispersion="multinomial", random_state=0).fit(both)
    labels = fitted.outlier_labels(0.01)
    assert (labels[-20:] == -1).mean() >= 0.8
    assert (labels[:-20] == -1).mean() < 0.03
    np.testing.assert_array_equal(labels[labels >= 0], fitted.labels_[labels >= 0])


def test_the_score_of_a_new_row_does_not_depend_on_other_rows(model, drawn):
    some = drawn.X[:40]
    whole = model.outlier_scores(some)
    single = MMPCA(4, 4, random_state=0).fit(drawn.X)
    np.testing.assert_allclose([single.outlier_scores(some[[i]])[0] for i in (31, 7)], whole[[31, 7]], rtol=1e-12)


def test_the_attribute_holds_the_scores_of_the_fitted_rows(drawn):
    fitted = MMPCA(4, 4, topics="lda", n_init=1, random_state=0).fit(drawn.X)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(fitted.outlier_score_, fitted.outlier_scores(drawn.X))
    np.testing.assert_array_equal(fitted.outlier_score_, copied.outlier_scores(drawn.X))
    assert not hasattr(copied, "outlier_score_")  # a copy does not hold the rows
    fitted.fit(drawn.X[:600])
    assert fitted.outlier_score_.shape == (600,)


def test_a_loaded_model_gives_the_same_scores(model, drawn, tmp_path):
    model.save(tmp_path / "model.mmpca")
    loaded = mmpca.load(tmp_path / "model.mmpca")
    np.testing.assert_array_equal(loaded.outlier_scores(drawn.X[:50]), model.outlier_scores(drawn.X[:50]))


def test_predict_marks_outliers_on_request_only(model):
    odd, empty = np.ones((1, N_FEATURES), dtype=int), np.zeros((1, N_FEATURES), dtype=int)
    X = np.vstack([odd, empty])
    assert model.predict(X, outliers=0.01).tolist() == [-1, model.predict(empty)[0]]
    assert (model.predict(X) >= 0).all()
    shown = model.rows_frame(X)["outlier_score"]
    assert shown[0] == model.outlier_scores(X)[0]
    assert np.isnan(shown[1])  # there is nothing to judge


@pytest.mark.parametrize("level", [-0.1, 1.1, True])
def test_levels_outside_of_0_to_1_are_an_error(model, level):
    with pytest.raises(ValueError, match="level"):
        model.predict(np.ones((1, N_FEATURES), dtype=int), outliers=level)


def test_drawn_rows_have_the_mean_and_variance_asked_for():
    rng, profile = np.random.default_rng(0), np.array([0.5, 0.3, 0.2, 0.0])
    for length, n_features in ((40, 4), (40, 60)):  # by gamma variates, and by the urn
        wide = np.pad(profile, (0, n_features - 4))
        X = draw_dirichlet_multinomial(length, 4000, wide, 3.0, rng).toarray()
        assert (X.sum(axis=1) == length).all()
        np.testing.assert_allclose(X.mean(axis=0), length * wide, atol=0.4)
        ratio = X[:, :3].var(axis=0) / (length * profile[:3] * (1 - profile[:3]))
        c = length / 2.0  # the variance factor of a Dirichlet-multinomial distribution is (L + c) / (1 + c)
        np.testing.assert_allclose(ratio, (length + c) / (1 + c), rtol=0.12)


def test_standardization_undoes_a_shift_and_a_stretch():
    from scipy.special import ndtr

    rng, lengths = np.random.default_rng(0), np.full(4000, 50)
    stretched = ndtr(2.0 * rng.normal(size=4000) - 1.0)
    corrected = standardize(stretched, lengths, standardization(stretched, lengths))
    assert kstest(corrected, "uniform").statistic < 0.04


def test_interpolated_lengths_agree_with_simulated_ones(model):
    reference = Reference(model, {})
    rng = np.random.default_rng(5)
    rows = draw_dirichlet_multinomial(100, 2000, reference.profiles[1], reference.factor, rng)
    from mmpca.counts import as_counts

    scores = reference.scores(as_counts(rows), np.full(2000, 100), np.full(2000, 1), is_fitted=False)
    assert kstest(scores, "uniform").statistic < 0.06
