"""The command line: parse, call, print; no mathematics. Its rooms are imported when a command runs."""

from mmpca.cli.interrupts import leave_at_once

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    leave_at_once()
    from mmpca.cli.app import run  # not above: Ctrl-C may come while it loads

    run()
