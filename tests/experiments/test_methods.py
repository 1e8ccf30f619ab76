"""All methods on one data set."""

import numpy as np
import pytest
from scipy.stats import multinomial
from sklearn.metrics import adjusted_rand_score

from mmpca.evaluation import all_methods
from mmpca.experiments.methods import CEILING, FAMILIES, ceiling_labels, fit_family, method_order
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def data():
    return paper_design(60, noise=0.3, random_state=7)


def test_families_are_all_methods_and_the_ceiling():
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(method_order())
    assert method_order()[0] == CEILING
    assert set(method_order()[1:]) == set(all_methods(6, 4))


@pytest.mark.parametrize("family", ["lda-space", "lda-space-mmpca"])
def test_methods_that_share_an_lda_find_what_they_find_alone(data, family):
    record = fit_family(family, data, 3)
    assert len(record) == 2
    for name, found in record.items():
        alone = all_methods(6, 4, 3)[name].fit_predict(data.X)
        assert found["ari"] == pytest.approx(adjusted_rand_score(data.labels, alone), abs=1e-12)


def test_the_ceiling_is_the_most_probable_cluster_under_the_true_parameters(data):
    shares = 0.7 * data.cluster_topics + 0.3 / 4  # three words in ten have their topic drawn blindly
    X = data.X.toarray()
    logs = np.array([multinomial.logpmf(X, X.sum(axis=1), profile) for profile in shares @ data.topics])  # (Q, N)
    expected = (logs + np.log(data.weights)[:, None]).argmax(axis=0)
    np.testing.assert_array_equal(ceiling_labels(data), expected)


def test_the_true_parameters_are_hard_to_beat(data):
    ceiling = fit_family("ceiling", data, 0)[CEILING]["ari"]
    assert ceiling == adjusted_rand_score(data.labels, ceiling_labels(data))
    assert ceiling > fit_family("mixtures", data, 0)["multinomial mixture"]["ari"]
