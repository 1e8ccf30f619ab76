"""The commands as the command line shows them: options and help, in a file each, with nothing heavy imported.

What a command does is in the file of the same name one folder up. To add a command, write both and name it in
`COMMANDS`.
"""

from mmpca.cli.commands.compare import compare
from mmpca.cli.commands.convert import convert
from mmpca.cli.commands.demo import demo
from mmpca.cli.commands.explain import explain
from mmpca.cli.commands.explore import explore
from mmpca.cli.commands.fit import fit
from mmpca.cli.commands.inspect import inspect
from mmpca.cli.commands.predict import predict
from mmpca.cli.commands.report import report
from mmpca.cli.commands.reproduce import reproduce
from mmpca.cli.commands.select import select
from mmpca.cli.commands.simulate import simulate

__all__ = ["COMMANDS"]

# In the order of a newcomer's path.
COMMANDS = (demo, inspect, select, fit, predict, explain, report, explore, compare, simulate, convert, reproduce)
