"""Moves that no visit of single rows can make: two clusters merged, a third one split."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.engine.assign import assigned
from mmpca.engine.bound import Array, merge_loss, responsibilities, size_terms
from mmpca.engine.loop import Limits, climb
from mmpca.engine.moves import bound
from mmpca.engine.state import State, build, of_sums, pooled_value, relabel
from mmpca.places import Here, Place, each_of, group_sums

N_SPLITS = 3  # clusters that are split on trial at a time: those with the largest second-order gain
SPLIT_EPOCHS = 10
SPLIT_ROWS = 10_000  # of a cluster, by which its split is judged; the others follow


class Merge(NamedTuple):
    """Two clusters put together."""

    loss: float  # of the bound
    clusters: tuple[int, int]


class Split(NamedTuple):
    """A cluster taken apart."""

    gain: float  # of the bound
    cluster: int
    leaving: NDArray[np.int64]  # rows of the second half
    members: NDArray[np.int64]  # rows of the cluster that was split
    at_least: float  # the gain below which it was given up


def merged_once(state: State) -> NDArray[np.int32]:
    """Return labels with one cluster less: the two whose merge loses least put together."""
    kept, freed = Regrouping(state, tol=0.0).merges()[0].clusters
    labels = np.where(state.labels == freed, kept, state.labels)
    return np.where(labels > freed, labels - 1, labels).astype(np.int32)


def split_once(state: State, *, tol: float) -> NDArray[np.int32]:
    """Return labels with one cluster more: that whose split gains most taken apart."""
    labels = state.labels.copy()
    split = Regrouping(state, tol=tol).splits(at_least=-np.inf)[0]
    # Rows that are all alike cannot be split well; one of the largest cluster makes a start.
    leaving = split.leaving if len(split.leaving) else np.flatnonzero(labels == state.sizes.argmax())[:1]
    labels[leaving] = state.n_clusters
    return labels


class Regrouping:
    """Merges and splits of a state's clusters; splits are remembered for clusters that stay what they are."""

    def __init__(self, state: State, *, tol: float, place: Place | None = None) -> None:
        self.state, self.tol = state, tol
        self.place = Here(state.rows) if place is None else place
        self._beta = self.place.keep(state.beta)
        self._splits: dict[int, Split] = {}

    def improve(self) -> bool:
        """Merge pairs of clusters and split others where that raises the bound, in place; tell whether any was.

        The bound is a sum over clusters, so that merge and split add up exactly as long as no cluster takes part
        twice.
        """
        if self.state.n_clusters < 3:
            return False
        before = bound(self.state)
        old = self.state.labels.copy(), self.state.gamma.copy()
        labels, gamma = old[0].copy(), old[1].copy()
        merges, min_gain = self.merges(), self.tol * abs(before)
        splits = self.splits(at_least=merges[0].loss)
        chosen = list(_pairs(merges, splits, min_gain))
        if not chosen:
            return False
        for merge, split in chosen:
            kept, freed = merge.clusters
            labels[labels == freed] = kept
            labels[split.leaving] = freed
            gamma[freed] = gamma[split.cluster]
        relabel(self.state, labels, gamma, place=self.place)
        if bound(self.state) > before + min_gain:
            return True
        # Under a prior below one, VE-steps from another start end in another maximum.
        relabel(self.state, *old, place=self.place)
        return False

    def merges(self) -> list[Merge]:
        """Return the merges that seem to lose least, the least loss first."""
        loss = _merge_losses(self.state)
        pairs = sorted(combinations(range(self.state.n_clusters), 2), key=lambda pair: loss[pair])
        pairs = pairs[: self.state.n_clusters]
        losses = each_of(lambda pair: _loss(self.state, pair), pairs, self.place.for_rows)
        return sorted(Merge(loss, pair) for loss, pair in zip(losses, pairs, strict=True))

    def splits(self, at_least: float) -> list[Split]:
        """Return splits of the clusters where they promise most, the largest gain first.

        Those that will not gain `at_least` are given up on the way.
        """
        halves = self._halves()
        promising = sorted(range(len(halves)), key=lambda q: -halves[q].promise)[:N_SPLITS]
        unknown = [q for q in promising if not self._is_known(q, halves[q].members, at_least)]
        for q in unknown:
            self._splits[q] = Split(-np.inf, q, halves[q].members[:0], halves[q].members, at_least)
        can_split = [q for q in unknown if halves[q].promise > -np.inf]
        asked = [
            (half.judged, half.is_second, self._beta, self.state.alpha, self.tol, half.share_judged * at_least)
            for half in (halves[q] for q in can_split)
        ]
        for q, climbed in zip(can_split, self.place.several(climb_halves, asked), strict=True):
            self._splits[q] = _split(self.state, q, halves[q], climbed, at_least, self.place)
        return sorted((self._splits[q] for q in promising), key=lambda split: -split.gain)

    def _halves(self) -> list[_Halves]:
        """Cut every cluster where its rows' topic counts vary most, in the metric of the second-order gain."""
        state = self.state
        members = [np.flatnonzero(state.labels == q) for q in range(state.n_clusters)]
        judged = [_some(rows, q) for q, rows in enumerate(members)]
        asked = [(rows, self._beta, state.gamma[q], state.curvature[q]) for q, rows in enumerate(judged)]
        return [
            _Halves(promise * (len(every) / len(some)) ** 2, every, some, is_second)
            for (promise, is_second), every, some in zip(self.place.several(cut, asked), members, judged, strict=True)
        ]

    def _is_known(self, q: int, members: NDArray[np.int64], at_least: float) -> bool:
        """Tell whether a cluster of these members has been split on trial, and not given up too soon."""
        known = self._splits.get(q)
        return known is not None and known.at_least <= at_least and np.array_equal(known.members, members)


def _pairs(merges: list[Merge], splits: list[Split], min_gain: float) -> Iterator[tuple[Merge, Split]]:
    """Give each split, the best first, the cheapest merge of other clusters, as long as they gain together."""
    used: set[int] = set()
    for split in splits:
        for merge in merges:
            if split.gain - merge.loss <= min_gain:
                break
            if not used & {split.cluster, *merge.clusters} and split.cluster not in merge.clusters:
                used |= {split.cluster, *merge.clusters}
                yield merge, split
                break


def _merge_losses(state: State) -> Array:
    """Return upper bounds on what merging two clusters loses, (Q, Q).

    J* is convex: J*(M_p + M_q) is at least J*(M_p) + G_p(M_q).
    """
    first = state.counts @ state.tables[:, : state.n_clusters]  # G_p(M_q) at [q, p]
    loss = state.value[:, None] - first
    single = size_terms(state.sizes)
    pooled = size_terms(state.sizes[:, None] + state.sizes)
    return np.minimum(loss, loss.T) + single[:, None] + single - pooled


def _loss(state: State, pair: tuple[int, int]) -> float:
    """Return what merging two clusters loses."""
    at = list(pair)
    return merge_loss(state.value[at], state.sizes[at], pooled_value(state, at))


class _Halves(NamedTuple):
    """A cluster cut in two, and what that promises to second order."""

    promise: float
    members: NDArray[np.int64]
    judged: NDArray[np.int64]  # the members by which it is judged, all of them if they are few
    is_second: NDArray[np.bool_]  # of these

    @property
    def share_judged(self) -> float:
        """Share of the members that are judged."""
        return len(self.judged) / len(self.members)


def _some(members: NDArray[np.int64], q: int) -> NDArray[np.int64]:
    """Return the members of a cluster, or so many of them that judging them does not take long."""
    if len(members) <= SPLIT_ROWS:
        return members
    return np.sort(np.random.default_rng(q).choice(members, SPLIT_ROWS, replace=False))


def cut(rows: Counts, beta: Array, gamma: Array, curvature: Array) -> tuple[float, NDArray[np.bool_]]:
    """Return what cutting the rows of a cluster in two promises, minus infinity if they are alike, and the second."""
    s = rows.to_csr() @ responsibilities(beta, gamma)  # (n, K)
    deviation = s - s.sum(axis=1, keepdims=True) * (s.sum(axis=0) / s.sum())  # (n, K), sums to zero over the rows
    values, vectors = np.linalg.eigh(np.nan_to_num(curvature))
    points = deviation @ (vectors * np.sqrt(np.maximum(values, 0.0)))  # (n, K)
    axis = np.linalg.eigh(points.T @ points)[1][:, -1]
    is_second = points @ axis > 0.0
    share = s[is_second].sum() / s.sum()
    if not 0.0 < share < 1.0:
        return -np.inf, is_second
    promise = 0.5 * (points[is_second].sum(axis=0) ** 2).sum() / (share * (1.0 - share))
    return float(promise), is_second


def _split(
    state: State,
    q: int,
    halves: _Halves,
    climbed: tuple[float, Array, NDArray[np.bool_]],
    at_least: float,
    place: Place,
) -> Split:
    """Return the split that a climb from two halves has found, taken to those members that were not judged."""
    members, (gain, sums, is_second) = halves.members, climbed
    if len(halves.judged) == len(members):
        return Split(gain, q, members[is_second], members, at_least)
    sizes = np.bincount(is_second, minlength=2)
    pair = of_sums(sums, sizes, beta=state.beta, alpha=state.alpha)
    labels = assigned(pair, members, place)
    sums = place.total(group_sums, members, labels, shared=(2,))
    sizes = np.bincount(labels, minlength=2)
    if not sizes.all():
        return Split(-np.inf, q, members[:0], members, at_least)
    pair = of_sums(sums, sizes, beta=state.beta, alpha=state.alpha)
    return Split(bound(pair) - float(state.value[q]), q, members[labels == 1], members, at_least)


def climb_halves(
    rows: Counts, is_second: NDArray[np.bool_], beta: Array, alpha: float, tol: float, at_least: float
) -> tuple[float, Array, NDArray[np.bool_]]:
    """Climb from two halves of some rows; return what they gain over being together, their sums and the second.

    It is given up when it will not gain `at_least`.
    """
    part = build(rows, is_second, n_clusters=2, beta=beta, alpha=alpha)
    # The part's own bound counts n log(n / n_q), which is just what a split adds to the whole's.
    whole, rng = pooled_value(part, [0, 1]), np.random.default_rng(0)
    gains = [bound(part) - whole]
    for n_left in range(SPLIT_EPOCHS, 0, -1):
        run = climb(part, rng=rng, limits=Limits(1, tol))
        if run.interrupted:  # the search as a whole is meant
            raise KeyboardInterrupt
        gains.append(run.bounds[-1] - whole)
        if run.converged or gains[-1] + n_left * (gains[-1] - gains[-2]) < at_least:
            break
    return gains[-1], part.counts, part.labels == 1
