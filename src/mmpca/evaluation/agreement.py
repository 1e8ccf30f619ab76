"""How far two partitions of the same rows agree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix


class Agreement(NamedTuple):
    """Agreement of two partitions; both are 1 for equal partitions, whatever their labels.

    Attributes
    ----------
    ari : float
        Adjusted Rand index; about 0 for unrelated partitions.
    nmi : float
        Mutual information, divided by the mean of the two entropies.
    """

    ari: float
    nmi: float


class Confusion(NamedTuple):
    """How many rows of each class are in each cluster, each class beside the cluster that matches it best.

    Attributes
    ----------
    table : ndarray of int, shape (n_classes, n_clusters)
        Numbers of rows. Matched pairs stand on the diagonal; clusters that match no class come last.
    classes : ndarray of shape (n_classes,)
        True labels, in the order of the rows of the table; where there are more classes than clusters, those without a
        match come last.
    clusters : ndarray of shape (n_clusters,)
        Found labels, in the order of the columns.
    accuracy : float
        Share of the rows on the diagonal: the largest that any matching has.
    """

    table: NDArray[np.int64]
    classes: NDArray[Any]
    clusters: NDArray[Any]
    accuracy: float


def agreement(truth: Any, found: Any) -> Agreement:
    """Return the adjusted Rand index and the normalised mutual information of two partitions.

    Parameters
    ----------
    truth, found : array-like of shape (n_samples,)
        Labels of the same rows, numbers or names.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> from mmpca.evaluation import agreement
    >>> agreement(["a", "a", "b"], [1, 1, 0])
    Agreement(ari=1.0, nmi=1.0)
    """
    truth, found = _check_pair(truth, found)
    return Agreement(float(adjusted_rand_score(truth, found)), float(normalized_mutual_info_score(truth, found)))


def matched_confusion(truth: Any, found: Any) -> Confusion:
    """Return the confusion of two partitions, clusters matched to classes by the Hungarian method.

    Parameters
    ----------
    truth, found : array-like of shape (n_samples,)
        Labels of the same rows, numbers or names.

    Returns
    -------
    Confusion

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
    """Return labels as arrays; raise ValueError unless there is one of each for every row."""
    truth, found = np.asarray(truth), np.asarray(found)
    if truth.ndim != 1 or truth.shape != found.shape or truth.size == 0:
        raise ValueError(
            f"both partitions must have one label for each row, but their shapes are {truth.shape} and {found.shape}. "
            "Give two arrays of the same length."
        )
    return truth, found
