"""Blocks of rows from arrays, files and AnnData."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.distributed import fit, predict
from mmpca.distributed.sources import EmptyRows, Reading, load
from mmpca.distributed.workers import Workers
from mmpca.errors import CountsError, InputFileError
from mmpca.io import CountTable, write_counts
from mmpca.monitor import Monitor

NAMES = np.array([f"word{v}" for v in range(8)], dtype=object)


@pytest.fixture(scope="module")
def small():
    return sparse.csr_array(np.random.default_rng(0).poisson(0.8, size=(30, 8)) + np.eye(30, 8, dtype=int))


def write_table(path, X, first):
    rows = [f"row{first + i}," + ",".join(map(str, row)) for i, row in enumerate(X.toarray().tolist())]
    path.write_text("\n".join(["row," + ",".join(NAMES), *rows]) + "\n")


def write_triples(path, X, first):
    entries = sparse.coo_array(X)
    rows = zip(entries.row, entries.col, entries.data, strict=True)
    path.write_text("row,feature,count\n" + "".join(f"row{first + i},word{v},{n}\n" for i, v, n in rows))


def write_parquet(path, X, first):
    import pyarrow
    import pyarrow.parquet

    entries = sparse.coo_array(X)
    columns = {"row": [f"row{first + i}" for i in entries.row], "feature": [f"word{v}" for v in entries.col]}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"count": entries.data.tolist()}), path)


def write_h5ad(path, X, first):
    import anndata

    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    adata.var_names, adata.obs_names = NAMES.tolist(), [f"row{first + i}" for i in range(X.shape[0])]
    adata.write_h5ad(path)


def write_biom(path, X, first):
    import biom
    from biom.util import biom_open

    table = biom.Table(X.T.toarray(), NAMES.tolist(), [f"row{first + i}" for i in range(X.shape[0])])
    with biom_open(str(path), "w") as file:
        table.to_hdf5(file, "mmpca")


def write_ours(path, X, first):
    rows = np.array([f"row{first + i}" for i in range(X.shape[0])], dtype=object)
    write_counts(path, CountTable(X, rows, NAMES, []))


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("mtx", write_ours),
        ("npz", write_ours),
        ("csv", write_table),
        ("triples.csv", write_triples),
        ("parquet", write_parquet),
        ("h5ad", write_h5ad),
        ("biom", write_biom),
    ],
)
def test_files_of_every_format_are_read(small, tmp_path, ending, write):
    paths = []
    for first, last in ((0, 12), (12, 30)):
        paths.append(tmp_path / f"part{first}.{ending}")
        write(paths[-1], small[first:last], first)
    # Triples list only the features that occur, in the order of their appearance; the names fix the columns.
    named = {"feature_names": NAMES} if ending in ("triples.csv", "parquet") else {}
    loaded = load(paths, reading=Reading(options=named, with_rows=True), n_threads=2)
    np.testing.assert_array_equal(loaded.backend.take(np.arange(30)).to_csr().toarray(), small.toarray())
    assert loaded.feature_names.tolist() == NAMES.tolist()
    assert loaded.row_names == [f"row{i}" for i in range(30)]


@pytest.fixture(params=["here", "cluster"])
def workers(request):
    """Return no workers, or those of a cluster."""
    return None if request.param == "here" else Workers(request.getfixturevalue("client"))


def write_blocks(folder, X, names=(None, None)):
    paths = [folder / "a.npz", folder / "b.npz"]
    for path, block, own in zip(paths, (X[:10], X[10:]), names, strict=True):
        write_counts(path, CountTable(sparse.csr_array(block), None, own, []))
    return paths


def test_rows_without_names_are_numbered_across_files(small, workers, tmp_path):
    with_hole = small.toarray()
    with_hole[4] = 0
    paths = write_blocks(tmp_path, with_hole)
    loaded = load(paths, workers, Reading(empty_rows="drop", with_rows=True))
    assert loaded.row_names == [str(i) for i in range(30) if i != 4]
    assert (loaded.n_dropped, loaded.backend.n_rows) == (1, 29)
    assert loaded.empty == [EmptyRows(block=0, n_empty=1, n_read=10, name="4")]


def test_empty_blocks_are_skipped(X, workers):
    loaded = load([X[:10], X[:0], X[10:]], workers)
    np.testing.assert_array_equal(loaded.backend.take(np.arange(300)).to_csr().toarray(), X.toarray())


def test_a_single_block_is_not_copied(X):
    (block,) = [X.astype(np.int32)]
    assert np.shares_memory(load([block]).backend.rows.data, block.data)


def test_files_with_other_feature_names_are_an_error(small, workers, tmp_path):
    with pytest.raises(CountsError, match=r"b\.npz.*a\.npz"):
        load(write_blocks(tmp_path, small, (NAMES, NAMES[::-1])), workers)


def test_a_missing_file_is_located(workers, tmp_path):
    with pytest.raises(InputFileError) as error:
        load([tmp_path / "nowhere.npz"], workers)
    assert error.value.path == tmp_path / "nowhere.npz"


def test_an_empty_row_of_a_file_is_located(workers, tmp_path):
    path = tmp_path / "holes.npz"
    write_counts(path, CountTable(sparse.csr_array(np.diag([1, 0, 2])), None, None, []))
    with pytest.raises(CountsError, match=r"holes\.npz") as error:
        load([path], workers)
    assert error.value.row == 1


def test_every_block_is_reported(X, blocks, workers):
    reports = []
    load(blocks(X, 5), workers, monitor=Monitor(reports.append))
    assert [(report.stage, report.n_done, report.n_steps) for report in reports] == [
        ("reading", n_read, 5) for n_read in range(6)
    ]


def test_a_wrong_file_is_reported_at_once_by_workers(small, client, tmp_path):
    import dask

    done, late = tmp_path / "done", tmp_path / "late"

    def wait_until_done(block):
        for _ in range(6000):
            if done.exists():
                return block
            time.sleep(0.1)
        late.touch()
        return block

    try:
        with pytest.raises(InputFileError):
            load([dask.delayed(wait_until_done)(small), tmp_path / "nowhere.npz"], Workers(client))
        assert not late.exists()
    finally:
        done.touch()


# --- AnnData ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_anndata_files_are_read_lazily_by_the_workers(X, client, options, in_memory, assert_same, tmp_path, kind):
    import anndata

    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    adata.var_names = [f"gene{v}" for v in range(X.shape[1])]
    path = tmp_path / f"cells.{kind}"
    getattr(adata, f"write_{kind}")(path)
    lazy = anndata.experimental.read_elem_lazy(opened(path, kind)["X"], chunks=(120, X.shape[1]))
    assert_same(fit(MMPCA(**options), lazy, client), in_memory)
    named = fit(MMPCA(**options), anndata.AnnData(lazy, var=adata.var))
    assert_same(named, in_memory)
    assert named.feature_names_in_.tolist() == adata.var_names.tolist()


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize(("kind", "has_names"), [("h5ad", True), ("zarr", False)], ids=["h5ad", "zarr, names unread"])
def test_lazy_anndata_objects_are_fitted_and_predicted(
    X, client, options, in_memory, assert_same, tmp_path, kind, has_names
):
    import anndata

    path = tmp_path / f"cells.{kind}"
    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    adata.var_names = [f"gene{v}" for v in range(X.shape[1])]
    getattr(adata, f"write_{kind}")(path)
    lazy = anndata.experimental.read_lazy(path, load_annotation_index=has_names)
    model = fit(MMPCA(**options), lazy, client)
    assert_same(model, in_memory)
    assert model.feature_names_in_.tolist() == adata.var_names.tolist()
    np.testing.assert_array_equal(predict(model, lazy[:, ::-1]), in_memory.predict(X))


def opened(path, kind):
    if kind == "zarr":
        import zarr

        return zarr.open(path, mode="r")
    import h5py

    return h5py.File(path)


def test_anndata_in_memory_is_an_error(X, options):
    import anndata

    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    with pytest.raises(TypeError, match="read_lazy"):
        fit(MMPCA(**options), adata)


# --- data frames --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    """Return counts with named columns, of rows of two kinds."""
    X = np.random.default_rng(0).poisson([[9, 1, 2, 5], [1, 9, 4, 2]] * 10) + 1
    return pd.DataFrame(X, columns=["oak", "elm", "fir", "yew"])


def test_blocks_with_columns_in_another_order_are_an_error(frame):
    with pytest.raises(CountsError):
        load([frame[:8], frame[8:][["yew", "fir", "elm", "oak"]]])
    assert load([frame[:8], frame[8:]]).feature_names.tolist() == frame.columns.tolist()


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_columns_are_matched_to_the_features_of_a_model_by_name(frame):
    model = MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(frame)
    turned = frame[["yew", "fir", "elm", "oak"]]
    np.testing.assert_array_equal(predict(model, [frame[:8], turned[8:]]), model.predict(frame))
    with pytest.warns(UserWarning, match="missing"):
        predict(model, [frame.drop(columns="fir")])


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_matching_by_position_is_noted_whichever_side_has_names(frame):
    model = MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(frame)
    nameless = MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(frame.to_numpy())
    for fitted, X in ((model, frame.to_numpy()), (nameless, frame)):
        with pytest.warns(UserWarning, match="position"):
            predict(fitted, [X])
    np.testing.assert_array_equal(predict(nameless, [frame.to_numpy()]), nameless.labels_)
