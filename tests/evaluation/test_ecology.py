"""Indicator features agree with the plain formula, p-values with all permutations, and totals with known cases."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mmpca.evaluation import indicators, totals_explained
from mmpca.evaluation.ecology import indicator_values
from mmpca.io import CountTable


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [10, 6, 8])
    X = rng.poisson(np.array([[4, 1, 0, 2, 1], [0, 3, 0, 2, 1], [1, 1, 5, 2, 1]])[labels])
    X[:, 4] = 0
    return X, labels


def test_values_agree_with_the_plain_formula(data):
    X, labels = data
    specificity, fidelity = indicator_values(sparse.csr_array(X), labels, 3)
    table = indicators(X, labels, n_permutations=9).set_index("feature")
    assert "feature 4" not in table.index  # it never occurs
    for v in range(4):
        line = table.loc[f"feature {v}"]
        q = int((specificity * fidelity)[:, v].argmax())
        assert line["cluster"] == q
        assert line["specificity"] == pytest.approx(specificity[q, v])
        assert line["fidelity"] == pytest.approx(fidelity[q, v])
        assert line["indicator_value"] == pytest.approx(specificity[q, v] * fidelity[q, v])


def test_p_values_agree_with_all_permutations():
    X, labels = np.array([[5, 1], [4, 0], [0, 2], [1, 1], [0, 3]]), np.array([0, 0, 1, 1, 1])
    observed = np.multiply(*indicator_values(sparse.csr_array(X), labels, 2)).max(axis=0)
    every = [
        np.multiply(*indicator_values(sparse.csr_array(X), np.array(p), 2)).max(axis=0) for p in permutations(labels)
    ]
    exact = (np.array(every) >= observed - 1e-12).mean(axis=0)
    table = indicators(X, labels, n_permutations=4000, random_state=1).set_index("feature")
    for v in range(2):
        assert table.loc[f"feature {v}", "p_value"] == pytest.approx(exact[v], abs=0.03)


def test_groups_without_meaning_have_uniform_p_values():
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (40, 200))
    p = indicators(X, np.repeat([0, 1], 20), n_permutations=199)
    assert 0.02 <= (p["p_value"] <= 0.1).mean() <= 0.2
    assert (p["p_adjusted"] >= p["p_value"]).all()
    assert (p["p_adjusted"] > 0.05).all()


def test_a_feature_of_one_group_alone_is_perfect_and_names_are_kept(data):
    X = pd.DataFrame({"a": [3, 4, 5, 0, 0, 0], "b": [1, 1, 1, 1, 1, 1]})
    table = indicators(X, ["x"] * 3 + ["y"] * 3)
    assert table.iloc[0][["feature", "cluster", "indicator_value"]].tolist() == ["a", "x", 1.0]
    assert table.iloc[0]["p_value"] < 0.2
    as_table = CountTable(sparse.csr_array(X.to_numpy()), None, np.array(["a", "b"], dtype=object), [])
    pd.testing.assert_frame_equal(indicators(as_table, ["x"] * 3 + ["y"] * 3), table)


def test_the_order_of_rows_and_labels_does_not_matter(data):
    X, labels = data
    order = np.random.default_rng(1).permutation(len(X))
    columns = ["feature", "cluster", "indicator_value"]
    first = indicators(X, labels, n_permutations=1)[columns]
    pd.testing.assert_frame_equal(first, indicators(X[order], labels[order], n_permutations=1)[columns])


def test_rows_without_a_cluster_are_left_out(data):
    X, labels = data
    more = np.vstack([X, np.full((1, 5), 100)])
    pd.testing.assert_frame_equal(indicators(more, [*labels, -1]), indicators(X, labels))


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 0]])
def test_wrong_labels_are_an_error(labels):
    with pytest.raises(ValueError, match=r"label|cluster"):
        indicators([[1, 2], [3, 4], [5, 6]], labels)


def test_totals_explained():
    rng = np.random.default_rng(0)
    totals, labels = rng.integers(50, 5000, 200), rng.integers(0, 4, 200)
    assert abs(totals_explained(totals, labels)) < 0.1
    assert totals_explained(totals, np.digitize(np.log(totals), [5, 6, 7])) > 0.7
    assert totals_explained([5, 5, 5], [0, 1, 1]) == 0.0
