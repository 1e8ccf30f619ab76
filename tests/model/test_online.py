"""Rows that come in batches."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mmpca
from mmpca import MMPCA
from mmpca.model import online
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=900, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def batch_fit(data):
    return MMPCA(6, 4, n_init=2, topics="lda", random_state=0).fit(data.X)


def continued(data, n_first=300, size=200):
    """Return a model fitted to the first rows, and updated by the others."""
    model = MMPCA(6, 4, n_init=1, topics="lda", temperature=1.0, random_state=0).fit(data.X[:n_first])
    for first in range(n_first, data.X.shape[0], size):
        model.partial_fit(data.X[first : first + size])
    return model


def test_batches_give_nearly_the_clusters_of_all_rows(data, batch_fit):
    model = MMPCA(6, 4, n_init=2, topics="lda", random_state=0)
    for first in range(0, 900, 150):
        model.partial_fit(data.X[first : first + 150])
    for found in (model, continued(data)):
        score = adjusted_rand_score(data.labels, found.predict(data.X))
        assert score >= 0.95 * adjusted_rand_score(data.labels, batch_fit.predict(data.X))


def test_updates_keep_sums_and_sizes(data):
    model = continued(data)
    assert model.cluster_sizes.sum() == 900
    np.testing.assert_array_equal(model.cluster_counts_.sum(axis=0), data.X.sum(axis=0))
    np.testing.assert_array_equal(model.cluster_row_counts_.sum(axis=0), (data.X > 0).sum(axis=0))
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.weights_, model.cluster_sizes / 900)
    assert model.labels_.shape == (200,)


def test_a_single_batch_is_a_fit(data, same_fit):
    once = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).partial_fit(data.X[:200])
    same_fit(once, MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(data.X[:200]))


def test_a_quarter_more_rows_are_fitted_again_and_fewer_are_not(data, same_fit):
    options = {"topics": "lda", "n_init": 1, "random_state": 0}
    model = MMPCA(6, 4, **options)
    for first in range(0, 500, 100):
        model.partial_fit(data.X[first : first + 100])
    at_once = MMPCA(6, 4, **options).fit(data.X[:500])
    same_fit(model, at_once, leaving_out=("labels_",))
    np.testing.assert_array_equal(model.labels_, at_once.labels_[400:])
    n_epochs = model.n_epochs_
    model.partial_fit(data.X[500:600])
    assert model._kept_rows.n_fitted == 500
    assert model.n_epochs_ == n_epochs
    assert model.cluster_sizes.sum() == 600


def test_sources_of_topics_are_compared_again_only_when_rows_have_doubled(data):
    model = MMPCA(6, 4, n_init=1, random_state=0)
    for first in range(0, 500, 100):
        model.partial_fit(data.X[first : first + 100])
    assert model._kept_rows.n_compared == 400
    assert model._kept_rows.n_fitted == 500


def test_a_comparison_of_sources_adds_to_those_of_samples_as_large():
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(30, 0.2), 3)
    X = np.array([rng.multinomial(10, profiles[q]) for q in rng.integers(3, size=4000)])
    model, compared = MMPCA(3, 2, n_init=1, max_epochs=3, random_state=0), []
    for first, last in ((0, 1000), (1000, 2000), (2000, 4000)):
        model.partial_fit(X[first:last])
        compared.append(list(model._kept_rows.compared))
    assert compared[0] == []  # comparisons of fewer rows than a full sample are not kept
    assert 0 < len(compared[1]) < len(compared[2])
    assert compared[2][: len(compared[1])] == compared[1]


def test_no_rows_are_kept_once_there_were_enough(data):
    model = continued(data)
    assert model._kept_rows.first.n_rows == 0
    assert model._kept_rows.strange.n_rows < online.MOST_KEPT
    assert model._fitted_rows is None


def test_a_batch_leaves_nothing_of_the_fit_that_no_longer_holds(data, tmp_path):
    from mmpca.evaluation import stability

    X = data.X[:100]
    model = MMPCA(4, 3, n_init=1, topics="lda", refit_topics=True, random_state=0).fit(X)
    model.keep_stability(stability(model, X, n_refits=2, random_state=0))
    assert model.outlier_score_.shape == (100,)
    model.partial_fit(data.X[100:150])
    model.save(tmp_path / "m.mmpca")
    loaded = mmpca.load(tmp_path / "m.mmpca")
    assert not hasattr(loaded, "row_stability_")
    assert not hasattr(loaded, "refit_bound_")
    lower, upper = model.theta_interval()
    assert (lower <= upper).all()


def test_a_saved_model_continues_like_the_original(data, tmp_path):
    model = continued(data)
    model.save(tmp_path / "online.mmpca")
    loaded = mmpca.load(tmp_path / "online.mmpca")
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(loaded.cluster_sizes, model.cluster_sizes)
    for one in (model, loaded):
        one.partial_fit(data.X[:100])
    np.testing.assert_array_equal(loaded.cluster_counts_, model.cluster_counts_)


def test_features_that_come_later_get_a_probability(data):
    X = data.X.toarray()
    X[:300, 7] = 0
    model = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(X[:300])
    assert not model.components_[:, 7].any()
    assert model.partial_fit(X[300:600]).components_[:, 7].any()


@pytest.fixture(scope="module")
def old_and_new():
    """Return rows of four clusters, and those of a fifth one."""
    topics = sparse_topics(4, 120, 0.2, random_state=0)
    shares = np.array([[0.9, 0.1, 0, 0], [0, 0.9, 0.1, 0], [0.05, 0.05, 0.9, 0], [0, 0, 0.1, 0.9], [0.5, 0, 0, 0.5]])
    options = {"topics": topics, "lengths": 120, "random_state": 0}
    old = simulate_mmpca(400, cluster_topics=shares[:4], **options)
    new = simulate_mmpca(120, cluster_topics=shares[4:], **options)
    return old, new


def test_rows_that_fit_no_cluster_become_a_new_one(old_and_new):
    old, new = old_and_new
    model = MMPCA(4, 4, n_init=2, topics="lda", random_state=0).fit(old.X)
    model.partial_fit(old.X[:100])
    assert len(model.weights_) == 4
    model.partial_fit(new.X).partial_fit(new.X[:50])
    assert len(model.weights_) == model.n_clusters == 5
    assert (model.labels_ == 4).mean() > 0.9
    assert (model.predict(old.X) == 4).mean() < 0.02
    assert model.clusters_frame()["size"].sum() == 670


def test_no_cluster_is_added_while_all_rows_are_kept(old_and_new):
    old, new = old_and_new
    model = MMPCA(4, 4, n_init=2, topics="lda", random_state=0).partial_fit(old.X).partial_fit(new.X[:80])
    assert model.n_clusters == len(model.weights_) == 4
    assert model.cluster_sizes.sum() == 480


def test_empty_rows_and_soft_clusters_are_errors(data):
    model = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(data.X[:100])
    with pytest.raises(ValueError, match="row 1 "):
        model.partial_fit(np.vstack([data.X[:1].toarray(), 0 * data.X[:1].toarray()]))
    with pytest.raises(ValueError, match="vbem"):
        MMPCA(6, 4, algorithm="vbem").partial_fit(data.X[:100])
