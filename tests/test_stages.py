"""Stages of a fit: shares that never fall, and times that follow from what was done so far."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from mmpca.stages import LEAST_SECONDS, LEAST_SHARE, QUIET, Stages


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def told():
    return []


@pytest.fixture
def stages(clock, told):
    return Stages(told.append, clock=clock)


def test_the_time_left_is_that_of_the_cost_to_come_at_the_speed_so_far(stages, clock, told):
    stages.expect({"topics": 30.0, "search": 50.0, "refit": 20.0})
    stages.begin("topics", "topics: pass {step} of {n_steps}", 3)
    clock.now += 20
    stages.step()
    assert told[-1] == ("topics", "topics: pass 2 of 3", pytest.approx(0.1), pytest.approx(180.0))
    clock.now += 40
    stages.begin("search", "search")
    # It told of one pass alone, and so made no other.
    assert told[-1] == ("search", "search", pytest.approx(10 / 80), pytest.approx(60 / 10 * 70))
    clock.now += 60
    stages.begin("refit", "refit")
    assert told[-1][2:] == (pytest.approx(60 / 80), pytest.approx(120 / 60 * 20))
    stages.end()
    assert told[-1] == ("done", "done", 1.0, 0.0)


def test_a_stage_that_tells_of_no_step_has_done_its_cost_when_the_next_begins(stages, clock, told):
    stages.expect({"one": 1.0, "two": 3.0})
    stages.begin("one", "one", 1000)
    clock.now += 10
    stages.begin("two", "two")
    assert told[-1][2:] == (0.25, pytest.approx(30.0))


def test_stages_that_are_passed_over_are_not_waited_for(stages, clock, told):
    stages.expect({"topics": 1.0, "shares": 5.0, "starts": 5.0, "search": 1.0})
    stages.begin("topics", "topics")
    clock.now += 10
    stages.begin("search", "search")
    assert told[-1][2:] == (0.5, pytest.approx(10.0))


def test_new_stages_come_next(stages, clock, told):
    stages.expect({"search": 1.0})
    stages.expect({"prior": 1.0, "topics": 2.0})
    stages.begin("prior", "prior")
    clock.now += 10
    stages.expect({"again": 4.0, "topics": 1.0})
    stages.begin("again", "again")
    assert told[-1][2:] == (pytest.approx(1 / 7), pytest.approx(60.0))
    stages.begin("topics", "topics")
    assert told[-1][2:] == (pytest.approx(5 / 7), pytest.approx(4.0))


def test_a_stage_that_was_not_planned_costs_nothing(stages, clock, told):
    stages.expect({"topics": 1.0, "search": 1.0})
    stages.begin("topics", "topics")
    clock.now += 10
    stages.begin("surprise", "surprise")
    stages.begin("search", "search")
    assert [stage.share for stage in told] == [0.0, 0.5, 0.5]


def test_the_share_never_falls_though_more_may_turn_out_to_be_done(stages, clock, told):
    stages.expect({"starts": 2.0, "refit": 1.0})
    stages.begin("starts", "start {step}", 2, is_sure=False)
    for n_done in range(1, 12):
        clock.now += 10
        stages.reach(n_done)
        stages.reach(n_done - 1)  # another thread was slower
        assert told[-1].text == f"start {n_done + 1}"
    stages.expect({"more": 100.0})
    stages.begin("more", "more")
    shares = [stage.share for stage in told]
    assert shares == sorted(shares)
    assert shares[-1] < 1.0
    assert told[-1].seconds_left > 500


def test_steps_beyond_those_that_are_sure_do_not_make_time_negative(stages, clock, told):
    stages.expect({"only": 1.0})
    stages.begin("only", "pass {step} of {n_steps}", 3)
    clock.now += 10
    stages.step(7)
    assert told[-1] == ("only", "pass 3 of 3", 1.0, 0.0)


def test_after_the_usual_number_of_steps_a_quarter_of_the_stage_is_expected_to_come(stages, clock, told):
    stages.expect({"starts": 4.0})
    stages.begin("starts", "starts", 10, is_sure=False)
    clock.now += 100
    stages.step(10)
    assert told[-1][2:] == (pytest.approx(0.8), pytest.approx(25.0))


def test_a_stage_goes_by_its_own_pace_when_a_part_of_it_is_done(stages, clock, told):
    stages.expect({"topics": 10.0, "starts": 2.0, "refit": 5.0})
    stages.begin("topics", "topics")
    clock.now += 10
    stages.begin("starts", "start {step}", 2)
    clock.now += 60  # where one was expected to take one
    stages.step(0.1)
    assert told[-1].seconds_left == pytest.approx(70 / 10.1 * 6.9)
    stages.step(0.9)
    assert told[-1].seconds_left == pytest.approx(60 + 70 / 11 * 5)
    assert told[-1].share == told[-2].share == pytest.approx(10.1 / 17)  # it seemed to be more, and does not fall
    clock.now += 300
    stages.step(0.9)
    left = 0.1 * 360 / 1.9 + 370 / 11.9 * 5
    assert told[-1][2:] == (pytest.approx(370 / (370 + left)), pytest.approx(left))


def test_nothing_is_said_of_the_time_left_while_there_is_too_little_to_go_by(stages, clock, told):
    stages.expect({"long": 1.0})
    stages.begin("long", "long", 1000)
    clock.now += LEAST_SECONDS / 2
    stages.step(500)
    assert told[-1].seconds_left is None
    clock.now += LEAST_SECONDS
    stages.step()
    assert told[-1].seconds_left is not None


def test_nor_while_little_is_done(stages, clock, told):
    stages.expect({"long": 1.0})
    stages.begin("long", "long", 1000)
    clock.now += 1000
    stages.step(1000 * LEAST_SHARE - 1)
    assert told[-1].seconds_left is None
    stages.step()
    assert told[-1].seconds_left == pytest.approx(49_000)


def test_without_a_plan_there_is_a_name_and_no_time(stages, clock, told):
    stages.step()
    assert told == []
    stages.begin("topics", "topics")
    clock.now += 100
    stages.step()
    assert told[-1] == ("topics", "topics", 0.0, None)


def test_without_a_listener_nothing_is_kept():
    QUIET.expect({"topics": 1.0})
    QUIET.begin("topics", "topics", 3)
    QUIET.step()
    QUIET.reach(2)
    QUIET.end()
    assert not QUIET.is_heard
    assert vars(QUIET)["_present"] is None
    assert vars(QUIET)["_planned"] == {}


def test_a_copy_that_is_sent_elsewhere_has_no_listener(stages, told):
    stages.begin("topics", "topics")
    copy = pickle.loads(pickle.dumps(stages))
    copy.begin("search", "search")
    copy.step()
    assert not copy.is_heard
    assert [stage.name for stage in told] == ["topics"]


def test_threads_lose_no_step_and_tell_in_order(stages, told):
    stages.expect({"rows": 1.0})
    stages.begin("rows", "rows", 2000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: stages.step(), range(2000)))
    shares = [stage.share for stage in told]
    assert len(shares) == 2001
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
