"""Exit codes, interruptions and pipes."""

import os
import signal
import subprocess
import sys
import time

import pytest
import typer

from mmpca.cli import main
from mmpca.cli.console import raise_on_interrupt, with_exit_codes


@pytest.mark.parametrize(
    ("error", "code", "place"),
    [
        (KeyboardInterrupt(), 130, ""),
        (KeyboardInterrupt("Half of it was written."), 130, "Half of it was written."),
        (MemoryError(), 1, ""),
        (PermissionError(13, "Permission denied", "secret.mtx"), 1, "secret.mtx"),
        (IsADirectoryError(21, "Is a directory", "cells"), 1, "cells"),
        (FileNotFoundError(2, "Make it first", "cells"), 1, "cells: Make it first."),
        (OSError(28, "No space left on device"), 1, "output"),
        (OSError(28, "No space left on device", "m.mmpca"), 1, "m.mmpca: "),
        (ValueError("[bold]odd[/] text"), 1, "[bold]odd[/] text"),
    ],
)
def test_an_expected_error_becomes_an_exit_code_and_a_message(error, code, place, capsys):
    def command():
        raise error

    with pytest.raises(typer.Exit) as caught:
        with_exit_codes(command, "mmpca.errors")()
    assert caught.value.exit_code == code
    message = capsys.readouterr().err
    assert message.startswith("interrupted: " if code == 130 else "error: ")
    assert place in message


def test_a_bug_is_not_hidden():
    def command():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        with_exit_codes(command, "mmpca.errors")()


def test_a_full_disk_is_an_error_that_names_the_file(mmpca_command, studio, tmp_path, largest_file):
    command = ("predict", studio / "X.mmpca", studio / "X.mtx", "-o")
    assert mmpca_command(*command, tmp_path / "labels.csv").code == 0  # kernels are compiled and stored now
    with largest_file(100):
        done = mmpca_command(*command, tmp_path / "full.csv")
    assert done.code == 1
    assert str(tmp_path / "full.csv") in done.error
    assert not (tmp_path / "full.csv").exists()


# Small files of each kind of error; tests/io has all formats.
BAD_FILES = {
    "empty.csv": b"",
    "negative.csv": b"site,a,b\nx,1,-2\ny,3,1\n",
    "bytes.csv": bytes(range(256)),
    "short.mtx": b"%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 5\n",
    "cut.mtx.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc",
    "no zip.npz": b"PK\x03\x04 and then nothing",
    "no h5.h5ad": b"\x89HDF\r\n\x1a\nnothing",
    "unknown.pdf": b"%PDF-1.4",
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("command", ["inspect", "fit", "convert", "predict"])
def test_a_bad_file_is_named_and_nothing_is_written(mmpca_command, studio, tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(BAD_FILES[name])
    arguments = {
        "inspect": ("inspect", path),
        "fit": ("fit", path, "-q", 2, "-k", 2, "-m", tmp_path / "m", "-o", tmp_path / "labels.csv"),
        "convert": ("convert", path, tmp_path / "out.npz"),
        "predict": ("predict", studio / "X.mmpca", path),
    }[command]
    done = mmpca_command(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert str(path) in done.error
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("command", [("inspect",), ("fit", "-q", 2, "-k", 2), ("predict",)])
def test_a_missing_file_is_named(mmpca_command, command):
    done = mmpca_command(*command, "no/folder/X.mtx", *(["X.mtx"] if command == ("predict",) else []))
    assert done.code == 1
    assert "no/folder/X.mtx" in done.error


@pytest.mark.parametrize("content", [b"", b"PK", b"not a model", b"PK\x05\x06" + bytes(18)])
@pytest.mark.parametrize("command", ["predict", "explain", "report"])
def test_a_bad_model_is_named(mmpca_command, studio, tmp_path, command, content):
    path = tmp_path / "bad.mmpca"
    path.write_bytes(content)
    done = mmpca_command(command, path, *([] if command == "report" else [studio / "X.mtx"]))
    assert done.code == 1
    assert str(path) in done.error


# --- processes --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals differ on Windows")
@pytest.mark.parametrize("seconds", [0.05, 0.6, 2.5])
def test_ctrl_c_ends_a_command_at_any_moment_without_a_traceback(start_python, studio, tmp_path, seconds):
    # The handler of `main` is set before "up" is printed: a busy machine may stop the process in between.
    code = (
        "import signal; from mmpca.cli import exit_on_interrupt, main; signal.signal(signal.SIGINT, exit_on_interrupt)"
    )
    options = ("-q", "6", "-k", "4", "--start", "random", "--n-init", "3000", "-m", tmp_path / "model")
    process = start_python("-c", f"{code}; print('up', flush=True); main()", "fit", studio / "X.mtx", *options)
    assert process.stdout.readline() == "up\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in err


def test_a_program_with_its_own_handler_of_ctrl_c_keeps_it(monkeypatch, capsys):
    def own(number, frame):
        pass

    monkeypatch.setattr(sys, "argv", ["mmpca", "--version"])
    before = signal.signal(signal.SIGINT, own)
    try:
        with pytest.raises(SystemExit):
            main()
        raise_on_interrupt()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_reader_that_closes_the_pipe_early_causes_no_traceback(studio):
    command = f"{sys.executable} -m mmpca predict {studio / 'X.mmpca'} {studio / 'X.mtx'} --json | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stderr
