"""Explanations add up to the log-odds, name the features that decide, and are as sure as they may be."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mmpca import MMPCA
from mmpca.model.explanation import judge


def fixed(profiles, weights, *, names=None):
    """Return a model whose clusters have the given profiles: a topic each."""
    profiles = np.asarray(profiles, dtype=float)
    n_clusters, n_features = profiles.shape
    model = MMPCA(n_clusters, n_clusters, topics=profiles, max_epochs=0, n_init=1)
    model.n_features_in_ = n_features
    model.components_, model.cluster_topics_ = profiles, np.eye(n_clusters)
    model.weights_, model.overdispersion_ = np.asarray(weights), 1.0
    model.labels_, model.cluster_counts_ = np.arange(n_clusters, dtype=np.int32), np.round(40 * profiles)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


@pytest.fixture
def two():
    return fixed([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [0.25, 0.75])


# --- the numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [0, 1, 3, 10, 100])
def test_evidence_sizes_and_the_rest_sum_to_the_margin(model, X, n_features):
    for why in model.explain(X, n_features=n_features):
        listed = why.evidence_for + why.evidence_against
        assert sum(part.nats for part in listed) + why.from_sizes + why.from_others == pytest.approx(
            why.margin, abs=1e-9
        )
        assert max(len(why.evidence_for), len(why.evidence_against)) <= n_features


def test_clusters_probabilities_and_log_odds_are_those_of_the_prediction(model, X):
    probabilities, joint = model.predict_proba(X), model._joint(X)
    for i, why in enumerate(model.explain(X, labels=model.predict(X))):
        assert why.row == i
        assert why.probability == pytest.approx(probabilities[i, why.cluster], rel=1e-12)
        assert [other.cluster for other in why.alternatives] == [q for q in np.argsort(-joint[i]) if q != why.cluster]
        for other in why.alternatives:
            assert other.log_odds == pytest.approx(joint[i, other.cluster] - joint[i, why.cluster], abs=1e-9)
            assert other.probability == pytest.approx(probabilities[i, other.cluster], rel=1e-12)
        assert (why.runner_up, why.margin) == (why.alternatives[0].cluster, -why.alternatives[0].log_odds)
        assert why.margin >= 0


def test_a_worked_example(two):
    (why,) = two.explain([[3, 5, 1]])
    assert (why.cluster, why.runner_up) == (0, 1)
    assert why.from_sizes == pytest.approx(-np.log(3))
    assert why.evidence_for == ((0, "feature 0", 3, pytest.approx(3 * np.log(2)), None),)
    assert why.evidence_against == ((2, "feature 2", 1, pytest.approx(-np.log(2)), None),)
    assert why.from_others == 0
    assert why.margin == pytest.approx(np.log(4 / 3))
    assert why.probability == pytest.approx(4 / 7)
    assert why.verdict == "borderline"


def test_evidence_is_sorted_by_its_weight_and_the_rest_is_what_is_left_out():
    model = fixed([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], [0.5, 0.5])
    (why,) = model.explain([[1, 9, 1, 1]], n_features=1)
    assert [part.feature for part in why.evidence_for] == [1]
    assert [part.feature for part in why.evidence_against] == [3]
    assert why.from_others == pytest.approx(np.log(4) + np.log(2 / 3))


def test_removing_a_feature_changes_the_margin_by_its_evidence(model, X):
    why = model.explain(X, [7], n_features=100)[0]
    for part in why.evidence_for + why.evidence_against:
        without = X[7].copy()
        without[part.feature] = 0
        joint = model._joint(without[None])[0]
        assert why.margin - part.nats == pytest.approx(joint[why.cluster] - joint[why.runner_up], abs=1e-9)


# --- rows, labels, names ----------------------------------------------------------------------------------------


def test_rows_are_chosen_by_number_in_any_order_and_from_the_end(model, X):
    every = model.explain(X, gains=True)
    assert model.explain(X, [5, 2, -1, 5]) == [every[5], every[2], every[79], every[5]]
    assert model.explain(X, 5) == [every[5]]
    assert model.explain(X, []) == []


def test_labels_are_explained_where_they_are_given(model, X):
    worst = model._joint(X).argmin(axis=1)
    for i, why in zip([3, 0], model.explain(X, [3, 0], labels=worst), strict=True):
        assert why.row == i
        assert why.cluster == worst[i]
        assert why.margin < 0
        assert why.verdict == "borderline"
        assert why.runner_up == model.predict(X)[i]


def test_fitted_rows_are_explained_where_they_are_and_others_where_they_would_be_put(model, X):
    assert (model.labels_ != model.predict(X)).any()
    assert [why.cluster for why in model.explain(X)] == model.labels_.tolist()
    assert [why.cluster for why in model.explain(X[:79])] == model.predict(X[:79]).tolist()


def test_features_go_by_their_names(X):
    names = [f"word {v}" for v in range(X.shape[1])]
    model = MMPCA(4, 3, n_init=1, random_state=0).fit(pd.DataFrame(X, columns=names))
    for why in model.explain(pd.DataFrame(X, columns=names)):
        for part in why.evidence_for + why.evidence_against:
            assert part.name == names[part.feature]
            assert part.occurrences == X[why.row, part.feature]


def test_sparse_and_dense_rows_are_explained_alike(model, X):
    assert model.explain(sparse.csr_array(X)) == model.explain(X)


def test_square_roots_are_explained_as_the_model_sees_them(X):
    model = MMPCA(3, 2, n_init=1, stabilize="sqrt", random_state=0).fit(9 * X)
    part = model.explain(9 * X, [0])[0].evidence_for[0]
    assert part.occurrences == round(np.sqrt(9 * X[0, part.feature]))


# --- special cases ----------------------------------------------------------------------------------------------


def test_a_row_without_counts_is_explained_by_the_sizes_alone(two):
    (why,) = two.explain([[0, 0, 0]])
    assert why.cluster == 1
    assert (why.evidence_for, why.evidence_against, why.from_others) == ((), (), 0.0)
    assert why.margin == pytest.approx(why.from_sizes)


def test_one_cluster_has_no_alternative():
    (why,) = fixed([[0.5, 0.5]], [1.0]).explain([[2, 1]])
    assert (why.cluster, why.probability, why.verdict, why.runner_up, why.margin) == (0, 1.0, "clear", None, np.inf)
    assert why.alternatives == ()


def test_a_feature_that_no_topic_knows_says_nothing():
    model = fixed([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]], [0.5, 0.5])
    known, unknown = model.explain([[2, 1, 0], [2, 1, 50]])
    assert unknown.evidence_for == known.evidence_for
    assert unknown.margin == pytest.approx(known.margin)


@pytest.mark.parametrize(
    ("odds", "verdict"),
    [(1.0, "borderline"), (2.9, "borderline"), (3.1, "likely"), (98.0, "likely"), (100.0, "clear"), (1e300, "clear")],
)
def test_verdicts_follow_the_probability(odds, verdict):
    assert judge(np.log([odds, 1.0]), 0, 1.0) == verdict
    assert judge(np.log([odds, 1.0]), 0, np.nan) == verdict
    assert judge(np.log([odds, 1.0]), 0, 0.5) == verdict
    assert judge(np.log([1.0, odds]), 1, 1.0) == verdict


def test_overdispersed_counts_are_less_sure():
    assert judge(np.log([1000.0, 1.0]), 0, 1.0) == "clear"
    assert judge(np.log([1000.0, 1.0]), 0, 3.0) == "likely"
    assert judge(np.log([1000.0, 1.0]), 0, 10.0) == "borderline"


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": [80]}, "rows must be from 0 to 79, but there is 80"),
        ({"rows": [-81]}, "there is -81"),
        ({"rows": [0.5]}, "rows must be whole numbers"),
        ({"rows": [[0]]}, r"they have shape \(1, 1\)"),
        ({"rows": np.ones(80, dtype=bool)}, "numpy.flatnonzero"),
        ({"labels": [0, 1]}, r"one for each of the 80 rows of X, but they have shape \(2,\)"),
        ({"labels": np.full(80, 4)}, r"labels must be from 0 to 3, but labels\[0\] = 4"),
        ({"labels": np.full(80, 0.5)}, "type float64"),
        ({"n_features": -1}, "n_features must be a whole number of at least 0, but it is -1"),
        ({"n_features": 1.5}, "but it is 1.5"),
    ],
)
def test_what_cannot_be_explained_is_refused(model, X, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.explain(X, **arguments)


def test_a_model_that_is_not_fitted_explains_nothing(X):
    with pytest.raises(NotFittedError):
        MMPCA().explain(X)
