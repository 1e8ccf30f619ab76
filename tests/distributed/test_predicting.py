"""Rows are predicted where they are as they are at hand."""

from copy import copy

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.distributed import predict
from mmpca.errors import CountsError
from mmpca.io import CountTable, write_counts
from mmpca.model import prediction


@pytest.fixture(scope="module")
def model(X, at_hand):
    model = copy(at_hand)
    model.feature_names_in_ = np.array([f"word{v}" for v in range(X.shape[1])], dtype=object)
    return model


@pytest.fixture(scope="module")
def labels(X, at_hand):
    return at_hand.predict(X)


def test_blocks_are_predicted_as_at_hand(X, client, blocks, model, labels):
    np.testing.assert_array_equal(predict(model, blocks(X, 2), client), labels)
    np.testing.assert_array_equal(predict(model, blocks(X, 5)), labels)


def test_rows_of_a_part_are_scored_some_at_a_time(X, blocks, model, labels, monkeypatch):
    sizes, joint_of = [], prediction.joint_of
    monkeypatch.setattr(prediction, "ROWS_AT_ONCE", 70)
    monkeypatch.setattr(
        prediction, "joint_of", lambda rows, scores: sizes.append(rows.n_rows) or joint_of(rows, scores)
    )
    np.testing.assert_array_equal(predict(model, blocks(X, 2)), labels)
    assert max(sizes) == 70
    assert sum(sizes) == 300


def test_square_roots_are_taken_where_the_model_takes_them(X, blocks, options):
    model = MMPCA(**options, stabilize="sqrt").fit(X)
    np.testing.assert_array_equal(predict(model, blocks(X, 3)), model.predict(X))


def test_features_of_files_are_matched_by_name(X, client, model, labels, tmp_path):
    names = model.feature_names_in_
    order = np.random.default_rng(0).permutation(X.shape[1])
    unheard = sparse.csr_array(np.full((200, 1), 9, dtype=np.int32))
    write_counts(tmp_path / "a.npz", CountTable(sparse.csr_array(X[:100][:, order]), None, names[order], []))
    write_counts(
        tmp_path / "b.npz",
        CountTable(sparse.hstack([unheard, X[100:]], format="csr"), None, np.array(["unheard", *names]), []),
    )
    np.testing.assert_array_equal(predict(model, [tmp_path / "a.npz", tmp_path / "b.npz"], client), labels)
    write_counts(tmp_path / "c.npz", CountTable(X[:5, :2], None, np.array(["ant", "bee"]), []))
    with pytest.raises(CountsError, match=r"c.npz: none of the features has a name that the model knows"):
        predict(model, [tmp_path / "c.npz"])


@pytest.fixture
def cells(X, model):
    """Return the rows as an AnnData object that has not been read, its genes in another order and one more."""
    import anndata
    import dask.array as da

    counts = np.hstack([X.toarray(), np.full((300, 1), 9)])
    cells = anndata.AnnData(da.from_array(counts, chunks=(120, -1)))
    cells.var_names = [*model.feature_names_in_, "unheard"]
    return cells


def test_genes_are_matched_by_name(X, client, model, labels, cells):
    np.testing.assert_array_equal(predict(model, cells[:, : X.shape[1]]), labels)
    np.testing.assert_array_equal(predict(model, cells[:, ::-1], client), labels)
    cells.var_names = [f"unheard{v}" for v in range(cells.n_vars)]
    with pytest.raises(CountsError, match=r"block 0 of X: none of the features has a name that the model knows"):
        predict(model, cells)


def test_genes_that_are_no_counts_are_refused_by_their_own_number(X, model, cells):
    cells.X = cells.X.map_blocks(lambda block: block - 9)
    with pytest.raises(CountsError, match=r"block 0 of X\[0, 1\] = -9"):
        predict(model, cells[:, ::-1])


def test_rows_without_counts_fall_into_the_largest_cluster(X, model):
    found = predict(model, [X[:3], sparse.csr_array((2, X.shape[1]), dtype=int)])
    assert found[3:].tolist() == [int(model.weights_.argmax())] * 2


def test_other_features_are_refused(X, model):
    with pytest.raises(CountsError, match="features that the model was fitted to, but it has 5"):
        predict(model, [X[:, :5]])
