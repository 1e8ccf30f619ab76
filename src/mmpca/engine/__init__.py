"""The search on arrays: the state of a partition, the moves between partitions, and the loop that makes them.

The engine works on arrays: counts, labels, topics. Five functions connect the search and the model: `bound`, `gain`,
`move`, `refresh` and `check`.
"""

from mmpca.engine.bound import icl
from mmpca.engine.refit import estimate_prior, refit_topics
from mmpca.engine.search import (
    Algorithm,
    MergePath,
    SearchOptions,
    climb,
    merge_once,
    merge_path,
    search,
    split_once,
)
from mmpca.engine.shares import (
    fit_varying_shares,
    log_weights_without_row,
    shares_without_row,
    topics_of_entries,
)
from mmpca.engine.soft import anneal, vbem
from mmpca.engine.state import State, bound, build, check, copy, from_sums, gain, joins, move, refresh, relabel
from mmpca.engine.sweep import assign

__all__ = [
    "Algorithm",
    "MergePath",
    "SearchOptions",
    "State",
    "anneal",
    "assign",
    "bound",
    "build",
    "check",
    "climb",
    "copy",
    "estimate_prior",
    "fit_varying_shares",
    "from_sums",
    "gain",
    "icl",
    "joins",
    "log_weights_without_row",
    "merge_once",
    "merge_path",
    "move",
    "refit_topics",
    "refresh",
    "relabel",
    "search",
    "shares_without_row",
    "split_once",
    "topics_of_entries",
    "vbem",
]
