"""Clusters merged pairwise, down to one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.engine.bound import Array, merge_loss
from mmpca.engine.moves import bound
from mmpca.engine.state import State, pooled_value


class MergePath(NamedTuple):
    """The order in which clusters are merged, each time the two that lose least.

    `linkage` is what :func:`scipy.cluster.hierarchy.dendrogram` draws: two clusters, the loss of the bound so far, and
    the number of clusters merged in a line; the cluster that line t makes has the number Q + t.
    """

    linkage: Array  # (Q - 1, 4)
    bounds: Array  # of 1, 2, ..., Q clusters, (Q,)

    def groups(self, n_clusters: int) -> NDArray[np.int32]:
        """Return which of `n_clusters` groups each of the Q clusters is in, shape (Q,), by their first members."""
        if not 1 <= n_clusters <= len(self.bounds):
            raise ValueError(f"n_clusters must be from 1 to {len(self.bounds)}, but it is {n_clusters}.")
        n_merged = len(self.bounds) - n_clusters
        group = np.arange(len(self.bounds))
        for new, (first, second) in enumerate(self.linkage[:n_merged, :2], start=len(group)):
            group[(group == first) | (group == second)] = new
        _, first_member, inverse = np.unique(group, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first_member))
        return rank[inverse].astype(np.int32)


def merge_path(state: State) -> MergePath:
    """Merge the clusters of a state pairwise by the smallest loss of the bound; the state is not changed.

    The topics are held fixed, and the bound is exact at every level. Losses are added up along the path, and one below
    zero, where a merge gains, counts as none: heights of a tree may not fall.
    """
    tree = _Tree(state)
    linkage, bounds, height = np.empty((state.n_clusters - 1, 4)), [bound(state)], 0.0
    for step in linkage:
        first, second = tree.cheapest()
        loss = tree.merge(first, second)
        height += max(0.0, loss)
        bounds.append(bounds[-1] - loss)
        step[:] = first, second, height, len(tree.members[max(tree.members)])
    return MergePath(linkage, np.array(bounds[::-1]))


class _Tree:
    """Groups of clusters that are left to merge, with what each merge would lose."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.members = {q: [q] for q in range(state.n_clusters)}
        self.sizes = {q: int(state.sizes[q]) for q in range(state.n_clusters)}
        self.values = {q: float(state.value[q]) for q in range(state.n_clusters)}
        self.pooled: dict[tuple[int, int], float] = {}  # J of two groups taken together
        self.losses: dict[tuple[int, int], float] = {}
        for q in range(state.n_clusters):
            self._weigh(q)

    def cheapest(self) -> tuple[int, int]:
        """Return the groups whose merge loses least, the first of equals."""
        return min(self.losses, key=lambda pair: (self.losses[pair], pair))

    def merge(self, first: int, second: int) -> float:
        """Put two groups together and return the loss."""
        loss, new = self.losses[first, second], max(self.sizes) + 1
        self.values[new], self.sizes[new] = self.pooled[first, second], self.sizes[first] + self.sizes[second]
        self.members[new] = self.members.pop(first) + self.members.pop(second)
        self.losses = {pair: x for pair, x in self.losses.items() if not {first, second} & set(pair)}
        self._weigh(new)
        return loss

    def _weigh(self, q: int) -> None:
        """Find out what merging a group with each of those before it loses."""
        for other in self.members:
            if other < q:
                pair, pooled = (other, q), pooled_value(self.state, self.members[other] + self.members[q])
                self.pooled[pair] = pooled
                values, sizes = [self.values[x] for x in pair], [self.sizes[x] for x in pair]
                self.losses[pair] = merge_loss(values, sizes, pooled)
