"""``mmpca explore``."""

import os
import signal
import socket
import stat
import sys
import tempfile
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

import pytest

from mmpca.report import Explorer


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_the_page_is_served_until_ctrl_c(start_python, studio):
    environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
    command = ("explore", studio / "X.mmpca", "--data", studio / "X.mtx")
    process = start_python("-m", "mmpca", *command, env=environment)
    url = process.stdout.readline().strip()
    assert urlsplit(url).hostname == "127.0.0.1"
    with urlopen(f"{url}rows?page=5", timeout=600) as answer:
        assert "120" in answer.read().decode("utf-8")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    with socket.create_server(("127.0.0.1", urlsplit(url).port)):  # the port is free again
        pass


def test_the_browser_gets_a_private_file_instead_of_the_secret_address(mmpca_command, studio, monkeypatch, tmp_path):
    opened = []

    def look(address):
        path = Path(url2pathname(urlsplit(address).path))
        opened.append((address, path, stat.S_IMODE(path.stat().st_mode), path.read_text(encoding="utf-8")))

    def interrupt(explorer):
        assert opened[0][1].exists()  # a slow browser has not read it yet
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


def test_a_port_in_use_is_an_error(mmpca_command, studio):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = mmpca_command("explore", studio / "X.mmpca", "--port", taken.getsockname()[1])
    assert (done.code, done.out) == (1, "")
