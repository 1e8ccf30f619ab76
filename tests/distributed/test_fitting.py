"""Fits and predictions of rows in blocks equal those of all rows in memory."""

from copy import copy

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.backend import SERIAL
from mmpca.counts import as_counts
from mmpca.distributed import fit, fitting, predict
from mmpca.errors import CountsError, StoreError
from mmpca.io import CountTable, write_counts
from mmpca.model import prediction


@pytest.mark.parametrize("n_blocks", [1, 3, 7])
def test_blocks_are_fitted_like_all_rows(X, n_blocks, blocks, options, in_memory, assert_same):
    assert_same(fit(MMPCA(**options), blocks(X, n_blocks)), in_memory)


@pytest.mark.parametrize("topics", ["auto", "lda"])
def test_workers_fit_and_report_like_this_process(X, client, blocks, options, assert_same, topics):
    options, reports, local_reports = options | {"topics": topics}, [], []
    model = fit(MMPCA(**options), blocks(X, 7), client, callback=reports.append)
    assert_same(model, MMPCA(**options).fit(X, callback=local_reports.append))
    stages, local_stages = (list(dict.fromkeys(one.stage for one in each)) for each in (reports, local_reports))
    assert stages == ["reading", *local_stages]
    assert stages[-1] == "done"
    assert max(report.n_done for report in reports if report.stage == "reading") == 7


def test_a_dask_array_and_delayed_blocks_are_fitted(X, client, blocks, options, in_memory, assert_same):
    import dask
    import dask.array as da

    delayed = [dask.delayed(block) for block in blocks(X, 3)]
    assert_same(fit(MMPCA(**options), delayed, client), in_memory)
    array = da.from_array(X.toarray(), chunks=(100, -1)).map_blocks(sparse.csr_matrix)
    assert_same(fit(MMPCA(**options), array), in_memory)


def test_files_are_read_by_the_workers(X, client, tmp_path, blocks, options, in_memory, assert_same):
    names = [f"word{v}" for v in range(X.shape[1])]
    paths = []
    for number, block in enumerate(blocks(X, 3)):
        paths.append(tmp_path / f"block{number}.npz")
        write_counts(paths[-1], CountTable(block, None, names, []))
    model = fit(MMPCA(**options), paths, client)
    assert_same(model, in_memory)
    assert model.feature_names_in_.tolist() == names


# --- checkpoints ------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_other_data_or_parameters_is_an_error(X, tmp_path, blocks, options):
    path = tmp_path / "checkpoint.npz"
    fit(MMPCA(**options), blocks(X, 2), checkpoint=path)
    for parameters, other in ((options | {"n_topics": 3}, X), (options, X * 2), (options, X[::-1])):
        with pytest.raises(StoreError) as error:
            fit(MMPCA(**parameters), blocks(other, 2), checkpoint=path)
        assert error.value.path == path
    path.write_bytes(b"cut short")
    with pytest.raises(StoreError):
        fit(MMPCA(**options), blocks(X, 2), checkpoint=path)


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_a_checkpoint_is_resumed_however_the_rows_are_divided(
    X, where, tmp_path, blocks, options, assert_same, request
):
    client = None if where == "here" else request.getfixturevalue("client")
    path, model, stages = tmp_path / "checkpoint.npz", MMPCA(**options), set()
    model.fit(X, checkpoint=path)
    for n_blocks in (1, 5):
        fitted = fit(
            MMPCA(**options),
            blocks(X, n_blocks),
            client,
            checkpoint=path,
            callback=lambda now: stages.add(now.stage),
        )
        assert_same(fitted, model)
    assert "starts" in stages
    assert "topics" not in stages  # they are in the file


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda X: [], ValueError),
        (lambda X: X, TypeError),
        (lambda X: [X, X[:, :900]], CountsError),
        (lambda X: [X[:0]], CountsError),
        (lambda X: [X[:5]], ValueError),
    ],
    ids=["no blocks", "no list", "other features", "no rows", "too few rows"],
)
def test_invalid_blocks_are_an_error(X, make, error, options):
    with pytest.raises(error):
        fit(MMPCA(**options), make(X))


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_invalid_counts_are_located(X, where, options, request):
    client = None if where == "here" else request.getfixturevalue("client")
    negative = X[:20].toarray()
    negative[3, 5] = -1
    with pytest.raises(CountsError, match="block 1") as error:
        fit(MMPCA(**options), [X, negative], client)
    assert (error.value.row, error.value.column) == (3, 5)


def test_blocks_of_columns_are_an_error(X, options):
    import dask.array as da

    with pytest.raises(ValueError, match=r"\b2\b"):
        fit(MMPCA(**options), da.from_array(X.toarray(), chunks=(100, X.shape[1] // 2 + 1)))


@pytest.mark.parametrize(
    ("model", "error"), [(MMPCA(6, 4, algorithm="vbem"), ValueError), (MMPCA, TypeError), (MMPCA(0, 4), ValueError)]
)
def test_an_unsuitable_model_is_an_error(X, model, error):
    with pytest.raises(error):
        fit(model, [X])


# --- prediction -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(X, in_memory):
    model = copy(in_memory)
    model.feature_names_in_ = np.array([f"word{v}" for v in range(X.shape[1])], dtype=object)
    return model


@pytest.fixture(scope="module")
def labels(X, in_memory):
    return in_memory.predict(X)


def test_blocks_are_predicted_like_all_rows(X, client, blocks, model, labels):
    for n_blocks, where in ((2, client), (5, None)):
        with pytest.warns(UserWarning, match="position"):  # the model has names, the blocks have none
            np.testing.assert_array_equal(predict(model, blocks(X, n_blocks), where), labels)


def test_probabilities_are_those_of_the_model(X, dask_rows, in_memory):
    expected = in_memory.predict_proba(X)
    np.testing.assert_allclose(fitting.score_rows(fitting.probability_rows, in_memory, dask_rows), expected, rtol=1e-12)
    best = fitting.score_rows(fitting.best_rows, in_memory, dask_rows)
    np.testing.assert_array_equal(best["cluster"], expected.argmax(axis=1))
    np.testing.assert_allclose(best["probability"], expected.max(axis=1), rtol=1e-12)
    own = fitting.score_rows(fitting.own_rows, in_memory, dask_rows, in_memory.labels_)
    alone = in_memory.leave_one_out_proba(X)
    np.testing.assert_allclose(own, alone[np.arange(300), in_memory.labels_], rtol=1e-12)


def test_some_rows_of_a_block_are_predicted_in_the_given_order(X, in_memory):
    some = np.array([250, 3, 77, 4])
    labels = np.full(4, -1, dtype=np.int32)  # new rows
    scores = prediction.scores_of(in_memory.mixture(), temperature=in_memory.temperature_)
    block, expected = as_counts(X), in_memory.predict_proba(X)[some]
    np.testing.assert_array_equal(fitting.predict_rows(block, some, labels, scores, SERIAL), expected.argmax(axis=1))
    np.testing.assert_allclose(fitting.probability_rows(block, some, labels, scores, SERIAL), expected, rtol=1e-12)
    best = fitting.best_rows(block, some, labels, scores, SERIAL)
    np.testing.assert_allclose(best["probability"], expected.max(axis=1), rtol=1e-12)
    own = fitting.own_rows(block, some, in_memory.labels_[some], scores, SERIAL)
    alone = in_memory.leave_one_out_proba(X)[some, in_memory.labels_[some]]
    np.testing.assert_allclose(own, alone, rtol=1e-12)


def test_square_roots_are_predicted_by_a_model_of_square_roots(X, blocks, options):
    model = MMPCA(**options, stabilize="sqrt").fit(X)
    np.testing.assert_array_equal(predict(model, blocks(X, 3)), model.predict(X))


def test_features_of_files_are_matched_by_name(X, client, model, labels, tmp_path):
    names = model.feature_names_in_
    order = np.random.default_rng(0).permutation(X.shape[1])
    unknown = sparse.csr_array(np.full((200, 1), 9, dtype=np.int32))
    write_counts(tmp_path / "a.npz", CountTable(sparse.csr_array(X[:100][:, order]), None, names[order], []))
    write_counts(
        tmp_path / "b.npz",
        CountTable(sparse.hstack([unknown, X[100:]], format="csr"), None, np.array(["unknown", *names]), []),
    )
    with pytest.warns(UserWarning, match=r"b\.npz.* 1,800 of"):  # counts of the unknown feature
        np.testing.assert_array_equal(predict(model, [tmp_path / "a.npz", tmp_path / "b.npz"], client), labels)
    write_counts(tmp_path / "c.npz", CountTable(X[:5, :2], None, np.array(["ant", "bee"]), []))
    with pytest.raises(CountsError, match=r"c\.npz"):
        predict(model, [tmp_path / "c.npz"])


@pytest.fixture
def cells(X, model):
    """Return the rows as a lazy AnnData object with one more gene."""
    import anndata
    import dask.array as da

    counts = np.hstack([X.toarray(), np.full((300, 1), 9)])
    cells = anndata.AnnData(da.from_array(counts, chunks=(120, -1)))
    cells.var_names = [*model.feature_names_in_, "unknown"]
    return cells


def test_genes_are_matched_by_name(X, client, model, labels, cells):
    np.testing.assert_array_equal(predict(model, cells[:, : X.shape[1]]), labels)
    with pytest.warns(UserWarning, match=r"block \d of X"):  # the unknown gene is dropped
        np.testing.assert_array_equal(predict(model, cells[:, ::-1], client), labels)
    cells.var_names = [f"unknown{v}" for v in range(cells.n_vars)]
    with pytest.raises(CountsError, match="block 0"):
        predict(model, cells)


def test_invalid_counts_are_located_by_the_column_of_the_input(model, cells):
    cells.X = cells.X.map_blocks(lambda block: block - 9)
    with pytest.raises(CountsError) as error:
        predict(model, cells[:, ::-1])
    assert (error.value.row, error.value.column) == (0, 1)  # in column 0 is the gene with nine counts


def test_rows_without_counts_are_assigned_to_the_largest_cluster(X, model):
    with pytest.warns(UserWarning, match="position"):
        found = predict(model, [X[:3], sparse.csr_array((2, X.shape[1]), dtype=int)])
    assert found[3:].tolist() == [int(model.weights_.argmax())] * 2


def test_other_features_are_an_error(X, model):
    with pytest.raises(CountsError, match=r"\b5\b"):
        predict(model, [X[:, :5]])
