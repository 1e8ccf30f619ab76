"""All rows at a time: the results of scikit-learn's LDA."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from mmpca.baselines.variational import VariationalLDA
from mmpca.simulate import paper_design


@pytest.mark.parametrize("n_topics", [1, 4])
@pytest.mark.parametrize("prior", [1.0, 0.25])
@pytest.mark.parametrize("n_updates", [3, 100])  # no row settles, nearly all do
def test_topics_shares_and_score_are_those_of_scikit_learn(n_topics, prior, n_updates):
    X = paper_design(80, noise=0.3, random_state=1).X
    options = {"doc_topic_prior": prior, "max_iter": 6, "max_doc_update_iter": n_updates, "random_state": 3}
    theirs, ours = (kind(n_topics, **options).fit(X) for kind in (LatentDirichletAllocation, VariationalLDA))
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-10)


def test_the_step_of_scikit_learn_is_replaced():
    X = paper_design(10, random_state=1).X
    model = VariationalLDA(2, max_iter=1, random_state=0)
    seen = []
    model._update = lambda *arguments: seen.append(len(arguments))
    model.fit(X)
    assert seen  # else it is slow, though right


def test_rows_of_other_lengths_dense_counts_and_rows_without_counts():
    dense = np.array([[3, 0, 1, 900], [0, 0, 0, 1], [5, 5, 5, 0], [0, 0, 0, 0]])
    for X in (dense, sparse.csr_array(dense), sparse.csr_matrix(dense)):
        theirs, ours = (
            kind(2, max_iter=5, random_state=0).fit_transform(X) for kind in (LatentDirichletAllocation, VariationalLDA)
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
