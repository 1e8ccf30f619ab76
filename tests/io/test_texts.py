"""Texts as they are in the wild: encodings, folders, names, and tables of other programs."""

import gzip
import json

import pandas as pd
import pytest

from mmpca.errors import InputFileError
from mmpca.io.streams import detect_encoding
from mmpca.io.texts import read_texts

GERMAN = "Größe der Läsion: über 3 cm, mäßig differenziert"
FRENCH = "Le patient était âgé de 54 ans ; l\u2019aîné \u2013 déjà opéré \u2013 va bien…"


def assert_texts(read, texts, names=None, n_notes=0):
    assert read.texts == texts
    assert names is None or read.names.tolist() == names
    assert len(read.notes) == n_notes


# --- encodings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["Maß in m² und cm³", "¿Qué pasó, señor? ¡Olé!", GERMAN, FRENCH, "naïve", "résumé", "½ l Öl", "5 £", "à", "où"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_western_text_is_read_in_any_common_encoding(tmp_path, text, encoding):
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode(encoding))
    assert_texts(read_texts(path, per="file"), [text], ["x"], n_notes=encoding == "cp1252")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("В лесу родилась ёлочка, в лесу она росла", "cp1251"),  # noqa: RUF001
        ("Η γρήγορη καφέ αλεπού πηδάει", "cp1253"),  # noqa: RUF001
        ("zażółć gęślą jaźń, wszyscy ludzie rodzą się wolni", "cp1250"),
        ("Größe der Läsion über alles", "cp850"),
        ("été déjà opéré", "mac-roman"),
        ("我们的文本没有编码", "gb18030"),
        ("これは日本語の文章です", "shift_jis"),
    ],
)
def test_text_that_is_not_western_is_an_error_until_its_encoding_is_named(tmp_path, text, encoding):
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(InputFileError, match="--encoding") as caught:
        read_texts(path)
    assert (caught.value.path, caught.value.line) == (path, 1)
    assert_texts(read_texts(path, encoding=encoding, per="file"), [text])


def test_each_file_of_a_folder_has_its_own_encoding(tmp_path):
    for number, encoding in enumerate(["utf-8", "cp1252", "cp1252", "utf-16"]):
        (tmp_path / f"{number}.txt").write_bytes(GERMAN.encode(encoding))
    assert_texts(read_texts(tmp_path), [GERMAN] * 4, n_notes=1)
    with pytest.raises(InputFileError) as caught:
        read_texts(tmp_path, encoding="utf-8")
    assert caught.value.path == tmp_path / "1.txt"
    with pytest.raises(InputFileError, match="utf-99"):
        read_texts(tmp_path, encoding="utf-99")


def test_a_character_that_the_sample_cuts_in_half_does_not_matter():
    assert detect_encoding("日本".encode()[:-1]) == "utf-8"


# --- folders and plain text -----------------------------------------------------------------------------------------


def test_a_folder_without_txt_files_is_read_if_its_files_are_texts(tmp_path):
    (tmp_path / "a.md").write_text("one")
    (tmp_path / "B.MD").write_text("two")
    (tmp_path / "c.rst.gz").write_bytes(gzip.compress(b"three"))
    (tmp_path / ".hidden.md").write_text("four")
    assert_texts(read_texts(tmp_path), ["two", "one", "three"], ["B", "a", "c"])


def test_other_files_of_a_folder_are_noted_and_can_be_chosen(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "a.html").write_text("two")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert_texts(read_texts(tmp_path), ["one"], ["a"], n_notes=1)
    assert_texts(read_texts(tmp_path, glob="*.html"), ["two"], ["a"])
    assert_texts(read_texts(tmp_path, glob="a.*"), ["two", "one"], ["a.html", "a.txt"])
    (tmp_path / "a.txt").unlink()
    with pytest.raises(InputFileError, match="--glob"):
        read_texts(tmp_path)


def test_the_parts_of_a_plain_file_are_named_or_noted(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\nA title\n\nFirst line,\nsecond line.\n\n\nEnd\n")
    lines = ["A title", "First line,", "second line.", "End"]
    assert_texts(read_texts(path), lines, ["2", "4", "5", "8"], n_notes=1)
    assert_texts(read_texts(path, per="line"), lines, ["2", "4", "5", "8"])
    paragraphs = ["A title", "First line,\nsecond line.", "End"]
    assert_texts(read_texts(path, per="paragraph"), paragraphs, ["2", "4", "8"])
    assert_texts(read_texts(path, per="file"), [path.read_text()], ["book"])


@pytest.mark.parametrize("option", [{"per": "page"}, {"glob": "*"}, {"id_column": "who"}])
def test_options_that_do_not_apply_are_rejected(tmp_path, option):
    path = tmp_path / "x.txt"
    path.write_text("a text")
    with pytest.raises(InputFileError):
        read_texts(path, **option)


# --- tables -------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {"case": ["A7", "B2", "C9"], "year": [2020, 2021, 2021], "finding": [GERMAN, "malign, grade 2", FRENCH]}
)
TABLES = {
    "x.csv": lambda path: FRAME.to_csv(path, index=False),
    "semicolons.csv": lambda path: FRAME.to_csv(path, index=False, sep=";", encoding="cp1252"),
    "x.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t", encoding="utf-16"),
    "x.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "x.parquet": lambda path: FRAME.to_parquet(path),
    "x.xlsx": lambda path: FRAME.to_excel(path, index=False),
    "x.json": lambda path: FRAME.to_json(path, orient="records"),
    "x.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize("name", TABLES)
def test_texts_and_their_names_are_columns_of_any_table(tmp_path, name):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    TABLES[name](tmp_path / name)
    read = read_texts(tmp_path / name, column="finding", id_column="case")
    assert_texts(read, FRAME["finding"].tolist(), ["A7", "B2", "C9"], n_notes=name == "semicolons.csv")
    numbered = read_texts(tmp_path / name, column="finding")
    assert_texts(numbered, FRAME["finding"].tolist(), ["1", "2", "3"], n_notes=name == "semicolons.csv")
    for options in ({}, {"column": "text"}, {"column": "finding", "id_column": "who"}):
        with pytest.raises(InputFileError, match="finding"):
            read_texts(tmp_path / name, **options)


def test_repeated_names_are_noted(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    read = read_texts(tmp_path / "x.csv", column="finding", id_column="year")
    assert_texts(read, FRAME["finding"].tolist(), ["2020", "2021", "2021"], n_notes=1)


def test_a_json_array_of_strings_is_a_list_of_texts(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(["one", "two"]))
    assert_texts(read_texts(path), ["one", "two"], ["1", "2"])


@pytest.mark.parametrize(
    ("content", "record"), [('["a", 5]', 1), ('[{"text": "a"}, {"text": 5}]', 2), ('[{"text": "a"},', None)]
)
def test_a_bad_json_array_is_an_error_with_its_record(tmp_path, content, record):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputFileError) as caught:
        read_texts(path)
    assert (caught.value.path, caught.value.line) == (path, record)


def test_a_sheet_of_a_workbook_is_chosen_by_name(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "x.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"text": ["one", None, "three"]}).to_excel(book, sheet_name="first", index=False)
        pd.DataFrame({"text": ["four"]}).to_excel(book, sheet_name="second", index=False)
    assert_texts(read_texts(path), ["one", "three"], ["1", "2"], n_notes=1)  # blank rows are skipped
    assert_texts(read_texts(path, sheet="second"), ["four"])
    with pytest.raises(InputFileError, match="second"):
        read_texts(path, sheet="third")
