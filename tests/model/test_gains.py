"""Gains of an explanation are what the bound, computed anew from nothing, gains; their parts add up to them."""

import numpy as np
import pytest
from scipy.special import xlogy

from mmpca import MMPCA
from mmpca.engine.bound import cluster_bound, mixture, partition_bound, ve_step


@pytest.fixture(scope="module")
def new(data):
    """Return rows that were not fitted, of the same features."""
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
    """Return the bound after a new row has joined a cluster."""
    counts, sizes = model.cluster_counts_.copy(), np.bincount(model.labels_, minlength=model.n_clusters)
    counts[q] += x
    sizes[q] += 1
    return bound_of(model, counts, sizes)


# --- exact ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 0.7, 5.0])
def test_the_gain_of_a_fitted_row_is_the_difference_of_two_bounds_computed_from_nothing(X, prior):
    model = MMPCA(4, 3, n_init=1, topic_prior=prior, random_state=0).fit(X)
    before = bound_of(model, *sums(X, model.labels_, 4))
    assert before == pytest.approx(model.refit_bound_, rel=1e-10)
    for why in model.explain(X, [28, 3, 79]):
        assert why.is_fitted
        for other in why.alternatives:
            after = bound_of(model, *sums(X, with_label(model.labels_, why.row, other.cluster), 4))
            assert other.gain == pytest.approx(after - before, abs=1e-7)


def test_the_contribution_of_a_fitted_row_is_what_the_bound_loses_without_it(model, X):
    (why,) = model.explain(X, [11])
    without = bound_of(model, *sums(np.delete(X, 11, axis=0), np.delete(model.labels_, 11), 4))
    assert why.contribution == pytest.approx(model.refit_bound_ - without, abs=1e-7)


def test_adding_a_new_row_changes_the_bound_by_its_contribution_and_gains(model, new):
    for why, x in zip(model.explain(new, range(5)), new, strict=True):
        assert not why.is_fitted
        assert why.contribution == pytest.approx(joined(model, x, why.cluster) - model.refit_bound_, abs=1e-7)
        for other in why.alternatives:
            change = joined(model, x, other.cluster) - model.refit_bound_
            assert why.contribution + other.gain == pytest.approx(change, abs=1e-7)


def test_gains_refer_to_the_cluster_that_is_explained(model, new):
    q = int(model.explain(new, [0])[0].alternatives[-1].cluster)
    (why,) = model.explain(new[:1], [0], labels=[q])
    assert why.contribution == pytest.approx(joined(model, new[0], q) - model.refit_bound_, abs=1e-7)
    assert max(other.gain for other in why.alternatives) > 0


# --- parts ------------------------------------------------------------------------------------------------------


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
        assert part.first_order == pytest.approx(slope, rel=1e-7, abs=1e-7)  # gamma itself is less exact than J


def test_the_remainder_vanishes_faster_than_the_row(model, X):
    def remainder(n_copies):
        # As clusters of more and more copies of their rows, the row being the same.
        many = MMPCA(4, 3, topics=model.components_, start=np.tile(model.labels_, n_copies), max_epochs=0,
                     refit_topics=False).fit(np.tile(X, (n_copies, 1)))  # fmt: skip
        return abs(many.explain(X[:1], [0])[0].bound_margin.remainder)

    assert remainder(40) < 0.2 * remainder(4)


def test_one_topic_leaves_no_remainder(X):
    model = MMPCA(3, 1, n_init=1, random_state=0).fit(X)
    for why in model.explain(X, [0, 1]):
        assert why.bound_margin.remainder == pytest.approx(0.0, abs=1e-7)
        assert why.bound_margin.from_features == pytest.approx(0.0, abs=1e-7)  # all clusters have the same profile


# --- which rows are the fitted ones ---------------------------------------------------------------------------------


def test_fitted_rows_are_known_again_among_rows_without_counts(model, X):
    padded = np.insert(X, [0, 40], 0, axis=0)
    empty, first, *_ = model.explain(padded, [0, 1])
    assert (empty.is_fitted, first.is_fitted) == (False, True)
    assert first._replace(row=0) == model.explain(X, [0])[0]
    assert empty.contribution == pytest.approx(joined(model, 0, empty.cluster) - model.refit_bound_, abs=1e-7)


@pytest.mark.parametrize("change", [lambda X: X[::-1], lambda X: X[:79], lambda X: X + (np.arange(25) == 3)])
def test_other_rows_are_not_taken_for_the_fitted_ones(model, X, change):
    assert not any(why.is_fitted for why in model.explain(change(X)))


def test_square_roots_are_known_again(X):
    model = MMPCA(3, 2, n_init=1, stabilize="sqrt", random_state=0).fit(9 * X)
    (why,) = model.explain(9 * X, [4])
    roots = np.round(np.sqrt(9 * X))
    after = bound_of(model, *sums(roots, with_label(model.labels_, 4, why.runner_up), 3))
    assert why.is_fitted
    assert why.bound_margin.total == pytest.approx(model.refit_bound_ - after, abs=1e-7)


# --- special cases ----------------------------------------------------------------------------------------------


def test_all_rows_get_gains_only_if_asked_for(model, X):
    assert all(why.contribution is None and why.bound_margin is None for why in model.explain(X))
    assert all(other.gain is None for why in model.explain(X, [0], gains=False) for other in why.alternatives)
    assert [why.alternatives for why in model.explain(X, gains=True)][5] == model.explain(X, [5])[0].alternatives


def test_a_row_that_is_alone_in_its_cluster_cannot_leave_it(X):
    labels = np.r_[2, np.arange(79) % 2]
    model = MMPCA(3, 3, topics=MMPCA(3, 3, n_init=1, random_state=0).fit(X).components_, start=labels, max_epochs=0)
    (why,) = model.fit(X).explain(X, [0])
    assert why.cluster == 2
    assert {other.gain for other in why.alternatives} == {-np.inf}
    assert why.bound_margin.total == np.inf


def test_counts_of_features_that_no_topic_knows_are_passed_over(X):
    model = MMPCA(3, 2, n_init=1, random_state=0).fit(np.c_[X, np.zeros(80, dtype=int)])
    known, unknown = (model.explain(np.c_[X[:1], [[n]]], [0])[0] for n in (0, 50))
    assert unknown.contribution == pytest.approx(known.contribution, abs=1e-9)
    assert unknown.bound_margin == pytest.approx(known.bound_margin, abs=1e-9)


def test_one_cluster_has_a_contribution_and_no_margin(X):
    model = MMPCA(1, 2, n_init=1, random_state=0).fit(X)
    (why,) = model.explain(X, [2])
    options = {"beta": model.components_, "alpha": 1.0}
    with_it, without = X.sum(axis=0).astype(float), np.delete(X, 2, axis=0).sum(axis=0).astype(float)
    values = [cluster_bound(m, ve_step(m, **options), **options) for m in (with_it, without)]
    assert why.contribution == pytest.approx(values[0] - values[1] + xlogy(1, 1), abs=1e-7)
    assert (why.alternatives, why.bound_margin) == ((), None)
