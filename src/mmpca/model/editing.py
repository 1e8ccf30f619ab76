"""Knowledge of the user: labels of some rows, words of some topics, and edits of clusters to continue from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mmpca import engine
from mmpca.counts import Counts
from mmpca.engine.search import climb_halves, cut
from mmpca.errors import warn
from mmpca.io import CountTable
from mmpca.topics import fit_lda
from mmpca.topics.em import Mixture, Problem, em_step, fitted_shares
from mmpca.topics.lda import SMOOTHING

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA
    from mmpca.monitor import Monitor

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

NOISE = "noise"  # name of clusters marked as noise
UNKNOWN = -1  # label of a row whose cluster is not known
SEED_PASSES = 30  # of EM with anchored words


# --- known labels -----------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """Known labels of rows, `UNKNOWN` for others, and names of the clusters that they name."""

    labels: Labels
    names: dict[int, str]


class Knowledge(NamedTuple):
    """What the user knows about the rows and the topics of a fit."""

    known: Known | None = None
    seeds: TopicSeeds | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :meth:`mmpca.MMPCA.fit_rows`."""
        return {"known": None if self.known is None else self.known.labels, "topic_seeds": self.seeds}

    def name(self, model: MMPCA) -> MMPCA:
        """Name the clusters and topics of a fitted model, in place."""
        clusters = {} if self.known is None else self.known.names
        return model.rename(clusters, {} if self.seeds is None else dict(enumerate(self.seeds.names)))


def check_knowledge(
    model: MMPCA,
    labels: Any,
    seed_topics: Mapping[str, Iterable[Any]] | None,
    *,
    shape: tuple[int, int],
    feature_names: Any = None,
    checkpoint: object = None,
) -> Knowledge:
    """Return known labels and seed words for a fit of rows with this shape; raise ValueError if they cannot be used."""
    if labels is None and seed_topics is None:
        return Knowledge()
    if checkpoint is not None or model.algorithm == "vbem":
        raise ValueError('labels and seed_topics cannot be combined with checkpoint or with algorithm="vbem".')
    known = None if labels is None else check_known(labels, shape[0], model.n_clusters)
    seeds = None
    if seed_topics is not None:
        if not (isinstance(model.topics, str) and model.topics in ("auto", "lda")):
            raise ValueError('seed_topics need topics="auto" or "lda".')
        seeds = check_seeds(seed_topics, feature_names, model.n_topics, shape[1])
    return Knowledge(None if known is None or (known.labels < 0).all() else known, seeds)


def in_order_of(values: Any, X: Any) -> Any:
    """Return values of rows in the order of the rows of X, matched by name if both have names.

    Names are the index of a pandas Series and of a data frame, and the row names of a table from a file.

    Raises
    ------
    ValueError
        Both have names, but not the same ones.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame([[5, 1], [1, 5]], index=["a", "b"])
    >>> list(in_order_of(pd.Series([1, 0], index=["b", "a"]), X))
    [0, 1]
    """
    names = X.row_names if isinstance(X, CountTable) else getattr(X, "index", None)
    if names is None or callable(names) or not hasattr(values, "iloc"):  # lists have a method of this name
        return values
    own, wanted = [str(name) for name in values.index], [str(name) for name in names]
    if own == wanted or own == [str(row) for row in range(len(own))]:  # an index that only counts has no names
        return values
    at = {name: row for row, name in enumerate(own)}
    missing = [name for name in wanted if name not in at]
    if missing or len(at) < len(own):
        raise ValueError(
            f"The index of the values must name each row of X once, but row {missing[0]!r} is missing. "
            "Pass an array to match them by position."
            if missing
            else "The index of the values must name each row of X once, but some names are repeated."
        )
    return values.iloc[[at[name] for name in wanted]]


def check_known(labels: Any, n_samples: int, n_clusters: int) -> Known:
    """Return partially known labels: numbers of clusters or names of clusters.

    The label of an unknown row is -1, missing (None, NaN) or, among names, an empty text.

    Examples
    --------
    >>> check_known([1, None, 0], 3, 2).labels.tolist()
    [1, -1, 0]
    >>> check_known(["tea", "", "ham"], 3, 2)
    Known(labels=array([ 1, -1,  0], dtype=int32), names={0: 'ham', 1: 'tea'})
    """
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(
            f"labels must hold one entry for each of the {n_samples} rows, but its shape is {values.shape}. Use -1 for "
            "rows whose cluster is not known."
        )
    items = [UNKNOWN if _is_missing(x) else x for x in values.tolist()]
    if any(isinstance(x, str | bytes) for x in items):
        texts = ["" if isinstance(x, int) and x == UNKNOWN else str(x).strip() for x in items]
        kinds = sorted(set(texts) - {""}, key=_natural)
        if len(kinds) > n_clusters:
            raise ValueError(f"labels name {len(kinds)} clusters, but n_clusters = {n_clusters}. Raise n_clusters.")
        number = {name: q for q, name in enumerate(kinds)} | {"": UNKNOWN}
        return Known(np.array([number[text] for text in texts], dtype=np.int32), dict(enumerate(kinds)))
    for row, x in enumerate(items):
        if isinstance(x, bool) or not isinstance(x, int | float) or x % 1 or not UNKNOWN <= x < n_clusters:
            raise ValueError(
                f"labels must hold whole numbers from -1 (unknown) to {n_clusters - 1}, or names, but labels[{row}] = "
                f"{x}. Renumber the labels or raise n_clusters."
            )
    return Known(np.array(items, dtype=np.int32), {})


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN and pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither true nor false
        return True


def _natural(name: str) -> tuple[float, str]:
    """Return a key that sorts numbers as numbers, before other names."""
    return (float(name) if name.isdecimal() else float("inf"), name)


def with_known(labels: Labels, known: Labels, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return labels of a start in which known rows have their clusters, (N,), and every cluster has a row.

    The clusters of the start are first renumbered so that as many known rows as possible agree.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> with_known(np.array([1, 1, 0, 0]), np.array([0, -1, -1, 1]), 2, rng).tolist()
    [0, 0, 1, 1]
    """
    is_known = known >= 0
    agreeing = np.zeros((n_clusters, n_clusters))
    np.add.at(agreeing, (labels[is_known], known[is_known]), 1)
    renumbered = linear_sum_assignment(-agreeing)[1].astype(np.int32)[labels]
    renumbered[is_known] = known[is_known]
    sizes = np.bincount(renumbered, minlength=n_clusters)
    for q in np.flatnonzero(sizes == 0).tolist():
        free = np.bincount(renumbered[~is_known], minlength=n_clusters) * (sizes > 1)
        if not free.any():
            raise ValueError(f"labels leave no row for cluster {q}. Lower n_clusters, or mark more rows as unknown.")
        largest = int(free.argmax())
        row = rng.choice(np.flatnonzero((renumbered == largest) & ~is_known))
        renumbered[row] = q
        sizes[largest] -= 1
        sizes[q] += 1
    return renumbered


def seeded_centers(points: Array, centers: Array, known: Labels) -> Array:
    """Return centers for k-means, (Q, K): the means of the known rows; for other clusters, the centers far from these.

    points: (N, K); centers: (Q, K), drawn without known labels.
    """
    found = np.unique(known[known >= 0])
    means = np.stack([points[known == q].mean(axis=0) for q in found])
    distances = ((means[:, None] - centers) ** 2).sum(axis=2)
    near = linear_sum_assignment(distances)[1]
    result = np.empty_like(centers)
    result[found] = means
    result[np.setdiff1d(np.arange(len(centers)), found)] = np.delete(centers, near, axis=0)
    return result


# --- words of topics --------------------------------------------------------------------------------------------


class TopicSeeds(NamedTuple):
    """Features that should make up the first topics, and the names of these topics."""

    names: list[str]
    features: list[NDArray[np.intp]]


def check_seeds(seeds: Mapping[str, Iterable[Any]], feature_names: Any, n_topics: int, n_features: int) -> TopicSeeds:
    """Return seed words as positions of features; warn of unknown words, and raise an error if none is left."""
    if len(seeds) > n_topics:
        raise ValueError(f"seed_topics has {len(seeds)} topics, but n_topics = {n_topics}. Raise n_topics.")
    at = {} if feature_names is None else {str(name): v for v, name in enumerate(feature_names)}
    features = []
    for name, words in seeds.items():
        words = [words] if isinstance(words, str) else list(words)
        found = [
            int(word) if isinstance(word, int | np.integer) and 0 <= word < n_features else at.get(str(word), -1)
            for word in words
        ]
        kept = np.unique([v for v in found if v >= 0]).astype(np.intp)
        if len(kept) and (missing := [str(word) for word, v in zip(words, found, strict=True) if v < 0]):
            warn(f"No feature is named {', '.join(missing)}; seed_topics[{name!r}] goes without.", UserWarning)
        if not len(kept):
            raise ValueError(
                f"None of the words of seed_topics[{name!r}] is a feature name. Pass X with feature names, such as a "
                "data frame, or pass column numbers."
            )
        features.append(kept)
    return TopicSeeds([str(name) for name in seeds], features)


def seeded_topics(
    rows: Counts, totals: NDArray[Any], n_topics: int, seeds: TopicSeeds, rng: np.random.Generator, monitor: Monitor
) -> Array:
    """Return topics, (K, V), of which the first ones are anchored by their seed words.

    The topics of LDA that fit the words best come first. EM then continues with as many prior counts for each seed word
    in its topic as the word has in all rows, so at least half of it stays there.
    """
    fit = fit_lda(rows, n_topics, rng=rng, monitor=monitor)
    overall = np.maximum(totals, 1) / np.maximum(totals, 1).sum()
    lift = np.array([[beta[own].sum() / overall[own].sum() for beta in fit.beta] for own in seeds.features])
    first = linear_sum_assignment(-np.log(np.maximum(lift, 1e-12)))[1]
    order = np.concatenate([first, np.setdiff1d(np.arange(n_topics), first)])
    beta_rows, prior = np.ascontiguousarray(fit.beta[order].T), np.full((rows.n_features, n_topics), SMOOTHING)
    for k, own in enumerate(seeds.features):
        prior[own, k] += totals[own]
        beta_rows[own, k] += overall[own]
    beta_rows /= beta_rows.sum(axis=0)
    # A prior for each feature and topic; steps that are not scored take it like a common one.
    problem = Problem(rows, totals > 0, fit.row_prior, prior)  # type: ignore[arg-type]
    mixture = Mixture(fitted_shares(rows, beta_rows, fit.row_prior, dtype=np.float64), beta_rows)
    for _ in range(SEED_PASSES):
        mixture, _ = em_step(problem, mixture)
    return np.ascontiguousarray(mixture.beta_rows.T)


# --- edits of clusters ------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """One edit of the clusters, numbered as before it.

    Attributes
    ----------
    kind : {"merge", "split", "move", "noise"}
    clusters : tuple of int
        Clusters that were merged, split or marked, or to which rows were moved.
    n_rows : int
        Number of rows concerned.
    """

    kind: str
    clusters: tuple[int, ...]
    n_rows: int


class EditReport(NamedTuple):
    """The result of :meth:`mmpca.MMPCA.edit`.

    Attributes
    ----------
    edits : tuple of Edit
    bound_before, bound_edited, bound_after : float
        Bound before the edits, right after them, and after the refit, which never decreases it.
    numbers : dict of int to int
        New number of each old cluster; merged clusters have the same number.
    n_moved : int
        Number of rows that the refit moved.
    """

    edits: tuple[Edit, ...]
    bound_before: float
    bound_edited: float
    bound_after: float
    numbers: dict[int, int]
    n_moved: int


class Resumed(NamedTuple):
    """Topics and labels from which a fit continues."""

    beta: Array
    labels: Labels
    source: str


class Plan(NamedTuple):
    """Labels after some edits."""

    labels: Labels
    n_clusters: int
    edits: tuple[Edit, ...]
    numbers: dict[int, int]
    moved: NDArray[np.intp]  # rows moved on request


def plan_edits(
    model: MMPCA,
    rows: Counts,
    labels: Labels,
    *,
    merge: Sequence[Sequence[int]],
    split: Sequence[int],
    move: Mapping[int, int],
    noise: Sequence[int],
) -> Plan:
    """Return the labels after edits of a model's clusters, whose rows are in the units of the fit."""
    n_clusters, edits = len(model.weights_), list[Edit]()
    labels = labels.copy()
    merge = [merge] if len(merge) and not isinstance(merge[0], Sequence | np.ndarray) else merge
    merged = [tuple(_number(q, n_clusters) for q in group) for group in merge]
    in_merges = [q for group in merged for q in group]
    divided, marked = ([_number(q, n_clusters) for q in some] for some in (split, noise))
    if len(set(in_merges)) < len(in_merges) or any(len(group) < 2 for group in merged):
        raise ValueError(f"Each merge must name two or more clusters, and each cluster only once, but got {merge!r}.")
    if set(divided) & set(in_merges) or len(set(divided)) < len(divided):
        raise ValueError("In one edit, a cluster can be split only once, and not merged as well.")
    moved = np.array(sorted(int(i) for i in move), dtype=np.intp)
    if len(moved) and not (moved[0] >= 0 and moved[-1] < len(labels)):
        raise ValueError(f"Rows to move must be numbers from 0 to {len(labels) - 1}.")
    targets = np.array([_number(move[i], n_clusters) for i in moved.tolist()], dtype=np.int32)
    labels[moved] = targets
    edits += [Edit("move", (int(q),), int((targets == q).sum())) for q in np.unique(targets)]
    # Merged clusters take the lowest of their numbers; then numbers without a cluster are closed up.
    target = np.arange(n_clusters)
    for group in merged:
        edits.append(Edit("merge", group, int(np.isin(labels, group).sum())))
        target[list(group)] = min(group)
    left = np.unique(target)
    numbers = {q: int(np.searchsorted(left, target[q])) for q in range(n_clusters)}
    labels = np.array([numbers[q] for q in range(n_clusters)], dtype=np.int32)[labels]
    n_left = len(left)
    for q in divided:
        members = np.flatnonzero(labels == numbers[q])
        leaving = members[_second_half(model, rows.take(members))]
        edits.append(Edit("split", (q,), len(members)))
        labels[leaving] = n_left
        n_left += 1
    edits += [Edit("noise", (q,), int((labels == numbers[q]).sum())) for q in marked]
    sizes = np.bincount(labels, minlength=n_left)
    if not sizes.all():
        raise ValueError("The edits leave a cluster without rows. Merge it with another instead of moving its rows.")
    return Plan(labels, n_left, tuple(edits), numbers, moved)


def _number(q: Any, n_clusters: int) -> int:
    if isinstance(q, bool) or not isinstance(q, int | np.integer) or not 0 <= q < n_clusters:
        raise ValueError(f"There is no cluster {q!r}; clusters are numbered from 0 to {n_clusters - 1}.")
    return int(q)


def _second_half(model: MMPCA, rows: Counts) -> NDArray[np.bool_]:
    """Return which rows of a cluster leave it in the best split into two."""
    beta, alpha = model.components_, model.topic_prior_
    state = engine.from_sums(
        rows.group_sums(np.zeros(rows.n_rows, dtype=np.int64), 1), [rows.n_rows], beta=beta, alpha=alpha
    )
    gamma, curvature = state.clusters.gamma[0], state.clusters.curvature[0]
    promise, is_second = cut(rows, beta, alpha, gamma, curvature)
    if rows.n_rows < 2 or not np.isfinite(promise):
        raise ValueError("The rows of this cluster do not differ in their topics, so it cannot be split.")
    *_, is_second = climb_halves(rows, is_second, beta, alpha, gamma, 1e-10, -np.inf)
    if not 0 < is_second.sum() < rows.n_rows:
        raise ValueError("No split of this cluster raises the bound.")
    return is_second
