"""Which label is whose."""

import pytest

from mmpca.cli.labels import read_labels
from mmpca.errors import InputFileError

NAMES = ["ann", "ben", "cleo"]


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a table of labels, each the row's name in capitals."""

    def write(*rows):
        path = tmp_path / "labels.csv"
        path.write_text("row,label\n" + "".join(f"{row},{row.upper()}\n" for row in rows))
        return path

    return write


def test_the_same_names_in_another_order_are_matched(table, capsys):
    assert read_labels(table("cleo", "ann", "ben"), NAMES) == ["ANN", "BEN", "CLEO"]
    assert capsys.readouterr().err == ""


def test_labels_that_are_no_text_are_refused_by_name(tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"one\n\xff\xd8\x80")
    with pytest.raises(InputFileError, match=r"photo.jpg, line 2: expected UTF-8 text"):
        read_labels(path, None)


def test_names_of_which_none_is_known_go_by_order_with_a_note(table, capsys):
    path = table("x", "y", "z")
    assert read_labels(path, NAMES) == ["X", "Y", "Z"]
    told = " ".join(capsys.readouterr().err.split())
    assert "labels are taken in order" in told
    assert path.name in told


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [
        (["ann", "x", "y"], NAMES, "the row 'ben' is missing from its column \"row\""),
        (["cleo", "ann"], NAMES, "the row 'ben' is missing from its column \"row\""),
        (["ann", "ben", "cleo", "dan"], NAMES, "the row 'dan' is missing from the data"),
        (["cleo", "ann", "ann"], NAMES, "the row 'ann' stands more than once in its column \"row\""),
        (["ben", "ann", "cleo"], ["ann", "ben", "ben"], "the row 'ben' is the name of more than one row of the data"),
        (["1", "2", "3"], ["0", "1", "2"], "the row '0' is missing"),  # numbered from 1: each label would shift
    ],
)
def test_tables_that_leave_it_open_whose_a_label_is_are_refused(table, rows, names, message):
    with pytest.raises(InputFileError) as refused:
        read_labels(table(*rows), names)
    assert message in str(refused.value)
    assert 'remove the column "row" to have labels taken in order' in str(refused.value)


def test_names_that_agree_line_by_line_may_come_twice(table):
    assert read_labels(table("ann", "ben", "ann"), ["ann", "ben", "ann"]) == ["ANN", "BEN", "ANN"]


def test_commands_tell_the_reason(mmpca_command, studio, tmp_path):
    lines = (studio / "truth.csv").read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join([*lines[:6], *lines[7:]]))
    given = ("--labels", tmp_path / "part.csv", "--data", studio / "X.mtx", "-o", tmp_path / "page.html")
    done = mmpca_command("report", studio / "X.mmpca", *given)
    assert done.code == 1
    assert "the row '5' is missing" in " ".join(done.err.split())
    assert not (tmp_path / "page.html").exists()
