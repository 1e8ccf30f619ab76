"""How well partitions of the same rows agree: clusters with known labels, and clusters with those of refits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts, as_counts
from mmpca.errors import OverdispersionWarning, SuspiciousCountsWarning
from mmpca.parameters import Rule, check_parameters, integer, one_of, real
from mmpca.topics import split_counts

Array = NDArray[np.float64]

# Thresholds of Hennig (2007) on the mean Jaccard similarity.
DISSOLVED, STABLE = 0.6, 0.75

STABILITY_RULES = {
    "how": one_of("rows", "counts"),
    "n_refits": integer(1),
    "share": Rule(lambda value: real(0, 1).holds(value) and 0 < value < 1, "a number between 0 and 1, both excluded"),
}
# Refits use these instead of given arrays, such as those of the best model of a search: given topics and labels would
# lead every refit to the same clusters.
UNBIASED = {"topics": "lda", "start": "auto"}


# --- known labels -----------------------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """Agreement of two partitions; both numbers are 1 for equal partitions, whatever their labels.

    Attributes
    ----------
    ari : float
        Adjusted Rand index; about 0 for unrelated partitions.
    nmi : float
        Normalized mutual information: mutual information divided by the mean of the two entropies.
    """

    ari: float
    nmi: float


class Confusion(NamedTuple):
    """Number of rows of each class in each cluster, with matching classes and clusters on the diagonal.

    Attributes
    ----------
    table : ndarray of int, shape (n_classes, n_clusters)
        Numbers of rows. Matched pairs are on the diagonal.
    classes : ndarray of shape (n_classes,)
        True labels, in the order of the rows of the table; classes without a match come last.
    clusters : ndarray of shape (n_clusters,)
        Found labels, in the order of the columns; clusters without a match come last.
    accuracy : float
        Share of the rows on the diagonal, the largest of all matchings.
    """

    table: NDArray[np.int64]
    classes: NDArray[Any]
    clusters: NDArray[Any]
    accuracy: float


def agreement(truth: Any, found: Any) -> Agreement:
    """Return the adjusted Rand index and the normalized mutual information of two partitions.

    Parameters
    ----------
    truth, found : array-like of shape (n_samples,)
        Labels of the same rows, numbers or names.

    Returns
    -------
    Agreement
        The indices `ari` and `nmi`.

    Examples
    --------
    >>> from mmpca.evaluation import agreement
    >>> agreement(["a", "a", "b"], [1, 1, 0])
    Agreement(ari=1.0, nmi=1.0)
    """
    truth, found = _check_pair(truth, found)
    return Agreement(float(adjusted_rand_score(truth, found)), float(normalized_mutual_info_score(truth, found)))


def matched_confusion(truth: Any, found: Any) -> Confusion:
    """Return the confusion matrix of two partitions, with clusters matched to classes.

    The matching puts as many rows as possible on the diagonal (Hungarian method).

    Parameters
    ----------
    truth, found : array-like of shape (n_samples,)
        Labels of the same rows, numbers or names.

    Returns
    -------
    Confusion
        The table, its classes and clusters, and the accuracy.

    Examples
    --------
    >>> from mmpca.evaluation import matched_confusion
    >>> confusion = matched_confusion(["a", "a", "b", "b"], [1, 1, 0, 1])
    >>> confusion.table
    array([[2, 0],
           [1, 1]])
    >>> confusion.clusters, confusion.accuracy
    (array([1, 0]), 0.75)
    """
    truth, found = _check_pair(truth, found)
    table = contingency_matrix(truth, found).astype(np.int64)  # (classes, clusters), both sorted
    rows, columns = linear_sum_assignment(table, maximize=True)
    rows = np.append(rows, np.setdiff1d(np.arange(table.shape[0]), rows))
    columns = np.append(columns, np.setdiff1d(np.arange(table.shape[1]), columns))
    table = table[np.ix_(rows, columns)]
    return Confusion(table, np.unique(truth)[rows], np.unique(found)[columns], float(np.trace(table) / table.sum()))


def _check_pair(truth: Any, found: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return labels as arrays; raise ValueError unless both have one label for each row."""
    truth, found = np.asarray(truth), np.asarray(found)
    if truth.ndim != 1 or truth.shape != found.shape or truth.size == 0:
        raise ValueError(
            f"truth and found must each have one label per row, but their shapes are {truth.shape} and {found.shape}. "
            "Pass two one-dimensional arrays of the same length."
        )
    return truth, found


# --- refits -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stability:
    """How well each cluster was recovered by refits.

    Attributes
    ----------
    jaccard : ndarray of shape (n_refits, n_clusters)
        Jaccard similarity of each cluster and its match in each refit: the rows in both divided by the rows in either.
        0 for a cluster without a match, NaN for a cluster none of whose rows were drawn.
    ari : ndarray of shape (n_refits,)
        Adjusted Rand index of the labels of each refit.
    how : {"rows", "counts"}
        What was drawn.
    share : float
        Share of it that was drawn.
    rows : ndarray of shape (n_samples,)
        For each row, the share of the refits with it that put it into the match of its cluster; NaN for a row that was
        never drawn.

    Examples
    --------
    Two refits with 80% of four rows each: the first cluster comes back, the second only in part.

    >>> import numpy as np
    >>> from mmpca.evaluation import Stability
    >>> jaccard = np.array([[1.0, 0.5], [0.8, 0.9]])
    >>> found = Stability(jaccard, ari=np.array([0.9, 0.8]), how="rows", share=0.8, rows=np.ones(4))
    >>> found.clusters.round(2)
    array([0.9, 0.7])
    >>> found.verdicts
    ['stable', 'doubtful']
    """

    jaccard: Array
    ari: Array
    how: str
    share: float
    rows: Array

    @property
    def clusters(self) -> Array:
        """Mean Jaccard similarity of each cluster over the refits, shape (n_clusters,)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NaN for a cluster whose rows were never drawn
            mean: Array = np.nanmean(self.jaccard, axis=0)
        return mean

    @property
    def verdicts(self) -> list[str]:
        """One of "stable", "doubtful" and "dissolved" for each cluster; "unknown" if its rows were never drawn."""
        grades = np.array(["dissolved", "doubtful", "stable", "unknown"])
        # NaN sorts after every number, and so belongs to the last grade.
        return grades[np.searchsorted([DISSOLVED, STABLE, np.inf], self.clusters, side="right")].tolist()


def stability(
    model: Any,
    X: Any,
    *,
    how: Literal["rows", "counts"] = "rows",
    n_refits: int = 10,
    share: float = 0.8,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Stability:
    """Refit a model to random parts of its data and measure how well its clusters are recovered.

    Each refit starts from scratch, including the topics. Its clusters are matched one to one to those of the model,
    maximizing the sum of their Jaccard similarities.

    Parameters
    ----------
    model : estimator
        A fitted :class:`~mmpca.MMPCA`, or another fitted clusterer of counts with `labels_`.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The counts that the model was fitted to.
    how : {"rows", "counts"}, default="rows"
        Draw rows without replacement, or single counts: each is kept with probability `share`, and rows that keep
        none are left out. "rows" shows whether the clusters depend on particular rows, "counts" whether they depend on
        the noise of the counts.
    n_refits : int, default=10
        Number of refits.
    share : float, default=0.8
        Share of the rows or counts in each refit, between 0 and 1.
    n_jobs : int or None, default=None
        Number of refits in parallel, through joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws and refits.

    Returns
    -------
    Stability
        The similarities of all clusters in all refits.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.evaluation import stability
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=150, random_state=0)
    >>> model = MMPCA(6, 4, n_init=2, random_state=0).fit(data.X)
    >>> stability(model, data.X, n_refits=3, random_state=0).verdicts
    ['stable', 'stable', 'stable', 'stable', 'stable', 'stable']
    """
    check_is_fitted(model, "labels_")
    check_parameters({"how": how, "n_refits": n_refits, "share": share}, STABILITY_RULES)
    rows, labels = as_counts(X), np.asarray(model.labels_)
    check_same_rows(rows.n_rows, len(labels))
    seeds = check_random_state(random_state).randint(2**31, size=n_refits)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_refit)(model, rows, how, float(share), int(seed), labels) for seed in seeds
    )
    jaccard, ari, drawn, kept = map(np.array, zip(*found, strict=True))
    n_drawn = drawn.sum(axis=0)
    of_rows = np.divide(kept.sum(axis=0), n_drawn, out=np.full(len(labels), np.nan), where=n_drawn > 0)
    return Stability(jaccard, ari, how, float(share), of_rows)


def check_same_rows(n_rows: int, n_labels: int) -> None:
    """Raise ValueError unless there are as many rows as labels of a model."""
    if n_rows != n_labels:
        raise ValueError(
            f"X must be the data that the model was fitted to, {n_labels} rows, but it has {n_rows} rows. "
            "Fit the model to X first."
        )


def matched_jaccard(labels: Any, others: Any, n_clusters: int) -> Array:
    """Return the Jaccard similarity of each cluster and its match in another partition of the rows, (Q,).

    Matches are one to one and maximize the sum of the similarities. A cluster without a match has similarity 0, one
    without rows NaN. labels: (N,), from 0; others: (N,), numbers or names.

    Examples
    --------
    >>> from mmpca.evaluation.partitions import matched_jaccard
    >>> matched_jaccard([0, 0, 0, 1, 1, 1], ["b", "b", "a", "a", "a", "a"], 2)
    array([0.66666667, 0.75      ])
    """
    return _match(labels, others, n_clusters)[0]


def _match(labels: Any, others: Any, n_clusters: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the similarity of each cluster and its match, (Q,), and which rows are in the match of their cluster."""
    labels, (names, others) = np.asarray(labels), np.unique(others, return_inverse=True)
    both = coo_array((np.ones(len(labels)), (labels, others)), shape=(n_clusters, len(names))).toarray()
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    table = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    result, match = np.where(both.any(axis=1), 0.0, np.nan), np.full(n_clusters, -1)
    for q, other in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if both[q].any():
            result[q], match[q] = table[q, other], other
    return result, match[labels] == others


def _refit(
    model: Any, rows: Counts, how: str, share: float, seed: int, labels: NDArray[Any]
) -> tuple[Array, float, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the similarities of the clusters of one refit, its Rand index, and which rows it drew and kept."""
    rng = np.random.default_rng(seed)
    part, at = _draw(rows, how, share, rng)
    again = clone(model)
    parameters = again.get_params(deep=False)
    if "random_state" in parameters:
        again.set_params(random_state=int(rng.integers(2**31)))
    for name in ("dispersion", "stabilize"):  # as chosen for all rows
        if name in parameters and hasattr(model, f"{name}_"):
            again.set_params(**{name: getattr(model, f"{name}_")})
    again.set_params(
        **{name: auto for name, auto in UNBIASED.items() if not isinstance(parameters.get(name, auto), str)}
    )
    with warnings.catch_warnings():
        for category in (OverdispersionWarning, SuspiciousCountsWarning):  # the fit of the model has warned already
            warnings.simplefilter("ignore", category)
        others = again.fit(part.to_csr()).labels_
    own = labels[at]
    jaccard, stays = _match(own, others, int(labels.max()) + 1)
    drawn, kept = np.zeros(len(labels), dtype=bool), np.zeros(len(labels), dtype=bool)
    drawn[at], kept[at] = True, stays
    return jaccard, float(adjusted_rand_score(own, others)), drawn, kept


def _draw(rows: Counts, how: str, share: float, rng: np.random.Generator) -> tuple[Counts, NDArray[np.intp]]:
    """Return a random part of the data, and the indices of its rows."""
    if how == "rows":
        at = np.sort(rng.choice(rows.n_rows, max(1, round(share * rows.n_rows)), replace=False))
        return rows.take(at), at
    kept = split_counts(rows, rng, kept_share=share).kept
    at = np.flatnonzero(kept.row_totals() > 0)
    return kept.take(at), at
