"""Files are written whole or not at all."""

import gzip
import stat

import numpy as np
import pytest
from scipy import sparse

from mmpca.errors import InputFileError
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.io import writing as io_writing

TABLE = CountTable(sparse.csr_array([[1, 0], [2, 3]]), ["x", "y"], ["a", "b"], [])


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.npz"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name):
    path = tmp_path / name
    write_counts(path, TABLE)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def interrupted(stream, *_):
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
