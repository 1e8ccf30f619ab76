"""Texts come from lines, folders and columns, each with a name, or are refused with file and line."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmpca.errors import InputFileError
from mmpca.text import read_texts

TEXTS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0")).map(lambda text: f"t {text}"),
    min_size=1,
    max_size=5,
)
quiet = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def write(path, content):
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


def assert_texts(read, texts, names):
    assert read.texts == texts
    assert read.names.tolist() == names


def test_one_text_on_each_line_without_empty_lines(tmp_path):
    path = write(tmp_path / "texts.txt", "\ufeffone two\n\n  \nthree, four\u2028five\r\nsix")
    assert_texts(read_texts(path), ["one two", "three, four\u2028five", "six"], ["1", "4", "5"])


def test_compressed_lines(tmp_path):
    (tmp_path / "texts.txt.gz").write_bytes(gzip.compress("één\ntwee\n".encode()))
    assert_texts(read_texts(tmp_path / "texts.txt.gz"), ["één", "twee"], ["1", "2"])


def test_folders_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "inner").mkdir()
    write(tmp_path / "b.txt", "two\nlines")
    write(tmp_path / "a.v1.txt", "one")
    write(tmp_path / "inner" / "c.txt", "")
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"four"))
    write(tmp_path / "notes.md", "not a text")
    read = read_texts(str(tmp_path))
    assert_texts(read, ["one", "two\nlines", "four", ""], ["a.v1", "b", "d", "inner/c"])


def test_names_come_from_a_column_or_count_records(tmp_path):
    path = write(tmp_path / "x.csv", 'ID,when,Text\na1,2020,"x, y\nz"\na2,2021,w\n')
    assert_texts(read_texts(path), ["x, y\nz", "w"], ["a1", "a2"])
    assert_texts(read_texts(path, column="when"), ["2020", "2021"], ["a1", "a2"])
    path = write(tmp_path / "x.tsv", "anything\nx, y\n\nz\n")
    assert_texts(read_texts(path), ["x, y", "z"], ["1", "2"])
    path = write(tmp_path / "x.jsonl", '{"key": 7, "body": "x"}\n\n{"key": 8, "body": ""}\n')
    assert_texts(read_texts(path), ["x", ""], ["7", "8"])
    path = write(tmp_path / "x.jsonl", '{"n": 7, "body": "x"}\n\n{"n": 8, "body": "y"}\n')
    assert_texts(read_texts(path), ["x", "y"], ["1", "3"])


def test_long_texts_in_a_column_are_read(tmp_path):
    path = write(tmp_path / "x.csv", f"text\n{'word ' * 50_000}\n")
    assert len(read_texts(path).texts[0]) == 250_000


@quiet
@given(texts=TEXTS)
def test_json_lines_round_trip(tmp_path, texts):
    path = write(tmp_path / "x.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert read_texts(path).texts == texts


@quiet
@given(texts=TEXTS)
def test_columns_round_trip(tmp_path, texts):
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    path = write(tmp_path / "x.csv", "number;report\n" + "".join(f"{n};{text}\n" for n, text in enumerate(quoted)))
    assert read_texts(path).texts == texts


BAD = {
    "no text": ("x.txt", "\n \n", ["no texts"]),
    "ragged": ("x.csv", "id,text\na,b\nc,d,e\n", ["line 3", "expected 2 fields", "found 3", "quotes"]),
    "open quotes": ("x.csv", 'id,text\na,b\nc,"d\ne\n', ["line 3", "quotes"]),
    "header alone": ("x.csv", "id,text\n", ["no texts"]),
    "no column of texts": ("x.csv", "when,where\na,b\n", ["one column of texts", "'when', 'where'", "column"]),
    "two columns of texts": ("x.csv", "text,body\na,b\n", ["one column of texts"]),
    "not JSON": ("x.jsonl", '{"text": "a"}\n{"text": b}\n', ["line 2", "JSON object"]),
    "JSON of another kind": ("x.jsonl", '{"text": "a"}\n["b"]\n', ["line 2", "['b']"]),
    "key is missing": ("x.jsonl", '{"text": "a"}\n{"txt": "b"}\n', ["line 2", "'text'", "found none"]),
    "value is no text": ("x.jsonl", '{"text": "a"}\n{"text": 5}\n', ["line 2", "found 5"]),
    "no objects": ("x.jsonl", "\n", ["no texts"]),
    "nested beyond reason": ("x.jsonl", "[" * 100_000, ["line 1", "JSON object"]),
}


@pytest.mark.parametrize(("name", "content", "pieces"), BAD.values(), ids=BAD)
def test_bad_texts_are_refused(tmp_path, name, content, pieces):
    path = write(tmp_path / name, content)
    with pytest.raises(InputFileError) as caught:
        read_texts(path)
    for piece in (str(path), *pieces):
        assert piece in str(caught.value)


def test_other_encodings_missing_files_and_empty_folders_are_refused(tmp_path):
    (tmp_path / "x.txt").write_bytes("eins\nzwölf\n".encode("latin-1"))
    with pytest.raises(InputFileError, match=r"x\.txt, line 2: expected UTF-8"):
        read_texts(tmp_path / "x.txt")
    with pytest.raises(InputFileError, match=r"x\.txt, line 2: expected UTF-8"):
        read_texts(tmp_path)
    with pytest.raises(InputFileError, match="no such file"):
        read_texts(tmp_path / "none.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError, match=r"no \.txt files"):
        read_texts(tmp_path / "empty")
    with pytest.raises(InputFileError, match="has no column 'text'"):
        read_texts(tmp_path, column="text")
    with pytest.raises(InputFileError, match=r"a column 'texte', but the columns are 'a', 'b'"):
        read_texts(write(tmp_path / "x.csv", "a,b\n1,2\n"), column="texte")
