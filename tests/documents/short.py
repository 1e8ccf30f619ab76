"""Lines of a shell in a short form, which is made from the line itself: a wrong name, option, file or target fails."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest
from blocks import ROOT

from mmpca import MMPCA, MMPCASearch
from mmpca.evaluation import stability
from mmpca.experiments import make
from mmpca.simulate import paper_design

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
INSTALLED = (".venv/installed", ".venv/installed-dev")
# What stands behind a line of these commands to make it shorter; the last of two equal options holds.
LESS = {
    "reproduce": ("--jobs", "1"),
    "compare": ("--method", "MMPCA", "--method", "multinomial mixture", "--no-memory"),
    "bench.py": ("--quick", "--only", "exact"),
    "selection_study.py": ("--seeds", "1", "--other-seeds", "0", "--jobs", "1"),
}
# Sizes of experiments, where they have such a field.
SMALL = {"replicates": 1, "n_samples": 40, "sizes": (12, 16), "repeats": 1, "balances": (1.0,), "n_reports": 120,
         "n_clusters": (5, 6), "n_topics": (4,)}  # fmt: skip


def small_experiment(name, *, quick, **given):
    """Return an experiment as a line wants it, small; of the lists that it gives, the first two."""
    whole = make(name, quick=quick, **given)
    assert whole.tasks()
    known = {field.name for field in fields(whole)}
    lists = {key: value[:2] for key, value in given.items() if isinstance(value, tuple)}
    lists = {"families": ("ceiling", "mmpca"), "levels": (0.0, 0.4)} | lists
    return replace(whole, **{key: value for key, value in (SMALL | lists).items() if key in known})


# --- make -------------------------------------------------------------------------------------------------------


def made(*arguments, installed=INSTALLED):
    """Return the commands that ``make`` would run once these files are there."""
    for argument in arguments:
        if "=" in argument:
            assert f"$({argument.partition('=')[0]})" in MAKEFILE, f"the Makefile has no variable of {argument}"
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}  # of a make that runs the tests
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    known = [option for file in installed for option in ("-o", file)]
    command = ["make", "--no-print-directory", "-n", *known, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\\\n", " ").splitlines()


def run_in_full_by_ci():
    """Return the commands of the targets that CI makes."""
    lines = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {command for line in lines for command in made(*line.split())}


# --- scripts ----------------------------------------------------------------------------------------------------


class Stand:
    """Stands where a browser would take pictures: notes them, if there is something to see."""

    def __init__(self):
        self.driver, self.taken = self, []

    def take(self, name, url, size, **options):
        assert url.startswith("http://127.0.0.1:") or Path(url.removeprefix("file://")).stat().st_size > 0
        self.taken.append(name)

    def quit(self):
        assert self.taken


def small_search(n_clusters, n_topics, **options):
    """Return a search of two cells of a grid."""
    return MMPCASearch(tuple(n_clusters)[:2], tuple(n_topics)[:1], **options)


def small_model(*numbers, **options):
    """Return a model with one start."""
    return MMPCA(*numbers, **(options | {"n_init": 1}))


def few_refits(model, X, **options):
    """Refit twice, whatever is asked for."""
    return stability(model, X, **(options | {"n_refits": 2}))


# What scripts import or define, smaller.
SMALLER = {
    "MMPCASearch": small_search,
    "MMPCA": small_model,
    "stability": few_refits,
    "paper_design": partial(paper_design, n_samples=60),
    "Camera": Stand,
    "BALANCES": (1.0,),
    "NOISES": (0.0,),
}


def run_script(path, arguments, folder, monkeypatch):
    """Run a copy of a script, which writes beside itself, on smaller data; return what it does: None, or a code."""
    source, copy = ROOT / path, folder / path
    assert source.is_file(), f"there is no script {path}"
    copy.parent.mkdir(exist_ok=True, parents=True)
    shutil.copy(source, copy)
    if path == "docs/draw_experiments.py":
        shutil.copy(ROOT / "docs" / "experiments.md", copy.parent)
    spec = importlib.util.spec_from_file_location(copy.stem, copy)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, copy.stem, module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that rivals come from
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as error:  # rivals of benchmarks are not among what tests need
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"{path}: {error}")
    for name, value in SMALLER.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    more = LESS.get(copy.name, ())
    monkeypatch.setattr(sys, "argv", [str(copy), *arguments, *more])
    return module.main()


def split(command):
    """Return the program of a command without its folder, and the arguments."""
    program, *arguments = shlex.split(command)
    return Path(program).name, arguments
