import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import dirichlet_multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.backend import open_threads
from mmpca.baselines import GSDMM
from mmpca.baselines.integrated import Partition
from mmpca.baselines.mixtures import log_multinomial_coefficients
from mmpca.counts import as_counts
from mmpca.gibbs import PRIORS, gibbs_pass, joint_log_density, log_joint, run_chain, run_chains


def state(X, labels, n_clusters):
    """Return the sums (V, Q), totals (Q,) and sizes (Q,) of clusters."""
    members = np.eye(n_clusters)[labels]
    sums = X.T @ members
    return sums, sums.sum(axis=0), members.sum(axis=0)


def conditional_by_tokens(X, labels, i, n_clusters, priors):
    """Return the probability of each cluster for row `i` given the other rows, drawing its tokens one by one."""
    beta, alpha = priors
    n_rows, n_features = X.shape
    others = np.arange(n_rows) != i
    probabilities = np.empty(n_clusters)
    for q in range(n_clusters):
        in_cluster = others & (labels == q)
        urn = X[in_cluster].sum(axis=0) + beta
        probability = (in_cluster.sum() + alpha) / (n_rows - 1 + n_clusters * alpha)
        for v in range(n_features):
            for _ in range(X[i, v]):
                probability *= urn[v] / urn.sum()
                urn[v] += 1
        probabilities[q] = probability
    return probabilities / probabilities.sum()


@st.composite
def problems(draw):
    """Rows of at most 16 counts, of a few more, and with single entries above 16, which take different paths."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_clusters = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    X = rng.integers(0, draw(st.sampled_from([2, 6, 40])), size=(n_rows, draw(st.integers(1, 6))))
    X[:, 0] += 1
    priors = (draw(st.sampled_from([0.01, 0.1, 2.0])), draw(st.sampled_from([0.1, 1.0])))
    return X, rng.integers(n_clusters, size=n_rows), n_clusters, priors, rng.uniform(size=n_rows)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_a_pass_draws_each_row_from_its_conditional_probability(problem):
    X, labels, n_clusters, priors, uniforms = problem
    rows, expected = as_counts(X), labels.copy()
    margins = []
    for i, uniform in enumerate(uniforms):
        steps = np.cumsum(conditional_by_tokens(X, expected, i, n_clusters, priors))
        expected[i] = min(np.searchsorted(steps, uniform, side="right"), n_clusters - 1)
        margins.append(np.abs(steps[:-1] - uniform).min(initial=1))
    sums, totals, sizes = state(X, labels, n_clusters)
    indices = rows.indices.astype(np.int64)
    gibbs_pass(rows.indptr, indices, rows.data, rows.row_totals(), priors, uniforms, labels, sums, totals, sizes)
    if min(margins) > 1e-9:  # otherwise rounding may decide
        np.testing.assert_array_equal(labels, expected)
    for found, fresh in zip((sums, totals, sizes), state(X, labels, n_clusters), strict=True):
        np.testing.assert_array_equal(found, fresh)


def test_a_chain_visits_all_rows_in_order_however_many_there_are():
    X = np.random.default_rng(0).poisson(1.0, size=(5000, 8)) + np.eye(8, dtype=int)[np.arange(5000) % 8]
    rows, rng = as_counts(X), np.random.RandomState(1)
    labels = rng.randint(3, size=5000)
    sums, totals, sizes = state(X, labels, 3)
    features, uniforms = rows.indices.astype(np.int64), rng.uniform(size=5000)
    gibbs_pass(rows.indptr, features, rows.data, rows.row_totals(), PRIORS, uniforms, labels, sums, totals, sizes)
    chain = run_chain(rows, 3, np.random.RandomState(1), n_passes=1)
    np.testing.assert_array_equal(chain.labels, labels)
    np.testing.assert_array_equal(chain.sums, sums)


def test_a_chain_ends_after_the_pass_in_which_it_was_stopped():
    answers = iter([False, False, True])
    X = np.random.default_rng(0).poisson(2.0, size=(30, 5)) + 1
    chain = run_chain(as_counts(X), 3, np.random.RandomState(0), is_stopped=lambda: next(answers))
    assert len(chain.history) == 3
    np.testing.assert_array_equal(chain.sums, state(X, chain.labels, 3)[0])


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_numpy_counterpart_agrees_with_drawing_tokens_one_by_one(problem):
    X, labels, n_clusters, priors, _ = problem
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        sums, _, sizes = state(X[others], labels[others], n_clusters)
        row = as_counts(X[[i]]).to_csr().astype(float)
        found = softmax(joint_log_density(row, sums, sizes, priors), axis=1)[0]
        np.testing.assert_allclose(found, conditional_by_tokens(X, labels, i, n_clusters, priors), atol=1e-9)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_joint_probability_is_that_of_a_partition_without_empty_clusters(problem):
    X, labels, _, priors, _ = problem
    labels = np.unique(labels, return_inverse=True)[1]
    X = X[:, X.any(axis=0)]
    sums, _, sizes = state(X, labels, labels.max() + 1)
    expected = Partition(as_counts(X), labels, *priors).score()
    assert log_joint(sums, sizes, priors) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_one_cluster_has_the_probability_of_a_single_dirichlet_multinomial():
    X = np.array([[2, 0, 1], [1, 3, 0]])
    model = GSDMM(1, n_iter=2, n_init=1, random_state=0).fit(X)
    of_sum = dirichlet_multinomial.logpmf(X.sum(axis=0), np.full(3, 0.1), X.sum())
    coefficients = log_multinomial_coefficients(as_counts(X)).sum()
    coefficients -= log_multinomial_coefficients(as_counts(X.sum(axis=0)[None])).sum()
    np.testing.assert_allclose(model.history_, of_sum + coefficients)


def test_finds_the_clusters_of_short_rows_and_empties_the_others(draw):
    rng = np.random.default_rng(5)
    owner = np.arange(60) % 5
    profiles = np.where(owner == np.arange(5)[:, None], 1.0, 0.02)
    labels = rng.integers(5, size=300)
    X = draw(rng, profiles / profiles.sum(axis=1, keepdims=True), rng.integers(4, 10, size=300), labels)
    model = GSDMM(20, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.85
    assert 5 <= model.n_clusters_ <= 8
    assert set(model.labels_) == set(range(model.n_clusters_))


def test_fitted_attributes_belong_to_the_labels(make_blocks):
    X = make_blocks(3, shortest=3, longest=8).X
    model = GSDMM(6, random_state=0).fit(X)
    sums, totals, sizes = state(X, model.labels_, model.n_clusters_)
    np.testing.assert_allclose(model.weights_, (sizes + 0.1) / (len(X) + 0.1 * model.n_clusters_))
    np.testing.assert_allclose(model.profiles_, (sums.T + 0.1) / (totals[:, None] + 0.1 * X.shape[1]))
    assert model.history_.shape == (30,)


def test_new_rows_have_their_predictive_probability_in_each_cluster():
    X = np.array([[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 0, 4], [0, 1, 0, 3]])
    model = GSDMM(3, random_state=0).fit(X)
    new = np.array([[1, 2, 0, 1]])
    extended = np.vstack([X, new])
    labels = np.append(model.labels_, 0)
    expected = conditional_by_tokens(extended[:, [0, 1, 3]], labels, 4, model.n_clusters_, (0.1, 0.1))
    np.testing.assert_allclose(model.predict_proba(new)[0], expected)
    np.testing.assert_allclose(model.predict_proba(new + [[0, 0, 50, 0]])[0], expected)  # a feature without counts
    assert model.predict(new)[0] == expected.argmax()
    sizes = np.bincount(model.labels_) + 0.1
    np.testing.assert_allclose(model.predict_proba([[0, 0, 0, 0]])[0], sizes / sizes.sum())


def test_keeps_the_chain_with_the_largest_probability(make_blocks):
    X = make_blocks(4, n_clusters=4, shortest=4, longest=9).X
    ends = [GSDMM(4, n_init=n, n_iter=3, random_state=7).fit(X).history_[-1] for n in range(1, 7)]
    assert np.all(np.diff(ends) >= 0)  # more chains from the same seed begin with the same ones
    assert ends[-1] > ends[0]


@pytest.mark.parametrize(("name", "value"), [("n_iter", 0), ("weight_prior", 0), ("profile_prior", -1.0)])
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        GSDMM(**{name: value}).fit([[1]])


@pytest.mark.parametrize("n_threads", [2, 5])  # fewer than chains, and more
def test_chains_side_by_side_in_threads_are_those_run_one_by_one(n_threads):
    X = np.random.default_rng(0).poisson(1.0, size=(200, 8)) + np.eye(8, dtype=int)[np.arange(200) % 8]
    rows, first = as_counts(X), np.arange(200) % 3
    alone = [run_chain(rows, 3, np.random.RandomState(seed), labels=first, n_passes=4) for seed in range(3)]
    with open_threads(n_threads) as threads:
        starts = [(np.random.RandomState(seed), first) for seed in range(3)]
        together = run_chains(rows, 3, starts, n_passes=4, map_chains=threads.map)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.sums, other.sums)
        assert one.history == other.history


def test_a_request_to_stop_ends_every_chain_after_its_pass_but_not_before_the_first():
    X = np.random.default_rng(0).poisson(2.0, size=(30, 5)) + 1
    for answers, n_passes in (([False, False, True], [2, 1]), ([True, True], [1, 1])):
        starts, answer = [(np.random.RandomState(seed), None) for seed in range(2)], iter(answers)
        chains = run_chains(as_counts(X), 3, starts, is_stopped=lambda answer=answer: next(answer))
        assert [len(chain.history) for chain in chains] == n_passes


@pytest.mark.parametrize("n_threads", [2, 5])
def test_chains_in_threads_make_a_pass_and_no_more_than_another_after_a_request_to_stop(n_threads):
    X = np.random.default_rng(0).poisson(2.0, size=(30, 5)) + 1
    starts = [(np.random.RandomState(seed), None) for seed in range(3)]
    with open_threads(n_threads) as threads:
        chains = run_chains(as_counts(X), 3, starts, is_stopped=lambda: True, map_chains=threads.map)
    assert all(1 <= len(chain.history) <= 2 for chain in chains)


def test_an_error_in_a_chain_ends_those_in_other_threads():
    def fail():
        raise ArithmeticError

    X = np.random.default_rng(0).poisson(2.0, size=(30, 5)) + 1
    starts = [(np.random.RandomState(seed), None) for seed in range(3)]
    with open_threads(4) as threads, pytest.raises(ArithmeticError):
        run_chains(as_counts(X), 3, starts, is_stopped=fail, map_chains=threads.map)
