"""Merges and splits of whole clusters."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from mmpca import engine
from mmpca.backend import LocalRows, Threads, open_threads
from mmpca.counts import as_counts
from mmpca.engine import sweep as sweeps
from mmpca.engine.search import MergeSplit, _merge_loss_bounds
from mmpca.engine.state import pooled_value
from mmpca.monitor import History, Monitor

IS_COMPILED = not numba.config.DISABLE_JIT


def search(state, *, rng, callback=None, n_threads=1, merge_split=False, **options):
    """Climb, with merges and splits if asked for, and return the history."""
    options = engine.SearchOptions(state.n_clusters, state.topics.alpha, **({"max_epochs": 50} | options))
    history = History(Monitor(callback))
    with open_threads(n_threads) as threads:
        run = engine.search if merge_split else engine.climb
        return run(state, options, rng=rng, backend=LocalRows(state.rows, threads), history=history)


def course(history):
    """Return all that a search recorded."""
    return history.bounds, history.n_moves, history.converged, history.interrupted


@pytest.fixture
def stuck():
    """Four clear clusters in 80 rows, as (counts, topics, true labels, labels where no single move gains).

    The first cluster is in two halves, the third and the fourth are one.
    """
    rng = np.random.default_rng(0)
    beta = rng.dirichlet(np.full(30, 0.1), 4) * 0.9 + 0.1 / 30
    theta = np.full((4, 4), 0.05) + 0.8 * np.eye(4)
    truth = np.repeat(np.arange(4), 20)
    X = np.stack([rng.multinomial(80, theta[q] @ beta) for q in truth])
    labels = np.where(truth == 3, 2, truth)
    labels[:10] = 3
    return as_counts(X), beta, truth, labels


def build(stuck, labels, alpha=1.0):
    rows, beta, _, _ = stuck
    return engine.build(rows, labels, n_clusters=4, beta=beta, alpha=alpha)


def test_pooled_clusters_have_the_value_of_one(stuck):
    state, merged = build(stuck, stuck[2]), build(stuck, np.where(stuck[2] == 3, stuck[2] - 1, stuck[2]) % 3)
    assert pooled_value(state, [2, 3]) == pytest.approx(merged.clusters.value[2], rel=1e-10)


def test_the_loss_of_a_merge_is_the_change_of_the_bound(stuck):
    state, rows, beta = build(stuck, stuck[3]), *stuck[:2]
    merges = MergeSplit(state, tol=0.0).merges()
    assert len(merges) == 4
    for merge in merges:
        kept, freed = merge.clusters
        labels = np.unique(np.where(state.labels == freed, kept, state.labels), return_inverse=True)[1]
        merged = engine.build(rows, labels, n_clusters=3, beta=beta, alpha=1.0)
        assert merge.loss == pytest.approx(engine.bound(state) - engine.bound(merged), rel=1e-9, abs=1e-8)


def test_screened_losses_are_upper_bounds(stuck):
    state = build(stuck, stuck[3])
    losses = _merge_loss_bounds(state)
    np.testing.assert_allclose(losses, losses.T)
    for loss, pair in MergeSplit(state, tol=0.0).merges():
        assert loss <= losses[pair] + 1e-9


def test_the_gain_of_a_split_is_the_change_of_the_bound(stuck):
    rows, beta, truth, _ = stuck
    joined = engine.build(rows, np.where(truth == 3, 2, truth), n_clusters=3, beta=beta, alpha=1.0)
    split = MergeSplit(joined, tol=1e-10).splits(at_least=0.0)[0]
    assert split.cluster == 2
    labels = joined.labels.copy()
    labels[split.leaving] = 3
    state = build(stuck, labels)
    assert split.gain == pytest.approx(engine.bound(state) - engine.bound(joined), rel=1e-9)
    assert split.gain > 10
    assert len(np.unique(labels[truth == 2])) == len(np.unique(labels[truth == 3])) == 1  # it finds the two


def test_with_many_topics_the_gain_of_a_split_is_that_under_all_of_them(stuck):
    rows, beta, truth, _ = stuck
    # Forty more topics, mostly about a feature that no row has.
    rows = as_counts(np.pad(rows.to_csr().toarray(), ((0, 0), (0, 1))))
    rare = 0.01 * np.random.default_rng(1).dirichlet(np.full(30, 0.5), 40)
    beta = np.concatenate([np.pad(beta, ((0, 0), (0, 1))), np.pad(rare, ((0, 0), (0, 1)), constant_values=0.99)])
    pair = np.minimum(truth, 2)
    joined = engine.build(rows, pair, n_clusters=3, beta=beta, alpha=1.0)
    assert (joined.clusters.gamma[2] < 2.0).sum() > 1  # some topics are pooled
    split = MergeSplit(joined, tol=1e-10).splits(at_least=0.0)[0]
    labels = joined.labels.copy()
    labels[split.leaving] = 3
    apart = engine.build(rows, labels, n_clusters=4, beta=beta, alpha=1.0)
    assert split.cluster == 2
    assert len(np.unique(truth[split.leaving])) == 1
    assert split.gain == pytest.approx(engine.bound(apart) - engine.bound(joined), rel=1e-8)


def test_merging_and_splitting_frees_a_search_that_is_stuck(stuck):
    state = build(stuck, stuck[3])
    search(state, rng=np.random.default_rng(0))
    poor, truth = engine.bound(state), engine.bound(build(stuck, stuck[2]))
    assert poor < truth - 10
    run = search(state, rng=np.random.default_rng(0), merge_split=True)
    assert run.converged
    assert all(a <= b for a, b in zip(run.bounds, run.bounds[1:], strict=False))
    assert run.bounds[-1] >= truth - 1e-9 * abs(truth)
    assert run.bounds[-1] == pytest.approx(engine.bound(build(stuck, state.labels)), rel=1e-12)
    engine.check(state)


def test_a_merging_and_splitting_raises_the_bound_or_changes_nothing(make_problem):
    n_changed, n_problems = 0, 10 if IS_COMPILED else 5
    for seed in range(n_problems):
        problem = make_problem(seed, n_rows=60, n_clusters=5, concentration=0.1)
        state = problem.build()
        search(state, rng=np.random.default_rng(seed))
        before, labels = engine.bound(state), state.labels.copy()
        if MergeSplit(state, tol=1e-10).improve():
            assert engine.bound(state) > before
            n_changed += 1
        else:
            np.testing.assert_array_equal(state.labels, labels)
        engine.check(state)
    assert 0 < n_changed < n_problems


@pytest.mark.parametrize("n_reports", [1, 2, 3])
def test_the_callback_can_stop_merges_and_splits_which_then_change_nothing(stuck, n_reports):
    state = build(stuck, stuck[3])
    assert MergeSplit(build(stuck, stuck[3]), tol=1e-10).improve()
    reports = []

    def callback(progress):
        reports.append(progress.text)
        return len(reports) == n_reports

    history = History(Monitor(callback))
    assert not MergeSplit(state, tol=1e-10, history=history).improve()
    assert history.interrupted
    assert len(reports) == n_reports
    np.testing.assert_array_equal(state.labels, stuck[3])
    engine.check(state)


def test_a_search_stopped_between_epochs_has_not_converged(stuck):
    state = build(stuck, stuck[3])
    epochs = []

    def callback(progress):
        epochs.append(progress.epoch)
        return progress.epoch == 0  # only merges and splits are no part of an epoch

    history = search(state, rng=np.random.default_rng(0), callback=callback, merge_split=True)
    assert epochs[-1] == 0
    assert max(epochs) > 0
    assert history.interrupted
    assert not history.converged
    assert history.bounds[-1] == pytest.approx(engine.bound(state), rel=1e-12)


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_two_clusters_cannot_be_merged_and_split(make_problem, n_clusters):
    state = make_problem(0, n_clusters=n_clusters).build()
    assert not MergeSplit(state, tol=1e-10).improve()


@pytest.mark.parametrize("n_topics", [1, 4])
def test_identical_rows_are_not_split(make_problem, n_topics):
    problem = make_problem(0, n_rows=12, n_topics=n_topics)
    problem = problem._replace(X=np.tile(problem.X[0], (12, 1)))
    state = problem.build()
    labels = state.labels.copy()
    assert not MergeSplit(state, tol=1e-10).improve()
    np.testing.assert_array_equal(state.labels, labels)


def test_clusters_of_one_row_each_stay(make_problem):
    problem = make_problem(0, n_rows=6, n_clusters=6)._replace(labels=np.arange(6))
    assert not MergeSplit(problem.build(), tol=1e-10).improve()


def test_a_cluster_that_is_judged_by_some_of_its_rows_is_split_in_threads_as_without(stuck):
    rows, beta, truth, _ = stuck
    state = engine.build(rows, np.where(truth == 3, 2, truth), n_clusters=3, beta=beta, alpha=1.0)
    alone = MergeSplit(state, tol=1e-10, n_sampled=10).splits(at_least=0.0)
    with ThreadPoolExecutor(2) as pool:
        in_two = MergeSplit(state, tol=1e-10, n_sampled=10, backend=LocalRows(rows, Threads(pool))).splits(at_least=0.0)
    assert [split.gain for split in in_two] == [split.gain for split in alone]
    for one, other in zip(in_two, alone, strict=True):
        np.testing.assert_array_equal(one.leaving, other.leaving)
    assert len(np.unique(truth[alone[0].leaving])) == 1


def test_a_merged_and_split_search_does_not_depend_on_threads(make_problem):
    problem = make_problem(3, n_rows=90, n_clusters=5, concentration=0.1)
    one, two = problem.build(), problem.build()
    run = search(one, rng=np.random.default_rng(0), merge_split=True)
    assert course(search(two, rng=np.random.default_rng(0), merge_split=True, n_threads=2)) == course(run)
    np.testing.assert_array_equal(one.labels, two.labels)


def test_epochs_are_counted_through_and_limited_in_all(stuck):
    reports = []
    state = build(stuck, stuck[3])
    run = search(state, rng=np.random.default_rng(0), merge_split=True, callback=reports.append)
    assert sorted({progress.epoch for progress in reports if progress.epoch}) == list(range(1, run.n_epochs + 1))
    state = build(stuck, stuck[3])
    limited = search(state, rng=np.random.default_rng(0), merge_split=True, max_epochs=2)
    assert limited.n_epochs == 2
    assert not limited.converged
    assert limited.bounds == run.bounds[:3]


def press(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["merge", "split", "sweep of a part"])
def test_control_c_while_clusters_are_merged_and_split_keeps_the_best_state(stuck, monkeypatch, where):
    state = build(stuck, stuck[3])
    search(state, rng=np.random.default_rng(0))
    before, labels = engine.bound(state), state.labels.copy()
    if where == "sweep of a part":
        visit = sweeps.GreedySweep.visit
        whole = len(labels)
        monkeypatch.setattr(
            sweeps.GreedySweep,
            "visit",
            lambda sweep, *a: visit(sweep, *a) if len(sweep.state.labels) == whole else press(),
        )
    else:
        owner, name = {"merge": (MergeSplit, "merges"), "split": (MergeSplit, "_extend")}[where]
        monkeypatch.setattr(owner, name, press)
    run = search(state, rng=np.random.default_rng(0), merge_split=True)
    assert run.interrupted
    assert not run.converged
    assert run.bounds[-1] == pytest.approx(before, rel=1e-12)
    assert run.bounds[-1] == pytest.approx(engine.bound(state), rel=1e-12)
    np.testing.assert_array_equal(state.labels, labels)
    engine.check(state)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_under_a_prior_below_one_a_merged_and_split_search_never_lowers_the_bound(alpha):
    for seed in range(6 if IS_COMPILED else 2):
        rng = np.random.default_rng(seed)
        beta = rng.dirichlet(np.full(30, 0.2), 5) * 0.9 + 0.1 / 30
        rows = as_counts(rng.multinomial(12, rng.dirichlet(np.ones(5), 6)[rng.integers(6, size=50)] @ beta))
        state = engine.build(rows, rng.permutation(np.arange(50) % 6), n_clusters=6, beta=beta, alpha=alpha)
        run = search(state, rng=rng, merge_split=True, max_epochs=20)
        assert (np.diff(run.bounds) >= -1e-9 * abs(run.bounds[-1])).all()
        assert engine.bound(state) == pytest.approx(run.bounds[-1], rel=1e-9)


def test_topics_that_cannot_be_written_to_are_searched_as_well(stuck):
    beta = stuck[1].copy()
    beta.setflags(write=False)
    state = engine.build(stuck[0], stuck[3], n_clusters=4, beta=beta, alpha=1.0)
    assert search(state, rng=np.random.default_rng(0), merge_split=True).converged


def test_a_search_may_stop_after_an_epoch_with_few_moves(make_problem):
    problem = make_problem(3, n_rows=200, n_clusters=4)
    polished, rough = problem.build(), problem.build()
    whole = search(polished, rng=np.random.default_rng(0), merge_split=True)
    short = search(rough, rng=np.random.default_rng(0), merge_split=True, few_moves=10)
    assert whole.converged
    assert whole.n_moves[-1] == 0
    assert 0 < short.n_moves[-1] <= 10
    assert short.n_epochs < whole.n_epochs
