"""All methods on simulated data."""

import csv

import numpy as np
import pytest
from scipy.stats import multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.evaluation import all_methods
from mmpca.paper import make, write_output
from mmpca.paper.comparison import FAMILIES, ORACLE, experiment_methods, fit_family, oracle_labels
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def data():
    return paper_design(60, noise=0.3, random_state=7)


def invented(experiment):
    """Return records of all tasks in which the agreement depends on the seed alone."""
    records = {}
    for task in experiment.tasks():
        ari = 0.5 + task["seed"] / 1e4
        records[task] = {method: {"ari": ari, "nmi": ari / 2} for method in FAMILIES[task.kind]}
    return records


def test_the_families_are_all_methods_and_the_oracle():
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted([ORACLE, *experiment_methods(6, 4)])
    assert set(all_methods(6, 4)) < set(experiment_methods(6, 4))


def test_methods_that_share_an_lda_give_the_same_results_as_alone():
    data = paper_design(30, noise=0.3, random_state=7)
    record = fit_family("lda-space-mmpca", data, 3)
    assert len(record) == 2
    for name, found in record.items():
        alone = all_methods(6, 4, 3)[name].fit_predict(data.X)
        assert found["ari"] == pytest.approx(adjusted_rand_score(data.labels, alone), abs=1e-12)


def test_the_oracle_chooses_the_most_probable_cluster_under_the_true_parameters(data):
    shares = 0.7 * data.cluster_topics + 0.3 / 4  # three words in ten have a uniform topic
    X = data.X.toarray()
    logs = np.array([multinomial.logpmf(X, X.sum(axis=1), profile) for profile in shares @ data.topics])  # (Q, N)
    expected = (logs + np.log(data.weights)[:, None]).argmax(axis=0)
    np.testing.assert_array_equal(oracle_labels(data), expected)
    assert fit_family("ceiling", data, 0)[ORACLE]["ari"] == adjusted_rand_score(data.labels, expected)


def test_the_oracle_beats_a_mixture(data):
    assert fit_family("ceiling", data, 0)[ORACLE]["ari"] > fit_family("mixtures", data, 0)["multinomial mixture"]["ari"]


def test_noise_has_a_row_for_each_data_set_and_method_in_a_fixed_order(tmp_path):
    experiment = make("noise", quick=True)
    records = invented(experiment)
    table, files = write_output(experiment, dict(reversed(records.items())), tmp_path)
    with (tmp_path / "noise.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 17
    assert [row["method"] for row in rows[:3]] == [ORACLE, "MMPCA", "GMM on LDA"]
    assert [float(row["noise"]) for row in rows] == [0.0] * 34 + [0.4] * 34
    assert experiment.summary(table)["noise 0.4"][1] == pytest.approx(0.5 + (1000 + 1001) / 2 / 1e4)
    assert [path.name for path in files] == ["noise.csv", "noise.png", "noise.svg"]


def test_a_subset_of_the_methods_can_be_run(tmp_path):
    experiment = make("sample-size", quick=True, families=("mmpca", "lda-space-mmpca"))
    assert {task.kind for task in experiment.tasks()} == {"mmpca", "lda-space-mmpca"}
    table, _ = write_output(experiment, invented(experiment), tmp_path)
    assert set(table["method"]) == {"MMPCA", "GMM on LDA (mmpca)", "k-means on LDA (mmpca)"}


def test_sample_size_reports_rows_per_feature(tmp_path):
    experiment = make("sample-size", quick=True)
    table, _ = write_output(experiment, invented(experiment), tmp_path)
    assert sorted(set(table["rows_per_feature"])) == [round(50 / 917, 4), round(100 / 917, 4)]
    assert list(experiment.summary(table)) == ["method", "n_samples 50", "n_samples 100"]
    assert (tmp_path / "sample-size.svg").stat().st_size > 0
