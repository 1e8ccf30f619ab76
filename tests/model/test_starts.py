"""Where the search starts, which start is kept, and what an interruption leaves."""

import os
import subprocess
import sys
import textwrap
import threading
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA, engine
from mmpca.counts import as_counts
from mmpca.errors import InterruptedSearchWarning
from mmpca.model import estimator, starts
from mmpca.model.searching import Searched, Watch, _try
from mmpca.places import Here
from mmpca.topics import topic_shares


class Call(NamedTuple):
    """The starts of a fit, the labels that they began with, and where they ended."""

    starts: list
    labels: list
    outcomes: list


@pytest.fixture
def recorded(monkeypatch):
    """Return a list that receives a `Call` for each fit."""
    calls = []
    run, draw = starts.Searches.run, starts.draw_labels

    def record(searches, n_threads):
        calls.append(Call(searches.starts, [], []))
        calls[-1].outcomes.extend(run(searches, n_threads))
        return calls[-1].outcomes

    def record_labels(*arguments):
        calls[-1].labels.append(draw(*arguments))
        return calls[-1].labels[-1]

    monkeypatch.setattr(starts.Searches, "run", record)
    monkeypatch.setattr(starts, "draw_labels", record_labels)
    return calls


def kinds(recorded):
    return [outcome.start.kind for outcome in recorded[-1].outcomes]


# --- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_samples", "n_clusters"), [(10, 3), (12, 4), (5, 5), (7, 1)])
def test_random_labels_are_balanced_and_shuffled(n_samples, n_clusters):
    drawn = [starts.random_labels(n_samples, n_clusters, np.random.default_rng(seed)) for seed in range(20)]
    for labels in drawn:
        assert labels.dtype == np.int32
        sizes = np.bincount(labels, minlength=n_clusters)
        assert sizes.shape == (n_clusters,)
        assert np.ptp(sizes) <= 1
    if n_clusters > 1:
        assert len({labels.tobytes() for labels in drawn}) > 10


def test_kmeans_labels_separate_rows_that_differ_in_their_topics():
    truth = np.repeat([0, 1, 2], 10)
    shares = np.full((30, 3), 0.05) + np.random.default_rng(0).uniform(0, 0.01, (30, 3))
    shares[np.arange(30), truth] = 0.9
    labels = starts.kmeans_labels(shares, 3, np.random.default_rng(0))
    assert labels.dtype == np.int32
    assert adjusted_rand_score(truth, labels) == 1


@pytest.mark.parametrize("n_distinct", [1, 2, 3])
def test_kmeans_labels_fill_all_clusters_where_there_are_fewer_distinct_rows(n_distinct):
    shares = np.repeat(np.eye(3)[:n_distinct], 4, axis=0)
    labels = starts.kmeans_labels(shares, 5 if n_distinct > 1 else 4, np.random.default_rng(0))
    assert (np.bincount(labels, minlength=4) > 0).all()
    distinct_of = [np.unique(shares[labels == q], axis=0) for q in np.unique(labels)]
    assert all(len(rows) == 1 for rows in distinct_of)  # rows were taken out of clusters, never mixed


@pytest.mark.parametrize("difference", [1e-9, 1e-14])
def test_kmeans_labels_of_rows_that_differ_by_rounding_come_without_a_warning(difference):
    first = np.concatenate([0.3 + difference * np.arange(6), 0.9 + difference * np.arange(6)])
    labels = starts.kmeans_labels(np.column_stack([first, 1 - first]), 8, np.random.default_rng(0))
    assert (np.bincount(labels, minlength=8) > 0).all()


def test_empty_clusters_are_filled_from_the_largest_and_no_other_row_moves():
    labels = np.array([0] * 5 + [3] * 2, dtype=np.int32)
    filled = starts.fill_empty(labels, 5, np.random.default_rng(0))
    assert np.bincount(filled).tolist() == [2, 1, 1, 2, 1]
    assert (filled[5:] == 3).all()
    assert labels.tolist() == [0] * 5 + [3] * 2  # the argument is not changed


# --- kinds of starts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("auto", ["kmeans", "random", "anneal", "kmeans", "random"]),
        ("random", ["random"] * 5),
        ("kmeans", ["kmeans"] * 5),
        ("anneal", ["anneal"] * 5),
    ],
)
def test_each_start_is_of_the_kind_asked_for_and_none_is_like_another(X, recorded, start, expected):
    MMPCA(4, 3, start=start, n_init=5, max_epochs=0, random_state=0).fit(X)
    assert kinds(recorded) == expected
    labels = recorded[0].labels
    for kind, drawn in zip(expected, labels, strict=True):
        assert kind != "random" or np.bincount(drawn).tolist() == [20] * 4
    randoms = {drawn.tobytes() for kind, drawn in zip(expected, labels, strict=True) if kind == "random"}
    assert len(randoms) == expected.count("random")


def test_a_kmeans_start_is_kmeans_on_the_rows_in_topic_space(data, X, model):
    """The seed decides which of its local optima is met, the partition is near the truth with any."""
    start = MMPCA(4, 3, topics=data.topics, start="kmeans", n_init=1, max_epochs=0, random_state=0).fit(X)
    random = MMPCA(4, 3, topics=data.topics, start="random", n_init=1, max_epochs=0, random_state=0).fit(X)
    assert adjusted_rand_score(data.labels, start.labels_) > 0.5
    assert adjusted_rand_score(data.labels, random.labels_) < 0.2
    shares = topic_shares(estimator.as_counts(X), data.topics, prior=1.0)
    centres = np.array([np.sqrt(shares[start.labels_ == q]).mean(axis=0) for q in range(4)])
    nearest = ((np.sqrt(shares)[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == start.labels_).mean() > 0.97


def test_given_labels_make_one_start(X, recorded):
    labels = np.arange(80) % 4
    MMPCA(4, 3, start=labels, n_init=7, random_state=0).fit(X)
    assert kinds(recorded) == ["given"]
    np.testing.assert_array_equal(recorded[0].labels[0], labels)


@pytest.mark.parametrize("form", [list, np.int8, np.uint64, float])
def test_given_labels_may_have_any_type_that_holds_whole_numbers(X, form):
    labels = np.arange(80) % 4
    given = labels.tolist() if form is list else labels.astype(form)
    model = MMPCA(4, 3, start=given, max_epochs=0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.labels_.dtype == np.int32


def test_automatic_starts_are_fewer_for_more_rows_as_documented():
    assert [starts.auto_plan(n) for n in (1, 2_000, 2_001, 20_000, 20_001)] == [(10, 3)] * 2 + [(6, 2)] * 2 + [(3, 1)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_automatic_starts_end_when_further_ones_are_no_better(data, X, recorded, n_jobs):
    MMPCA(4, 3, topics=data.topics, n_jobs=n_jobs, random_state=0).fit(X)
    bounds = [outcome.bound for outcome in recorded[0].outcomes]
    assert len(recorded[0].starts) == 10
    assert 4 <= len(bounds) < 10
    assert max(bounds[-3:]) <= max(bounds[:-3]) * (1 - 1e-9)  # bounds are negative
    assert not any(starts.is_enough(bounds[:n], 3) for n in range(len(bounds)))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [([], False), ([-5.0], False), ([-5.0, -6.0], False), ([-5.0, -6.0, -5.0], True), ([-6.0, -5.0, -5.0], False)],
)
def test_patience_ends_after_two_starts_that_are_no_better(bounds, expected):
    assert starts.is_enough(bounds, 2) is expected


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_starts_that_are_searched_side_by_side_are_those_that_one_after_another_are(patience):
    for bounds in product([-3.0, -2.0, -2.0 * (1 + 1e-12), -1.0], repeat=5):
        n_made = next((n for n in range(6) if starts.is_enough(bounds[:n], patience)), 5)
        n_done = 0
        while n_next := starts.n_needed(bounds[:n_done], patience, 5):
            n_done += n_next
        assert n_done == n_made


def test_a_number_of_starts_that_is_given_is_made(data, X, recorded):
    MMPCA(4, 3, topics=data.topics, n_init=7, random_state=0).fit(X)
    assert len(recorded[0].outcomes) == 7


def test_the_model_tells_of_each_start(data, X, recorded):
    model = MMPCA(4, 3, topics=data.topics, n_init=3, random_state=0).fit(X)
    assert [report.kind for report in model.starts_] == ["kmeans", "random", "anneal"]
    assert len({report.seed for report in model.starts_}) == 3
    for report, outcome in zip(model.starts_, recorded[0].outcomes, strict=True):
        assert (report.bound, report.n_epochs) == (outcome.bound, outcome.run.n_epochs)
        assert report.converged
        assert report.seconds > 0
    assert model.bound_ == max(report.bound for report in model.starts_)


def test_the_start_with_the_best_bound_is_kept(data, X, recorded):
    model = MMPCA(4, 3, topics=data.topics, start="random", n_init=8, algorithm="cvem", random_state=0).fit(X)
    outcomes = recorded[0].outcomes
    bounds = [outcome.bound for outcome in outcomes]
    assert len(set(bounds)) > 2  # or the test would show nothing
    best = outcomes[int(np.argmax(bounds))]
    assert model.bound_ == max(bounds)
    np.testing.assert_array_equal(model.labels_, best.labels)
    np.testing.assert_array_equal(model.bound_history_, best.run.bounds)
    assert model.n_epochs_ == best.run.n_epochs


def test_more_starts_begin_with_the_same_ones(data, X, recorded):
    for n_init in (2, 5):
        MMPCA(4, 3, topics=data.topics, n_init=n_init, random_state=0).fit(X)
    few, many = (call.outcomes for call in recorded)
    for outcome, other in zip(few, many[:2], strict=True):
        assert outcome.bound == other.bound
        np.testing.assert_array_equal(outcome.labels, other.labels)


# --- threads ----------------------------------------------------------------------------------------------------


def test_starts_are_searched_side_by_side(X):
    both = threading.Barrier(2)
    met = []

    def meet(number, progress):
        if number not in met:
            met.append(number)
            both.wait(timeout=30)  # breaks, with an error, unless the other start gets here as well

    MMPCA(4, 3, n_init=2, n_jobs=2, random_state=0).fit(X, callback=meet)
    assert sorted(met) == [0, 1]


@pytest.mark.parametrize(("n_jobs", "n_init", "expected"), [(1, 3, 1), (2, 3, 1), (4, 2, 2), (6, 2, 3), (4, 1, 4)])
def test_threads_that_the_starts_leave_are_shared_between_their_rows(X, monkeypatch, n_jobs, n_init, expected):
    used = []
    threads = starts.threads

    def record(n_threads):
        used.append(n_threads)
        return threads(n_threads)

    monkeypatch.setattr(starts, "threads", record)
    MMPCA(4, 3, n_init=n_init, n_jobs=n_jobs, random_state=0).fit(X)
    assert used == [expected] * n_init


# --- interruption -----------------------------------------------------------------------------------------------


class Stop:
    """A callback that answers, or raises, after some blocks."""

    def __init__(self, after, *, raises=None):
        self.after, self.raises, self.calls = after, raises, []

    def __call__(self, number, progress):
        self.calls.append((number, progress))
        if len(self.calls) == self.after and self.raises is not None:
            raise self.raises
        return len(self.calls) >= self.after


def searching(data, algorithm, n_jobs):
    return MMPCA(4, 3, topics=data.topics, start="random", n_init=5, algorithm=algorithm, n_jobs=n_jobs, random_state=0)


def assert_is_usable(model, X, scratch_bound, beta):
    assert model.converged_ is False
    assert model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=beta), rel=1e-12)
    assert (np.diff(model.bound_history_) >= 0).all()
    assert model.refit_bound_ >= model.bound_
    assert model.predict(X).shape == (80,)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1)


def test_the_callback_learns_the_number_of_the_start_and_its_progress(data, X):
    watch = Stop(after=10**9)
    model = MMPCA(4, 3, topics=data.topics, n_init=3, random_state=0).fit(X, callback=watch)
    assert sorted({number for number, _ in watch.calls}) == [0, 1, 2]
    for number in range(3):
        own = [progress for n, progress in watch.calls if n == number]
        assert [progress.epoch for progress in own] == sorted(progress.epoch for progress in own)
        assert own[0].epoch == 1
        assert own[0].n_rows == 80
        assert 0 < own[0].n_done <= 80
        assert (np.diff([progress.bound for progress in own]) >= 0).all()
    assert model.bound_ >= max(progress.bound for _, progress in watch.calls)


@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("after", [1, 4])
def test_a_true_answer_of_the_callback_stops_the_search_and_keeps_the_best_state(
    data, X, algorithm, n_jobs, after, scratch_bound
):
    stop = Stop(after)
    model = MMPCA(
        4, 3, topics=data.topics, start="random", n_init=5, algorithm=algorithm, n_jobs=n_jobs, random_state=0
    )
    with pytest.warns(InterruptedSearchWarning, match=r"after [12] of its starts had begun; the best state so far"):
        model.fit(X, callback=stop)
    assert len(stop.calls) <= after + 3  # searches beside it end their block
    assert_is_usable(model, X, scratch_bound, data.topics)
    assert model.bound_ > model.bound_history_[0]


@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_search_keeps_the_best_state(data, X, algorithm, n_jobs, scratch_bound):
    stop = Stop(3, raises=KeyboardInterrupt)
    model = MMPCA(
        4, 3, topics=data.topics, start="random", n_init=5, algorithm=algorithm, n_jobs=n_jobs, random_state=0
    )
    with pytest.warns(InterruptedSearchWarning, match="converged_ tells whether it is a maximum"):
        model.fit(X, callback=stop)
    assert_is_usable(model, X, scratch_bound, data.topics)


def test_clusters_begin_near_the_shares_of_their_rows_and_end_where_they_would(data, X):
    rows, labels = as_counts(X), data.labels.astype(np.int32)
    shares = topic_shares(rows, data.topics, prior=1.0)
    task = starts.Task(rows, data.topics, 1.0, 4, "greedy", 50, 1e-10, shares=shares)
    gamma = starts.first_gamma(task, starts.Start("kmeans", 0), labels)
    common = {"n_clusters": 4, "beta": data.topics, "alpha": 1.0}
    cold = engine.build(rows, labels, **common)
    warm = engine.build_at(Here(rows), labels, **common, gamma=gamma)
    np.testing.assert_allclose(gamma.sum(axis=1), cold.gamma.sum(axis=1))
    assert np.abs(gamma - cold.gamma).max() < 0.2 * cold.gamma.max()
    np.testing.assert_allclose(warm.gamma, cold.gamma, rtol=1e-6)
    assert starts.first_gamma(task, starts.Start("random", 0), labels) is None
    assert starts.first_gamma(task._replace(alpha=0.5), starts.Start("kmeans", 0), labels) is None


def test_starts_that_are_done_survive_an_interruption_of_those_elsewhere():
    class Elsewhere:
        is_here, n_asked = False, 0

        def keep(self, value):
            return value

        def several(self, call, asked):
            self.n_asked += len(asked)
            if self.n_asked > 2:
                raise KeyboardInterrupt
            return [Searched([SimpleNamespace(bound=float(number))], False) for number in range(len(asked))]

    planned = [starts.Start("random", seed) for seed in range(5)]
    found = _try(Elsewhere(), np.arange(9), None, planned, 1, Watch())
    assert [outcome.bound for outcome in found.outcomes] == [0.0, 1.0]
    assert found.is_interrupted
    with pytest.raises(KeyboardInterrupt):
        _try(Elsewhere(), np.arange(9), None, planned, 2, Watch())


def test_an_interruption_while_starts_are_tried_on_some_rows_leaves_labels_of_all(data, X, monkeypatch, tmp_path):
    monkeypatch.setattr("mmpca.model.searching.SAMPLED_ROWS", X.shape[0] // 2)
    model = MMPCA(4, 3, topics=data.topics, random_state=0)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=lambda number, progress: True, checkpoint=tmp_path / "kept")
    assert [report.kind for report in model.starts_][1:] == ["sample"]
    assert not model.converged_
    assert model.n_epochs_ == 0
    assert set(model.labels_) == {0, 1, 2, 3}
    assert adjusted_rand_score(data.labels, model.labels_) > 0.5
    again = MMPCA(4, 3, topics=data.topics, random_state=0).fit(X, checkpoint=tmp_path / "kept")
    assert [report.kind for report in again.starts_] == ["checkpoint"]
    assert again.converged_


def test_the_best_of_the_finished_starts_survives_a_later_interruption(data, X):
    class InThirdStart:
        def __call__(self, number, progress):
            return number == 2

    whole = MMPCA(4, 3, topics=data.topics, n_init=2, random_state=0).fit(X)
    model = MMPCA(4, 3, topics=data.topics, n_init=6, random_state=0)
    with pytest.warns(InterruptedSearchWarning, match="after 3 of its starts"):
        model.fit(X, callback=InThirdStart())
    assert model.bound_ == whole.bound_
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    assert model.converged_


def test_an_error_in_the_callback_is_not_swallowed(X):
    for n_jobs in (1, 2):
        with pytest.raises(ZeroDivisionError):
            MMPCA(4, 3, n_init=3, n_jobs=n_jobs).fit(X, callback=Stop(2, raises=ZeroDivisionError))


def press(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_in_the_last_step_leaves_the_topics_that_the_search_used(data, X, monkeypatch):
    whole = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0, refit_topics=False).fit(X)
    monkeypatch.setattr(estimator, "refit_topics", press)
    model = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X)
    np.testing.assert_array_equal(model.components_, whole.components_)
    assert (model.bound_, model.refit_bound_) == (whole.bound_, whole.bound_)
    assert model.converged_


def test_ctrl_c_before_the_first_search_leaves_the_model_as_it_was(X, attributes_of, monkeypatch):
    monkeypatch.setattr(starts, "draw_labels", press)
    model = MMPCA(4, 3, n_init=1, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert attributes_of(model).keys() <= {"n_features_in_"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_between_two_searches_keeps_the_first(data, X, monkeypatch, n_jobs):
    whole = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0).fit(X)
    draw = starts.draw_labels
    monkeypatch.setattr(starts, "draw_labels", lambda *a: press() if a[1].kind == "random" else draw(*a))
    model = MMPCA(4, 3, topics=data.topics, n_init=2, n_jobs=n_jobs, random_state=0)
    with pytest.warns(InterruptedSearchWarning, match="after 1 of its starts"):
        model.fit(X)
    assert model.bound_ == whole.bound_


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to a process")
@pytest.mark.parametrize("n_jobs", [2])
def test_a_real_ctrl_c_ends_all_threads_and_the_process_goes_on(n_jobs):
    script = textwrap.dedent(f"""
        import os, signal, warnings
        import numpy as np
        from mmpca import MMPCA
        from mmpca.errors import InterruptedSearchWarning
        from mmpca.simulate import simulate_mmpca, sparse_topics

        topics = sparse_topics(8, 2000, random_state=0)
        theta = np.random.default_rng(0).dirichlet(np.ones(8), size=20)
        data = simulate_mmpca(6000, topics=topics, cluster_topics=theta, lengths=60, random_state=0)
        n_calls = 0

        def interrupt(number, progress):
            global n_calls
            n_calls += 1
            if n_calls == 1:
                os.kill(os.getpid(), signal.SIGINT)

        model = MMPCA(20, 8, topics=topics, start="random", n_init=4, n_jobs={n_jobs}, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(data.X, callback=interrupt)
        assert [w.category for w in caught] == [InterruptedSearchWarning], caught
        assert not model.converged_
        assert n_calls < 100, n_calls  # a whole search has some 200 blocks
        assert len(np.unique(model.labels_)) == 20
        assert len(model.predict(data.X)) == 6000
        print("kept a fitted model with bound", model.bound_)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept a fitted model with bound -")
    assert "Traceback" not in done.stderr
