import numpy as np
import pytest

from mmpca.baselines import NMFClustering
from mmpca.baselines.base import unit_tfidf
from mmpca.counts import as_counts


def test_one_component_leaves_the_error_of_the_best_rank_one(make_blocks):
    X = make_blocks(n_rows=15).X
    values = np.linalg.svd(unit_tfidf(as_counts(X)).toarray(), compute_uv=False)
    # The leading singular vectors of a non-negative matrix are non-negative.
    model = NMFClustering(1, tol=1e-10, random_state=0).fit(X)
    assert model.reconstruction_error_ == pytest.approx(np.sqrt(np.sum(values[1:] ** 2)), rel=1e-6)


def test_error_and_labels_follow_from_weights_and_components(make_blocks):
    X = make_blocks().X
    model = NMFClustering(3, random_state=0).fit(X)
    residual = unit_tfidf(as_counts(X)).toarray() - model.weights_ @ model.components_
    assert model.reconstruction_error_ == pytest.approx(np.linalg.norm(residual))
    np.testing.assert_array_equal(model.labels_, model.weights_.argmax(axis=1))
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_rows_without_common_features_are_separated_exactly():
    X = np.kron(np.eye(3, dtype=int), [[2, 1], [4, 2], [6, 3]])
    model = NMFClustering(3, random_state=0).fit(X)
    assert len(set(model.labels_.reshape(3, 3)[:, 0])) == 3
    assert np.all(model.labels_.reshape(3, 3) == model.labels_.reshape(3, 3)[:, :1])
    assert model.reconstruction_error_ == pytest.approx(0, abs=1e-3)


def test_more_starts_do_not_raise_the_error(make_blocks):
    X = make_blocks(1, shortest=5, longest=10).X
    one, many = (NMFClustering(4, n_init=n, random_state=0).fit(X).reconstruction_error_ for n in (1, 6))
    assert many <= one


def test_reports_that_it_did_not_converge(make_blocks):
    assert not NMFClustering(3, max_iter=1, n_init=1, random_state=0).fit(make_blocks().X).converged_


def test_an_invalid_tolerance_raises():
    with pytest.raises(ValueError, match="tol"):
        NMFClustering(2, tol=-1).fit([[1], [2]])
