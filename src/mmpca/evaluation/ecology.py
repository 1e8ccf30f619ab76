r"""Indicator features of clusters, and a check whether clusters merely follow the totals of the rows.

The indicator value of feature v for cluster q (Dufrêne and Legendre: Species assemblages and indicator species.
Ecological Monographs, 1997) is the product of specificity and fidelity,

.. math:: \mathrm{IndVal}_{qv} = A_{qv} B_{qv}, \qquad
          A_{qv} = \frac{\bar x_{qv}}{\sum_r \bar x_{rv}}, \qquad B_{qv} = \frac{n_{qv}}{n_q},

where :math:`\bar x_{qv}` is the mean count of the feature in the rows of the cluster and :math:`n_{qv}` the number of
its :math:`n_q` rows that have the feature. It is 1 if a feature occurs in all rows of the cluster and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import false_discovery_control
from sklearn.utils import check_random_state

from mmpca.counts import Counts, as_counts, in_memory
from mmpca.io import CountTable
from mmpca.model import results

Array = NDArray[np.float64]

N_PERMUTATIONS = 999
BLOCK_ENTRIES = 4_000_000  # permutations x clusters x features that are compared at once


def indicator_values(X: sparse.csr_array, labels: NDArray[Any], n_clusters: int) -> tuple[Array, Array]:
    """Return the specificity and the fidelity of all features, (Q, V) each, in plain NumPy."""
    dense = X.toarray()
    means = np.array([dense[labels == q].mean(axis=0) for q in range(n_clusters)])  # (Q, V)
    fidelity = np.array([(dense[labels == q] > 0).mean(axis=0) for q in range(n_clusters)])
    totals = means.sum(axis=0)
    return np.divide(means, totals, out=np.zeros_like(means), where=totals > 0), fidelity


def indicators(
    X: Any,
    labels: ArrayLike,
    *,
    feature_names: Sequence[object] | NDArray[Any] | None = None,
    n_permutations: int = N_PERMUTATIONS,
    random_state: int | np.random.RandomState | None = 0,
    backend: str = "pandas",
) -> Any:
    """Return the indicator features of clusters, with p-values from permutations of the labels.

    Each feature is tested for the cluster with its largest indicator value, against the largest value under permuted
    labels. If the clusters were found in the same counts, the p-values are too small, because clustering looks for
    features that differ; use them to rank features, not as tests. They are valid for groups that were known
    beforehand.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or CountTable of shape (n_samples, n_features)
        Original counts.
    labels : array of shape (n_samples,)
        Clusters or other groups of the rows. Rows with the label -1 are left out.
    feature_names : sequence of length n_features, optional
        By default the columns of a data frame, the names of a table, or "feature 7" and so on.
    n_permutations : int, default=999
        The smallest p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState instance or None, default=0
        Seed of the permutations.
    backend : {"pandas", "polars"}, default="pandas"
        Library of the table.

    Returns
    -------
    DataFrame
        One row for each feature that occurs, largest indicator values first: feature, cluster, indicator_value,
        specificity (its share of the feature's mean counts), fidelity (the share of its rows that have the feature),
        p_value, and p_adjusted, which controls the false discovery rate (Benjamini and Hochberg, 1995).

    Examples
    --------
    >>> from mmpca.evaluation import indicators
    >>> X = [[5, 1, 0], [6, 1, 0], [4, 1, 0], [0, 2, 7], [0, 1, 9], [0, 1, 8]]
    >>> table = indicators(X, ["dry"] * 3 + ["wet"] * 3, feature_names=["thyme", "grass", "reed"])
    >>> table[["feature", "cluster", "indicator_value"]].head(2).values.tolist()
    [['thyme', 'dry', 1.0], ['reed', 'wet', 1.0]]
    """
    counts, names = _named_counts(X, feature_names)
    groups = np.asarray(labels)
    if groups.shape != (counts.n_rows,):
        raise ValueError(f"labels must have one entry for each of the {counts.n_rows:,} rows, not {groups.size:,}.")
    if groups.dtype.kind in "iu":
        counts, groups = counts.take(np.flatnonzero(groups >= 0)), groups[groups >= 0]
    clusters, codes = np.unique(groups, return_inverse=True)
    if len(clusters) < 2:
        raise ValueError(f"Indicator features compare at least two clusters, but there is only {len(clusters)}.")
    matrix = counts.to_csr().astype(np.float64)
    occurs = np.flatnonzero(matrix.sum(axis=0) > 0)
    matrix = sparse.csr_array(matrix[:, occurs])
    specificity, fidelity = _values(matrix, codes[None], len(clusters))
    value = (specificity * fidelity)[0]  # (Q, V)
    best, every = value.argmax(axis=0), np.arange(len(occurs))
    rng, n_larger = check_random_state(random_state), np.zeros(len(occurs))
    n_at_once = max(1, BLOCK_ENTRIES // max(1, value.size))
    for start in range(0, n_permutations, n_at_once):
        permuted = np.array([rng.permutation(codes) for _ in range(min(n_at_once, n_permutations - start))])
        found = np.multiply(*_values(matrix, permuted, len(clusters))).max(axis=1)  # (P, V)
        n_larger += (found >= value.max(axis=0) * (1 - 1e-12)).sum(axis=0)
    p_values = (n_larger + 1) / (n_permutations + 1)
    order = np.lexsort((p_values, -value[best, every]))
    table = {
        "feature": [names[v] for v in occurs],
        "cluster": clusters[best].tolist(),
        "indicator_value": value[best, every].tolist(),
        "specificity": specificity[0][best, every].tolist(),
        "fidelity": fidelity[0][best, every].tolist(),
        "p_value": p_values.tolist(),
        "p_adjusted": false_discovery_control(p_values).tolist(),
    }
    return results.as_frame({name: [column[v] for v in order] for name, column in table.items()}, backend)


def _named_counts(X: Any, names: Sequence[object] | NDArray[Any] | None) -> tuple[Counts, list[str]]:
    """Return counts and the names of their features."""
    if isinstance(X, CountTable):
        names, X = X.feature_names if names is None else names, X.X
    X = in_memory(X)
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    counts = as_counts(X.to_numpy() if hasattr(X, "to_numpy") else X, empty_rows="allow")
    if names is None:
        names = [f"feature {v}" for v in range(counts.n_features)]
    if len(names) != counts.n_features:
        raise ValueError(f"feature_names must have {counts.n_features:,} entries, but it has {len(names):,}.")
    return counts, [str(name) for name in names]


def _values(matrix: sparse.csr_array, labels: NDArray[Any], n_clusters: int) -> tuple[Array, Array]:
    """Return specificity and fidelity, (P, Q, V) each, of P labelings, (P, N), as :func:`indicator_values` does."""
    n_labelings, n_rows = labels.shape
    groups = labels + n_clusters * np.arange(n_labelings)[:, None]  # (P, N), numbered throughout
    columns = np.tile(np.arange(n_rows), n_labelings)
    one = sparse.csr_array((np.ones(groups.size), (groups.ravel(), columns)), shape=(n_labelings * n_clusters, n_rows))
    sizes = np.bincount(labels[0], minlength=n_clusters)[:, None]  # permutations keep the sizes
    presence = matrix.copy()
    presence.data = np.ones_like(presence.data)
    shape = (n_labelings, n_clusters, matrix.shape[1])
    means = (one @ matrix).toarray().reshape(shape) / sizes
    fidelity = (one @ presence).toarray().reshape(shape) / sizes
    return means / means.sum(axis=1, keepdims=True), fidelity


def totals_explained(totals: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of the variance of log totals that lies between clusters, adjusted for chance.

    About 0 if the clusters have nothing to do with the totals of the rows, 1 if rows of a cluster have equal totals.

    Parameters
    ----------
    totals : array of shape (n_samples,)
        Sums of the rows.
    labels : array of shape (n_samples,)

    Returns
    -------
    float
        The adjusted coefficient of determination; 0 if totals do not vary or there are as many clusters as rows.

    Examples
    --------
    >>> from mmpca.evaluation import totals_explained
    >>> totals_explained([10, 11, 9, 100, 110, 90], [0, 0, 0, 1, 1, 1]) > 0.9
    True
    >>> round(totals_explained([10, 100, 10, 100], [0, 0, 1, 1]), 2)
    -0.5
    """
    logs, groups = np.log(np.maximum(np.asarray(totals, dtype=np.float64), 1.0)), np.asarray(labels)
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_rows, n_clusters = len(logs), len(sizes)
    overall = float(((logs - logs.mean()) ** 2).sum())
    if n_rows <= n_clusters or overall < 1e-12:
        return 0.0
    within = float(((logs - (np.bincount(codes, logs) / sizes)[codes]) ** 2).sum())
    return 1.0 - (within / (n_rows - n_clusters)) / (overall / (n_rows - 1))
