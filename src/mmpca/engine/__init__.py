"""The search on arrays: states of a partition, moves between them, and the loop that makes them.

The engine starts from what it is given: counts, labels, topics. Five verbs stand between search and model:
`bound`, `gain`, `move`, `refresh` and `check`.
"""

from mmpca.engine.bound import icl
from mmpca.engine.loop import Algorithm, Progress, Run
from mmpca.engine.moves import bound, gain, move, refresh
from mmpca.engine.search import search
from mmpca.engine.soft import anneal, vbem
from mmpca.engine.state import State, build, check, copy, relabel

__all__ = [
    "Algorithm",
    "Progress",
    "Run",
    "State",
    "anneal",
    "bound",
    "build",
    "check",
    "copy",
    "gain",
    "icl",
    "move",
    "refresh",
    "relabel",
    "search",
    "vbem",
]
