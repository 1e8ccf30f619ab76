"""``python -m mmpca`` is the command line."""

from mmpca.cli import main

main()
