"""Malformed files raise one kind of error that carries the file and the line, or the row and column, at fault."""

import contextlib
import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mmpca.errors import CountsError, InputFileError
from mmpca.io import CountTable, detect_format, read_counts, write_counts
from mmpca.io.binary import read_npz
from mmpca.io.delimited import read_table
from mmpca.io.matrix_market import read_matrix_market
from mmpca.io.table import Request
from mmpca.text import read_texts

MTX = "%%MatrixMarket matrix coordinate integer general\n"


def assert_rejected(path, line=None, *, at=None, **options):
    """Check that reading fails with an error at a line (counted from 1) of the file, or of `at`."""
    with pytest.raises(InputFileError) as caught:
        read_counts(path, **options)
    place = at or path
    assert (caught.value.path, caught.value.line) == (place, line)
    assert str(caught.value).startswith(str(place))


def assert_not_counts(path, row=None, column=None, **options):
    """Check that reading fails with an error at a row and a column (counted from 0) of the matrix."""
    with pytest.raises(CountsError) as caught:
        read_counts(path, **options)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert str(path) in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.fixture(params=[True, False], ids=["with PyArrow", "without PyArrow"])
def _pyarrow(request, monkeypatch):
    if not request.param:
        monkeypatch.setitem(sys.modules, "pyarrow", None)


# --- Matrix Market ----------------------------------------------------------------------------------------------

BAD_MATRIX_MARKET = {
    "wrong banner": ("%%MatrixMarkt matrix coordinate integer general\n1 1 1\n1 1 1\n", 1),
    "no banner": ("2 2 1\n1 1 1\n", 1),
    "vector": ("%%MatrixMarket vector coordinate integer general\n2 1\n1 1\n", 1),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", 1),
    "skew-symmetric": ("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 1\n", 1),
    "symmetric but not square": ("%%MatrixMarket matrix coordinate integer symmetric\n2 3 1\n2 1 1\n", 2),
    "ends after the banner": (MTX, 2),
    "two sizes": (MTX + "2 2\n1 1 1\n", 2),
    "negative size": (MTX + "% a comment\n-2 2 1\n1 1 1\n", 3),
    "sizes in words": (MTX + "two 2 1\n1 1 1\n", 2),
    "size of thousands of digits": (MTX + "9" * 5000 + " 2 1\n1 1 1\n", 2),
    "no rows": (MTX + "0 2 0\n", 2),
    "no columns": (MTX + "2 0 0\n", 2),
    "rows beyond memory": (MTX + "1000000000000 2 1\n1 1 1\n", 2),
    "columns beyond memory": (MTX + "2 2000000000 1\n1 1 1\n", 2),
    "row out of range": (MTX + "2 2 2\n1 1 1\n3 1 1\n", 4),
    "column out of range": (MTX + "2 2 2\n1 1 1\n1 7 1\n", 4),
    "index zero": (MTX + "2 2 2\n1 1 1\n0 1 1\n", 4),
    "negative index": (MTX + "2 2 1\n-1 1 1\n", 3),
    "fractional index": (MTX + "2 2 1\n1.5 1 1\n", 3),
    "index in words": (MTX + "2 2 1\n1 one 1\n", 3),
    "index of thousands of digits": (MTX + "2 2 1\n1 " + "1" * 5000 + " 1\n", 3),
    "negative count": (MTX + "2 2 2\n1 1 1\n2 1 -4\n", 4),
    "fraction in an integer file": (MTX + "2 2 1\n1 1 2.5\n", 3),
    "NaN": (MTX + "2 2 1\n1 1 nan\n", 3),
    "infinite": (MTX + "2 2 1\n1 1 inf\n", 3),
    "too large": (MTX + "2 2 1\n1 1 4294967297\n", 3),
    "far too large": (MTX + "2 2 1\n1 1 99999999999999999999999\n", 3),
    "count in words": (MTX + "2 2 1\n1 1 many\n", 3),
    "digits followed by others": (MTX + "2 2 1\n1 1 3-4\n", 3),
    "real followed by others": (MTX + "2 2 1\n1 1 3.0e+0e\n", 3),
    "missing count": (MTX + "2 2 2\n1 1 1\n2 1\n", 4),
    "a fourth number": (MTX + "2 2 2\n1 1 1\n2 1 1 5\n", 4),
    "two real entries on a line": (MTX + "2 2 2\n1 1 1.0 2 1 1.0\n", 3),
    "a number moved between lines": (MTX + "2 2 2\n1 1\n2 1 1 5\n", 3),
    "fewer entries": (MTX + "2 2 5\n1 1 1\n2 1 1\n", None),
    "more entries": (MTX + "2 2 1\n1 1 1\n2 1 1\n", None),
    "binary data": (MTX + "2 2 1\n1 1 3\0\n", 3),
    "pattern with counts": ("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 3\n", 3),
    "dense with a fraction": ("%%MatrixMarket matrix array real general\n2 1\n1\n0.5\n", 4),
    "dense with too few": ("%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n", None),
    "dense with too many": ("%%MatrixMarket matrix array integer general\n1 1\n1\n2\n", None),
    "dense, two on a line": ("%%MatrixMarket matrix array integer general\n1 2\n1 2\n", 3),
}


@pytest.mark.parametrize(("content", "line"), BAD_MATRIX_MARKET.values(), ids=BAD_MATRIX_MARKET)
def test_bad_matrix_market_files_are_rejected(tmp_path, content, line):
    path = tmp_path / "X.mtx"
    path.write_text(content, newline="\n")
    assert_rejected(path, line)


def test_duplicates_that_sum_to_too_much_are_rejected(tmp_path):
    path = tmp_path / "X.mtx"
    path.write_text(MTX + "2 2 2\n1 2 2147483647\n1 2 1\n")
    assert_not_counts(path, 0, 1)


@pytest.mark.parametrize("n_kept", [3, 15, 40, -12, -4])
def test_truncated_gz_is_rejected(tmp_path, n_kept):
    path = tmp_path / "X.mtx.gz"
    entries = "".join(f"{i} 1 {i % 7 + 1}\n" for i in range(1, 1000))
    path.write_bytes(gzip.compress((MTX + "1000 1 999\n" + entries).encode())[:n_kept])
    assert_rejected(path)


def test_damaged_gz_is_rejected(tmp_path):
    path = tmp_path / "X.mtx.gz"
    entries = "".join(f"{i} 1 {i % 7 + 1}\n" for i in range(1, 1000))
    content = bytearray(gzip.compress((MTX + "1000 1 999\n" + entries).encode()))
    content[300:320] = b"\xaa" * 20
    path.write_bytes(content)
    assert_rejected(path)


def test_an_error_late_in_a_file_of_many_blocks_has_its_line(tmp_path):
    path = tmp_path / "X.mtx.gz"
    lines = [f"{i} 1 1\n" for i in range(1, 8001)]
    lines[6543] = "5 1 x\n"
    path.write_bytes(gzip.compress((MTX + "8000 1 8000\n" + "".join(lines)).encode()))
    with pytest.raises(InputFileError) as caught:
        read_matrix_market(Request(path, block_size=2**12))
    assert caught.value.line == 6546


# --- bags of words ----------------------------------------------------------------------------------------------

BAD_BAGS = {
    "two header lines": ("2\n2\n1 1 1\n", 3),
    "word out of range": ("2\n2\n1\n1 3 1\n", 4),
    "cut off": ("2\n2\n3\n1 1 1\n", None),
    "no documents": ("0\n2\n0\n", 1),
    "negative": ("2\n2\n1\n1 1 -2\n", 4),
}


@pytest.mark.parametrize(("content", "line"), BAD_BAGS.values(), ids=BAD_BAGS)
def test_bad_bags_of_words_are_rejected(tmp_path, content, line):
    path = tmp_path / "docword.txt"
    path.write_text(content, newline="\n")
    assert_rejected(path, line, format="uci")


# --- tables -----------------------------------------------------------------------------------------------------

BAD_TABLES = {
    "ragged": (b"id,a,b\nx,1,2\ny,1\n", 3),
    "one field more": (b"id,a,b\nx,1,2\ny,1,2,3\n", 3),
    "header of other length": (b"id,a,b,c,d\nx,1,2\ny,1,2\n", 2),
    "name without counts": (b"id,a,b\nx,1,2\ny\n", 3),
    "word": (b"id,a,b\nx,1,2\ny,1,few\n", 3),
    "negative": (b"id,a,b\nx,1,-2\n", 2),
    "fraction": (b"id,a,b\nx,1,2\ny,0.25,2\n", 3),
    "NaN": (b"id,a,b\nx,1,nan\n", 2),
    "NA": (b"id,a,b\nx,1,NA\n", 2),
    "empty field": (b"id,a,b\nx,1,\n", 2),
    "too large": (b"id,a,b\nx,1,3000000000\n", 2),
    "Python's underscores": (b"id,a,b\nx,1,1_000\n", 2),
    "decimal comma": (b"id;a;b\nx;1;2,5\n", 2),
    "header alone": (b"id,a,b\n", 2),
    "only blank lines": (b"\n\n  \n", None),
    "no delimiter": (b"hello\nworld\n", 1),
    "prose": (b"A boat in the harbor\nSalt and bread for all\n", 1),
    "latin-1 below": ("id,a,b\nx,1,2\nçà,1,2\n".encode("latin-1"), 3),
    "mixed encodings": ("id,é,b\n".encode() + "ü,1,2\n".encode("latin-1"), 2),
    "half of UTF-16": ("id,a,b\nx,1,2\n".encode("utf-16")[:-1], None),
    "Cyrillic of Windows": ("id,a,b\nx,1,2\nлипы,1,2\n".encode("cp1251"), 3),
    "binary junk": (bytes(range(256)) * 4, 1),
    "zero bytes": (b"id,a\nx,\0\n", 2),
    "open quotes": (b'id,a,b\nx,1,2\n"y,1,2\n', 3),
    "text in the middle of numbers": (b"a,b\n1,2\n" * 2, 3),
    "error below blank lines": (b"id,a,b\n\nx,1,2\n  \ny,1,few\n", 5),
}


@pytest.mark.parametrize(("content", "line"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_rejected(tmp_path, content, line):
    path = tmp_path / "X.csv"
    path.write_bytes(content)
    assert_rejected(path, line, format="table")


def test_a_block_of_names_alone_is_rejected(tmp_path):
    path = tmp_path / "X.csv"
    path.write_bytes(b"id,a,b\nx,1,2\ny\n")
    with pytest.raises(InputFileError) as caught:
        read_table(Request(path, block_size=1))
    assert caught.value.line == 3


# --- triples ----------------------------------------------------------------------------------------------------

BAD_TRIPLES = {
    "ragged": ("doc,word,count\na,x,1\nb,y\n", 3),
    "word": ("doc,word,count\na,x,1\nb,y,lots\n", 3),
    "negative": ("doc,word,count\na,x,1\nb,y,-1\n", 3),
    "fraction": ("doc,word,count\na,x,1.5\nb,y,1\n", 2),
    "empty count": ("doc,word,count\na,x,\n", 2),
    "NaN": ("doc,word,count\n\na,x,nan\n", 3),
    "open quotes": ('doc,word,count\na,x,1\nb,"y,1\nc,z,1\n', 3),
    "carriage returns alone": ("doc,word,count\na,x,1\rb,y,1\n", 2),
    "header alone": ("doc,word,count\n", 2),
    "four columns": ("doc,lemma,tag,amount\na,x,N,1\n", None),
}


@pytest.mark.usefixtures("_pyarrow")
@pytest.mark.parametrize(("content", "line"), BAD_TRIPLES.values(), ids=BAD_TRIPLES)
def test_bad_triples_are_rejected(tmp_path, content, line):
    path = tmp_path / "X.csv"
    path.write_text(content, newline="\n")
    assert_rejected(path, line, format="triples")


@pytest.mark.usefixtures("_pyarrow")
def test_triples_that_sum_to_too_much_are_rejected(tmp_path):
    path = tmp_path / "X.csv"
    path.write_text("doc,word,count\na,x,2000000000\na,x,2000000000\n")
    assert_not_counts(path, 0, 0)


def test_columns_of_triples_that_do_not_exist_are_rejected(tmp_path):
    path = tmp_path / "X.csv"
    path.write_text("doc,word,count\na,x,1\n")
    assert_rejected(path, columns=["doc", "lemma", "count"])
    assert_rejected(path, columns=["doc", "word"])
    path.write_text("a,x,1\nb,y,2\n")
    assert_rejected(path, columns=["doc", "word", "count"])


@pytest.mark.usefixtures("_pyarrow")
def test_names_that_are_not_among_the_given_ones_are_rejected(tmp_path):
    path = tmp_path / "X.csv"
    path.write_text("doc,word,count\na,x,1\n\nb,y,2\n", newline="\n")
    assert_rejected(path, 4, feature_names=["x"])
    assert_rejected(path, row_names=["a", "b", "a"])


def frame(**columns):
    return pd.DataFrame({"doc": ["a", "b"], "word": ["x", "y"], "count": [1, 2]} | columns)


BAD_FRAMES = {
    "negative": (frame(count=[1, -2]), 2),
    "fraction": (frame(count=[0.5, 2]), 1),
    "missing count": (frame(count=[1, None]), 2),
    "missing name": (frame(word=[None, "y"]), 1),
    "counts in words": (frame(count=["one", "two"]), None),
    "no records": (frame()[:0], None),
    "other columns": (frame().rename(columns={"count": "amount"}).assign(more=1), 1),
}


@pytest.mark.parametrize(("content", "record"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_parquet_files_are_rejected(tmp_path, content, record):
    path = tmp_path / "X.parquet"
    content.to_parquet(path, index=False)
    assert_rejected(path, record)


def test_parquet_names_that_are_not_among_the_given_ones_are_rejected(tmp_path):
    path = tmp_path / "X.parquet"
    frame().to_parquet(path)
    assert_rejected(path, 2, columns=["doc", "word", "count"], row_names=["a"])


@pytest.mark.parametrize("keep", [slice(0, 40), slice(0, -10), slice(4, None)])
def test_truncated_parquet_is_rejected(tmp_path, keep):
    path = tmp_path / "X.parquet"
    frame().to_parquet(path)
    path.write_bytes(path.read_bytes()[keep])
    assert_rejected(path, format="parquet")


def test_parquet_names_that_are_not_text_are_rejected(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    damaged = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"x\x80"))
    parquet.write_table(pa.table({"doc": ["a", "b"], "word": damaged, "count": [1, 2]}), tmp_path / "X.parquet")
    assert_rejected(tmp_path / "X.parquet")


# --- npz --------------------------------------------------------------------------------------------------------

VALID = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 2]),
    "data": np.array([1, 2]),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
}


def without(name):
    return {key: value for key, value in VALID.items() if key != name}


BAD_VALUES = {
    "negative": (VALID | {"data": np.array([1, -2])}, (1, 1)),
    "fraction": (VALID | {"data": np.array([0.5, 2])}, (0, 0)),
    "NaN": (VALID | {"data": np.array([np.nan, 2])}, (0, 0)),
    "column out of range": (VALID | {"indices": np.array([0, 2])}, (None, None)),
    "negative column": (VALID | {"indices": np.array([0, -1])}, (None, None)),
    "row pointers decrease": (VALID | {"indptr": np.array([0, 3, 2])}, (None, None)),
}
BAD_ARRAYS = {
    "dates": VALID | {"data": np.array([1, 2], dtype="M8[s]")},
    "row pointers too few": VALID | {"indptr": np.array([0, 2])},
    "lengths differ": VALID | {"indices": np.array([0])},
    "three dimensions": VALID | {"shape": np.array([2, 2, 2])},
    "no shape": without("shape"),
    "no data": without("data"),
    "not sparse": {"X": np.eye(2)},
    "block matrix": VALID | {"format": np.array(b"bsr")},
    "names too few": VALID | {"feature_names": np.array(["a"])},
    "one name, not in a list": VALID | {"row_names": np.array("a")},
}


@pytest.mark.parametrize(("arrays", "place"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_npz_files_of_other_values_are_rejected(tmp_path, arrays, place):
    np.savez(tmp_path / "X.npz", **arrays)
    assert_not_counts(tmp_path / "X.npz", *place)


@pytest.mark.parametrize("arrays", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_npz_files_are_rejected(tmp_path, arrays):
    np.savez(tmp_path / "X.npz", **arrays)
    assert_rejected(tmp_path / "X.npz")


def test_npz_files_of_text_are_rejected(tmp_path):
    np.savez(tmp_path / "X.npz", **(VALID | {"data": np.array(["a", "b"])}))
    with pytest.raises((InputFileError, CountsError)):
        read_counts(tmp_path / "X.npz")


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("mapped_size", [0, 2**26], ids=["mapped", "read"])
def test_python_objects_in_npz_are_rejected_without_loading_them(tmp_path, mapped_size):
    path = tmp_path / "X.npz"
    np.savez(path, **(VALID | {"data": np.array([Trap(tmp_path / "sprung"), 1], dtype=object)}))
    with pytest.raises(InputFileError):
        read_npz(Request(path), mapped_size=mapped_size)
    assert not (tmp_path / "sprung").exists()


def test_truncated_and_damaged_npz_are_rejected(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, **VALID)
    whole = path.read_bytes()
    for content in (whole[:100], whole[:-5], whole[:60] + b"\xaa" * 20 + whole[80:]):
        path.write_bytes(content)
        assert_rejected(path)


def test_npz_that_would_unpack_to_gigabytes_is_rejected(tmp_path):
    path = tmp_path / "X.npz"
    n = 2**18
    repeated = {"data": np.ones(n, dtype=int), "indices": np.zeros(n, dtype=int), "indptr": np.array([0, 0, n])}
    np.savez_compressed(path, **(VALID | repeated))
    assert read_npz(Request(path)).X.toarray().tolist() == [[0, 0], [n, 0]]
    with pytest.raises(InputFileError) as caught:
        read_npz(Request(path), harmless_size=2**20)
    assert caught.value.path == path


@pytest.mark.parametrize("size", [10**15, 10**9, 3])
@pytest.mark.parametrize("mapped_size", [0, 2**26], ids=["mapped", "read"])
def test_npz_member_that_misstates_its_size_is_rejected(tmp_path, size, mapped_size):
    path = tmp_path / "X.npz"
    np.savez(path, **without("data"))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (size,)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.npy", stream.getvalue() + bytes(16))
    with pytest.raises(InputFileError):
        read_npz(Request(path), mapped_size=mapped_size)


def test_npz_member_that_is_not_an_array_is_rejected(tmp_path):
    path = tmp_path / "X.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.npy", b"no array at all")
    assert_rejected(path)


# --- AnnData and BIOM -------------------------------------------------------------------------------------------


def test_bad_h5ad_files_are_rejected(tmp_path):
    import anndata

    path = tmp_path / "X.h5ad"
    anndata.AnnData(np.array([[0.5, 1.0]]), layers={"counts": np.array([[1, 2]])}).write_h5ad(path)
    assert_not_counts(path, 0, 0)
    with pytest.raises(CountsError, match="--layer: 'counts'"):
        read_counts(path, layer="X")
    assert read_counts(path, layer="counts").X.toarray().tolist() == [[1, 2]]
    assert_rejected(path, layer="other")
    assert_rejected(path, layer="raw")
    path.write_bytes(path.read_bytes()[:2000])
    assert_rejected(path)
    path.write_text("no HDF5")
    assert_rejected(path)


@pytest.mark.parametrize("transpose", [False, True])
def test_indices_out_of_range_in_hdf5_are_rejected(tmp_path, transpose):
    import anndata
    import biom
    import h5py

    counts = np.array([[1, 0], [2, 3]])
    anndata.AnnData(sparse.csr_matrix(counts, dtype=float)).write_h5ad(tmp_path / "X.h5ad")
    with h5py.File(tmp_path / "X.biom", "w") as file:
        biom.Table(counts, ["f", "g"], ["a", "b"]).to_hdf5(file, "a test")
    for name, place in (("X.h5ad", "X/indices"), ("X.biom", "sample/matrix/indices")):
        with h5py.File(tmp_path / name, "a") as file:
            file[place][-1] = 10**6
    assert_not_counts(tmp_path / "X.h5ad", transpose=transpose)
    assert_rejected(tmp_path / "X.biom", transpose=transpose)


def test_hdf5_without_counts_is_rejected(tmp_path):
    import h5py

    for name in ("X.h5ad", "X.biom"):
        with h5py.File(tmp_path / name, "w") as file:
            file["numbers"] = [1, 2]
        assert_rejected(tmp_path / name)
    path = tmp_path / "X.h5"
    (tmp_path / "X.h5ad").rename(path)
    assert_rejected(path)
    path.write_bytes(path.read_bytes()[:500])
    assert_rejected(path)


def test_bad_biom_files_are_rejected(tmp_path):
    import biom

    path = tmp_path / "X.biom"
    path.write_text(biom.Table(np.array([[2, 1.5]]), ["f"], ["a", "b"]).to_json("a test"))
    assert_not_counts(path, 1, 0)
    assert_not_counts(path, 0, 1, transpose=False)
    valid = biom.Table(np.array([[1, 2]]), ["f"], ["a", "b"]).to_json("a test")
    path.write_text(valid.replace("[0,1,2.0", "[0,9,2.0"))
    assert_rejected(path)
    path.write_text('{"format": "Biological Observation Matrix"')
    assert_rejected(path)


# --- all formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [read_counts, detect_format])
def test_paths_that_are_not_files_are_rejected(tmp_path, reader):
    for path in (tmp_path / "none.mtx", tmp_path):
        with pytest.raises(InputFileError) as caught:
            reader(path)
        assert caught.value.path == path


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.csv", "X.npz", "X.h5ad", "X.biom", "X.parquet", "X"])
def test_empty_files_are_rejected(tmp_path, name):
    (tmp_path / name).touch()
    assert_rejected(tmp_path / name)


@pytest.mark.parametrize(("name", "line"), [("X.csv.gz", None), ("X.mtx.gz", 1)])
def test_an_empty_file_that_is_compressed_is_rejected(tmp_path, name, line):
    (tmp_path / name).write_bytes(gzip.compress(b""))
    assert_rejected(tmp_path / name, line)


@pytest.mark.parametrize("name", ["X.npz", "X.parquet", "X.h5ad", "X.biom", "X.mtx"])
def test_text_with_the_suffix_of_another_format_is_rejected(tmp_path, name):
    (tmp_path / name).write_text("hello, world\n")
    assert_rejected(tmp_path / name, 1 if name == "X.mtx" else None)


def test_unknown_suffixes_and_formats_are_rejected(tmp_path):
    path = tmp_path / "X.doc"
    path.write_text("a,b\n1,2\n")
    assert_rejected(path)
    assert_rejected(path, format="csv")
    with zipfile.ZipFile(tmp_path / "X.xlsx", "w") as archive:
        archive.writestr("sheet", "1")
    assert_rejected(tmp_path / "X.xlsx")


@pytest.mark.parametrize("magic", [b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"], ids=["Zstandard", "LZ4"])
def test_unsupported_compressions_are_rejected(tmp_path, magic):
    (tmp_path / "X.csv.zst").write_bytes(magic + bytes(100))
    assert_rejected(tmp_path / "X.csv.zst")


def test_options_that_do_not_apply_are_rejected(tmp_path):
    path = tmp_path / "X.mtx"
    path.write_text(MTX + "1 1 1\n1 1 1\n")
    assert_rejected(path, columns=["a", "b", "c"])
    assert_rejected(path, layer="counts")


@pytest.mark.parametrize(
    ("format", "package", "extra"),
    [("parquet", "pyarrow", "parquet"), ("h5ad", "anndata.io", "anndata"), ("biom", "biom", "biom")],
)
def test_a_missing_extra_names_its_install_line(tmp_path, monkeypatch, format, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "X").write_text("whatever")
    with pytest.raises(InputFileError) as caught:
        read_counts(tmp_path / "X", format=format)
    assert f"pip install 'mmpca[{extra}]'" in str(caught.value)


def test_a_file_without_read_permission_is_rejected(tmp_path, monkeypatch):
    path = tmp_path / "X.mtx"
    path.write_text(MTX)

    def deny(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", deny)  # root may read everything
    assert_rejected(path)


# --- names ------------------------------------------------------------------------------------------------------


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "X.mtx"
    write_counts(path, CountTable(sparse.csr_array([[1, 0, 2], [0, 3, 1]]), None, None, []))
    return path


@pytest.mark.parametrize(
    ("names", "line"), [("a\n", None), ("a\nb\nc\nd\n", None), ("a\n\n", 2), ("\n\n", 1), ("", None)]
)
def test_bad_names_files_are_rejected(matrix, names, line):
    path = matrix.with_name("X.rows.txt")
    path.write_text(names)
    assert_rejected(matrix, line, at=path)


@pytest.mark.parametrize(
    "names", [{"feature_names": ["a"]}, {"feature_names": ["a", "b"]}, {"row_names": ["a", "b", "c"]}]
)
def test_a_wrong_number_of_names_is_rejected(matrix, names):
    assert_rejected(matrix, **names)


def test_a_names_file_that_does_not_exist_is_rejected(matrix):
    path = matrix.with_name("nowhere.txt")
    assert_rejected(matrix, at=path, row_names=path)


def test_names_in_an_encoding_that_cannot_be_guessed_are_rejected(matrix):
    path = matrix.with_name("X.columns.txt")
    path.write_bytes("a\nb\nлипы\n".encode("cp1251"))
    assert_rejected(matrix, 3, at=path)


# --- random damage ----------------------------------------------------------------------------------------------

COUNTS = np.array([[1, 0, 2], [0, 3, 1]])
WRITTEN = ["X.mtx", "X.mtx.gz", "X.npz"]
OTHERS = ["X.csv", "X.triples.csv", "X.parquet", "X.h5ad", "X.biom", "X.json.biom", "docword.txt"]


@pytest.fixture(scope="module")
def valid_files(tmp_path_factory):
    import anndata
    import biom
    import h5py

    folder = tmp_path_factory.mktemp("valid")
    table = CountTable(sparse.csr_array(COUNTS), np.array(["x", "y"], dtype=object), None, [])
    for name in WRITTEN:
        write_counts(folder / name, table)
    frame = pd.DataFrame(COUNTS, index=["x", "y"], columns=["a", "b", "c"])
    frame.to_csv(folder / "X.csv")
    triples = frame.stack().rename_axis(["doc", "word"]).rename("count").reset_index()
    triples.to_csv(folder / "X.triples.csv", index=False)
    triples.to_parquet(folder / "X.parquet")
    anndata.AnnData(frame.astype(float)).write_h5ad(folder / "X.h5ad")
    table = biom.Table(COUNTS, ["x", "y"], ["a", "b", "c"])
    (folder / "X.json.biom").write_text(table.to_json("a test"))
    with h5py.File(folder / "X.biom", "w") as file:
        table.to_hdf5(file, "a test")
    (folder / "docword.txt").write_text("2\n3\n4\n1 1 1\n1 3 2\n2 2 3\n2 3 1\n")
    return folder


@pytest.mark.parametrize("name", WRITTEN + OTHERS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")  # of the libraries that read damaged files
def test_damaged_files_are_read_or_rejected(tmp_path, valid_files, name, data):
    content = bytearray((valid_files / name).read_bytes())
    place = data.draw(st.integers(0, len(content)))
    # HDF5 itself loops forever on some damaged heaps, so its files are only cut off here.
    kinds = ["end"] if name in ("X.h5ad", "X.biom") else ["overwrite", "insert", "cut", "end"]
    match data.draw(st.sampled_from(kinds)):
        case "overwrite":
            new = data.draw(st.binary(min_size=1, max_size=4))
            content[place : place + len(new)] = new
        case "insert":
            content[place:place] = data.draw(
                st.sampled_from([b"\n", b"-", b'"', b"\0", b"9" * 30, b",,", b"\xff", b"1e999"])
            )
        case "cut":
            del content[place : place + data.draw(st.integers(1, 20))]
        case "end":
            del content[place:]
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(InputFileError, CountsError):
        table = read_counts(tmp_path / name)
        assert table.X.dtype == np.int32
        assert table.X.has_canonical_format
        assert table.X.data.min(initial=1) >= 1


# --- more claimed than stored -----------------------------------------------------------------------------------


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("name", ["row", "col", "shape", "indices", "indptr"])
def test_fractional_indices_in_npz_are_rejected_instead_of_truncated(tmp_path, name):
    X = sparse.csr_array([[1, 0], [2, 3]])
    coo = X.tocoo()
    arrays = {"data": X.data, "shape": np.array(X.shape), "format": np.array(b"csr" if name[:2] == "in" else b"coo")}
    arrays |= {"indices": X.indices, "indptr": X.indptr} if name[:2] == "in" else {"row": coo.row, "col": coo.col}
    np.testing.assert_array_equal(read_counts(npz(tmp_path / "X.npz", **arrays)).X.toarray(), X.toarray())
    arrays[name] = arrays[name] + 0.25
    assert_rejected(npz(tmp_path / "X.npz", **arrays))


def bomb(first, repeated, n_bytes):
    """Return a gzip file that expands to many times its size."""
    piece = gzip.compress(repeated * (2**22 // len(repeated)))
    return gzip.compress(first) + piece * (n_bytes // 2**22)


ONE = np.array([0])
SQUARE = np.array([2 * 10**9] * 2)
HOSTILE = {
    "one line of entries": ("X.mtx.gz", bomb(f"{MTX}3 3 1\n".encode(), b"1 ", 2**29), 3),
    "one line of comments": ("X.mtx.gz", bomb(MTX.encode(), b"%", 2**29), 2),
    "symmetric": ("X.mtx", b"%%MatrixMarket matrix array integer symmetric\n60000 60000\n1\n", None),
    "symmetric, huge": ("X.mtx", b"%%MatrixMarket matrix array integer symmetric\n2000000000 2000000000\n1\n", None),
    "one line of counts": ("X.csv.gz", bomb(b"a,b\n", b"1,", 2**29), 2),
    "one line of titles": ("X.csv.gz", bomb(b"", b"abc,", 2**29), 1),
    "empty rows": ("X.csv.gz", bomb(b"a,b\n1,1\n", b"0,0\n", 2**25), None),
    "size of a UCI file": ("docword.x.txt.gz", bomb(b"", b"1", 2**29), 1),
}


@pytest.fixture
def little_memory():
    """Limit what a test may allocate in addition to what it has."""
    resource = pytest.importorskip("resource")
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("measures memory by Linux's means")
    before = resource.getrlimit(resource.RLIMIT_AS)
    n_bytes = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes + 2**29, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(("name", "content", "line"), HOSTILE.values(), ids=HOSTILE)
def test_a_small_file_that_claims_to_be_huge_takes_little_memory(tmp_path, little_memory, name, content, line):
    path = tmp_path / name
    path.write_bytes(content)
    assert_rejected(path, line)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "claim"])
def test_a_small_archive_that_claims_to_be_huge_takes_little_memory(tmp_path, little_memory, kind):
    path = tmp_path / "X.npz"
    if kind == "coo":
        npz(path, row=ONE, col=ONE, data=ONE + 1, shape=SQUARE, format=np.array(b"coo"))
    elif kind == "claim":
        with zipfile.ZipFile(path, "w") as archive, archive.open("data.npy", "w") as stream:
            np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (10**8,)})
    else:
        shape = np.array([1, 2 * 10**9] if kind == "csr" else [2 * 10**9, 1])
        npz(path, indices=ONE, indptr=np.array([0, 1]), data=ONE + 1, shape=shape, format=np.array(kind.encode()))
    assert_rejected(path)


@pytest.mark.parametrize("content", [bomb(b"a", b"b", 2**29), bomb(b"", b"b\n", 2**28)], ids=["one line", "many lines"])
def test_a_small_file_of_names_that_unpacks_to_much_takes_little_memory(tmp_path, little_memory, content):
    path = tmp_path / "X.columns.txt.gz"
    path.write_bytes(content)
    (tmp_path / "X.mtx").write_text(f"{MTX}1 2 1\n1 1 1\n")
    assert_rejected(tmp_path / "X.mtx", at=path)


def test_runs_of_equal_records_in_parquet_are_rejected(tmp_path):
    path = tmp_path / "X.parquet"
    constant = np.zeros(10**7, dtype=np.int8)
    pd.DataFrame({"row": constant, "feature": constant, "count": constant}).to_parquet(path, data_page_size=2**30)
    assert_rejected(path)


def test_a_dataset_without_stored_values_is_not_allocated(tmp_path, little_memory):
    h5py = pytest.importorskip("h5py")
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "X.h5ad"
    anndata.AnnData(np.ones((2, 2), dtype=np.float32)).write_h5ad(path)
    with h5py.File(path, "a") as file:
        attributes = dict(file["X"].attrs)
        del file["X"]
        file.create_dataset("X", shape=(60_000, 60_000), dtype="f4", chunks=(1000, 1000)).attrs.update(attributes)
    assert_rejected(path)


def test_a_biom_table_with_a_claimed_shape_is_rejected(tmp_path, little_memory):
    pytest.importorskip("biom")
    path = tmp_path / "X.biom"
    path.write_text(
        '{"format": "Biological Observation Matrix 1.0.0", "type": "OTU table", "matrix_type": "sparse",'
        '"matrix_element_type": "int", "shape": [2000000000, 2000000000], "data": [[0, 0, 1]],'
        '"rows": [{"id": "a", "metadata": null}], "columns": [{"id": "b", "metadata": null}]}'
    )
    assert_rejected(path)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 40])
def test_the_triangle_of_a_symmetric_dense_matrix_is_placed_right(tmp_path, n_rows):
    values = np.random.default_rng(n_rows).poisson(2, (n_rows, n_rows))
    values = np.tril(values) + np.tril(values, -1).T
    triangle = [str(values[i, v]) for v in range(n_rows) for i in range(v, n_rows)]
    path = tmp_path / "X.mtx"
    path.write_text("\n".join(["%%MatrixMarket matrix array integer symmetric", f"{n_rows} {n_rows}", *triangle, ""]))
    np.testing.assert_array_equal(read_counts(path).X.toarray(), values)


def test_pipes_are_rejected_because_they_can_be_read_only_once(tmp_path):
    path = tmp_path / "X.csv"
    os.mkfifo(path)
    assert_rejected(path)


@pytest.mark.parametrize("name", ["a" * 300, "null\0byte.csv", "X.csv/Y.csv"], ids=["long", "null byte", "in a file"])
def test_errors_about_impossible_paths_name_them(tmp_path, name):
    (tmp_path / "X.csv").write_text("a,b\n1,2\n")
    assert_rejected(tmp_path / name)
    with pytest.raises(InputFileError) as caught:
        read_texts(tmp_path / name)
    assert caught.value.path == tmp_path / name


def test_names_that_are_neither_names_nor_a_path_are_rejected_with_the_file(tmp_path):
    (tmp_path / "X.csv").write_text("a,b\n1,2\n")
    assert_rejected(tmp_path / "X.csv", row_names=5)
