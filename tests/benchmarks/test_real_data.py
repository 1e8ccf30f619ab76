"""The comparison on labeled data: its tasks, seeds, means and verdicts, and the methods that it brings itself."""

import gzip

import numpy as np
import pytest
from rich.console import Console
from scipy import io, sparse
from sklearn.metrics import adjusted_rand_score

from mmpca.simulate import simulate_mmpca
from mmpca.store import Store
from real_data import (
    BASELINES,
    DEFAULT,
    METHODS,
    RealTask,
    clr_kmeans,
    finished,
    further_seeds,
    hellinger_kmeans,
    mean_ari,
    tfidf_kmeans,
    verdicts,
)
from tasks import run_all


def results(**ari):
    """Return results on two data sets; `ari` has the values of a method on both, for each of its seeds."""
    return {
        RealTask(f"/data/{name}", method.replace("_", " "), seed): {"ari": value, "seconds": 1.0}
        for method, values in ari.items()
        for name, at in zip(("news_titles", "oaks"), values, strict=True)
        for seed, value in enumerate(np.atleast_1d(at))
    }


def separated(n_features, seed=0):
    """Return counts of three clusters whose features hardly overlap, and the clusters."""
    topics = np.random.default_rng(seed).dirichlet(np.full(n_features, 0.05), 3)
    drawn = simulate_mmpca(90, topics=topics, cluster_topics=np.eye(3), lengths=200, random_state=seed)
    return sparse.csr_array(drawn.X), drawn.labels


def test_every_task_has_its_own_key():
    keys = {RealTask(f"/data/{name}", method, seed).key for name in "ab" for method in METHODS for seed in (0, 1)}
    assert len(keys) == 4 * len(METHODS)


def test_quick_fits_get_ten_seeds_and_others_three_unless_limited():
    first = {RealTask("/data/a", "NMF", 0): {"seconds": 9.0}, RealTask("/data/a", "LDA", 0): {"seconds": 11.0}}
    tasks = further_seeds(first, None)
    assert [task.seed for task in tasks if task.method == "NMF"] == list(range(1, 10))
    assert [task.seed for task in tasks if task.method == "LDA"] == [1, 2]
    assert {task.seed for task in further_seeds(first, 2)} == {1}
    assert further_seeds(first, 1) == []


def test_means_are_over_the_seeds_of_each_data_set():
    found = mean_ari(results(MMPCA=([0.2, 0.4], 1.0)))
    assert found[DEFAULT] == pytest.approx({"news_titles": 0.3, "oaks": 1.0})


def test_the_default_must_lead_on_average_lag_nowhere_and_reach_gsdmm_on_short_texts():
    rows = verdicts(results(MMPCA=(0.7, 0.9), GSDMM=(0.71, 0.2), NMF=(0.5, 0.95)))
    overall, titles, oaks, short = rows
    assert overall.value == pytest.approx(0.8 - 0.725)
    assert overall.holds
    assert titles.holds
    assert not oaks.holds
    assert oaks.value == pytest.approx(-0.05)
    assert not short.holds


def test_a_method_that_lacks_a_data_set_has_no_mean_but_competes_where_it_ran():
    some = results(MMPCA=(0.7, 0.9), NMF=(0.6, 0.8))
    lonely = {RealTask("/data/oaks", "LDA", 0): {"ari": 1.0, "seconds": 1.0}}
    overall, _, oaks = verdicts(some | lonely)
    assert overall.value == pytest.approx(0.1)
    assert oaks.value == pytest.approx(-0.1)


def test_batches_are_compared_with_a_fit_of_all_rows():
    *_, titles, oaks = verdicts(results(**{"MMPCA": (0.5, 0.8), "MMPCA,_batches": (0.4, 0.8)}))
    assert titles.value == pytest.approx(0.8)
    assert oaks.value == pytest.approx(1.0)


def test_other_versions_of_mmpca_do_not_compete():
    rows = verdicts(results(MMPCA=(0.5, 0.5), NMF=(0.1, 0.1)) | results(**{"MMPCA,_polya": (0.9, 0.9)}))
    assert all(row.holds for row in rows)
    assert not any(name.startswith("MMPCA") for name in BASELINES)


@pytest.mark.parametrize("n_features", [60, 2500])
@pytest.mark.parametrize("method", [tfidf_kmeans, hellinger_kmeans, clr_kmeans])
def test_k_means_in_other_spaces_finds_separated_clusters(method, n_features):
    X, labels = separated(n_features)
    found = method(X, 3, 0)
    assert adjusted_rand_score(labels, found) > 0.9


def test_finished_fits_are_stored_and_read_again(tmp_path):
    X, labels = separated(20)
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    io.mmwrite(folder / "counts.mtx", X)
    (folder / "counts.mtx.gz").write_bytes(gzip.compress((folder / "counts.mtx").read_bytes()))
    (folder / "labels.csv").write_text("class\n" + "".join(f"{label}\n" for label in labels))
    store, task = Store(tmp_path / "results", "real data"), RealTask(str(folder), "GSDMM", 0)
    run_all([task], store, n_jobs=1, console=Console(quiet=True))
    found = finished([folder], store)
    assert list(found) == [task]
    assert found[task]["ari"] > 0.9
