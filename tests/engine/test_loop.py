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

from mmpca import engine, kernels, places
from mmpca.counts import as_counts
from mmpca.engine import Progress, loop, sweeps

IS_COMPILED = not numba.config.DISABLE_JIT
SIZES = {} if IS_COMPILED else {"max_rows": 12, "max_features": 10, "max_length": 100}
SHAPE = {} if IS_COMPILED else {"n_features": 10, "n_topics": 3, "max_length": 50}
SEEDS = range(5) if IS_COMPILED else range(1)
ALGORITHMS = ["greedy", "exact", "cvem"]


def examples(n, without_jit=10):
    """Return Hypothesis settings for n problems, fewer where everything is interpreted."""
    return settings(max_examples=n if IS_COMPILED else without_jit, deadline=None, derandomize=True)


def run(problem, *, seed=0, **options):
    """Return the state that a search of the problem ends with, and what it did."""
    state = problem.build()
    return state, engine.search(state, rng=np.random.default_rng(seed), **options)


def orders(*permutations):
    """Return a generator that visits the rows in the given orders, one for each epoch."""
    remaining = iter(permutations)
    return SimpleNamespace(permutation=lambda n_rows: next(remaining))


def best_gain(state):
    """Return the largest gain of any single move."""
    return max(engine.gain(state, i, q) for i in range(len(state.labels)) for q in range(state.n_clusters))


def is_stationary(state):
    """Tell whether the VE-steps have converged; under a prior below one they may run out of iterations."""
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
    """Return the labels of Algorithm 1 of the paper, every bound computed from nothing."""
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
    assume(problem.alpha >= 1 or is_stationary(state))
    assert_at_local_maximum(state, result)
    engine.check(state)


@examples(60, without_jit=6)
@given(data=st.data())
def test_the_exact_search_climbs_to_a_partition_that_no_single_move_improves(problems, data):
    problem = data.draw(problems(**SIZES))
    state, result = run(problem, algorithm="exact", max_epochs=200)
    assert_monotone(result)
    assume(problem.alpha >= 1 or is_stationary(state))
    assert_at_local_maximum(state, result)
    engine.check(state)


@examples(60)
@given(data=st.data())
def test_cvem_never_lowers_the_bound_and_leaves_no_cluster_empty(problems, data):
    problem = data.draw(problems(**SIZES))
    state, result = run(problem, algorithm="cvem", max_epochs=200)
    assert_monotone(result)
    assert result.converged
    assert state.sizes.min() >= 1
    assume(problem.alpha >= 1 or is_stationary(state))
    engine.check(state)
    assert result.bounds[-1] == pytest.approx(engine.bound(state), rel=1e-12)


def test_cvem_ends_where_every_row_that_may_move_fits_its_own_cluster_best(make_problem):
    problem = make_problem(0, n_rows=60)
    state, result = run(problem, algorithm="cvem")
    score = problem.X @ state.tables[:, :3] + np.log(state.sizes)
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


@pytest.mark.parametrize("work", [0, np.inf], ids=["twice the error", "sixteen times the error"])
def test_margins_instead_of_a_last_exact_look_nearly_always_end_at_a_local_maximum(make_problem, monkeypatch, work):
    monkeypatch.setattr(sweeps, "EXACT_CHECK_WORK", 0)
    monkeypatch.setattr(sweeps, "WIDE_CHECK_WORK", work)
    rng = np.random.default_rng(0)
    n_problems, n_missed = 100 if IS_COMPILED else 4, 0
    for seed in range(n_problems):
        character = {"n_clusters": rng.integers(2, 8), "n_topics": rng.integers(1, 8)}
        problem = make_problem(seed, concentration=rng.choice([0.1, 1.0]), **(SHAPE | character))
        state, result = run(problem)
        assert_monotone(result)
        assert result.converged
        n_missed += best_gain(state) > 1e-9 * abs(result.bounds[-1])
    assert n_missed <= 0.01 * n_problems


def test_the_last_look_is_exact_on_small_problems_and_under_a_prior_below_one(make_problem, monkeypatch):
    problem = make_problem(0)  # 40 rows, 3 clusters, 4 topics, 25 features: 12,000 in all
    state, sparse = problem.build(), problem._replace(alpha=0.9).build()
    cautions = []
    for exact, wide in ((12_000, 0), (11_999, 12_000), (11_999, 11_999)):
        monkeypatch.setattr(sweeps, "EXACT_CHECK_WORK", exact)
        monkeypatch.setattr(sweeps, "WIDE_CHECK_WORK", wide)
        cautions.append((sweeps.last_caution(state), sweeps.last_caution(sparse)))
    assert cautions == [(1e100, 1e100), (16.0, 1e100), (2.0, 1e100)]


# --- it agrees with references and special cases ------------------------------------------------------------------


@examples(15, without_jit=4)
@given(data=st.data())
def test_the_exact_search_is_algorithm_1_of_the_paper(problems, data):
    problem = data.draw(problems(max_rows=8, max_features=8, max_length=100, alphas=(1.0, 3.0)))
    # Two moves of the same gain are told apart by rounding alone: no row or topic may occur twice.
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
    np.testing.assert_array_equal(np.sort(state.sizes), sizes)
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
    assert not state.moved.any()


# --- it is the same for everyone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_result_is_bit_identical_for_any_number_of_threads(make_problem, monkeypatch, algorithm):
    n_rows = 2000 if IS_COMPILED else 80
    problem = make_problem(0, n_rows=n_rows, n_clusters=6, **SHAPE)
    monkeypatch.setattr(places, "ROWS_PER_TASK", 16)
    sizes = []
    for name in ("propose", "assign"):
        kernel = getattr(kernels, name)

        def counted(*arguments, kernel=kernel):
            sizes.append(len(arguments[-2]))
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, counted)
    alone, alone_result = run(problem, algorithm=algorithm, max_epochs=3)
    sizes.clear()
    shared, shared_result = run(problem, algorithm=algorithm, max_epochs=3, n_threads=2)
    if algorithm != "exact":
        assert max(sizes) == 16  # blocks were really cut into tasks
    assert shared_result == alone_result
    for name in ("labels", "gamma", "value", "tables"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_seed_gives_the_same_result(make_problem, algorithm):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    state, result = run(problem, algorithm=algorithm, seed=3)
    again, same = run(problem, algorithm=algorithm, seed=3)
    assert same == result
    np.testing.assert_array_equal(again.labels, state.labels)


def test_a_new_order_is_drawn_for_every_epoch(make_problem):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    state, result = run(problem, seed=3)
    rng = np.random.default_rng(3)
    permutations = [rng.permutation(60) for _ in range(result.n_epochs)]
    again = problem.build()
    assert engine.search(again, rng=orders(*permutations)) == result
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
    result = engine.search(state, algorithm=algorithm, rng=orders(*permutations))
    places = np.argsort(rows)  # where each row has gone
    same = engine.search(other, algorithm=algorithm, rng=orders(*(places[order] for order in permutations)))
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
    run = engine.search(state, algorithm=algorithm, rng=np.random.default_rng(0))
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
    assert [loop.block_size(n, "greedy") for n in (1, 100, 1600, 10**5, 10**6)] == [32, 32, 100, 4096, 15625]
    assert loop.block_size(12345, "cvem") == 12345


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_epochs_the_start_is_evaluated_and_left_alone(make_problem, algorithm):
    problem = make_problem(0)
    state, result = run(problem, algorithm=algorithm, max_epochs=0)
    np.testing.assert_array_equal(state.labels, problem.labels)
    assert result == engine.Run(bounds=[engine.bound(state)], n_moves=[], converged=False, interrupted=False)
    assert result.n_epochs == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_search_goes_on_from_where_another_stopped(make_problem, algorithm):
    problem = make_problem(0, n_rows=60, n_clusters=5, **SHAPE)
    whole, result = run(problem, algorithm=algorithm)
    state, rng = problem.build(), np.random.default_rng(0)
    bounds = [engine.search(state, algorithm=algorithm, rng=rng, max_epochs=1).bounds[-1] for _ in result.n_moves]
    np.testing.assert_array_equal(state.labels, whole.labels)
    assert bounds == pytest.approx(result.bounds[1:], rel=1e-12)


def test_a_move_must_gain_more_than_the_tolerance(make_problem):
    problem = make_problem(0)
    state, result = run(problem, tol=1.0)
    assert result.n_moves == [0]
    np.testing.assert_array_equal(state.labels, problem.labels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_callback_is_told_after_every_block_where_the_search_stands(make_problem, algorithm):
    problem = make_problem(1, n_rows=80, n_clusters=4, **SHAPE)
    reports = []
    _, result = run(problem, algorithm=algorithm, callback=reports.append)
    done = [80] if algorithm == "cvem" else [32, 64, 80]
    for epoch, (bound, n_moves) in enumerate(zip(result.bounds[:-1], result.n_moves, strict=True), start=1):
        of_epoch = [report for report in reports if report.epoch == epoch]
        assert all(type(report) is Progress for report in of_epoch)
        assert [report.n_done for report in of_epoch][: len(done)] == done
        assert {report.n_rows for report in of_epoch} == {80}
        assert {report.bound for report in of_epoch} == {bound}
        assert np.diff([report.n_moves for report in of_epoch]).min(initial=0) >= 0
        assert of_epoch[-1].n_moves == n_moves
        # An epoch without a move is one that the greedy search has looked at twice.
        assert len(of_epoch) == len(done) * (2 if algorithm == "greedy" and n_moves == 0 else 1)
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
    result = engine.search(state, rng=np.random.default_rng(1), callback=lambda _: True)
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
    owner, name = (sweeps, "_apply") if algorithm == "greedy" else (sweeps.CvemSweep, "visit")
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


# --- an epoch that lowers the bound is repaired -------------------------------------------------------------------


def make_random_moves(sweep, block, min_gain, caution):
    """Move every row of the block to a cluster by its number: a sweep that knows no gain."""
    state, n_moves = sweep.state, 0
    for i in block:
        if state.sizes[state.labels[i]] > 1 and state.labels[i] != i % state.n_clusters:
            engine.move(state, i, i % state.n_clusters)
            n_moves += 1
    return n_moves


def test_moves_that_lower_the_bound_are_undone(make_problem, monkeypatch):
    problem = make_problem(0, n_rows=60, n_clusters=4, **SHAPE)
    best, _ = run(problem, algorithm="exact")
    state = problem.build(best.labels)
    monkeypatch.setattr(sweeps.GreedySweep, "visit", make_random_moves)
    result = engine.search(state, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(state.labels, best.labels)
    assert result.n_moves == [0]
    assert result.converged
    assert result.bounds[1] >= result.bounds[0]
    engine.check(state)


class Watched(places.Here):
    """Rows that tell which of them are brought to the caller."""

    def __init__(self, rows):
        super().__init__(rows)
        self.brought = []

    def take(self, rows):
        self.brought.append(rows)
        return super().take(rows)

    def each(self, call, rows, *aligned, shared=()):
        answers = super().each(call, rows, *aligned, shared=shared)
        if call is sweeps.propose_rows:
            self.brought.append(rows[answers[0][1].target >= 0])
        return answers


def test_a_repair_brings_the_rows_that_gain_and_no_other(make_problem, monkeypatch):
    problem = make_problem(0, n_rows=60, n_clusters=4)  # where none of those that are misled gains without the others
    best, _ = run(problem, algorithm="exact")
    start, astray, misled = best.labels.copy(), np.arange(3), np.arange(20, 60)
    start[astray] = (start[astray] + 1) % 4
    place = Watched(as_counts(problem.X))
    state = engine.build_at(place, start, n_clusters=4, beta=problem.beta, alpha=problem.alpha)

    def mislead(sweep, block, min_gain, caution):
        rows = sweep.state._replace(rows=place.rows)
        moving = [i for i in block if i in misled and rows.sizes[rows.labels[i]] > 1]
        for i in moving:
            engine.move(rows, i, (rows.labels[i] + 1) % 4)
        return len(moving)

    monkeypatch.setattr(sweeps.GreedySweep, "visit", mislead)
    monkeypatch.setattr(loop, "LARGE_BLOCK", 8)
    result = loop.climb(state, rng=np.random.default_rng(0), limits=loop.Limits(max_epochs=1), place=place)
    assert result.n_moves == [3]
    np.testing.assert_array_equal(state.labels, best.labels)
    brought = np.concatenate(place.brought)
    assert set(astray) <= set(brought) <= set(astray) | set(misled)
    assert max(map(len, place.brought)) <= 8
    engine.check(state._replace(rows=place.rows))


def test_a_repaired_epoch_makes_the_moves_that_do_gain(make_problem, monkeypatch):
    problem = make_problem(0, n_rows=60, n_clusters=4, **SHAPE)
    best, _ = run(problem, algorithm="exact")
    start = best.labels.copy()
    start[:3] = (start[:3] + 1) % 4  # three rows astray, which alone should come back
    state = problem.build(start)
    monkeypatch.setattr(sweeps.GreedySweep, "visit", make_random_moves)
    result = engine.search(state, rng=np.random.default_rng(0), max_epochs=20)
    assert_monotone(result)
    assert result.n_moves[0] > 0
    assert result.bounds[1] > result.bounds[0]
    assert_at_local_maximum(state, result)
    engine.check(state)
