"""The fit: what it finds, what it leaves in the attributes, and the special cases it has to agree with."""

import logging

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA, engine, places
from mmpca.counts import as_counts
from mmpca.engine.bound import cluster_bound, mixture, responsibilities, ve_step
from mmpca.simulate import paper_design, sparse_topics

ALGORITHMS = ("greedy", "exact", "cvem")


def icl(model, n_features):
    """Return the paper's criterion from its formula."""
    n_clusters, n_topics, n_samples = model.n_clusters, model.n_topics, len(model.labels_)
    penalty = n_topics * (n_features - 1) / 2 * np.log(n_clusters) + (n_clusters - 1) / 2 * np.log(n_samples)
    return model.bound_ - penalty


def assert_keeps_its_invariants(model, X):
    """Assert what holds for every fit: shapes, types, sums, order of the bounds."""
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
    assert model.refit_bound_ >= model.bound_ * (1 + np.sign(-model.bound_) * 1e-13)  # up to rounding
    assert model.icl_ == pytest.approx(icl(model, (X.sum(axis=0) > 0).sum()), rel=1e-14)
    assert model.n_features_in_ == n_features


def best_gain(model, X, beta):
    """Return the highest gain of any single move from the fitted labels."""
    state = engine.build(as_counts(X), model.labels_, n_clusters=model.n_clusters, beta=beta, alpha=model.topic_prior)
    return max(engine.gain(state, i, q) for i in range(len(X)) for q in range(model.n_clusters))


# --- what it finds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
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
    other = MMPCA(4, 3, n_init=3, random_state=0)
    np.testing.assert_array_equal(other.fit_predict(X), model.labels_)
    assert other.fit(X) is other


# --- fitted attributes ------------------------------------------------------------------------------------------


def test_fitted_attributes_are_those_of_the_documentation(model, attributes_of):
    documented = {
        "labels_", "weights_", "components_", "cluster_topics_", "cluster_topic_params_", "bound_", "icl_",
        "refit_bound_", "bound_history_", "n_epochs_", "converged_", "n_features_in_",
        "starts_", "overdispersion_", "cluster_overdispersion_", "cluster_counts_",
    }  # fmt: skip
    assert attributes_of(model).keys() == documented
    assert all(f"\n    {name} : " in MMPCA.__doc__ for name in documented)
    assert isinstance(model.bound_, float)
    assert isinstance(model.icl_, float)
    assert isinstance(model.refit_bound_, float)
    assert isinstance(model.n_epochs_, int)
    assert isinstance(model.converged_, bool)


def test_fitted_attributes_keep_their_invariants(X, model):
    assert_keeps_its_invariants(model, X)
    assert model.n_epochs_ >= 1
    assert model.refit_bound_ > model.bound_


def test_the_bound_is_that_of_the_labels_under_the_topics_of_the_search(data, X, scratch_bound):
    model = MMPCA(4, 3, topics=data.topics, topic_prior=0.7, n_init=2, random_state=0).fit(X)
    assert model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=data.topics, alpha=0.7), rel=1e-12)
    refitted = scratch_bound(X, model.labels_, beta=model.components_, alpha=0.7)
    assert model.refit_bound_ == pytest.approx(refitted, rel=1e-9)


@pytest.mark.parametrize("refit", [False, True])
def test_the_posterior_of_each_cluster_belongs_to_the_bound(refit, scratch_bound):
    """Under a prior below one a cluster has several maxima: the posteriors are those that the search ended at."""
    n_other = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        topics = sparse_topics(4, 9, 1.0, random_state=rng)
        X = rng.poisson(2, (20, 9)) + 1
        model = MMPCA(
            3, 4, topics=topics, topic_prior=0.1, start="random", n_init=1, refit_topics=refit, random_state=seed
        ).fit(X)
        members = np.equal.outer(np.arange(3), model.labels_)
        sizes = members.sum(axis=1)
        clusters = [
            cluster_bound(m.astype(float), gamma, beta=model.components_, alpha=0.1)
            for m, gamma in zip(members @ X, model.cluster_topic_params_, strict=True)
        ]
        assert model.refit_bound_ == pytest.approx(sum(clusters) + sizes @ np.log(sizes / 20), rel=1e-9)
        fresh = scratch_bound(X, model.labels_, beta=topics, alpha=0.1)
        n_other += abs(model.bound_ - fresh) > 1e-6 * abs(fresh)
    assert n_other > 0  # or the test would show nothing


def test_without_refit_the_topics_of_the_search_are_kept(data, X):
    model = MMPCA(4, 3, topics=data.topics, refit_topics=False, n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, data.topics, rtol=1e-15)
    assert model.refit_bound_ == model.bound_
    assert_keeps_its_invariants(model, X)


def test_refitting_the_topics_changes_neither_labels_nor_bound(data, X, same_fit):
    fits = [MMPCA(4, 3, refit_topics=refit, n_init=2, random_state=0).fit(X) for refit in (False, True)]
    changed = ("components_", "cluster_topics_", "cluster_topic_params_", "refit_bound_", "overdispersion_",
               "cluster_overdispersion_")  # fmt: skip
    same_fit(*fits, leaving_out=changed)
    assert not np.array_equal(fits[0].components_, fits[1].components_)


def test_refitted_topics_are_those_of_the_m_step_at_their_own_fixed_point(X, model):
    """beta_kv is proportional to sum_q M_qv phi_qvk."""
    members = np.equal.outer(np.arange(4), model.labels_)
    expected = np.zeros_like(model.components_)
    for m, gamma in zip(members @ X, model.cluster_topic_params_, strict=True):
        expected += m * responsibilities(model.components_, gamma).T
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.components_, expected, atol=5e-4)


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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_init", [1, 3])
def test_the_result_is_bit_identical_for_any_number_of_jobs(X, algorithm, n_init, same_fit, monkeypatch):
    monkeypatch.setattr(places, "ROWS_PER_TASK", 5)  # so that the rows of one block are shared out as well
    fits = [
        MMPCA(4, 3, algorithm=algorithm, n_init=n_init, n_jobs=n_jobs, random_state=0).fit(X)
        for n_jobs in (None, 1, 2, 5)
    ]
    for other in fits[1:]:
        same_fit(fits[0], other)


def test_the_same_seed_gives_the_same_fit_and_another_seed_another(X, model, same_fit):
    same_fit(model, MMPCA(4, 3, n_init=3, random_state=0).fit(X))
    other = MMPCA(4, 3, n_init=3, random_state=1).fit(X)
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


def test_given_topics_are_used_in_whatever_form_they_come(data, X, same_fit):
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
    model = MMPCA(4, 3, algorithm=algorithm, start="random", n_init=1, random_state=seed).fit(X)
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


def test_the_algorithms_take_ways_of_their_own(data, X):
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
    stabilized = MMPCA(4, 3, stabilize="sqrt", n_init=2, random_state=0).fit(counts)
    plain = MMPCA(4, 3, n_init=2, random_state=0).fit(roots)
    same_fit(stabilized, plain)
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


def test_one_topic_is_the_column_shares_and_makes_one_cluster_as_large_as_can_be(X):
    """With one topic no row tells anything about its cluster: only the term of the sizes is left to maximise."""
    model = MMPCA(4, 1, n_init=2, random_state=0).fit(X)
    shares = X.sum(axis=0) / X.sum()
    np.testing.assert_allclose(model.components_, shares[None], rtol=1e-9)
    np.testing.assert_array_equal(model.cluster_topics_, np.ones((4, 1)))
    assert sorted(np.bincount(model.labels_)) == [1, 1, 1, 77]
    sizes = np.array([1, 1, 1, 77])
    expected = X.sum(axis=0) @ np.log(shares) + sizes @ np.log(sizes / 80)
    assert model.refit_bound_ == pytest.approx(expected, rel=1e-12)
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
    model = MMPCA(4, 3, start=start, algorithm=algorithm, n_init=2, random_state=0).fit(same)
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
def test_the_largest_counts_are_fitted_as_well(data, X, algorithm):
    huge = X.astype(np.int64) * ((2**31 - 1) // X.max())
    model = MMPCA(4, 3, algorithm=algorithm, n_init=2, random_state=0).fit(huge)
    assert_keeps_its_invariants(model, huge)
    assert model.converged_
    assert adjusted_rand_score(data.labels, model.labels_) > 0.5
    np.testing.assert_allclose(model.predict_proba(huge).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("prior", "seed"),
    [
        (0.3, 2),
        (0.3, 3),
        (1.0, 4),
        (1.0, 2),
    ],
)
def test_the_bound_of_rows_that_hardly_differ_but_are_very_long_never_falls(prior, seed):
    X = np.random.default_rng(1000 + seed).poisson(1e8, (22, 5))
    model = MMPCA(9, 3, topic_prior=prior, n_init=1, random_state=seed).fit(X + 1)
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
    for name in ("bound_", "icl_", "bound_history_", "refit_bound_"):  # up to the order of sums
        np.testing.assert_allclose(getattr(model, name), getattr(without, name), rtol=1e-13)
    np.testing.assert_allclose(model.cluster_topics_, without.cluster_topics_, rtol=1e-9)
    np.testing.assert_allclose(np.delete(model.components_, 7, axis=1), without.components_, rtol=1e-9)


@pytest.mark.parametrize("topics", ["lda", "random"])
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_counts_of_a_feature_that_never_occurred_are_passed_over(X, topics, refit):
    with_empty = np.insert(X, 7, 0, axis=1)
    model = MMPCA(4, 3, topics=topics, refit_topics=refit, n_init=1, random_state=0).fit(with_empty)
    assert (model.components_[:, 7] == 0).all()
    assert model.icl_ == pytest.approx(icl(model, 25), rel=1e-14)
    new = with_empty.copy()
    new[:, 7] = np.arange(80)
    for method in ("predict", "predict_proba", "score"):
        np.testing.assert_array_equal(getattr(model, method)(new), getattr(model, method)(with_empty))
    # The iteration starts from, and stops by, the length of the row with all its counts.
    np.testing.assert_allclose(model.transform(new), model.transform(with_empty), atol=1e-4)


# --- messages ---------------------------------------------------------------------------------------------------


def messages(caplog, X, verbose):
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="mmpca"):
        model = MMPCA(4, 3, n_init=3, verbose=verbose, random_state=0).fit(X)
    assert {record.name for record in caplog.records} <= {"mmpca"}
    return model, [record.getMessage() for record in caplog.records]


def test_verbose_reports_each_start_and_then_each_epoch_through_the_logger(X, model, caplog):
    _, silent = messages(caplog, X, 0)
    assert silent == []
    _, starts = messages(caplog, X, 1)
    assert [line.split(":")[0] for line in starts] == ["start 1 (kmeans)", "start 2 (random)", "start 3 (anneal)"]
    best = max(starts, key=lambda line: float(line.split("bound ")[1].split()[0]))  # the first of equals
    assert best.endswith(f"bound {model.bound_:.3f} after {model.n_epochs_} epochs")
    _, epochs = messages(caplog, X, 2)
    assert epochs[-3:] == starts
    n_epochs = [int(line.split()[-2]) for line in starts]
    for number, n in enumerate(n_epochs, start=1):
        own = [line for line in epochs[:-3] if line.startswith(f"start {number}, ")]
        assert [line.split(":")[0] for line in own] == [f"start {number}, epoch {e}" for e in range(1, n + 1)]
        assert own[-1].endswith(": 0 moves")
    assert len(epochs) == 3 + sum(n_epochs)


def test_verbose_does_not_change_the_fit(X, model, caplog, same_fit):
    same_fit(messages(caplog, X, 2)[0], model)


# --- the clusters' hierarchy ------------------------------------------------------------------------------------


def test_clusters_merge_down_to_one_from_the_bound_of_the_model(X, model, scratch_bound):
    path = model.merge_path()
    assert path.bounds[-1] == pytest.approx(model.refit_bound_, rel=1e-9)
    for n in (1, 2, 3):
        labels = path.groups(n)[model.labels_]
        assert path.bounds[n - 1] == pytest.approx(scratch_bound(X, labels, beta=model.components_), rel=1e-9)


def test_cluster_counts_are_the_sums_of_their_rows(X, model):
    for q, counts in enumerate(model.cluster_counts_):
        np.testing.assert_array_equal(counts, X[model.labels_ == q].sum(axis=0))
