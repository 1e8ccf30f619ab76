from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mmpca import baselines
from mmpca.baselines import IntegratedMultinomialMixture
from mmpca.baselines.integrated import Partition, run_greedy
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.counts import as_counts


def score_by_urn(X, labels, n_clusters, priors):
    """Return log p(X, y) without coefficients, drawing counts and labels one by one from Polya urns."""
    n_features = X.shape[1]
    urns = np.full((n_clusters, n_features), priors[0])
    sizes = np.full(n_clusters, priors[1])
    score = 0.0
    for x, q in zip(X, labels, strict=True):
        score += np.log(sizes[q] / sizes.sum())
        sizes[q] += 1
        for v in range(n_features):
            for _ in range(x[v]):
                score += np.log(urns[q, v] / urns[q].sum())
                urns[q, v] += 1
    return score


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_clusters = draw(st.integers(2, 9)), draw(st.integers(2, 4))
    X = rng.integers(0, draw(st.sampled_from([2, 5, 40])), size=(n_rows, draw(st.integers(1, 6)))) + 1
    labels = np.concatenate([np.arange(min(n_clusters, n_rows)), rng.integers(min(n_clusters, n_rows), size=n_rows)])
    priors = (draw(st.sampled_from([0.1, 1.0, 3.0])), draw(st.sampled_from([0.5, 1.0])))
    return X, labels[:n_rows], priors


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_score_equals_that_of_drawing_from_urns(problem):
    X, labels, priors = problem
    expected = score_by_urn(X, labels, labels.max() + 1, priors)
    assert Partition(as_counts(X), labels, *priors).score() == pytest.approx(expected, rel=1e-9)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_gain_of_a_move_is_the_difference_of_scores(problem):
    X, labels, priors = problem
    rows = as_counts(X)
    partition = Partition(rows, labels, *priors)
    for i in np.flatnonzero(partition.sizes[labels] > 1):
        for q, gain in enumerate(partition.gains(i)):
            moved = labels.copy()
            moved[i] = q
            assert gain == pytest.approx(Partition(rows, moved, *priors).score() - partition.score(), abs=1e-8)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_gain_of_a_merge_is_the_difference_of_scores(problem):
    X, labels, priors = problem
    rows = as_counts(X)
    gains = Partition(rows, labels, *priors).merge_gains()
    for q, r in zip(*np.triu_indices(labels.max() + 1, 1), strict=True):
        partition = Partition(rows, labels, *priors)
        before = partition.score()
        partition.merge(q, r)
        assert gains[q, r] == pytest.approx(partition.score() - before, abs=1e-8)
        np.testing.assert_array_equal(partition.sizes, np.bincount(partition.labels))
        np.testing.assert_array_equal(partition.sums, Partition(rows, partition.labels, *priors).sums)


@given(problems(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_search_raises_the_score_and_ends_where_no_move_gains(problem, has_merges):
    X, labels, priors = problem
    before = Partition(as_counts(X), labels, *priors).score()
    partition = Partition(as_counts(X), labels, *priors)
    history, converged = run_greedy(partition, has_merges=has_merges, seed=0, max_iter=100)
    fresh = Partition(as_counts(X), partition.labels, *priors)
    assert converged
    assert history[-1] == pytest.approx(fresh.score())
    assert history[-1] >= before - 1e-9
    np.testing.assert_allclose(partition.sums, fresh.sums)
    for i in np.flatnonzero(fresh.sizes[fresh.labels] > 1):
        assert fresh.gains(i).max() < 1e-8


def test_finds_the_best_of_all_partitions_of_a_tiny_case():
    X = np.array([[7, 1, 0], [5, 2, 1], [9, 1, 1], [0, 3, 8], [1, 1, 5], [2, 8, 1]])
    rows, priors = as_counts(X), (1.0, 1.0)
    tried = [np.array(labels) for labels in product(range(3), repeat=6) if len(set(labels)) == 3]
    best = max(Partition(rows, labels, *priors).score() for labels in tried)
    model = IntegratedMultinomialMixture(3, random_state=0).fit(X)
    assert model.icl_ == pytest.approx(best + log_multinomial_coefficients(rows).sum())


def test_recovers_its_own_model_and_the_number_of_clusters(draw):
    rng = np.random.default_rng(2)
    profiles = rng.dirichlet(np.ones(40), size=5)
    labels = rng.choice(5, p=[0.35, 0.25, 0.2, 0.12, 0.08], size=120)
    X = draw(rng, profiles, rng.integers(50, 1500, size=120), labels)
    for n_clusters in ("auto", 5):
        model = IntegratedMultinomialMixture(n_clusters, random_state=0).fit(X)
        assert model.n_clusters_ == 5
        assert adjusted_rand_score(labels, model.labels_) > 0.95
    order = [np.bincount(labels[model.labels_ == q]).argmax() for q in range(5)]
    np.testing.assert_allclose(model.profiles_, profiles[order], atol=0.02)


def test_merges_identical_rows_into_one_cluster():
    assert IntegratedMultinomialMixture(random_state=0).fit(np.tile([4, 0, 3], (6, 1))).n_clusters_ == 1


def test_a_given_number_of_clusters_is_kept(make_blocks):
    model = IntegratedMultinomialMixture(7, random_state=0).fit(make_blocks(n_clusters=2).X)
    assert len(np.unique(model.labels_)) == model.n_clusters_ == 7


@pytest.mark.parametrize(
    ("name", "value"), [("n_clusters", "many"), ("max_clusters", 0), ("profile_prior", 0), ("weight_prior", np.inf)]
)
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        IntegratedMultinomialMixture(**{name: value}).fit([[1]])


def test_its_former_name_still_works_with_a_warning():
    with pytest.warns(FutureWarning):
        former = baselines.DirichletMultinomialMixture
    assert former is IntegratedMultinomialMixture
    with pytest.raises(AttributeError):
        baselines.NoSuchMixture  # noqa: B018
