"""The paper's experiments, runnable: each a list of tasks, what one task finds, a table and a figure.

To add one, write a frozen dataclass derived from `Experiment` in a file of its own and name it in `catalogue`.
"""

from mmpca.experiments.catalogue import EXPERIMENTS, make
from mmpca.experiments.experiment import Experiment, Record, Table, Task
from mmpca.experiments.ledger import Ledger
from mmpca.experiments.output import Output, write_output
from mmpca.experiments.runner import Progress, run_tasks

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Ledger",
    "Output",
    "Progress",
    "Record",
    "Table",
    "Task",
    "make",
    "run_tasks",
    "write_output",
]
