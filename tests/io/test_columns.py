"""Tables of counts in workbooks and Parquet files, and workbooks that are no tables."""

import zipfile

import numpy as np
import pandas as pd
import pytest

from mmpca.errors import InputFileError
from mmpca.io import detect_format, read_counts
from mmpca.io.columns import read_columns

openpyxl = pytest.importorskip("openpyxl")

COUNTS = np.array([[1, 0, 2, 5], [0, 3, 1, 0]])
FRAME = pd.DataFrame(COUNTS, index=["x", "y"], columns=["oak", "elm", "fir", "ash"])
WRITERS = {
    "X.xlsx": lambda frame, path, **options: frame.to_excel(path, **options),
    "X.parquet": pd.DataFrame.to_parquet,
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Return a function that writes a data frame and returns the path."""

    def write(frame, **options):
        WRITERS[request.param](frame, tmp_path / request.param, **options)
        return tmp_path / request.param

    return write


def test_a_wide_table_is_read_with_its_names(write):
    table = read_counts(write(FRAME))
    assert table.X.toarray().tolist() == COUNTS.tolist()
    assert (table.row_names.tolist(), table.feature_names.tolist()) == (["x", "y"], ["oak", "elm", "fir", "ash"])
    table = read_counts(write(FRAME, index=False))
    assert table.X.toarray().tolist() == COUNTS.tolist()
    assert (table.row_names, table.notes) == (None, [])
    turned = read_counts(write(FRAME.rename_axis("site")), transpose=True)
    assert turned.X.toarray().tolist() == COUNTS.T.tolist()
    assert turned.row_names.tolist() == ["oak", "elm", "fir", "ash"]


@pytest.mark.parametrize("value", [-1, 0.5, None, "many"])
def test_a_cell_that_is_no_count_is_an_error_with_its_record(write, value):
    frame = FRAME.astype(object if isinstance(value, str) else float)
    frame.iloc[1, 2] = value
    path = write(frame.astype(str) if isinstance(value, str) else frame, index=False)
    with pytest.raises(InputFileError) as caught:
        read_counts(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_workbook_is_recognized_by_its_content(tmp_path):
    FRAME.to_excel(tmp_path / "X.xlsx")
    (tmp_path / "X.xlsx").rename(tmp_path / "X.csv")
    assert detect_format(tmp_path / "X.csv") == "xlsx"
    assert read_counts(tmp_path / "X.csv").X.toarray().tolist() == COUNTS.tolist()


def test_sheets_are_for_workbooks(tmp_path):
    FRAME.to_csv(tmp_path / "X.csv")
    with pytest.raises(InputFileError):
        read_counts(tmp_path / "X.csv", sheet="first")


def test_a_workbook_that_is_damaged_empty_or_old_is_an_error(tmp_path):
    path = tmp_path / "X.xlsx"
    openpyxl.Workbook().save(path)
    with pytest.raises(InputFileError, match="CSV"):
        read_counts(path)
    FRAME.to_excel(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for spoiled in ({"xl/workbook.xml": b"<a>"}, {"xl/worksheets/sheet1.xml": b"<a>"}):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (members | spoiled).items():
                archive.writestr(name, content)
        with pytest.raises(InputFileError, match="CSV") as caught:
            read_counts(path)
        assert caught.value.path == path
    path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(1000))
    with pytest.raises(InputFileError, match="CSV"):
        read_counts(path)


def test_a_workbook_that_claims_to_be_huge_takes_little_memory(tmp_path):
    book = openpyxl.Workbook()
    book.active["XFD1048576"] = 1
    for row in range(1, 2000):
        book.active[f"XFD{row}"] = 1
    book.save(tmp_path / "X.xlsx")
    with pytest.raises(InputFileError) as caught:
        read_counts(tmp_path / "X.xlsx")
    assert caught.value.path == tmp_path / "X.xlsx"


def test_the_metadata_of_qiime_are_columns(tmp_path):
    path = tmp_path / "map.tsv"
    path.write_text("#SampleID\tBodySite\n#q2:types\tcategorical\nL1S8\tgut\nL1S57\ttongue\n")
    table = read_columns(path)
    assert (table.titles, table.numbers) == (["SampleID", "BodySite"], [1, 2])
    assert table.column("BodySite") == ["gut", "tongue"]


def test_damaged_metadata_of_pandas_are_an_error(tmp_path):
    path = tmp_path / "X.parquet"
    FRAME.to_parquet(path)
    sound = path.read_bytes()
    for damaged in (b'"index_colum\xffs"', b'"index_columns\x01'):
        path.write_bytes(sound.replace(b'"index_columns"', damaged))
        with pytest.raises(InputFileError) as caught:
            read_counts(path)
        assert caught.value.path == path
