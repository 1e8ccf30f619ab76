"""How far clusters come back when a part of the rows, or of the counts, is fitted anew."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts, as_counts
from mmpca.errors import OverdispersionWarning
from mmpca.topics import split_counts

Array = NDArray[np.float64]
How = Literal["rows", "counts"]

# Hennig (2007), of mean Jaccard similarities: below, a cluster is dissolved; from the second on, it is stable.
DISSOLVED, STABLE = 0.6, 0.75

ANEW = {"topics": "lda", "start": "auto"}  # in place of arrays, which a search gives to its best model


@dataclass(frozen=True)
class Stability:
    """How well each cluster was found again.

    Attributes
    ----------
    jaccard : ndarray of shape (n_refits, n_clusters)
        For each refit and cluster, the rows in both the cluster and its match, as a share of the rows in either; 0
        for a cluster without a match, NaN for one none of whose rows were drawn.
    ari : ndarray of shape (n_refits,)
        Adjusted Rand index of all labels.
    how : {"rows", "counts"}
        What was drawn.
    share : float
        How much of it.
    """

    jaccard: Array
    ari: Array
    how: str
    share: float

    @property
    def clusters(self) -> Array:
        """Mean Jaccard similarity of each cluster over the refits, shape (n_clusters,)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a cluster whose rows were never drawn: NaN
            mean: Array = np.nanmean(self.jaccard, axis=0)
        return mean

    @property
    def verdicts(self) -> list[str]:
        """Each cluster in a word: "stable", "doubtful" or "dissolved"; "unknown" if its rows were never drawn."""
        return [_verdict(float(mean)) for mean in self.clusters]


def stability(
    model: Any,
    X: Any,
    *,
    how: How = "rows",
    n_refits: int = 10,
    share: float = 0.8,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Stability:
    """Refit a model to parts of its data and see which of its clusters come back.

    Each refit learns everything anew, topics included. Its clusters are matched to those of the model one to one, so
    that their similarities are largest in sum. Memory grows with rows times refits; no table of pairs of rows is made.

    Parameters
    ----------
    model : estimator
        A fitted `MMPCA`, or another clusterer of counts with `labels_`.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The counts that it was fitted to.
    how : {"rows", "counts"}, default="rows"
        Draw rows without replacement, or single counts: each is kept with probability `share`, and rows that keep none
        are left out. Rows ask whether the clusters hang on some of the rows; counts, whether they hang on the noise.
    n_refits : int, default=10
    share : float, default=0.8
        Share of the rows or counts in each refit, between 0 and 1.
    n_jobs : int or None, default=None
        Refits at a time, through joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of draws and refits.

    Returns
    -------
    Stability

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
    rows, labels = as_counts(X), np.asarray(model.labels_)
    _check(how, n_refits, share, rows, labels)
    seeds = check_random_state(random_state).randint(2**31, size=n_refits)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_refit)(model, rows, how, float(share), int(seed), labels) for seed in seeds
    )
    jaccard, ari = zip(*found, strict=True)
    return Stability(np.array(jaccard), np.array(ari), how, float(share))


def matched_jaccard(labels: Any, others: Any, n_clusters: int) -> Array:
    """Return the Jaccard similarity of each cluster and its match in another partition, shape (n_clusters,).

    Matches are one to one, with the largest sum. 0 for a cluster without a match, NaN for one without rows.

    Parameters
    ----------
    labels : array-like of int, shape (n_samples,)
        0 to n_clusters - 1.
    others : array-like of shape (n_samples,)
        Another partition of the same rows, of any number of clusters.
    n_clusters : int

    Examples
    --------
    >>> from mmpca.evaluation.stability import matched_jaccard
    >>> matched_jaccard([0, 0, 0, 1, 1, 1], ["b", "b", "a", "a", "a", "a"], 2)
    array([0.66666667, 0.75      ])
    """
    labels, (names, others) = np.asarray(labels), np.unique(others, return_inverse=True)
    both = coo_array((np.ones(len(labels)), (labels, others)), shape=(n_clusters, len(names))).toarray()
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    table = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    result = np.where(both.any(axis=1), 0.0, np.nan)
    for q, other in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if both[q].any():
            result[q] = table[q, other]
    return result


def _refit(model: Any, rows: Counts, how: str, share: float, seed: int, labels: NDArray[Any]) -> tuple[Array, float]:
    """Return the similarities of one refit's clusters, and its adjusted Rand index."""
    rng = np.random.default_rng(seed)
    part, at = _part(rows, how, share, rng)
    again = clone(model)
    parameters = again.get_params(deep=False)
    if "random_state" in parameters:
        again.set_params(random_state=int(rng.integers(2**31)))
    # A refit that starts from the labels or topics of the fit would find them again, whatever the data say.
    anew = {name: value for name, value in ANEW.items() if not isinstance(parameters.get(name, value), str)}
    again.set_params(**anew)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)  # the model itself has warned
        others = again.fit(part.to_csr()).labels_
    kept = labels[at]
    return matched_jaccard(kept, others, int(labels.max()) + 1), float(adjusted_rand_score(kept, others))


def _part(rows: Counts, how: str, share: float, rng: np.random.Generator) -> tuple[Counts, NDArray[np.intp]]:
    """Return a random part of the data, and the numbers of its rows."""
    if how == "rows":
        at = np.sort(rng.choice(rows.n_rows, max(1, round(share * rows.n_rows)), replace=False))
        return rows.take(at), at
    kept = split_counts(rows, rng, kept_share=share).kept
    at = np.flatnonzero(kept.row_totals() > 0)
    return kept.take(at), at


def _check(how: str, n_refits: int, share: float, rows: Counts, labels: NDArray[Any]) -> None:
    """Raise ValueError for what cannot be refitted."""
    if how not in ("rows", "counts"):
        raise ValueError(f'how must be "rows" or "counts", got {how!r}.')
    if not isinstance(n_refits, int | np.integer) or n_refits < 1:
        raise ValueError(f"n_refits must be a whole number of at least 1, got {n_refits!r}.")
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}: the whole comes back as it is.")
    if rows.n_rows != len(labels):
        raise ValueError(
            f"X must be what the model was fitted to, {len(labels)} rows, but it has {rows.n_rows}. "
            "Fit the model to X first."
        )


def _verdict(mean: float) -> str:
    if np.isnan(mean):
        return "unknown"
    return "dissolved" if mean < DISSOLVED else "doubtful" if mean < STABLE else "stable"
