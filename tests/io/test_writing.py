"""Files of counts are written atomically, and uncompressed ones can be mapped into memory."""

import gzip
import mmap
import os
import stat

import numpy as np
import pytest
from scipy import sparse

from mmpca.counts import as_counts
from mmpca.errors import CountsError, InputFileError
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.io.binary import read_npz
from mmpca.io.table import Request

TABLE = CountTable(sparse.csr_array([[1, 0], [2, 3]]), ["x", "y"], ["a", "b"], [])


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.npz"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name):
    path = tmp_path / name
    write_counts(path, TABLE)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_counts(path, TABLE._replace(X=sparse.csr_array([[7, 7], [7, 7]])))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.npz"])
def test_an_old_file_is_replaced(tmp_path, name):
    write_counts(tmp_path / name, TABLE)
    changed = TABLE._replace(X=sparse.csr_array([[0, 9], [9, 0]]))
    write_counts(tmp_path / name, changed)
    np.testing.assert_array_equal(read_counts(tmp_path / name).X.toarray(), changed.X.toarray())


def test_files_have_the_usual_permissions(tmp_path):
    write_counts(tmp_path / "X.npz", TABLE)
    (tmp_path / "usual").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("X.npz", "usual")]
    assert modes[0] == modes[1]


def test_matrix_market_conforms_to_the_standard(tmp_path):
    write_counts(tmp_path / "X.mtx.gz", TABLE)
    content = gzip.decompress((tmp_path / "X.mtx.gz").read_bytes()).decode()
    assert content == "%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 1\n2 1 2\n2 2 3\n"
    assert (tmp_path / "X.rows.txt").read_text() == "x\ny\n"
    assert (tmp_path / "X.columns.txt").read_text() == "a\nb\n"


def test_the_same_counts_give_the_same_bytes(tmp_path):
    for name in ("X.mtx.gz", "Y.mtx.gz"):
        write_counts(tmp_path / name, TABLE)
    assert (tmp_path / "X.mtx.gz").read_bytes() == (tmp_path / "Y.mtx.gz").read_bytes()


@pytest.mark.parametrize("name", ["X.csv", "X", "X.npz.gz", "X.mtx.xz"])
def test_other_suffixes_are_rejected(tmp_path, name):
    with pytest.raises(InputFileError) as caught:
        write_counts(tmp_path / name, TABLE)
    assert caught.value.path == tmp_path / name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "carriage\r"])
def test_names_that_do_not_fit_on_a_line_are_rejected_for_mtx(tmp_path, name):
    with pytest.raises(InputFileError) as caught:
        write_counts(tmp_path / "X.mtx", TABLE._replace(feature_names=["a", name]))
    assert (caught.value.path, caught.value.line) == (tmp_path / "X.columns.txt", 2)
    assert not (tmp_path / "X.mtx").exists()
    write_counts(tmp_path / "X.npz", TABLE._replace(feature_names=["a", name]))
    assert read_counts(tmp_path / "X.npz").feature_names.tolist() == ["a", name]


# --- mapped into memory -------------------------------------------------------------------------------------------


@pytest.fixture
def large_table():
    X = sparse.random_array((300, 40), density=0.3, rng=np.random.default_rng(0), format="csr")
    X.data = np.ceil(9 * X.data)
    return CountTable(X.astype(np.int32), None, [f"v{v}" for v in range(40)], [])


def read_mapped(path):
    return read_npz(Request(path), mapped_size=100).X


def test_npz_without_compression_is_mapped_instead_of_read(tmp_path, large_table):
    write_counts(tmp_path / "X.npz", large_table, compress=False)
    X = read_mapped(tmp_path / "X.npz")
    np.testing.assert_array_equal(X.toarray(), large_table.X.toarray())
    for array in (X.data, X.indices):
        assert isinstance(owner_of(array), mmap.mmap)
        assert array.flags.aligned
        assert array.flags.writeable
    X.data[0] += 1  # stays in memory
    np.testing.assert_array_equal(read_mapped(tmp_path / "X.npz").toarray(), large_table.X.toarray())


def test_a_fit_shares_the_mapped_counts(tmp_path, large_table):
    write_counts(tmp_path / "X.npz", large_table, compress=False)
    X = read_mapped(tmp_path / "X.npz")
    counts = as_counts(X)
    assert np.shares_memory(counts.data, X.data)
    assert np.shares_memory(counts.indices, X.indices)


def test_npz_without_compression_is_read_by_scipy_and_is_the_same_every_time(tmp_path, large_table):
    for name in ("X.npz", "Y.npz"):
        write_counts(tmp_path / name, large_table, compress=False)
    assert (tmp_path / "X.npz").read_bytes() == (tmp_path / "Y.npz").read_bytes()
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "X.npz").toarray(), large_table.X.toarray())


@pytest.mark.parametrize("reader", [read_mapped, lambda path: read_counts(path).X], ids=["mapped", "read"])
def test_arrays_that_are_not_aligned_are_read_too(tmp_path, large_table, reader):
    sparse.save_npz(tmp_path / "X.npz", large_table.X, compressed=False)
    np.testing.assert_array_equal(reader(tmp_path / "X.npz").toarray(), large_table.X.toarray())


def test_a_mapped_file_that_is_cut_short_is_rejected(tmp_path, large_table):
    path = tmp_path / "X.npz"
    write_counts(path, large_table, compress=False)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputFileError) as caught:
        read_mapped(path)
    assert caught.value.path == path


def owner_of(array):
    """Return the object that owns the memory of an array."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.obj if isinstance(array, memoryview) else array.base
    return array


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz"])
def test_names_of_replaced_counts_are_not_attached_to_new_counts_without_names(tmp_path, name):
    write_counts(tmp_path / name, TABLE)
    write_counts(tmp_path / name, CountTable(TABLE.X, None, None, []))
    table = read_counts(tmp_path / name)
    assert (table.row_names, table.feature_names) == (None, None)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["X.rows.txt", "X_rows.csv", "X.columns.txt.gz", "X_features.tsv", "X.genes.tsv"])
def test_counts_are_not_written_beside_names_that_belong_to_something_else(tmp_path, name):
    (tmp_path / name).write_text("x\ny\n")
    with pytest.raises(InputFileError) as caught:
        write_counts(tmp_path / "X.mtx", CountTable(TABLE.X, None, None, []))
    assert caught.value.path == tmp_path / name
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_compressed_and_plain_counts_share_their_names_but_do_not_change_them(tmp_path):
    write_counts(tmp_path / "X.mtx", TABLE)
    write_counts(tmp_path / "X.mtx.gz", TABLE)
    for names in (None, ["other", "names"]):
        with pytest.raises(InputFileError) as caught:
            write_counts(tmp_path / "X.mtx.gz", TABLE._replace(row_names=names))
        assert caught.value.path == tmp_path / "X.rows.txt"
    assert read_counts(tmp_path / "X.mtx").row_names.tolist() == TABLE.row_names


@pytest.mark.parametrize("name", ["X.mtx", "X.npz"])
def test_only_counts_with_names_that_fit_are_written(tmp_path, name):
    with pytest.raises(CountsError) as fraction:
        write_counts(tmp_path / name, TABLE._replace(X=sparse.csr_array([[1, 0], [2, 0.5]])))
    assert (fraction.value.row, fraction.value.column) == (1, 1)
    for names in ({"row_names": ["x"]}, {"feature_names": ["a", "b", "c"]}):
        with pytest.raises(InputFileError) as caught:
            write_counts(tmp_path / name, TABLE._replace(**names))
        assert caught.value.path == tmp_path / name
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_not_unicode_is_rejected_with_its_file(tmp_path):
    with pytest.raises(InputFileError) as caught:
        write_counts(tmp_path / "X.mtx", TABLE._replace(row_names=["x", "y\udc80"]))
    assert (caught.value.path, caught.value.line) == (tmp_path / "X.rows.txt", 2)
    assert not list(tmp_path.iterdir())
