"""``mmpca demo``."""

import re

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA
from mmpca.cli.demo import BAR_WIDTH
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def demo(mmpca_command):
    """Return the output of the command, and the same data and model."""
    done = mmpca_command("demo", "--jobs", 1, "--noise", 0.0, "--balance", 0.7, "--seed", 3)
    assert done.code == 0, done.err
    data = paper_design(noise=0.0, balance=0.7, random_state=3)
    return done.out, data, MMPCA(6, 4, random_state=3).fit(data.X)


def rows_of(output, title):
    """Return the cells of each row of a table."""
    lines = iter(output.splitlines())
    assert any(line.startswith(title) for line in lines), output
    rows = []
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"\s{2,}", line) if cell.strip()]
        if cells and cells[0].isdigit():
            rows.append(cells)
        elif rows:
            break
    return rows


def test_bound_icl_and_agreement_are_shown(demo):
    output, data, model = demo
    ari = adjusted_rand_score(data.labels, model.labels_)
    assert ari > 0.9
    for shown in (f"{model.bound_:,.1f}", f"{model.icl_:,.1f}", f"{ari:.3f}", "917", "seed 3"):
        assert shown in output


def test_the_parts_of_the_fit_add_up_to_its_time(demo):
    whole, *parts = (float(seconds) for seconds in re.findall(r"([\d.]+)\s+s\b", demo[0]))
    assert len(parts) == 4
    assert sum(parts) == pytest.approx(whole, abs=0.25 + 1e-9)  # five rounded numbers


def test_each_cluster_has_its_size_truth_and_shares(demo):
    output, data, model = demo
    rows = rows_of(output, "Clusters")
    assert [int(row[0]) for row in rows] == list(range(6))
    assert [int(row[1]) for row in rows] == np.bincount(model.labels_).tolist()
    for q, row in enumerate(rows):
        truth = np.bincount(data.labels[model.labels_ == q], minlength=6)
        assert row[2] == f"{truth.argmax()} ({truth.max() / truth.sum():.0%})"
        shares = [float(share) for share in re.findall(r"\b[01]\.\d\d\b", " ".join(row[3:]))]
        np.testing.assert_allclose(shares, model.cluster_topics_[q], atol=0.0051)
        bars = re.findall(r"\d\.\d\d ?([█▏▎▍▌▋▊▉]*)", " ".join(row[3:]))
        n_eighths = [8 * bar.count("█") + sum(" ▏▎▍▌▋▊▉".index(cell) for cell in bar if cell != "█") for bar in bars]
        assert n_eighths == [round(share * BAR_WIDTH * 8) for share in model.cluster_topics_[q]]


def test_each_topic_has_its_most_distinctive_words(demo):
    output, data, model = demo
    rows = rows_of(output, "Topics")
    assert [int(row[0]) for row in rows] == list(range(4))
    table = model.name_features(data.feature_names).features_frame(n_features=8).query("kind == 'topic'")
    for k, row in enumerate(rows):
        own = table[table["number"] == k]
        expected = [f"{word} {100 * share:.1f}" for word, share in zip(own["feature"], own["share"], strict=True)]
        assert row[1] == ", ".join(expected)
