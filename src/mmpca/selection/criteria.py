r"""What the cells of a grid are compared by; larger is better in all of them.

`icl` is the paper's. `cluster_score` compares numbers of clusters for one number of topics,

.. math:: L(Q, K) - \tfrac{1}{2} (Q K - 1) \log N,

the bound less the price of Q topic shares of K - 1 free parameters each and of Q - 1 weights: the topics are common to
all Q and pay nothing. `predictive` first compares numbers of topics by the likelihood of held-out counts, then numbers
of clusters by `cluster_score`; docs/model-selection.md derives and tests it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine

Array = NDArray[np.float64]

CRITERIA = ("predictive", "icl")


class Sizes(NamedTuple):
    """The data's sizes."""

    n_samples: int
    n_features: int  # that occur
    n_counts: int  # the sum of all entries


def icl(bounds: Array, n_clusters: NDArray[np.int64], n_topics: NDArray[np.int64], sizes: Sizes) -> Array:
    """Return the paper's criterion of each cell, (C,)."""
    cells = zip(bounds, n_clusters, n_topics, strict=True)
    size = {"n_samples": sizes.n_samples, "n_features": sizes.n_features}
    return np.array([engine.icl(float(b), n_clusters=int(q), n_topics=int(k), **size) for b, q, k in cells])


def cluster_score(bounds: Array, n_clusters: NDArray[np.int64], n_topics: NDArray[np.int64], sizes: Sizes) -> Array:
    """Return the bound of each cell less half log N for each parameter of its clusters, (C,)."""
    score: Array = bounds - 0.5 * (n_clusters * n_topics - 1) * np.log(sizes.n_samples)
    return score


def predictive_error(predicted: Mapping[int, Array]) -> dict[int, float]:
    r"""Return the standard error of how far each number of topics is behind the best, in nats of the predicted rows.

    With :math:`d_i` what row i loses, the loss is :math:`\sum_i d_i` and its error :math:`\sqrt{R\,\mathrm{var}(d)}`:
    rows are independent, and the same counts of them were held out for every number of topics.

    Parameters
    ----------
    predicted : mapping of int to array of shape (R,)
        Log-likelihood of the held-out counts of each row, by the number of topics.
    """
    best = max(predicted.values(), key=np.sum)
    return {
        k: float(np.sqrt(len(rows)) * np.std(best - rows, ddof=min(1, len(rows) - 1))) for k, rows in predicted.items()
    }


def predictive(score: Array, n_topics: NDArray[np.int64], held_out: Array, sizes: Sizes) -> Array:
    """Return the log-likelihood of all counts as predicted with K topics, less what the cluster score is behind.

    Parameters
    ----------
    score : array of shape (C,)
        `cluster_score` of each cell.
    n_topics : array of shape (C,)
    held_out : array of shape (C,)
        Mean log-likelihood of a held-out count with as many topics.
    sizes : Sizes
    """
    best = {k: score[n_topics == k].max() for k in np.unique(n_topics).tolist()}
    behind = score - np.array([best[k] for k in n_topics.tolist()])
    total: Array = sizes.n_counts * held_out + behind
    return total
