"""The search of a grid: its choice, its store, and its interruption."""

import json
import signal
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA, MMPCASearch, engine
from mmpca.errors import CountsError, InterruptedSearchWarning, StoreError, StoreWarning
from mmpca.selection import CRITERIA

SMALL = {"criterion": "predictive", "n_clusters": (2, 3), "n_topics": (2,), "n_init": 1, "random_state": 0}


def assert_same_results(search, other):
    assert search.results_.keys() == other.results_.keys()
    for name in search.results_.keys() - {"seconds"}:
        np.testing.assert_array_equal(search.results_[name], other.results_[name], err_msg=name)
    np.testing.assert_array_equal(search.labels_, other.labels_)
    assert search.best_params_ == other.best_params_
    assert search.reason_ == other.reason_


def fail(*_):
    raise AssertionError("the search has begun")


# --- the choice -------------------------------------------------------------------------------------------------


def test_it_finds_the_numbers_that_the_data_were_drawn_with(data, search):
    assert search.best_params_ == {"n_clusters": 3, "n_topics": 3}
    assert adjusted_rand_score(data.labels, search.labels_) > 0.95


def test_results_have_one_entry_per_cell_ordered_by_topics_and_clusters(search):
    results = search.results_
    cells = list(zip(results["n_topics"].tolist(), results["n_clusters"].tolist(), strict=True))
    assert cells == [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4)]
    assert all(len(column) == 6 for column in results.values())
    assert results["converged"].all()
    assert set(results["kind"]) <= {"kmeans", "random", "anneal", "split", "merge"}


def test_the_criteria_follow_their_formulas(data, search):
    results = search.results_
    q, k, bound = results["n_clusters"], results["n_topics"], results["bound"]
    n_counts, n_present = data.X.sum(), (data.X.sum(axis=0) > 0).sum()
    icl = bound - k * (n_present - 1) / 2 * np.log(q) - (q - 1) / 2 * np.log(90)
    score = bound - q * (k - 1) / 2 * np.log(90) - (q - 1) / 2 * np.log(90)
    best = score.reshape(2, 3).max(axis=1).repeat(3)  # over the clusters at each number of topics
    np.testing.assert_allclose(results["icl"], icl, rtol=1e-12)
    np.testing.assert_allclose(results["cluster_score"], score, rtol=1e-12)
    np.testing.assert_allclose(results["predictive"], n_counts * results["held_out"] + score - best, rtol=1e-12)


def test_the_best_cell_has_the_largest_criterion_and_a_fitted_model(data, search):
    results, model = search.results_, search.best_estimator_
    best = results["predictive"].argmax()
    assert search.best_score_ == results["predictive"][best]
    assert isinstance(model, MMPCA)
    assert (model.n_clusters, model.n_topics) == (3, 3)
    assert model.bound_ == pytest.approx(results["bound"][best], rel=1e-12)
    assert model.icl_ == pytest.approx(results["icl"][best], rel=1e-12)
    np.testing.assert_array_equal(search.labels_, model.labels_)
    np.testing.assert_array_equal(search.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(search.predict_proba(data.X), model.predict_proba(data.X))
    assert search.score(data.X) == model.score(data.X)
    assert isinstance(model.merge_path(), engine.MergePath)


def test_the_best_model_smooths_the_topics_that_the_search_has_learned(search):
    assert search.best_estimator_.topics_source_ == "lda"
    assert search.best_estimator_.smoothing_ > 0


def test_the_runner_up_and_the_gap_belong_to_the_second_best_cell(search):
    order = np.argsort(-search.results_["predictive"])
    assert search.runner_up_["n_clusters"] == search.results_["n_clusters"][order[1]]
    assert search.runner_up_["n_topics"] == search.results_["n_topics"][order[1]]
    assert search.gap_ == pytest.approx(-np.diff(search.results_["predictive"][order[:2]])[0])


def test_icl_chooses_from_the_same_results_and_predicts_counts_only_on_request(data, options, search):
    plain = MMPCASearch(**(options | {"criterion": "icl"})).fit(data.X)
    assert search.results_.keys() - plain.results_.keys() == {"held_out", "predictive", "predictive_error"}
    np.testing.assert_array_equal(plain.results_["icl"], search.results_["icl"])
    assert plain.best_score_ == plain.results_["icl"].max()
    assert plain.best_params_["n_clusters"] == plain.results_["n_clusters"][plain.results_["icl"].argmax()]
    folded = MMPCASearch(**(SMALL | {"criterion": "icl", "n_folds": 2})).fit(data.X)
    assert np.isfinite(folded.results_["predictive"]).all()


def test_numbers_may_be_skipped(data):
    search = MMPCASearch((1, 4), (1, 3), criterion="predictive", n_init=1, n_folds=2, random_state=0).fit(data.X)
    assert search.results_["n_clusters"].tolist() == [1, 4, 1, 4]
    assert np.isfinite(search.results_["predictive"]).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_single_combination_can_be_searched(data, criterion):
    search = MMPCASearch(3, 3, criterion=criterion, n_init=1, random_state=0).fit(data.X)
    assert search.best_params_ == {"n_clusters": 3, "n_topics": 3}
    assert search.runner_up_ is None
    assert search.gap_ == np.inf


def test_square_roots_are_searched_and_kept_with_the_model(data):
    many = data.X * 4
    search = MMPCASearch(**SMALL, stabilize="sqrt").fit(many)
    assert search.best_estimator_.stabilize == "sqrt"
    roots = sparse.csr_array(np.rint(np.sqrt(many.toarray())).astype(int))
    np.testing.assert_array_equal(search.results_["bound"], MMPCASearch(**SMALL).fit(roots).results_["bound"])


def test_resamples_count_how_often_each_cell_wins(data):
    search = MMPCASearch((2, 3), (3,), criterion="predictive", n_resamples=2, n_init=1, random_state=0).fit(data.X)
    assert search.results_["wins"].sum() == pytest.approx(1.0)
    assert search.results_["wins"].argmax() == search.results_["predictive"].argmax()


def test_it_can_be_cloned_and_keeps_its_parameters(search):
    assert clone(search).get_params() == search.get_params()


# --- processes --------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_jobs(data, options, search):
    assert_same_results(MMPCASearch(**options, n_jobs=2).fit(data.X), search)


def test_processes_can_use_topics_that_joblib_maps_from_disk():
    X = np.random.default_rng(0).poisson(0.005, (20, 70_000))
    search = MMPCASearch((2, 3), (2,), criterion="icl", n_init=1, max_epochs=1, random_state=0, n_jobs=2).fit(X)
    assert search.best_estimator_.topics.nbytes > 2**20  # joblib maps larger arrays, read-only
    assert search.labels_.shape == (20,)


def test_processes_of_an_earlier_search_write_to_the_store_of_this_one(data, tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        MMPCASearch(**SMALL, store="grid", n_jobs=2).fit(data.X)
        assert (tmp_path / name / "grid" / "fresh-3-2.npz").exists()
    get_reusable_executor().shutdown(wait=True)


# --- progress and interruption ----------------------------------------------------------------------------------


def test_the_callback_sees_every_step_of_every_stage(data, options):
    reports = []
    MMPCASearch(**(options | {"n_init": 1, "n_folds": 2, "n_resamples": 1})).fit(data.X, callback=reports.append)
    steps = {"topics": 2, "cells": 6, "neighbors": 2, "resamples": 1}
    expected = [(stage, n_done, n_steps) for stage, n_steps in steps.items() for n_done in range(n_steps + 1)]
    assert [(report.stage, report.n_done, report.n_steps) for report in reports] == [*expected, ("done", 1, 1)]


@pytest.mark.parametrize(("stage", "n_kept"), [("topics", 1), ("cells", 2), ("neighbors", 6)])
def test_a_true_answer_of_the_callback_stops_and_keeps_the_finished_cells(data, search, options, stage, n_kept):
    stopped = MMPCASearch(**options)
    at = {"topics": 0, "cells": 2, "neighbors": 1}[stage]
    with pytest.warns(InterruptedSearchWarning):
        stopped.fit(data.X, callback=lambda now: now.stage == stage and now.n_done >= at)
    assert len(stopped.results_["bound"]) == n_kept
    assert stopped.best_estimator_.labels_.shape == (90,)
    assert (stopped.results_["bound"] <= search.results_["bound"][:n_kept] + 1e-6).all()


def test_a_stop_after_the_last_step_interrupts_nothing(data, recwarn):
    search = MMPCASearch(**SMALL).fit(data.X, callback=lambda now: now.stage == "neighbors" and now.share == 1)
    assert len(search.results_["bound"]) == 2
    assert not [warning for warning in recwarn if warning.category is InterruptedSearchWarning]


def test_stopped_resamples_count_the_finished_ones(data):
    with pytest.warns(InterruptedSearchWarning):
        search = MMPCASearch(**SMALL, n_resamples=50).fit(
            data.X, callback=lambda now: now.stage == "resamples" and now.n_done == 1
        )
    assert sorted(search.results_["wins"]) == [0, 1]


def press_ctrl_c(stage, n_done):
    """Return a callback that interrupts the search after some steps of a stage."""

    def press(now):
        if (now.stage, now.n_done) == (stage, n_done):
            raise KeyboardInterrupt

    return press


def test_ctrl_c_keeps_the_finished_cells(data, options):
    search = MMPCASearch(**options)
    with pytest.warns(InterruptedSearchWarning):
        search.fit(data.X, callback=press_ctrl_c("cells", 3))
    assert len(search.results_["bound"]) == 2
    assert search.best_estimator_.labels_.shape == (90,)


def test_ctrl_c_before_the_first_cell_is_raised(data, options):
    with pytest.raises(KeyboardInterrupt):
        MMPCASearch(**options).fit(data.X, callback=press_ctrl_c("topics", 2))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
def test_a_cell_that_is_interrupted_is_not_kept(data, options, search, tmp_path):
    def press_soon(now):
        if (now.stage, now.n_done) == ("cells", 1):
            signal.setitimer(signal.ITIMER_REAL, 0.005)  # in the middle of the second cell

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.warns(InterruptedSearchWarning):
            MMPCASearch(**options, store=tmp_path).fit(data.X, callback=press_soon)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert_same_results(MMPCASearch(**options, store=tmp_path).fit(data.X), search)


# --- the store --------------------------------------------------------------------------------------------------


def test_a_second_run_takes_everything_from_the_store(data, options, search, tmp_path):
    first = MMPCASearch(**options, store=tmp_path / "a" / "store").fit(data.X)
    assert_same_results(first, search)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(written) == 2 + 6 + 2 * 4  # topics, fresh cells, and two neighbors on each way of each walk
    second = MMPCASearch(**options, store=tmp_path / "a" / "store").fit(data.X)
    assert_same_results(second, search)
    np.testing.assert_array_equal(second.results_["seconds"], first.results_["seconds"])
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert not list(tmp_path.rglob("*.part"))


def test_a_larger_grid_resumes_from_the_same_store(data, options, search, tmp_path):
    MMPCASearch((2, 3), (3,), criterion="predictive", random_state=0, store=tmp_path).fit(data.X)
    assert_same_results(MMPCASearch(**options, store=tmp_path).fit(data.X), search)


@pytest.mark.parametrize("change", [{"random_state": 1}, {"n_folds": 3}, {"topic_prior": 2.0}, {"stabilize": "sqrt"}])
def test_the_store_of_other_options_is_refused(data, tmp_path, change):
    MMPCASearch(**SMALL, store=tmp_path).fit(data.X)
    with pytest.raises(StoreError) as caught:
        MMPCASearch(**(SMALL | change), store=tmp_path).fit(data.X, callback=fail)
    assert caught.value.path == tmp_path / "search.json"


def test_the_store_of_other_data_is_refused(data, tmp_path):
    MMPCASearch(**SMALL, store=tmp_path).fit(data.X)
    with pytest.raises(StoreError):
        MMPCASearch(**SMALL, store=tmp_path).fit(data.X[1:], callback=fail)


@pytest.mark.parametrize("content", [json.dumps({"schema": 2, "mmpca": "0.1", "seed": 0}), "[1, 2]", "{"])
def test_stores_of_older_versions_and_other_files_are_refused(data, tmp_path, content):
    (tmp_path / "search.json").write_text(content)
    with pytest.raises(StoreError) as caught:
        MMPCASearch(**SMALL, store=tmp_path).fit(data.X, callback=fail)
    assert caught.value.path == tmp_path / "search.json"


def test_a_store_that_cannot_be_written_is_refused_before_any_work(data, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError) as caught:
        MMPCASearch(**SMALL, store=tmp_path / "file").fit(data.X, callback=fail)
    assert caught.value.path == tmp_path / "file"


def test_damaged_parts_are_computed_again(data, options, search, tmp_path):
    MMPCASearch(**options, store=tmp_path).fit(data.X)
    (tmp_path / "fresh-3-3.npz").write_bytes(b"PK\x03\x04 cut short")
    (tmp_path / "topics-2.npz").write_bytes(b"")
    with pytest.warns(StoreWarning) as caught:
        assert_same_results(MMPCASearch(**options, store=tmp_path).fit(data.X), search)
    assert {name for name in ("fresh-3-3.npz", "topics-2.npz") for one in caught if name in str(one.message)} == {
        "fresh-3-3.npz",
        "topics-2.npz",
    }


def test_cells_of_other_data_are_not_taken_even_if_the_identity_is_gone(data, tmp_path):
    other = data.X[::-1]
    MMPCASearch(**SMALL, store=tmp_path).fit(data.X)
    (tmp_path / "search.json").unlink()
    with pytest.warns(StoreWarning):
        search = MMPCASearch(**SMALL, store=tmp_path).fit(other)
    assert_same_results(search, MMPCASearch(**SMALL).fit(other))


def test_of_two_searches_that_start_together_in_a_fresh_folder_one_is_refused(data, tmp_path):
    barrier = threading.Barrier(2)

    def run(X):
        barrier.wait()
        try:
            return MMPCASearch(**SMALL, store=tmp_path).fit(X)
        except StoreError as error:
            return error

    inputs = [data.X, data.X[::-1]]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, inputs))
    assert sorted(isinstance(one, StoreError) for one in found) == [False, True]
    for X, one in zip(inputs, found, strict=True):
        if not isinstance(one, StoreError):
            assert_same_results(one, MMPCASearch(**SMALL).fit(X))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_search_resumes_with_the_same_results(start_python, data, options, search, tmp_path):
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(data.X))
    script = textwrap.dedent(f"""
        import time
        from scipy import sparse
        from mmpca import MMPCASearch

        def wait(now):
            if (now.stage, now.n_done) == ("cells", 2):
                print("waiting", flush=True)
                time.sleep(3600)

        X = sparse.csr_array(sparse.load_npz({str(tmp_path / "X.npz")!r}))
        MMPCASearch(**{options!r}, store={str(tmp_path / "store")!r}).fit(X, callback=wait)
    """)
    process = start_python("-c", script)
    assert process.stdout.readline() == "waiting\n"
    process.kill()
    process.wait()
    assert sorted(path.name for path in (tmp_path / "store").glob("fresh*")) == ["fresh-2-2.npz", "fresh-3-2.npz"]
    assert_same_results(MMPCASearch(**options, store=tmp_path / "store").fit(data.X), search)


# --- invalid input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": ()},
        {"n_topics": []},
        {"n_clusters": (3, 2)},
        {"n_clusters": (2, 2)},
        {"n_clusters": (0, 2)},
        {"n_topics": (2.5,)},
        {"n_topics": None},
        {"n_clusters": (2, 91)},  # more than rows
        {"n_topics": (2, 31)},  # more than features
        {"criterion": "bic"},
        {"n_folds": 1},
        {"n_folds": 0},
        {"n_resamples": -1},
        {"n_init": 0},
        {"topic_prior": 0},
        {"store": 3},
    ],
)
def test_invalid_parameters_are_refused_by_name_before_any_work(data, options, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MMPCASearch(**(options | parameters)).fit(data.X, callback=fail)


def test_invalid_counts_are_refused_before_any_work(data, options):
    with pytest.raises(CountsError):
        MMPCASearch(**options).fit(-data.X.toarray(), callback=fail)
