"""How far a fit is: every fit tells of stages that end with all of it, and none is changed by being watched."""

import numpy as np
import pytest

from mmpca import MMPCA, engine
from mmpca.counts import as_counts
from mmpca.model import searching
from mmpca.model.costs import FAR_STEPS, Sizes, search_costs, start_steps, watched
from mmpca.model.inspection import FIRST_SECONDS, expected_seconds
from mmpca.model.starts import KINDS
from mmpca.stages import QUIET, Stages
from mmpca.topics.costs import UNIT


def names(told):
    return list(dict.fromkeys(stage.name for stage in told))


def assert_sound(told):
    shares = [stage.share for stage in told]
    assert shares == sorted(shares)
    assert told[-1] == ("done", "done", 1.0, 0.0)
    assert all(stage.seconds_left is None or stage.seconds_left >= 0 for stage in told)


@pytest.mark.parametrize("options", [
    {}, {"n_jobs": 2}, {"n_init": "auto"}, {"algorithm": "exact"}, {"algorithm": "cvem"}, {"algorithm": "vbem"},
    {"topics": "random"}, {"refit_topics": False}, {"start": "random"}, {"max_epochs": 0},
    {"start": np.arange(80) % 4},
])  # fmt: skip
def test_every_fit_tells_of_stages_and_is_what_it_is_without(X, options, same_fit):
    options = {"n_clusters": 4, "n_topics": 3, "n_init": 2, "random_state": 0} | options
    told = []
    model = MMPCA(**options).fit(X, on_stage=told.append)
    assert_sound(told)
    same_fit(model, MMPCA(**options).fit(X))
    expected = ["prior", "topics", "shares", "starts", "refit", "dispersion", "done"]
    if "topics" in options:
        expected = expected[2:]
    if "start" in options:
        expected.remove("shares")
    if not options.get("refit_topics", True) or options.get("algorithm") == "vbem":
        expected.remove("refit")
    assert names(told) == expected


def test_of_many_rows_the_best_start_is_carried_on(X, monkeypatch, same_fit):
    monkeypatch.setattr(searching, "SAMPLED_ROWS", 50)
    told = []
    options = {"n_clusters": 4, "n_topics": 3, "n_init": 2, "random_state": 0}
    model = MMPCA(**options).fit(X, on_stage=told.append)
    assert_sound(told)
    assert names(told)[2:] == ["shares", "starts", "carrying", "search", "refit", "dispersion", "done"]
    assert any(stage.text.startswith("all rows, epoch 1, ") for stage in told if stage.name == "search")
    same_fit(model, MMPCA(**options).fit(X))


def test_a_search_is_told_with_its_start_epoch_moves_and_bound(X):
    told, seen = [], []
    MMPCA(4, 3, n_init=2, random_state=0).fit(X, on_stage=told.append, callback=lambda *now: seen.append(now) and False)
    lines = [stage.text for stage in told if stage.name == "starts"]
    assert list(dict.fromkeys(line for line in lines if ":" in line)) == [
        "start 1: first labels",
        "start 2: first labels",
    ]
    assert [line for line in lines if ":" not in line] == [
        f"start {number + 1}, epoch {now.epoch}, {now.n_moves:,} moves, bound {now.bound:,.1f}" for number, now in seen
    ]


def test_a_true_answer_of_the_callback_still_stops_a_watched_search(X):
    told = []
    with pytest.warns(match="interrupted"):
        MMPCA(4, 3, n_init=2, random_state=0).fit(X, on_stage=told.append, callback=lambda *_: True)
    assert_sound(told)


def test_an_error_of_the_listener_is_not_swallowed(X):
    def fail(stage):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        MMPCA(4, 3, random_state=0).fit(X, on_stage=fail)


# --- costs ------------------------------------------------------------------------------------------------------

LARGE = Sizes(n_entries=8_100_000, n_features=50_000, n_clusters=30, n_topics=30)


def test_costs_stand_to_each_other_as_the_times_that_were_measured():
    costs = search_costs(LARGE, 2, sampled=0.5, is_refitted=True)
    measured = {"shares": 3.3, "starts": 35.7, "carrying": 1.6, "search": 10.2, "refit": 14.5, "dispersion": 0.2}
    unit = sum(costs.values()) / sum(measured.values())
    assert costs.keys() == measured.keys()
    for name, seconds in measured.items():
        assert costs[name] / unit == pytest.approx(seconds, rel=0.35)


def test_costs_grow_with_the_sizes_that_they_depend_on():
    costs = search_costs(LARGE, 2, is_refitted=True)
    assert list(costs) == ["shares", "starts", "refit", "dispersion"]
    wider = search_costs(LARGE._replace(n_features=100_000), 2, is_refitted=True)
    assert wider["refit"] == 2 * costs["refit"]
    assert wider["shares"] == costs["shares"]
    assert search_costs(LARGE, 4, is_refitted=True)["starts"] == 2 * costs["starts"]
    assert "refit" not in search_costs(LARGE, 2, is_refitted=False)


def test_a_search_comes_near_its_end_with_every_epoch_and_never_there():
    told = []
    stages = Stages(told.append, clock=lambda: 0.0)
    stages.expect({"starts": 1.0})
    stages.begin("starts", "starts", 2)
    tell = watched(None, stages, [1.0, 1.0])
    for epoch in range(1, 40):
        for n_done in (50, 100):
            tell(0, engine.Progress(epoch, n_done, 100, 0, -1.0))
    shares = [stage.share for stage in told]
    assert (np.diff(shares) >= 0).all()
    assert shares[1] > 0.35 / 2
    assert shares[-1] == pytest.approx(0.5, abs=0.01)
    tell(1, engine.Progress(1, 0, 100, 0, -1.0))
    assert told[-1].share == pytest.approx((1 + 0.35) / 2)


def test_a_start_from_random_labels_counts_for_several_from_k_means():
    assert FAR_STEPS.keys() < set(KINDS)
    assert start_steps(["kmeans", "random", "anneal", "given", "sample"]) == [1.0, 5.0, 5.0, 1.0, 1.0]
    told = []
    stages = Stages(told.append, clock=lambda: 0.0)
    stages.expect({"starts": 1.0})
    stages.begin("starts", "starts", 6)
    tell = watched(None, stages, [1.0, 5.0])
    tell(0, engine.Progress(1, 0, 100, 0, -1.0))
    assert told[-1].share == pytest.approx(0.35 / 6)
    tell(1, engine.Progress(1, 0, 100, 0, -1.0))
    assert told[-1].share == pytest.approx((1 + 5 * 0.35) / 6)


def test_starts_side_by_side_count_each_for_what_it_has_done():
    told = []
    stages = Stages(told.append, clock=lambda: 0.0)
    stages.expect({"starts": 1.0})
    stages.begin("starts", "starts", 4)
    tell = watched(None, stages, [1.0] * 4, n_at_once=2)
    first = engine.Progress(1, 0, 100, 0, -1.0)
    for number, expected in ((0, 0.35), (1, 0.7), (2, 1.7)):
        tell(number, first)
        assert told[-1].share == pytest.approx(expected / 4)


def test_who_has_no_listener_keeps_the_callback():
    def callback(number, now):
        return False

    assert watched(callback, QUIET) is callback
    assert watched(None, QUIET) is None


@pytest.mark.parametrize("is_sampled", [False, True], ids=["all rows", "a sample of them"])
def test_what_is_told_before_a_fit_is_what_it_plans(X, monkeypatch, is_sampled):
    if is_sampled:
        monkeypatch.setattr("mmpca.topics.lda.SEARCH_WORK", 3000)
        monkeypatch.setattr("mmpca.topics.lda.SEARCH_COVER", 1)
    planned = {}
    expect = Stages.expect
    monkeypatch.setattr(Stages, "expect", lambda stages, costs: planned.update(costs) or expect(stages, costs))
    MMPCA(4, 3, random_state=0).fit(X, on_stage=lambda stage: None)
    counts = as_counts(X)
    assert ("sample" in planned) == is_sampled
    seconds = UNIT * sum(planned.values())
    expected = expected_seconds(counts, 4, 3) - FIRST_SECONDS
    assert expected == pytest.approx(seconds, rel=0.2 if is_sampled else 1e-9)
