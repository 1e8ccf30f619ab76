"""Files are written whole or not at all."""

import gzip
import mmap
import stat

import numpy as np
import pytest
from scipy import sparse

from mmpca.counts import as_counts
from mmpca.errors import InputFileError
from mmpca.io import CountTable, npz, read_counts, write_counts
from mmpca.io import writing as io_writing

TABLE = CountTable(sparse.csr_array([[1, 0], [2, 3]]), ["x", "y"], ["a", "b"], [])


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.npz"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name):
    path = tmp_path / name
    write_counts(path, TABLE)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def interrupted(stream, *_, **__):
        stream.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(io_writing, "write_npz", interrupted)
    monkeypatch.setattr(io_writing, "_write_entries", interrupted)
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


def test_matrix_market_is_as_the_standard_has_it(tmp_path):
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
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(InputFileError, match=r"\.mtx, \.mtx\.gz or \.npz"):
        write_counts(tmp_path / name, TABLE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "carriage\r"])
def test_names_that_no_line_can_hold_are_refused_for_mtx(tmp_path, name):
    with pytest.raises(InputFileError, match=r"line 2: .* cannot stand on a line"):
        write_counts(tmp_path / "X.mtx", TABLE._replace(feature_names=["a", name]))
    write_counts(tmp_path / "X.npz", TABLE._replace(feature_names=["a", name]))
    assert read_counts(tmp_path / "X.npz").feature_names.tolist() == ["a", name]


# --- mapped into memory -------------------------------------------------------------------------------------------


@pytest.fixture
def large_table():
    X = sparse.random_array((300, 40), density=0.3, rng=np.random.default_rng(0), format="csr")
    X.data = np.ceil(9 * X.data)
    return CountTable(X.astype(np.int32), None, [f"v{v}" for v in range(40)], [])


def test_npz_without_compression_is_mapped_instead_of_read(tmp_path, monkeypatch, large_table):
    monkeypatch.setattr(npz, "_MAPPED_BYTES", 100)
    write_counts(tmp_path / "X.npz", large_table, compress=False)
    X = read_counts(tmp_path / "X.npz").X
    np.testing.assert_array_equal(X.toarray(), large_table.X.toarray())
    for array in (X.data, X.indices):
        assert isinstance(owner_of(array), mmap.mmap)
        assert array.flags.aligned
        assert array.flags.writeable
    X.data[0] += 1  # stays in memory
    np.testing.assert_array_equal(read_counts(tmp_path / "X.npz").X.toarray(), large_table.X.toarray())


def test_a_fit_shares_the_mapped_counts(tmp_path, monkeypatch, large_table):
    monkeypatch.setattr(npz, "_MAPPED_BYTES", 100)
    write_counts(tmp_path / "X.npz", large_table, compress=False)
    X = read_counts(tmp_path / "X.npz").X
    counts = as_counts(X)
    assert np.shares_memory(counts.data, X.data)
    assert np.shares_memory(counts.indices, X.indices)


def test_npz_without_compression_is_read_by_scipy_and_is_the_same_every_time(tmp_path, large_table):
    for name in ("X.npz", "Y.npz"):
        write_counts(tmp_path / name, large_table, compress=False)
    assert (tmp_path / "X.npz").read_bytes() == (tmp_path / "Y.npz").read_bytes()
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "X.npz").toarray(), large_table.X.toarray())


@pytest.mark.parametrize("least", [100, 10**9], ids=["mapped", "read"])
def test_arrays_of_others_that_are_not_aligned_are_read_too(tmp_path, monkeypatch, large_table, least):
    monkeypatch.setattr(npz, "_MAPPED_BYTES", least)
    sparse.save_npz(tmp_path / "X.npz", large_table.X, compressed=False)
    np.testing.assert_array_equal(read_counts(tmp_path / "X.npz").X.toarray(), large_table.X.toarray())


def test_a_mapped_file_that_is_cut_short_is_refused(tmp_path, monkeypatch, large_table):
    monkeypatch.setattr(npz, "_MAPPED_BYTES", 100)
    path = tmp_path / "X.npz"
    write_counts(path, large_table, compress=False)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputFileError, match="truncated or damaged"):
        read_counts(path)


def owner_of(array):
    """Return what holds the memory of an array."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.obj if isinstance(array, memoryview) else array.base
    return array
