"""The fit: its results and attributes, special cases, progress, the log, and errors."""

import logging

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from mmpca import MMPCA, engine, load
from mmpca.counts import as_counts, transposition_hint
from mmpca.engine.bound import cluster_bound, mixture, responsibilities, ve_step
from mmpca.errors import CountsError
from mmpca.model.prediction import ClusterMixture, joint_log_likelihood
from mmpca.model.rules import RULES
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics.em import SMOOTHING

ALGORITHMS = ("greedy", "exact", "cvem")
# The default chooses these by repeated fits, which tests of other algorithms need not repeat.
CHOSEN = {"topics": "lda", "dispersion": "multinomial"}
CHOICES = {"greedy": {}, "exact": CHOSEN, "cvem": CHOSEN, "vbem": CHOSEN}


def icl(model, n_features):
    """Return the paper's criterion from its formula."""
    n_clusters, n_topics, n_samples = model.n_clusters, model.n_topics, len(model.labels_)
    penalty = n_topics * (n_features - 1) / 2 * np.log(n_clusters) + (n_clusters - 1) / 2 * np.log(n_samples)
    return model.bound_ - penalty


def assert_keeps_its_invariants(model, X):
    """Assert the shapes, types, sums and ordered bounds of every fit."""
    n_samples, n_features = X.shape
    n_clusters, n_topics = model.n_clusters, model.n_topics
    assert model.labels_.dtype == np.int32
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    assert sizes.shape == (n_clusters,)
    assert sizes.min() >= 1
    np.testing.assert_array_equal(model.weights_, sizes / n_samples)
    assert model.components_.shape == (n_topics, n_features)
    assert model.components_.min() >= 0
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    assert model.cluster_topic_params_.shape == model.cluster_topics_.shape == (n_clusters, n_topics)
    assert (model.cluster_topic_params_ >= model.topic_prior * (1 - 1e-9)).all()
    np.testing.assert_allclose(model.cluster_topics_.sum(axis=1), 1, rtol=1e-12)
    totals = np.bincount(model.labels_, weights=X.sum(axis=1))
    # Each token of a cluster is divided between its topics.
    np.testing.assert_allclose(model.cluster_topic_params_.sum(axis=1), totals + n_topics * model.topic_prior)
    assert model.bound_history_.shape == (model.n_epochs_ + 1,)
    assert np.isfinite(model.bound_history_).all()
    assert (np.diff(model.bound_history_) >= 0).all()
    assert model.bound_history_[-1] == model.bound_
    assert model.icl_ == pytest.approx(icl(model, (X.sum(axis=0) > 0).sum()), rel=1e-14)
    assert model.n_features_in_ == n_features


def best_gain(model, X, beta):
    """Return the highest gain of any single move from the fitted labels."""
    state = engine.build(as_counts(X), model.labels_, n_clusters=model.n_clusters, beta=beta, alpha=model.topic_prior_)
    return max(engine.gain(state, i, q) for i in range(len(X)) for q in range(model.n_clusters))


# --- results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_recovers_the_papers_design(seed):
    data = paper_design(random_state=seed)
    model = MMPCA(6, 4, n_init=3, random_state=seed).fit(data.X)
    assert adjusted_rand_score(data.labels, model.labels_) >= 0.97
    assert model.converged_


def test_the_true_labels_have_no_higher_bound_than_the_fit(paper, scratch_bound):
    model = MMPCA(6, 4, topics=paper.topics, n_init=3, random_state=0).fit(paper.X)
    truth = scratch_bound(paper.X.toarray(), paper.labels, beta=paper.topics)
    assert model.bound_ >= truth - 1e-12 * abs(truth)


def test_fit_returns_the_model_and_fit_predict_its_labels(X, model):
    other = MMPCA(4, 3, topics="lda", n_init=3, random_state=0)
    np.testing.assert_array_equal(other.fit_predict(X), model.labels_)
    assert other.fit(X) is other


# --- fitted attributes ------------------------------------------------------------------------------------------


def test_all_fitted_attributes_are_documented(model, attributes_of):
    documented = {
        "labels_", "weights_", "components_", "cluster_topics_", "cluster_topic_params_", "bound_", "icl_",
        "bound_history_", "n_epochs_", "converged_", "n_features_in_", "smoothing_",
        "starts_", "overdispersion_", "cluster_overdispersion_", "cluster_counts_", "cluster_row_counts_",
        "topic_prior_", "dispersion_", "stabilize_", "topics_source_",
    }  # fmt: skip
    assert attributes_of(model).keys() == documented
    assert all(f"\n    {name} : " in MMPCA.__doc__ for name in documented)
    assert isinstance(model.bound_, float)
    assert isinstance(model.icl_, float)
    assert isinstance(model.n_epochs_, int)
    assert isinstance(model.converged_, bool)


def test_fitted_attributes_keep_their_invariants(X, model):
    assert_keeps_its_invariants(model, X)
    assert model.n_epochs_ >= 1


def test_the_bound_is_that_of_the_labels_under_the_topics_of_the_search(data, X, scratch_bound):
    model = MMPCA(4, 3, topics=data.topics, topic_prior=0.7, refit_topics=True, n_init=2, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, data.topics, rtol=1e-15)
    assert model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=model.components_, alpha=0.7), rel=1e-12)
    refitted = scratch_bound(X, model.labels_, beta=model.refit_components_, alpha=0.7)
    assert model.refit_bound_ == pytest.approx(refitted, rel=1e-9)
    assert model.refit_bound_ > model.bound_


def test_the_posterior_of_each_cluster_belongs_to_the_bound(scratch_bound):
    """Under a prior below one, a cluster has several maxima; the posteriors are those where the search ended."""
    n_other = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        topics = sparse_topics(4, 9, 1.0, random_state=rng)
        X = rng.poisson(2, (20, 9)) + 1
        model = MMPCA(3, 4, topics=topics, topic_prior=0.1, start="random", n_init=1, random_state=seed).fit(X)
        members = np.equal.outer(np.arange(3), model.labels_)
        sizes = members.sum(axis=1)
        clusters = [
            cluster_bound(m.astype(float), gamma, beta=model.components_, alpha=0.1)
            for m, gamma in zip(members @ X, model.cluster_topic_params_, strict=True)
        ]
        assert model.bound_ == pytest.approx(sum(clusters) + sizes @ np.log(sizes / 20), rel=1e-9)
        fresh = scratch_bound(X, model.labels_, beta=topics, alpha=0.1)
        n_other += abs(model.bound_ - fresh) > 1e-6 * abs(fresh)
    assert n_other > 0  # otherwise the test would show nothing


REFIT = {"refit_components_", "refit_cluster_topics_", "refit_bound_"}


def test_refitting_the_topics_adds_attributes_and_changes_no_other(X, same_fit, attributes_of):
    fits = [MMPCA(4, 3, refit_topics=refit, topics="lda", n_init=2, random_state=0).fit(X) for refit in (False, True)]
    same_fit(*fits, leaving_out=tuple(REFIT))
    assert attributes_of(fits[1]).keys() - attributes_of(fits[0]).keys() == REFIT
    assert all(f"\n    {name} : " in MMPCA.__doc__ for name in REFIT)
    assert fits[1].refit_bound_ > fits[1].bound_
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert not REFIT & attributes_of(fits[1].set_params(refit_topics=False).fit(X)).keys()


def test_refitted_topics_are_those_of_the_m_step_at_their_own_fixed_point(X):
    """beta_kv is proportional to sum_q M_qv phi_qvk."""
    model = MMPCA(4, 3, refit_topics=True, topics="lda", n_init=3, random_state=0).fit(X)
    gammas = model.refit_cluster_topics_ * (model.cluster_counts_.sum(axis=1, keepdims=True) + 3)
    expected = np.zeros_like(model.components_)
    for m, gamma in zip(model.cluster_counts_, gammas, strict=True):
        expected += m * responsibilities(model.refit_components_, gamma).T
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.refit_components_, expected, atol=5e-4)


@pytest.mark.parametrize(("n_samples", "noise"), [(100, 0.0), (200, 0.2)])
def test_new_rows_are_predicted_nearly_as_well_as_by_the_truth(n_samples, noise):
    found, best = [], []
    for seed in range(3):
        data = paper_design(n_samples=n_samples + 1000, noise=noise, random_state=seed)
        model = MMPCA(6, 4, random_state=seed).fit(data.X[:n_samples])
        new, labels = data.X[n_samples:], data.labels[n_samples:]
        theta = (1 - noise) * data.cluster_topics + noise / 4
        truth = joint_log_likelihood(as_counts(new), ClusterMixture(data.topics, theta, data.weights)).argmax(axis=1)
        # Clusters are numbered at random.
        names = linear_sum_assignment(-confusion_matrix(model.labels_, data.labels[:n_samples]))[1]
        found.append((names[model.predict(new)] == labels).mean())
        best.append((truth == labels).mean())
    assert np.mean(found) >= 0.97 * np.mean(best)


# --- no epochs: the start evaluated -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.4, 1.0, 5.0])
def test_no_epochs_keep_the_given_labels_and_evaluate_their_bound(data, X, alpha, scratch_bound):
    labels = np.arange(80) % 4
    model = MMPCA(4, 3, topics=data.topics, topic_prior=alpha, start=labels, max_epochs=0).fit(X)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.bound_ == pytest.approx(scratch_bound(X, labels, beta=data.topics, alpha=alpha), rel=1e-12)
    assert model.bound_history_.tolist() == [model.bound_]
    assert model.n_epochs_ == 0
    assert model.converged_ is False
    assert_keeps_its_invariants(model, X)


def test_the_bound_of_given_labels_does_not_depend_on_the_order_of_the_rows(data, X):
    labels = np.arange(80) % 4
    order = np.random.default_rng(0).permutation(80)
    fits = [
        MMPCA(4, 3, topics=data.topics, start=labels[rows], max_epochs=0).fit(X[rows]) for rows in (slice(None), order)
    ]
    assert fits[0].bound_ == fits[1].bound_
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


def test_the_bound_of_given_labels_does_not_depend_on_the_names_of_clusters_and_topics(data, X):
    labels, names = np.arange(80) % 4, np.array([2, 0, 3, 1])
    fit = MMPCA(4, 3, topics=data.topics, start=labels, max_epochs=0).fit(X)
    renamed = MMPCA(4, 3, topics=data.topics[[2, 0, 1]], start=names[labels], max_epochs=0).fit(X)
    assert renamed.bound_ == pytest.approx(fit.bound_, rel=1e-13)
    np.testing.assert_allclose(renamed.cluster_topics_[names][:, [1, 2, 0]], fit.cluster_topics_, rtol=1e-6)


# --- the same seed, the same result -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "vbem"])
@pytest.mark.parametrize("n_init", [1, 3])
def test_the_result_is_bit_identical_for_any_number_of_jobs(X, algorithm, n_init, same_fit):
    fits = [
        MMPCA(4, 3, algorithm=algorithm, topics="lda", n_init=n_init, n_jobs=n_jobs, random_state=0).fit(X)
        for n_jobs in (None, 1, 2, 5)
    ]
    for other in fits[1:]:
        same_fit(fits[0], other)


def test_the_result_is_bit_identical_when_threads_share_the_rows_of_a_block(data, same_fit):
    """A thread evaluates at least 256 rows at a time, so blocks must be larger."""
    many = simulate_mmpca(
        4500, topics=data.topics, cluster_topics=data.cluster_topics, weights=data.weights, lengths=20, random_state=0
    )
    fits = [
        MMPCA(4, 3, topics=data.topics, start="random", n_init=1, max_epochs=2, n_jobs=n_jobs, random_state=0).fit(
            many.X
        )
        for n_jobs in (1, 3)
    ]
    assert fits[0].bound_ > fits[0].bound_history_[0]
    same_fit(*fits)


def test_the_same_seed_gives_the_same_fit_and_another_seed_another(X, model, same_fit):
    same_fit(model, MMPCA(4, 3, topics="lda", n_init=3, random_state=0).fit(X))
    other = MMPCA(4, 3, topics="lda", n_init=3, random_state=1).fit(X)
    assert not np.array_equal(model.components_, other.components_)
    assert model.bound_ != other.bound_


def test_a_random_state_object_is_drawn_from(X, same_fit):
    fits = [MMPCA(4, 3, n_init=1, random_state=np.random.RandomState(5)).fit(X) for _ in range(2)]
    same_fit(*fits)
    again = MMPCA(4, 3, n_init=1, random_state=fits[0].random_state).fit(X)
    assert not np.array_equal(again.components_, fits[0].components_)


def test_a_second_fit_forgets_the_first(data, X, same_fit):
    twice = MMPCA(4, 3, n_init=2, random_state=0).fit(X[:50, :20]).fit(X)
    same_fit(twice, MMPCA(4, 3, n_init=2, random_state=0).fit(X))


# --- topics -----------------------------------------------------------------------------------------------------


def test_given_topics_are_used_in_any_form(data, X, same_fit):
    given = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0).fit(X)
    same_fit(given, MMPCA(4, 3, topics=data.topics.tolist(), n_init=1, random_state=0).fit(X))
    single = MMPCA(4, 3, topics=data.topics.astype(np.float32), n_init=1, random_state=0).fit(X)
    assert single.bound_ == pytest.approx(given.bound_, rel=1e-6)
    other = MMPCA(4, 3, topics=sparse_topics(3, 25, 0.5, random_state=0), n_init=1, random_state=0).fit(X)
    assert other.bound_ < given.bound_ - 100


def test_given_topics_and_labels_are_not_changed(data, X):
    topics, labels = data.topics.copy(), np.arange(80) % 4
    MMPCA(4, 3, topics=topics, start=labels, refit_topics=False, random_state=0).fit(X)
    np.testing.assert_array_equal(topics, data.topics)
    np.testing.assert_array_equal(labels, np.arange(80) % 4)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_random_topics_are_drawn_from_the_seed_and_know_every_feature(X):
    fits = [MMPCA(4, 3, topics="random", refit_topics=False, n_init=1, random_state=seed).fit(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert not np.array_equal(fits[0].components_, fits[2].components_)
    assert (fits[0].components_ > 0).all()
    assert_keeps_its_invariants(fits[0], X)


def test_topics_of_lda_give_a_higher_bound_than_random_ones(X, model):
    random = MMPCA(4, 3, topics="random", n_init=3, random_state=0).fit(X)
    assert model.bound_ > random.bound_ + 100


# --- algorithms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(4))
def test_every_algorithm_climbs_to_its_end_without_a_step_down(data, X, algorithm, seed):
    model = MMPCA(4, 3, algorithm=algorithm, start="random", topics="lda", n_init=1, random_state=seed).fit(X)
    assert_keeps_its_invariants(model, X)
    assert model.converged_
    assert model.bound_ > model.bound_history_[0]


@pytest.mark.parametrize("algorithm", ["greedy", "exact"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_and_exact_end_where_no_single_move_gains(data, X, algorithm, alpha, seed):
    model = MMPCA(
        4, 3, topics=data.topics, topic_prior=alpha, algorithm=algorithm, start="random", n_init=1, random_state=seed
    ).fit(X)
    assert model.converged_
    assert best_gain(model, X, data.topics) <= 1e-9 * abs(model.bound_)


def test_one_prior_for_each_topic_follows_the_topics(data, X):
    prior, order = np.array([1.0, 4.0, 9.0]), [2, 0, 1]
    own = {"topics": data.topics, "start": data.labels, "random_state": 0}
    model = MMPCA(4, 3, topic_prior=prior, **own).fit(X)
    turned = MMPCA(4, 3, topic_prior=prior[order], **own | {"topics": data.topics[order]}).fit(X)
    np.testing.assert_array_equal(turned.labels_, model.labels_)
    assert turned.bound_ == pytest.approx(model.bound_, rel=1e-12)
    np.testing.assert_allclose(turned.cluster_topic_params_, model.cluster_topic_params_[:, order], rtol=1e-6)
    same = MMPCA(4, 3, topic_prior=[4.0, 4.0, 4.0], **own).fit(X)
    assert same.bound_ == MMPCA(4, 3, topic_prior=4.0, **own).fit(X).bound_
    assert best_gain(model, X, data.topics) <= 1e-9 * abs(model.bound_)


def test_an_estimated_prior_raises_the_bound_and_is_kept_in_the_file(data, X, tmp_path):
    own = {"topics": data.topics, "n_init": 2, "random_state": 0}
    plain, model = MMPCA(4, 3, **own).fit(X), MMPCA(4, 3, topic_prior="estimate", **own).fit(X)
    assert model.topic_prior_.shape == (3,)
    assert model.bound_ > plain.bound_
    assert best_gain(model, X, data.topics) <= 1e-9 * abs(model.bound_)
    model.save(tmp_path / "prior.mmpca")
    loaded = load(tmp_path / "prior.mmpca")
    np.testing.assert_array_equal(loaded.topic_prior_, model.topic_prior_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_topics_re_estimated_after_every_move_belong_to_the_clusters_found(data, X):
    given = data.topics.copy()
    own = {"algorithm": "exact", "start": "kmeans", "n_init": 1, "random_state": 0}
    model = MMPCA(4, 3, topics=given, refit_topics="moves", **own).fit(X)
    np.testing.assert_array_equal(given, data.topics)
    assert np.abs(model.components_ - given).max() > 1e-3
    assert model.bound_ > MMPCA(4, 3, topics=given, **own).fit(X).bound_
    assert np.diff(model.bound_history_).min() >= 0
    assert best_gain(model, X, model.components_) <= 1e-9 * abs(model.bound_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"refit_topics": "moves"},
        {"refit_topics": "moves", "algorithm": "exact", "topic_prior": 0.5},
        {"refit_topics": "moves", "algorithm": "exact", "topic_prior": "estimate"},
        {"topic_prior": "estimate", "algorithm": "vbem"},
    ],
)
def test_parameters_that_exclude_each_other_are_an_error(X, parameters):
    assert_fit_fails(X, **parameters)


def test_the_algorithms_take_different_paths(data, X):
    labels = np.arange(80) % 4
    fits = [
        MMPCA(4, 3, topics=data.topics, start=labels, algorithm=algorithm, max_epochs=1, random_state=0).fit(X)
        for algorithm in ALGORITHMS
    ]
    assert len({fit.bound_history_[0] for fit in fits}) == 1
    assert len({fit.bound_ for fit in fits}) == 3


def test_an_epoch_of_cvem_assigns_all_rows_with_the_parameters_held_fixed(data, X):
    labels = np.arange(80) % 4
    score = np.empty((80, 4))
    for q in range(4):
        gamma = ve_step(X[labels == q].sum(axis=0).astype(float), beta=data.topics, alpha=1.0)
        score[:, q] = X @ np.log(mixture(data.topics, gamma)) + np.log(20)
    model = MMPCA(4, 3, topics=data.topics, start=labels, algorithm="cvem", max_epochs=1).fit(X)
    np.testing.assert_array_equal(model.labels_, score.argmax(axis=1))


def test_fewer_epochs_than_needed_leave_the_search_unconverged_at_the_same_history(data, X):
    whole = MMPCA(4, 3, topics=data.topics, start="random", n_init=1, random_state=0).fit(X)
    assert whole.n_epochs_ > 2
    part = MMPCA(4, 3, topics=data.topics, start="random", n_init=1, max_epochs=2, random_state=0).fit(X)
    assert part.converged_ is False
    assert part.n_epochs_ == 2
    np.testing.assert_array_equal(part.bound_history_, whole.bound_history_[:3])


def test_a_move_has_to_gain_more_than_the_tolerance(data, X):
    labels = np.arange(80) % 4
    strict = MMPCA(4, 3, topics=data.topics, start=labels, tol=1.0).fit(X)
    np.testing.assert_array_equal(strict.labels_, labels)
    assert strict.converged_


# --- square roots -----------------------------------------------------------------------------------------------


def test_stabilizing_is_the_same_as_fitting_and_predicting_rounded_square_roots(X, same_fit):
    counts = 7 * X
    roots = np.rint(np.sqrt(counts))
    stabilized = MMPCA(4, 3, stabilize="sqrt", topics="lda", n_init=2, random_state=0).fit(counts)
    plain = MMPCA(4, 3, topics="lda", n_init=2, random_state=0).fit(roots)
    assert (stabilized.stabilize_, plain.stabilize_) == ("sqrt", None)
    same_fit(stabilized, plain, leaving_out=["stabilize_", "cluster_counts_", "_unit_counts"])
    np.testing.assert_array_equal(stabilized.unit_counts, plain.cluster_counts_)
    for method in ("predict", "predict_proba", "transform", "score"):
        np.testing.assert_array_equal(getattr(stabilized, method)(counts), getattr(plain, method)(roots))
    assert not np.array_equal(stabilized.transform(counts), plain.transform(counts))
    sizes = [fit.sample(5, random_state=0)[0].sum(axis=1) for fit in (stabilized, plain)]
    np.testing.assert_array_equal(*sizes)


# --- special cases ----------------------------------------------------------------------------------------------


def test_one_cluster_holds_all_rows_and_pays_nothing_for_the_choice(data, X, scratch_bound):
    model = MMPCA(1, 3, topics=data.topics, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    assert model.weights_.tolist() == [1.0]
    assert model.icl_ == model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=data.topics), rel=1e-12)
    assert model.converged_
    assert_keeps_its_invariants(model, X)


def test_one_topic_equals_the_column_shares_and_makes_one_cluster_as_large_as_possible(X):
    """With one topic, rows say nothing about clusters: only the term of the sizes is left to maximize."""
    model = MMPCA(4, 1, n_init=2, random_state=0).fit(X)
    shares = (X.sum(axis=0) + SMOOTHING) / (X + SMOOTHING / 80).sum()
    np.testing.assert_allclose(model.components_, shares[None], rtol=1e-9)
    np.testing.assert_array_equal(model.cluster_topics_, np.ones((4, 1)))
    assert sorted(np.bincount(model.labels_)) == [1, 1, 1, 77]
    sizes = np.array([1, 1, 1, 77])
    expected = X.sum(axis=0) @ np.log(shares) + sizes @ np.log(sizes / 80)
    assert model.bound_ == pytest.approx(expected, rel=1e-12)
    assert_keeps_its_invariants(model, X)


def test_a_cluster_for_each_row_is_lda(data, X, scratch_bound):
    model = MMPCA(80, 3, topics=data.topics, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(80))
    rows = sum(
        cluster_bound(x, ve_step(x, beta=data.topics, alpha=1.0), beta=data.topics, alpha=1.0) for x in X.astype(float)
    )
    assert model.bound_ == pytest.approx(rows - 80 * np.log(80), rel=1e-12)
    assert model.converged_
    assert_keeps_its_invariants(model, X)


def test_one_row_makes_one_cluster(X):
    model = MMPCA(1, 3, random_state=0).fit(X[:1])
    assert model.labels_.tolist() == [0]
    assert_keeps_its_invariants(model, X[:1])
    assert model.predict(X[:1]).tolist() == [0]


@pytest.mark.parametrize("start", ["random", "kmeans"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_identical_rows_keep_every_cluster_filled(X, start, algorithm):
    same = np.repeat(X[:1], 12, axis=0)
    model = MMPCA(4, 3, start=start, algorithm=algorithm, n_init=2, random_state=0, **CHOICES[algorithm]).fit(same)
    assert_keeps_its_invariants(model, same)
    assert model.converged_
    assert len(np.unique(model.predict(same))) == 1


def test_one_feature_has_all_the_probability(X):
    one = X[:, :1] + 1
    model = MMPCA(3, 1, n_init=2, random_state=0).fit(one)
    assert model.components_.tolist() == [[1.0]]
    sizes = np.bincount(model.labels_)
    assert model.bound_ == pytest.approx(sizes @ np.log(sizes / 80), rel=1e-12)
    assert_keeps_its_invariants(model, one)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_the_largest_counts_can_be_fitted(data, X, algorithm):
    huge = X.astype(np.int64) * ((2**31 - 1) // X.max())
    model = MMPCA(4, 3, algorithm=algorithm, n_init=2, random_state=0, **CHOICES[algorithm]).fit(huge)
    assert_keeps_its_invariants(model, huge)
    assert model.converged_
    assert adjusted_rand_score(data.labels, model.labels_) > 0.5
    np.testing.assert_allclose(model.predict_proba(huge).sum(axis=1), 1)


@pytest.mark.parametrize(("prior", "seed"), [(0.3, 2), (0.3, 3), (1.0, 4), (1.0, 2)])
def test_the_bound_of_rows_that_hardly_differ_but_are_very_long_never_falls(prior, seed):
    X = np.random.default_rng(1000 + seed).poisson(1e8, (22, 5))
    own = {"topics": "lda", "dispersion": "multinomial", "n_init": 1}
    model = MMPCA(9, 3, topic_prior=prior, random_state=seed, **own).fit(X + 1)
    assert (np.diff(model.bound_history_) >= -1e-13 * abs(model.bound_)).all()


@pytest.mark.parametrize("prior", [1e-2, 1e-3, 1e-6, 1e3, 1e8])
@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_small_and_large_priors_have_the_bound_of_the_reference(prior, scratch_bound):
    X, labels = np.repeat([[9, 0, 1], [0, 9, 1]], 3, axis=0), np.repeat([0, 1], 3)
    topics = np.array([[0.9, 0.0, 0.1], [0.0, 0.9, 0.1]])
    model = MMPCA(2, 2, topics=topics, start=labels, topic_prior=prior, max_epochs=0).fit(X)
    assert model.bound_ == pytest.approx(scratch_bound(X, labels, beta=topics, alpha=prior), rel=1e-6)
    assert_keeps_its_invariants(model, X)


def test_the_largest_prior_makes_all_shares_equal(data, X):
    labels = np.arange(80) % 4
    model = MMPCA(4, 3, topics=data.topics, start=labels, topic_prior=1e8, max_epochs=0).fit(X)
    expected = X.sum(axis=0) @ np.log(data.topics.mean(axis=0)) - 80 * np.log(4)
    assert model.bound_ == pytest.approx(expected, rel=1e-6)


RNG = np.random.default_rng(0)
PLAIN = RNG.multinomial(30, [0.4, 0.3, 0.2, 0.1], size=12)

DEGENERATE = {
    "all rows identical": (np.tile([3, 1, 0, 2], (10, 1)), 3, 2),
    "two rows": (np.array([[5, 0, 1], [0, 4, 2]]), 2, 2),
    "two rows in one cluster": (np.array([[5, 0, 1], [0, 4, 2]]), 1, 2),
    "one row": (np.array([[5, 0, 1]]), 1, 2),
    "one feature": (RNG.integers(1, 20, (8, 1)), 3, 1),
    "one topic": (PLAIN, 3, 1),
    "as many clusters as rows": (PLAIN, 12, 3),
    "as many topics as features": (PLAIN, 3, 4),
    "a single huge row": (np.vstack([PLAIN, 10**8 * np.array([[1, 2, 3, 4]])]), 3, 2),
    "counts of a million": (RNG.multinomial(10**6, [0.4, 0.3, 0.2, 0.1], size=12), 3, 2),
    "single tokens": (np.eye(6, dtype=int), 3, 2),
    "an empty column": (np.insert(PLAIN, 2, 0, axis=1), 3, 2),
}


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("algorithm", CHOICES)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_are_fitted(case, algorithm):
    X, n_clusters, n_topics = DEGENERATE[case]
    model = MMPCA(n_clusters, n_topics, algorithm=algorithm, n_init=3, random_state=0, **CHOICES[algorithm]).fit(X)
    assert (np.bincount(model.labels_, minlength=n_clusters) > 0).all()
    assert np.isfinite([model.bound_, model.icl_]).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.cluster_topics_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (np.diff(model.bound_history_) >= -1e-12 * abs(model.bound_)).all()


def test_one_topic_of_vbem_gives_all_clusters_one_profile():
    model = MMPCA(3, 1, algorithm="vbem", random_state=0).fit(PLAIN)
    np.testing.assert_allclose(model.components_[0], PLAIN.sum(axis=0) / PLAIN.sum(), atol=1e-3)


# --- features that never occur ----------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", ["given", "lda", "random"])
@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_a_feature_that_never_occurs_has_probability_zero_and_changes_nothing(data, X, topics):
    with_empty = np.insert(X, 7, 0, axis=1)
    narrow, wide = (data.topics, np.insert(data.topics, 7, 0, axis=1)) if topics == "given" else (topics, topics)
    without = MMPCA(4, 3, topics=narrow, n_init=2, random_state=0).fit(X)
    model = MMPCA(4, 3, topics=wide, n_init=2, random_state=0).fit(with_empty)
    assert (model.components_[:, 7] == 0).all()
    assert_keeps_its_invariants(model, with_empty)
    np.testing.assert_array_equal(model.labels_, without.labels_)
    assert model.n_epochs_ == without.n_epochs_
    for name in ("bound_", "icl_", "bound_history_"):  # up to the order of sums
        np.testing.assert_allclose(getattr(model, name), getattr(without, name), rtol=1e-13)
    np.testing.assert_allclose(model.cluster_topics_, without.cluster_topics_, rtol=1e-9)
    np.testing.assert_allclose(np.delete(model.components_, 7, axis=1), without.components_, rtol=1e-9)


@pytest.mark.parametrize("topics", ["lda", "random"])
@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_counts_of_a_feature_that_never_occurred_are_no_evidence_for_a_cluster(X, topics):
    with_empty = np.insert(X, 7, 0, axis=1)
    model = MMPCA(4, 3, topics=topics, n_init=1, random_state=0).fit(with_empty)
    assert (model.components_[:, 7] == 0).all()
    assert model.icl_ == pytest.approx(icl(model, 25), rel=1e-14)
    new = with_empty.copy()
    new[:, 7] = np.arange(80)
    for method in ("predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(model, method)(new), getattr(model, method)(with_empty))
    # The iteration starts from, and stops by, the length of the row with all its counts.
    np.testing.assert_allclose(model.transform(new), model.transform(with_empty), atol=1e-4)


# --- progress and log -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {}, {"n_jobs": 2}, {"n_init": "auto"}, {"algorithm": "exact"}, {"algorithm": "cvem"}, {"algorithm": "vbem"},
    {"topics": "random"}, {"refit_topics": True}, {"start": "random"}, {"max_epochs": 0},
    {"start": np.arange(80) % 4},
])  # fmt: skip
def test_every_fit_reports_its_stages_and_does_not_depend_on_being_watched(X, options, same_fit):
    sources = {"topics": "lda"} if options else {}
    options = {"n_clusters": 4, "n_topics": 3, "n_init": 2, "random_state": 0} | sources | options
    reports = []
    model = MMPCA(**options).fit(X, callback=reports.append)
    same_fit(model, MMPCA(**options).fit(X))
    expected = ["topics", "shares", "starts", "dispersion", "refit", "done"]
    if options.get("topics") == "random":
        expected.remove("topics")
    if "start" in options:
        expected.remove("shares")
    if "refit_topics" not in options:
        expected.remove("refit")
    assert list(dict.fromkeys(report.stage for report in reports)) == expected
    assert (reports[-1].share, reports[-1].seconds_left) == (1.0, 0.0)
    assert all(report.share is None or 0 <= report.share <= 1 for report in reports)
    assert all(report.seconds_left is None or report.seconds_left >= 0 for report in reports)


def test_the_callback_receives_start_epoch_moves_and_bound_of_each_block(data, X):
    reports = []
    model = MMPCA(4, 3, topics=data.topics, n_init=3, random_state=0).fit(X, callback=reports.append)
    searching = [report for report in reports if report.epoch > 0]
    assert {report.stage for report in searching} == {"starts"}
    assert [report.start for report in searching] == sorted(report.start for report in searching)
    for number, start in enumerate(model.starts_, start=1):
        own = [report for report in searching if report.start == number]
        assert sorted({report.epoch for report in own}) == list(range(1, start.n_epochs + 1))
        assert (np.diff([report.bound for report in own]) >= 0).all()
        assert own[-1].n_moves == 0
        assert own[-1].bound == pytest.approx(start.bound)
    assert max(report.n_moves for report in searching) > 0
    assert all(report.bound is None for report in reports if report.epoch == 0)


def log_records(caplog, X, verbose):
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="mmpca"):
        model = MMPCA(4, 3, n_init=3, verbose=verbose, random_state=0).fit(X)
    assert {record.name for record in caplog.records} <= {"mmpca"}
    return model, [record.args for record in caplog.records]


def test_verbose_logs_each_start_and_then_each_epoch_and_does_not_change_the_fit(X, model, caplog, same_fit):
    assert log_records(caplog, X, 0)[1] == []
    _, starts = log_records(caplog, X, 1)
    assert starts == [
        (number, start.kind, start.bound, start.n_epochs) for number, start in enumerate(model.starts_, start=1)
    ]
    verbose, records = log_records(caplog, X, 2)
    assert records[-3:] == starts
    epochs = [(number, epoch) for number, _, _, n_epochs in starts for epoch in range(1, n_epochs + 1)]
    assert [(number, epoch) for number, epoch, _ in records[:-3]] == epochs
    same_fit(verbose, model)


# --- merging the clusters ----------------------------------------------------------------------------------------


def test_clusters_merge_down_to_one_from_the_bound_of_the_model(X, model, scratch_bound):
    path = model.merge_path()
    assert path.bounds[-1] == pytest.approx(model.bound_, rel=1e-9)
    for n in (1, 2, 3):
        labels = path.groups(n)[model.labels_]
        assert path.bounds[n - 1] == pytest.approx(scratch_bound(X, labels, beta=model.components_), rel=1e-9)


def test_cluster_counts_are_the_sums_of_their_rows(X, model):
    for q, counts in enumerate(model.cluster_counts_):
        np.testing.assert_array_equal(counts, X[model.labels_ == q].sum(axis=0))


# --- errors -----------------------------------------------------------------------------------------------------

# A value that each rule rejects; tests/test_parameters.py has more.
BAD_PARAMETERS = {
    "n_clusters": [0, 2.5, [2]],
    "n_topics": [0, True],
    "topics": ["nmf", None, 3, [[1.0], [0.5, 0.5]]],
    "topic_prior": [0, 1e9, np.nan, "auto", [1.0], [1.0, 0.0], [1.0, np.nan], [[1.0, 1.0]]],
    "start": ["k-means", None, [[1.0], [0.5, 0.5]]],
    "n_init": [0, "Auto", None],
    "algorithm": ["GREEDY", None],
    "dispersion": ["dirichlet", None],
    "temperature": ["Auto", 0, None],
    "stabilize": ["log", True],
    "max_epochs": [-1, np.inf],
    "tol": [-1, None],
    "refit_topics": ["yes", 1],
    "n_jobs": [0, 1.5],
    "verbose": [-1, "loud"],
}


def assert_fit_fails(X, name=None, *, kind=ValueError, **parameters):
    """Assert that a fit fails with an error that contains a name, and leaves nothing behind; return the error."""
    model = MMPCA(**{"n_clusters": 2, "n_topics": 2} | parameters)
    with pytest.raises(kind, match=name) as caught:
        model.fit(X)
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]
    return caught.value


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_PARAMETERS.items() for value in values], ids=repr
)
def test_a_parameter_that_breaks_its_rule_is_named(X, name, value):
    assert_fit_fails(X, f"^{name} ", **{name: value})


def test_every_parameter_except_the_seed_has_a_rule_and_a_test():
    assert RULES.keys() == BAD_PARAMETERS.keys() == MMPCA().get_params().keys() - {"random_state"}


@pytest.mark.parametrize("seed", [-1, "x", 1.5])
def test_an_invalid_seed_is_an_error(X, seed):
    assert_fit_fails(X, "[Ss]eed", random_state=seed)  # scikit-learn's message


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_clusters", np.int8(3)), ("n_topics", np.uint64(2)), ("n_init", np.int64(1)), ("max_epochs", np.int32(0)),
     ("tol", 0), ("tol", np.float32(0.5)), ("topic_prior", 1), ("refit_topics", np.True_), ("verbose", True),
     ("n_jobs", -100), ("n_jobs", 1000)],
)  # fmt: skip
def test_unusual_but_valid_values_are_accepted(X, name, value):
    model = MMPCA(**({"n_clusters": 2, "n_topics": 2, "n_init": 1, "random_state": 0} | {name: value})).fit(X)
    assert np.isfinite(model.bound_)


def test_more_clusters_than_rows_are_an_error(X):
    assert_fit_fails(X[:5], "n_clusters=6", n_clusters=6)
    assert_fit_fails(X[:1], "n_clusters=8", n_clusters=8)
    assert MMPCA(5, 2, random_state=0).fit(X[:5]).labels_.max() == 4


def test_more_topics_than_features_are_an_error(X):
    columns = X[:, :3] + 1
    assert_fit_fails(columns, "n_topics=4", n_topics=4)
    assert MMPCA(2, 3, random_state=0).fit(columns).components_.shape == (3, 3)


@pytest.fixture(scope="module")
def words_by_texts():
    """Return 300 words in 12 texts, with totals that follow Zipf's law."""
    shares = 1 / np.arange(1, 301)
    return np.random.default_rng(0).multinomial(4000, shares / shares.sum(), size=12).T


@pytest.mark.parametrize(("name", "n"), [("n_clusters", 301), ("n_topics", 13)])
def test_a_table_that_looks_transposed_gets_a_hint(words_by_texts, name, n):
    hint = transposition_hint(as_counts(words_by_texts))
    assert hint in str(assert_fit_fails(words_by_texts, f"{name}={n}", **{name: n}))
    upright = assert_fit_fails(words_by_texts.T, "n_clusters=13", n_clusters=13)
    assert "transposed" not in str(upright)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda t: t.T, r"\(25, 3\)"),
        (lambda t: t[:2], r"\(2, 25\)"),
        (lambda t: t[:, :9], r"\(3, 9\)"),
        (lambda t: t[0], r"\(25,\)"),
        (lambda t: np.empty((0, 0)), r"\(0, 0\)"),
        (lambda t: 2 * t, "row 0"),
        (lambda t: t * [[1], [1 + 1e-5], [1]], "row 1"),
        (lambda t: 0 * t, "row 0"),
        (lambda t: t.astype(str), "topics"),
        (sparse.csr_array, "topics"),
        (lambda t: t * (1 + 0j), "topics"),
    ],
)
def test_topics_of_another_shape_sum_or_type_are_an_error(data, X, change, place):
    error = assert_fit_fails(X, place, n_topics=3, topics=change(data.topics))
    assert "topics" in str(error)


@pytest.mark.parametrize("value", [-0.25, np.nan, np.inf, -np.inf])
def test_topics_that_are_no_probabilities_are_an_error_with_the_place(data, X, value):
    topics = data.topics.copy()
    topics[2, 11] = value
    assert_fit_fails(X, r"topics\[2, 11\]", n_topics=3, topics=topics)


def test_every_feature_that_occurs_needs_a_topic(data, X):
    topics = data.topics.copy()
    topics[:, [6, 20]] = 0
    topics /= topics.sum(axis=1, keepdims=True)
    assert_fit_fails(X, rf"feature 6\b.*\b{X[:, 6].sum()}\b", n_topics=3, topics=topics)
    without = X.copy()
    without[:, [6, 20]] = 0
    assert (MMPCA(2, 3, topics=topics, random_state=0).fit(without).components_[:, [6, 20]] == 0).all()


def test_topics_that_sum_to_one_up_to_rounding_are_normalized(data, X):
    model = MMPCA(2, 3, topics=data.topics * (1 + 5e-7), refit_topics=False, n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-14)


def test_given_labels_are_checked(X):
    assert_fit_fails(X, "start", start=np.zeros(80, dtype=int))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("value", [-2, 0.5, np.nan, np.inf, 2.0**31, 2.0**63])
def test_a_value_that_is_no_count_is_an_error_with_the_place(X, model, form, value):
    values = X.astype(float)
    values[5, 7] = value
    error = assert_fit_fails(form(values), kind=CountsError)
    assert (error.row, error.column) == (5, 7)
    for method in ("predict", "predict_proba", "score", "transform"):
        with pytest.raises(CountsError) as caught:
            getattr(model, method)(form(values))
        assert (caught.value.row, caught.value.column) == (5, 7)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_the_largest_count_is_accepted(X):
    values = X.astype(np.int64)
    values[5, 7] = 2**31 - 1
    assert np.isfinite(MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(values).bound_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_without_counts_are_an_error_with_the_first_of_them(X, form):
    empty = X.copy()
    empty[[4, 9]] = 0
    error = assert_fit_fails(form(empty), kind=CountsError)
    assert (error.row, error.column) == (4, None)


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        ([1, 2, 3], ValueError),
        (5, ValueError),
        (np.ones((2, 2, 2)), ValueError),
        (np.ones((0, 3)), ValueError),
        (np.ones((3, 0)), ValueError),
        (np.ones((3, 2), dtype=complex), ValueError),
        (["a text", "another"], ValueError),
        ([["a", "b"], ["c", "d"]], CountsError),
        ([[1, None], [2, 3]], CountsError),
    ],
    ids=["vector", "scalar", "cube", "no rows", "no columns", "complex", "texts", "strings", "None"],
)
def test_anything_but_a_matrix_of_numbers_is_an_error(X, kind):
    assert_fit_fails(X, kind=kind)


def with_negative(X):
    return np.where(np.arange(X.shape[1]) == 3, -1, X)


FAILURES = {
    "bad counts": lambda model, X: model.fit(with_negative(X)),
    "bad parameter": lambda model, X: model.set_params(algorithm="best").fit(X),
    "too few rows": lambda model, X: model.fit(X[:3]),
    "bad topics": lambda model, X: model.set_params(topics=np.ones((3, 25))).fit(X),
    "bad labels": lambda model, X: model.set_params(start=np.zeros(80, dtype=int)).fit(X),
    "no matrix": lambda model, X: model.fit(X[0]),
    "bad counts of fewer features": lambda model, X: model.fit(with_negative(X[:, :9])),
    "too few rows of fewer features": lambda model, X: model.fit(X[:3, :9] + 1),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failed_fit_leaves_an_earlier_one_unchanged(X, failure, attributes_of):
    model = MMPCA(4, 3, topics="random", n_init=1, random_state=0).fit(X)
    before, predicted = attributes_of(model), model.predict(X)
    with pytest.raises(ValueError):  # noqa: PT011 - any of the errors above
        failure(model, X)
    after = attributes_of(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_a_failed_first_fit_leaves_the_model_unfitted(X):
    model = MMPCA(2, 2)
    with pytest.raises(CountsError):
        model.fit(with_negative(X))
    with pytest.raises(NotFittedError):
        model.predict(X)
