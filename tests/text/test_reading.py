"""Texts are read from lines, folders and columns, each with a name; errors carry file and line."""

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
    path = write(tmp_path / "x.tsv", 'anything\nx, y\n""\nz\n')
    assert_texts(read_texts(path), ["x, y", "", "z"], ["1", "2", "3"])
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
    "no text": ("x.txt", "\n \n", None),
    "ragged": ("x.csv", "id,text\na,b\nc,d,e\n", 3),
    "ragged below a text of two lines": ("x.csv", 'id,text\na,"b\nb"\nc,d,e\n', 4),
    "open quotes": ("x.csv", 'id,text\na,b\nc,"d\ne\n', 3),
    "header alone": ("x.csv", "id,text\n", None),
    "blank lines alone": ("x.csv", "\n\n", None),
    "no column of texts": ("x.csv", "when,where\na,b\n", None),
    "two columns of texts": ("x.csv", "text,body\na,b\n", None),
    "not JSON": ("x.jsonl", '{"text": "a"}\n{"text": b}\n', 2),
    "JSON of another kind": ("x.jsonl", '{"text": "a"}\n["b"]\n', 2),
    "key is missing": ("x.jsonl", '{"text": "a"}\n{"txt": "b"}\n', 2),
    "value is not a text": ("x.jsonl", '{"text": "a"}\n{"text": 5}\n', 2),
    "no objects": ("x.jsonl", "\n", None),
    "nested beyond reason": ("x.jsonl", "[" * 100_000, 1),
}


def assert_rejected(path, line=None, *, at=None, **options):
    with pytest.raises(InputFileError) as caught:
        read_texts(path, **options)
    assert (caught.value.path, caught.value.line) == (at or path, line)


@pytest.mark.parametrize(("name", "content", "line"), BAD.values(), ids=BAD)
def test_bad_texts_are_rejected(tmp_path, name, content, line):
    assert_rejected(write(tmp_path / name, content), line)


def test_other_encodings_missing_files_and_empty_folders_are_rejected(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("eins\nzwölf\n".encode("latin-1"))
    assert_rejected(path, 2)
    assert_rejected(tmp_path, 2, at=path)
    assert_rejected(tmp_path / "none.txt")
    (tmp_path / "empty").mkdir()
    assert_rejected(tmp_path / "empty")
    assert_rejected(tmp_path, column="text")
    assert_rejected(write(tmp_path / "x.csv", "a,b\n1,2\n"), column="texte")
