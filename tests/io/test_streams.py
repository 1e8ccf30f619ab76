"""Suffixes look through compression; lines have the ends of any system."""

import gzip
from pathlib import Path

import pytest

from mmpca.io.streams import blocks, open_stream, read_lines, split_line, stem, suffix


@pytest.mark.parametrize(
    ("name", "parts"),
    [("X.mtx", ("X", ".mtx")), ("X.MTX.gz", ("X", ".mtx")), ("a.rows.txt.xz", ("a.rows", ".txt")), ("X", ("X", ""))],
)
def test_suffix_and_stem_ignore_compression(name, parts):
    assert (stem(Path("folder", name)), suffix(Path("folder", name))) == parts


def test_lines_may_have_the_ends_of_any_system(tmp_path):
    (tmp_path / "x.txt").write_bytes("\ufeffa\r\nb\rc\n\nd\u2028e\n".encode())
    assert read_lines(tmp_path / "x.txt") == ["a", "b", "c", "", "d\u2028e"]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_blocks_are_whole_lines_with_their_numbers(tmp_path, size):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"header\n1\n22\n\n333"))
    with open_stream(tmp_path / "x.gz") as stream:
        stream.readline()
        found = list(blocks(tmp_path / "x.gz", stream, 2, size))
    assert b"".join(content for _, content in found) == b"1\n22\n\n333"
    assert all(content.endswith(b"\n") for _, content in found[:-1])
    lines = [(2, b"1\n"), (3, b"22\n"), (4, b"\n"), (5, b"333")]
    assert found == {1: lines, 4: [(2, b"1\n22\n"), (4, b"\n333")], 100: [(2, b"1\n22\n\n333")]}[size]


def test_fields_may_be_quoted():
    assert split_line('a,"b, ""c""",d', ",") == ["a", 'b, "c"', "d"]
    assert split_line("a b", ",") == ["a b"]
