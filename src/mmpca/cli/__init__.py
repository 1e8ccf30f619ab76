"""The command line: parse, call, print; no mathematics. Its rooms are imported when a command runs."""

from mmpca.cli.app import main

__all__ = ["main"]
