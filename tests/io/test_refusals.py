"""Bad files, made by hand: each is refused with file, line, reason and remedy, as one kind of error.

Whatever the readers refuse without any options goes through the command line as well, which must say the same, end with
exit code 1, and show no traceback.
"""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

from mmpca.cli.app import app
from mmpca.errors import InputFileError
from mmpca.io import CountTable, detect_format, read_counts, write_counts
from mmpca.io import npz as io_npz

MTX = "%%MatrixMarket matrix coordinate integer general\n"
COUNT = "expected a count (a non-negative whole number)"


def refused(path, *pieces, **options):
    """Check that a file is refused, with its name and all pieces in the message; return that."""
    with pytest.raises(InputFileError) as caught:
        read_counts(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    for piece in pieces:
        assert piece in message
    assert message.endswith((".", "]'"))  # a remedy, or an install line
    if not options and path.is_file():
        refused_by_command(path, message)
    return message


def refused_by_command(path, message):
    """Check that a command on the file ends with the message and exit code 1."""
    result = CliRunner().invoke(app, ["inspect", str(path)], env={"NO_COLOR": "1", "TERM": "dumb"})
    assert isinstance(result.exception, SystemExit)  # anything else would be a traceback
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.split() == f"error: {message}".split()


# --- Matrix Market --------------------------------------------------------------------------------

BAD_MATRIX_MARKET = {
    "wrong banner": (
        "%%MatrixMarkt matrix coordinate integer general\n1 1 1\n1 1 1\n",
        ["line 1", "MatrixMarket matrix"],
    ),
    "no banner": ("2 2 1\n1 1 1\n", ["line 1", "'2 2 1'", "Check the format"]),
    "vector": ("%%MatrixMarket vector coordinate integer general\n2 1\n1 1\n", ["line 1", "expected the first line"]),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", ["line 1", "'complex'"]),
    "skew-symmetric": (
        "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 1\n",
        ["line 1", "'skew-symmetric'", "general, symmetric"],
    ),
    "symmetric but not square": (
        "%%MatrixMarket matrix coordinate integer symmetric\n2 3 1\n2 1 1\n",
        ["line 2", "square", "(2, 3)"],
    ),
    "ends after the banner": (MTX, ["line 2", "ends before the line of sizes"]),
    "two sizes": (MTX + "2 2\n1 1 1\n", ["line 2", '"rows columns entries"', "'2 2'"]),
    "negative size": (MTX + "% a comment\n-2 2 1\n1 1 1\n", ["line 3", "'-2 2 1'"]),
    "sizes in words": (MTX + "two 2 1\n1 1 1\n", ["line 2", "'two 2 1'"]),
    "no rows": (MTX + "0 2 0\n", ["line 2", "0 rows"]),
    "no columns": (MTX + "2 0 0\n", ["line 2", "0 columns"]),
    "rows beyond memory": (MTX + "1000000000000 2 1\n1 1 1\n", ["line 2", "1000000000000 rows for 1 entries"]),
    "columns beyond memory": (MTX + "2 2000000000 1\n1 1 1\n", ["line 2", "2000000000 columns"]),
    "row out of range": (MTX + "2 2 2\n1 1 1\n3 1 1\n", ["line 4", "row 3 is out of range", "2 rows"]),
    "column out of range": (MTX + "2 2 2\n1 1 1\n1 7 1\n", ["line 4", "column 7", "2 columns"]),
    "index zero": (MTX + "2 2 2\n1 1 1\n0 1 1\n", ["line 4", "row 0", "start at 1"]),
    "negative index": (MTX + "2 2 1\n-1 1 1\n", ["line 3", "row -1"]),
    "fractional index": (MTX + "2 2 1\n1.5 1 1\n", ["line 3", "row number", "'1.5'"]),
    "index in words": (MTX + "2 2 1\n1 one 1\n", ["line 3", "column number", "'one'"]),
    "negative count": (MTX + "2 2 2\n1 1 1\n2 1 -4\n", ["line 4", COUNT, "-4", "Remove negative"]),
    "fraction in an integer file": (MTX + "2 2 1\n1 1 2.5\n", ["line 3", COUNT, "2.5", "raw counts"]),
    "NaN": (MTX + "2 2 1\n1 1 nan\n", ["line 3", COUNT, "NaN", "Write 0"]),
    "infinite": (MTX + "2 2 1\n1 1 inf\n", ["line 3", "infinite"]),
    "too large": (MTX + "2 2 1\n1 1 4294967297\n", ["line 3", "4294967297", "2147483647"]),
    "far too large": (MTX + "2 2 1\n1 1 99999999999999999999999\n", ["line 3", "largest possible count"]),
    "count in words": (MTX + "2 2 1\n1 1 many\n", ["line 3", COUNT, "'many'"]),
    "digits with junk": (MTX + "2 2 1\n1 1 3-4\n", ["line 3", COUNT, "'3-4'"]),
    "missing count": (MTX + "2 2 2\n1 1 1\n2 1\n", ["line 4", "expected 3 numbers", "found 2"]),
    "a fourth number": (MTX + "2 2 2\n1 1 1\n2 1 1 5\n", ["line 4", "expected 3 numbers", "found 4"]),
    "a number moved between lines": (MTX + "2 2 2\n1 1\n2 1 1 5\n", ["line 3", "found 2"]),
    "fewer entries": (MTX + "2 2 5\n1 1 1\n2 1 1\n", ["promises 5 entries", "has 2", "cut off"]),
    "more entries": (MTX + "2 2 1\n1 1 1\n2 1 1\n", ["promises 1 entries", "has 2", "appended"]),
    "binary data": (MTX + "2 2 1\n1 1 3\0\n", ["line 3", "binary data"]),
    "sum too large": (MTX + "2 2 2\n1 2 2147483647\n1 2 1\n", ["row 1, column 2", "sum to 2147483648"]),
    "pattern with counts": (
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 3\n",
        ["line 3", "expected 2 numbers"],
    ),
    "dense with a fraction": (
        "%%MatrixMarket matrix array real general\n2 1\n1\n0.5\n",
        ["line 4", COUNT, "0.5"],
    ),
    "dense with too few": (
        "%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n",
        ["promises 4 values", "has 3"],
    ),
    "dense with too many": ("%%MatrixMarket matrix array integer general\n1 1\n1\n2\n", ["promises 1 values", "has 2"]),
    "dense, two on a line": ("%%MatrixMarket matrix array integer general\n1 2\n1 2\n", ["line 3", "'1 2'"]),
}


@pytest.mark.parametrize(("content", "pieces"), BAD_MATRIX_MARKET.values(), ids=BAD_MATRIX_MARKET)
def test_bad_matrix_market_files_are_refused(tmp_path, content, pieces):
    path = tmp_path / "X.mtx"
    path.write_text(content, newline="\n")
    refused(path, *pieces)


@pytest.mark.parametrize("n_kept", [3, 15, 40, -12, -4])
def test_truncated_gz_is_refused(tmp_path, n_kept):
    path = tmp_path / "X.mtx.gz"
    entries = "".join(f"{i} 1 {i % 7 + 1}\n" for i in range(1, 1000))
    path.write_bytes(gzip.compress((MTX + "1000 1 999\n" + entries).encode())[:n_kept])
    refused(path, "truncated or damaged", "again")


def test_damaged_gz_is_refused(tmp_path):
    path = tmp_path / "X.mtx.gz"
    entries = "".join(f"{i} 1 {i % 7 + 1}\n" for i in range(1, 1000))
    content = bytearray(gzip.compress((MTX + "1000 1 999\n" + entries).encode()))
    content[300:320] = b"\xaa" * 20
    path.write_bytes(content)
    refused(path, "truncated or damaged")


def test_a_fault_late_in_a_file_of_many_blocks_has_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr("mmpca.io.streams.BLOCK_BYTES", 2**12)
    path = tmp_path / "X.mtx.gz"
    lines = [f"{i} 1 1\n" for i in range(1, 8001)]
    lines[6543] = "5 1 x\n"
    path.write_bytes(gzip.compress((MTX + "8000 1 8000\n" + "".join(lines)).encode()))
    refused(path, "line 6546", "'x'")


# --- bags of words --------------------------------------------------------------------------------

BAD_BAGS = {
    "two header lines": ("2\n2\n1 1 1\n", ["line 3", "number of entries alone", "'1 1 1'"]),
    "word out of range": ("2\n2\n1\n1 3 1\n", ["line 4", "column 3", "2 columns"]),
    "cut off": ("2\n2\n3\n1 1 1\n", ["promises 3 entries", "has 1"]),
    "no documents": ("0\n2\n0\n", ["line 1", "0 rows"]),
    "negative": ("2\n2\n1\n1 1 -2\n", ["line 4", COUNT, "-2"]),
}


@pytest.mark.parametrize(("content", "pieces"), BAD_BAGS.values(), ids=BAD_BAGS)
def test_bad_bags_of_words_are_refused(tmp_path, content, pieces):
    path = tmp_path / "docword.txt"
    path.write_text(content, newline="\n")
    refused(path, *pieces, format="uci")


# --- tables ---------------------------------------------------------------------------------------

BAD_TABLES = {
    "ragged": (b"id,a,b\nx,1,2\ny,1\n", ["line 3", "expected 3 fields", "found 2"]),
    "one field more": (b"id,a,b\nx,1,2\ny,1,2,3\n", ["line 3", "expected 3 fields", "found 4"]),
    "header of other length": (b"id,a,b,c,d\nx,1,2\ny,1,2\n", ["line 2", "expected 5 fields", "found 3"]),
    "name without counts": (b"id,a,b\nx,1,2\ny\n", ["line 3", "found 1"]),
    "word": (b"id,a,b\nx,1,2\ny,1,few\n", ["line 3", "column 3 (b)", "'few'"]),
    "negative": (b"id,a,b\nx,1,-2\n", ["line 2", "column 3 (b)", "-2"]),
    "fraction": (b"id,a,b\nx,1,2\ny,0.25,2\n", ["line 3", "column 2 (a)", "0.25"]),
    "NaN": (b"id,a,b\nx,1,nan\n", ["line 2", "NaN"]),
    "NA": (b"id,a,b\nx,1,NA\n", ["line 2", "'NA'", "Write 0 where nothing was counted"]),
    "empty field": (b"id,a,b\nx,1,\n", ["line 2", "field is empty", "Write 0"]),
    "too large": (b"id,a,b\nx,1,3000000000\n", ["line 2", "3000000000"]),
    "Python's underscores": (b"id,a,b\nx,1,1_000\n", ["line 2", "'1_000'"]),
    "decimal comma": (b"id;a;b\nx;1;2,5\n", ["line 2", "'2,5'", "without a comma"]),
    "header alone": (b"id,a,b\n", ["line 2", "below the header"]),
    "only blank lines": (b"\n\n  \n", ["no data"]),
    "no delimiter": (b"hello\nworld\n", ["line 1", "tab, comma", "'world'", "mmpca.text"]),
    "latin-1 below": ("id,a,b\nx,1,2\nçà,1,2\n".encode("latin-1"), ["line 3", "UTF-8", "0xe7", "iconv"]),
    "mixed encodings": ("id,é,b\n".encode() + "ü,1,2\n".encode("latin-1"), ["line 2", "0xfc", "one encoding"]),
    "UTF-16": ("id,a,b\nx,1,2\n".encode("utf-16"), ["line 1", "UTF-16"]),
    "binary junk": (bytes(range(256)) * 4, ["UTF-8"]),
    "zero bytes": (b"id,a\nx,\0\n", ["line 2", "binary data"]),
    "open quotes": (b'id,a,b\nx,1,2\n"y,1,2\n', ["line 3"]),
    "text in the middle of numbers": (b"a,b\n1,2\n" * 2, ["line 3", "column 1 (a)", "'a'"]),
}


@pytest.mark.parametrize(("content", "pieces"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused(tmp_path, content, pieces):
    path = tmp_path / "X.csv"
    path.write_bytes(content)
    refused(path, *pieces, format="table")


# --- triples --------------------------------------------------------------------------------------

BAD_TRIPLES = {
    "ragged": ("doc,word,count\na,x,1\nb,y\n", ["line 3", "expected 3 fields", "found 2"]),
    "word": ("doc,word,count\na,x,1\nb,y,lots\n", ["line 3", "column 3", "'lots'"]),
    "negative": ("doc,word,count\na,x,1\nb,y,-1\n", ["line 3", COUNT, "-1"]),
    "fraction": ("doc,word,count\na,x,1.5\nb,y,1\n", ["line 2", COUNT, "1.5"]),
    "empty count": ("doc,word,count\na,x,\n", ["line 2", "field is empty"]),
    "NaN": ("doc,word,count\n\na,x,nan\n", ["line 3", "NaN"]),
    "open quotes": ('doc,word,count\na,x,1\nb,"y,1\nc,z,1\n', ["line 3", "found 2", "quotes"]),
    "carriage returns alone": ("doc,word,count\na,x,1\rb,y,1\n", ["line 2", "found 5"]),
    "header alone": ("doc,word,count\n", ["below the header"]),
    "four columns": ("doc,lemma,tag,amount\na,x,N,1\n", ["found 4 (doc, lemma, tag, amount)", "Name them"]),
    "sum too large": ("doc,word,count\na,x,2000000000\na,x,2000000000\n", ["row 1, column 1", "sum to 4000000000"]),
}


@pytest.mark.parametrize("has_arrow", [True, False])
@pytest.mark.parametrize(("content", "pieces"), BAD_TRIPLES.values(), ids=BAD_TRIPLES)
def test_bad_triples_are_refused(tmp_path, monkeypatch, has_arrow, content, pieces):
    if not has_arrow:
        monkeypatch.setattr("mmpca.io.triples._read_by_arrow", lambda *_: None)
    path = tmp_path / "X.csv"
    path.write_text(content, newline="\n")
    refused(path, *pieces, format="triples")


def test_columns_of_triples_that_are_not_there_are_refused(tmp_path):
    path = tmp_path / "X.csv"
    path.write_text("doc,word,count\na,x,1\n")
    refused(path, "'lemma'", "doc, word, count", columns=["doc", "lemma", "count"])
    refused(path, "three", "there are 2", columns=["doc", "word"])
    path.write_text("a,x,1\nb,y,2\n")
    refused(path, "no header", columns=["doc", "word", "count"])


@pytest.mark.parametrize("has_arrow", [True, False])
def test_names_that_are_not_among_those_given_are_refused(tmp_path, monkeypatch, has_arrow):
    if not has_arrow:
        monkeypatch.setattr("mmpca.io.triples._read_by_arrow", lambda *_: None)
    path = tmp_path / "X.csv"
    path.write_text("doc,word,count\na,x,1\n\nb,y,2\n", newline="\n")
    refused(path, "line 4", "'y'", "1 feature names", feature_names=["x"])
    refused(path, "row names", "unique", row_names=["a", "b", "a"])


def frame(**columns):
    return pd.DataFrame({"doc": ["a", "b"], "word": ["x", "y"], "count": [1, 2]} | columns)


BAD_FRAMES = {
    "negative": (frame(count=[1, -2]), ["record 2", "'count'", "-2"]),
    "fraction": (frame(count=[0.5, 2]), ["record 1", "0.5"]),
    "missing count": (frame(count=[1, None]), ["record 2", "missing"]),
    "missing name": (frame(word=[None, "y"]), ["record 1", "'word'", "missing"]),
    "counts in words": (frame(count=["one", "two"]), ["'count'", "type is", "string"]),
    "no records": (frame()[:0], ["no triples"]),
    "other columns": (frame().rename(columns={"count": "amount"}).assign(more=1), ["found 4", "amount"]),
}


@pytest.mark.parametrize(("content", "pieces"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_parquet_files_are_refused(tmp_path, content, pieces):
    path = tmp_path / "X.parquet"
    content.to_parquet(path, index=False)
    refused(path, *pieces)


def test_parquet_names_that_are_not_among_those_given_are_refused(tmp_path):
    path = tmp_path / "X.parquet"
    frame().to_parquet(path)
    refused(path, "record 2", "'b'", "1 row names", columns=["doc", "word", "count"], row_names=["a"])


@pytest.mark.parametrize("keep", [slice(0, 40), slice(0, -10), slice(4, None)])
def test_truncated_parquet_is_refused(tmp_path, keep):
    path = tmp_path / "X.parquet"
    frame().to_parquet(path)
    path.write_bytes(path.read_bytes()[keep])
    refused(path, "truncated or damaged", format="parquet")


def test_parquet_names_that_are_no_text_are_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    damaged = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"x\x80"))
    parquet.write_table(pa.table({"doc": ["a", "b"], "word": damaged, "count": [1, 2]}), tmp_path / "X.parquet")
    refused(tmp_path / "X.parquet", "truncated or damaged", "0x80")


# --- npz ------------------------------------------------------------------------------------------

SOUND = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 2]),
    "data": np.array([1, 2]),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
}


def without(name):
    return {key: value for key, value in SOUND.items() if key != name}


BAD_ARRAYS = {
    "negative": (SOUND | {"data": np.array([1, -2])}, [COUNT, "-2", "stored value 2"]),
    "fraction": (SOUND | {"data": np.array([0.5, 2])}, ["0.5", "raw counts"]),
    "NaN": (SOUND | {"data": np.array([np.nan, 2])}, ["NaN", "stored value 1"]),
    "text": (SOUND | {"data": np.array(["a", "b"])}, ["type <U1"]),
    "column out of range": (SOUND | {"indices": np.array([0, 2])}, ["csr matrix", "again"]),
    "negative column": (SOUND | {"indices": np.array([0, -1])}, ["csr matrix"]),
    "row pointers fall": (SOUND | {"indptr": np.array([0, 3, 2])}, ["csr matrix"]),
    "row pointers too few": (SOUND | {"indptr": np.array([0, 2])}, ["csr matrix"]),
    "lengths differ": (SOUND | {"indices": np.array([0])}, ["csr matrix"]),
    "three dimensions": (SOUND | {"shape": np.array([2, 2, 2])}, ["csr matrix"]),
    "no shape": (without("shape"), ["'shape' is missing"]),
    "no data": (without("data"), ["'data' is missing"]),
    "not sparse": ({"X": np.eye(2)}, ["file holds X", "save_npz"]),
    "block matrix": (SOUND | {"format": np.array(b"bsr")}, ["csr, csc or coo", "bsr"]),
    "names too few": (SOUND | {"feature_names": np.array(["a"])}, ["2 feature names", "found 1"]),
}


@pytest.mark.parametrize(("arrays", "pieces"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_npz_files_are_refused(tmp_path, arrays, pieces):
    path = tmp_path / "X.npz"
    np.savez(path, **arrays)
    refused(path, *pieces)


def test_python_objects_in_npz_are_refused_unread(tmp_path):
    path = tmp_path / "X.npz"

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    from pathlib import Path

    np.savez(path, **(SOUND | {"data": np.array([Trap(), 1], dtype=object)}))
    refused(path, "data.npy", "Python objects")
    assert not (tmp_path / "sprung").exists()


def test_truncated_and_damaged_npz_are_refused(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, **SOUND)
    whole = path.read_bytes()
    for content in (whole[:100], whole[:-5], whole[:60] + b"\xaa" * 20 + whole[80:]):
        path.write_bytes(content)
        refused(path, "truncated or damaged")


def test_npz_that_would_unpack_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(io_npz, "_HARMLESS_BYTES", 2**20)
    path = tmp_path / "X.npz"
    np.savez_compressed(path, **(SOUND | {"data": np.zeros(2**20)}))
    refused(path, "would unpack", "GB", "trust")


def test_npz_member_that_lies_about_its_size_is_refused(tmp_path):
    path = tmp_path / "X.npz"
    np.savez(path, **without("data"))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.npy", stream.getvalue() + bytes(16))
    refused(path, "data.npy has 16 bytes")


def test_npz_member_that_is_no_array_is_refused(tmp_path):
    path = tmp_path / "X.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.npy", b"no array at all")
    refused(path, "data.npy is no NumPy array")


# --- AnnData and BIOM -----------------------------------------------------------------------------


def test_bad_h5ad_files_are_refused(tmp_path):
    import anndata

    path = tmp_path / "X.h5ad"
    anndata.AnnData(np.array([[0.5, 1.0]]), layers={"counts": np.array([[1, 2]])}).write_h5ad(path)
    refused(path, COUNT, "0.5", "another layer")
    refused(path, "no layers/other", "X, layer 'counts'", layer="other")
    refused(path, "no raw/X", layer="raw")
    path.write_bytes(path.read_bytes()[:2000])
    refused(path, "truncated or damaged")
    path.write_text("no HDF5")
    refused(path, "no AnnData file")


@pytest.mark.parametrize("transpose", [False, True])
def test_places_out_of_range_in_hdf5_are_refused(tmp_path, transpose):
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
        refused(tmp_path / name, "again", transpose=transpose)


def test_hdf5_without_counts_is_refused(tmp_path):
    import h5py

    for name in ("X.h5ad", "X.biom"):
        with h5py.File(tmp_path / name, "w") as file:
            file["numbers"] = [1, 2]
        refused(tmp_path / name, "truncated or damaged" if name == "X.biom" else "no X, but no matrix")
    path = tmp_path / "X.h5"
    (tmp_path / "X.h5ad").rename(path)
    refused(path, "AnnData or BIOM", "'numbers'")
    path.write_bytes(path.read_bytes()[:500])
    refused(path, "truncated or damaged")


def test_bad_biom_files_are_refused(tmp_path):
    import biom

    path = tmp_path / "X.biom"
    path.write_text(biom.Table(np.array([[1.5, 2]]), ["f"], ["a", "b"]).to_json("a test"))
    refused(path, COUNT, "1.5")
    sound = biom.Table(np.array([[1, 2]]), ["f"], ["a", "b"]).to_json("a test")
    path.write_text(sound.replace("[0,1,2.0", "[0,9,2.0"))
    refused(path, "no BIOM table")
    path.write_text('{"format": "Biological Observation Matrix"')
    refused(path, "no BIOM table")


# --- all formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [read_counts, detect_format])
def test_what_is_no_file_is_refused(tmp_path, reader):
    for path, piece in ((tmp_path / "none.mtx", "no such file"), (tmp_path, "a folder")):
        with pytest.raises(InputFileError, match=piece):
            reader(path)


@pytest.mark.parametrize("name", ["X.mtx", "X.mtx.gz", "X.csv", "X.npz", "X.h5ad", "X.biom", "X.parquet", "X"])
def test_empty_files_are_refused(tmp_path, name):
    (tmp_path / name).touch()
    refused(tmp_path / name, "empty")


def test_an_empty_file_that_is_compressed_is_refused(tmp_path):
    for name in ("X.csv.gz", "X.mtx.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b""))
        refused(tmp_path / name, "data" if "csv" in name else "line 1")


@pytest.mark.parametrize("name", ["X.npz", "X.parquet", "X.h5ad", "X.biom", "X.mtx"])
def test_text_under_the_ending_of_another_format_is_refused(tmp_path, name):
    (tmp_path / name).write_text("hello, world\n")
    refused(tmp_path / name)


def test_unknown_endings_and_formats_are_refused(tmp_path):
    path = tmp_path / "X.doc"
    path.write_text("a,b\n1,2\n")
    refused(path, "'.doc'", "mtx, npz, table")
    refused(path, "'csv'", "mtx, npz, table", format="csv")
    with zipfile.ZipFile(tmp_path / "X.xlsx", "w") as archive:
        archive.writestr("sheet", "1")
    refused(tmp_path / "X.xlsx", "zip archive (.xlsx)", "Export")


@pytest.mark.parametrize(("magic", "name"), [(b"\x28\xb5\x2f\xfd", "Zstandard"), (b"\x04\x22\x4d\x18", "LZ4")])
def test_other_compressions_are_refused_by_name(tmp_path, magic, name):
    (tmp_path / "X.csv.zst").write_bytes(magic + bytes(100))
    refused(tmp_path / "X.csv.zst", name, "Decompress")


def test_options_that_do_not_apply_are_refused(tmp_path):
    path = tmp_path / "X.mtx"
    path.write_text(MTX + "1 1 1\n1 1 1\n")
    refused(path, "for triples", "'mtx'", columns=["a", "b", "c"])
    refused(path, "h5ad", "'mtx'", layer="counts")


@pytest.mark.parametrize(
    ("format", "package", "extra"),
    [("parquet", "pyarrow", "parquet"), ("h5ad", "anndata.io", "anndata"), ("biom", "biom", "biom")],
)
def test_a_missing_extra_names_its_install_line(tmp_path, monkeypatch, format, package, extra):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    (tmp_path / "X").write_text("whatever")
    refused(tmp_path / "X", f"pip install 'mmpca[{extra}]'", format=format)


def test_an_unreadable_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "X.mtx"
    path.write_text(MTX)

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", denied)
    refused(path, "Permission denied", "permissions")


# --- names ----------------------------------------------------------------------------------------


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "X.mtx"
    write_counts(path, CountTable(sparse.csr_array([[1, 0, 2], [0, 3, 1]]), None, None, []))
    return path


@pytest.mark.parametrize(
    ("names", "pieces"),
    [
        ("a\n", ["expected 2 row names", "found 1"]),
        ("a\nb\nc\nd\n", ["expected 2 row names", "found 4"]),
        ("a\n\n", ["line 2", "expected a name"]),
        ("\n\n", ["line 1", "expected a name"]),
        ("", ["empty"]),
    ],
)
def test_bad_names_files_are_refused(matrix, names, pieces):
    path = matrix.with_name("X.rows.txt")
    path.write_text(names)
    with pytest.raises(InputFileError) as caught:
        read_counts(matrix)
    for piece in ("X.rows.txt", *pieces):
        assert piece in str(caught.value)


def test_given_names_of_wrong_number_are_refused(matrix):
    refused(matrix, "expected 3 feature names", "found 1", feature_names=["a"])
    refused(matrix, "found 2", "transpose=True", feature_names=["a", "b"])
    refused(matrix, "expected 2 row names", "transpose=True", row_names=["a", "b", "c"])


def test_a_names_file_that_is_not_there_is_refused(matrix):
    with pytest.raises(InputFileError, match=r"nowhere\.txt: there is no such file"):
        read_counts(matrix, row_names=matrix.with_name("nowhere.txt"))


def test_names_in_another_encoding_are_refused(matrix):
    matrix.with_name("X.columns.txt").write_bytes("a\nb\né\n".encode("latin-1"))
    with pytest.raises(InputFileError, match=r"X\.columns\.txt, line 3: expected UTF-8"):
        read_counts(matrix)
