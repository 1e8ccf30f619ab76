"""The row prior that is chosen: what predicts held-out counts, strong where rows mix and weak where they do not."""

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.simulate import sparse_topics
from mmpca.topics import choose_row_prior, held_out_score, prior, split_counts
from mmpca.topics.em import Runner


def simulated(concentration, n_topics=3, n_samples=150, seed=0):
    """Return rows whose shares are Dirichlet with a given concentration, each with its own."""
    topics = sparse_topics(n_topics, 60, 0.1, random_state=seed)
    shares = np.random.default_rng(seed).dirichlet(np.full(n_topics, concentration), size=n_samples)
    return as_counts(np.random.default_rng(seed + 1).multinomial(100, shares @ topics))


def kinds(seed, n_kinds=14, n_samples=400):
    """Return rows of several kinds, each with a topic of its own beside words that all of them share."""
    own, shared = sparse_topics(n_kinds, 120, 0.1, random_state=seed), sparse_topics(1, 120, 0.3, random_state=seed + 1)
    rng = np.random.default_rng(seed)
    return as_counts(rng.multinomial(60, (0.5 * own + 0.5 * shared)[rng.integers(n_kinds, size=n_samples)]))


def choose(rows, n_topics=3, seed=0, **options):
    return choose_row_prior(rows, n_topics, rng=np.random.default_rng(seed), **options)


def test_rows_that_mix_all_topics_get_a_stronger_prior_than_rows_of_single_ones():
    weak, strong = choose(simulated(0.1)), choose(simulated(30.0))
    assert weak.row_prior <= 0.3
    assert strong.row_prior >= 10


def test_the_score_is_that_of_the_mixture_on_what_was_held_out():
    rows = simulated(1.0)
    choice = choose(rows)
    held_out = split_counts(rows, np.random.default_rng(0)).held_out
    expected = held_out_score(held_out, choice.mixture.theta, choice.mixture.beta_rows.T)
    assert choice.score == pytest.approx(expected, rel=1e-12)
    assert choice.scores[choice.row_prior] == max(choice.scores.values())


def test_more_starts_end_at_least_as_high_up_to_what_is_no_difference():
    rows = kinds(1)
    one, two, five = (choose(rows, 14, n_init=n_init, grid=(0.1,)).objective for n_init in (1, 2, 5))
    assert two >= one - prior.SAME_OBJECTIVE
    assert five >= two - prior.SAME_OBJECTIVE
    assert five > one


def test_of_starts_with_equal_objectives_that_which_predicts_best_is_kept(monkeypatch):
    rows = kinds(1)
    monkeypatch.setattr(prior, "SAME_OBJECTIVE", np.inf)
    scores = [choose(rows, 14, n_init=n_init, grid=(0.1,)).score for n_init in (1, 2, 5)]
    assert scores == sorted(scores)
    assert scores[2] > scores[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_where_starts_end_apart_there_are_more_of_them_and_better_topics(seed):
    rows, few, many = kinds(seed), Runner(), Runner()
    three, best = choose(rows, 14, n_init=3, run=few), choose(rows, 14, run=many)
    assert many.n_passes > 1.5 * few.n_passes
    assert best.row_prior == three.row_prior
    assert best.objective > three.objective + 50


def test_where_three_starts_agree_there_are_no_more():
    rows = simulated(1.0)
    three, auto = choose(rows, n_init=3), choose(rows)
    np.testing.assert_array_equal(auto.mixture.beta_rows, three.mixture.beta_rows)


@pytest.mark.parametrize(
    ("objectives", "effort", "expected"),
    [
        ([0.0, 0.0], 0, False),
        ([-1.5, -3.0, 0.0], 0, True),
        ([-4.5, -3.0, 0.0], 0, False),
        ([-90.0, -90.0, -90.0, 0.0], 0, False),
        ([-90.0, 0.0, -90.0, 0.0, -1.0], 0, True),
        ([-90.0, -50.0, 0.0], prior.START_EFFORT, True),
        ([-90.0, 0.0], prior.START_EFFORT, False),
        ([9.0 * n for n in range(prior.MOST_STARTS - 1)], 0, False),
        ([9.0 * n for n in range(prior.MOST_STARTS)], 0, True),
    ],
)
def test_starts_are_enough_when_three_are_as_good_as_the_best_or_they_become_too_many(objectives, effort, expected):
    assert prior._is_enough(objectives, "auto", effort) is expected
    assert prior._is_enough(objectives, len(objectives), effort)
    assert not prior._is_enough(objectives, len(objectives) + 1, effort)


@pytest.mark.parametrize("n_topics", [2, 3])
def test_held_out_counts_tell_the_number_of_topics(n_topics):
    rows = simulated(1.0, n_topics=n_topics, n_samples=300)
    scores = {k: choose(rows, k).score for k in (1, 2, 3, 4)}
    assert max(scores, key=scores.__getitem__) == n_topics


def test_features_of_other_rows_may_be_allowed_for():
    rows = simulated(1.0)
    is_present = np.ones(60, dtype=bool)
    assert (choose(rows, is_present=is_present).mixture.beta_rows > 0).all()
    absent = rows.column_totals() == 0
    assert absent.any()
    assert (choose(rows).mixture.beta_rows[absent] == 0).all()


# --- the walk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("best", "expected"),
    [
        (1.0, [3.0, 10.0, 1.0, 0.3]),
        (0.1, [3.0, 10.0, 1.0, 0.3, 0.1]),
        (3.0, [3.0, 10.0, 1.0]),
        (10.0, [3.0, 10.0, 30.0]),
        (100.0, [3.0, 10.0, 30.0, 100.0]),
    ],
)
def test_the_walk_goes_where_the_score_rises_and_one_step_beyond(best, expected):
    starts = []

    def attempt(row_prior, start):
        starts.append(start)
        return prior.Attempt(row_prior, -abs(np.log(row_prior / best)), row_prior, 0.0)

    tried = prior._walk(prior.GRID, "random", attempt, Runner())
    assert [one.row_prior for one in tried] == expected
    assert starts[0] == "random"
    assert all(
        abs(prior.GRID.index(a) - prior.GRID.index(b)) == 1 for a, b in zip(starts[1:], expected[1:], strict=True)
    )


def test_a_grid_of_one_is_no_walk():
    choice = choose(simulated(1.0), grid=(2.0,))
    assert choice.row_prior == 2.0
    assert list(choice.scores) == [2.0]


def test_a_stop_ends_the_walk_and_the_starts():
    run = Runner(callback=lambda n_passes: n_passes >= 3)
    choice = choose(simulated(1.0), run=run)
    assert run.n_passes == 3
    assert list(choice.scores) == [3.0]
