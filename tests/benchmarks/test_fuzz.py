"""A short attack on every kind of file: the same tries in every run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits memory by Linux's means")


@pytest.mark.parametrize(("kind", "n_tries"), [("damage", 400), ("export", 300), ("matrix", 150), ("hostile", 10)])
def test_no_file_leads_to_a_traceback_a_silent_difference_or_too_much_memory(kind, n_tries):
    command = [sys.executable, BENCHMARKS / "fuzz.py", "--only", kind, "--tries", str(n_tries), "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_many_fits_leave_nothing_behind():
    done = subprocess.run([sys.executable, BENCHMARKS / "soak.py", "--fits", "50"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
