"""The search from one start: climbs by moves of single rows, with merges and splits of whole clusters between them.

An epoch of a climb visits all rows in a random order, in blocks. Blocks depend on the size of the data alone, so the
result does not depend on the number of threads or workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import LocalRows, RowBackend, Rows, group_sums
from mmpca.counts import Counts
from mmpca.engine.bound import Array, Prior, merge_loss, responsibilities, size_terms
from mmpca.engine.state import State, bound, build, from_sums, pooled_value, refresh, relabel, topic_weights
from mmpca.engine.sweep import CvemSweep, ExactSweep, GreedySweep, Sweep, assign
from mmpca.monitor import History

Algorithm = Literal["greedy", "exact", "cvem", "vbem"]

# Clusters are merged and split as soon as an epoch moves at most this share of the rows: there is no point in polishing
# a partition that a split will change.
FEW_MOVES_SHARE = 0.01
# Blocks grow with the data so that their overhead stays small.
MIN_BLOCK, BLOCKS_PER_EPOCH = 32, 16
LARGE_BLOCK, MOST_BLOCKS = 4096, 64  # blocks stop growing at this size, until there are this many of them
CAREFUL_BLOCKS = 4  # in a careful epoch; each replaces at most this many ordinary blocks
ROUNDING = 1e-12  # relative rounding error of a bound
LEAST_SPLITS, SPLIT_SHARE = 3, 0.1  # clusters split on trial at a time: those with the largest second-order gain
SPLIT_EPOCHS = 10
MOST_MERGES = 32  # pairs of clusters whose loss is computed exactly: those with the smallest upper bounds
TRIALS_AT_ONCE = 8  # splits and cuts between two reports of progress
SPLIT_ROWS = 10_000  # rows of a large cluster on which its split is tried; the others follow
MANY_TOPICS = 32  # beyond this, trial splits pool the topics that the cluster hardly uses


class SearchOptions(NamedTuple):
    """Options of a search that all starts share."""

    n_clusters: int
    alpha: Prior = 1.0  # Dirichlet prior of the clusters' topic shares
    algorithm: Algorithm = "greedy"
    max_epochs: int = 200
    tol: float = 1e-10  # a move must gain more than this share of the bound's magnitude
    few_moves: int = 0  # stop after an epoch with at most this many moves
    patience: int = 1  # give up after this many starts in a row without a better bound
    known: NDArray[np.int32] | None = None  # labels of rows that never move, -1 for the others, (N,)
    refits_topics: bool = False  # whether "exact" re-estimates the topics, in place, after every move
    merge_split: bool = True  # whether whole clusters may be merged and split
    verify_factor: float | None = None  # of error bounds when convergence is verified; None for `verify_factor`


def search(
    state: State,
    options: SearchOptions,
    *,
    rng: np.random.Generator,
    backend: RowBackend | None = None,
    history: History | None = None,
) -> History:
    """Climb from the partition to one that no single move improves, in place.

    The greedy algorithm also merges two clusters and splits a third where that raises the bound, and climbs on from
    there; the others only climb.

    Parameters
    ----------
    state : State
        Where to start, with every cluster fresh.
    options : SearchOptions
    rng : Generator
        Draws the order in which the rows are visited, a new one in each epoch.
    backend : RowBackend, optional
        The rows, if the state does not hold them, and the threads; only "greedy" can use rows on workers.
    history : History, optional
        Epochs are added to it.

    Returns
    -------
    History
        Bound and moves of an epoch include those of merges and splits just before it.
    """
    backend = LocalRows(state.rows) if backend is None else backend
    history = History() if history is None else history
    first = options._replace(few_moves=max(options.few_moves, int(FEW_MOVES_SHARE * len(state.labels))))
    try:
        if options.algorithm != "greedy" or not options.merge_split:
            return climb(state, options, rng=rng, backend=backend, history=history)
        sweep = GreedySweep(state, backend, options.verify_factor)
        climb(state, first, rng=rng, backend=backend, history=history, sweep=sweep)
        merge_split = MergeSplit(state, tol=options.tol, backend=backend, history=history, known=options.known)
        while not history.interrupted and history.n_epochs < options.max_epochs:
            has_changed = merge_split.improve()
            if not history.report("clusters merged and split"):
                history.converged = False
                break
            if history.n_moves and history.n_moves[-1] <= options.few_moves and not has_changed:
                break
            if has_changed:
                sweep.forget_bounds()
            n_before = history.n_epochs
            rest = (first if has_changed else options)._replace(max_epochs=options.max_epochs - n_before)
            climb(state, rest, rng=rng, backend=backend, history=history, sweep=sweep)
            if history.n_epochs == n_before:  # no gain could be trusted
                break
    except KeyboardInterrupt:
        # It came between two climbs. The labels are valid; everything else is recomputed from them.
        relabel(state, state.labels, state.clusters.gamma, backend=backend)
        history.bounds[-1:] = [max([bound(state), *history.bounds[-1:]])]  # rounding
        history.converged, history.interrupted = False, True
    return history


# --- epochs -----------------------------------------------------------------------------------------------------


def climb(
    state: State,
    options: SearchOptions,
    *,
    rng: np.random.Generator,
    backend: RowBackend | None = None,
    history: History | None = None,
    sweep: Sweep | None = None,
) -> History:
    """Climb from the partition to one that no single move improves, in place.

    Parameters
    ----------
    state : State
        Where to start, with every cluster fresh.
    options : SearchOptions
        ``"exact"`` is Algorithm 1 of the paper, row by row; ``"greedy"`` proposes a block of moves by screened
        second-order gains and applies those that still gain; ``"cvem"`` reassigns all rows with the parameters held
        fixed.
    rng : Generator
        Draws the order in which the rows are visited, a new one in each epoch.
    backend : RowBackend, optional
        The rows, if the state does not hold them, and the threads; only "greedy" can use rows on workers.
    history : History, optional
        Epochs are added to it.
    sweep : Sweep, optional
        The sweep of an earlier climb of this state, which holds information about the rows.

    Returns
    -------
    History
    """
    n_rows = len(state.labels)
    backend = LocalRows(state.rows) if backend is None else backend
    history = History() if history is None else history
    current, n_before = max([bound(state), *history.bounds[-1:]]), history.n_epochs  # rounding
    if not history.bounds:
        history.bounds.append(current)
    sweep = _sweep(state, options, backend) if sweep is None else sweep
    history.converged = False
    while not history.interrupted and history.n_epochs - n_before < options.max_epochs:
        before = state.labels.copy(), state.clusters.gamma.copy()
        order, min_gain = rng.permutation(n_rows), options.tol * abs(current)
        size = block_size(n_rows, options.algorithm, is_careful=sweep.is_careful)
        if options.known is not None:
            order = order[options.known[order] < 0]
        try:
            _visit_all(state, sweep, order, size, min_gain, history)
            has_fallen = bound(state) < current - ROUNDING * abs(current)
        except KeyboardInterrupt:
            # Kernels always run to completion, so the labels are valid; everything else is recomputed from them.
            history.interrupted = True
            relabel(state, state.labels, state.clusters.gamma, backend=backend)
            has_fallen = bound(state) < current
        if has_fallen:
            relabel(state, *before, backend=backend)
            history.n_moves_now = 0
            history.n_undone += 1
            if not history.interrupted:
                if sweep.undo_epoch():
                    continue
                break
        else:
            sweep.end_epoch()
        if not np.array_equal(state.labels, before[0]):  # otherwise the bound differs from the last by rounding alone
            current = max(current, bound(state))
        history.end_epoch(current, state.labels)
        history.converged = history.n_moves[-1] == 0 and not history.interrupted
        if history.n_moves[-1] <= options.few_moves:
            break
    return history


def _visit_all(state: State, sweep: Sweep, order: Rows, size: int, min_gain: float, history: History) -> None:
    """Screen all rows, in place; if none moves, verify that with wider margins before convergence is declared."""
    for error_factor in sweep.error_factors:
        rows = sweep.active(order, min_gain, is_verifying=error_factor == sweep.error_factors[-1])
        history.n_done = len(order) - len(rows)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            history.block_done(len(block), sweep.visit(block, min_gain, error_factor))
            if history.interrupted:
                return
        if history.n_moves_now:
            return
        for q in np.flatnonzero(state.clusters.aged).tolist():
            refresh(state, q)


def _sweep(state: State, options: SearchOptions, backend: RowBackend) -> Sweep:
    if options.algorithm == "exact":
        return ExactSweep(state, refits_topics=options.refits_topics)
    if options.algorithm == "cvem":
        return CvemSweep(state, backend.threads)
    return GreedySweep(state, backend, options.verify_factor)


def block_size(n_rows: int, algorithm: str, *, is_careful: bool = False) -> int:
    """Return the number of rows evaluated against one frozen state, whatever the number of threads or workers.

    A careful sweep refreshes all clusters that a block has changed, so it has fewer blocks.
    """
    if algorithm == "cvem":
        return n_rows
    # On a cluster, the tables are sent once per block, so the number of blocks must not grow without limit.
    size = int(np.clip(n_rows // BLOCKS_PER_EPOCH, MIN_BLOCK, max(LARGE_BLOCK, n_rows // MOST_BLOCKS)))
    return max(size, min(CAREFUL_BLOCKS * size, -(-n_rows // CAREFUL_BLOCKS))) if is_careful else size


# --- merges and splits --------------------------------------------------------------------------------------------


class Merge(NamedTuple):
    """A merge of two clusters."""

    loss: float  # of the bound
    clusters: tuple[int, int]


class Split(NamedTuple):
    """A split of a cluster."""

    gain: float  # of the bound
    cluster: int
    leaving: NDArray[np.int64]  # rows of the second half
    members: NDArray[np.int64]  # rows of the cluster
    at_least: float  # the trial was given up when it could not gain this much


class _Halves(NamedTuple):
    """A cluster cut in two, to start the trial of a split from."""

    promise: float  # second-order gain of the cut
    members: NDArray[np.int64]
    sample: NDArray[np.int64]  # members on which the split is tried, all of them if they are few
    is_second: NDArray[np.bool_]  # of the sample


class _Interrupted(Exception):
    """The callback asked the search to stop."""


class MergeSplit:
    """Merges and splits of the clusters of a state; trials are remembered while a cluster keeps its rows."""

    def __init__(
        self,
        state: State,
        *,
        tol: float,
        backend: RowBackend | None = None,
        n_sampled: int = SPLIT_ROWS,
        history: History | None = None,
        known: NDArray[np.int32] | None = None,
    ) -> None:
        self.state, self.tol, self.n_sampled, self.known = state, tol, n_sampled, known
        self.history = History() if history is None else history
        self.backend = LocalRows(state.rows) if backend is None else backend
        self._beta = self.backend.broadcast(state.topics.beta)
        self._cuts: dict[int, _Halves] = {}
        self._splits: dict[int, Split] = {}

    def improve(self) -> bool:
        """Merge pairs of clusters and split others where that raises the bound, in place; return True if it did.

        Nothing changes if the search is interrupted meanwhile.

        The bound is a sum over clusters, so the loss of a merge and the gain of a split add up exactly as long as no
        cluster takes part twice.
        """
        if self.state.n_clusters < 3 or not self.history.report("merging clusters"):
            return False
        before = bound(self.state)
        old = self.state.labels.copy(), self.state.clusters.gamma.copy()
        labels, gamma = old[0].copy(), old[1].copy()
        merges, min_gain = self.merges(), self.tol * abs(before)
        if self.known is not None and not (merges := self._allowed_merges(merges, self.known)):
            return False
        try:
            splits = self.splits(at_least=merges[0].loss)
        except _Interrupted:
            return False
        if self.known is not None:
            splits = list(_allowed_splits(splits, self.known))
        chosen = list(_pairs(merges, splits, min_gain))
        if not chosen:
            return False
        for merge, split in chosen:
            kept, freed = merge.clusters
            labels[labels == freed] = kept
            labels[split.leaving] = freed
            gamma[freed] = gamma[split.cluster]
        changed = np.unique([(split.cluster, *merge.clusters) for merge, split in chosen])
        relabel(self.state, labels, gamma, backend=self.backend, only=changed)
        if bound(self.state) > before + min_gain:
            return True
        # Under a prior below one, VE-steps from another start end in another maximum.
        relabel(self.state, *old, backend=self.backend, only=changed)
        return False

    def merges(self) -> list[Merge]:
        """Return the most promising merges, the smallest loss first."""
        upper = _merge_loss_bounds(self.state)
        pairs = sorted(combinations(range(self.state.n_clusters), 2), key=lambda pair: upper[pair])
        pairs = pairs[: min(self.state.n_clusters, MOST_MERGES)]
        pooled = self.backend.threads.map(partial(pooled_value, self.state), pairs)
        values, sizes = self.state.clusters.value, self.state.clusters.sizes
        return sorted(
            Merge(merge_loss(values[[*pair]], sizes[[*pair]], value), pair)
            for pair, value in zip(pairs, pooled, strict=True)
        )

    def _allowed_merges(self, merges: list[Merge], known: NDArray[np.int32]) -> list[Merge]:
        """Return the merges in which no known row moves: the rows of the second cluster join the first."""
        has_known = np.isin(np.arange(self.state.n_clusters), known)
        allowed = [merge for merge in merges if not has_known[list(merge.clusters)].all()]
        return [
            merge._replace(clusters=merge.clusters[::-1]) if has_known[merge.clusters[1]] else merge
            for merge in allowed
        ]

    def splits(self, at_least: float) -> list[Split]:
        """Return splits of the most promising clusters, the largest gain first.

        A trial is given up when it can no longer gain `at_least`.
        """
        halves = self._halves()
        n_tried = max(LEAST_SPLITS, int(SPLIT_SHARE * len(halves)))
        promising = sorted(range(len(halves)), key=lambda q: -halves[q].promise)[:n_tried]
        untried = []
        for q in promising:
            last = self._splits.get(q)
            if last is not None and last.at_least <= at_least and np.array_equal(last.members, halves[q].members):
                continue  # it has kept its rows, and was not given up too soon
            untried.append(q)
            self._splits[q] = Split(-np.inf, q, halves[q].members[:0], halves[q].members, at_least)
        can_split = [q for q in untried if halves[q].promise > -np.inf]
        tasks = []
        for q in can_split:
            half, share = halves[q], len(halves[q].sample) / len(halves[q].members)
            alpha, gamma = self.state.topics.alpha, self.state.clusters.gamma[q]
            tasks.append((half.sample, half.is_second, self._beta, alpha, gamma, self.tol, share * at_least))
        for q, trial in zip(can_split, self._map(climb_halves, tasks, "splitting clusters"), strict=True):
            self._splits[q] = self._extend(q, halves[q], trial, at_least)
        return sorted((self._splits[q] for q in promising), key=lambda split: -split.gain)

    def _halves(self) -> list[_Halves]:
        """Cut every cluster where the topic counts of its rows vary most, in the metric of the second-order gain.

        A cluster that has kept its rows keeps its cut.
        """
        state, clusters = self.state, self.state.clusters
        members = [np.flatnonzero(state.labels == q) for q in range(state.n_clusters)]
        new = [
            q for q in range(state.n_clusters)
            if q not in self._cuts or not np.array_equal(self._cuts[q].members, members[q])
        ]  # fmt: skip
        samples = [
            members[q]
            if len(members[q]) <= self.n_sampled
            else np.sort(np.random.default_rng(q).choice(members[q], self.n_sampled, replace=False))
            for q in new
        ]
        tasks = [
            (rows, self._beta, state.topics.alpha, clusters.gamma[q], clusters.curvature[q])
            for q, rows in zip(new, samples, strict=True)
        ]
        cuts = self._map(cut, tasks, "choosing clusters to split")
        for q, sample, (promise, is_second) in zip(new, samples, cuts, strict=True):
            scale = (len(members[q]) / len(sample)) ** 2
            self._cuts[q] = _Halves(promise * scale, members[q], sample, is_second)
        return [self._cuts[q] for q in range(state.n_clusters)]

    def _map(self, call: Callable[..., Any], tasks: list[Any], work: str) -> list[Any]:
        """Return the results of a function of some rows, in order, with a report of progress now and then."""
        results = []
        for start in range(0, len(tasks), TRIALS_AT_ONCE):
            if not self.history.report(work):
                raise _Interrupted
            results += self.backend.map(call, tasks[start : start + TRIALS_AT_ONCE])
        return results

    def _extend(self, q: int, halves: _Halves, trial: tuple[float, Array, NDArray[np.bool_]], at_least: float) -> Split:
        """Return the split found on a sample, extended to all rows of the cluster."""
        state, members, (gain, sums, is_second) = self.state, halves.members, trial
        if len(halves.sample) == len(members):
            return Split(gain, q, members[is_second], members, at_least)
        beta, alpha = state.topics.beta, state.topics.alpha
        pair = from_sums(sums, np.bincount(is_second, minlength=2), beta=beta, alpha=alpha)
        labels = assign(pair, members, self.backend)
        sums = self.backend.map_reduce(group_sums, members, labels, shared=(2,))
        sizes = np.bincount(labels, minlength=2)
        if not sizes.all():
            return Split(-np.inf, q, members[:0], members, at_least)
        gain = bound(from_sums(sums, sizes, beta=beta, alpha=alpha)) - float(state.clusters.value[q])
        return Split(gain, q, members[labels == 1], members, at_least)


def _allowed_splits(splits: list[Split], known: NDArray[np.int32]) -> Iterator[Split]:
    """Yield the splits in which no known row leaves, the halves exchanged if necessary."""
    for split in splits:
        staying = np.setdiff1d(split.members, split.leaving)
        if (known[split.leaving] < 0).all():
            yield split
        elif (known[staying] < 0).all():
            yield split._replace(leaving=staying)


def _pairs(merges: list[Merge], splits: list[Split], min_gain: float) -> Iterator[tuple[Merge, Split]]:
    """Pair each split, the best first, with the cheapest merge of other clusters, as long as the pair gains."""
    used: set[int] = set()
    for split in splits:
        for merge in merges:
            if split.gain - merge.loss <= min_gain:
                break
            if not used & {split.cluster, *merge.clusters} and split.cluster not in merge.clusters:
                used |= {split.cluster, *merge.clusters}
                yield merge, split
                break


def _merge_loss_bounds(state: State) -> Array:
    """Return upper bounds on the loss of merging two clusters, (Q, Q).

    J* is convex, so J*(M_p + M_q) is at least J*(M_p) + G_p(M_q).
    """
    clusters = state.clusters
    first = clusters.counts @ clusters.tables[:, : state.n_clusters]  # G_p(M_q) at [q, p]
    loss = clusters.value[:, None] - first
    single = size_terms(clusters.sizes)
    pooled = size_terms(clusters.sizes[:, None] + clusters.sizes)
    return np.minimum(loss, loss.T) + single[:, None] + single - pooled


def cut(rows: Counts, beta: Array, alpha: Prior, gamma: Array, curvature: Array) -> tuple[float, NDArray[np.bool_]]:
    """Cut the rows of a cluster in two; return the second-order gain (minus infinity if rows are alike) and the cut.

    The cut is across the main axis of the rows' topic counts, in the metric of the curvature A.
    """
    rows, used = _compact(rows)
    own = _own_topics(gamma, alpha)
    curvature = curvature[np.ix_(own, own)]
    s = rows.to_csr() @ responsibilities(beta[:, used], gamma)[:, own]  # (n, K)
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


def climb_halves(
    rows: Counts, is_second: NDArray[np.bool_], beta: Array, alpha: Prior, gamma: Array, tol: float, at_least: float
) -> tuple[float, Array, NDArray[np.bool_]]:
    """Climb from two halves of some rows; return their gain over one cluster, their sums (2, V) and the second half.

    The climb is given up when it can no longer gain `at_least`. VE-steps start from `gamma` (K,) of the one cluster.
    With many topics, the climb pools those that the cluster hardly uses; unless it was given up, the gain returned is
    that under all topics.
    """
    n_features = rows.n_features
    rows, used = _compact(rows)
    beta = beta[:, used]
    own, own_alpha, own_gamma = _pooled(beta, alpha, gamma)
    part = build(rows, is_second, n_clusters=2, beta=own, alpha=own_alpha, gamma=np.stack([own_gamma, own_gamma]))
    # The bound of the part has terms n_q log(n_q / n), exactly what a split adds to the bound of all rows.
    whole, rng = pooled_value(part, [0, 1]), np.random.default_rng(0)
    gains, sweep = [bound(part) - whole], GreedySweep(part, LocalRows(rows))
    for n_left in range(SPLIT_EPOCHS, 0, -1):
        run = climb(part, SearchOptions(2, own_alpha, max_epochs=1, tol=tol), rng=rng, sweep=sweep)
        if run.interrupted:  # Ctrl-C means the whole search
            raise KeyboardInterrupt
        gains.append(run.bounds[-1] - whole)
        if run.converged or gains[-1] + n_left * (gains[-1] - gains[-2]) < at_least:
            break
    if len(own) < len(beta) and gains[-1] >= at_least:
        part = build(rows, part.labels, n_clusters=2, beta=beta, alpha=alpha, gamma=np.stack([gamma, gamma]))
        gains.append(bound(part) - pooled_value(part, [0, 1]))
    sums = np.zeros((2, n_features))
    sums[:, used] = part.clusters.counts
    return gains[-1], sums, part.labels == 1


def _own_topics(gamma: Array, alpha: Prior) -> NDArray[np.int64]:
    """Return the topics to split by: with many topics, only those whose expected counts exceed their prior."""
    is_own = gamma >= 2.0 * alpha
    return np.flatnonzero(is_own if len(gamma) > MANY_TOPICS and is_own.any() else np.ones_like(is_own))


def _pooled(beta: Array, alpha: Prior, gamma: Array) -> tuple[Array, Array, Array]:
    """Return the topics to split by, followed by the others pooled into one, their prior and their gamma."""
    own, alpha = _own_topics(gamma, alpha), np.full_like(gamma, alpha)
    rest = np.setdiff1d(np.arange(len(gamma)), own)
    if len(rest) < 2:
        return beta, alpha, gamma
    weight = topic_weights(gamma)[rest]
    beta = np.concatenate([beta[own], (weight / weight.sum())[None] @ beta[rest]])
    pooled = alpha[rest].mean()
    alpha, excess = np.append(alpha[own], pooled), (gamma[rest] - alpha[rest]).sum()
    return beta, alpha, np.append(gamma[own], pooled + excess)


def _compact(rows: Counts) -> tuple[Counts, NDArray[np.int64]]:
    """Return the rows without the features that they do not have, and the features that are left."""
    used = np.flatnonzero(rows.column_totals())
    indices = np.searchsorted(used, rows.indices).astype(np.int32)
    return rows._replace(indices=indices, n_features=len(used)), used


# --- one cluster more or fewer ------------------------------------------------------------------------------------


def merge_once(state: State) -> NDArray[np.int32]:
    """Return labels with one cluster fewer, (N,): the merge that loses least."""
    kept, freed = MergeSplit(state, tol=0.0).merges()[0].clusters
    labels = np.where(state.labels == freed, kept, state.labels)
    return np.where(labels > freed, labels - 1, labels).astype(np.int32)


def split_once(state: State, *, tol: float) -> NDArray[np.int32]:
    """Return labels with one cluster more, (N,): the split that gains most."""
    labels = state.labels.copy()
    split = MergeSplit(state, tol=tol).splits(at_least=-np.inf)[0]
    # Identical rows cannot be split well, so split off a single row of the largest cluster.
    largest = state.clusters.sizes.argmax()
    leaving = split.leaving if len(split.leaving) else np.flatnonzero(labels == largest)[:1]
    labels[leaving] = state.n_clusters
    return labels


# --- down to one cluster ------------------------------------------------------------------------------------------


class MergePath(NamedTuple):
    """The order in which clusters are merged, each time the two that lose least.

    `linkage` has the format of :func:`scipy.cluster.hierarchy.dendrogram`: two clusters, the loss of the bound so far,
    and the number of merged clusters in each row; the cluster made by row t has the number Q + t.
    """

    linkage: Array  # (Q - 1, 4)
    bounds: Array  # of 1, 2, ..., Q clusters, (Q,)

    def groups(self, n_clusters: int) -> NDArray[np.int32]:
        """Return the group of each of the Q clusters when `n_clusters` groups are left, shape (Q,).

        Groups are numbered in the order of their first members.
        """
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
    """Merge the clusters of a state pairwise by the smallest loss of the bound; the state does not change.

    Topics are held fixed, and the bound is exact at every level. Heights add up the losses along the path; a merge that
    gains counts as no loss, because the heights of a tree must not decrease.
    """
    tree = _MergeTree(state)
    linkage, bounds, height = np.empty((state.n_clusters - 1, 4)), [bound(state)], 0.0
    for step in linkage:
        first, second = tree.cheapest()
        loss = tree.merge(first, second)
        height += max(0.0, loss)
        bounds.append(bounds[-1] - loss)
        step[:] = first, second, height, len(tree.members[max(tree.members)])
    return MergePath(linkage, np.array(bounds[::-1]))


class _MergeTree:
    """Groups of clusters that are left to merge, with the loss of each possible merge."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.members = {q: [q] for q in range(state.n_clusters)}
        self.sizes = {q: int(state.clusters.sizes[q]) for q in range(state.n_clusters)}
        self.values = {q: float(state.clusters.value[q]) for q in range(state.n_clusters)}
        self.pooled: dict[tuple[int, int], float] = {}  # J of two groups taken together
        self.losses: dict[tuple[int, int], float] = {}
        for q in range(state.n_clusters):
            self._add(q)

    def cheapest(self) -> tuple[int, int]:
        """Return the groups whose merge loses least, the first in case of ties."""
        return min(self.losses, key=lambda pair: (self.losses[pair], pair))

    def merge(self, first: int, second: int) -> float:
        """Merge two groups and return the loss."""
        loss, new = self.losses[first, second], max(self.sizes) + 1
        self.values[new], self.sizes[new] = self.pooled[first, second], self.sizes[first] + self.sizes[second]
        self.members[new] = self.members.pop(first) + self.members.pop(second)
        self.losses = {pair: x for pair, x in self.losses.items() if not {first, second} & set(pair)}
        self._add(new)
        return loss

    def _add(self, q: int) -> None:
        """Compute the loss of merging a group with each group before it."""
        for other in self.members:
            if other < q:
                pair, pooled = (other, q), pooled_value(self.state, self.members[other] + self.members[q])
                self.pooled[pair] = pooled
                values, sizes = [self.values[x] for x in pair], [self.sizes[x] for x in pair]
                self.losses[pair] = merge_loss(values, sizes, pooled)
