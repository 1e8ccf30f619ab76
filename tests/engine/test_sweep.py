"""The search ends where no single move improves the bound, never lowers it on the way, and is the same for everyone."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from mmpca import engine
from mmpca.backend import LocalRows, open_threads
from mmpca.engine import sweep as sweeps
from mmpca.engine.search import block_size
from mmpca.monitor import History, Monitor, Progress

IS_COMPILED = not numba.config.DISABLE_JIT
SIZES = {} if IS_COMPILED else {"max_rows": 12, "max_features": 10, "max_length": 100}
SHAPE = {} if IS_COMPILED else {"n_features": 10, "n_topics": 3, "max_length": 50}
SEEDS = range(5) if IS_COMPILED else range(1)
ALGORITHMS = ["greedy", "exact", "cvem"]


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


def examples(n, without_jit=10):
    """Return Hypothesis settings for n problems, fewer where everything is interpreted."""
    return settings(max_examples=n if IS_COMPILED else without_jit, deadline=None, derandomize=True)


def run(problem, *, seed=0, **options):
    """Return the state that a search of the problem ends with, and what it did."""
    state = problem.build()
    return state, search(state, rng=np.random.default_rng(seed), **options)


def orders(*permutations):
    """Return a generator that visits the rows in the given orders, one for each epoch."""
    remaining = iter(permutations)
    return SimpleNamespace(permutation=lambda n_rows: next(remaining))


def best_gain(state):
    """Return the largest gain of any single move."""
    return max(engine.gain(state, i, q) for i in range(len(state.labels)) for q in range(state.n_clusters))


def is_stationary(state):
    """Return True if the VE-steps have converged; under a prior below one they may run out of iterations."""
    try:
        engine.check(state)
    except AssertionError:
        return False
    return True


def assert_monotone(result):
    assert np.diff(result.bounds).min(initial=0) >= 0
    assert len(result.bounds) == result.n_epochs + 1 == len(result.n_moves) + 1


def assert_at_local_maximum(state, result):
    assert result.converged
    assert not result.interrupted
    assert result.n_moves[-1] == 0
    assert best_gain(state) <= 1e-9 * abs(result.bounds[-1])


def algorithm_one(problem, permutations, tol=1e-10):
    """Return the labels of Algorithm 1 of the paper, every bound computed from scratch."""
    labels = problem.labels.copy()
    for order in permutations:
        before = labels.copy()
        min_gain = tol * abs(problem.scratch_bound(labels))
        for i in order:
            old, current = labels[i], problem.scratch_bound(labels)
            if np.sum(labels == old) == 1:
                continue
            gains = np.full(problem.n_clusters, min_gain)
            for q in set(range(problem.n_clusters)) - {old}:
                labels[i] = q
                gains[q] = max(problem.scratch_bound(labels) - current, min_gain)
            labels[i] = np.argmax(gains) if gains.max() > min_gain else old
        if np.array_equal(labels, before):
            break
    return labels


# --- where it ends ------------------------------------------------------------------------------------------------


@examples(200)
@given(data=st.data())
def test_the_greedy_search_climbs_to_a_partition_that_no_single_move_improves(problems, data):
    problem = data.draw(problems(**SIZES))
    state, result = run(problem, max_epochs=200)
    assert_monotone(result)
    assume(np.min(problem.alpha) >= 1 or is_stationary(state))
    assert_at_local_maximum(state, result)
    engine.check(state)


@examples(60, without_jit=6)
@given(data=st.data())
def test_the_exact_search_climbs_to_a_partition_that_no_single_move_improves(problems, data):
    problem = data.draw(problems(**SIZES))
    state, result = run(problem, algorithm="exact", max_epochs=200)
    assert_monotone(result)
    assume(np.min(problem.alpha) >= 1 or is_stationary(state))
    assert_at_local_maximum(state, result)
    engine.check(state)


@examples(60)
@given(data=st.data())
def test_cvem_never_lowers_the_bound_and_leaves_no_cluster_empty(problems, data):
    problem = data.draw(problems(**SIZES))
    state, result = run(problem, algorithm="cvem", max_epochs=200)
    assert_monotone(result)
    assert result.converged
    assert state.clusters.sizes.min() >= 1
    assume(np.min(problem.alpha) >= 1 or is_stationary(state))
    engine.check(state)
    assert result.bounds[-1] == pytest.approx(engine.bound(state), rel=1e-12)


def test_cvem_ends_where_every_row_that_may_move_fits_its_own_cluster_best(make_problem):
    problem = make_problem(0, n_rows=60)
    state, result = run(problem, algorithm="cvem")
    score = problem.X @ state.clusters.tables[:, :3] + np.log(state.clusters.sizes)
    assert result.converged
    np.testing.assert_array_equal(state.labels, score.argmax(axis=1))


# The error of these best moves' expansions is more than four times the stated one: only the last look finds them.
@pytest.mark.parametrize(
    ("seed", "character"),
    [
        (4101, {"n_rows": 25, "n_features": 33, "n_topics": 5, "n_clusters": 7, "concentration": 0.01}),
        (16449, {"n_rows": 12, "n_features": 55, "n_topics": 8, "n_clusters": 8, "concentration": 0.1}),
    ],
    ids=["a topic that is off in the cluster", "a row larger than the cluster"],
)
def test_the_greedy_search_does_not_stop_before_a_move_that_its_expansion_misjudges(make_problem, seed, character):
    state, result = run(make_problem(seed, max_length=10, **character), seed=seed)
    assert_at_local_maximum(state, result)


@pytest.mark.parametrize("factor", [2.0, 16.0])
def test_a_verification_with_margins_nearly_always_ends_at_a_local_maximum(make_problem, factor):
    rng = np.random.default_rng(0)
    n_problems, n_missed = 100 if IS_COMPILED else 4, 0
    for seed in range(n_problems):
        character = {"n_clusters": rng.integers(2, 8), "n_topics": rng.integers(1, 8)}
        problem = make_problem(seed, concentration=rng.choice([0.1, 1.0]), **(SHAPE | character))
        state, result = run(problem, verify_factor=factor)
        assert_monotone(result)
        assert result.converged
        n_missed += best_gain(state) > 1e-9 * abs(result.bounds[-1])
    assert n_missed <= 0.01 * n_problems


def test_convergence_is_verified_exactly_on_small_problems_and_under_a_prior_below_one(make_problem):
    problem = make_problem(0)
    large = problem._replace(X=np.tile(problem.X, (400, 1)), labels=np.tile(problem.labels, 400))
    factors = [sweeps.verify_factor(one.build()) for one in (problem, large, large._replace(alpha=0.9))]
    assert factors[0] == factors[2] == sweeps.EXACT_FACTOR
    assert 1.0 < factors[1] < factors[0]


# --- it agrees with references and special cases ------------------------------------------------------------------


@examples(15, without_jit=4)
@given(data=st.data())
def test_the_exact_search_is_algorithm_1_of_the_paper(problems, data):
    problem = data.draw(problems(max_rows=8, max_features=8, max_length=100, alphas=(1.0, 3.0)))
    # Only rounding separates two moves of the same gain: no row or topic may occur twice.
    assume(len(np.unique(problem.X, axis=0)) == len(problem.X))
    rng = np.random.default_rng(0)
    permutations = [rng.permutation(len(problem.labels)) for _ in range(20)]
    state, _ = run(problem, algorithm="exact", max_epochs=20)
    np.testing.assert_array_equal(state.labels, algorithm_one(problem, permutations))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_single_cluster_is_left_as_it_is(make_problem, algorithm):
    problem = make_problem(0, n_clusters=1)
    state, result = run(problem, algorithm=algorithm)
    assert result.n_moves == [0]
    assert result.converged
    assert result.bounds == [engine.bound(state)] * 2
    assert result.bounds[0] == pytest.approx(problem.scratch_bound(problem.labels), rel=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_cluster_for_each_row_is_left_as_it_is(make_problem, algorithm):
    problem = make_problem(0, n_rows=15, n_clusters=15)
    state, result = run(problem, algorithm=algorithm)
    np.testing.assert_array_equal(state.labels, problem.labels)
    assert result.n_moves == [0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_single_row_is_left_as_it_is(make_problem, algorithm):
    problem = make_problem(0, n_rows=1, n_clusters=1)
    state, result = run(problem, algorithm=algorithm)
    np.testing.assert_array_equal(state.labels, [0])
    assert result.bounds[-1] == pytest.approx(problem.scratch_bound([0]), rel=1e-12)


@pytest.mark.parametrize("algorithm", ["greedy", "exact"])
def test_with_one_topic_rows_tell_nothing_and_one_cluster_takes_all_that_may_move(make_problem, algorithm):
    problem = make_problem(0, n_topics=1, n_clusters=4)
    state, result = run(problem, algorithm=algorithm)
    sizes = np.array([1, 1, 1, 37])
    np.testing.assert_array_equal(np.sort(state.clusters.sizes), sizes)
    expected = xlogy(problem.X, problem.beta[0]).sum() + xlogy(sizes, sizes / 40).sum()
    assert result.bounds[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["greedy", "exact"])
def test_identical_rows_end_at_a_local_maximum(make_problem, algorithm):
    problem = make_problem(0, twins=1.0)
    state, result = run(problem, algorithm=algorithm)
    assert_monotone(result)
    assert_at_local_maximum(state, result)
    engine.check(state)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_huge_counts_are_searched_like_small_ones(make_problem, algorithm):
    problem = make_problem(1, n_clusters=4, max_length=20)
    problem = problem._replace(X=problem.X * 10**6)
    state, result = run(problem, algorithm=algorithm)
    assert_monotone(result)
    engine.check(state)
    assert result.bounds[-1] == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)
    if algorithm != "cvem":
        assert_at_local_maximum(state, result)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_planted_clusters_are_found_again(make_problem, algorithm):
    rng = np.random.default_rng(0)
    beta = np.kron(np.eye(3), np.full(10, 0.1))  # ten features of its own for each topic
    truth = rng.integers(3, size=60)
    X = rng.multinomial(50, (0.7 * np.eye(3) + 0.1)[truth] @ beta)
    problem = make_problem(0)._replace(X=X, labels=rng.integers(3, size=60), beta=beta)
    state, _ = run(problem, algorithm=algorithm)
    pairs = np.unique(np.column_stack([truth, state.labels]), axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1])) == 3


def test_the_history_ends_with_the_bound_of_the_final_partition(make_problem):
    problem = make_problem(0, n_rows=60)
    state, result = run(problem)
    assert result.bounds[0] == pytest.approx(problem.scratch_bound(problem.labels), rel=1e-12)
    assert result.bounds[-1] == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)
    assert result.n_epochs == len(result.n_moves)


def test_a_search_leaves_fresh_clusters_behind(make_problem):
    state, result = run(make_problem(0, n_rows=60))
    assert sum(result.n_moves) > 10
    assert not state.clusters.moved.any()


# --- it is the same for everyone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_result_is_bit_identical_for_any_number_of_threads(make_problem, algorithm):
    n_rows = 6000 if IS_COMPILED else 80  # blocks that are cut into tasks
    problem = make_problem(0, n_rows=n_rows, n_clusters=6, **SHAPE)
    alone, alone_result = run(problem, algorithm=algorithm, max_epochs=2)
    shared, shared_result = run(problem, algorithm=algorithm, max_epochs=2, n_threads=2)
    assert course(shared_result) == course(alone_result)
    np.testing.assert_array_equal(shared.labels, alone.labels)
    for name in ("gamma", "value", "tables"):
        np.testing.assert_array_equal(getattr(shared.clusters, name), getattr(alone.clusters, name))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_seed_gives_the_same_result(make_problem, algorithm):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    state, result = run(problem, algorithm=algorithm, seed=3)
    again, same = run(problem, algorithm=algorithm, seed=3)
    assert course(same) == course(result)
    np.testing.assert_array_equal(again.labels, state.labels)


def test_a_new_order_is_drawn_for_every_epoch(make_problem):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    state, result = run(problem, seed=3)
    rng = np.random.default_rng(3)
    permutations = [rng.permutation(60) for _ in range(2 * result.n_epochs)]  # an epoch may be undone and repeated
    again = problem.build()
    assert course(search(again, rng=orders(*permutations))) == course(result)
    np.testing.assert_array_equal(again.labels, state.labels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_names_of_the_clusters_do_not_matter(make_problem, algorithm, seed):
    problem = make_problem(seed, n_clusters=5, **SHAPE)
    names = np.random.default_rng(seed).permutation(5)
    state, result = run(problem, algorithm=algorithm)
    renamed, same = run(problem._replace(labels=names[problem.labels]), algorithm=algorithm)
    assert same.bounds == pytest.approx(result.bounds, rel=1e-9)
    np.testing.assert_array_equal(renamed.labels, names[state.labels])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_features_and_topics_does_not_matter(make_problem, algorithm, seed):
    problem = make_problem(seed, n_clusters=5, **SHAPE)
    rng = np.random.default_rng(seed)
    topics, features = (rng.permutation(n) for n in problem.beta.shape)
    state, result = run(problem, algorithm=algorithm)
    permuted = problem._replace(X=problem.X[:, features], beta=problem.beta[topics][:, features])
    same_state, same = run(permuted, algorithm=algorithm)
    assert same.bounds == pytest.approx(result.bounds, rel=1e-9)
    np.testing.assert_array_equal(same_state.labels, state.labels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_in_another_order_visited_in_the_same_order_end_the_same(make_problem, algorithm, seed):
    problem = make_problem(seed, n_clusters=5, **SHAPE)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(problem.labels))
    permutations = [rng.permutation(len(rows)) for _ in range(50)]
    state, other = problem.build(), problem._replace(X=problem.X[rows], labels=problem.labels[rows]).build()
    result = search(state, algorithm=algorithm, rng=orders(*permutations))
    positions = np.argsort(rows)  # where each row has gone
    same = search(other, algorithm=algorithm, rng=orders(*(positions[order] for order in permutations)))
    assert same.n_moves == result.n_moves
    assert same.bounds == pytest.approx(result.bounds, rel=1e-9)
    np.testing.assert_array_equal(other.labels, state.labels[rows])


SEARCH_AND_PRINT = """
import json, sys
import numpy as np
from mmpca import engine
from mmpca.counts import as_counts

problem = np.load(sys.argv[1])
results = {}
for algorithm in ("greedy", "exact", "cvem"):
    state = engine.build(as_counts(problem["X"]), problem["labels"], n_clusters=4, beta=problem["beta"], alpha=1.0)
    options = engine.SearchOptions(4, algorithm=algorithm, max_epochs=50)
    run = engine.climb(state, options, rng=np.random.default_rng(0))
    results[algorithm] = [state.labels.tolist(), run.bounds]
json.dump(results, sys.stdout)
"""


def test_compiled_and_interpreted_kernels_search_alike(make_problem, tmp_path):
    problem = make_problem(0, n_rows=20, n_features=12, n_clusters=4, max_length=100)
    np.savez(tmp_path / "problem.npz", X=problem.X, labels=problem.labels, beta=problem.beta)
    other_way = os.environ | {"NUMBA_DISABLE_JIT": str(int(IS_COMPILED))}
    command = [sys.executable, "-W", "error", "-c", SEARCH_AND_PRINT, str(tmp_path / "problem.npz")]
    answer = subprocess.run(command, env=other_way, capture_output=True, text=True, check=False)
    assert answer.stderr == ""
    for algorithm, (labels, bounds) in json.loads(answer.stdout).items():
        state, result = run(problem, algorithm=algorithm)
        np.testing.assert_array_equal(labels, state.labels)
        assert bounds == pytest.approx(result.bounds, rel=1e-10)


# --- blocks, epochs and interruptions -----------------------------------------------------------------------------


def test_the_size_of_a_block_depends_on_the_number_of_rows_alone():
    assert [block_size(n, "greedy") for n in (1, 100, 1600, 10**5, 10**6)] == [32, 32, 100, 4096, 15625]
    assert [block_size(n, "greedy", is_careful=True) for n in (1, 100, 1600, 10**6)] == [32, 32, 400, 62500]
    assert block_size(12345, "cvem") == 12345


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_epochs_the_start_is_evaluated_and_left_alone(make_problem, algorithm):
    problem = make_problem(0)
    state, result = run(problem, algorithm=algorithm, max_epochs=0)
    np.testing.assert_array_equal(state.labels, problem.labels)
    assert course(result) == ([engine.bound(state)], [], False, False)
    assert result.n_epochs == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_search_goes_on_from_where_another_stopped(make_problem, algorithm):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    whole, result = run(problem, algorithm=algorithm)
    state, rng = problem.build(), np.random.default_rng(0)
    bounds = [search(state, algorithm=algorithm, rng=rng, max_epochs=1).bounds[-1] for _ in result.n_moves]
    np.testing.assert_array_equal(state.labels, whole.labels)
    assert bounds == pytest.approx(result.bounds[1:], rel=1e-12)


def test_a_move_must_gain_more_than_the_tolerance(make_problem):
    problem = make_problem(0)
    state, result = run(problem, tol=1.0)
    assert result.n_moves == [0]
    np.testing.assert_array_equal(state.labels, problem.labels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_callback_gets_a_report_after_every_block(make_problem, algorithm):
    problem = make_problem(1, n_rows=80, n_clusters=4, **SHAPE)
    reports = []
    _, result = run(problem, algorithm=algorithm, callback=reports.append)
    n_blocks = 1 if algorithm == "cvem" else 3
    for epoch, (bound, n_moves) in enumerate(zip(result.bounds[:-1], result.n_moves, strict=True), start=1):
        of_epoch = [report for report in reports if report.epoch == epoch]
        assert all(type(report) is Progress for report in of_epoch)
        assert {report.bound for report in of_epoch} == {bound}
        assert np.diff([report.n_moves for report in of_epoch]).min(initial=0) >= 0
        assert of_epoch[-1].n_moves == n_moves
        # The greedy search verifies an epoch without a move in a second pass.
        assert len(of_epoch) == n_blocks * (2 if algorithm == "greedy" and n_moves == 0 else 1)
    assert reports[-1].epoch == result.n_epochs


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_true_answer_of_the_callback_stops_the_search_after_the_block(make_problem, algorithm):
    problem = make_problem(0, n_rows=80, n_clusters=4, **SHAPE)
    reports = []

    def stop(progress):
        reports.append(progress)
        return "enough"

    state, result = run(problem, algorithm=algorithm, callback=stop)
    assert len(reports) == 1
    assert result.interrupted
    assert not result.converged
    assert result.n_moves == [reports[0].n_moves]
    assert result.n_moves[0] == (state.labels != problem.labels).sum() > 0
    assert result.bounds[-1] == engine.bound(state) > result.bounds[0]
    engine.check(state)


def test_a_search_that_is_stopped_in_an_epoch_without_moves_has_not_converged(make_problem):
    problem = make_problem(0)
    state, _ = run(problem)
    result = search(state, rng=np.random.default_rng(1), callback=lambda _: True)
    assert result.n_moves == [0]
    assert result.interrupted
    assert not result.converged


@pytest.mark.parametrize("n_blocks", [1, 2, 4, 5])
@pytest.mark.parametrize("algorithm", ["greedy", "exact"])
def test_control_c_keeps_what_was_found_until_then(make_problem, algorithm, n_blocks):
    problem = make_problem(0, n_rows=80, n_clusters=4, **SHAPE)
    reports = []

    def press(progress):
        reports.append(progress)
        if len(reports) == n_blocks:
            raise KeyboardInterrupt

    state, result = run(problem, algorithm=algorithm, callback=press)
    assert len(reports) == n_blocks
    assert result.interrupted
    assert not result.converged
    assert_monotone(result)
    assert result.bounds[-1] > result.bounds[0]
    assert sum(result.n_moves) >= (state.labels != problem.labels).sum() > 0
    engine.check(state)
    assert result.bounds[-1] == pytest.approx(problem.scratch_bound(state.labels), rel=1e-12)


@pytest.mark.parametrize("algorithm", ["greedy", "cvem"])
def test_control_c_in_the_middle_of_a_block_keeps_the_books_right(make_problem, monkeypatch, algorithm):
    problem = make_problem(0, n_rows=80, n_clusters=4, **SHAPE)
    owner, name = (sweeps, "_make_moves") if algorithm == "greedy" else (sweeps.CvemSweep, "visit")
    make_moves = getattr(owner, name)

    def make_moves_and_press(*arguments):
        make_moves(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, make_moves_and_press)
    state, result = run(problem, algorithm=algorithm)
    assert (state.labels != problem.labels).any()
    assert result.interrupted
    assert result.bounds[-1] == pytest.approx(engine.bound(state), rel=1e-12)
    assert result.bounds[-1] >= result.bounds[0]
    engine.check(state)


# --- moves that lower the bound -----------------------------------------------------------------------------------


class WrongProposals(LocalRows):
    """Rows that propose the moves of a function ``choose(rows, labels)``, as if all of them gained."""

    def __init__(self, rows, choose):
        super().__init__(rows)
        self.choose = choose

    def map_blocks(self, call, rows, *aligned, shared=()):
        """Return the chosen moves in place of those that gain."""
        if call is not sweeps.propose_moves:
            return super().map_blocks(call, rows, *aligned, shared=shared)
        target = self.choose(rows, *aligned).astype(np.int32)
        found = target, np.full(len(rows), np.inf), np.zeros(len(rows), dtype=bool), self.take(rows[target >= 0])
        return [(slice(None), found)]


def cluster_of_number(rows, labels):
    """Choose the cluster of its number for each row that is in another."""
    return np.where(rows % 4 == labels, -1, rows % 4)


def make_random_moves(sweep, block, min_gain, error_factor):
    """Move every row of the block to the cluster of its number."""
    state, n_moves = sweep.state, 0
    for i in block:
        if state.clusters.sizes[state.labels[i]] > 1 and state.labels[i] != i % state.n_clusters:
            engine.move(state, i, i % state.n_clusters)
            n_moves += 1
    return n_moves


def test_an_epoch_that_lowers_the_bound_is_undone(make_problem, monkeypatch):
    problem = make_problem(0, n_rows=60, n_clusters=4, **SHAPE)
    best, _ = run(problem, algorithm="exact")
    state = problem.build(best.labels)
    monkeypatch.setattr(sweeps.GreedySweep, "visit", make_random_moves)
    result = search(state, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(state.labels, best.labels)
    assert not result.converged
    assert result.bounds == [result.bounds[0]]
    engine.check(state)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_a_careful_sweep_makes_no_move_that_lowers_the_bound(make_problem, alpha):
    problem = make_problem(0, n_rows=60, n_clusters=4, **SHAPE)._replace(alpha=alpha)
    best, _ = run(problem, algorithm="exact")
    start = best.labels.copy()
    start[:3] = (start[:3] + 1) % 4
    state = problem.build(start)
    sweep = sweeps.GreedySweep(state, WrongProposals(state.rows, cluster_of_number))
    sweep.is_careful = True
    bound = engine.bound(state)
    for block in np.split(np.random.default_rng(0).permutation(60), 4):
        before, sizes = state.labels.copy(), engine.copy(state).clusters
        n_moves = sweep.visit(block, 0.0, 1.0)
        assert n_moves == (state.labels != before).sum()
        assert engine.bound(state) >= bound
        assert not state.clusters.moved.any()  # every cluster is fresh after the block
        if n_moves == 0:
            for name, value in state.clusters._asdict().items():
                np.testing.assert_array_equal(value, getattr(sizes, name), err_msg=name)
        bound = engine.bound(state)
        if alpha >= 1:
            engine.check(state)


def test_a_careful_sweep_makes_the_moves_that_do_gain(make_problem):
    problem = make_problem(0, n_rows=60, n_clusters=4)
    best, _ = run(problem, algorithm="exact")
    start = best.labels.copy()
    start[:3] = (start[:3] + 1) % 4  # three rows astray
    state = problem.build(start)
    astray = np.arange(3)

    def choose(rows, labels):
        return np.where(rows < 3, best.labels[rows], (labels + 1) % 4)  # and wrong ones

    sweep = sweeps.GreedySweep(state, WrongProposals(state.rows, choose))
    sweep.is_careful = True
    wrong = [i for i in range(3, 60) if engine.gain(state, i, int(state.labels[i] + 1) % 4) < -1.0][:5]
    before = engine.bound(state)
    assert sweep.visit(np.concatenate([astray, wrong]), 1e-6, 1.0) >= 3
    np.testing.assert_array_equal(state.labels[:3], best.labels[:3])
    assert engine.bound(state) > before
    engine.check(state)


def test_hard_rows_are_visited_again_only_when_no_other_row_moves(make_problem):
    state = make_problem(0, n_rows=60).build()
    sweep = sweeps.GreedySweep(state, LocalRows(state.rows))
    rows = np.arange(60)
    sweep.gain_bounds.record(rows, np.ones(60), rows < 5)
    assert len(sweep.active(rows, 0.0, is_verifying=False)) == 60  # while many rows move
    sweep.is_careful = True
    np.testing.assert_array_equal(sweep.active(rows, 0.0, is_verifying=False), rows[5:])
    np.testing.assert_array_equal(sweep.active(rows, 0.0, is_verifying=True), rows)
