"""Explanations add up to the log-odds, and gains equal differences of bounds computed from scratch."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import xlogy

from mmpca import MMPCA
from mmpca.counts import as_counts
from mmpca.engine.bound import cluster_bound, mixture, partition_bound, ve_step
from mmpca.model.explanation import judge


def fixed(profiles, weights, *, names=None):
    """Return a model whose clusters have the given profiles, one topic each."""
    profiles = np.asarray(profiles, dtype=float)
    n_clusters, n_features = profiles.shape
    model = MMPCA(n_clusters, n_clusters, topics=profiles, max_epochs=0, n_init=1)
    model.n_features_in_ = n_features
    model.components_, model.cluster_topics_ = profiles, np.eye(n_clusters)
    model.weights_, model.overdispersion_ = np.asarray(weights), 1.0
    model.topic_prior_, model.stabilize_, model.smoothing_, model.temperature_ = 1.0, None, 0.0, 1.0
    model.dispersion_, model.cluster_topic_params_ = "multinomial", 1.0 + 40 * np.eye(n_clusters)
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


def test_probabilities_and_log_odds_agree_with_predict_proba(model, X):
    new = X[:79]  # one row less: these are not the fitted rows
    probabilities, joint = model.predict_proba(new), model._joint(new) / model.temperature_
    for i, why in enumerate(model.explain(new)):
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
    assert why.evidence_for == ((0, "feature 0", 3, pytest.approx(3 * np.log(2)), None, ""),)
    assert why.evidence_against == ((2, "feature 2", 1, pytest.approx(-np.log(2)), None, ""),)
    assert why.from_others == 0
    assert why.margin == pytest.approx(np.log(4 / 3))
    assert why.probability == pytest.approx(4 / 7)
    assert why.verdict == "borderline"


def test_the_strongest_evidence_is_listed_and_the_rest_summed():
    model = fixed([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], [0.5, 0.5])
    (why,) = model.explain([[1, 9, 1, 1]], n_features=1)
    assert [part.feature for part in why.evidence_for] == [1]
    assert [part.feature for part in why.evidence_against] == [3]
    assert why.from_others == pytest.approx(np.log(4) + np.log(2 / 3))


def test_removing_a_feature_changes_the_margin_by_its_evidence(model, X):
    why = model.explain(X[:79], [7], n_features=100)[0]
    for part in why.evidence_for + why.evidence_against:
        without = X[7].copy()
        without[part.feature] = 0
        joint = model._joint(without[None])[0] / model.temperature_
        assert why.margin - part.nats == pytest.approx(joint[why.cluster] - joint[why.runner_up], abs=1e-9)


# --- rows, labels, names ----------------------------------------------------------------------------------------


def test_rows_are_chosen_by_index_in_any_order_and_from_the_end(model, X):
    every = model.explain(X, gains=True)
    assert model.explain(X, [5, 2, -1, 5]) == [every[5], every[2], every[79], every[5]]
    assert model.explain(X, 5) == [every[5]]
    assert model.explain(X, []) == []


def test_given_labels_are_explained(model, X):
    worst = model._joint(X).argmin(axis=1)
    for i, why in zip([3, 0], model.explain(X, [3, 0], labels=worst), strict=True):
        assert why.row == i
        assert why.cluster == worst[i]
        assert why.margin < 0
        assert why.verdict == "borderline"
        assert why.runner_up == model.predict(X)[i]


def test_fitted_rows_are_explained_in_their_cluster_and_new_rows_in_the_predicted_one(model, X):
    labels = model.labels_.copy()
    labels[:5] = (labels[:5] + 1) % 4
    model = MMPCA(4, 3, topics=model.components_, start=labels, max_epochs=0).fit(X)
    assert (model.labels_ != model.predict(X)).any()
    assert [why.cluster for why in model.explain(X)] == model.labels_.tolist()
    assert [why.cluster for why in model.explain(X[:79])] == model.predict(X[:79]).tolist()


def test_evidence_carries_feature_names(X):
    names = [f"word {v}" for v in range(X.shape[1])]
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(pd.DataFrame(X, columns=names))
    for why in model.explain(pd.DataFrame(X, columns=names)):
        for part in why.evidence_for + why.evidence_against:
            assert part.name == names[part.feature]
            assert part.occurrences == X[why.row, part.feature]


def test_sparse_and_dense_rows_have_the_same_explanation(model, X):
    assert model.explain(sparse.csr_array(X)) == model.explain(X)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("kind", [{}, {"stabilize": "sqrt"}, {"dispersion": "polya"}, {"dispersion": "shares"}])
def test_evidence_is_weighed_in_the_units_of_the_fit_and_shown_with_the_counts(X, kind):
    bursts = X * np.random.default_rng(0).integers(1, 20, X.shape)
    model = MMPCA(3, 2, topics="lda", n_init=1, **kind, random_state=0).fit(bursts)
    units = model.units.convert(as_counts(bursts)).to_csr().toarray()
    mixture = model.mixture()
    log_profiles = np.log(mixture.cluster_topics @ mixture.topics)
    for why in model.explain(bursts[:-1], [0, 7]):
        for part in why.evidence_for + why.evidence_against:
            i, v = why.row, part.feature
            assert part.occurrences == bursts[i, v]
            odds = log_profiles[why.cluster, v] - log_profiles[why.runner_up, v]
            assert part.nats == pytest.approx(units[i, v] * odds / model.temperature_, rel=1e-9)


# --- special cases ----------------------------------------------------------------------------------------------


def test_an_empty_row_is_explained_by_cluster_sizes_alone(two):
    (why,) = two.explain([[0, 0, 0]])
    assert why.cluster == 1
    assert (why.evidence_for, why.evidence_against, why.from_others) == ((), (), 0.0)
    assert why.margin == pytest.approx(why.from_sizes)


def test_one_cluster_has_no_alternative():
    (why,) = fixed([[0.5, 0.5]], [1.0]).explain([[2, 1]])
    assert (why.cluster, why.probability, why.verdict, why.runner_up, why.margin) == (0, 1.0, "clear", None, np.inf)
    assert why.alternatives == ()


def test_a_feature_that_no_topic_has_is_no_evidence():
    model = fixed([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]], [0.5, 0.5])
    known, unknown = model.explain([[2, 1, 0], [2, 1, 50]])
    assert unknown.evidence_for == known.evidence_for
    assert unknown.margin == pytest.approx(known.margin)


@pytest.mark.parametrize(
    ("odds", "verdict"),
    [(1.0, "borderline"), (2.9, "borderline"), (3.1, "likely"), (98.0, "likely"), (100.0, "clear"), (1e300, "clear")],
)
def test_verdicts_follow_the_probability(odds, verdict):
    assert judge(odds / (odds + 1.0)) == verdict


def test_a_temperature_divides_all_log_odds_and_makes_verdicts_more_cautious(two):
    row = [[12, 5, 1]]
    (cold,) = two.explain(row)
    two.temperature_ = 5.0
    (warm,) = two.explain(row)
    assert (cold.verdict, warm.verdict) == ("clear", "likely")
    assert warm.margin == pytest.approx(cold.margin / 5)
    assert warm.from_sizes == pytest.approx(cold.from_sizes / 5)
    assert [part.nats for part in warm.evidence_for] == pytest.approx([part.nats / 5 for part in cold.evidence_for])


def test_a_fitted_row_is_explained_without_its_own_contribution(model, X):
    probabilities = model.leave_one_out_proba(X)
    for why in model.explain(X):
        assert why.probability == pytest.approx(probabilities[why.row, why.cluster], rel=1e-9)
        assert why.is_held_by_itself == (probabilities[why.row].argmax() != why.cluster)


# --- invalid arguments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", [80]),
        ("rows", [-81]),
        ("rows", [0.5]),
        ("rows", [[0]]),
        ("rows", np.ones(80, dtype=bool)),
        ("labels", [0, 1]),
        ("labels", np.full(80, 4)),
        ("labels", np.full(80, -1)),
        ("labels", np.full(80, 0.5)),
        ("n_features", -1),
        ("n_features", 1.5),
    ],
)
def test_an_invalid_argument_is_named(model, X, name, value):
    with pytest.raises(ValueError, match=name):
        model.explain(X, **{name: value})


# --- tools for gains --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def new(data):
    """Return new rows with the same features."""
    return np.random.default_rng(8).permuted(data.X.toarray(), axis=1)[:5]


def bound_of(model, counts, sizes):
    return partition_bound(counts, sizes, beta=model.components_, alpha=model.topic_prior)


def with_label(labels, i, q):
    changed = labels.copy()
    changed[i] = q
    return changed


def sums(X, labels, n_clusters):
    members = np.equal.outer(np.arange(n_clusters), labels)
    return members @ X.astype(float), members.sum(axis=1)


def joined(model, x, q):
    """Return the bound after a new row joined a cluster."""
    counts, sizes = model.cluster_counts_.copy(), np.bincount(model.labels_, minlength=model.n_clusters)
    counts[q] += x
    sizes[q] += 1
    return bound_of(model, counts, sizes)


# --- gains are exact --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 0.7, 5.0])
def test_the_gain_of_a_fitted_row_is_the_difference_of_two_bounds_computed_from_scratch(X, prior):
    model = MMPCA(4, 3, topics="lda", n_init=1, topic_prior=prior, random_state=0).fit(X)
    before = bound_of(model, *sums(X, model.labels_, 4))
    assert before == pytest.approx(model.bound_, rel=1e-10)
    for why in model.explain(X, [28, 3, 79]):
        assert why.is_fitted
        for other in why.alternatives:
            after = bound_of(model, *sums(X, with_label(model.labels_, why.row, other.cluster), 4))
            assert other.gain == pytest.approx(after - before, abs=1e-7)


def test_the_contribution_of_a_fitted_row_is_the_loss_of_the_bound_without_it(model, X):
    (why,) = model.explain(X, [11])
    without = bound_of(model, *sums(np.delete(X, 11, axis=0), np.delete(model.labels_, 11), 4))
    assert why.contribution == pytest.approx(model.bound_ - without, abs=1e-7)


def test_adding_a_new_row_changes_the_bound_by_its_contribution_and_gains(model, new):
    for why, x in zip(model.explain(new, range(5)), new, strict=True):
        assert not why.is_fitted
        assert why.contribution == pytest.approx(joined(model, x, why.cluster) - model.bound_, abs=1e-7)
        for other in why.alternatives:
            change = joined(model, x, other.cluster) - model.bound_
            assert why.contribution + other.gain == pytest.approx(change, abs=1e-7)


def test_gains_refer_to_the_explained_cluster(model, new):
    q = int(model.explain(new, [0])[0].alternatives[-1].cluster)
    (why,) = model.explain(new[:1], [0], labels=[q])
    assert why.contribution == pytest.approx(joined(model, new[0], q) - model.bound_, abs=1e-7)
    assert max(other.gain for other in why.alternatives) > 0


# --- parts of the gains -----------------------------------------------------------------------------------------


def test_features_sizes_and_the_remainder_sum_to_the_margin_in_the_bound(model, X, new):
    for why in model.explain(X, range(10), n_features=30) + model.explain(new, range(5), n_features=30):
        margin = why.bound_margin
        gain = next(other.gain for other in why.alternatives if other.cluster == why.runner_up)
        assert margin.total == pytest.approx(-gain, abs=1e-12)
        assert margin.from_features + margin.from_sizes + margin.remainder == pytest.approx(margin.total, abs=1e-9)
        listed = sum(part.first_order for part in why.evidence_for + why.evidence_against)
        assert listed == pytest.approx(margin.from_features, abs=1e-9)  # all 25 features are listed


def test_the_first_order_is_the_derivative_of_the_bound(model, X):
    (why,) = model.explain(X, [3], n_features=30)
    clusters = why.cluster, why.runner_up
    options = {"beta": model.components_, "alpha": 1.0}
    gammas = [ve_step(model.cluster_counts_[q], **options) for q in clusters]
    logs = [np.log(mixture(model.components_, gamma)) for gamma in gammas]
    for part in why.evidence_for + why.evidence_against:
        slope = part.occurrences * (logs[0] - logs[1])[part.feature]
        assert part.first_order == pytest.approx(slope, rel=1e-6, abs=1e-6)  # gamma itself is less exact than J


def test_the_remainder_vanishes_faster_than_the_row(model, X):
    def remainder(n_copies):
        # Clusters grow by copies of their rows, while the row stays the same.
        many = MMPCA(4, 3, topics=model.components_, start=np.tile(model.labels_, n_copies), max_epochs=0).fit(
                     np.tile(X, (n_copies, 1)))  # fmt: skip
        return abs(many.explain(X[:1], [0])[0].bound_margin.remainder)

    assert remainder(40) < 0.2 * remainder(4)


def test_one_topic_leaves_no_remainder(X):
    model = MMPCA(3, 1, topics="lda", n_init=1, random_state=0).fit(X)
    for why in model.explain(X, [0, 1]):
        assert why.bound_margin.remainder == pytest.approx(0.0, abs=1e-7)
        assert why.bound_margin.from_features == pytest.approx(0.0, abs=1e-7)  # all clusters have the same profile


# --- recognizing the fitted rows --------------------------------------------------------------------------------


def test_fitted_rows_are_recognized_among_empty_rows(model, X):
    padded = np.insert(X, [0, 40], 0, axis=0)
    empty, first, *_ = model.explain(padded, [0, 1])
    assert (empty.is_fitted, first.is_fitted) == (False, True)
    assert first._replace(row=0) == model.explain(X, [0])[0]
    assert empty.contribution == pytest.approx(joined(model, 0, empty.cluster) - model.bound_, abs=1e-7)


@pytest.mark.parametrize("change", [lambda X: X[::-1], lambda X: X[:79], lambda X: X + (np.arange(25) == 3)])
def test_other_rows_are_not_mistaken_for_the_fitted_ones(model, X, change):
    assert not any(why.is_fitted for why in model.explain(change(X)))


def test_fitted_rows_are_recognized_with_square_roots(X):
    model = MMPCA(3, 2, topics="lda", n_init=1, stabilize="sqrt", random_state=0).fit(9 * X)
    (why,) = model.explain(9 * X, [4])
    roots = np.round(np.sqrt(9 * X))
    after = bound_of(model, *sums(roots, with_label(model.labels_, 4, why.runner_up), 3))
    assert why.is_fitted
    assert why.bound_margin.total == pytest.approx(model.bound_ - after, abs=1e-7)


# --- special cases of gains -------------------------------------------------------------------------------------


def test_all_rows_get_gains_only_on_request(model, X):
    assert all(why.contribution is None and why.bound_margin is None for why in model.explain(X))
    assert all(other.gain is None for why in model.explain(X, [0], gains=False) for other in why.alternatives)
    assert [why.alternatives for why in model.explain(X, gains=True)][5] == model.explain(X, [5])[0].alternatives


def test_a_row_that_is_alone_in_its_cluster_cannot_leave_it(X):
    labels = np.r_[2, np.arange(79) % 2]
    model = MMPCA(
        3, 3, topics=MMPCA(3, 3, topics="lda", n_init=1, random_state=0).fit(X).components_, start=labels, max_epochs=0
    )
    (why,) = model.fit(X).explain(X, [0])
    assert why.cluster == 2
    assert {other.gain for other in why.alternatives} == {-np.inf}
    assert why.bound_margin.total == np.inf


def test_counts_of_features_that_no_topic_has_do_not_change_gains(X):
    model = MMPCA(3, 2, topics="lda", n_init=1, random_state=0).fit(np.c_[X, np.zeros(80, dtype=int)])
    known, unknown = (model.explain(np.c_[X[:1], [[n]]], [0])[0] for n in (0, 50))
    assert unknown.contribution == pytest.approx(known.contribution, abs=1e-9)
    assert unknown.bound_margin == pytest.approx(known.bound_margin, abs=1e-9)


def test_one_cluster_has_a_contribution_and_no_margin(X):
    model = MMPCA(1, 2, topics="lda", n_init=1, random_state=0).fit(X)
    (why,) = model.explain(X, [2])
    options = {"beta": model.components_, "alpha": 1.0}
    with_it, without = X.sum(axis=0).astype(float), np.delete(X, 2, axis=0).sum(axis=0).astype(float)
    values = [cluster_bound(m, ve_step(m, **options), **options) for m in (with_it, without)]
    assert why.contribution == pytest.approx(values[0] - values[1] + xlogy(1, 1), abs=1e-7)
    assert (why.alternatives, why.bound_margin) == ((), None)
