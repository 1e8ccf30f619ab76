"""Rows from arrays, files and AnnData become parts."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.distributed import fit, predict
from mmpca.distributed.crews import Cluster, Threads
from mmpca.distributed.sources import EmptyRows, Reading, count_done, load
from mmpca.errors import CountsError, InputFileError
from mmpca.io import CountTable, write_counts


@pytest.fixture(scope="module")
def small():
    return sparse.csr_array(np.random.default_rng(0).poisson(0.8, size=(30, 8)) + np.eye(30, 8, dtype=int))


@pytest.fixture(scope="module")
def crew():
    with ThreadPoolExecutor(2) as pool:
        yield Threads(pool, 2)


NAMES = np.array([f"word{v}" for v in range(8)], dtype=object)


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
def test_files_of_every_format_are_parts(small, crew, tmp_path, ending, write):
    paths = []
    for first, last in ((0, 12), (12, 30)):
        paths.append(tmp_path / f"part{first}.{ending}")
        write(paths[-1], small[first:last], first)
    # Triples tell only of what occurs, in the order of its first time: the names fix the columns.
    named = {"feature_names": NAMES} if ending in ("triples.csv", "parquet") else {}
    loaded = load(paths, crew, Reading(options=named, with_rows=True))
    np.testing.assert_array_equal(loaded.parts.take(np.arange(30)).to_csr().toarray(), small.toarray())
    assert loaded.feature_names.tolist() == NAMES.tolist()
    assert loaded.rows == [f"row{i}" for i in range(30)]


def test_rows_without_names_are_numbered_through_all_files(small, crew, tmp_path):
    with_hole = small.toarray()
    with_hole[4] = 0
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path, X in zip(paths, (with_hole[:10], with_hole[10:]), strict=True):
        write_counts(path, CountTable(sparse.csr_array(X), None, None, []))
    loaded = load(paths, crew, Reading(empty_rows="drop", with_rows=True))
    assert loaded.rows == [str(i) for i in range(30) if i != 4]
    assert (loaded.n_dropped, loaded.parts.n_rows) == (1, 29)
    assert loaded.empty == [EmptyRows(block=0, n_empty=1, n_read=10, name="4")]


def test_files_of_other_features_are_refused(small, crew, tmp_path):
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path, names in zip(paths, (NAMES, NAMES[::-1]), strict=True):
        write_counts(path, CountTable(small, None, names, []))
    with pytest.raises(CountsError, match=r"the names in .*b.npz are not those in .*a.npz"):
        load(paths, crew)


def test_faults_of_files_name_them(small, crew, tmp_path):
    with pytest.raises(InputFileError, match=r"nowhere.npz: there is no such file on .*Check the path"):
        load([tmp_path / "nowhere.npz"], crew)
    path = tmp_path / "holes.npz"
    write_counts(path, CountTable(sparse.csr_array(np.diag([1, 0, 2])), None, None, []))
    with pytest.raises(CountsError, match=r"holes.npz"):
        load([path], crew)


def test_blocks_that_are_given_up_are_not_told_as_read():
    told, release = [], threading.Event()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(release.wait)
        crew = Threads(pool, 1)
        futures = [crew.submit(len, [1]), crew.submit(len, [2])]
        count_done(futures, told.append)
        futures[1].cancel()
        release.set()
        assert busy.result()
        assert futures[0].result() == 1
    assert told == [1]


@pytest.mark.parametrize("place", ["threads", "cluster"])
def test_a_wrong_file_is_told_at_once(small, crew, place, tmp_path, request):
    import dask

    told, late = tmp_path / "told", tmp_path / "late"

    def wait_until_told(block):
        for _ in range(200):
            if told.exists():
                return block
            time.sleep(0.1)
        late.touch()
        return block

    where = crew if place == "threads" else Cluster(request.getfixturevalue("client"))
    try:
        with pytest.raises(InputFileError, match=r"nowhere.npz: there is no such file"):
            load([dask.delayed(wait_until_told)(small), tmp_path / "nowhere.npz"], where)
        assert not late.exists()
    finally:
        told.touch()


# --- AnnData ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_anndata_files_are_read_lazily_by_the_workers(X, client, options, at_hand, assert_same, tmp_path, kind):
    import anndata

    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    adata.var_names = [f"gene{v}" for v in range(X.shape[1])]
    path = tmp_path / f"cells.{kind}"
    getattr(adata, f"write_{kind}")(path)
    lazy = anndata.experimental.read_elem_lazy(opened(path, kind)["X"], chunks=(120, X.shape[1]))
    assert_same(fit(MMPCA(**options), lazy, client), at_hand)
    named = fit(MMPCA(**options), anndata.AnnData(lazy, var=adata.var))
    assert_same(named, at_hand)
    assert named.feature_names_in_.tolist() == adata.var_names.tolist()


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize(("kind", "has_names"), [("h5ad", True), ("zarr", False)], ids=["h5ad", "zarr, names unread"])
def test_anndata_objects_whose_counts_stay_in_their_file_are_fitted_and_predicted(
    X, client, options, at_hand, assert_same, tmp_path, kind, has_names
):
    import anndata

    path = tmp_path / f"cells.{kind}"
    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    adata.var_names = [f"gene{v}" for v in range(X.shape[1])]
    getattr(adata, f"write_{kind}")(path)
    lazy = anndata.experimental.read_lazy(path, load_annotation_index=has_names)
    model = fit(MMPCA(**options), lazy, client)
    assert_same(model, at_hand)
    assert model.feature_names_in_.tolist() == adata.var_names.tolist()
    np.testing.assert_array_equal(predict(model, lazy[:, ::-1]), at_hand.predict(X))


def opened(path, kind):
    if kind == "zarr":
        import zarr

        return zarr.open(path, mode="r")
    import h5py

    return h5py.File(path)


def test_anndata_in_memory_is_refused_with_the_remedy(X, options):
    import anndata

    adata = anndata.AnnData(sparse.csr_matrix(X.astype(np.float32)))
    with pytest.raises(TypeError, match=r"must be a dask array here, but it is csr_matrix\. Read it by anndata"):
        fit(MMPCA(**options), adata)
