"""Using a fit: features matched by name, clusters and topic shares of new rows, rows drawn from the model."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import learning_curve

import mmpca
from mmpca import MMPCA
from mmpca.counts import as_counts
from mmpca.engine.bound import ve_step
from mmpca.errors import CountsError
from mmpca.model.prediction import (
    SMOOTHINGS,
    ClusterMixture,
    align_features,
    choose_smoothing,
    joint_in_blocks,
    joint_log_likelihood,
    note_on_positions,
    scores_of,
    smoothed_topics,
)
from mmpca.simulate import paper_design, simulate_mmpca


@pytest.fixture(scope="module")
def new_rows(data):
    """Return new rows with totals of 1 to 500."""
    lengths = np.repeat([1, 2, 5, 60, 500], 8)
    drawn = simulate_mmpca(40, topics=data.topics, cluster_topics=data.cluster_topics, lengths=lengths, random_state=9)
    return drawn.X.toarray()


def brute_force_joint(model, X):
    """Return log pi_q + sum_v x_iv log (theta_q beta)_v, term by term, with smoothed topics."""
    n_tokens = [sum(model.cluster_counts_[q].sum() * theta[k] for q, theta in enumerate(model.cluster_topics_))
                for k in range(model.n_topics)]  # fmt: skip
    n_present = (model.cluster_counts_.sum(axis=0) > 0).sum()
    joint = np.empty((len(X), model.n_clusters))
    for i, x in enumerate(X):
        for q, theta in enumerate(model.cluster_topics_):
            joint[i, q] = np.log(model.weights_[q])
            for v in np.flatnonzero(x):
                profile = sum(
                    theta[k]
                    * (n_tokens[k] * model.components_[k, v] + model.smoothing_)
                    / (n_tokens[k] + model.smoothing_ * n_present)
                    for k in range(model.n_topics)
                )
                joint[i, q] += x[v] * np.log(profile)
    return joint


# --- before the fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda model, X: model.predict(X),
        lambda model, X: model.predict_proba(X),
        lambda model, X: model.score(X),
        lambda model, X: model.transform(X),
        lambda model, X: model.explain(X),
        lambda model, X: model.sample(),
        lambda model, X: model.get_feature_names_out(),
    ],
)
def test_a_model_has_to_be_fitted_before_it_is_used(X, use):
    with pytest.raises(NotFittedError):
        use(MMPCA(), X)


# --- features matched by name -----------------------------------------------------------------------------------

LETTERS = st.sampled_from("abcdefgh")


@settings(max_examples=50)
@given(names=st.lists(LETTERS, max_size=12), known=st.lists(LETTERS, unique=True, min_size=1), seed=st.integers(0, 99))
def test_alignment_sums_columns_by_name(names, known, seed):
    X = np.random.default_rng(seed).integers(0, 4, size=(3, len(names)))
    if not set(names) & set(known):
        with pytest.raises(CountsError):
            align_features(sparse.csr_array(X), names, known)
        return
    aligned = align_features(sparse.csr_array(X), names, known)
    for v, name in enumerate(known):
        columns = [u for u, other in enumerate(names) if other == name]
        np.testing.assert_array_equal(aligned.X.toarray()[:, v], X[:, columns].sum(axis=1))
    assert aligned.n_unseen == sum(name not in known for name in names)
    assert aligned.unseen_total == X[:, [u for u, name in enumerate(names) if name not in known]].sum()
    assert aligned.n_missing == len(set(known) - set(names))
    assert len(aligned.notes()) == (aligned.n_unseen > 0) + (aligned.n_missing > 0)


def test_alignment_keeps_the_dtype_of_counts():
    X = sparse.csr_array(np.array([[1, 0], [2, 3]], dtype=np.int32))
    assert align_features(X, ["a", "b"], np.array(["b", "a"], dtype=object)).X.dtype == np.int32


def test_columns_with_the_same_name_add_up_beyond_the_largest_number_of_their_type():
    X = sparse.csr_array(np.array([[2**31 - 1, 2**31 - 1, 1]], dtype=np.int32))
    assert align_features(X, ["a", "a", "b"], ["a", "b"]).X.toarray().tolist() == [[2**32 - 2, 1]]
    assert align_features(X, ["a", "b", "c"], ["c"]).unseen_total == 2**32 - 2


def test_matching_by_position_is_noted_if_only_one_side_has_names():
    assert [len(note_on_positions(*named)) for named in ((True, True), (False, False))] == [0, 0]
    assert [len(note_on_positions(*named)) for named in ((True, False), (False, True))] == [1, 1]


def test_a_model_with_two_features_of_one_name_cannot_be_matched():
    with pytest.raises(CountsError):
        align_features(sparse.csr_array([[1]]), ["a"], ["a", "a"])


# --- smoothing --------------------------------------------------------------------------------------------------


def score_without_each_row(X, labels, topics, cluster_topics, smoothing):
    """Return the log-likelihood of all rows under topics from which each is taken out, token by token."""
    totals = sum(X[i].sum() * cluster_topics[labels[i]] for i in range(len(X)))  # (K,)
    score = 0.0
    for x, theta in zip(X, cluster_topics[labels], strict=True):
        phi = theta[:, None] * topics / (theta @ topics)  # (K, V)
        counts = np.maximum(totals[:, None] * topics - x * phi, 0) + smoothing
        score += x @ np.log(theta @ (counts / (totals - phi @ x + smoothing * X.shape[1])[:, None]))
    return score


def test_the_smoothing_is_the_one_under_which_rows_left_out_are_most_probable():
    rng = np.random.default_rng(0)
    topics, theta = rng.dirichlet(np.full(60, 0.1), 3) * 0.9 + 0.1 / 60, rng.dirichlet(np.ones(3), 4)
    chosen = set()
    for n_rows in (12, 40, 400):
        labels = (np.arange(n_rows) % 4).astype(np.int32)
        X = np.stack([rng.multinomial(30, theta[q] @ topics) for q in labels])
        X[0] += 1  # every feature occurs
        # Topics as a fit of these rows would have them.
        fitted = topics * 0.5 + 0.5 * X[: len(X) // 3].sum(axis=0) / X[: len(X) // 3].sum()
        counts = np.stack([X[labels == q].sum(axis=0) for q in range(4)])
        scores = [score_without_each_row(X, labels, fitted, theta, smoothing) for smoothing in SMOOTHINGS]
        expected = SMOOTHINGS[int(np.argmax(scores))]
        assert choose_smoothing(as_counts(X), labels, fitted, theta, counts) == expected
        chosen.add(expected)
    assert len(chosen) > 1  # otherwise a constant would pass


def test_smoothing_adds_counts_to_features_that_occur(model):
    features = (model.components_, model.cluster_topics_, model.cluster_counts_)
    assert smoothed_topics(*features, 0.0) is model.components_
    smoothed = smoothed_topics(*features, 10.0)
    np.testing.assert_allclose(smoothed.sum(axis=1), 1)
    n_tokens = model.cluster_counts_.sum(axis=1) @ model.cluster_topics_
    expected = (n_tokens[:, None] * model.components_ + 10) / (n_tokens + 10 * model.components_.shape[1])[:, None]
    np.testing.assert_allclose(smoothed, expected, rtol=1e-12)


def test_given_topics_are_not_smoothed(model, X):
    assert MMPCA(4, 3, topics=model.components_, n_init=1, random_state=0).fit(X).smoothing_ == 0


# --- clusters ---------------------------------------------------------------------------------------------------


def test_predict_is_the_brute_force_maximum(model, new_rows):
    predicted = model.predict(new_rows)
    assert predicted.dtype == np.int32
    np.testing.assert_array_equal(predicted, brute_force_joint(model, new_rows).argmax(axis=1))
    assert len(np.unique(predicted)) == 4


def test_probabilities_follow_bayes_rule_and_their_maximum_is_predicted(model, new_rows):
    probabilities = model.predict_proba(new_rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(new_rows))
    joint = np.exp(brute_force_joint(model, new_rows[:24]) / model.temperature_)  # short rows: nothing underflows
    np.testing.assert_allclose(probabilities[:24], joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_score_is_the_mean_log_likelihood(model, new_rows):
    short = new_rows[:24]
    expected = np.log(np.exp(brute_force_joint(model, short)).sum(axis=1)).mean()
    score = model.score(short)
    assert isinstance(score, float)
    assert score == pytest.approx(expected, rel=1e-12)
    assert score == model.score(short, y=np.zeros(24))


def test_the_score_of_long_rows_does_not_underflow(model, new_rows):
    joint = brute_force_joint(model, 1000 * new_rows)
    assert np.exp(joint).max() == 0
    assert model.score(1000 * new_rows) == pytest.approx(joint.max(axis=1).mean(), rel=1e-3)


def test_most_fitted_rows_are_predicted_into_their_own_cluster(X, model):
    assert (model.predict(X) == model.labels_).mean() > 0.95


def test_empty_rows_are_predicted_into_the_largest_cluster(X, model):
    predicted = model.predict(np.zeros((3, 25)))
    assert predicted.tolist() == [model.weights_.argmax()] * 3
    tempered = model.weights_ ** (1 / model.temperature_)
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 25)))[0], tempered / tempered.sum(), rtol=1e-12)
    assert model.score(np.zeros((2, 25))) == pytest.approx(0, abs=1e-12)


def test_predictions_of_a_row_do_not_depend_on_other_rows(model, new_rows):
    alone = np.concatenate([model.predict_proba(row[None]) for row in new_rows])
    np.testing.assert_array_equal(alone, model.predict_proba(new_rows))
    alone = np.concatenate([model.transform(row[None]) for row in new_rows])
    np.testing.assert_array_equal(alone, model.transform(new_rows))


def test_rows_are_scored_in_blocks_that_cover_them_all(model, new_rows):
    scores = scores_of(model.mixture())
    blocks = list(joint_in_blocks(as_counts(new_rows), scores, block_size=7))
    assert [len(joint) for _, joint in blocks] == [7, 7, 7, 7, 7, 5]
    joint = np.empty((40, 4))
    for block, values in blocks:
        joint[block] = values
    np.testing.assert_array_equal(joint, model._joint(new_rows))


# --- features unseen in fitting ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unseen():
    """Return a model of 22 counts that has not seen the last two of its four features."""
    return MMPCA(2, 2, random_state=0).fit([[5, 1, 0, 0], [1, 5, 0, 0], [4, 1, 0, 0], [1, 4, 0, 0]])


def test_unseen_features_are_improbable(unseen):
    assert unseen.score([[0, 0, 1, 0]]) == pytest.approx(np.log(1 / 23 / 2), rel=1e-12)
    assert unseen.score([[0, 0, 100, 0]]) == pytest.approx(100 * np.log(1 / 23 / 2), rel=1e-12)
    seen = unseen.score([[3, 4, 0, 0]])
    assert unseen.score([[3, 4, 0, 2]]) == pytest.approx(seen + 2 * np.log(1 / 23 / 2), rel=1e-12)


@pytest.mark.parametrize("length", [1, 2])
def test_probabilities_of_all_possible_rows_sum_to_one(unseen, length):
    rows = np.array([np.bincount(tokens, minlength=4) for tokens in np.ndindex(*[4] * length)])
    assert sum(np.exp(unseen.score(row[None])) for row in rows) == pytest.approx(1, rel=1e-12)


def test_a_score_without_unseen_features_is_the_plain_likelihood(model, new_rows):
    assert (model.components_ > 0).any(axis=0).all()
    joint = joint_log_likelihood(as_counts(new_rows), model.mixture())
    assert model.score(new_rows) == np.mean(logsumexp(joint, axis=1))


def test_unseen_features_change_no_prediction(unseen):
    rows, others = np.array([[3, 1, 0, 0], [1, 2, 0, 0]]), np.array([[3, 1, 9, 0], [1, 2, 0, 7]])
    np.testing.assert_array_equal(unseen.predict_proba(others), unseen.predict_proba(rows))
    np.testing.assert_array_equal(unseen.predict(others), unseen.predict(rows))


def test_a_learning_curve_prefers_more_rows():
    X = paper_design(n_samples=120, random_state=0).X
    sizes, _, scores = learning_curve(
        MMPCA(3, 3, topics="lda", n_init=1, random_state=0), X, None, train_sizes=[5, 80], cv=3
    )
    assert sizes.tolist() == [5, 80]
    assert (scores[0] < scores[1]).all()


def test_a_profile_that_underflows_is_not_taken_for_an_unseen_feature():
    topics = np.array([[1.0, 0.0], [0.0, 1.0]])
    joint = joint_log_likelihood(
        as_counts([[0, 1]]), ClusterMixture(1e-200 * topics, np.array([[1, 1e-200], [0.5, 0.5]]), np.ones(2))
    )
    assert joint[0, 0] < joint[0, 1] < -400


# --- parameters changed after the fit -----------------------------------------------------------------------------

CHANGED = {"stabilize": "sqrt", "topic_prior": 50.0, "n_clusters": 9, "n_topics": 2}


@pytest.mark.parametrize("name", CHANGED)
def test_a_parameter_changed_after_the_fit_changes_no_result(X, new_rows, name, tmp_path):
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(X)

    def results(model):
        explained = model.explain(X, [3], gains=True)[0]
        found = [model.predict_proba(new_rows), model.transform(new_rows), model.score(new_rows)]
        found += [model.merge_path().bounds, [other.gain for other in explained.alternatives]]
        return [*found, model.sample(3, random_state=0)[0].toarray()]

    before = results(model)
    model.set_params(**{name: CHANGED[name]})
    model.save(tmp_path / "model")
    for changed in (model, mmpca.load(tmp_path / "model")):
        for one, other in zip(results(changed), before, strict=True):
            np.testing.assert_array_equal(one, other)


# --- topic space ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.3, 1.0, 10.0])
def test_transform_is_the_fixed_point_of_each_row(X, new_rows, prior):
    model = MMPCA(4, 3, topic_prior=prior, topics="lda", n_init=1, random_state=0).fit(X)
    shares = model.transform(new_rows)
    gamma = np.array([ve_step(x, beta=model.components_, alpha=prior) for x in new_rows.astype(float)])
    np.testing.assert_allclose(shares, gamma / gamma.sum(axis=1, keepdims=True), atol=2e-4)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_transform_gives_an_empty_row_equal_shares(model):
    np.testing.assert_allclose(model.transform(np.zeros((1, 25))), np.full((1, 3), 1 / 3), rtol=1e-12)


def test_fit_transform_is_fit_and_then_transform(X, model):
    np.testing.assert_array_equal(
        MMPCA(4, 3, topics="lda", n_init=3, random_state=0).fit_transform(X), model.transform(X)
    )


# --- drawing rows -----------------------------------------------------------------------------------------------


def test_a_sample_has_the_mean_total_of_the_fitted_rows_by_default(X):
    uneven = X.copy()
    uneven[:40] *= 3
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(uneven)
    drawn, labels = model.sample(7, random_state=0)
    assert drawn.shape == (7, 25)
    assert labels.shape == (7,)
    assert (drawn.sum(axis=1) == round(uneven.sum() / 80)).all()
    assert (model.sample(7, lengths=11, random_state=0)[0].sum(axis=1) == 11).all()
    lengths = np.arange(1, 8)
    np.testing.assert_array_equal(model.sample(7, lengths=lengths, random_state=0)[0].sum(axis=1), lengths)
    assert model.sample(random_state=0)[0].shape == (1, 25)


def test_the_same_seed_draws_the_same_sample(model):
    first, again, other = (model.sample(20, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0].toarray(), again[0].toarray())
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0].toarray(), other[0].toarray())


def test_a_sample_follows_the_weights_and_the_profiles_of_the_clusters(model):
    n_samples, length = 5000, 40
    drawn, labels = model.sample(n_samples, lengths=length, random_state=0)
    shares = np.bincount(labels, minlength=4) / n_samples
    assert (np.abs(shares - model.weights_) <= 4 * np.sqrt(model.weights_ / n_samples)).all()
    profiles = model.cluster_topics_ @ model.components_
    assert np.abs(profiles[:, None] - profiles[None]).max() > 0.05  # they differ by more than the tolerance below
    for q, profile in enumerate(profiles):
        tokens = drawn[labels == q].sum(axis=0)
        error = np.abs(tokens / tokens.sum() - profile)
        assert (error <= 5 * np.sqrt(profile / tokens.sum())).all()


def test_refitting_a_sample_recovers_its_clusters(paper):
    model = MMPCA(6, 4, topics="lda", n_init=2, random_state=0).fit(paper.X)
    drawn, labels = model.sample(300, random_state=1)
    again = MMPCA(6, 4, topics="lda", n_init=2, random_state=0).fit(drawn)
    assert adjusted_rand_score(labels, again.labels_) > 0.95
    assert adjusted_rand_score(labels, model.predict(drawn)) > 0.95


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_samples": 0},
        {"lengths": 0},
        {"lengths": 2.5},
        {"n_samples": 3, "lengths": [1, 2]},
        {"random_state": "x"},
    ],
)
def test_a_sample_that_cannot_be_drawn_is_an_error(model, arguments):
    with pytest.raises(ValueError, match=next(reversed(arguments))):
        model.sample(**arguments)


def test_long_rows_are_drawn_in_memory_for_their_features_only(model):
    tracemalloc.start()
    drawn, labels = model.sample(3, lengths=[10**8, 20, 10**15], random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert drawn.sum(axis=1).tolist() == [10**8, 20, 10**15]
    profile = (model.cluster_topics_ @ model.components_)[labels[0]]
    np.testing.assert_allclose(drawn.toarray()[0] / 10**8, profile, atol=5 * np.sqrt(1e-8))
