"""Run the command line: ``python -m mmpca``."""

from mmpca.cli import main

main()
