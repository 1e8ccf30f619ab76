"""Starts of the search: their labels, how many are made, which is kept, and what an interruption leaves."""

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from mmpca import MMPCA, engine
from mmpca.backend import LocalRows, open_threads
from mmpca.counts import as_counts
from mmpca.errors import InterruptedSearchWarning
from mmpca.model import starts
from mmpca.monitor import Monitor
from mmpca.topics import topic_shares

OPTIONS = engine.SearchOptions(n_clusters=4)


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
def test_kmeans_labels_fill_all_clusters_even_with_fewer_distinct_rows(n_distinct):
    shares = np.repeat(np.eye(3)[:n_distinct], 4, axis=0)
    n_clusters = 5 if n_distinct > 1 else 4
    labels = starts.kmeans_labels(shares, n_clusters, np.random.default_rng(0))
    assert (np.bincount(labels, minlength=n_clusters) > 0).all()
    # Rows were taken out of clusters, never mixed.
    assert all(len(np.unique(shares[labels == q], axis=0)) == 1 for q in range(n_clusters))


@pytest.mark.parametrize("difference", [1e-9, 1e-14])
def test_kmeans_labels_of_rows_that_differ_by_rounding_come_without_a_warning(difference):
    first = np.concatenate([0.3 + difference * np.arange(6), 0.9 + difference * np.arange(6)])
    labels = starts.kmeans_labels(np.column_stack([first, 1 - first]), 8, np.random.default_rng(0))
    assert (np.bincount(labels, minlength=8) > 0).all()


def test_kmeans_in_several_threads_leaves_the_filters_of_warnings_as_they_were():
    rng = np.random.default_rng(0)
    tasks = [(rng.random((40 * (n % 20 + 1), 5)), 8, np.random.default_rng(n)) for n in range(400)]
    with warnings.catch_warnings():
        before = list(warnings.filters)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda task: starts.kmeans_labels(*task), tasks))
        assert warnings.filters == before


def test_empty_clusters_are_filled_from_the_largest_and_no_other_row_moves():
    labels = np.array([0] * 5 + [3] * 2, dtype=np.int32)
    filled = starts.fill_empty(labels, 5, np.random.default_rng(0))
    assert np.bincount(filled).tolist() == [2, 1, 1, 2, 1]
    assert (filled[5:] == 3).all()
    assert labels.tolist() == [0] * 5 + [3] * 2  # the argument is not changed


def draw(data, X, start, seed=0):
    rows = as_counts(X)
    shares = topic_shares(rows, data.topics, prior=1.0)
    return starts.draw_labels(rows, data.topics, start, OPTIONS, shares, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", starts.KINDS)
def test_every_kind_of_start_fills_all_clusters_and_depends_on_the_seed_alone(data, X, kind):
    labels = draw(data, X, starts.Start(kind, 0))
    assert labels.dtype == np.int32
    assert labels.shape == (80,)
    assert (np.bincount(labels, minlength=4) > 0).all()
    np.testing.assert_array_equal(draw(data, X, starts.Start(kind, 0)), labels)


def test_kmeans_and_annealed_starts_are_near_the_truth_and_random_ones_are_not(data, X):
    """K-means runs on the rows in topic space, so every row is nearest to the center of its own cluster."""
    for kind in ("kmeans", "anneal"):
        assert adjusted_rand_score(data.labels, draw(data, X, starts.Start(kind, 0))) > 0.5
    assert adjusted_rand_score(data.labels, draw(data, X, starts.Start("random", 0))) < 0.2
    labels = draw(data, X, starts.Start("kmeans", 0))
    points = np.sqrt(topic_shares(as_counts(X), data.topics, prior=1.0))
    centers = np.array([points[labels == q].mean(axis=0) for q in range(4)])
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.97


def test_given_labels_are_used_unchanged(data, X):
    labels = (np.arange(80) % 4).astype(np.int32)
    assert draw(data, X, starts.Start("given", 0, labels)) is labels


@pytest.mark.parametrize("form", [list, np.int8, np.uint64, float])
def test_given_labels_may_have_any_type_that_holds_whole_numbers(form):
    labels = np.arange(80) % 4
    given = labels.tolist() if form is list else labels.astype(form)
    checked = starts.check_labels(given, 80, 4)
    np.testing.assert_array_equal(checked, labels)
    assert checked.dtype == np.int32


LABELS = np.arange(80) % 2


def changed(position, value, dtype=int):
    labels = LABELS.astype(dtype)
    labels[position] = value
    return labels


BAD_LABELS = {
    "too short": LABELS[:-1],
    "two-dimensional": LABELS[:, None],
    "empty": [],
    "too high": changed(7, 2),
    "too low": changed(7, -1),
    "too high float": changed(7, 5.0, float),
    "gap": np.zeros(80, dtype=int),
    "letters": np.full(80, "a"),
    "digits": LABELS.astype(str),
    "None": np.array([None] * 80),
    "Boolean": LABELS.astype(bool),
    "fraction": changed(7, 0.5, float),
    "NaN": changed(7, np.nan, float),
    "infinite": changed(7, np.inf, float),
}
WITH_PLACE = ("too high", "too low", "too high float", "fraction", "NaN", "infinite")


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_that_are_no_partition_are_an_error_with_the_place(case):
    place = r"start\[7\]" if case in WITH_PLACE else "start"
    with pytest.raises(ValueError, match=place):
        starts.check_labels(BAD_LABELS[case], 80, 2)


def test_clusters_begin_near_the_shares_of_their_rows_and_end_in_the_same_place(data, X):
    rows, labels = as_counts(X), data.labels.astype(np.int32)
    shares = topic_shares(rows, data.topics, prior=1.0)
    gamma = starts.gamma_of_shares(rows, shares, labels, OPTIONS)
    common = {"n_clusters": 4, "beta": data.topics, "alpha": 1.0}
    cold = engine.build(rows, labels, **common).clusters.gamma
    warm = engine.build(rows, labels, **common, gamma=gamma).clusters.gamma
    np.testing.assert_allclose(gamma.sum(axis=1), cold.sum(axis=1))
    assert np.abs(gamma - cold).max() < 0.2 * cold.max()
    np.testing.assert_allclose(warm, cold, rtol=1e-6)


# --- the plan ---------------------------------------------------------------------------------------------------


def plan(start="auto", n_init="auto", *, shape=(80, 25), n_clusters=4):
    seed = np.random.SeedSequence(0)
    return starts.plan_starts(start, n_init, n_clusters=n_clusters, n_topics=3, shape=shape, seed=seed)


@pytest.mark.parametrize(
    ("start", "kinds"),
    [
        ("auto", ["kmeans", "random", "anneal", "kmeans", "random"]),
        ("random", ["random"] * 5),
        ("kmeans", ["kmeans"] * 5),
        ("anneal", ["anneal"] * 5),
    ],
)
def test_as_many_starts_of_the_requested_kind_are_planned_each_with_its_own_seed(start, kinds):
    planned, patience = plan(start, 5)
    assert [one.kind for one in planned] == kinds
    assert len({one.seed for one in planned}) == 5
    assert patience == 5  # all are searched
    assert plan(start, 2)[0] == planned[:2]


def test_automatic_starts_are_fewer_for_more_rows_as_documented():
    for n_samples, expected in [(80, (10, 3)), (2_000, (10, 3)), (2_001, (6, 2)), (20_000, (6, 2)), (20_001, (3, 1))]:
        planned, patience = plan(shape=(n_samples, 25))
        assert (len(planned), patience) == expected
        assert {one.kind for one in planned} == ({"kmeans"} if n_samples > 20_000 else set(starts.KINDS))


def test_large_tables_are_started_by_kmeans_alone():
    n_features = 1 + starts.LARGE_TABLES // (4 * 3)
    assert {one.kind for one in plan(shape=(80, n_features))[0]} == {"kmeans"}
    assert {one.kind for one in plan("random", shape=(80, n_features))[0]} == {"random"}


def test_large_tables_are_searched_once_from_the_best_of_several_partitions(data, X):
    n_features = 1 + starts.LARGE_TABLES // (4 * 3)
    (start,), _ = plan(shape=(80, n_features))
    assert start.n_draws == starts.EXPENSIVE_DRAWS
    assert len(plan("random", shape=(80, n_features))[0]) == 3
    assert [one.n_draws for one in plan(n_init=2, shape=(80, n_features))[0]] == [1, 1]
    rows = as_counts(X)
    shares = topic_shares(rows, data.topics, prior=1.0)
    best = starts.draw_labels(rows, data.topics, start, OPTIONS, shares, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    draws = [starts.kmeans_labels(np.sqrt(shares), 4, rng) for _ in range(start.n_draws)]
    bounds = [starts.first_bound(rows, data.topics, shares, one, OPTIONS) for one in draws]
    np.testing.assert_array_equal(best, draws[int(np.argmax(bounds))])


def test_the_callback_can_stop_the_draws_of_an_expensive_start(data, X):
    rows = as_counts(X)
    shares = topic_shares(rows, data.topics, prior=1.0)
    start, reports = starts.Start("kmeans", 5, n_draws=3), []

    def callback(progress):
        reports.append(progress)
        return True

    rng = np.random.default_rng(5)
    labels = starts.draw_labels(rows, data.topics, start, OPTIONS, shares, rng, Monitor(callback))
    np.testing.assert_array_equal(labels, starts.kmeans_labels(np.sqrt(shares), 4, np.random.default_rng(5)))
    assert len(reports) == 1


def test_the_first_bound_of_a_partition_is_close_to_its_bound_but_not_above(data, X):
    rows = as_counts(X)
    shares = topic_shares(rows, data.topics, prior=1.0)
    for seed in range(3):
        labels = starts.kmeans_labels(shares, 4, np.random.default_rng(seed))
        state = engine.build(rows, labels, n_clusters=4, beta=data.topics, alpha=1.0)
        sizes = state.clusters.sizes
        exact = state.clusters.value.sum() + (sizes * np.log(sizes)).sum()
        first = starts.first_bound(rows, data.topics, shares, labels, OPTIONS)
        assert exact - 0.01 * abs(exact) < first <= exact + 1e-9 * abs(exact)


def test_given_labels_make_a_single_start():
    (start,), patience = plan(np.arange(80) % 4, 7)
    assert (start.kind, patience) == ("given", 1)
    np.testing.assert_array_equal(start.labels, np.arange(80) % 4)


def is_enough(bounds, patience):
    """Return True if the last bounds, as many as the patience, are no better than the best before them."""
    before, last = bounds[:-patience], bounds[-patience:]
    return bool(before) and max(last) <= max(before) + 1e-9 * abs(max(before))


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_parallel_starts_are_those_that_would_be_searched_one_after_another(patience):
    for bounds in product([-3.0, -2.0, -2.0 * (1 + 1e-12), -1.0], repeat=5):
        n_sequential = next((n for n in range(1, 6) if is_enough(bounds[:n], patience)), 5)
        n_done = 0
        while n_next := starts.n_needed(bounds[:n_done], patience, 5):
            n_done += n_next
        assert n_done == n_sequential


def test_the_best_start_is_the_first_of_those_that_differ_by_rounding():
    outcomes = [SimpleNamespace(bound=bound) for bound in (-2.0, -1.0 * (1 + 1e-12), -1.0, -1.5)]
    assert starts.best_of(outcomes) is outcomes[1]


# --- the searches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_automatic_starts_end_when_further_ones_are_no_better(data, X, n_jobs):
    model = MMPCA(4, 3, topics=data.topics, n_jobs=n_jobs, random_state=0).fit(X)
    bounds = [report.bound for report in model.starts_]
    assert 4 <= len(bounds) < 10
    assert [is_enough(bounds[:n], 3) for n in range(1, len(bounds) + 1)] == [False] * (len(bounds) - 1) + [True]


def test_the_best_start_is_kept_and_all_are_reported(data, X):
    options = engine.SearchOptions(n_clusters=4, algorithm="cvem", patience=8)
    planned, _ = plan("random", 8)
    outcomes = starts.search_from_starts(LocalRows(as_counts(X)), data.topics, planned, options, seed=0)
    reports = [outcome.report() for outcome in outcomes]
    assert [(report.kind, report.seed) for report in reports] == [("random", one.seed) for one in planned]
    bounds = [report.bound for report in reports]
    assert len(set(bounds)) > 2  # otherwise the test would show nothing
    best = starts.best_of(outcomes)
    assert best.bound == best.history.bounds[-1] == max(bounds)
    assert all(report.converged and report.seconds > 0 for report in reports)
    model = MMPCA(4, 3, topics=data.topics, start="random", n_init=8, algorithm="cvem", random_state=0).fit(X)
    assert len({report.seed for report in model.starts_}) == 8
    assert model.bound_ == max(report.bound for report in model.starts_)
    kept = max(model.starts_, key=lambda report: report.bound)
    assert (model.n_epochs_, model.converged_) == (kept.n_epochs, kept.converged)


def test_more_starts_begin_with_the_same_ones(data, X):
    few, many = (MMPCA(4, 3, topics=data.topics, n_init=n, random_state=0).fit(X).starts_ for n in (2, 4))
    assert [report._replace(seconds=0) for report in few] == [report._replace(seconds=0) for report in many[:2]]
    assert len(many) == 4


def test_starts_are_searched_in_parallel(data, X):
    def threads_of_a_fit():
        threads = {}
        model = MMPCA(4, 3, topics=data.topics, start="random", n_init=2, n_jobs=2, random_state=0)
        model.fit(X, callback=lambda now: threads.setdefault(now.start, threading.get_ident()) and None)
        assert {1, 2} <= threads.keys()
        return {threads[1], threads[2], threading.get_ident()}

    # On a busy machine, a thread may finish its start before the other one gets to run, but not every time.
    assert any(len(threads_of_a_fit()) == 3 for _ in range(200))


# --- a sample of many rows --------------------------------------------------------------------------------------


def fit_sampled(X, *, sample_size=50, callback=None, checkpoint=None, **parameters):
    """Fit with starts that are tried on a sample of the rows."""
    model = MMPCA(**{"n_clusters": 4, "n_topics": 3, "n_init": 2, "random_state": 0} | parameters)
    return model.fit_rows(
        LocalRows(as_counts(X)),
        attributes={"n_features_in_": X.shape[1]},
        callback=callback,
        checkpoint=checkpoint,
        sample_size=sample_size,
    )


def test_the_best_start_on_a_sample_is_extended_to_all_rows(data, X, scratch_bound, same_fit):
    stages = {}
    model = fit_sampled(X, topics=data.topics, callback=lambda now: stages.setdefault(now.stage, now) and None)
    assert list(stages) == ["shares", "starts", "extension", "search", "dispersion", "done"]
    assert [report.kind for report in model.starts_] == ["kmeans", "random", "sample"]
    assert model.bound_ == model.starts_[-1].bound
    assert model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=data.topics), rel=1e-12)
    assert model.converged_
    assert adjusted_rand_score(data.labels, model.labels_) > 0.7
    same_fit(model, fit_sampled(X, topics=data.topics, n_jobs=2))


def test_given_labels_of_many_rows_are_searched_directly(data, X):
    model = fit_sampled(X, topics=data.topics, start=data.labels)
    assert [report.kind for report in model.starts_] == ["given"]
    assert len(model.labels_) == 80


@pytest.mark.parametrize("algorithm", ["exact", "cvem"])
def test_only_the_greedy_algorithm_samples(data, X, algorithm, same_fit):
    plain = MMPCA(4, 3, topics=data.topics, n_init=2, algorithm=algorithm, random_state=0).fit(X)
    same_fit(fit_sampled(X, topics=data.topics, algorithm=algorithm), plain)


def test_an_interruption_on_the_sample_leaves_labels_of_all_rows_to_resume_from(data, X, tmp_path):
    options = {"topics": data.topics, "checkpoint": tmp_path / "kept.npz"}
    with pytest.warns(InterruptedSearchWarning):
        model = fit_sampled(X, callback=lambda now: now.epoch > 0, **options)
    assert [report.kind for report in model.starts_] == ["kmeans", "sample"]
    assert (model.converged_, model.n_epochs_) == (False, 0)
    assert set(model.labels_) == {0, 1, 2, 3}
    assert adjusted_rand_score(data.labels, model.labels_) > 0.5
    again = fit_sampled(X, **options)
    assert [report.kind for report in again.starts_] == ["checkpoint"]
    assert again.converged_
    assert again.bound_ >= model.bound_


def test_an_interruption_of_the_search_over_all_rows_keeps_its_labels(data, X, scratch_bound):
    with pytest.warns(InterruptedSearchWarning):
        model = fit_sampled(
            X, topics=data.topics, start=np.arange(80) % 4, callback=lambda now: now.stage == "search" and now.epoch > 0
        )
    assert model.bound_ > model.bound_history_[0]
    assert_is_usable(model, X, scratch_bound, data.topics)


# --- interruption -----------------------------------------------------------------------------------------------


class Stop:
    """A callback that answers True, or raises an error once, after some blocks of rows."""

    def __init__(self, after, *, error=None):
        self.after, self.error, self.n_blocks = after, error, 0

    def __call__(self, progress):
        self.n_blocks += progress.epoch > 0
        if self.error is not None and self.n_blocks == self.after:
            self.n_blocks += 1
            raise self.error
        return self.error is None and self.n_blocks >= self.after


def random_starts(data, **parameters):
    return MMPCA(4, 3, topics=data.topics, start="random", n_init=5, random_state=0, **parameters)


def assert_is_usable(model, X, scratch_bound, beta):
    # With several threads, the search from another start may have converged in the meantime.
    assert model.converged_ is False or model.n_jobs > 1
    assert model.bound_ == pytest.approx(scratch_bound(X, model.labels_, beta=beta), rel=1e-12)
    assert (np.diff(model.bound_history_) >= 0).all()
    assert model.predict(X).shape == (80,)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1)


@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("after", [1, 4])
def test_a_true_answer_of_the_callback_stops_the_search_and_keeps_the_best_state(
    data, X, algorithm, n_jobs, after, scratch_bound
):
    stop = Stop(after)
    model = random_starts(data, algorithm=algorithm, n_jobs=n_jobs)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=stop)
    assert stop.n_blocks <= after + 3  # parallel searches finish their block
    assert_is_usable(model, X, scratch_bound, data.topics)
    assert model.bound_ > model.bound_history_[0]


@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_search_keeps_the_best_state(data, X, algorithm, n_jobs, scratch_bound):
    model = random_starts(data, algorithm=algorithm, n_jobs=n_jobs)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=Stop(3, error=KeyboardInterrupt))
    assert_is_usable(model, X, scratch_bound, data.topics)


def test_vbem_is_interrupted_after_an_epoch(data, X):
    for stop in (Stop(2), Stop(2, error=KeyboardInterrupt)):
        model = random_starts(data, algorithm="vbem")
        with pytest.warns(InterruptedSearchWarning):
            model.fit(X, callback=stop)
        assert model.converged_ is False
        assert model.n_epochs_ <= 2


@pytest.mark.parametrize("stage", ["topics", "shares", "starts"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_request_to_stop_before_the_search_still_leaves_a_model(X, stage, n_jobs):
    model = MMPCA(4, 3, topics="lda", n_init=3, n_jobs=n_jobs, random_state=0)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=lambda now: now.stage == stage)
    assert model.converged_ is False
    assert len(model.starts_) == 1
    assert model.n_epochs_ == 1
    assert model.predict(X).shape == (80,)


@pytest.mark.parametrize("stage", ["topics", "shares", "starts"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_before_anything_is_found_is_raised_and_leaves_the_model_unfitted(X, stage, n_jobs, attributes_of):
    def interrupt(progress):
        if progress.stage == stage:
            raise KeyboardInterrupt

    model = MMPCA(4, 3, topics="lda", n_init=3, n_jobs=n_jobs, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, callback=interrupt)
    assert attributes_of(model) == {}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_between_two_searches_keeps_those_that_had_begun(data, X, n_jobs):
    n_raised = 0

    def interrupt(progress):
        nonlocal n_raised
        if progress.stage == "starts" and progress.n_done == 1 and progress.epoch == 0 and not n_raised:
            n_raised += 1
            raise KeyboardInterrupt

    whole = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0).fit(X)
    model = MMPCA(4, 3, topics=data.topics, n_init=4, n_jobs=n_jobs, random_state=0)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=interrupt)
    assert n_raised == 1
    assert model.starts_[0].bound == whole.bound_
    assert model.bound_ >= whole.bound_
    seeds = [report.seed for report in model.starts_]
    assert len(set(seeds)) == len(seeds)  # none is kept twice
    assert n_jobs > 1 or len(seeds) == 1


def test_the_best_finished_start_survives_a_later_interruption(data, X):
    whole = MMPCA(4, 3, topics=data.topics, n_init=2, random_state=0).fit(X)
    model = MMPCA(4, 3, topics=data.topics, n_init=6, random_state=0)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=lambda now: now.start == 3)
    assert len(model.starts_) == 3
    assert model.bound_ == whole.bound_
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    assert model.converged_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_the_callback_is_raised(data, X, n_jobs):
    with pytest.raises(ZeroDivisionError):
        random_starts(data, n_jobs=n_jobs).fit(X, callback=Stop(2, error=ZeroDivisionError))


def test_ctrl_c_while_topics_are_refitted_keeps_those_of_the_search(data, X):
    def interrupt(progress):
        if progress.stage == "refit":
            raise KeyboardInterrupt

    whole = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0).fit(X)
    model = MMPCA(4, 3, topics=data.topics, n_init=1, random_state=0, refit_topics=True)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(X, callback=interrupt)
    np.testing.assert_array_equal(model.refit_components_, whole.components_)
    assert (model.bound_, model.refit_bound_) == (whole.bound_, whole.bound_)
    assert model.converged_


class Workers:
    """A backend whose workers find ever better bounds, until Ctrl-C interrupts them."""

    n_rows = 9

    def __init__(self, n_found):
        self.n_found, self.n_asked = n_found, 0

    def broadcast(self, value):
        return value

    def map(self, call, tasks):
        first, self.n_asked = self.n_asked, self.n_asked + len(tasks)
        if self.n_asked > self.n_found:
            raise KeyboardInterrupt
        return [SimpleNamespace(bound=float(number)) for number in range(first, self.n_asked)]


def search_on_workers(n_found, patience, monitor):
    planned = [starts.Start("random", seed) for seed in range(5)]
    options = OPTIONS._replace(patience=patience)
    return starts.search_from_starts(Workers(n_found), None, planned, options, seed=0, monitor=monitor)


def test_starts_that_workers_have_finished_survive_ctrl_c():
    monitor = Monitor()
    assert [outcome.bound for outcome in search_on_workers(2, 1, monitor)] == [0.0, 1.0]
    assert monitor.is_stopped
    with pytest.raises(KeyboardInterrupt):
        search_on_workers(2, 2, Monitor())  # none is finished: three are asked for at first


def test_a_request_to_stop_ends_the_search_on_workers_after_the_first_starts():
    monitor = Monitor(lambda progress: True)
    assert [outcome.bound for outcome in search_on_workers(5, 1, monitor)] == [0.0, 1.0]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to a process")
def test_a_real_ctrl_c_ends_all_threads_and_the_process_continues():
    script = textwrap.dedent("""
        import os, signal, warnings
        import numpy as np
        from mmpca import MMPCA
        from mmpca.errors import InterruptedSearchWarning
        from mmpca.simulate import simulate_mmpca, sparse_topics

        topics = sparse_topics(8, 2000, random_state=0)
        theta = np.random.default_rng(0).dirichlet(np.ones(8), size=20)
        data = simulate_mmpca(6000, topics=topics, cluster_topics=theta, lengths=60, random_state=0)
        n_blocks = 0

        def interrupt(progress):
            global n_blocks
            n_blocks += progress.epoch > 0
            if progress.epoch > 0 and n_blocks == 1:
                os.kill(os.getpid(), signal.SIGINT)

        model = MMPCA(20, 8, topics=topics, start="random", n_init=4, n_jobs=2, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(data.X, callback=interrupt)
        assert [w.category for w in caught] == [InterruptedSearchWarning], caught
        assert not model.converged_
        assert n_blocks < 100, n_blocks  # a complete search has about 200
        assert len(np.unique(model.labels_)) == 20
        assert len(model.predict(data.X)) == 6000
        print("kept a fitted model")
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "kept a fitted model\n"
    assert "Traceback" not in done.stderr


# --- a mixture without topics -----------------------------------------------------------------------------------


def short_texts(n_rows=600, n_clusters=15, n_features=400, length=6, seed=0):
    """Return rows of a few counts in clusters of different sizes, which share some features, and the clusters."""
    rng = np.random.default_rng(seed)
    shared, own = rng.dirichlet(np.full(n_features, 0.3)), rng.dirichlet(np.full(n_features, 0.1), n_clusters)
    profiles = 0.2 * shared + 0.8 * own
    labels = rng.choice(n_clusters, n_rows, p=(weights := 0.8 ** np.arange(n_clusters)) / weights.sum())
    X = np.array([rng.multinomial(length, profiles[q]) for q in labels])
    return X, labels


@pytest.mark.parametrize("n_topics", [3, 6, 9])
def test_topics_of_a_mixture_are_distributions_over_the_features_that_occur(n_topics):
    X, _ = short_texts(n_clusters=6)
    rows, n_clusters = as_counts(X), 6
    present = X.sum(axis=0) > 0
    beta, labels = starts.mixture_topics(rows, present, n_topics, n_clusters, np.random.default_rng(0), Monitor())
    assert beta.shape == (n_topics, X.shape[1])
    np.testing.assert_allclose(beta.sum(axis=1), 1)
    np.testing.assert_array_equal(beta.sum(axis=0) > 0, present)
    if n_topics > n_clusters:
        assert labels is None
    else:
        assert labels.dtype == np.int32
        assert (np.bincount(labels, minlength=n_clusters) > 0).all()


def test_topics_of_a_mixture_are_the_smoothed_profiles_of_its_clusters():
    X, _ = short_texts(n_clusters=6)
    present = X.sum(axis=0) > 0
    beta, labels = starts.mixture_topics(as_counts(X), present, 6, 6, np.random.default_rng(0), Monitor())
    sums = np.array([X[labels == q].sum(axis=0) for q in range(6)]) + np.where(present, 0.1, 0)
    np.testing.assert_allclose(beta, sums / sums.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("n_topics", [3, 6, 9])
def test_features_that_a_sample_of_the_rows_lacks_are_possible_in_every_topic(n_topics):
    X, _ = short_texts(n_clusters=6)
    present, some = X.sum(axis=0) > 0, as_counts(X[:60])
    missing = present & (X[:60].sum(axis=0) == 0)
    assert missing.any()
    beta, _ = starts.mixture_topics(some, present, n_topics, 6, np.random.default_rng(0), Monitor())
    assert (beta[:, missing] > 0).all()
    np.testing.assert_allclose(beta.sum(axis=1), 1)
    assert not beta[:, ~present].any()


def test_sums_of_huge_counts_can_be_factorized():
    X = np.full((6, 4), 2**30) + np.arange(24).reshape(6, 4)
    beta, _ = starts.mixture_topics(as_counts(X), np.ones(4, bool), 2, 3, np.random.default_rng(0), Monitor())
    np.testing.assert_allclose(beta.sum(axis=1), 1)


def test_one_cluster_for_each_row_and_identical_rows_are_possible():
    for X in (np.eye(4, 5, dtype=int) + 1, np.ones((5, 3), dtype=int)):
        for source in ("mixture", "tfidf"):
            model = MMPCA(len(X), 2, topics=source, random_state=0).fit(X)
            assert sorted(model.labels_) == list(range(len(X)))


def test_a_start_from_the_mixture_fills_every_cluster_and_is_drawn_by_its_seed():
    X, _ = short_texts()
    start = starts.Start("mixture", 5)
    drawn = [
        starts.draw_labels(as_counts(X), np.ones((1, 400)) / 400, start, OPTIONS, None, np.random.default_rng(5))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*drawn)
    assert (np.bincount(drawn[0], minlength=4) > 0).all()


@pytest.mark.parametrize("shape", [(30, 50), (50, 30)])
def test_points_have_the_similarities_of_tfidf(shape):
    X = np.random.default_rng(0).poisson(0.5, size=shape) + np.eye(*shape, dtype=int)
    X[:, 0] += 1
    points = starts.tfidf_points(as_counts(X), np.random.default_rng(0), Monitor())
    weighted = TfidfTransformer().fit_transform(X)
    np.testing.assert_allclose(points @ points.T, (weighted @ weighted.T).toarray(), atol=1e-12)


def test_points_in_the_main_directions_are_those_of_a_full_decomposition_whatever_the_threads():
    rng, kinds = np.random.default_rng(0), np.arange(400) % 120
    X = as_counts(rng.poisson(0.05, size=(400, 480)) + 3 * np.repeat(np.eye(120, dtype=int), 4, axis=1)[kinds])
    points = starts.tfidf_points(X, np.random.default_rng(0), Monitor())
    left, sizes, _ = np.linalg.svd(TfidfTransformer().fit_transform(X.to_csr()).toarray(), full_matrices=False)
    main = normalize((left * sizes)[:, :100])
    assert points.shape == (400, 100)
    assert np.abs(points @ points.T - main @ main.T).mean() < 0.02
    with open_threads(2) as threads:
        same = starts.tfidf_points(X, np.random.default_rng(0), Monitor(), threads)
    np.testing.assert_array_equal(same, points)


def test_main_directions_ask_the_callback_and_end_early():
    asked = []
    monitor = Monitor(lambda progress: asked.append(progress) or len(asked) == 3)
    X = as_counts(np.random.default_rng(0).poisson(1.0, size=(60, 40)) + np.eye(60, 40, dtype=int) + 1)
    points = starts.tfidf_points(X, np.random.default_rng(0), monitor)
    assert len(asked) < 8
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)


def test_chains_that_start_from_tfidf_find_clusters_that_random_ones_miss():
    X, truth = short_texts(n_clusters=40, n_rows=800)
    rows = as_counts(X)
    scores = {
        from_tfidf: np.mean([
            adjusted_rand_score(
                truth, starts.mixture_labels(rows, 40, np.random.default_rng(seed), from_tfidf=from_tfidf)
            )
            for seed in range(3)
        ])
        for from_tfidf in (True, False)
    }  # fmt: skip
    assert scores[True] > scores[False]


def test_the_source_of_topics_is_compared_only_if_nobody_names_it():
    X, _ = short_texts(n_clusters=6)
    for source in ("lda", "mixture", "tfidf", "random"):
        model = MMPCA(6, 6, topics=source, n_init=1, random_state=0).fit(X)
        assert model.topics_source_ == source
        assert (model.smoothing_ > 0) == (source != "random")


def test_short_rows_take_their_topics_from_a_mixture_and_gain_by_it():
    X, truth = short_texts()
    model, published = (MMPCA(15, 15, topics=topics, random_state=0).fit(X) for topics in ("auto", "lda"))
    assert model.topics_source_ in ("mixture", "tfidf")
    assert published.topics_source_ == "lda"
    found, before = (adjusted_rand_score(truth, one.labels_) for one in (model, published))
    assert found > before + 0.1


@pytest.mark.parametrize("noise", [0.2, 0.5])
def test_rows_that_mix_topics_take_them_from_lda(noise):
    from mmpca.simulate import paper_design

    X = paper_design(200, noise=noise, random_state=0).X
    model, published = (MMPCA(6, 4, topics=topics, n_init=2, random_state=0).fit(X) for topics in ("auto", "lda"))
    assert model.topics_source_ == "lda"
    np.testing.assert_array_equal(model.labels_, published.labels_)
    assert model.bound_ == published.bound_


def test_the_choice_of_a_source_does_not_depend_on_the_number_of_threads():
    X, _ = short_texts()
    one, two = (MMPCA(15, 15, n_jobs=n_jobs, random_state=0).fit(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


@pytest.mark.parametrize("options", [{"dispersion": "polya"}, {"algorithm": "vbem"}])
def test_some_fits_compare_no_sources(options):
    X, _ = short_texts(n_rows=80, n_clusters=4)
    assert MMPCA(4, 4, n_init=1, random_state=0, **options).fit(X).topics_source_ == "lda"


def test_an_explicit_number_of_starts_is_made_with_topics_of_the_mixture_too():
    X, _ = short_texts(n_rows=80, n_clusters=4)
    model = MMPCA(4, 4, topics="mixture", n_init=3, random_state=0).fit(X)
    assert [start.kind for start in model.starts_] == ["mixture", "random", "anneal"]
