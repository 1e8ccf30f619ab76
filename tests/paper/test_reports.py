"""The experiment on synthetic reports: from texts to clusters and pages."""

import csv

import numpy as np
import pytest

from mmpca.cli.reproduce import write_reports
from mmpca.paper import make, run_tasks, write_output
from mmpca.paper.reports import agreement_with_truth

CRITERIA = ("predictive", "icl")


@pytest.fixture(scope="module")
def experiment():
    return make("reports", quick=True, n_clusters=(7, 8), n_topics=(7,))


@pytest.fixture(scope="module")
def records(experiment, tmp_path_factory):
    return run_tasks(experiment, tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def record(records):
    return next(iter(records.values()))


def test_benign_and_lobular_reports_have_their_own_clusters_and_subtypes_are_recovered(experiment, records):
    summary = experiment.summary(experiment.table(records))
    for criterion in CRITERIA:
        found = dict(zip(summary[""], summary[f"{criterion}, seed 1000"], strict=True))
        assert found["subtypes: ARI"] > 0.7
        for label in ("benign", "lobular carcinoma"):
            assert found[f"{label}: purity"] >= 0.95
            assert found[f"{label}: found"] >= 0.95


def test_there_are_about_three_hundred_words(experiment):
    counted = experiment.counted(1000)
    assert 250 <= counted.X.shape[1] <= 350
    assert counted.X.shape == (len(counted.reports.texts), len(counted.words))


def test_the_table_has_a_row_for_each_criterion_and_report(experiment, records, record, tmp_path):
    _, files = write_output(experiment, records, tmp_path)
    with (tmp_path / "reports.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * experiment.n_reports
    assert [int(row["cluster"]) for row in rows if row["criterion"] == "icl"] == record["icl"]["labels"]
    assert [path.name for path in files] == ["reports.csv", "reports.png", "reports.svg"]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_model_is_rebuilt_from_its_record(experiment, record, criterion):
    counted = experiment.counted(1000)
    model = experiment.model(counted, record, criterion)
    found = record[criterion]
    assert model.labels_.tolist() == found["labels"]
    np.testing.assert_allclose(model.cluster_topics_, found["cluster_topics"], atol=1e-6)
    assert model.feature_names_in_[model.components_[0].argmax()] == found["words"][0][0]


def test_the_best_cell_of_each_criterion_is_the_largest(record):
    cells = record["cells"]
    for criterion in CRITERIA:
        best = int(np.argmax(cells[criterion]))
        assert (cells["n_clusters"][best], cells["n_topics"][best]) == (
            record[criterion]["n_clusters"],
            record[criterion]["n_topics"],
        )


def test_pages_and_tables_are_written(experiment, records, tmp_path):
    files = write_reports(experiment, records, tmp_path)
    assert [path.name for path in files if path.suffix == ".html"] == ["reports.html", "reports-subtypes.html"]
    for path in files:
        assert path.stat().st_size > 0
    assert "non-special-type carcinoma" in (tmp_path / "reports.html").read_text()
    assert "poorly differentiated" in (tmp_path / "reports-subtypes.html").read_text()
    with (tmp_path / "reports-predictive-topic-shares.csv").open(newline="") as file:
        shares = [[float(value) for value in row[2:]] for row in list(csv.reader(file))[1:]]
    np.testing.assert_allclose(np.sum(shares, axis=1), 1, atol=1e-3)


def test_purity_counts_other_reports_in_a_cluster_and_found_counts_reports_elsewhere():
    label = np.array(["benign"] * 4 + ["lobular carcinoma"] * 2 + ["other"] * 2)
    found = agreement_with_truth(label, label, np.array([0, 0, 0, 1, 1, 1, 0, 1]))
    assert found["benign: purity"] == found["benign: found"] == 0.75
    assert found["lobular carcinoma: purity"] == found["lobular carcinoma: found"] == 0
