"""The grid of clusters and topics."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA, MMPCASearch, engine
from mmpca.counts import as_counts
from mmpca.engine import sweeps
from mmpca.errors import InterruptedSearchWarning, StoreError
from mmpca.selection import cells
from mmpca.selection import grid as grids
from mmpca.selection.reasons import number
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics

TIMES = ("seconds",)
GRID = {"n_clusters": (2, 3, 4), "n_topics": (2, 3), "random_state": 0}


@pytest.fixture(scope="module")
def data():
    """Return 90 rows in three clear clusters of three topics."""
    topics = sparse_topics(3, 30, 0.3, random_state=1)
    return simulate_mmpca(
        90, topics=topics, cluster_topics=np.full((3, 3), 0.1) + 0.7 * np.eye(3), lengths=60, random_state=1
    )


@pytest.fixture(scope="module")
def search(data):
    return MMPCASearch(**GRID).fit(data.X)


def assert_same_results(search, other):
    assert search.results_.keys() == other.results_.keys()
    for name in search.results_.keys() - set(TIMES):
        np.testing.assert_array_equal(search.results_[name], other.results_[name], err_msg=name)
    np.testing.assert_array_equal(search.labels_, other.labels_)
    assert search.best_params_ == other.best_params_
    assert search.reason_ == other.reason_


# --- what it finds ----------------------------------------------------------------------------------------------


def test_it_finds_the_numbers_that_the_data_were_drawn_with(data, search):
    assert search.best_params_ == {"n_clusters": 3, "n_topics": 3}
    assert adjusted_rand_score(data.labels, search.labels_) > 0.95


def test_there_is_one_result_for_each_cell_by_topics_and_clusters(search):
    results = search.results_
    cells = list(zip(results["n_topics"].tolist(), results["n_clusters"].tolist(), strict=True))
    assert cells == [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4)]
    assert all(len(column) == 6 for column in results.values())
    assert results["converged"].all()
    assert set(results["kind"]) <= {"kmeans", "random", "anneal", "split", "merge"}


def test_the_criteria_are_their_formulas(data, search):
    results = search.results_
    n_counts, n_present = data.X.sum(), (data.X.sum(axis=0) > 0).sum()
    for c in range(6):
        q, k, bound = results["n_clusters"][c], results["n_topics"][c], results["bound"][c]
        icl = bound - k * (n_present - 1) / 2 * np.log(q) - (q - 1) / 2 * np.log(90)
        assert results["icl"][c] == pytest.approx(icl, rel=1e-12)
        score = bound - q * (k - 1) / 2 * np.log(90) - (q - 1) / 2 * np.log(90)
        assert results["cluster_score"][c] == pytest.approx(score, rel=1e-12)
        best = results["cluster_score"][results["n_topics"] == k].max()
        assert results["predictive"][c] == pytest.approx(n_counts * results["held_out"][c] + score - best, rel=1e-12)


def test_the_best_cell_has_the_largest_criterion_and_its_model_is_fitted(data, search):
    results = search.results_
    best = results["predictive"].argmax()
    assert search.best_score_ == results["predictive"][best]
    model = search.best_estimator_
    assert isinstance(model, MMPCA)
    assert (model.n_clusters, model.n_topics) == (3, 3)
    assert model.bound_ == pytest.approx(results["bound"][best], rel=1e-12)
    assert model.icl_ == pytest.approx(results["icl"][best], rel=1e-12)
    np.testing.assert_array_equal(search.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(search.predict_proba(data.X), model.predict_proba(data.X))
    assert search.score(data.X) == model.score(data.X)


def test_another_criterion_chooses_by_itself_from_the_same_results(data, search):
    other = MMPCASearch(**GRID, criterion="icl", n_folds=5).fit(data.X)
    np.testing.assert_array_equal(other.results_["predictive"], search.results_["predictive"])
    best = other.results_["icl"].argmax()
    assert other.best_params_["n_clusters"] == other.results_["n_clusters"][best]
    assert other.best_score_ == other.results_["icl"].max()


def test_counts_are_predicted_only_where_that_is_asked_for(data, search, monkeypatch):
    monkeypatch.setattr(cells, "predicted_rows", fail)
    other = MMPCASearch(**GRID, criterion="icl").fit(data.X)
    assert search.results_.keys() - other.results_.keys() == {"held_out", "predictive", "predictive_error"}
    np.testing.assert_array_equal(other.results_["icl"], search.results_["icl"])
    assert other.reason_.startswith("3 clusters and 3 topics, by the criterion icl; ")


def test_the_error_of_a_number_of_topics_is_that_of_its_rows_losses(data, search):
    options = cells.Options(int(np.random.RandomState(0).randint(2**31)))
    by_topics = {k: cells.learn(as_counts(data.X), k, options) for k in (2, 3)}
    loss = by_topics[3].predicted - by_topics[2].predicted  # (N,), three are best
    results = search.results_
    assert by_topics[2].n_predicted == data.X.sum()
    np.testing.assert_allclose(results["predictive_error"][:3], np.sqrt(90) * loss.std(ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(results["predictive_error"][3:], 0)
    assert data.X.sum() * (results["held_out"][3] - results["held_out"][0]) == pytest.approx(loss.sum(), rel=1e-9)


def test_large_data_are_judged_by_the_same_part_of_their_rows(data, monkeypatch):
    monkeypatch.setattr(cells, "FOLDED_ENTRIES", 600)
    monkeypatch.setattr(cells, "SEARCH_COVER", 1)
    by_topics = {k: cells.learn(as_counts(data.X), k, cells.Options(1)) for k in (2, 3)}
    assert 0 < by_topics[2].n_predicted < data.X.sum()
    assert by_topics[2].n_predicted == by_topics[3].n_predicted
    assert len(by_topics[2].predicted) == len(by_topics[3].predicted) < 90
    search = MMPCASearch(**GRID).fit(data.X)
    difference = search.results_["predictive"].max() - search.results_["predictive"][:3].max()
    held_out = search.results_["held_out"]
    assert difference == pytest.approx(data.X.sum() * (held_out[3] - held_out[0]), rel=1e-9)  # of all counts


def test_the_runner_up_and_the_gap_are_those_of_the_second_best_cell(search):
    order = np.argsort(-search.results_["predictive"])
    assert search.runner_up_["n_clusters"] == search.results_["n_clusters"][order[1]]
    assert search.gap_ == pytest.approx(-np.diff(search.results_["predictive"][order[:2]])[0])


def test_neighbours_never_make_a_cell_worse_and_sometimes_better(data, monkeypatch):
    walked = MMPCASearch(range(2, 8), (3,), n_init=1, max_epochs=1, random_state=0).fit(data.X)
    monkeypatch.setattr(grids, "walk", lambda rows, topics, fresh, options, remember: dict(fresh))
    fresh = MMPCASearch(range(2, 8), (3,), n_init=1, max_epochs=1, random_state=0).fit(data.X)
    assert (walked.results_["bound"] >= fresh.results_["bound"]).all()
    assert (walked.results_["bound"] > fresh.results_["bound"] + 1e-6).any()


def test_numbers_may_be_skipped(data):
    search = MMPCASearch((1, 3, 6), (1, 3), random_state=0).fit(data.X)
    assert search.results_["n_clusters"].tolist() == [1, 3, 6, 1, 3, 6]
    assert np.isfinite(search.results_["predictive"]).all()


def test_one_cell_is_a_grid(data):
    search = MMPCASearch(3, 3, random_state=0).fit(data.X)
    assert search.best_params_ == {"n_clusters": 3, "n_topics": 3}
    assert search.runner_up_ is None
    assert search.gap_ == np.inf
    assert search.reason_ == "3 clusters and 3 topics, by the criterion predictive."


def test_square_roots_are_searched_and_kept_with_the_model(data):
    many = data.X * 4
    search = MMPCASearch((2, 3), (3,), stabilize="sqrt", random_state=0).fit(many)
    assert search.best_estimator_.stabilize == "sqrt"
    roots = sparse.csr_array(np.rint(np.sqrt(many.toarray())).astype(int))
    plain = MMPCASearch((2, 3), (3,), random_state=0).fit(roots)
    np.testing.assert_array_equal(search.results_["bound"], plain.results_["bound"])


def test_resamples_tell_how_often_each_cell_wins(data):
    search = MMPCASearch((2, 3), (3,), n_resamples=2, random_state=0).fit(data.X)
    assert search.results_["wins"].sum() == pytest.approx(1.0)
    assert search.results_["wins"].argmax() == search.results_["predictive"].argmax()


def test_the_choice_is_told_in_words(search):
    assert search.reason_.startswith("3 clusters and 3 topics, by the criterion predictive; ")
    assert "the number of clusters is likely: 2 clusters are" in search.reason_
    assert "at the edge of the grid: try more" in search.reason_  # of topics
    gap = search.best_score_ - search.results_["predictive"][3]
    assert f"2 clusters are {number(gap)} nats worse" in search.reason_
    error = search.results_["predictive_error"][0]
    assert f"(standard error {number(error)}) worse" in search.reason_


# --- it is the same for everyone --------------------------------------------------------------------------------


def test_the_result_does_not_depend_on_the_number_of_jobs(data, search):
    assert_same_results(MMPCASearch(**GRID, n_jobs=2).fit(data.X), search)


def test_it_can_be_cloned_and_keeps_its_parameters(search):
    assert clone(search).get_params() == search.get_params()


def test_the_callback_learns_how_far_it_is(data):
    reports = []
    MMPCASearch(**GRID).fit(data.X, callback=reports.append)
    assert [report.n_done for report in reports if report.n_done] == sorted(
        report.n_done for report in reports if report.n_done
    )
    assert reports[-1].n_done == reports[-1].n_parts == 2 + 6 + 2
    assert reports[-1].seconds_left == 0
    assert list(dict.fromkeys(report.stage for report in reports)) == ["topics", "cells", "neighbours"]


def fail(*_):
    raise AssertionError("this should have been known")


# --- the store --------------------------------------------------------------------------------------------------


def test_a_second_run_takes_everything_from_the_store(data, search, tmp_path, monkeypatch):
    first = MMPCASearch(**GRID, store=tmp_path / "a" / "store").fit(data.X)
    assert_same_results(first, search)
    for name in ("learn", "fresh_cell"):
        monkeypatch.setattr(grids, name, fail)
    second = MMPCASearch(**GRID, store=tmp_path / "a" / "store").fit(data.X)
    assert_same_results(second, search)
    np.testing.assert_array_equal(second.results_["seconds"], first.results_["seconds"])
    assert not list(tmp_path.rglob("*.part"))


def test_a_larger_grid_goes_on_from_the_same_store(data, tmp_path):
    MMPCASearch((2, 3), (3,), random_state=0, store=tmp_path).fit(data.X)
    grown = MMPCASearch((2, 3, 4), (2, 3), random_state=0, store=tmp_path).fit(data.X)
    assert_same_results(grown, MMPCASearch((2, 3, 4), (2, 3), random_state=0).fit(data.X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": 1}, "it was made with another random_state"),
        ({"n_folds": 3}, "its n_folds is 5, here it is 3"),
        ({"topic_prior": 2.0}, "its alpha is 1.0, here it is 2.0"),
        ({"stabilize": "sqrt"}, "its stabilize is None, here it is 'sqrt'"),
    ],
)
def test_a_store_of_other_options_is_refused(data, tmp_path, change, message):
    MMPCASearch((2,), (2,), random_state=0, store=tmp_path).fit(data.X)
    with pytest.raises(StoreError, match=f"belongs to another search: {message}"):
        MMPCASearch((2,), (2,), store=tmp_path, **({"random_state": 0} | change)).fit(data.X)


def test_a_store_of_other_data_is_refused(data, tmp_path):
    MMPCASearch((2,), (2,), random_state=0, store=tmp_path).fit(data.X)
    with pytest.raises(StoreError, match=r"its counts are others .* Give another folder"):
        MMPCASearch((2,), (2,), random_state=0, store=tmp_path).fit(data.X[1:])


def test_a_store_that_cannot_be_written_is_refused_before_any_work(data, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(grids, "learn", None)
    with pytest.raises(StoreError, match="store must be a folder that can be written to"):
        MMPCASearch((2,), (2,), random_state=0, store=tmp_path / "file").fit(data.X)


def test_a_damaged_part_is_made_anew(data, search, tmp_path):
    MMPCASearch(**GRID, store=tmp_path).fit(data.X)
    (tmp_path / "fresh-3-3.npz").write_bytes(b"PK\x03\x04 cut short")
    (tmp_path / "topics-2.npz").write_bytes(b"")
    assert_same_results(MMPCASearch(**GRID, store=tmp_path).fit(data.X), search)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_search_goes_on_and_finds_the_same(data, search, tmp_path):
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(data.X))
    script = textwrap.dedent(f"""
        from scipy import sparse
        from mmpca import MMPCASearch
        from mmpca.selection import grid

        fresh_cell = grid.fresh_cell
        n_cells = 0

        def wait(*arguments):
            global n_cells
            n_cells += 1
            if n_cells == 3:
                print("waiting", flush=True)
                import time
                time.sleep(60)
            return fresh_cell(*arguments)

        grid.fresh_cell = wait
        X = sparse.csr_array(sparse.load_npz({str(tmp_path / "X.npz")!r}))
        MMPCASearch(n_clusters=(2, 3, 4), n_topics=(2, 3), random_state=0, store={str(tmp_path / "store")!r}).fit(X)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    assert sorted(path.name for path in (tmp_path / "store").glob("fresh*")) == ["fresh-2-2.npz", "fresh-3-2.npz"]
    resumed = MMPCASearch(**GRID, store=tmp_path / "store").fit(data.X)
    assert_same_results(resumed, search)


def test_ctrl_c_keeps_the_cells_that_are_finished(data, monkeypatch):
    fresh_cell = grids.fresh_cell
    n_cells = []

    def press(*arguments):
        n_cells.append(1)
        if len(n_cells) == 3:
            raise KeyboardInterrupt
        return fresh_cell(*arguments)

    monkeypatch.setattr(grids, "fresh_cell", press)
    search = MMPCASearch(**GRID)
    with pytest.warns(InterruptedSearchWarning, match="2 of 6 cells are compared"):
        search.fit(data.X)
    assert len(search.results_["bound"]) == 2
    assert search.best_estimator_.labels_.shape == (90,)


def test_ctrl_c_before_the_first_cell_is_not_swallowed(data, monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(grids, "learn", press)
    with pytest.raises(KeyboardInterrupt):
        MMPCASearch(**GRID).fit(data.X)


# --- what it refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": ()}, "n_clusters must hold at least one number to try, but it is empty"),
        ({"n_topics": []}, "n_topics must hold at least one number to try, but it is empty"),
        ({"n_clusters": (3, 2)}, "n_clusters must be ascending, each number once, but 2 comes after 3"),
        ({"n_clusters": (2, 2)}, "n_clusters must be ascending, each number once, but 2 comes after 2"),
        ({"n_clusters": (0, 2)}, "n_clusters must hold whole numbers of at least 1, but it holds 0"),
        ({"n_topics": (2.5,)}, "n_topics must hold whole numbers of at least 1, but it holds 2.5"),
        ({"n_topics": None}, "n_topics must be numbers to try, such as range"),
        ({"n_clusters": (2, 91)}, "n_clusters=91 clusters need as many rows, but n_samples = 90"),
        ({"n_topics": (2, 31)}, "n_topics=31 topics need as many features, but n_features = 30"),
        ({"criterion": "bic"}, r"criterion must be one of \('predictive', 'icl'\), but it is 'bic'"),
        ({"n_folds": 1}, "n_folds must be 'auto', 0 or a whole number of at least 2, but it is 1"),
        ({"n_folds": 0}, "n_folds must be at least 2 for the criterion 'predictive'"),
        ({"n_resamples": -1}, "n_resamples must be a whole number of at least 0, but it is -1"),
        ({"n_init": 0}, "n_init must be"),
        ({"topic_prior": 0}, "topic_prior must be"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(data, monkeypatch, parameters, message):
    monkeypatch.setattr(grids, "learn", None)
    with pytest.raises(ValueError, match=message):
        MMPCASearch(**(GRID | parameters)).fit(data.X)


def test_bad_data_are_refused_before_any_work(data, monkeypatch):
    monkeypatch.setattr(grids, "learn", None)
    with pytest.raises(ValueError, match="-1"):
        MMPCASearch(**GRID).fit(-data.X.toarray())


def test_the_path_of_merges_is_there_for_the_best_model(search):
    path = search.best_estimator_.merge_path()
    assert isinstance(path, engine.MergePath)
    assert len(path.bounds) == 3


def test_a_cell_that_is_interrupted_is_not_kept(data, tmp_path, monkeypatch):
    visit = sweeps.GreedySweep.visit
    n_visits = []

    def press(*arguments):
        n_visits.append(1)
        if len(n_visits) == 40:
            raise KeyboardInterrupt
        return visit(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(sweeps.GreedySweep, "visit", press)
        with pytest.warns(InterruptedSearchWarning, match="cells are compared"):
            MMPCASearch(**GRID, n_resamples=2, store=tmp_path).fit(data.X)
    resumed = MMPCASearch(**GRID, store=tmp_path).fit(data.X)
    assert_same_results(resumed, MMPCASearch(**GRID).fit(data.X))


def test_processes_get_topics_that_are_too_large_to_be_copied():
    X = np.random.default_rng(0).poisson(0.01, (30, 70_000))  # joblib maps arrays of more than a megabyte
    search = MMPCASearch((2, 3), (2,), n_init=1, max_epochs=3, random_state=0, n_jobs=2).fit(X)
    assert search.labels_.shape == (30,)


def test_a_file_that_is_no_search_is_refused(data, tmp_path):
    (tmp_path / "search.json").write_text("[1, 2]")
    with pytest.raises(StoreError, match=r"search.json is not that of a search"):
        MMPCASearch((2,), (2,), random_state=0, store=tmp_path).fit(data.X)


def test_processes_of_an_earlier_search_keep_cells_where_this_one_says(tmp_path, monkeypatch):
    X = paper_design(n_samples=30, random_state=0).X
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        MMPCASearch((2, 3), (2,), store="grid", n_jobs=2, random_state=0).fit(X)
        assert (tmp_path / name / "grid" / "fresh-3-2.npz").exists()
    get_reusable_executor().shutdown(wait=True)
