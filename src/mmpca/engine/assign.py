"""Rows given to the clusters that fit them best, as they are."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mmpca import kernels
from mmpca.counts import Counts
from mmpca.engine.state import Clusters, State, Topics, of_part
from mmpca.places import ForRows, Place, Rows, joined


def assigned(state: State, rows: Rows, place: Place) -> NDArray[np.int32]:
    """Return the cluster of a state that fits each of some rows best, all parameters held fixed."""
    return np.asarray(joined(place, assign_rows, rows, shared=(Topics.of(state), Clusters.of(state))))


def assign_rows(part: Counts, rows: Rows, topics: Topics, clusters: Clusters, for_rows: ForRows) -> NDArray[np.int32]:
    """Return the cluster that fits each of some rows of a part best."""
    target = np.empty(len(rows), dtype=np.int32)
    state = of_part(part, rows, np.zeros(len(rows), dtype=np.int32), topics, clusters)
    for_rows(partial(kernels.assign, state), rows, target)
    return target
