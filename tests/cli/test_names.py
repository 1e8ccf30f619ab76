"""Names from files reach the terminal literally, and without control characters."""

import io
import re
import shutil

import pandas as pd
import pytest
from rich.table import Table
from rich.text import Text

import mmpca
from mmpca.cli.console import LiteralConsole, literal

# Names and how they are shown.
NAMES = {
    "[/foo]b": "[/foo]b",
    "a[b]": "a[b]",
    "[bold]c[/]": "[bold]c[/]",
    ":cat:": ":cat:",
    "back\\[slash]\\": "back\\[slash]\\",
    "\x1b[31mred\x1b[0m": "[31mred[0m",
    "\x1b]0;title\x07": "]0;title",
    "\x9b2Jcleared": "2Jcleared",
    "gone\x08\x08\x7f": "gone",
    "\u202eevil": "evil",
    "größe 漢字 👩‍🔬": "größe 漢字 👩‍🔬",
}
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [str, Text, lambda name: _table(name)])
def test_a_name_is_shown_literally_in_whatever_is_printed(name, wrap):
    file = io.StringIO()
    LiteralConsole(file=file, width=60, color_system=None, force_terminal=True).print(wrap(name), highlight=False)
    assert not CONTROLS.search(file.getvalue())
    assert NAMES[name] == literal(name)
    assert NAMES[name] in file.getvalue()


def _table(name):
    table = Table("column", title=name)
    table.add_row(name)
    return table


def test_styles_still_reach_a_terminal():
    file = io.StringIO()
    LiteralConsole(file=file, width=60, color_system="standard", force_terminal=True).print(Text("oak", style="red"))
    assert file.getvalue() == "\x1b[31moak\x1b[0m\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, mmpca_command):
    """Return a folder with counts whose rows and features have hostile names, and their model."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [",".join(["site", *(f'"{name}"' for name in NAMES)])]
    for i, name in enumerate(NAMES):
        lines.append(",".join([f'"{name}"', *(str(1 + 9 * ((v + i) % 2) + (v == i)) for v in range(len(NAMES)))]))
    (folder / "X.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    sizes = ("-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1)
    fitted = mmpca_command("fit", folder / "X.csv", *sizes, "-m", folder / "X.mmpca", "-o", folder / "labels.csv")
    assert fitted.code == 0, fitted.err
    return folder


@pytest.mark.parametrize(
    ("command", "n_shown"),
    [
        (("fit", "X.csv", "-q", 2, "-k", 1, "--n-init", 1, "--jobs", 1), 8),
        (("select", "X.csv", "-q", "2", "-k", "1-2", "--jobs", 1), 0),
        (("predict", "X.mmpca", "X.csv"), len(NAMES)),
        (("explain", "X.mmpca", "X.csv", *(part for name in NAMES for part in ("-r", name))), len(NAMES)),
        (("inspect", "X.csv", "-q", 2, "-k", 2), 5),
        (("compare", "X.csv", "-q", 2, "-k", 2, "--no-memory", "--method", "MMPCA", "--labels", "labels.csv"), 0),
    ],
)
def test_commands_show_names_literally(mmpca_command, hostile, monkeypatch, command, n_shown):
    monkeypatch.chdir(hostile)
    done = mmpca_command(*command)
    assert not CONTROLS.search(done.out + done.err)
    assert sum(name in done.out for name in NAMES.values()) >= n_shown
    assert done.code == 0


def test_errors_show_names_literally(mmpca_command, hostile):
    done = mmpca_command("explain", hostile / "X.mmpca", hostile / "X.csv", "-r", "[/none]\x1b[2J")
    assert done.code == 1
    assert "[/none]" in done.err
    assert not CONTROLS.search(done.err)
    done = mmpca_command("inspect", hostile / "[/none]\x1b[2J.csv")
    assert "[/none][2J.csv" in done.error
    assert not CONTROLS.search(done.err)


@pytest.mark.parametrize("output", ["[/none]\x1b[2J/labels.csv", "[/none]\x1b[2J.txt", "X.csv"])
def test_usage_errors_show_paths_literally(mmpca_command, hostile, tmp_path, output):
    folder = tmp_path / "\x1b[2J[bold]"
    folder.mkdir()
    shutil.copy(hostile / "X.csv", folder)
    done = mmpca_command("fit", folder / "X.csv", "-q", 2, "-k", 2, "--labels", folder / output)
    assert done.code == 2
    assert not CONTROLS.search(done.err)


@pytest.mark.parametrize("command", [("predict", "X.mmpca", "X.csv"), ("inspect", "X.csv", "-q", 2, "-k", 2)])
def test_json_keeps_names_exactly_without_sending_control_characters(mmpca_command, hostile, monkeypatch, command):
    monkeypatch.chdir(hostile)
    done = mmpca_command(*command, "--json")
    assert not CONTROLS.search(done.out)
    rows = [entry["row"] for entry in done.json["labels"]] if command[0] == "predict" else done.json["first_rows"]
    assert rows == list(NAMES)[: len(rows)]


def test_files_keep_names_exactly(hostile):
    assert mmpca.load(hostile / "X.mmpca").feature_names_in_.tolist() == list(NAMES)


def test_tables_over_time_are_those_of_the_model(mmpca_command, studio, tmp_path):
    dates = [f"2024-{1 + i % 3:02}-15" for i in range(120)]
    (tmp_path / "dates.txt").write_text("\n".join(dates) + "\n")
    done = mmpca_command(
        *("tables", studio / "X.mmpca", studio / "X.mtx", "-o", tmp_path / "out"),
        *("--over", tmp_path / "dates.txt", "--bins", "M"),
    )
    assert done.code == 0, done.err
    table = pd.read_csv(tmp_path / "out" / "over.csv")
    expected = mmpca.load(studio / "X.mmpca").clusters_over(dates, bins="M")
    own = table[table["kind"] == "cluster"]
    assert own["group"].tolist() == expected["group"].tolist()
    assert own["size"].tolist() == expected["size"].tolist()
    assert set(table["kind"]) == {"cluster", "topic"}


def test_edited_clusters_are_saved_with_the_bounds_shown(mmpca_command, studio, tmp_path):
    path = tmp_path / "edited.mmpca"
    shutil.copy(studio / "X.mmpca", path)
    done = mmpca_command("edit", path, studio / "X.mtx", "--merge", "1,4", "--noise", 0)
    assert done.code == 0, done.err
    loaded = mmpca.load(path)
    assert len(loaded.weights_) == 5
    assert [edit.kind for edit in loaded.edits_] == ["merge", "noise"]
    assert f"{loaded.bound_:,.3f}" in done.out
    assert mmpca_command("edit", path, studio / "X.mtx", "--merge", "x").code == 2
