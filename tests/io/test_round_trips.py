"""Counts and names that were written to a file are read from it unchanged."""

import bz2
import gzip
import lzma
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import io as scipy_io
from scipy import sparse

from mmpca.io import CountTable, detect_format, read_counts, write_counts
from mmpca.io.delimited import read_table
from mmpca.io.matrix_market import read_matrix_market
from mmpca.io.table import Request

# Names of all kinds without line ends. They start with a letter because numbers would not be recognized as names.
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8).map(lambda text: "n" + text)


@st.composite
def tables(draw, *, min_rows=1, names=NAMES):
    """Draw counts with names; no row or column is empty, because triples do not have empty ones."""
    shape = draw(st.tuples(st.integers(min_rows, 6), st.integers(1, 5)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 0, 0, 1, 2, 17, 2**31 - 1])))
    counts[:, 0] |= counts.sum(axis=1) == 0
    counts[0] |= counts.sum(axis=0) == 0
    rows = draw(st.lists(names, min_size=shape[0], max_size=shape[0], unique=True))
    features = draw(st.lists(names, min_size=shape[1], max_size=shape[1], unique=True))
    return CountTable(sparse.csr_array(counts), np.array(rows, dtype=object), np.array(features, dtype=object), [])


def round_trips(test):
    """Run a test on random tables; it may use one temporary folder for all of them."""
    quiet = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    return quiet(given(table=tables())(test))


def assert_same(read, expected):
    assert isinstance(read.X, sparse.csr_array)
    assert read.X.dtype == np.int32
    assert read.X.has_canonical_format
    assert read.X.nnz == (expected.X.toarray() > 0).sum()
    np.testing.assert_array_equal(read.X.toarray(), expected.X.toarray())
    np.testing.assert_array_equal(read.row_names, expected.row_names)
    np.testing.assert_array_equal(read.feature_names, expected.feature_names)
    assert read.row_names.dtype == read.feature_names.dtype == object


def frame(table):
    return pd.DataFrame(table.X.toarray(), index=table.row_names, columns=table.feature_names)


def long_frame(table):
    """Return triples, some of them twice, in which names first appear in the order of the table."""
    long = frame(table).stack().rename_axis(["doc", "word"]).rename("count").reset_index()
    first = long.drop_duplicates("doc")
    return pd.concat([long[long["doc"] == table.row_names[0]], first, long[long["count"] > 0]])


def summed(table):
    """Return the table of the sums of the triples of `long_frame`."""
    totals = long_frame(table).groupby(["doc", "word"])["count"].sum().unstack(fill_value=0)
    return table._replace(X=sparse.csr_array(totals.loc[table.row_names, table.feature_names].to_numpy()))


@pytest.mark.parametrize("name", ["X.npz", "X.mtx", "X.mtx.gz"])
@round_trips
def test_written_counts_are_read(tmp_path, name, table):
    write_counts(tmp_path / name, table)
    assert_same(read_counts(tmp_path / name), table)


@round_trips
def test_npz_of_scipy_is_read(tmp_path, table):
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "X.npz", table.X.asformat(kind))
        read = read_counts(tmp_path / "X.npz", row_names=table.row_names, feature_names=table.feature_names)
        assert_same(read, table)


@round_trips
def test_npz_is_read_by_scipy(tmp_path, table):
    write_counts(tmp_path / "X.npz", table)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "X.npz").toarray(), table.X.toarray())


@pytest.mark.parametrize("field", ["integer", "real"])
@pytest.mark.parametrize("is_dense", [False, True])
@round_trips
def test_matrix_market_of_scipy_is_read(tmp_path, field, is_dense, table):
    X = table.X.toarray() if is_dense else table.X
    scipy_io.mmwrite(tmp_path / "X.mtx", X.astype(float) if field == "real" else X, field=field)
    assert_same(read_counts(tmp_path / "X.mtx", row_names=table.row_names, feature_names=table.feature_names), table)


@pytest.mark.parametrize(("name", "delimiter"), [("X.csv", ","), ("X.tsv", "\t")])
@round_trips
def test_tables_are_read(tmp_path, name, delimiter, table):
    frame(table).to_csv(tmp_path / name, sep=delimiter)
    assert_same(read_counts(tmp_path / name, format="table"), table)
    frame(table).T.to_csv(tmp_path / name, sep=delimiter)
    assert_same(read_counts(tmp_path / name, format="table", transpose=True), table)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " "])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table=tables(names=st.from_regex(r"[a-zéß]{1,5}", fullmatch=True)))
def test_delimiters_are_detected_without_a_suffix(tmp_path, delimiter, table):
    frame(table).to_csv(tmp_path / "X.txt", sep=delimiter)
    assert_same(read_counts(tmp_path / "X.txt", format="table"), table)


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
@round_trips
def test_compressed_tables_are_read_whatever_their_suffix(tmp_path, opener, table):
    with opener(tmp_path / "X.csv", "wt", encoding="utf-8", newline="") as stream:
        frame(table).to_csv(stream)
    assert_same(read_counts(tmp_path / "X.csv", format="table"), table)


@pytest.mark.parametrize("has_arrow", [True, False])
@round_trips
def test_triples_are_read_and_duplicates_summed(tmp_path, monkeypatch, has_arrow, table):
    if not has_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = unsaturated(table)
    long_frame(table).to_csv(tmp_path / "X.csv", index=False)
    assert detect_format(tmp_path / "X.csv") == "triples"
    assert_same(read_counts(tmp_path / "X.csv"), summed(table))


@round_trips
def test_triples_in_parquet_are_read(tmp_path, table):
    table = unsaturated(table)
    long_frame(table).to_parquet(tmp_path / "X.parquet")
    columns = ["doc", "word", "count"]
    assert_same(read_counts(tmp_path / "X.parquet", columns=columns), summed(table))
    swapped = read_counts(tmp_path / "X.parquet", columns=["word", "doc", "count"], transpose=True)
    assert_same(swapped, summed(table))


@round_trips
def test_given_names_fix_the_order_of_triples(tmp_path, table):
    frame(table).stack().rename_axis(["doc", "word"]).rename("count").reset_index().to_csv(
        tmp_path / "X.csv", index=False
    )
    order = {"row_names": table.row_names[::-1], "feature_names": table.feature_names[::-1]}
    expected = CountTable(table.X[::-1, ::-1], *order.values(), [])
    assert_same(read_counts(tmp_path / "X.csv", **order), expected)


@round_trips
def test_bags_of_words_are_read(tmp_path, table):
    coo = table.X.tocoo()
    triples = "".join(f"{i + 1} {v + 1} {x}\n" for i, v, x in zip(coo.row, coo.col, coo.data, strict=True))
    header = f"{table.X.shape[0]}\n{table.X.shape[1]}\n{coo.nnz}\n"
    (tmp_path / "docword.kos.txt").write_text(header + triples)
    (tmp_path / "vocab.kos.txt").write_text("\n".join(table.feature_names), encoding="utf-8", newline="\n")
    assert detect_format(tmp_path / "docword.kos.txt") == "uci"
    assert_same(read_counts(tmp_path / "docword.kos.txt", row_names=table.row_names), table)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@round_trips
def test_h5ad_is_read(tmp_path, kind, table):
    import anndata

    X = table.X.toarray() if kind == "dense" else table.X.asformat(kind)
    names = pd.DataFrame(index=table.row_names.astype(str)), pd.DataFrame(index=table.feature_names.astype(str))
    anndata.AnnData(X.astype(np.float64), *names, layers={"counts": X}).write_h5ad(tmp_path / "X.h5ad")
    assert detect_format(tmp_path / "X.h5ad") == "h5ad"
    assert_same(read_counts(tmp_path / "X.h5ad"), table)
    assert_same(read_counts(tmp_path / "X.h5ad", layer="counts"), table)


@pytest.mark.parametrize("version", [1, 2])
@round_trips
def test_biom_is_read(tmp_path, version, table):
    import biom
    import h5py

    content = biom.Table(table.X.toarray().T, table.feature_names, table.row_names)
    if version == 1:
        (tmp_path / "X.biom").write_text(content.to_json("a test"), encoding="utf-8")
    else:
        with h5py.File(tmp_path / "X.biom", "w") as file:
            content.to_hdf5(file, "a test")
    assert detect_format(tmp_path / "X.biom") == "biom"
    assert_same(read_counts(tmp_path / "X.biom"), table)


@pytest.mark.parametrize("name", ["X.mtx", "X.csv"])
@round_trips
def test_blocks_of_few_bytes_give_the_same(tmp_path, name, table):
    request = Request(tmp_path / name, block_size=7)
    if name == "X.mtx":
        write_counts(request.path, table)
        assert_same(read_matrix_market(request), table)
    else:
        frame(table).to_csv(request.path)
        assert_same(read_table(request), table)


def unsaturated(table):
    """Return a table whose counts can be doubled without overflow."""
    return table._replace(X=sparse.csr_array(np.minimum(table.X.toarray(), 10**6)))
