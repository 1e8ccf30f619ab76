"""Files that commands write: none of them may be an input, another output, or standard output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmpca.cli.app import COMMANDS, expand_bundles
from mmpca.cli.options import files_of

COUNTS = "site,oak,elm,fir\nhill,1,2,4\nlake,0,3,1\nbog,5,0,1\n"
SIZES = ("-q", 2, "-k", 2)


@pytest.fixture
def folder(tmp_path, monkeypatch, studio):
    """Return the working folder, with inputs of all kinds, and links to some of them."""
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "in.mtx", "in.rows.txt", "in.npz", "names.txt", "stop.txt", "table.csv"):
        (tmp_path / name).write_text(COUNTS)
    (tmp_path / "m.mmpca").write_bytes((studio / "X.mmpca").read_bytes())
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    (tmp_path / "texts" / "deep" / "a.txt").write_text("one two")
    (tmp_path / "soft.csv").symlink_to("data.csv")
    os.link(tmp_path / "data.csv", tmp_path / "hard.csv")
    (tmp_path / "later.csv").symlink_to("new.csv")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("fit", "data.csv", *SIZES, "--labels", "data.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--labels", "./texts/../data.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--labels", "soft.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--labels", "hard.csv"), "--labels"),
        (("fit", "soft.csv", *SIZES, "--model", "hard.csv"), "--model"),
        (("fit", "in.mtx", *SIZES, "--model", "in.mtx"), "--model"),
        (("fit", "in.mtx", *SIZES, "--model", "in.rows.txt"), "--model"),
        (("fit", "in.npz", *SIZES, "--checkpoint", "in.npz"), "--checkpoint"),
        (("fit", "in.npz", "data.csv", *SIZES, "--labels", "data.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--model", "same.csv", "--labels", "same.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--model", "new.csv", "--labels", "later.csv"), "--labels"),
        (("fit", "data.csv", *SIZES, "--model", "same", "--checkpoint", "same"), "--checkpoint"),
        (("fit", "in.npz", *SIZES, "--row-names", "names.txt", "--model", "names.txt"), "--model"),
        (("fit", "in.npz", *SIZES, "--feature-names", "names.txt", "--model", "names.txt"), "--model"),
        (("fit", "texts", *SIZES, "--model", "texts/deep/a.txt"), "--model"),
        (("fit", "texts", *SIZES, "--model", "texts/deep/new.txt.gz"), "--model"),
        (("fit", "texts", *SIZES, "--stop-words", "stop.txt", "--model", "stop.txt"), "--model"),
        (("fit", "texts", *SIZES, "--words", "stop.txt", "--model", "stop.txt"), "--model"),
        (("predict", "m.mmpca", "table.csv", "--labels", "table.csv"), "--labels"),
        (("predict", "m.mmpca", "in.npz", "table.csv", "--labels", "table.csv"), "--labels"),
        (("select", "data.csv", "--labels", "data.csv"), "--labels"),
        (("select", "data.csv", "--labels", "one.csv", "--results", "one.csv"), "--results"),
        (("explain", "m.mmpca", "table.csv", "--output", "table.csv"), "--output"),
        (("report", "m.mmpca", "-o", "m.mmpca"), "--output"),
        (("report", "m.mmpca", "--data", "data.csv", "-o", "data.csv"), "--output"),
        (("report", "m.mmpca", "--labels", "data.csv", "-o", "data.csv"), "--output"),
        (("report", "m.mmpca", "--texts", "texts", "-o", "texts/page.txt"), "--output"),
        (("report", "m.mmpca", "--results", "data.csv", "-o", "data.csv"), "--output"),
        (("compare", "in.npz", "--labels", "table.csv", "--output", "table.csv"), "--output"),
        (("convert", "in.mtx", "in.mtx"), "in.mtx"),
        (("convert", "in.npz", "in.npz"), "in.npz"),
        (("convert", "data.csv", "in.mtx", "--row-names", "in.rows.txt"), "in.rows.txt"),
        (("convert", "in.mtx", "in.mtx.gz"), "in.rows.txt"),
    ],
)  # fmt: skip
def test_an_output_that_is_an_input_or_another_output_is_refused_before_any_work(
    mmpca_command, folder, arguments, culprit
):
    before = contents(folder)
    done = mmpca_command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert culprit in done.error
    assert contents(folder) == before


def test_a_file_that_receives_standard_output_is_refused(studio, tmp_path):
    command = [sys.executable, "-m", "mmpca", "predict", studio / "X.mmpca", studio / "X.mtx", "-o", "out.csv"]
    with open(tmp_path / "out.csv", "wb") as file:
        done = subprocess.run(command, cwd=tmp_path, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "out.csv" in done.stderr


def test_one_device_may_receive_several_outputs(mmpca_command, studio, tmp_path):
    (tmp_path / "null.csv").symlink_to(os.devnull)
    files = ("--model", os.devnull, "--labels", tmp_path / "null.csv")
    assert mmpca_command("fit", studio / "X.mtx", *SIZES, "--n-init", 1, "--jobs", 1, *files).code == 0


def test_the_outputs_of_every_command_are_known():
    found = {}
    for command in COMMANDS:
        annotations = expand_bundles(command).__annotations__
        values = {name: Path(f"{name}.x") for name in annotations}
        found[command.__name__] = set(files_of(annotations, values | {"stop_words": None, "seed_topics": None})[1])
    assert found == {
        "demo": set(),
        "inspect": set(),
        "select": {"--model", "--labels", "--results"},
        "fit": {"--model", "--labels", "--checkpoint"},
        "predict": {"--labels"},
        "explain": {"--output"},
        "report": {"--output"},
        "explore": set(),
        "compare": {"--output"},
        "simulate": {"output", "--labels"},
        "convert": {"output"},
        "reproduce": set(),
        "tables": set(),  # a folder, whose files the command checks itself
        "rename": set(),  # the model itself is changed
        "edit": set(),
    }
