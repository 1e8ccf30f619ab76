"""The same counts are read from every form in which formats allow to write them; changes are noted."""

import gzip
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mmpca.errors import InputFileError
from mmpca.io import CountTable, detect_format, read_counts, write_counts

COUNTS = np.array([[1, 0, 2], [0, 3, 1]])
MTX = "%%MatrixMarket matrix coordinate integer general\n"
BODY = "1 1 1\n1 3 2\n2 2 3\n2 3 1\n"


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def assert_counts(table, rows=None, features=None, n_notes=0):
    np.testing.assert_array_equal(table.X.toarray(), COUNTS)
    for names, expected in ((table.row_names, rows), (table.feature_names, features)):
        assert (None if names is None else names.tolist()) == expected
    assert len(table.notes) == n_notes


# --- Matrix Market --------------------------------------------------------------------------------

MATRIX_MARKET = {
    "plain": MTX + "2 3 4\n" + BODY,
    "comments": MTX + "% one\n%\n\n2 3 4\n" + BODY,
    "capitals": MTX.upper() + "2 3 4\n" + BODY,
    "no newline at the end": MTX + "2 3 4\n" + BODY.rstrip(),
    "lines of Windows": (MTX + "2 3 4\n" + BODY).replace("\n", "\r\n"),
    "tabs and spaces": MTX + " 2\t3  4 \n" + BODY.replace(" ", " \t "),
    "empty lines and comments within": MTX + "2 3 4\n" + BODY.replace("2 2", "\n% here\n2 2"),
    "real, aligned": MTX.replace("integer", "real") + "2 3 4\n" + BODY.replace(" ", "  ").replace("\n", ".\n"),
    "real": MTX.replace("integer", "real") + "2 3 4\n" + BODY.replace(" 2\n", " 2.0e+00\n"),
    "out of order": MTX + "2 3 4\n2 3 1\n1 3 2\n2 2 3\n1 1 1\n",
    "dense, real": MTX.replace("coordinate integer", "array real") + "2 3\n1.0\n0.\n0\n3e0\n\n% here\n2\n1\n",
    "dense": MTX.replace("coordinate", "array") + "2 3\n1\n0\n0\n3\n2\n1\n",
}


@pytest.mark.parametrize("text", MATRIX_MARKET.values(), ids=MATRIX_MARKET)
def test_matrix_market_in_all_its_forms(tmp_path, text):
    assert_counts(read_counts(write(tmp_path / "X.mtx", text)))


def test_symmetric_entries_count_twice_off_the_diagonal(tmp_path):
    header = MTX.replace("general", "symmetric")
    for text in (header + "2 2 2\n1 1 5\n2 1 4\n", header.replace("coordinate", "array") + "2 2\n5\n4\n0\n"):
        X = read_counts(write(tmp_path / "X.mtx", text)).X
        np.testing.assert_array_equal(X.toarray(), [[5, 4], [4, 0]])


def test_patterns_count_one_each(tmp_path):
    text = MTX.replace("integer", "pattern") + "2 2 2\n1 1\n2 1\n"
    np.testing.assert_array_equal(read_counts(write(tmp_path / "X.mtx", text)).X.toarray(), [[1, 0], [1, 0]])


def test_repeated_entries_are_summed_and_zeros_dropped_with_notes(tmp_path):
    text = MTX + "2 3 7\n1 3 1\n1 1 1\n1 3 1\n2 2 3\n2 3 1\n2 1 0\n1 2 0\n"
    assert_counts(read_counts(write(tmp_path / "X.mtx", text)), n_notes=2)


def test_transposing_is_noted(tmp_path):
    write_counts(tmp_path / "X.mtx", CountTable(sparse.csr_array(COUNTS.T), None, None, []))
    assert_counts(read_counts(tmp_path / "X.mtx", transpose=True), n_notes=1)
    write_counts(tmp_path / "X.npz", CountTable(sparse.csr_array(COUNTS.T), ["a", "b", "c"], ["x", "y"], []))
    assert_counts(read_counts(tmp_path / "X.npz", transpose=True), ["x", "y"], ["a", "b", "c"], n_notes=1)


# --- names beside the counts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "rows", "features"),
    [
        ("X.mtx", "X.rows.txt", "X.columns.txt"),
        ("X.mtx", "X_row_names.txt", "X_col_names.txt"),
        ("counts.mtx", "samples.csv", "features.csv"),
        ("a_matrix.mtx", "a_documents.txt", "a_vocab.txt"),
    ],
)
def test_names_are_found_beside_the_counts(tmp_path, counts, rows, features):
    write(tmp_path / counts, MTX + "2 3 4\n" + BODY)
    write(tmp_path / rows, "x\ny\n")
    write(tmp_path / features, "a\nb\nc")
    write(tmp_path / "other.rows.txt", "of another file\n")
    assert_counts(read_counts(tmp_path / counts), ["x", "y"], ["a", "b", "c"])


def test_a_header_of_a_names_file_is_skipped_with_a_note(tmp_path):
    write(tmp_path / "counts.mtx", MTX + "2 3 4\n" + BODY)
    write(tmp_path / "features.csv", 'feature,total\n"a,b",1\nc,3\nd,3\n')
    assert_counts(read_counts(tmp_path / "counts.mtx"), None, ["a,b", "c", "d"], n_notes=1)


@pytest.mark.parametrize("features", ["features.tsv.gz", "genes.tsv.gz"])
def test_folders_of_cell_counters_are_transposed(tmp_path, features):
    entries = "".join(f"{v + 1} {i + 1} {COUNTS[i, v]}\n" for i, v in np.argwhere(COUNTS))
    (tmp_path / "matrix.mtx.gz").write_bytes(gzip.compress((MTX + "3 2 4\n" + entries).encode()))
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"AAA-1\nCCC-1\n"))
    (tmp_path / features).write_bytes(gzip.compress(b"E1\tTP53\tGene\nE2\tMYC\tGene\nE3\tACTB\tGene\n"))
    table = read_counts(tmp_path / "matrix.mtx.gz")
    assert_counts(table, ["AAA-1", "CCC-1"], ["TP53", "MYC", "ACTB"], n_notes=1)
    (tmp_path / features).write_bytes(gzip.compress(b"E1\tTP53\nE2\tTP53\nE3\tACTB\n"))
    table = read_counts(tmp_path / "matrix.mtx.gz")
    assert_counts(table, ["AAA-1", "CCC-1"], ["E1", "E2", "ACTB"], n_notes=2)


def test_repeated_names_are_noted(tmp_path):
    table = read_counts(write(tmp_path / "X.csv", "id,a,a,b\nx,1,0,2\ny,0,3,1\n"))
    assert_counts(table, ["x", "y"], ["a", "a", "b"], n_notes=1)


# --- tables ---------------------------------------------------------------------------------------

TABLES = {
    "header and names": ("id,a,b,c\nx,1,0,2\ny,0,3,1\n", ["x", "y"], ["a", "b", "c"]),
    "header of pandas": (",a,b,c\n0,1,0,2\n1,0,3,1\n", ["0", "1"], ["a", "b", "c"]),
    "header of R": ("a\tb\tc\nx\t1\t0\t2\ny\t0\t3\t1\n", ["x", "y"], ["a", "b", "c"]),
    "header of R, quoted": ('"a" "b" "c"\n"x" 1 0 2\n"y" 0 3 1\n', ["x", "y"], ["a", "b", "c"]),
    "header only": ("a;b;c\n1;0;2\n0;3;1\n", None, ["a", "b", "c"]),
    "names only": ("x,1,0,2\ny,0,3,1\n", ["x", "y"], None),
    "neither": ("1,0,2\n0,3,1\n", None, None),
    "numbers as names of features": (",1,2,3\nx,1,0,2\ny,0,3,1\n", ["x", "y"], ["1", "2", "3"]),
    "names with delimiters": (
        'id,"a, b",c,"d ""e"""\n"x, 1",1,0,2\n"y ""2""",0,3,1\n',
        ["x, 1", 'y "2"'],
        ["a, b", "c", 'd "e"'],
    ),
    "byte order mark": ("\ufeffid,a,b,c\nx,1,0,2\ny,0,3,1\n", ["x", "y"], ["a", "b", "c"]),
    "lines of Windows": ("id,a,b,c\r\nx,1,0,2\r\ny,0,3,1\r\n", ["x", "y"], ["a", "b", "c"]),
    "no newline at the end": ("id,a,b,c\nx,1,0,2\ny,0,3,1", ["x", "y"], ["a", "b", "c"]),
    "empty lines": ("id,a,b,c\n\nx,1,0,2\n\ny,0,3,1\n\n", ["x", "y"], ["a", "b", "c"]),
    "spaces and floats": ("id, a, b, c\nx, 1.0, 0, 2e0\ny, 0, 3, 1\n", ["x", "y"], [" a", " b", " c"]),
    "quoted numbers": ('id,a,b,c\nx,"1","0","2"\ny,"0","3","1"\n', ["x", "y"], ["a", "b", "c"]),
}


@pytest.mark.parametrize(("text", "rows", "features"), TABLES.values(), ids=TABLES)
def test_tables_in_all_their_forms(tmp_path, text, rows, features):
    path = write(tmp_path / "X.csv", text)
    assert detect_format(path) == "table"
    assert_counts(read_counts(path), rows, features)


def test_tables_of_species_by_sample_are_transposed(tmp_path):
    text = "# Constructed from biom file\n#OTU ID\tx\ty\na\t1.0\t0.0\nb\t0.0\t3.0\nc\t2.0\t1.0\n"
    table = read_counts(write(tmp_path / "X.tsv", text))
    assert_counts(table, ["x", "y"], ["a", "b", "c"], n_notes=1)


OTUS = '#OTU ID\tx\ty\ttaxonomy\na\t1\t0\tk__Bacteria; p__A\nb\t0\t3\t"k__Bacteria; ""p"""\nc\t2\t1\tUnassigned\n'


@pytest.mark.parametrize("title", ["#OTU ID", "OTU ID", "id", "", "#NAME"])
def test_a_taxonomy_annotates_the_features_of_a_transposed_table(tmp_path, title):
    table = read_counts(write(tmp_path / "X.tsv", OTUS.replace("#OTU ID", title)))
    assert_counts(table, ["x", "y"], ["a", "b", "c"], n_notes=2)
    assert table.feature_annotations["taxonomy"].tolist() == ["k__Bacteria; p__A", 'k__Bacteria; "p"', "Unassigned"]


def test_a_taxonomy_is_left_out_if_the_rows_are_no_features(tmp_path):
    table = read_counts(write(tmp_path / "X.tsv", OTUS), transpose=False)
    assert (table.row_names.tolist(), table.feature_annotations) == (["a", "b", "c"], None)
    assert len(table.notes) == 1


def test_a_bad_count_before_a_taxonomy_is_an_error_at_its_line(tmp_path):
    path = write(tmp_path / "X.tsv", OTUS.replace("\t3\t", "\t-3\t"))
    with pytest.raises(InputFileError) as caught:
        read_counts(path)
    assert (caught.value.path, caught.value.line) == (path, 3)


@pytest.mark.parametrize(
    "names",
    [
        ["OTU1", "OTU2", "OTU3"],
        ["ASV_1", "ASV_2", "ASV_9"],
        ["ENSG00000139618", "ENSG00000139619", "ENSG00000139620.3"],
    ],
)
def test_rows_named_like_features_are_noted_unless_the_caller_decides(tmp_path, names):
    path = write(tmp_path / "X.csv", "id,a,b,c\n" + "".join(f"{name},1,2,0\n" for name in names))
    notes = read_counts(path).notes
    assert sum("--transpose" in note for note in notes) == 1
    assert read_counts(path, transpose=False).notes == []
    assert read_counts(path, transpose=True).feature_names.tolist() == names


# --- counts of RNA in cells -----------------------------------------------------------------------------------------


def write_cells(folder, genes="features", packed=".gz"):
    """Write the folder of a program that counts RNA in cells: genes by cells."""
    folder.mkdir()
    names = {genes: "G1\tA\tGene Expression\nG2\tB\tGene Expression\nG3\tC\tGene Expression\n", "barcodes": "x\ny\n"}
    matrix = "%%MatrixMarket matrix coordinate integer general\n3 2 4\n1 1 1\n3 1 2\n2 2 3\n3 2 1\n"
    files = {f"{name}.tsv{packed}": text for name, text in names.items()} | {f"matrix.mtx{packed}": matrix}
    for name, text in files.items():
        (folder / name).write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return folder


@pytest.mark.parametrize(("genes", "packed"), [("features", ".gz"), ("genes", "")])
def test_a_folder_of_cells_is_read_as_one_matrix(tmp_path, genes, packed):
    table = read_counts(write_cells(tmp_path / "cells", genes, packed))
    assert_counts(table, ["x", "y"], ["A", "B", "C"], n_notes=1)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("symbols", [["A", "B", "C"], ["A", "A", "C"]])
def test_hdf5_files_of_cells_are_read(tmp_path, version, symbols):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "cells.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        X = sparse.csr_array([[1, 0, 2], [0, 3, 1]])  # cells by genes
        for name, values in {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": [3, 2]}.items():
            group[name] = values
        group["barcodes"] = np.array([b"x", b"y"])
        genes = group.create_group("features") if version == 3 else group
        genes["id" if version == 3 else "genes"] = np.array([b"G1", b"G2", b"G3"])
        genes["name" if version == 3 else "gene_names"] = np.array([symbol.encode() for symbol in symbols])
    assert detect_format(path) == "10x"
    unique = len(set(symbols)) == 3
    table = read_counts(path)
    assert_counts(table, ["x", "y"], symbols if unique else ["G1", "G2", "C"], n_notes=2 - unique)
    with h5py.File(path, "a") as file:
        del next(iter(file.values()))["indices"]
    with pytest.raises(InputFileError):
        read_counts(path, format="10x")


# --- encodings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("has_arrow", [True, False])
def test_tables_and_triples_in_other_encodings(tmp_path, encoding, has_arrow, monkeypatch):
    if not has_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    n_notes = encoding == "cp1252"
    path = tmp_path / "X.csv"
    path.write_bytes("id,rosé,Öl,naïve\r\nx,1,0,2\r\ny,0,3,1\r\n".encode(encoding))
    assert_counts(read_counts(path), ["x", "y"], ["rosé", "Öl", "naïve"], n_notes=n_notes)
    path.write_bytes("doc,word,count\nx,rosé,1\nx,naïve,2\ny,Öl,3\ny,naïve,1\n".encode(encoding))
    table = read_counts(path, feature_names=["rosé", "Öl", "naïve"])
    assert_counts(table, ["x", "y"], ["rosé", "Öl", "naïve"], n_notes=n_notes)


def test_a_given_encoding_is_used_for_the_whole_table(tmp_path):
    path = tmp_path / "X.csv"
    path.write_bytes("id,липы,b,c\nx,1,0,2\ny,0,3,1\n".encode("cp1251"))
    assert_counts(read_counts(path, encoding="cp1251"), ["x", "y"], ["липы", "b", "c"])
    for encoding in ("ascii", "nothing", "base64", "utf-16"):
        with pytest.raises(InputFileError) as caught:
            read_counts(path, encoding=encoding)
        assert caught.value.path == path


def test_given_names_go_before_those_of_a_table(tmp_path):
    path = write(tmp_path / "X.csv", "id,a,b,c\nx,1,0,2\ny,0,3,1\n")
    assert_counts(read_counts(path, row_names=["p", "q"], feature_names=("r", "s", "t")), ["p", "q"], ["r", "s", "t"])


def test_a_long_first_line_is_read_to_its_end(tmp_path):
    header = ",".join(f"feature{v}" for v in range(20_000))
    path = write(tmp_path / "X.csv", f"{header}\n{','.join(['1'] * 20_000)}\n")
    table = read_counts(path)
    assert table.X.shape == (1, 20_000)
    assert table.X.sum() == 20_000


# --- triples --------------------------------------------------------------------------------------

TRIPLES = {
    "named": "doc,word,count\nx,a,1\nx,b,0\nx,c,2\ny,b,3\ny,c,1\n",
    "named otherwise, in another order": "n\tGene_ID\tcells\n1\ta\tx\n0\tb\tx\n2\tc\tx\n3\tb\ty\n1\tc\ty\n",
    "more columns": "doc,year,word,count\nx,1999,a,1\nx,1999,b,0\nx,1,c,2\ny,1,b,3\ny,1,c,1\n",
    "no header": "x,a,1\nx,b,0\nx,c,2\ny,b,3\ny,c,1\n",
    "lines of Windows": "doc,word,count\r\nx,a,1\r\nx,b,0\r\nx,c,2\r\ny,b,3\r\ny,c,1\r\n",
    "quotes": '"doc","word","count"\n"x","a",1\n"x","b",0\n"x","c",2\n"y","b",3\n"y","c","1"\n',
}


@pytest.mark.parametrize("has_arrow", [True, False])
@pytest.mark.parametrize("text", TRIPLES.values(), ids=TRIPLES)
def test_triples_in_all_their_forms(tmp_path, monkeypatch, has_arrow, text):
    if not has_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path / "X.csv", text)
    assert detect_format(path) == "triples"
    assert_counts(read_counts(path), ["x", "y"], ["a", "b", "c"], n_notes=1)


def test_triples_that_are_guessed_are_noted(tmp_path):
    path = write(tmp_path / "X.csv", "page,lemma,amount\n1,sun,1\n1,sea,2\n2,sun,4\n")
    assert len(read_counts(path).notes) == 1
    assert read_counts(path, format="triples").notes == []
    assert read_counts(path, columns=["page", "lemma", "amount"]).notes == []


def test_columns_make_a_table_triples(tmp_path):
    path = write(tmp_path / "X.csv", "page,lemma,amount\n1,7,1\n1,8,2\n2,7,4\n")
    assert detect_format(path) == "table"
    table = read_counts(path, columns=["page", "lemma", "amount"])
    np.testing.assert_array_equal(table.X.toarray(), [[1, 2], [4, 0]])
    assert table.row_names.tolist() == ["1", "2"]
    assert table.feature_names.tolist() == ["7", "8"]


def test_names_that_never_occur_get_empty_rows_and_columns(tmp_path):
    path = write(tmp_path / "X.csv", "doc,word,count\ny,b,3\n")
    table = read_counts(path, row_names=["x", "y"], feature_names=["a", "b"])
    np.testing.assert_array_equal(table.X.toarray(), [[0, 0], [0, 3]])


# --- detection ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("counts", MTX + "2 3 4\n" + BODY, "mtx"),
        ("counts.csv", MTX + "2 3 4\n" + BODY, "mtx"),
        ("words.txt", "2\n3\n4\n" + BODY, "uci"),
        ("counts.txt", "1 2 3\n4 5 6\n", "table"),
        ("counts.dat", "doc\tterm\tfreq\n1\t2\t3\n", "triples"),
        ("X.json.biom", '{"id": null}', "biom"),
        ("table", '{"format": "Biological Observation Matrix 1.0.0"}', "biom"),
        ("broken.mtx", "nothing of the sort\n", "mtx"),
    ],
)
def test_formats_are_known_by_content_before_their_ending(tmp_path, name, text, expected):
    assert detect_format(str(write(tmp_path / name, text))) == expected


def test_binary_formats_are_known_without_an_ending(tmp_path):
    import anndata
    import biom
    import h5py
    import pandas as pd

    write_counts(tmp_path / "X.npz", CountTable(sparse.csr_array(COUNTS), None, None, []))
    pd.DataFrame({"doc": ["x"], "word": ["a"], "count": [1]}).to_parquet(tmp_path / "X.parquet")
    anndata.AnnData(COUNTS.astype(float)).write_h5ad(tmp_path / "X.h5ad")
    with h5py.File(tmp_path / "X.biom", "w") as file:
        biom.Table(COUNTS, ["x", "y"], ["a", "b", "c"]).to_hdf5(file, "a test")
    for format in ("npz", "parquet", "h5ad", "biom"):
        path = (tmp_path / f"X.{format}").rename(tmp_path / f"{format}_without_ending")
        assert detect_format(path) == format
        assert read_counts(path).X.nnz > 0


def test_raw_counts_of_an_h5ad_file_are_read(tmp_path):
    import anndata

    adata = anndata.AnnData(COUNTS.astype(float))
    adata.var_names = ["a", "b", "c"]
    adata.raw = adata
    adata = adata[:, :2].copy()
    adata.X = adata.X / 2
    adata.write_h5ad(tmp_path / "X.h5ad")
    assert_counts(read_counts(tmp_path / "X.h5ad", layer="raw"), ["0", "1"], ["a", "b", "c"])


def test_biom_can_be_left_as_it_is(tmp_path):
    import biom

    write(tmp_path / "X.biom", biom.Table(COUNTS, ["x", "y"], ["a", "b", "c"]).to_json("a test"))
    assert_counts(read_counts(tmp_path / "X.biom", transpose=False), ["x", "y"], ["a", "b", "c"])


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_line_that_names_the_delimiter_to_excel_is_no_data(tmp_path, delimiter, encoding):
    lines = [f"sep={delimiter}", delimiter.join(["site", "oak", "fir"]), delimiter.join(["hill", "2", "1"])]
    path = tmp_path / "X.csv"
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(encoding))
    table = read_counts(path)
    np.testing.assert_array_equal(table.X.toarray(), [[2, 1]])
    assert (table.row_names.tolist(), table.feature_names.tolist()) == (["hill"], ["oak", "fir"])


@pytest.mark.parametrize("name", ["table.xlsx", "table.xls", "table.csv", "table", "table.npz"])
@pytest.mark.parametrize("age", ["old", "new"])
def test_a_workbook_is_refused_with_advice_whatever_its_name(tmp_path, name, age):
    path = tmp_path / name
    if age == "old":
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/worksheets/sheet1.xml", "<worksheet/>")
    with pytest.raises(InputFileError, match="Excel") as caught:
        read_counts(path)
    assert caught.value.path == path


@pytest.mark.parametrize("index", [False, True, "patient", "words"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("n_features", [2, 3, 7])
def test_a_header_of_numbers_is_a_header_rather_than_a_row(tmp_path, index, delimiter, n_features):
    counts = np.random.default_rng(0).poisson(4, (60, n_features)) + 1
    frame = pd.DataFrame(counts)
    if isinstance(index, str):
        frame.index = pd.Index([f"{index} {i}" for i in range(60)], name=index)
    frame.to_csv(tmp_path / "X.csv", sep=delimiter, index=bool(index))
    table = read_counts(tmp_path / "X.csv")
    np.testing.assert_array_equal(table.X.toarray(), counts)
    assert table.feature_names.tolist() == [str(v) for v in range(n_features)]
    assert len(table.notes) == 1


@pytest.mark.parametrize("text", ["plot,12,3,40\n1,1,2,3\n2,4,5,6\n", "sample,12,3,40\na,1,2,3\nb,4,5,6\n"])
def test_any_numbers_after_the_title_of_the_names_are_titles(tmp_path, text):
    (tmp_path / "X.csv").write_text(text)
    table = read_counts(tmp_path / "X.csv")
    assert table.X.toarray().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert table.feature_names.tolist() == ["12", "3", "40"]
    assert len(table.notes) == 1


def test_a_header_as_r_writes_it_may_hold_numbers(tmp_path):
    (tmp_path / "X.tsv").write_text('"1"\t"2"\n"7"\t1\t2\n"8"\t4\t5\n')
    table = read_counts(tmp_path / "X.tsv")
    assert (table.row_names.tolist(), table.feature_names.tolist()) == (["7", "8"], ["1", "2"])
    assert table.X.toarray().tolist() == [[1, 2], [4, 5]]


@pytest.mark.parametrize("lines", ["ID\tTaxon\ts1\ts2\no1\tg__A\t1\t2\no2\tg__B\t3\t4\n",
                                   "ID\ts1\ts2\tTaxon\no1\t1\t2\tg__A\no2\t3\t4\tg__B\n"])  # fmt: skip
def test_a_taxonomy_is_an_annotation_in_the_second_and_in_the_last_column(tmp_path, lines):
    (tmp_path / "X.tsv").write_text(f"Feature {lines}")
    table = read_counts(tmp_path / "X.tsv")
    assert table.X.toarray().tolist() == [[1, 3], [2, 4]]
    assert table.row_names.tolist() == ["s1", "s2"]
    assert table.feature_annotations["taxonomy"].tolist() == ["g__A", "g__B"]


def test_the_index_that_pandas_wrote_and_read_again_names_the_rows_with_a_note(tmp_path):
    pd.DataFrame(COUNTS, columns=["a", "b", "c"]).to_csv(tmp_path / "X.csv")
    pd.read_csv(tmp_path / "X.csv").to_csv(tmp_path / "X.csv", index=False)
    assert_counts(read_counts(tmp_path / "X.csv"), ["0", "1"], ["a", "b", "c"], n_notes=1)


@pytest.mark.parametrize("first", ["1,2,3,4", "1990,1992,1995,1999,2004", "7,8,9"])
def test_a_first_row_that_looks_like_titles_is_noted(tmp_path, first):
    path = write(tmp_path / "X.csv", f"{first}\n" + "0,1,0,2,1"[: 2 * len(first.split(",")) - 1] + "\n")
    table = read_counts(path)
    assert table.X.shape[0] == 2
    assert len(table.notes) == 1


def test_triples_keep_a_first_line_of_numbers_unless_names_follow(tmp_path):
    path = write(tmp_path / "X.csv", "0,1,2\n3,4,5\n")
    assert read_counts(path, format="triples").X.sum() == 7
    path = write(tmp_path / "Y.csv", "0,1,2\nhill,oak,5\n")
    for format in (None, "triples"):
        table = read_counts(path, format=format)
        assert table.feature_names.tolist() == ["oak"]
        assert table.notes


def test_three_columns_sorted_by_row_are_noted_as_possible_triples(tmp_path):
    path = write(tmp_path / "X.csv", "who,what,amount\n1,7,2\n1,9,1\n2,7,1\n2,8,3\n3,9,1\n")
    assert len(read_counts(path).notes) == 1


def test_three_columns_of_a_parquet_file_are_taken_for_triples_with_a_note(tmp_path):
    counts = np.random.default_rng(0).permutation(60).reshape(20, 3)
    for titles, n_notes in ((["oak", "fir", "elm"], 1), (["row", "feature", "count"], 0)):
        pd.DataFrame(counts, columns=titles).to_parquet(tmp_path / "X.parquet")
        notes = read_counts(tmp_path / "X.parquet").notes
        assert sum("triples" in note for note in notes) == n_notes
        assert not any("triples" in note for note in read_counts(tmp_path / "X.parquet", format="parquet").notes)
