"""``mmpca explore`` in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="processes are interrupted in another way there")
def test_it_prints_its_address_answers_and_stops_by_an_interrupt(studio):
    command = [sys.executable, "-m", "mmpca", "explore", studio / "X.mmpca", "--data", studio / "X.mtx"]
    environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().strip()
        assert urlsplit(url).hostname == "127.0.0.1"
        with urlopen(f"{url}rows?page=5", timeout=30) as answer:
            assert "101 to 120 of 120 rows" in answer.read().decode("utf-8")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert told.strip().endswith("Stopped.")
    with socket.create_server(("127.0.0.1", urlsplit(url).port)):  # the port is free
        pass


def test_a_port_that_is_taken_is_told(mmpca_command, studio):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = mmpca_command("explore", studio / "X.mmpca", "--port", taken.getsockname()[1])
    assert done.code == 1
    assert "in use" in done.err


def test_ports_beyond_the_range_are_wrong_usage(mmpca_command, studio):
    assert mmpca_command("explore", studio / "X.mmpca", "--port", 70000).code == 2
