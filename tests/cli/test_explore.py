"""``mmpca explore`` in a process of its own."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

import pytest

from mmpca.report import Explorer


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


def test_the_browser_is_led_to_the_address_by_a_file_that_only_its_owner_can_read(
    mmpca_command, studio, monkeypatch, tmp_path
):
    opened = []

    def look(address):
        path = Path(url2pathname(urlsplit(address).path))
        opened.append((address, path, stat.S_IMODE(path.stat().st_mode), path.read_text(encoding="utf-8")))

    def interrupt(explorer):
        assert opened[0][1].exists()  # a browser may be slow to read it
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", look)
    monkeypatch.setattr(Explorer, "serve", interrupt)
    done = mmpca_command("explore", studio / "X.mmpca", "--browser")
    assert done.code == 0, done.err
    [(address, _, mode, page)] = opened
    url = done.out.strip()
    assert urlsplit(address).scheme == "file"
    assert urlsplit(url).path.strip("/") not in address
    assert f'<meta http-equiv="refresh" content="0; url={url}">' in page
    assert mode == 0o600 or sys.platform == "win32"
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_told(mmpca_command, studio):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = mmpca_command("explore", studio / "X.mmpca", "--port", taken.getsockname()[1])
    assert done.code == 1
    assert "in use" in done.err


def test_ports_beyond_the_range_are_wrong_usage(mmpca_command, studio):
    assert mmpca_command("explore", studio / "X.mmpca", "--port", 70000).code == 2
