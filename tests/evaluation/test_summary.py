"""All measures of one model."""

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.evaluation import agreement, summarize, topic_coherence
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(data.X)


def test_the_summary_holds_the_numbers_of_the_model_and_the_measures(data, model):
    summary = summarize(model, data.X, labels=data.labels)
    assert (summary.bound, summary.icl, summary.score) == (model.bound_, model.icl_, model.score(data.X))
    np.testing.assert_array_equal(summary.sizes, np.bincount(model.labels_))
    np.testing.assert_array_equal(summary.npmi, topic_coherence(model.components_, data.X))
    assert summary.agreement == agreement(data.labels, model.labels_)
    assert summary.stability is None


def test_the_certainty_of_a_cluster_is_the_mean_probability_of_its_rows(data, model):
    probabilities = model.leave_one_out_proba(data.X)
    for q, certainty in enumerate(summarize(model, data.X).certainty):
        assert certainty == pytest.approx(probabilities[model.labels_ == q, q].mean())


def test_tables_have_an_entry_for_each_cluster_and_topic(data, model):
    summary = summarize(model, data.X, n_refits=2, random_state=0)
    clusters, topics = summary.clusters(), summary.topics()
    assert {len(column) for column in clusters.values()} == {6}
    assert {len(column) for column in topics.values()} == {4}
    assert clusters["verdict"] == summary.stability.verdicts


def test_the_summary_prints_as_aligned_tables(data, model):
    summary = summarize(model, data.X, labels=data.labels, n_refits=1, random_state=0)
    _, clusters, topics = str(summary).split("\n\n")
    for text, table in ((clusters, summary.clusters()), (topics, summary.topics())):
        lines = text.splitlines()
        assert lines[0].split() == list(table)
        assert len({len(line) for line in lines}) == 1


def test_data_of_another_fit_are_refused(data, model):
    with pytest.raises(ValueError, match=r"\bX\b"):
        summarize(model, data.X[:7])
