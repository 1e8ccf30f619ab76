"""Help, usage, exit codes, and the many inputs that get a message and no traceback."""

import colorsys
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mmpca.cli.app import app, commands_of, new_app
from mmpca.cli.commands import COMMANDS
from mmpca.cli.docstrings import unread
from mmpca.cli.guard import guarded
from mmpca.cli.imports import LaterModule, left_out, put_off
from mmpca.cli.interrupts import leave_at_once, raise_interrupts
from mmpca.cli.tables import write_table

NAMES = [command.__name__ for command in COMMANDS]


# --- help -------------------------------------------------------------------------------------------------------


def test_the_help_names_all_commands_and_the_exit_codes(mmpca_command):
    done = mmpca_command("--help")
    assert done.code == 0
    for name in NAMES:
        assert re.search(rf"\b{name}\b", done.out)
    assert "0 fine; 1 input or result refused; 2 wrong usage; 130 interrupted" in done.out


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_teaches_by_example(mmpca_command, name):
    done = mmpca_command(name, "--help")
    assert done.code == 0
    assert f"mmpca {name}" in done.out.split("Options")[0].split("Usage", 1)[1].split("\n", 2)[2]


def test_no_help_imports_anything_heavy():
    code = f"""
import sys
from mmpca.cli.app import app
for arguments in [["--help"], *([name, "--help"] for name in {NAMES})]:
    app(arguments, standalone_mode=False)
heavy = {{"numpy", "numba", "sklearn", "scipy", "pandas", "mmpca.io", "mmpca.model"}}
print("imported:", sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported: []"


def test_a_command_does_not_wait_for_modules_that_it_does_not_use(studio):
    code = f"""
import sys
from mmpca.cli.app import app
try:
    app(["predict", {str(studio / "X.mmpca")!r}, {str(studio / "X.mtx")!r}])
except SystemExit as end:
    later = [name for name, module in sys.modules.items() if type(module).__name__ == "LaterModule"]
    loaded = [name for name in ("pandas", "coverage", "sklearn.cluster") if name in sys.modules]
    print(end.code, loaded, "scipy.stats" in later, "yaml" in later or "yaml" not in sys.modules)
import scipy.stats
print(scipy.stats.norm.cdf(0.0), "scipy.stats._morestats" in sys.modules, type(scipy.stats).__name__)
import pandas
print(pandas.DataFrame([[1]]).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["0 [] True True", "0.5 True module", "(1, 1)"]


def test_what_is_put_off_is_loaded_by_its_first_use(monkeypatch):
    parent = ModuleType("somewhere")
    for name, module in {"somewhere": parent, "somewhere.colorsys": None}.items():
        monkeypatch.setitem(sys.modules, name, module)
    del sys.modules["somewhere.colorsys"]
    spec = importlib.util.spec_from_file_location("somewhere.colorsys", colorsys.__file__)
    monkeypatch.setattr("mmpca.cli.imports.find_spec", lambda name: spec)
    put_off("somewhere.colorsys")
    module = parent.colorsys
    assert module is sys.modules["somewhere.colorsys"]
    assert type(module) is LaterModule
    assert "rgb_to_hsv" not in vars(module)
    assert module.rgb_to_hsv(1, 1, 1) == (0.0, 0.0, 1)
    assert type(module) is ModuleType
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018
    put_off("somewhere.colorsys")
    assert sys.modules["somewhere.colorsys"] is module


def test_a_module_that_stands_alone_can_be_put_off(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys")
    put_off("colorsys")
    assert type(sys.modules["colorsys"]) is LaterModule
    assert sys.modules["colorsys"].rgb_to_hsv(1, 1, 1) == (0.0, 0.0, 1)


def test_what_is_left_out_seems_not_to_be_installed_until_the_end(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys")
    with left_out("colorsys"), pytest.raises(ImportError):
        importlib.import_module("colorsys")
    assert "colorsys" not in sys.modules
    loaded = importlib.import_module("colorsys")
    with left_out("colorsys"):
        assert importlib.import_module("colorsys") is loaded
    assert sys.modules["colorsys"] is loaded


def test_a_docstring_is_read_only_for_more_than_a_note():
    read = []

    class Reader:
        def __init__(self, function, role="func"):
            read.append(role)
            self.sections = {"Notes": ["old"], "Parameters": ["x"]}

        def __getitem__(self, name):
            return self.sections[name]

        def __str__(self):
            return f"signature\n{self.sections}"

    def function():
        """Say it."""

    doc = unread(Reader)(function)
    doc["Notes"].append("new")
    assert (str(doc), read) == ("\nSay it.", [])
    doc = unread(Reader)(function, role="meth")
    assert doc["Parameters"] == ["x"]
    doc["Notes"].append("new")
    assert (str(doc), read) == ("signature\n{'Notes': ['old', 'new'], 'Parameters': ['x']}", ["meth"])
    with pytest.raises(AttributeError):
        doc.nothing  # noqa: B018


def test_scipy_that_was_loaded_without_its_notes_computes_and_explains_itself():
    code = """
import sys
from mmpca.cli.imports import spared_imports
with spared_imports():
    import scipy.linalg, scipy.special
from scipy._lib import _docscrape
print(_docscrape.FunctionDoc.__module__, float(scipy.special.xlogy(0, 0)), float(scipy.linalg.det([[2.0]])))
print("Compute the inverse of a matrix" in scipy.linalg.inv.__doc__, "Parameters" in scipy.linalg.inv.__doc__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["scipy._lib._docscrape 0.0 2.0", "True True"]


def test_only_a_command_that_is_named_is_made_ready():
    fit = next(command for command in COMMANDS if command.__name__ == "fit")
    assert list(commands_of(["fit", "--help"])) == [fit]
    for arguments in ([], ["--help"], ["fti"], ["--version", "fit"]):
        assert commands_of(arguments) is COMMANDS
    told = [CliRunner().invoke(made, ["fit", "--help"]).output for made in (app, new_app([fit]))]
    assert told[0] == told[1]


@pytest.mark.parametrize(("typed", "offered"), [("mmpca pre", "predict"), ("mmpca fit --algo", "--algorithm")])
def test_shells_complete_commands_and_options(typed, offered):
    script = Path(sys.executable).with_name("mmpca")
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment = os.environ | words | {"_MMPCA_COMPLETE": "complete_bash"}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == [offered]


# --- usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "Missing argument"),
        (["fit", "X.mtx"], "Missing option"),
        (["fit", "X.mtx", "-q", "0", "-k", "2"], "--clusters"),
        (["fit", "X.mtx", "-q", "2", "-k", "two"], "--topics"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--n-init", "0"], "neither auto nor a whole number"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--start", "best"], "--start"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--algorithm", "magic"], "--algorithm"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--jobs", "0"], "0 threads do nothing"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--labels", "labels.xls"], "labels.xls must end in one of .csv"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--labels", "no/such/labels.csv"], "does not exist"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--model", "no/such/model"], "does not exist"),
        (["fit", "X.mtx", "-q", "2", "-k", "2", "--model", "."], "is a folder"),
        (["convert", "X.mtx", "X.csv"], "X.csv must end in one of .mtx"),
        (["simulate", "X.txt"], "X.txt must end in one of .mtx"),
        (["simulate", "X.npz", "--noise", "2"], "--noise"),
        (["predict", "m.mmpca"], "Missing argument"),
        (["explain", "m", "X.mtx", "--features", "-1"], "--features"),
        (["inspect", "X.mtx", "--format", "xlsx"], "--format"),
    ],
)
def test_wrong_usage_is_refused_with_2(mmpca_command, arguments, message):
    done = mmpca_command(*arguments)
    assert done.code == 2
    assert message in done.err


# --- bad inputs -------------------------------------------------------------------------------------------------

BAD_FILES = {
    "empty.csv": b"",
    "empty.mtx": b"",
    "empty.npz": b"",
    "blank.csv": b"\n\n\n",
    "header only.csv": b"a,b,c\n",
    "ragged.csv": b"site,a,b\nx,1,2\ny,1\n",
    "words.csv": b"site,a,b\nx,one,two\n",
    "negative.csv": b"site,a,b\nx,1,-2\ny,3,1\n",
    "fractions.csv": b"site,a,b\nx,0.5,0.5\ny,0.1,0.9\n",
    "missing.csv": b"site,a,b\nx,1,\ny,3,1\n",
    "nan.csv": b"site,a,b\nx,nan,1\ny,3,1\n",
    "huge.csv": b"site,a,b\nx,99999999999,1\ny,3,1\n",
    "bytes.csv": bytes(range(256)),
    "header.mtx": b"%%MatrixMarket matrix\n",
    "no header.mtx": b"2 2 1\n1 1 5\n",
    "short.mtx": b"%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 5\n",
    "outside.mtx": b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n3 1 5\n",
    "real.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0.5\n",
    "cut.mtx.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc",
    "no zip.npz": b"PK\x03\x04 and then nothing",
    "no numbers.npz": b"\x93NUMPY",
    "no h5.h5ad": b"\x89HDF\r\n\x1a\nnothing",
    "no biom.biom": b"{}",
    "no parquet.parquet": b"PAR1",
    "unknown.xlsx": b"PK\x03\x04",
    "unknown.pdf": b"%PDF-1.4",
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("command", ["inspect", "fit", "convert", "predict"])
def test_a_bad_file_gets_a_message_and_exit_code_1(mmpca_command, studio, tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(BAD_FILES[name])
    arguments = {
        "inspect": ("inspect", path),
        "fit": ("fit", path, "-q", 2, "-k", 2, "-m", tmp_path / "m", "-o", tmp_path / "labels.csv"),
        "convert": ("convert", path, tmp_path / "out.npz"),
        "predict": ("predict", studio / "X.mmpca", path),
    }[command]
    done = mmpca_command(*arguments)
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert name in done.err.replace("\n", " ")
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["nothing.mtx", "no/folder/X.mtx"])
@pytest.mark.parametrize("command", [("inspect",), ("fit", "-q", 2, "-k", 2), ("predict", "nothing.mmpca")])
def test_a_file_that_is_not_there_gets_a_message(mmpca_command, command, name):
    done = mmpca_command(*command, name)
    assert done.code == 1
    missing = "nothing.mmpca" if command[0] == "predict" else name
    assert done.err.startswith(f"error: {missing}: there is no such file. Check the path")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a model", b"PK\x05\x06" + bytes(18)])
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_bad_model_gets_a_message(mmpca_command, studio, tmp_path, command, content):
    (tmp_path / "bad.mmpca").write_bytes(content)
    done = mmpca_command(command, tmp_path / "bad.mmpca", studio / "X.mtx")
    assert done.code == 1
    assert "bad.mmpca: " in done.err
    assert "not a model file" in done.err


@pytest.mark.parametrize("number", ["2-4", "0", "few", "-1", "2.5"])
@pytest.mark.parametrize("option", ["--clusters", "--topics"])
def test_what_is_no_number_of_clusters_or_topics_is_wrong_usage(mmpca_command, studio, option, number):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 2, "-k", 2, f"{option}={number}")
    assert done.code == 2
    assert f"'{number}' is no whole number of at least 1" in done.err
    assert "mmpca select" in done.err


def test_more_clusters_than_rows_get_a_message(mmpca_command, studio):
    done = mmpca_command("fit", studio / "X.mtx", "-q", 500, "-k", 2)
    assert done.code == 1
    assert "500 clusters need as many rows" in done.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted: Nothing was written."),
        (MemoryError(), 1, "not enough memory"),
        (PermissionError(13, "Permission denied", "secret.mtx"), 1, "error: secret.mtx: this is not permitted. Check"),
        (IsADirectoryError(21, "Is a directory", "cells"), 1, "error: cells: expected a file, but this is a folder."),
        (FileNotFoundError(2, "Make it first", "cells"), 1, "error: cells: Make it first."),
        (OSError(28, "No space left on device"), 1, "error: No space left on device."),
        (ValueError("[bold]odd[/] text"), 1, "error: [bold]odd[/] text"),
    ],
)
def test_what_happens_to_a_command_becomes_an_exit_code(error, code, message, capsys):
    def command():
        raise error

    with pytest.raises(typer.Exit) as caught:
        guarded(command)()
    assert caught.value.exit_code == code
    assert message in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals of Windows are others")
def test_ctrl_c_ends_a_command_at_any_moment_without_a_traceback(studio, tmp_path):
    code = "import sys, mmpca.cli; print('up', flush=True); mmpca.cli.main()"
    options = ("-q", "6", "-k", "4", "--n-init", "500", "-m", tmp_path / "model")
    command = [sys.executable, "-c", code, "fit", studio / "X.mtx", *options]
    for seconds in (0.1, 0.5, 1.0, 2.5):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "up\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert "interrupted" in err


def test_ctrl_c_is_left_to_programs_that_have_seen_to_it():
    def own(number, frame):
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        leave_at_once()
        raise_interrupts()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_of_the_program_itself_is_not_hidden():
    def command():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded(command)()


# --- tables -----------------------------------------------------------------------------------------------------

TABLE = {"row": ["a,b", 'q"uote', "ü\nline"], "cluster": [0, 1, 2], "probability": [0.5, 1.0, float("nan")]}


def test_csv_quotes_what_it_must(tmp_path):
    write_table(tmp_path / "t.csv", TABLE)
    assert (tmp_path / "t.csv").read_text() == (
        'row,cluster,probability\n"a,b",0,0.5\n"q""uote",1,1.0\n"ü\nline",2,nan\n'
    )
    write_table(tmp_path / "t.tsv", {"a": [1], "b": ["x"]})
    assert (tmp_path / "t.tsv").read_text() == "a\tb\n1\tx\n"


def test_json_is_a_list_of_objects_and_knows_no_nan(tmp_path):
    write_table(tmp_path / "t.json", TABLE)
    records = json.loads((tmp_path / "t.json").read_text())
    assert records[0] == {"row": "a,b", "cluster": 0, "probability": 0.5}
    assert records[2]["probability"] is None


def test_parquet_round_trips_or_names_what_to_install(tmp_path):
    try:
        import pyarrow.parquet
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install 'mmpca\[parquet\]'"):
            write_table(tmp_path / "t.parquet", TABLE)
    else:
        write_table(tmp_path / "t.parquet", TABLE)
        again = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pydict()
        assert again["row"] == TABLE["row"]
        assert again["cluster"] == TABLE["cluster"]
        np.testing.assert_array_equal(again["probability"], TABLE["probability"])
