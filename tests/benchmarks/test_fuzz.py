"""A short attack on every kind of file: the same tries in every run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits memory by Linux's means")


def test_no_file_leads_to_a_traceback_a_silent_difference_or_too_much_memory():
    command = [sys.executable, BENCHMARKS / "fuzz.py", "--tries", "800", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("damage", "export", "matrix", "hostile"):
        assert kind in done.stdout


def test_many_fits_leave_nothing_behind():
    done = subprocess.run([sys.executable, BENCHMARKS / "soak.py", "--fits", "30"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
