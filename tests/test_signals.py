"""The tests themselves: Ctrl-C reaches them and the processes they start, however they were started."""

import os
import signal
import subprocess
import sys

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="signals differ on Windows")


@posix
def test_ctrl_c_reaches_this_process():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@posix
def test_ctrl_c_reaches_processes_that_tests_start(start_python):
    process = start_python("-c", "print('up', flush=True); import time; time.sleep(3600)")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]


@posix
def test_ctrl_c_reaches_tests_that_run_in_the_background_of_a_script():
    tests = (
        f"{__file__}::test_ctrl_c_reaches_this_process",
        f"{__file__}::test_ctrl_c_reaches_processes_that_tests_start",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    script = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
