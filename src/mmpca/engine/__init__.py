"""The search on arrays: states of a partition, moves between them, and the loop that makes them.

The engine starts from what it is given: counts, labels, topics. Five verbs stand between search and model:
`bound`, `gain`, `move`, `refresh` and `check`.
"""

from mmpca.engine.assign import assigned
from mmpca.engine.bound import icl
from mmpca.engine.hierarchy import MergePath, merge_path
from mmpca.engine.loop import Algorithm, Progress, Run
from mmpca.engine.moves import bound, gain, joins, move, refresh
from mmpca.engine.regroup import merged_once, split_once
from mmpca.engine.search import search
from mmpca.engine.soft import anneal, vbem
from mmpca.engine.state import State, build, build_at, check, copy, of_sums, relabel

__all__ = [
    "Algorithm",
    "MergePath",
    "Progress",
    "Run",
    "State",
    "anneal",
    "assigned",
    "bound",
    "build",
    "build_at",
    "check",
    "copy",
    "gain",
    "icl",
    "joins",
    "merge_path",
    "merged_once",
    "move",
    "of_sums",
    "refresh",
    "relabel",
    "search",
    "split_once",
    "vbem",
]
