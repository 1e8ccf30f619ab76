"""Ctrl-C while a command is on its way up and down: no exception that a half-loaded module could lose or show."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from typing import Any

_INTERRUPTED = 130  # as in guard, which is not loaded yet


def leave_at_once() -> None:
    """Let Ctrl-C end the process with a word and its exit code, from now until `raise_interrupts`."""
    if _is_ours(signal.default_int_handler):
        signal.signal(signal.SIGINT, _leave)


def raise_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, where `leave_at_once` has changed that; ignore it at the very end."""
    if _is_ours(_leave):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _is_ours(handler: Any) -> bool:
    """Tell whether Ctrl-C has the given effect, and may be given another: who calls from a program sees to it there."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is handler


def _leave(number: int, frame: object) -> None:
    os.write(2, b"interrupted: Nothing was written.\n")
    os._exit(_INTERRUPTED)
