"""The command line. Modules import only typer and rich, so that help is fast; commands import the rest."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    # A KeyboardInterrupt during an import can get lost or print a traceback. Until a command starts, Ctrl-C therefore
    # ends the process directly; `console.with_exit_codes` restores the usual handler.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_on_interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # whether or not Ctrl-C is ignored, as after nohup
        signal.signal(signal.SIGTERM, end_with_workers)
    from mmpca.cli.app import app

    app()


def end_with_workers(number: int, frame: object) -> None:
    """Handle SIGTERM: end the worker processes of a search, which would otherwise keep running, and this process."""
    if (processes := sys.modules.get("multiprocessing.process")) is not None:
        for worker in processes.active_children():
            worker.terminate()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def exit_on_interrupt(number: int, frame: object) -> None:
    """End the process; a signal handler."""
    os.write(2, b"interrupted: Nothing was written.\n")
    os._exit(INTERRUPTED)
