"""Data at the edge of what can be clustered are fitted all the same, by every algorithm, all else default."""

import numpy as np
import pytest

from mmpca import MMPCA

RNG = np.random.default_rng(0)
PLAIN = RNG.multinomial(30, [0.4, 0.3, 0.2, 0.1], size=12)
HUGE_ROW = np.vstack([PLAIN, 10**8 * np.array([[1, 2, 3, 4]])])

CASES = {
    "all rows identical": (np.tile([3, 1, 0, 2], (10, 1)), 3, 2),
    "two rows": (np.array([[5, 0, 1], [0, 4, 2]]), 2, 2),
    "two rows in one cluster": (np.array([[5, 0, 1], [0, 4, 2]]), 1, 2),
    "one row": (np.array([[5, 0, 1]]), 1, 2),
    "one feature": (RNG.integers(1, 20, (8, 1)), 3, 1),
    "one topic": (PLAIN, 3, 1),
    "as many clusters as rows": (PLAIN, 12, 3),
    "as many topics as features": (PLAIN, 3, 4),
    "a single huge row": (HUGE_ROW, 3, 2),
    "counts of a million": (RNG.multinomial(10**6, [0.4, 0.3, 0.2, 0.1], size=12), 3, 2),
    "single tokens": (np.eye(6, dtype=int), 3, 2),
    "an empty column": (np.insert(PLAIN, 2, 0, axis=1), 3, 2),
}


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem", "vbem"])
@pytest.mark.parametrize("case", CASES)
def test_degenerate_data_are_fitted(case, algorithm):
    X, n_clusters, n_topics = CASES[case]
    model = MMPCA(n_clusters, n_topics, algorithm=algorithm, random_state=0).fit(X)
    assert (np.bincount(model.labels_, minlength=n_clusters) > 0).all()
    assert np.isfinite([model.bound_, model.refit_bound_, model.icl_]).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.cluster_topics_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (np.diff(model.bound_history_) >= -1e-12 * abs(model.bound_)).all()
    again = MMPCA(n_clusters, n_topics, algorithm=algorithm, random_state=0, n_jobs=2).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.parametrize("algorithm", ["greedy", "vbem"])
def test_one_topic_makes_one_profile_for_all_clusters(algorithm):
    model = MMPCA(3, 1, algorithm=algorithm, random_state=0).fit(PLAIN)
    np.testing.assert_allclose(model.components_[0], PLAIN.sum(axis=0) / PLAIN.sum(), atol=1e-3)
