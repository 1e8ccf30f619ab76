"""The variational LDA of the baselines against scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from mmpca.baselines.topic_space import VariationalLDA
from mmpca.simulate import paper_design


def both(X, n_topics, **options):
    """Return scikit-learn's LDA and ours, fitted with the same settings."""
    return [kind(n_topics, random_state=3, **options).fit(X) for kind in (LatentDirichletAllocation, VariationalLDA)]


@pytest.mark.parametrize(("n_topics", "prior"), [(1, 1.0), (4, 1.0), (4, 0.25)])
@pytest.mark.parametrize("n_updates", [3, 100])  # no row converges; nearly all do
def test_topics_shares_and_score_equal_those_of_scikit_learn(n_topics, prior, n_updates):
    X = paper_design(40, noise=0.3, random_state=1).X
    theirs, ours = both(X, n_topics, doc_topic_prior=prior, max_iter=4, max_doc_update_iter=n_updates)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_dense_and_sparse_rows_of_any_length_equal_scikit_learn(form):
    X = form(np.array([[3, 0, 1, 900], [0, 0, 0, 1], [5, 5, 5, 0], [0, 0, 0, 0]]))
    theirs, ours = both(X, 2, max_iter=5)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)


def test_scikit_learn_calls_the_faster_e_step():
    model = VariationalLDA(2, max_iter=1, random_state=0)
    calls = []
    model._update = lambda *arguments: calls.append(arguments)
    model.fit(paper_design(10, random_state=1).X)
    assert calls
